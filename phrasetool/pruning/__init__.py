"""Selection of the entries to remove: one small class per criterion, and protection of the best of every source."""
