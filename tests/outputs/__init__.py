"""What `same_outputs.py` is made of: the cases, their inputs, and how they are run and compared."""
