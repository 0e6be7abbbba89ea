"""A corpus in memory: words as numbers, sentences, where phrases occur."""
