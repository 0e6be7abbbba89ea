"""One home for each numba kernel that several rooms need."""
