"""Phrase pairs from an aligned bitext, and their scores."""
