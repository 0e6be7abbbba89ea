"""Kernels that know one line of a table."""
