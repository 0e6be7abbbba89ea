"""Bitexts, texts, alignments and training pairs in files."""
