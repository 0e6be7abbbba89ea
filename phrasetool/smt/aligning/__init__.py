"""Word alignment."""
