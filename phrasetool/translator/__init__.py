"""Translator: an encoder-decoder with attention that predicts the vector of the next word, or a distribution.

`settings` holds the architecture and the hyper-parameters, `network` the network and the vectors that it predicts,
`training` trains it, `model` saves and loads it, and `decoding` translates and scores with a trained translator.
`network`, `training` and `decoding` need torch.

Public objects: `TranslatorSettings`, `TranslatorModel`, `train_translator`, `translate`,
`n_best_translations`, `scores_of_pairs`.
"""
