"""A corpus in memory: word ids, sentences, and an index of phrase occurrences."""
