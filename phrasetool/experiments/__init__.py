"""Experiments: what was asked for, what was found, and the report about it."""
