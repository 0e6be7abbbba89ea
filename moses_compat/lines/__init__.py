"""Lines of a table: kernels and checks for one line or a block of lines.

`fields` finds lines, fields and words, `numbers` reads and writes scores and positions, `counts` the fifth field;
`insert_scores` appends score columns, `hashes` keeps phrases and pairs as hashes, and `oddities` finds the content that
programs of Moses cannot read.
"""
