"""Parts of a phrase table for other systems: candidates of their output units."""
