"""Fuzzing of all file readers: a seeded mutator, and targets, with one module per family of formats.

`faults.py fuzz` runs them; `python -m tests.fuzz.worker` runs one target in one process.
"""
