"""Two tables joined through a pivot language.

`legs` holds the entries of the two tables, `links` connects entries of the first to groups of the second, `batches`
takes as many sources at a time as memory holds, and `paths` sums over all pivot phrases.
"""
