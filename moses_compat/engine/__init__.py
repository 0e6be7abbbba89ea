"""Moses' model for the engine: tables, language models, n-best lists."""
