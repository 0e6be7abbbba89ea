"""Training of the syntactic encoder."""
