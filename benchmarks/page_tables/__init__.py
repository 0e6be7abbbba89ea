"""Tables and numbers of the documentation, from the results in benchmarks/results/; one module per subject."""
