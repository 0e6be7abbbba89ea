"""n-gram language models with back-off: their tables, the automaton that decodes with them, and their estimation."""
