"""Phrase-based translation with Moses' model: options, stack search, cube pruning, n-best lists, forced decoding."""
