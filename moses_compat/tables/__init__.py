"""Phrase tables and reordering tables as a whole.

`blocks` reads a table in blocks (`TableScan`), `parser` finds the fields of their lines, `opening` checks and sorts a
table before it is read, `source_order` checks that the entries of a source are adjacent; `parquet`, `canonical` and
`binarize` write other forms, `inspect` summarises a table and lists the objections of Moses' programs, and
`phrase_index` finds the entries of a phrase.
"""
