"""New phrase-table entries for out-of-vocabulary words.

`evidence` holds entries of known words and the proposals derived from them; `compounds` and `relatives` propose
translations; `augmenter` weights all proposals and writes the best.
"""
