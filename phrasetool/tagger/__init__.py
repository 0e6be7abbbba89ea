"""Part-of-speech tagger for several languages.

`data` reads treebank sentences as features and tags, `network` and `training` (which need torch) train the tagger,
`settings` holds its dimensions and hyper-parameters, `model` tags words with a saved tagger and measures its accuracy,
and `tag_support` tests whether pairs of tag sequences occur in a bitext.

Public objects: `TaggedSentence`, `TaggerSettings`, `TaggerModel`, `train_tagger`, `TagSupport`.
"""
