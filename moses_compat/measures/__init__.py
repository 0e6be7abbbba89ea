"""Measures of the entries of a table: similarities, counts, significance, losses.

`measure` takes all measures of a table (`MeasureRequest`, `measure_table`); `entry_reader` reads blocks with their
similarities.  Similarity sources follow `similarities.SimilaritySource`: models (`model_sources`), translators,
classifiers and syntactic encoders (`windowed_scores` and the modules of their scores), sentence encoders (`encoded`),
and saved similarities.
"""
