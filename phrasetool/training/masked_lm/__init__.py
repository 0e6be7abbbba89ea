"""Training of own BERTs: masked words of text of one language or of two, saved as transformers saves them."""
