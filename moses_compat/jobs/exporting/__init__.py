"""A table in, files for other systems out."""
