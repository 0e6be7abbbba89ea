"""Targets: moses.ini, language models and n-best lists."""

from __future__ import annotations

import random

import numpy as np

from moses_compat.engine.arpa import load_language_model
from moses_compat.engine.language_models import load_language_models
from moses_compat.engine.model import MosesModel
from moses_compat.engine.n_best import read_n_best, with_features
from moses_compat.ini.reading import read_moses_ini
from phrasetool.phrases import Phrases
from tests.conftest import ROOT
from tests.decoder_models import random_arpa
from tests.fuzz.target import Target, Wrong, written
from tests.small_experiment import INI as SMALL_INI
from tests.tables import INI

_KENLM = ROOT / "tests/golden/kenlm"
# Byte order mark, which readers skip with a notice.
_MARK = b"\xef\xbb\xbf"
_INI_WORDS = (
    b"[feature]", b"[weight]", b"[input-factors]", b"[distortion-limit]", b"PhraseDictionaryMemory", b"KENLM",
    b"LexicalReordering", b"name=", b"num-features=", b"path=", b"type=wbe-msd-bidirectional-fe-allff", b"=", b"= ",
    b"order=", b"factor=", b"tuneable=false", b"input-factor=0,1", b"[mapping]", b"[ttable-file]", b"[lmodel-file]",
    b"[weight-t]", b"table-limit=20", b"UnknownWordPenalty0= 1",
)  # fmt: skip


def _run_ini(data: bytes) -> None:
    path = written("moses.ini", data)
    ini = read_moses_ini(path)
    if ini.text.encode(errors="surrogateescape") != data.removeprefix(_MARK):
        raise Wrong("the text of an ini is not what was read")
    ini.check_weights()
    MosesModel.read(path)


def _run_arpa(data: bytes) -> None:
    load_language_model(written("lm.arpa", data))


def _run_kenlm(data: bytes) -> None:
    words = [b"v", b"w", b"x", b"y", b"q"]
    model = load_language_models([written("lm.binary", data)], words)
    phrases = Phrases.from_lists([model.ids(words).tolist()] * 3)
    model.isolated(phrases)
    model.sentences(np.array([0, 3]), np.arange(3, dtype=np.int32), phrases)


def _run_n_best(data: bytes) -> None:
    result = read_n_best(written("n.best", data))
    for i, line in enumerate(result.lines):
        result.text(i)
        with_features(line, b"New= 1", b"2")
    if b"".join(result.lines).removesuffix(b"\n") != data.removeprefix(_MARK).removesuffix(b"\n"):
        raise Wrong("the lines of the list are not what was read")


_LISTS = [
    b"".join(
        b"%d ||| a b c ||| LM0= %f TM0= 0.5 1 ||| %f ||| 0-1=0-0 2=1\n" % (i // 3, -i, -0.5 * i) for i in range(7)
    ),
    b"0 ||| a |||  F= 1 ||| 2\n1 |||  ||| F= nan ||| inf\n",
    b"0 ||| a  ||| TM0= 1 2 3 4 LM0= -3.5 ||| -1 ||| 0=0 ||| 0-0\n",
]

TARGETS = (
    Target("moses.ini", [SMALL_INI.encode(), INI.encode() if isinstance(INI, str) else INI], _run_ini, _INI_WORDS),
    Target("ARPA", [random_arpa(random.Random(seed)) for seed in range(4)], _run_arpa,
           (b"\\data\\", b"\\1-grams:", b"\\2-grams:", b"\\end\\", b"ngram 1=", b"ngram 3=", b"<s>", b"</s>", b"<unk>",
            b"-99", b"\t", b"-0.5\t<unk>\n")),
    Target("kenlm", [(_KENLM / f"model.{kind}").read_bytes() for kind in ("probing", "trie", "quantised")], _run_kenlm),
    Target("n-best list", _LISTS, _run_n_best, (b"|||", b" ||| ", b"= ", b"0 ||| ", b"F= ", b"9" * 30)),
)  # fmt: skip
