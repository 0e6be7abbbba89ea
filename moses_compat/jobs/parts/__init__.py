"""Tables in part files: for tables that no machine reads alone."""
