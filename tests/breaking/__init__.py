"""What `faults.py` is made of: small inputs, the commands that write, and how they are killed and starved."""
