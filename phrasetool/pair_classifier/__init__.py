"""Sentence pairs told apart: a siamese network says whether two sentences are translations of each other."""
