"""Word vectors: trained here (word2vec) or loaded from files."""
