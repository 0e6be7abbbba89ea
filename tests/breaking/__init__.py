"""Parts of `faults.py`: small inputs, commands that write files, and how they are killed and limited."""
