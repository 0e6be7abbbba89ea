"""What is done to a table from its beginning to its end: annotate, prune, filter."""
