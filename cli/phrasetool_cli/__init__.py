"""The command line: one file per command.  Parses, calls, shows progress, turns exceptions into one line."""
