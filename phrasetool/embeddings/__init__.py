"""Word vectors, read from files or trained on text."""
