"""The mean of fixed word vectors."""
