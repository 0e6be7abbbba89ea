"""Public classes and functions that need no phrase table: models and measures.  `phrasetool` exports them."""
