"""What criteria need to know of the entries of a table."""
