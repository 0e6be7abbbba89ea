"""Encoders: from a phrase, a sequence of word ids, to a vector."""
