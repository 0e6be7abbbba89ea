"""A table as a whole."""
