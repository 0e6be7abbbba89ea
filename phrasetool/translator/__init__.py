"""Translators: an encoder-decoder with attention that predicts a word vector, or a distribution, at every step."""
