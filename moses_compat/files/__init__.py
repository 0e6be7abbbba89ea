"""Files: bytes in and out, compression, kinds of files, and work that can be resumed.

`streams` has `Input` and `Output`, which replaces its file when it is complete; `packing` compresses; `kinds` detects
the formats of files; `paths` has functions on paths and notices about files; `arrow` converts arrays to Arrow;
`finished_work` stores the results of interrupted work.
"""
