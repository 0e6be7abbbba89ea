"""Fuzzing of everything that reads files: a seeded mutator, and targets, a module a family.

`faults.py fuzz` runs them; `python -m tests.fuzz.worker` is one process of that, see there.
"""
