"""The recursive auto-encoder."""
