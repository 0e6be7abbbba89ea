"""`phrasetool prune --max-bleu-loss`, on a synthetic model whose best size is found by brute force."""

import json
import math
import os
import random

import pytest
import sacrebleu

from phrasetool.pruning.budget import size_grid
from tests.commands import read, run_inside, write

WORDS = 12
LOSS = ("--max-bleu-loss", "1")
INI = """\
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=table.gz input-factor=0 output-factor=0
Distortion
KENLM name=LM0 factor=0 path=lm.arpa order=2

[distortion-limit]
0

[weight]
UnknownWordPenalty0= 1
WordPenalty0= 0
PhrasePenalty0= -0.2
TranslationModel0= 1 0 1 0
Distortion0= 0.3
LM0= 0.1
"""


def made_up(rng):
    """Return lines of a table, a development set and a unigram model; word pairs are not translated word by word."""
    rows, idioms = [], {}
    for i in range(WORDS):
        rows.append((f"w{i}", f"v{i}", 0.9, 9))
        rows += [(f"w{i}", f"j{i}.{k}", 0.01, 1) for k in range(4)]
        for j in range(WORDS):
            count = rng.choice([1, 1, 2, 3, 5, 8, 13, 21, 34])
            rows += [(f"w{i} w{j}", f"x{i}.{j}", 0.9, count), (f"w{i} w{j}", f"y{i}.{j}", 0.01, 1)]
            idioms[i, j] = count
    rows.sort(key=lambda row: row[0] + " ")
    table = [f"{s} ||| {t} ||| {p} 0.5 {p} 0.5 ||| 0-0 ||| 40 40 {n}\n" for s, t, p, n in rows]
    source, target = [], []
    for _ in range(120):
        pairs = rng.choices(list(idioms), weights=list(idioms.values()), k=rng.randint(2, 5))
        source.append(" ".join(f"w{i} w{j}" for i, j in pairs) + "\n")
        target.append(" ".join(f"x{i}.{j}" for i, j in pairs) + "\n")
    words = sorted({row[1] for row in rows})
    arpa = ["\\data\\", f"ngram 1={len(words) + 3}", "ngram 2=1", "", "\\1-grams:"]
    arpa += ["-9\t<unk>", "-9\t<s>\t0", "-1\t</s>", *(f"-2\t{word}\t0" for word in words)]
    arpa += ["", "\\2-grams:", f"-1\t<s> {words[0]}", "", "\\end\\", ""]
    return table, source, target, arpa


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    table, source, target, arpa = made_up(random.Random(4))
    write(folder / "table.gz", "".join(table).encode())
    for name, text in (("dev.x", "".join(source)), ("dev.y", "".join(target)), ("lm.arpa", "\n".join(arpa)),
                       ("moses.ini", INI)):  # fmt: skip
        write(folder / name, text.encode())
    return folder


def prune(folder, *options, dev=("dev.x", "dev.y")):
    return run_inside(
        "prune", folder / "table.gz", "--moses-ini", folder / "moses.ini", "--dev", *(folder / name for name in dev),
        "--method", "count", *options,
    )  # fmt: skip


def bleu(folder, table):
    """Return BLEU by the command line and sacrebleu, without any code of the search."""
    outcome = run_inside("decode", "--moses-ini", folder / "moses.ini", "--table", table, folder / "dev.x", "-q")
    assert outcome.code == 0, outcome.err
    references = (folder / "dev.y").read_text().splitlines()
    return sacrebleu.corpus_bleu(outcome.out.decode().splitlines(), [references], tokenize="none", force=True).score


def by_size(folder, entries, total):
    small = folder / "small.gz"
    outcome = run_inside(
        "prune", folder / "table.gz", "--method", "count", "--target-size", repr(entries / total), "-o", small, "-q"
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    return small


@pytest.fixture(scope="module")
def brute_force(folder):
    """Number of entries -> BLEU, for every size that may be tried."""
    total = read(folder / "table.gz").count(b"\n")
    scores = {}
    for entries in size_grid(total, WORDS):
        small = by_size(folder, entries, total)
        assert read(small).count(b"\n") == entries
        scores[entries] = bleu(folder, small)
    return scores


@pytest.mark.parametrize("budget", [0.0, 0.5, 3.0, 10.0, 101.0])
def test_the_smallest_table_within_the_budget(folder, brute_force, budget, tmp_path):
    total = max(brute_force)
    sizes = [entries for entries, score in brute_force.items() if brute_force[total] - score <= budget]
    # BLEU rises with the size here, so the answer is unique.
    assert sorted(sizes) == sorted(brute_force)[-len(sizes) :]
    outcome = prune(folder, "--max-bleu-loss", budget, "-o", tmp_path / "out.gz", "--stats", tmp_path / "stats")
    assert outcome.code == 0, outcome.err
    statistics = json.loads(read(tmp_path / "stats"))
    assert statistics["kept"] == statistics["budget"]["entries"] == min(sizes)
    assert read(tmp_path / "out.gz") == read(by_size(folder, min(sizes), total))
    assert len(statistics["budget"]["trials"]) < 15
    for trial in statistics["budget"]["trials"]:
        assert trial["bleu"] == pytest.approx(brute_force[trial["entries"]], abs=1e-3)
        assert trial["difference"] == pytest.approx(trial["bleu"] - brute_force[total], abs=2e-3)
        assert trial["low"] <= trial["difference"] <= trial["high"]


def test_an_unsorted_table_is_sorted_first(folder, tmp_path):
    """The results equal those of a table sorted beforehand; messages name the table, not its sorted copy."""
    lines = read(folder / "table.gz").splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    write(tmp_path / "mixed.gz", b"".join(lines))
    write(tmp_path / "sorted.gz", b"".join(sorted(lines)))
    write(tmp_path / "bad.gz", b"".join([*lines, b"w1 ||| broken\n"]))

    def run(name, *options, dev=("dev.x", "dev.y")):
        return run_inside(
            "prune", tmp_path / name, "--moses-ini", folder / "moses.ini", "--dev", *(folder / side for side in dev),
            "--method", "count", "--max-bleu-loss", "3", *options,
        )  # fmt: skip

    results = []
    for name, options in (("mixed.gz", ("--sort",)), ("sorted.gz", ())):
        outputs = [tmp_path / (name + ending) for ending in (".out.gz", ".stats.gz", ".gone", ".why")]
        flags = zip(("-o", "--stats", "--rejected", "--reasons"), outputs, strict=True)
        outcome = run(name, *options, *(part for pair in flags for part in pair))
        assert outcome.code == 0, outcome.err
        results.append((outcome.err, *map(read, outputs)))
    assert results[0] == results[1]
    assert results[0][1].count(b"\n") < len(lines)
    assert json.loads(results[0][2])["budget"]["trials"]
    before = sorted(os.listdir(tmp_path))
    unsorted = run("mixed.gz", "-o", tmp_path / "no.gz")
    assert (unsorted.code, "--sort sorts it" in unsorted.err.splitlines()[-1]) == (1, True)
    swapped = run("mixed.gz", "--sort", "-o", tmp_path / "no.gz", dev=("dev.y", "dev.x"))
    assert f"have a translation in {tmp_path / 'mixed.gz'}, sorted, but" in swapped.message
    bad = run("bad.gz", "--sort", "-o", tmp_path / "no.gz")
    assert bad.message.startswith(f"phrasetool: {tmp_path / 'bad.gz'}, sorted:")
    assert sorted(os.listdir(tmp_path)) == before


def test_messages(folder, brute_force):
    outcome = prune(folder, "--max-bleu-loss", "3", "-o", os.devnull)
    steps = [line for line in outcome.err.splitlines() if "step " in line]
    total = max(brute_force)
    assert steps[0] == f"phrasetool: step 1: 100 % ({total:,} entries): BLEU {brute_force[total]:.2f}"
    assert all("[" in step and step.endswith(("within the budget", "beyond the budget")) for step in steps[1:])
    answer = next(line for line in outcome.err.splitlines() if "answer: " in line)
    assert "entries, the " in answer
    assert "best of every one-word source among them): BLEU " in answer
    assert "difference to the full table on this development set: " in outcome.err
    assert f"{total:,} entries (" in next(line for line in outcome.err.splitlines() if "kept " in line)
    assert "rule:loss3+size" in outcome.err
    assert prune(folder, "--max-bleu-loss", "3", "-q", "-o", os.devnull).err == ""


def test_non_inferiority_is_stricter_than_a_budget(folder, brute_force, tmp_path):
    """The interval of the chosen table excludes the loss; with a plain budget, it need not."""
    figures = {}
    for name, options in (("plain", ()), ("sure", ("--non-inferior",))):
        outcome = prune(folder, "--max-bleu-loss", "12", *options, "--stats", tmp_path / name, "-o", os.devnull)
        assert outcome.code == 0, outcome.err
        figures[name] = json.loads((tmp_path / name).read_text())["budget"]
        assert figures[name]["non_inferior"] is bool(options)
    chosen = {name: next(trial for trial in budget["trials"] if trial["entries"] == budget["entries"])
              for name, budget in figures.items()}  # fmt: skip
    assert chosen["sure"]["low"] >= -12 > chosen["plain"]["low"]
    assert chosen["sure"]["entries"] > chosen["plain"]["entries"]
    verdicts = {
        line.rsplit(": ", 1)[1] for line in outcome.err.splitlines() if " step " in line and "100 %" not in line
    }
    assert verdicts == {"non-inferior", "not shown to be non-inferior"}
    assert "+non-inferior+size" in outcome.err


def test_threads_and_blocks_change_nothing(folder, tmp_path):
    outcomes = set()
    for options in (("--threads", "1"), ("--threads", "2", "--block-bytes", "1")):
        names = [tmp_path / name for name in ("o.gz", "s", "gone", "why")]
        flags = ("-o", "--stats", "--rejected", "--reasons")
        outputs = [part for pair in zip(flags, names, strict=True) for part in pair]
        outcome = prune(folder, "--max-bleu-loss", "2", *options, *outputs)
        assert outcome.code == 0, outcome.err
        outcomes.add((*map(read, names), outcome.err))
    assert len(outcomes) == 1


def test_the_reordering_table_is_pruned_too(folder, tmp_path):
    lines = read(folder / "table.gz").splitlines()
    write(tmp_path / "r.gz", b"".join(b" ||| ".join(line.split(b" ||| ")[:2]) + b" ||| 0.5 0.5\n" for line in lines))
    outcome = prune(folder, "--max-bleu-loss", "3", "-o", tmp_path / "o", "--reordering-table", tmp_path / "r.gz",
                    "--reordering-out", tmp_path / "r2")  # fmt: skip
    assert outcome.code == 0
    assert read(tmp_path / "r2").count(b"\n") == read(tmp_path / "o").count(b"\n") > 0


def test_search_options_and_protection(folder, tmp_path):
    for options in (("--search", "cube", "--pop-limit", "20", "--stack", "20"), ("--keep-top", "2"),
                    ("--protect", "none"), ("--protect", "all")):  # fmt: skip
        outcome = prune(folder, "--max-bleu-loss", "5", *options, "-o", tmp_path / "o", "--stats", tmp_path / "s")
        assert outcome.code == 0, outcome.err
        trials = json.loads(read(tmp_path / "s"))["budget"]["trials"]
        if options[0] == "--keep-top":
            assert {trial["keep_top"] for trial in trials} == {2}
        if options[1] == "all":
            # Each source keeps at least one entry.
            assert min(trial["entries"] for trial in trials) >= WORDS + WORDS**2


def test_a_development_set_that_was_trained_on(folder, tmp_path):
    source, target = ((folder / name).read_bytes().splitlines(keepends=True) for name in ("dev.x", "dev.y"))
    write(tmp_path / "x.gz", b"".join([b"w1\n", *source[:7], b" ".join(source[8].split()) + b"  \n", source[9]]))
    write(tmp_path / "y", b"".join([b"v1\n", *target[:7], target[8], b"other\n"]))
    bitext = set(zip(source[:7] + source[8:9], target[:7] + target[8:9], strict=True))
    overlap = sum(pair in bitext for pair in zip(source, target, strict=True))
    outcome = prune(
        folder, "--max-bleu-loss", "5", "-q", "-o", os.devnull, "--bitext", tmp_path / "x.gz", tmp_path / "y"
    )
    assert outcome.code == 0
    assert (
        f"warning: {overlap} of 120 sentence pairs of {folder / 'dev.x'} are in {tmp_path / 'x.gz'}" in outcome.message
    )


def test_unsuitable_development_sets(folder, tmp_path):
    source, target = ((folder / name).read_bytes() for name in ("dev.x", "dev.y"))
    write(tmp_path / "other", source.replace(b"w", b"q"))
    write(tmp_path / "capitals", target.upper())
    write(tmp_path / "reversed", b"".join(reversed(target.splitlines(keepends=True))))
    outputs = ("-q", "-o", tmp_path / "out.gz", "--stats", tmp_path / "stats")
    before = sorted(os.listdir(tmp_path))
    for dev, message in [
        ((folder / "dev.y", folder / "dev.x"), "dev.x: the source and the reference are swapped"),
        ((tmp_path / "other", folder / "dev.y"), "expected at least 30.0 %"),
        ((folder / "dev.x", folder / "dev.x"), "is the same text"),
        ((folder / "dev.x", tmp_path / "reversed"), "reversed: its lines share no more words with what"),
        ((folder / "dev.x", tmp_path / "capitals"), "capitals: its lines share no more words with what"),
    ]:
        outcome = prune(folder, *LOSS, *outputs, dev=dev)
        assert outcome.code == 1
        assert message in outcome.message
        assert outcome.message.endswith("; --force continues anyway")
        assert sorted(os.listdir(tmp_path)) == before
    # The last of these sets, with --force.
    outcome = prune(folder, *LOSS, *outputs, "--force", dev=dev)
    assert outcome.code == 0
    correspondence, quality = outcome.err.splitlines()
    assert message in correspondence
    assert "100.0 % of the tokens, reaches" in quality
    assert all("warning: " in line for line in (correspondence, quality))
    assert json.loads(read(tmp_path / "stats"))["budget"]["full_bleu"] == 0


def test_a_check_changes_nothing_for_a_right_set(folder, tmp_path):
    for name, options in (("a", ()), ("b", ("--force",))):
        assert prune(folder, *LOSS, *options, "-q", "-o", tmp_path / name).err == ""
    assert read(tmp_path / "a") == read(tmp_path / "b")


def test_usage(folder, tmp_path):
    """At a loss of 0, the entries that translate the development set are kept."""
    lines = read(folder / "table.gz").splitlines(keepends=True)
    used = [line for line in lines if b"0.9" in line]
    write(tmp_path / "pairs", b"".join(b" ||| ".join(line.split(b" ||| ")[:2]) + b" ||| 2\n" for line in used))
    outcome = prune(folder, "--max-bleu-loss", "0", "--method", "usage", "--forced-pairs", tmp_path / "pairs",
                    "-o", tmp_path / "o", "--stats", tmp_path / "s")  # fmt: skip
    assert outcome.code == 0, outcome.err
    kept = read(tmp_path / "o").splitlines(keepends=True)
    assert set(used) <= set(kept)
    assert len(kept) < len(lines)
    assert json.loads(read(tmp_path / "s"))["signature"].startswith("method:usage|")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-bleu-loss", "-1"), "-1"),
        (("--max-bleu-loss", "nan"), "'nan' is not a finite number"),
        (("--max-bleu-loss", "inf"), "'inf' is not a finite number"),
        ((*LOSS, "--target-size", "0.5"), "give one of --threshold, --target-size, --max-bleu-loss and --sweep"),
        ((*LOSS, "--method", "count:3"), "their own thresholds"),
        ((*LOSS, "--method", "usage"), "give --forced-pairs PAIRS"),
        ((*LOSS, "--on-error", "skip"), "--on-error is for thresholds and sizes"),
        (("--target-size", "0.5"), "--dev, --non-inferior and the options of the search go with --max-bleu-loss"),
        (("--max-bleu-loss", "0", "--non-inferior"), "--non-inferior needs a margin: a --max-bleu-loss above 0"),
    ],
)
def test_bad_usage(folder, tmp_path, options, message):
    outcome = prune(folder, *options, "-o", tmp_path / "o")
    assert outcome.code == 2
    assert message in outcome.err
    assert not os.listdir(tmp_path)


def test_required_options(folder):
    table, ini = folder / "table.gz", ("--moses-ini", folder / "moses.ini")
    dev = ("--dev", folder / "dev.x", folder / "dev.y")
    for options in ((*LOSS, *ini), (*LOSS, *dev), LOSS):
        outcome = run_inside("prune", table, "--method", "count", *options)
        assert outcome.code == 2
        assert "give --dev SOURCE REFERENCE and --moses-ini INI" in outcome.err
    outcome = run_inside("prune", table, "-t", "0", "--pop-limit", "3")
    assert "go with --max-bleu-loss" in outcome.err
    outcome = run_inside("prune", "-", *LOSS, *ini, *dev, stdin=b"")
    assert "none can be standard input" in outcome.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("KENLM name=LM0 factor=0 path=lm.arpa order=2\n", ""), "[feature] has no KENLM"),
        (("LM0= 0.1\n", ""), "[weight] has no line LM0="),
        (("Distortion0= 0.3\n", ""), "[weight] has no line Distortion0="),
        (("path=lm.arpa", "path=nowhere.arpa"), "nowhere.arpa"),
        (("num-features=4", "num-features=3"), "TranslationModel0 has 3 features but 4 weights"),
    ],
)
def test_incomplete_inis(folder, tmp_path, change, message):
    text = INI.replace(*change).replace("path=lm.arpa", f"path={folder / 'lm.arpa'}")
    assert text != INI
    ini = write(tmp_path / "moses.ini", text.encode())
    outcome = run_inside(
        "prune", folder / "table.gz", "--moses-ini", ini, "--dev", folder / "dev.x", folder / "dev.y", "--method",
        "count", *LOSS, "-q", "-o", tmp_path / "o",
    )  # fmt: skip
    assert outcome.code == 1
    assert message in outcome.message
    assert os.listdir(tmp_path) == ["moses.ini"]


@pytest.mark.parametrize(
    ("source", "reference", "message"),
    [("", "", "the file has no lines"), ("w1\n", "", "has 0 lines"), ("w1\nw2\n", "v1\n", "has 1 lines"),
     (None, "v1\n", "none")],
)  # fmt: skip
def test_invalid_development_sets(folder, tmp_path, source, reference, message):
    for name, text in (("x", source), ("y", reference)):
        if text is not None:
            write(tmp_path / name, text.encode())
    outcome = run_inside(
        "prune", folder / "table.gz", "--moses-ini", folder / "moses.ini", "--method", "count", *LOSS,
        "--dev", tmp_path / "x" if source is not None else tmp_path / "none", tmp_path / "y", "-o", tmp_path / "o",
    )  # fmt: skip
    assert outcome.code == 1
    assert message in outcome.message
    assert not (tmp_path / "o").exists()


def test_tables_of_few_entries(folder, tmp_path):
    for lines, code in ((b"", 1), (b"w1 ||| v1 ||| 0.9 0.5 0.9 0.5 ||| 0-0 ||| 1 1 1\n", 0)):
        table = write(tmp_path / "t", lines)
        outcome = run_inside(
            "prune", table, "--moses-ini", folder / "moses.ini", "--dev", folder / "dev.x", folder / "dev.y",
            "--method", "count", *LOSS, "--force", "-q", "-o", tmp_path / "o",
        )  # fmt: skip
        assert outcome.code == code
        assert (tmp_path / "o").exists() == (code == 0)
        if code:
            assert "t: is empty; expected a phrase table" in outcome.message


def test_a_development_set_is_not_overwritten(folder):
    before = (folder / "dev.y").read_bytes()
    assert "the output is the input" in prune(folder, *LOSS, "-o", folder / "dev.y").message
    assert (folder / "dev.y").read_bytes() == before


def test_the_synthetic_model_suits_a_search(brute_force):
    scores = [brute_force[entries] for entries in sorted(brute_force)]
    assert all(math.isfinite(score) for score in scores)
    assert scores[-1] > 90
    assert scores[0] < 20
