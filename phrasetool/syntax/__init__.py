"""Syntactic encoder: the vector of a text is learnt by predicting the parts of speech of its translations.

`pieces` segments words into subword units, `data` makes training examples from bitexts and a tagger, `network` and
`training` (which need torch) train the encoder, `settings` holds its dimensions and hyper-parameters, `model` encodes
texts and scores tag sequences with a saved encoder, and `evaluation` measures how well vectors separate syntax.

Public objects: `SyntaxSettings`, `SyntaxModel`, `train_syntax`, `syntax_quality`.
"""
