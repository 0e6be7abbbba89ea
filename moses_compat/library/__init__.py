"""What people import, as far as it needs tables and texts in files.  See `phrasetool`."""
