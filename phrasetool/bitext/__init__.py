"""Mining of parallel sentences: nearest neighbours, margins, selection of pairs, and evaluation."""
