"""Classifier of sentence pairs: a siamese network that predicts whether two sentences are translations.

`settings` holds the architecture and the hyper-parameters; `inputs` turns words, or the subword tokens of an external
encoder, into vectors, which `network` compares; `labelled_pairs` makes negative pairs to learn from,
`training` trains, `quality` evaluates, and `model` saves and loads; `filter-bitext` and `mine` use `bitext_scores`.

Public objects: `PairClassifierSettings`, `PairClassifierModel`, `train_pair_classifier`, `measure_pair_classifier`,
`ClassifierScorer`, `load_pair_model`.
"""
