"""Options and summary of `prune` and of what prunes like it."""
