"""Classifier of sentence pairs: a siamese network that predicts whether two sentences are translations.

`settings` holds the architecture and the hyper-parameters; `inputs` turns words, or the pieces of an external
encoder, into vectors, which `network` compares; `labelled_pairs` makes wrong pairs to learn from,
`training` trains, `quality` measures, and `model` saves and loads; `bitext_scores` serves `filter-bitext` and `mine`.

Public objects: `PairClassifierSettings`, `PairClassifierModel`, `train_pair_classifier`, `measure_pair_classifier`,
`ClassifierScorer`, `load_pair_model`.
"""
