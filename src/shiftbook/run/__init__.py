"""Running: decide what is next, do it, write it down."""
