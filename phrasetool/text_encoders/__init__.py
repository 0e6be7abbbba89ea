"""Sentence encoders that were trained elsewhere: from the text of a phrase to a vector, both languages in one space."""
