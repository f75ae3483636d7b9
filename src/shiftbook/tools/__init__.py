"""Tools: what an author promises about a function that a model may call."""
