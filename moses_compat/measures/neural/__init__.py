"""What translators say of the entries of a table, and what of it is kept until the work is done."""
