"""Vectors of syntax: pieces of words, the network that reads them in any language, and its kernel without torch."""
