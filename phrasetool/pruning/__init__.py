"""Which entries go: one small class per criterion, and the rule that protects the best of every source."""
