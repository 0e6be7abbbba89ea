"""What commands that append columns to a table share: the ini beside it, and what is said in the end."""
