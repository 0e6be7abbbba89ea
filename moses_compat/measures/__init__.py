"""Measures of the entries of a table: similarities, counts, significance, losses.

`measure` computes all measures of a table (`MeasureRequest`, `measure_table`); `entry_reader` reads blocks with their
similarities.  Similarity sources follow `similarities.SimilaritySource`: models (`model_sources`), translators,
classifiers and syntactic encoders (`windowed_scores`, `translator_scores`, `text_model_scores`), sentence encoders
(`encoded`), and saved similarities (`saved_scores`).
"""
