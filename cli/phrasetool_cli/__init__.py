"""The command line: one file per command; parses arguments, shows progress, reports exceptions in one line."""
