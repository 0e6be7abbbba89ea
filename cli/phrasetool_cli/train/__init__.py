"""`phrasetool train`: a module for each kind of model, and shared modules.

The module of a kind has a click command, called `command`, with its own options and options that are generated from
the settings of the model family (`setting_options`).  `run` has the options and checks of every training, and the
message when it is interrupted; `pair_files` reads sentence pairs.
"""
