"""Saved models of all families.

`families` is the registry of the model families (`ModelFamily`, `FAMILIES`), `saved_model` the base class of their
models, with model folders (`SavedModel`, `load_saved_model`), and `fit` checks whether a model is compatible
with given pairs (`ModelCompatibility`).
"""
