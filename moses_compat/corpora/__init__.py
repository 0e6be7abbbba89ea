"""Texts, bitexts, treebanks, alignments and phrase pairs in files.

`texts` reads one language, `bitexts` both sides, `training_pairs` phrase pairs with counts, `treebanks` sentences with
parts of speech, `alignments` word alignments and their priors.  `corpus_index` is a corpus in which phrases are
counted, and `translated_texts` holds what `translate` reads besides its model.
"""
