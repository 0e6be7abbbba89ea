"""New entries for words that a phrase table has none for."""
