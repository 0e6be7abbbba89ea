"""Public classes and functions that need no table: models and measures.  `phrasetool` names them."""
