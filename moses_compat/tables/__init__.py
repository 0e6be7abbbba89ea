"""Phrase tables and reordering tables as a whole.

`blocks` reads a table in blocks (`TableScan`), `parser` finds the fields of their lines, `source_order` checks that the
entries of a source are adjacent, `parquet`, `canonical` and `binarize` write other forms, `orphans` keeps a reordering
table in step, and `inspect` describes a table.
"""
