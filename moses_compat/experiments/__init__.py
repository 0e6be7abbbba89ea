"""Experiments: methods and sizes of pruning compared by BLEU, from a configuration file to a report.

`config` reads the TOML file into `settings`, `build` makes missing files, `pruned_tables` and `tuned_tables` translate
with tables that are not written, `ladder` adds improvements step by step, `results` scores translations, `experiment`
runs all of it, `run_store` keeps finished runs, and `report` makes Markdown, one HTML page and figures.

Public objects: `read_experiment_config`, `ExperimentConfig`, `PruningSystem`, `run_experiment`, `write_report`.
"""
