"""A real Moses loads annotated, pruned and binarised tables, and agrees with phrasetool's decoder.

Skipped if the Moses programs are neither on the PATH nor in MOSES_BIN.
"""

import gzip
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.commands import run_inside, write
from tests.n_best_lists import read_n_best

pytestmark = pytest.mark.requires_moses

GOLDEN = Path(__file__).parent / "golden/extraction"
SENTENCES = 20
NBEST = 20
# Moses prints six digits of sums in single precision.
TOLERANCE = 2e-3
BINARY = {
    "compact": ["processPhraseTableMin", "processLexicalTableMin"],
    "probing": ["CreateProbingPT", "processLexicalTableMin"],
    "ondisk": ["CreateOnDiskPt", "processLexicalTableMin"],
}


@pytest.fixture(autouse=True)
def programs_on_the_path(monkeypatch):
    if folder := os.environ.get("MOSES_BIN"):
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{folder}")


@pytest.fixture(scope="module")
def folder(moses, tmp_path_factory):
    """Folder with a small model: full, pruned, and annotated with weights of 0 and 0.2."""
    folder = tmp_path_factory.mktemp("real-moses")
    shutil.copy(GOLDEN / "table.7.gz", folder / "table.gz")
    shutil.copy(GOLDEN / "reordering.gz", folder / "reordering.gz")
    target = (GOLDEN / "bitext.target").read_bytes()
    write(folder / "target", target)
    text = (GOLDEN / "bitext.source").read_bytes().split(b"\n")[:SENTENCES]
    write(folder / "text", b"\n".join(text) + b"\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ours("train", "table.gz", "-o", "brae", "--epochs", "2", "-q")
        ours("lm", "target", "--order", "2", "-o", "lm.arpa")
        tables = ["--table", "table.gz", "--reordering-table", "reordering.gz"]
        ours("moses-ini", *tables, "--lm", "lm.arpa", "-o", "full.ini")
        ours("prune", "table.gz", "-m", "brae", "--target-size", "0.7", "--protect", "words", "-o", "small.gz",
             "--reordering-table", "reordering.gz", "--reordering-out", "small.reordering.gz")  # fmt: skip
        tables = ["--table", "small.gz", "--reordering-table", "small.reordering.gz"]
        ours("moses-ini", *tables, "--lm", "lm.arpa", "-o", "pruned.ini")
        for name, weight in (("annotated", "0"), ("weighted", "0.2")):
            ours("annotate", "small.gz", "-m", "brae", "-o", f"{name}.gz", "--moses-ini", "pruned.ini",
                 "--moses-ini-out", f"{name}.ini", "--weight", weight)  # fmt: skip
        yield folder


def ours(*arguments):
    """Run a phrasetool command; return its standard output."""
    outcome = run_inside(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome.out


def moses_output(program, ini, name):
    """Return the translations and the n-best list of a real Moses."""
    arguments = ["-n-best-list", f"{name}.moses.nbest", str(NBEST), "distinct"]
    more = ["-include-segmentation-in-n-best", "true"]
    with open("text", "rb") as text:
        outcome = subprocess.run(
            [program, "-f", ini, *arguments, *more], stdin=text, capture_output=True, timeout=300, check=False
        )
    assert outcome.returncode == 0, outcome.stderr.decode(errors="replace")[-2000:]
    lines = [line.split() for line in outcome.stdout.splitlines()]
    return lines, list(read_n_best(f"{name}.moses.nbest"))


def our_output(ini, name):
    arguments = ["--n-best-list", f"{name}.nbest", str(NBEST), "--segmentation", "-q"]
    lines = ours("decode", "--moses-ini", ini, "text", *arguments).splitlines()
    return [line.split() for line in lines], list(read_n_best(f"{name}.nbest"))


def best_of(candidates):
    """Return the total of the best derivation by sentence."""
    best = {}
    for candidate in candidates:
        best[candidate.sentence] = max(candidate.total, best.get(candidate.sentence, candidate.total))
    return best


def derivations(candidates):
    """Return candidates by (sentence, words, spans)."""
    return {(c.sentence, tuple(c.words), tuple(c.spans)): c for c in candidates}


def compare(theirs, found, sentences=SENTENCES):
    """Assert equal best translations, and equal features of every derivation that both n-best lists contain."""
    (their_lines, their_list), (our_lines, our_list) = theirs, found
    their_best, our_best = best_of(their_list), best_of(our_list)
    assert their_best.keys() == our_best.keys() == set(range(sentences))
    for number, total in their_best.items():
        assert our_best[number] == pytest.approx(total, abs=TOLERANCE)
    # Either of two translations with equal scores may be the best one.
    runners_up = {
        number: [c.total for c in their_list if c.sentence == number and c.words != their_lines[number]]
        for number in range(sentences)
    }
    for number, (line, counterpart) in enumerate(zip(their_lines, our_lines, strict=True)):
        tied = any(total > their_best[number] - TOLERANCE for total in runners_up[number])
        assert line == counterpart or tied, number
    their_derivations, our_derivations = derivations(their_list), derivations(our_list)
    both = their_derivations.keys() & our_derivations.keys()
    assert len(both) > 0.5 * len(their_derivations)
    for key in both:
        features, counterpart = our_derivations[key].features, their_derivations[key].features
        assert features.keys() == counterpart.keys()
        for name, values in counterpart.items():
            assert features[name] == pytest.approx(values, abs=TOLERANCE), (key, name)


@pytest.mark.parametrize("name", ["full", "pruned", "annotated", "weighted"])
def test_text_tables(folder, moses, name):
    compare(moses_output(moses(), f"{name}.ini", name), our_output(f"{name}.ini", name))


def test_weights_of_zero_change_nothing(folder, moses):
    plain, plain_list = moses_output(moses(), "pruned.ini", "plain")
    annotated, annotated_list = moses_output(moses(), "annotated.ini", "zero")
    assert annotated == plain
    assert [c.words for c in annotated_list] == [c.words for c in plain_list]
    assert [c.total for c in annotated_list] == [c.total for c in plain_list]


@pytest.mark.parametrize("kind", BINARY)
def test_binary_tables(folder, moses, kind):
    for program in BINARY[kind]:
        moses(program)
    # Each kind needs a separate folder, because the name of the reordering table is the same.
    Path(kind).mkdir()
    output = ["-o", f"{kind}/table", "--reordering-table", "small.reordering.gz"]
    lines = ours("binarize", "weighted.gz", "--to", kind, *output, "-q")
    table, reordering = lines.decode().splitlines()
    new = {"PhraseDictionaryMemory": table, "LexicalReordering": reordering}
    text = Path("weighted.ini").read_text().splitlines()
    Path(f"{kind}.ini").write_text("".join(new.get(line.split(" ")[0], line) + "\n" for line in text))
    compare(moses_output(moses(), f"{kind}.ini", kind), our_output("weighted.ini", f"weighted.{kind}"))


SEVERAL = """\
[mapping]
0 T 0
1 T 1

[distortion-limit]
6

[stack]
50

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=first.gz input-factor=0 output-factor=0
PhraseDictionaryMemory name=Other num-features=2 path=second.gz input-factor=0 output-factor=0 table-limit=3
LexicalReordering num-features=6 type=wbe-msd-bidirectional-fe input-factor=0 output-factor=0 path=reordering.gz
Distortion
KENLM name=LM0 factor=0 path=lm3.binary order=3
KENLM name=Small factor=0 path=lm.arpa order=2

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -0.3
PhrasePenalty0= 0.1
TranslationModel0= 0.06 0.01 0.09 0.05
Other= 0.1 0.03
LexicalReordering0= 0.09 0.02 0.1 0.05 0.02 0.06
Distortion0= 0.05
LM0= 0.2
Small= 0.1
"""


@pytest.fixture(scope="module")
def several(moses, tmp_path_factory):
    """Model with two tables that share a third of the entries, and 100 sentences; the path of `build_binary`."""
    folder = tmp_path_factory.mktemp("several")
    first, second = [], []
    for number, line in enumerate(gzip.decompress((GOLDEN / "table.7.gz").read_bytes()).splitlines(keepends=True)):
        fields = line.split(b" ||| ")
        if number % 3 < 2:
            first.append(line)
        if number % 3 > 0:
            scores = b" ".join(fields[2].split()[::2])
            second.append(b" ||| ".join([*fields[:2], scores, *fields[3:]]))
    (folder / "first.gz").write_bytes(gzip.compress(b"".join(first)))
    (folder / "second.gz").write_bytes(gzip.compress(b"".join(second)))
    shutil.copy(GOLDEN / "reordering.gz", folder / "reordering.gz")
    rng = random.Random(1)
    sentences = (GOLDEN / "bitext.source").read_bytes().split(b"\n")[:-1]
    words = [*b" ".join(sentences).split(), b"never-seen"]
    sentences += [b" ".join(rng.choices(words, k=rng.randint(2, 8))) for _ in range(100 - len(sentences))]
    write(folder / "text", b"".join(line + b"\n" for line in sentences))
    write(folder / "several.ini", SEVERAL.encode())
    for order, name in (("3", "lm3.arpa"), ("2", "lm.arpa")):
        ours("lm", GOLDEN / "bitext.target", "--order", order, "-o", folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield moses("build_binary")


@pytest.mark.parametrize("kind", [["probing"], ["-q", "8", "-b", "7", "-a", "12", "trie"]], ids=" ".join)
def test_two_tables_and_two_language_models(several, moses, kind):
    subprocess.run([several, *kind, "lm3.arpa", "lm3.binary"], check=True, capture_output=True, timeout=60)
    compare(moses_output(moses(), "several.ini", "several"), our_output("several.ini", "several"), 100)


SMALL_INI = """\
[distortion-limit]
0

[feature]
UnknownWordPenalty
Distortion
PhraseDictionaryMemory name=T num-features=1 path=table input-factor=0 output-factor=0
KENLM name=LM0 factor=0 path=lm.arpa order=2

[weight]
T= 1
LM0= 1
Distortion0= 0.3
"""
SMALL_ARPA = b"""\
\\data\\
ngram 1=4
ngram 2=1

\\1-grams:
-1\t<unk>
-9\t<s>\t0
-1\t</s>
-2\tA\t0

\\2-grams:
-1\t<s> A

\\end\\
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Folder with an ini and a language model for a table of one score; the working directory."""
    (tmp_path / "moses.ini").write_text(SMALL_INI)
    (tmp_path / "lm.arpa").write_bytes(SMALL_ARPA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_spans_of_an_empty_target(small, moses):
    """Moses prints the start alone; at the start of a translation, where the end underflows, only phrasetool does."""
    (small / "table").write_bytes(b"s |||  ||| 0.9\nt ||| A B ||| 0.5 ||| 0-0 0-1\nu ||| C ||| 0.5\n")
    (small / "text").write_bytes(b"t s\nt s u\ns t\n")
    moses_output(moses(), "moses.ini", "empty")
    ours("decode", "--moses-ini", "moses.ini", "text", "--n-best-list", "ours", "5", "--segmentation", "-q")
    theirs, found = (
        [line.split(b" ||| ")[4].rstrip() for line in Path(name).read_bytes().splitlines()]
        for name in ("empty.moses.nbest", "ours")
    )
    assert found == [b"0=0-1 1=2", b"0=0-1 1=2 2=2", b"0=0 1=0-1"]
    assert theirs[:2] == found[:2]


def test_words_in_brackets(small, moses):
    """Moses removes them at the end of a target phrase, and reads others as non-terminals; phrasetool warns of them."""
    (small / "table").write_bytes(b"s ||| A [1] ||| 0.9\nt ||| [B] ||| 0.5\nu ||| [X][A] A ||| 0.5\nv ||| A ||| 0.5\n")
    (small / "text").write_bytes(b"s\nt\nu\nv\n")
    lines, _ = moses_output(moses(), "moses.ini", "brackets")
    assert lines == [[b"A"], [], [b"A", b"A"], [b"A"]]
    outcome = run_inside("decode", "--moses-ini", "moses.ini", "text")
    assert outcome.out == b"A [1]\n[B]\n[X][A] A\nA\n"
    assert "warning: table: 3 entries have a target word in brackets, such as [1], which Moses reads as" in outcome.err
