"""Two tables joined through a middle language: entries of the legs, ways between their ends, sums over ways."""
