"""Training of text autoencoders."""
