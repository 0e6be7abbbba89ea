"""Kernels and checks for lines of a table, single lines or blocks.

`fields` finds lines, fields and words, `numbers` reads and writes scores and positions, `counts` reads the fifth field,
`insert_scores` appends score columns, `hashes` computes hashes of phrases and phrase pairs, and `oddities` detects
content that Moses programs cannot read.
"""
