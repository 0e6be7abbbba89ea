"""Support for Moses: reading and writing tables, training pairs, score columns.  May import phrasetool."""
