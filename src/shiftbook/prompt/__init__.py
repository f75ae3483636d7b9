"""The prompt: a recipe over entries, rendered by a pure function and digested block by block."""
