"""`phrasetool train`: a file for each kind of model, and what they share.

A kind has a click command, called `command`, with its own options; options are also made of the settings that its model
family declares (`setting_options`).  `run` has the options of every training, its checks and what is printed when it is
interrupted; `pair_files` reads sentence pairs.
"""
