"""What people import, as far as it needs no table: models and measures.  See `phrasetool`."""
