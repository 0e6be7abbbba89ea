"""The training loops, their settings, and checkpoints."""
