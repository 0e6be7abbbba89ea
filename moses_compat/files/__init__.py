"""Files: bytes in and out, compression, kinds of files, and work that can be resumed.

`streams` has `Input` and `Output`, which replaces its file when it is complete; `packing` compresses; `kinds` finds out
what a file is; `paths` holds names of files and notices about them; `arrow` makes Arrow's arrays; `finished_work`
keeps the finished blocks of interrupted work.
"""
