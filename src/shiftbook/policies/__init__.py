"""Policies: how a prompt is made from a journal, one small file each."""

from shiftbook.policies.decide import decide
from shiftbook.policies.journal import Journal
from shiftbook.policies.masking import Masking
from shiftbook.policies.notes import Notes
from shiftbook.policies.promise import Policy
from shiftbook.policies.registry import POLICIES, policy_named
from shiftbook.policies.transcript import Transcript
from shiftbook.policies.window import Window

__all__ = [
    "POLICIES",
    "Journal",
    "Masking",
    "Notes",
    "Policy",
    "Transcript",
    "Window",
    "decide",
    "policy_named",
]
