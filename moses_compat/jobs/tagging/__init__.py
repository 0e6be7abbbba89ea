"""Parts of speech of texts, and of tables."""
