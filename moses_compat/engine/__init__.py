"""Moses' models for the embedded engine: tables, language models, n-best lists.

`model` reads the files that a moses.ini names (`MosesModel`), with `model_lines`, `decoder_tables`, `language_models`,
`arpa` and `kenlm_files`; `n_best` writes and reads n-best lists, `extracted` writes phrase pairs, `development_check`
checks a development set.
"""
