"""The report of an experiment: pages, pictures and tables from its frames."""
