"""What phrasetool knows about Moses: table text in and out, training pairs, score columns.  May import phrasetool."""
