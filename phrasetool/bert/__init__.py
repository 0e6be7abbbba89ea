"""BERTs trained from scratch (masked language models) on text of one language, or on text of two with translations.

`settings` holds sizes and hyper-parameters, `data` learns WordPiece units, makes batches and masks pieces,
and `training` (which needs torch and transformers) trains a BERT and saves it in a folder that transformers loads.

Public objects: `MaskedLmSettings`, `train_word_pieces`, `piece_texts`, `train_masked_lm`, `TrainedBert`.
"""
