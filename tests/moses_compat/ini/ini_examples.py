"""moses.ini files of both versions, with everything that an edit must not change."""

VERSION_2 = """\
# A model of this project's tests.   [weight] stands at the end.

[input-factors]
0
[mapping]
0 T 0
1 T 1

[distortion-limit]
6  # words

  [feature]  # functions
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0  num-features=2 path=small.gz input-factor=0 output-factor=0  # main
\tPhraseDictionaryMemory path=/tables/domain.gz num-features=4 tuneable-components=true,false,true,true table-limit=5
PhraseDictionaryMemory name=Fixed num-features=1 tuneable=false path=fixed
LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff path=reordering.gz
Distortion
KENLM name=LM0 factor=0 path=/models/lm.arpa order=3

[a-section-of-the-future]
anything at all = [goes] \x0b \x85 \u2028

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2   # per phrase
 TranslationModel0=  0.0639497231451392\t+1e-1  # main
PhraseDictionaryMemory0= .2 0.20 2e-1 0.2
LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5
"""

VERSION_1 = """\
# An old model.

[input-factors]
0

[mapping]
0 T 0
0 T 1

# type, factors of both sides, scores, file
[ttable-file]
0 0 0 2  small.gz   # main
6 0 0 1 /tables/glue

[ttable-limit]
20

[distortion-file]
0-0 wbe-msd-bidirectional-fe-allff 6 reordering.gz

[lmodel-file]
8 0 3 /models/lm.arpa

[weight-d]
0.3
0.31
0.32
0.33
0.34
0.35
0.36

[weight-l]
0.5

[weight-t]
# forward and backward
0.0639497231451392
 0.10  # backward
# glue
1.0

[weight-w]
-1

[distortion-limit]
6
"""
