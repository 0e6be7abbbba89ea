"""Text autoencoders."""
