"""Tuning: weights that make a decoder's translations of a development set good, by BLEU."""
