"""The report of an experiment: pages, figures and tables made from its frames."""
