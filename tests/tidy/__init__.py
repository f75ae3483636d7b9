"""The rules that `tests/test_tidy.py` holds the house to."""
