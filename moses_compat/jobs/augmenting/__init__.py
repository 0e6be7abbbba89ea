"""New entries in a table, for words that it has none for."""
