"""Construction of a phrase table from a source-pivot and a pivot-target table.

`tables` stores the entries of both tables, `links` connects source-pivot entries to the groups of pivot-target entries,
`batches` divides the sources into batches that fit into memory, and `paths` sums over all pivot phrases.
"""
