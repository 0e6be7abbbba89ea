"""Small tables with the peculiarities of the tables in Moses' regression tests, and further ones: name -> bytes."""

import random

SOURCES = [b"das", b"haus", b"das haus", b"ist", b"gr\xfcn", b"nicht", b"nie gesehen", b"das haus ist", b"!", b"xyz"]
TARGETS = [b"the", b"house", b"the house", b"is", b"green", b"not", b"never seen", b"the house is", b"!", b"zyx", b"a"]


def _number(rng):
    return rng.choice(
        [
            b"%.6g" % rng.random(),
            b"%.6g" % (rng.random() * 1e-4),
            b"1",
            b"0.5",
            b"5.25e-24",
            b"1.63446e-06",
        ]
    )


def _scores(rng, count, constant=None):
    scores = [_number(rng) for _ in range(count)]
    return b" ".join([*scores[:-1], constant] if constant else scores)


def _table(name, line, sources=SOURCES, targets=TARGETS, most=9, big=0):
    """Return a table sorted as Moses sorts, with up to `most` targets per source and `big` more for the first one."""
    rng = random.Random(name)
    lines = []
    for i, source in enumerate(sources):
        chosen = rng.sample(targets, rng.randint(1, min(most, len(targets))))
        if i == 0:
            chosen += [b"the house %d" % k for k in range(big)]
        lines += [line(rng, source, target) for target in sorted(chosen)]
    return b"".join(line + b"\n" for line in sorted(lines))


def _alignment(source, target):
    return b" ".join(b"%d-%d" % (i, i) for i in range(min(len(source.split()), len(target.split()))))


def three_fields(name, scores, constant=None, **options):
    return _table(name, lambda rng, s, t: b"%s ||| %s ||| %s" % (s, t, _scores(rng, scores, constant)), **options)


def seven_fields(rng, source, target):
    of_target, of_source, joint = rng.randint(1, 99), rng.randint(1, 99), rng.randint(1, 9)
    counts = b"%d %d %d" % (max(of_target, joint), max(of_source, joint), joint)
    return b"%s ||| %s ||| %s ||| %s ||| %s ||| |||" % (
        source,
        target,
        _scores(rng, 4),
        _alignment(source, target),
        counts,
    )


ESCAPED_SOURCES = [b"&amp;", b"&#124;", b"&apos;s", b"&quot; das &quot;", b"&#91; haus &#93;", b"&lt; ist &gt;"]
ESCAPED_TARGETS = [b"&amp;", b"&bar;", b"&apos;s", b"the &quot;", b"&bra; house &ket;", b"&amp;lt;", b"is"]


def _factored(words, tag):
    return b" ".join(b"%s|%s" % (word, tag) for word in words.split())


def _factored_table(name, source, target):
    """Return a table with factors on the selected sides."""
    return _table(
        name,
        lambda rng, s, t: (
            b"%s ||| %s ||| %s ||| %s ||| 9 4 2 ||| |||"
            % (_factored(s, b"NN|x") if source else s, _factored(t, b"V") if target else t, _scores(rng, 4),
               _alignment(s, t))
        ),
    )  # fmt: skip


def _more_oddities():
    """Return tables with features missing from Moses' tests, and variants of features that they have."""
    return {
        "factored source": _factored_table("factored source", True, False),
        "factored both": _factored_table("factored both", True, True),
        "hierarchical": b"[X][X] das [X] ||| the [X][X] [X] ||| 0.5 0.25 ||| 0-1 1-0 ||| 2 1 1 ||| |||\n"
        b"[X][X] ist [X][X] [X] ||| [X][X] is [X][X] [X] ||| 0.5 0.25 ||| 0-0 1-1 2-2 ||| 2 1 1 ||| |||\n"
        b"[X][X] nicht [X][X] [X] ||| [X][X] not [X][X] [X] ||| 0.5 1 ||| 0-2 1-1 2-0 ||| 2 1 1 ||| |||\n"
        b"haus [X] ||| house [X] ||| 0.5 0.25 ||| 0-0 ||| 2 1 1 ||| |||\n",
        "non-terminals differ": b"[X][X] das [X] ||| the [X] ||| 0.5 0.25 ||| 1-0 ||| 2 1 1\n"
        b"[X][X] ist [X] ||| [X][X] is [X] ||| 0.5 0.25 ||| 1-1 ||| 2 1 1\n"
        b"[X][X] nicht [X] ||| [X][X] not [X] ||| 0.5 0.25 ||| 0-1 1-0 ||| 2 1 1\n"
        b"[X][X] und [X][X] [X] ||| [X][X] and [X][X] [X] ||| 0.5 0.25 ||| 0-0 2-0 ||| 2 1 1\n"
        b"haus [X][X] [X] ||| house [X][X] [X] ||| 0.5 0.25\n",
        "bracket tokens": b"das [ ||| the [ ||| 0.5 1 ||| 0-0 ||| 1 1 1\n"
        b"das [haus] ||| the [house] ||| 0.5 1 ||| 0-0 ||| 1 1 1\n"
        b"das [haus] ist ||| the [house] is ||| 0.5 1 ||| 0-0 ||| 1 1 1\n[] ||| [] ||| 0.5 1 ||| 0-0 ||| 1 1 1\n",
        "unknown properties": b"das ||| a ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| ||| {{LexRO 0.2 0.3 0.5}}\n"
        b"das ||| the ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| ||| {{Counts 3 2 1}} {{Sim 0.5}}\n",
        "broken fields": b"das ||| a ||| 0.5 1 ||| 0:0 ||| 3 x 1 ||| name ||| text\n"
        b"das ||| the ||| 0.5 1 ||| 7-0 ||| 3 2 1 ||| a b ||| {{Counts}}\n",
        "empty source": b" ||| the ||| 0.5 1\ndas ||| the ||| 0.5 1\n",
        "stray pipes": b"a|b ||| the ||| 0.5\ndas ||| the|DT house ||| 0.5\nhaus ||| house ||| 0.5\n"
        b"ist ||| is ||| 0.5\n| ||| a|b|c|d|e ||| 0.5\n",
        "duplicate pairs": b"das ||| the ||| 0.5\ndas ||| the ||| 0.5\nhaus ||| house ||| 1\n",
        "groups that come back": b"das ||| the ||| 0.5\nhaus ||| house ||| 1\ndas  ||| a ||| 0.5\nhaus ||| a ||| 1\n",
        "numbers in other forms": b"das ||| a ||| 0.50 +1 1E-3 .5 5. 1e-44\n"
        b"das ||| the ||| 0.1234567 100000000 1e300 0.00001 00.5 -0\n",
        "weighted counts": b"das ||| a ||| 0.5 1 ||| 0-0 ||| 1.6 0.7 0.35 ||| |||\n"
        b"das ||| the ||| 0.5 1 ||| 0-0 ||| 1.60 2e+06 0.1234567 ||| |||\n",
        "table with reordering scores": b"das ||| the ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| ||| {{LexRO 0.2 0.8}} \n",
        "one group": b"".join(b"das ||| the house %04d ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| |||\n" % k for k in range(300)),
    }


def build():
    tables = {
        "latin-1": three_fields("latin-1", 5, b"2.718", big=150, targets=[*TARGETS, b"caf\xe9 house", b"\xff\xfe"]),
        "lexicalised": three_fields("lexicalised", 5, b"2.718"),
        "reordering": _table(
            "reordering",
            lambda rng, s, t: b"%s ||| %s ||| %s" % (s, t, b" ".join(b"%.5f" % rng.random() for _ in range(6))),
        ),
        "reordering trailing space": _table(
            "reordering space",
            lambda rng, s, t: b"%s ||| %s ||| %s " % (s, t, b" ".join(b"%.5f" % rng.random() for _ in range(6))),
        ),
        "multi-factor": three_fields("multi-factor", 5, b"2.718", sources=[b"\xe4\xf6", *SOURCES]),
        "tags": three_fields("tags", 5, sources=[b"ART", b"ART NN", b"$."], targets=[b"DT", b"DT NN", b"."]),
        "model 1": _table(
            "model 1",
            lambda rng, s, t: b"%s ||| %s ||| %s ||| %s ||| 10 4 3" % (s, t, _scores(rng, 4), _alignment(s, t)),
            big=60,
        ),
        "model both": _table(
            "model both",
            lambda rng, s, t: (
                b"%s ||| %s ||| %s ||| %s ||| 10 4 3" % (s, t, _scores(rng, 5, b"2.718"), _alignment(s, t))
            ),
        ),
        "count table": _table(
            "count table",
            lambda rng, s, t: (
                b"%s ||| %s ||| %d %d %d ||| 0-0 ||| 4 4 3"
                % (s, t, rng.randint(1, 99), rng.randint(1, 99), rng.randint(1, 99))
            ),
        ),
        "count table target": _table(
            "count target", lambda rng, s, t: b"%s ||| X ||| %d ||| |||" % (s, rng.randint(1, 99)), most=1
        ),
        "two counts": _table(
            "two counts", lambda rng, s, t: b"%s ||| %s ||| %s ||| 1-0 0-1 ||| 5 3" % (s, t, _scores(rng, 5, b"2.718"))
        ),
        "filtering": three_fields("filtering", 6, sources=SOURCES[:5], big=250),
        "sparse": b"".join(
            b"das ||| %s ||| 0.5 0.4 0.3 0.2 2.718 ||| ||| ||| po_%d 1 dom 0.5\n" % (t, i)
            for i, t in enumerate([b"the", b"that", b"house", b"a"])
        ),
        "glue": b"<s> [X] ||| <s> [S] ||| 1 ||| ||| 1 1\n[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 ||| 1 1\n"
        b"[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 2.718 ||| 0-0 1-1 ||| 1 1\n",
        "target syntax": b"".join(
            b"[X][Q] [X][%s] [X] ||| [X][Q] [X][%s] [Q] ||| 2.718 ||| 0-0 1-1 \n" % (x, x) for x in (b"NP", b"VP", b"S")
        ),
        "glue one count": b"<s> [X] ||| <s> [S] ||| 1 ||| ||| 0\n"
        b"[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 ||| 0\n",
        "glue seven fields": b"<s> [X] ||| <s> [S] ||| 1 ||| ||| 0 ||| ||| \n"
        b"[X][S] </s> [X] ||| [X][S] </s> [S] ||| 1 ||| 0-0 ||| 0 ||| ||| \n",
        "seven fields": _table(
            "seven fields",
            seven_fields,
            sources=[*ESCAPED_SOURCES, *SOURCES],
            targets=[*ESCAPED_TARGETS, *TARGETS],
            big=80,
        ),
        "scientific counts": _table(
            "scientific",
            lambda rng, s, t: b"%s ||| %s ||| 5.25e-24 1 1.5e-05 0.1 ||| 0-0 ||| 1.5599e+06 1.5 0.7 ||| |||" % (s, t),
        ),
        "factored target": _table(
            "factored",
            lambda rng, s, t: (
                b"%s ||| %s ||| %s ||| 0-0 ||| 7 3 2 ||| "
                % (s, b" ".join(w + b"|NN" for w in t.split()), _scores(rng, 4))
            ),
            targets=[*ESCAPED_TARGETS, *TARGETS],
        ),
        "twelve columns": _table(
            "twelve",
            lambda rng, s, t: (
                b"%s ||| %s ||| %s 1 2.718 1 ||| 0-0 ||| 7 3 2 ||| dom_nc-5k 1"
                % (s, b" ".join(w + b"|NN" for w in t.split()), _scores(rng, 9))
            ),
        ),
        "placeholder": b"@num@ ||| @num@ ||| 1 ||| 0-0 ||| 1 1\n"
        b"das  haus ||| the  house  ||| 0.5 ||| 0-0 1-1 ||| 1 1\n"
        b"das ||| the ||| 0.5 ||| 0-0 ||| 1 1 \ndas ||| a ||| 0.25 ||| 0-0 ||| 1 1\n"
        b"! ||| ! ||| 1 ||| 0-0 ||| 1 1\nist ||| is ||| 0.5  ||| 0-0 \n",
        "xml markup": b"haus ||| house ||| 0.9\ndas ||| the ||| 0.8\nein ||| a ||| 0.7\ndas ||| it ||| 0.1\n",
        "lattice": b"das ||| the ||| 0.5 0.1\ndas haus ||| the house ||| 0.5 0.2\nhaus ||| house ||| 1 0.3\n",
        "empty targets": b"! |||  ||| 1 1 0.5 0.5 0.1 2.718\n! ||| ! ||| 1 1 0.5 0.5 0.1 2.718\n"
        b"das ||| the ||| 1 1 0.5 0.5 0.1  2.718\ndas ||| the ||| 1 1 0.5 0.5 0.1  2.718\n"
        b"haus |||  ||| 1 1 0.5  0.5 0.1 2.718\ndas ||| that ||| 1 1 0.5 0.5 0.1 2.718\n"
        b"! |||  house ||| 1 1 0.5 0.5 0.1 2.718\n",
        "zero and negative": b"das ||| the ||| 0 -1 1e-44\ndas ||| a ||| -0.5 0 0\nhaus ||| house ||| inf -0 1\n",
        "tabs": b"das\t|||\tthe\t|||\t0.5\t0.25\t|||\t0-0\ndas haus\t||| the\thouse ||| 0.5 0.25\t\n",
        "no spaces": b"das|||the|||0.5 0.25|||0-0\ndas|||a|||0.5 0.25\nhaus|||house|||0.5 0.25|||\n",
        "brackets": b"das [X] ||| the [X] ||| 0.5\n"
        b"haus [NP][NP] [X] ||| house [NP][NP] [X] ||| 0.4\n[X] ||| [X] ||| 1\n",
        "properties": b"das ||| the ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| ||| {{Counts 3 2 1}} {{Orientation 1 2}}\n"
        b"das ||| a ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| x 1 ||| {{Tree [X [Y]]}} \n",
        "nine fields": b"das ||| the ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| ||| ||| 12.5 ||| 0.25\n"
        b"haus ||| house ||| 0.5 1 ||| 0-0 ||| 3 2 1 ||| ||| ||| 1 ||| x\n",
        "pipes": b"| ||| | ||| 0.5\na|b ||| a|b|c ||| 0.5\n|| ||| || ||| 0.5\ndas ||| the|DT ||| 0.5\n",
        "one line": b"das ||| the ||| 0.5\n",
        "control characters": b"das\x01 ||| the\x00\x0b\x0c\x85 ||| 0.5\n\xc2\xa0 ||| \xe3\x80\x80 ||| 0.5\n",
    }
    tables |= _more_oddities()
    tables["crlf"] = tables["seven fields"].replace(b"\n", b"\r\n")
    tables["crlf three fields"] = tables["lexicalised"].replace(b"\n", b"\r\n")
    tables["no last newline"] = tables["seven fields"][:-1]
    tables["no last newline three fields"] = tables["lexicalised"][:-1]
    tables["empty"] = b""
    return tables


TABLES = build()
# A table with malformed lines among well-formed ones, and the numbers of the malformed lines, from 1.
MALFORMED = (
    b"das ||| the ||| 0.5 0.25 ||| 0-0\n"
    b"das ||| a ||| 0.5 zero ||| 0-0\n"
    b"\n"
    b"das ||| that ||| 0.5 nan\n"
    b"das ||| it\n"
    b"no separator at all\n"
    b"das ||| this ||| 0.5 0.25 0.125\n"
    b"das ||| these ||| ||| 0-0\n"
    b"haus ||| house ||| 0.5 0.25\n"
)
MALFORMED_LINES = [2, 3, 4, 5, 6, 7, 8]

# Files that users may pass as a table by mistake.
OTHER_FILES = {
    "half table": b"das ||| the ||| 0-0  ||| 0.5 0.25 ||| 4 2 |||\n"
    b"das haus ||| the house ||| 0-0 1-1  ||| 0.5 1 ||| 2 1 |||\n",
    "half table, indirect": b"das ||| a |||  ||| 0.25 ||| 4 1 |||\ndas ||| the |||  ||| 0.75 ||| 4 3 |||\n",
    "memscore": b"das ||| the ||| (0) ||| (0) ||| 0.5 0.25\ndas haus ||| house ||| () (0) ||| (1) ||| 0.5 1\n",
    "extract with weights": b"das ||| the ||| 0-0 ||| 0.3\ndas haus ||| the house ||| 0-0 1-1 ||| 1\n",
    "extract": b"das ||| the ||| 0-0\ndas haus ||| the house ||| 0-0 1-1\n",
    "lexical": b"the das 0.5000000\nNULL haus 0.2500000\n",
    "hiero": b"[X] ||| das [X,1] ||| the [X,1] ||| p=0.5 q=1\n[X] ||| haus ||| house ||| p=0.5 q=1\n",
    "n-best": b"0 ||| the house  ||| LM0= -5.1 WordPenalty0= -2 ||| -1.5\n"
    b"0 ||| a house  ||| LM0= -6 WordPenalty0= -2 ||| -2\n",
    "arpa": b"\n\\data\\\nngram 1=2\n\n\\1-grams:\n-1\ta\n",
    "ini": b"# a model\n[input-factors]\n0\n[feature]\nWordPenalty\n",
    "pairs": b"das ||| the ||| 3\ndas haus ||| the house ||| 1\n",
}

# The tables of Moses' regression tests (moses-regression-tests 36ca9c2b) and the table that represents each here.
STANDS_FOR = {
    "models/basic-surface-only/phrase-table.gz": "latin-1",
    "models/lexicalized-reordering/phrase-table.0-0.gz": "lexicalised",
    "models/lexicalized-reordering/reordering-table.msd-bidirectional-fe.0.5.0-0.gz": "reordering",
    "models/multi-factor/phrase-table.0-0.gz": "multi-factor",
    "models/multi-factor/phrase-table.1-1.gz": "tags",
    "models/multi-factor-drop/phrase-table.0-0.gz": "empty targets",
    "models/multimodel/model1/phrase-table.gz": "model 1",
    "models/multimodel/model1/count-table.gz": "count table",
    "models/multimodel/model1/count-table-target.gz": "count table target",
    "models/multimodel/model_both/phrase-table.gz": "model both",
    "models/multimodel/model_both/reordering-table.gz": "reordering trailing space",
    "models/ptable-with-alignment/phrase-table.gz": "two counts",
    "models/ptable-filtering/phrase-table.gz": "filtering",
    "models/sparse-phrase-table/phrase-table.gz": "sparse",
    "models/hierarchical/phrase-table.0-0.2": "glue",
    "models/target-syntax/phrase-table.0-0.2": "target syntax",
    "tests/chart.suffix-array/glue-grammar.1": "glue one count",
    "tests/extract-rules.hierarchical/truth/glue-grammar.3": "glue seven fields",
    "tests/misc.binarize-compress-pt/phrase-table.0-0.1.1.gz": "model both",
    "tests/phrase.2fac/phrase-table.0-0.1.1.gz": "scientific counts",
    "tests/misc.consolidate/truth": "seven fields",
    "tests/phrase.multi-lm/phrase-table.0-0,1.1.1.gz": "factored target",
    "tests/phrase.sparse-features/phrase-table.0-0,1.1.1.gz": "twelve columns",
    "tests/phrase.TargetNGramFeature/phrase-table.0-0.1.1": "twelve columns",
    "tests/phrase.placeholder/phrase-table": "placeholder",
    "tests/phrase.xml-markup/phrase-table": "xml markup",
    "tests/phrase.lattice-distortion/phrase-table": "lattice",
    "tests/misc.consolidate/phrase-table.1.half.f2e": "half table",
    "tests/score.phrase-based/truth": "half table",
    "tests/extract.phrase-based-weighted/truth/extract": "extract with weights",
}

# A moses.ini of a table with four scores in the file `t`.
INI = """\
[input-factors]
0

[feature]
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=t input-factor=0 output-factor=0
Distortion

[weight]
TranslationModel0= 0.1 0.2 0.3 0.4
Distortion0= 0.3
"""
