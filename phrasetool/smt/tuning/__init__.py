"""Tuning of a decoder's weights for a high BLEU on a development set."""
