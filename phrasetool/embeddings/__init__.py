"""Word vectors: read from files, or trained on one's own text."""
