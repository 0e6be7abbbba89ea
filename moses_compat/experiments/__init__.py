"""Experiments: tables that are pruned and annotated in many ways, and translated without being written.

`experiment` runs one from its configuration; `build` and `build_commands` make its models and tables by commands,
`pruned_tables` and `tuned_tables` compare systems, `ladder` adds one step after the other, and `run_store` keeps runs.
"""
