"""Objectives: what training minimises.  They know vectors and word ids, no files."""
