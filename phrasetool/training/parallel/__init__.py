"""Training of the classifier of sentence pairs."""
