"""N-best lists: features that models append, and choosing anew by them."""
