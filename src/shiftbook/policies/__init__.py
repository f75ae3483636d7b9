"""Policies: how a prompt is made from a journal, one small file each."""
