"""Lines of a table: kernels and checks for one line or a block of lines.

`separators` finds lines and fields, `numbers` and `scores` read and write their contents, `counts` the fifth field,
`words` checks words; `insert_scores` appends score columns, `hashes` keeps phrases and pairs as hashes, `columns` takes
lines apart for Parquet, and `oddities` finds what programs of Moses cannot read.
"""
