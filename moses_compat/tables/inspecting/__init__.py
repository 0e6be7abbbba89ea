"""What a table holds, and what Moses would make of it."""
