"""Parts of `same_outputs.py`: cases, their inputs, and how they are run and compared."""
