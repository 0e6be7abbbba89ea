"""Texts, bitexts, treebanks, alignments and phrase pairs in files.

`texts` reads one language, `bitexts` both sides, word alignments and their priors, `training_pairs` phrase pairs with
counts, `treebanks` sentences with parts of speech, and `translated_texts` the inputs of neural translation.
"""
