"""Experiments: methods and sizes of pruning compared by BLEU, from a configuration file to a report.

`config` reads the TOML file into `settings`, `build` plans the commands that make missing files, `build_commands` runs
them and stores finished runs, `compared_tables` translates with tables that are not written, `ladder` adds improvements
step by step, `results` scores translations, `experiment` runs the whole experiment, and `report` makes Markdown, one
HTML page and figures.

Public objects: `read_experiment_config`, `ExperimentConfig`, `PruningSystem`, `run_experiment`, `write_report`.
"""
