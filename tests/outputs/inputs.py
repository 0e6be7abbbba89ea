"""Inputs of the cases, made once by commands of `before` from the tests' tables, the demo and the reference run.

In the folder of the inputs:

* `tables/`: the tables of `tests/tables.py` and some more, with all their peculiarities;
* `other/`: files that are not tables, damaged files, texts, alignments, pairs, moses.ini files;
* `odd/`: a bitext in the words of those tables, and files made from it;
* `demo/`: the corpus of the demo, and files made from it;
* `large/`: files made from the reference run, which is `reference/`.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.tables import INI, MALFORMED, OTHER_FILES, SOURCES, TABLES, TARGETS

ROOT = Path(__file__).resolve().parent.parent.parent
_DEMO = ROOT / "cli" / "phrasetool_cli" / "demo"
_FILES = Path(__file__).parent / "files"
_CONFIG = ROOT / "examples" / "experiments" / "demo.toml"

# Commands of `before`, run in the folder of the inputs.
_ODD = """\
lm odd/target --order 3 --estimator built-in -o odd/lm.arpa
train odd/pairs -o odd/rae --dimension 6 --epochs 3
train odd/pairs -o odd/other --dimension 4 --epochs 1 --loss max-margin --pretrain-epochs 1 --seed 7
train odd/pairs -o odd/mean-max --architecture mean-max --dimension 12 --word-units 6 --heads 2 --epochs 2
train odd/factored-pairs -o odd/factored --dimension 6 --epochs 1
train autoencoder odd/target -o odd/auto --word-units 6 --hidden 8 --heads 2 --epochs 2 --min-count 1 --force
train autoencoder odd/source -o odd/auto-source --word-units 6 --hidden 8 --heads 2 --epochs 1 --min-count 1 --force
train autoencoder odd/target -o odd/auto-lstm --word-units 6 --hidden 8 --epochs 1 --architecture lstm --force
STOP="train 3/" train odd/pairs -o odd/stopped --dimension 6 --epochs 60
STOP="epoch 2/" train autoencoder odd/target -o odd/stopped-auto --word-units 6 --hidden 8 --heads 2 --epochs 60
"""
_ENGINE = """\
align demo/train.zh demo/train.en -o demo/aligned.gz --forward demo/forward.gz --reverse demo/reverse.gz
extract demo/train.zh demo/train.en demo/aligned.gz -o demo/table.gz --reordering-table demo/reordering.gz
lm demo/train.en --order 3 --estimator built-in -o demo/lm.arpa.gz
moses-ini --table demo/table.gz --reordering-table demo/reordering.gz --lm demo/lm.arpa.gz -o demo/moses.ini
force-decode --moses-ini demo/moses.ini demo/train.zh demo/train.en --leave-one-out -o demo/pairs.gz
train demo/pairs.gz -o demo/model --epochs 12 --dimension 24 --temperature 0.2 --vector-scale 0.1
train demo/pairs.gz -o demo/mean-max --architecture mean-max --dimension 32 --word-units 16 --epochs 4
train autoencoder demo/train.en -o demo/auto --word-units 16 --hidden 16 --heads 2 --epochs 3 --force
prune demo/table.gz -m demo/model --scores demo/scores.parquet --sweep 0:0:1
annotate demo/table.gz -m demo/model -o demo/annotated.gz
prune demo/table.gz --scores demo/scores.parquet --target-size 0.6 --protect words -o demo/small.gz
decode --moses-ini demo/moses.ini demo/test.zh -o demo/full.en
decode --moses-ini demo/moses.ini --table demo/small.gz demo/test.zh -o demo/pruned.en
decode --moses-ini demo/moses.ini --search cube --pop-limit 20 --stack 20 demo/test.zh -o demo/cube.en
moses-ini demo/moses.ini --table demo/annotated.gz --weight 0.2 -o demo/annotated.ini
"""
_LARGE = """\
train reference/forced-pairs.gz -o large/model --epochs 1
train reference/forced-pairs.gz -o large/mean-max --architecture mean-max --dimension 64 --word-units 32 --epochs 1
train autoencoder large/mono.en -o large/auto --word-units 16 --hidden 32 --epochs 1
prune reference/phrase-table.gz -m large/model --scores large/scores.parquet --sweep 0:0:1
prune reference/phrase-table.gz --scores large/scores.parquet --target-size 0.5 --protect words -o large/small.gz
annotate reference/phrase-table.gz -m large/model -o large/annotated.gz
convert reference/phrase-table.gz -o large/table.parquet
"""


# Stand-ins for Moses' binarisers, which record their arguments and input.  Those whose output is not read by phrasetool
# write the record to it; the others print it and fail, so that phrasetool shows it.
_STAND_INS = ("processPhraseTableMin", "processLexicalTableMin", "CreateProbingPT", "CreateOnDiskPt")
_STAND_IN = b"""\
#!/bin/sh
name=$(basename "$0")
say() {
    echo "$name $*"
    for word; do
        case $word in
            *.gz) test -f "$word" && echo "$word" $(gzip -dc "$word" | sha256sum) ;;
            *) test -f "$word" && echo "$word" $(sha256sum < "$word") ;;
        esac
    done
    true
}
case $name in
    processPhraseTableMin) say "$@" > made.minphr ;;
    processLexicalTableMin) say "$@" > "$4.minlexr" ;;
    *) say "$@"; exit 3 ;;
esac
"""


def make_inputs(folder: Path, run: Callable[[str], None]) -> None:
    """Make all inputs except those of the reference run.

    Args:
        folder: a new folder.
        run: runs a command line of `before` in that folder, and ends the program if it fails.
    """
    for name, data in odd_tables().items():
        _write(folder / "tables" / name, data)
    for name, data in _other_files().items():
        _write(folder / "other" / name, data)
    for name in _STAND_INS:
        _write(folder / "other" / "programs" / name, _STAND_IN)
        (folder / "other" / "programs" / name).chmod(0o755)
    for name, data in _odd_texts().items():
        _write(folder / "odd" / name, data)
    _write_demo(folder / "demo")
    _run_all(_ODD, run)
    _run_all(_ENGINE, run)
    _damage_models(folder)


def make_large_inputs(folder: Path, run: Callable[[str], None], reference: Path) -> None:
    """Make the inputs of the reference run in the folder `reference`, whose parent contains the corpus."""
    shutil.rmtree(folder / "large", ignore_errors=True)
    for name, target in (("reference", reference), ("corpus", reference.parent)):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
    _write_large(folder)
    _run_all(_LARGE, run)


def odd_tables() -> dict[str, bytes]:
    """Return odd tables by name."""
    result = {name.replace(",", "").replace(" ", "-"): data for name, data in TABLES.items()}
    whole = TABLES["seven fields"]
    lines = whole.splitlines(keepends=True)
    shuffled = random.Random(1).sample(lines, len(lines))
    words = ["e\u0301t\u00e9", "\u00a0", "\u2028", "\U0001f600", "\ufeffdas", "\u00ad", "\u0130", "na\u00efve"]
    rows = zip(words, reversed(words), strict=True)
    result |= {
        "unsorted": b"".join(shuffled),
        "twice": whole + whole,
        "unicode": "".join(f"{s} ||| {t} ||| 0.5 0.25 0.125 1 ||| 0-0 ||| 4 2 1 ||| |||\n" for s, t in rows).encode(),
        "not-utf-8": b"\xff\xfe ||| \x80 ||| 0.5 0.1 0.2 0.3\nd\xe4s ||| th\xe9 ||| 1 0.1 0.2 0.3 ||| 0-0 ||| 1 1 1\n",
        "long-line": b" ".join(SOURCES * 400) + b" ||| " + b" ".join(TARGETS * 400) + b" ||| 1 1\ndas ||| a ||| 1 1\n",
        "long-word": b"das" * 5000 + b" ||| the ||| 0.5\ndas ||| " + b"the" * 9000 + b" ||| 0.25\n",
        "many-scores": b"".join(b"das ||| t%d ||| %s\n" % (k, b" ".join(b"0.%d" % (k + i) for i in range(1, 40)))
                                for k in range(5)),
        "long-numbers": b"das ||| a ||| 0." + b"3" * 60 + b" 1\ndas ||| b ||| " + b"0" * 50 + b".5 2\n"
                        b"das ||| c ||| 1e-310 1e308\ndas ||| d ||| 4.9e-324 0.1e1\n",
        "malformed": MALFORMED,
        "malformed-among-many": b"".join(line + (MALFORMED if i % 40 == 20 else b"") for i, line in enumerate(lines)),
        "all-malformed": b"no\nno ||| no\n\n ||| ||| \n",
        "only-newlines": b"\n\n\n",
        "spaces-at-ends": b" das ||| the ||| 0.5 0.5 \ndas |||  a ||| 0.5 0.5\n  ||| a ||| 0.5 0.5\n",
        "gap.gz": gzip.compress(b"".join(lines[:30]), mtime=0) + gzip.compress(b"".join(lines[30:]), mtime=0),
        "gzip-without-ending": gzip.compress(whole, mtime=0),
        "text-that-ends-in.gz": whole,
    }  # fmt: skip
    return result


def scores_of(table: bytes) -> int:
    """Return the number of scores of the first entry of a table, 1 without entries."""
    text = gzip.decompress(table) if table[:2] == b"\x1f\x8b" else table
    fields = text.partition(b"\n")[0].split(b"|||")
    return max(len(fields[2].split()) if len(fields) > 2 else 1, 1)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _run_all(recipe: str, run: Callable[[str], None]) -> None:
    for line in recipe.splitlines():
        run(line)


def _other_files() -> dict[str, bytes]:
    text = TABLES["seven fields"]
    packed = gzip.compress(text, mtime=0)
    broken = bytearray(packed)
    broken[len(broken) // 2] ^= 0x40
    result = {name.replace(",", "").replace(" ", "-"): data for name, data in OTHER_FILES.items()}
    result |= {
        "truncated.gz": packed[:-20],
        "header-only.gz": packed[:5],
        "corrupt.gz": bytes(broken),
        "nothing.gz": b"",
        "nothing": b"",
        "rubbish-behind.gz": packed + b"rubbish",
        "kenlm": b"mmap lm http://kheafield.com/code format version 5\n\x00" + bytes(80),
        "not.parquet": b"PAR1 is how it begins",
        "words": b"das haus\nein haus\n",
        "blank-line": b"das haus\n\nist\n",
        "alignment": b"0-0 1-1\n0-0\n",
        "alignment-outside": b"0-0 7-1\n0-0\n",
        "alignment-strange": b"0-0 1:1\n0-0\n",
        "pairs-strange": b"das ||| the ||| 3\nno pair\n",
        "pairs-negative": b"das ||| the ||| -3\n",
        "pairs-unknown": b"gibt ||| es ||| 3\n",
        "vectors": b"3 6\ndas 1 2 3 4 5 6\nhaus 0 1 0 1 0 1\nist .5 .5 .5 .5 .5 .5\n",
        "vectors-short": b"das 1 2 3\nhaus 0 1 0\n",
        "vectors-strange": b"das 1 2 x\n",
        "priors": b"LEX\tdas\tthe\t30\nLEX\thaus\thouse\t9\nHMMF\t1\t20\nFERF\tdas\t1\t5\n",
        "priors-strange": b"LEX\tdas\n",
        "truth.en": b"the house is green\nthe house\nis not\n",
        "first.en": b"the house is green\na house\nis it not\n",
        "second.en": b"the house is\nthe house\nis not\n",
        "crlf.en": b"the house is green\r\nthe house\r\nis not\r\n",
        "short.en": b"the house is green\n",
        "latin-1.en": b"the house is gr\xfcn\nthe house\nis not\n",
        "raw.en": "The house is green. \u201cYes\u201d\nIt's a house!\nIs it (not)?\n".encode(),
    }
    result |= {f"{n}.ini": _ini(n).encode() for n in range(1, 40)}
    result |= {path.name: path.read_bytes() for path in _FILES.glob("*.ini")}
    return result | {name: text.encode() for name, text in _INIS.items()}


def _ini(scores: int) -> str:
    """Return an ini for tables with a number of scores; the option `--table` sets the table."""
    weights = " ".join(f"{0.05 + 0.7 / scores + 0.01 * i:.3f}" for i in range(scores))
    return f"""\
[distortion-limit]
4

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features={scores} path=table input-factor=0 output-factor=0
Distortion
KENLM name=LM0 factor=0 path=../odd/lm.arpa order=3

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -0.3
PhrasePenalty0= 0.1
TranslationModel0= {weights}
Distortion0= 0.2
LM0= 0.4
"""


_INIS: Mapping[str, str] = {
    "of-tests.ini": INI,
    "weights-missing.ini": _ini(4).replace("TranslationModel0= ", "# TranslationModel0= "),
    "weights-few.ini": _ini(4).replace("num-features=4", "num-features=5"),
    "weights-none.ini": "[weight]\nx= 1\n",
    "binary-table.ini": _ini(4).replace("PhraseDictionaryMemory", "PhraseDictionaryCompact"),
    "unknown-feature.ini": _ini(4).replace("Distortion\n", "Distortion\nOpSequenceModel path=x\n"),
    "fixed.ini": _ini(4).replace("Distortion\n", "Distortion tuneable=false\n"),
    "all-zero.ini": _ini(4).replace("= 1\n", "= 0\n").partition("[weight]")[0] + "[weight]\nLM0= 0\n",
    "no-table.toml": "[data.dev]\nsource = 'a'\n",
    "broken.toml": "[data\n",
    "unknown-key.toml": "colour = 'red'\n[data.bitext]\nsource = 'a'\ntarget = 'b'\n",
}  # fmt: skip


def _odd_texts() -> dict[str, bytes]:
    """Return a bitext in the words of the odd tables, and pairs for training."""
    rng = random.Random(5)
    drawn = [[rng.randrange(len(SOURCES)) for _ in range(rng.randint(1, 4))] for _ in range(80)]
    source, target = ([b" ".join(side[i] for i in line) for line in drawn] for side in (SOURCES, TARGETS))
    pairs = [b"%s ||| %s ||| %d" % (s, t, rng.randint(1, 9)) for s in SOURCES for t in rng.sample(TARGETS, 4)]
    factored = [b"%s|ART ||| %s ||| 2" % (s.replace(b" ", b"|NN "), t) for s in SOURCES for t in TARGETS[:3]]
    files = {"source": source, "target": target, "pairs": pairs, "factored-pairs": factored}
    files["uncounted-pairs"] = [pair.rpartition(b" ||| ")[0] for pair in pairs]
    result = {name: b"".join(line + b"\n" for line in lines) for name, lines in files.items()}
    result["source-crlf"] = result["source"].replace(b"\n", b"\r\n")
    result["target.gz"] = gzip.compress(result["target"], mtime=0)
    aligned = [b" ".join(b"%d-%d" % (i, i) for i in range(min(len(s.split()), len(t.split()))))
               for s, t in zip(source, target, strict=True)]  # fmt: skip
    result["aligned"] = b"".join(line + b"\n" for line in aligned)
    return result


def _write_demo(folder: Path) -> None:
    """Write the corpus of the demo, split as in the demo, and its experiment."""
    for language in ("zh", "en"):
        lines = (_DEMO / f"corpus.{language}").read_bytes().splitlines(keepends=True)
        for name, digits in (("test", "3"), ("dev", "7"), ("train", "01245689")):
            _write(folder / f"{name}.{language}", b"".join(x for i, x in enumerate(lines) if str(i % 10) in digits))
        _write(folder / f"few.{language}", b"".join(lines[:25]))
    config = _CONFIG.read_text(encoding="utf-8")
    for old in ("../../demo-output/engine/", "../../demo-output/"):
        config = config.replace(old, "")
    _write(folder / "demo.toml", config.encode())
    _write(folder / "finished.toml", (_FILES / "finished.toml").read_bytes())


def _write_large(folder: Path) -> None:
    """Write parts of the texts of the reference run."""
    corpus = folder / "corpus"
    for side in ("de", "en"):
        lines = gzip.decompress((corpus / f"train.{side}.gz").read_bytes()).splitlines(keepends=True)
        _write(folder / "large" / f"first.{side}", b"".join(lines[:400]))
        _write(folder / "large" / f"train.{side}", b"".join(lines))
        for name, count in (("dev", 60), ("test_2016_flickr", 80)):
            lines = (corpus / f"{name}.{side}").read_bytes().splitlines(keepends=True)
            _write(folder / "large" / f"{name[:4]}.{side}", b"".join(lines[:count]))
    mono = gzip.decompress((corpus / "mono" / "mono.en.gz").read_bytes()).splitlines(keepends=True)
    _write(folder / "large" / "mono.en", b"".join(mono[:3000]))


def _damage_models(folder: Path) -> None:
    """Write models that cannot be loaded."""
    for name in ("another-version", "no-weights", "cut-weights"):
        shutil.copytree(folder / "odd" / "rae", folder / "odd" / name)
    config = folder / "odd" / "another-version" / "config.json"
    config.write_text(config.read_text().replace('"format_version": 1', '"format_version": 2'))
    os.unlink(folder / "odd" / "no-weights" / "weights.safetensors")
    cut = folder / "odd" / "cut-weights" / "weights.safetensors"
    cut.write_bytes(cut.read_bytes()[:-100])
