"""Projections: pure folds of entries into what a question needs. Folded in pieces or at once, the same."""
