"""Where similarities come from, as commands ask for it."""
