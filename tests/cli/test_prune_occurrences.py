"""Occurrences that `phrasetool prune` reports as removed, and `--protect-frequent`."""

import gzip
import json
import random

import pytest

from moses_compat.files import finished_work
from phrasetool import prune as prune_from_python
from tests.commands import run_inside, write
from tests.pairwise import in_turn
from tests.power_cuts import PowerCut, cut_after

__all__ = ["cut_after"]
SIMILAR = ("--similarity-columns", "1,2", "--scale", "raw")
# No protection: the threshold alone decides.
BARE = ("--keep-top", "0", "--protect", "none")
INI = """\
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=table.gz input-factor=0 output-factor=0
Distortion

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0
TranslationModel0= 0.2 0.2 0.2 0.2
Distortion0= 0.3
"""


def made_up(entries=400):
    """Return rows of source, target, two similarities and three counts; some are frequent mutual translations."""
    rng = random.Random(3)
    rows = {}
    while len(rows) < entries:
        words = [f"w{rng.randrange(30)}" for _ in range(rng.choice([1, 1, 2]))]
        pair = " ".join(words), f"v{rng.randrange(40)}"
        joint = rng.choice([1, 1, 1, 2, 5, 90, 100, 101, 101, 350, 27340])
        marginals = [joint + rng.choice([0, joint - 1, joint, 5]) for _ in range(2)]
        rows[pair] = (rng.random(), rng.random(), *marginals, joint)
    return [(*pair, *rows[pair]) for pair in sorted(rows, key=lambda pair: f"{pair[0]} ||| {pair[1]} |||".encode())]


ROWS = made_up()


def text_of(rows, counts="{} {} {}"):
    return "".join(
        f"{s} ||| {t} ||| {a:.6f} {b:.6f} {n / ct:.6g} 0.5 ||| 0-0 ||| {counts.format(ct, cs, n)} ||| |||\n"
        for s, t, a, b, ct, cs, n in rows
    ).encode()


DATA = text_of(ROWS)
LINES = DATA.splitlines(keepends=True)


def is_frequent(row, limit=100):
    *_, ct, cs, joint = row
    return joint > limit and joint / cs > 0.5 and joint / ct > 0.5


def expected(kept, limit=100):
    """Return the report of occurrences if these lines are kept."""
    kept_lines = set(kept.splitlines(keepends=True))
    removed = [row for row, line in zip(ROWS, LINES, strict=True) if line not in kept_lines]
    total, removed_total = sum(row[6] for row in ROWS), sum(row[6] for row in removed)

    def listed(rows):
        return [{"source": r[0], "target": r[1], "count": r[6]} for r in sorted(rows, key=lambda r: -r[6])[:5]]

    mutual = [row for row in removed if is_frequent(row, limit)]
    return {
        "total": total, "removed": removed_total, "removed_share": round(removed_total / total, 6),
        "entries_without_joint_count": 0, "entries_with_derived_count": 0, "most_frequent_removed": listed(removed),
        "mutual_translations_removed": {
            "seen_more_than": limit, "entries": len(mutual), "most_frequent": listed(mutual),
        },
    }  # fmt: skip


@pytest.fixture
def table(tmp_path):
    write(tmp_path / "moses.ini", INI.encode())
    return write(tmp_path / "table.gz", DATA)


def prune(table, *options):
    outcome = run_inside("prune", table, *options)
    assert outcome.code == 0, outcome.err
    return outcome


CUTS = {
    "threshold": ("-t", "0.7", *BARE),
    "threshold with protection": ("-t", "0.7", "--protect", "words", "--keep-top", "1"),
    "own threshold": ("--method", "semantic:0.7", *BARE),
    "size": ("--target-size", "0.4", *BARE),
    "count": ("--method", "count", "--target-size", "0.3", *BARE),
    "count at a threshold": ("--method", "count", "-t", "95"),
    "random": ("--method", "random", "--target-size", "0.2", *BARE),
    "product": ("--method", "count+semantic+probability", "--target-size", "0.25"),
    "ranks": ("--method", "count+semantic", "--combine", "rank", "-t", "0.5", *BARE),
    "own thresholds": ("--method", "count:2+semantic:0.5", *BARE),
    "composition": ("--moses-ini", "moses.ini", "--target-size", "0.3"),
}


def similar(cut):
    """Return the options of similarities if a cut uses them."""
    method = cut[cut.index("--method") + 1] if "--method" in cut else "semantic"
    return SIMILAR if "semantic" in method else ()


PROTECTIONS = [(), ("--protect-frequent", "none"), ("--protect-frequent", "300")]


def test_removed_entries_that_occurred_once_are_not_listed(tmp_path):
    write(tmp_path / "t", b"a ||| x ||| 1 1 1 1 ||| ||| 1 1 1\nb ||| y ||| 1 1 1 1 ||| ||| 1 1 1\n")
    outcome = run_inside(
        "prune", tmp_path / "t", "--method", "count", "--target-size", 0.5, *BARE, "-o", tmp_path / "o"
    )
    assert "removed 50.0% of the occurrences" in outcome.err
    assert "most frequent removed entries" not in outcome.err


@pytest.mark.parametrize(
    ("name", "protection"), [(cut, one) for cut, some in in_turn(CUTS, PROTECTIONS, 2) for one in some]
)
def test_every_rule_reports_removed_occurrences(table, tmp_path, monkeypatch, name, protection):
    monkeypatch.chdir(tmp_path)
    cut = (*CUTS[name], *similar(CUTS[name]), *protection)
    kept = prune(table, *cut, "-q").out
    limit = 300 if "300" in protection else 100
    report = expected(kept, limit)
    assert 0 < report["removed"] < report["total"]
    outcome = prune(table, *cut, "-o", "out", "--stats", "stats", "--json", "json")
    parsed = json.loads((tmp_path / "stats").read_text())
    assert parsed["occurrences"] == report == json.loads((tmp_path / "json").read_text())["occurrences"]
    assert f"removed {report['removed_share']:.1%} of the occurrences ({report['removed']:,} of " in outcome.err
    first = report["most_frequent_removed"][0]
    listed = f"{first['source']} ||| {first['target']} ({first['count']:,})"
    assert f"most frequent removed entries: {listed}" in outcome.err
    frequent = report["mutual_translations_removed"]["entries"]
    assert ("warning: removed" in outcome.err) == bool(frequent)
    if protection == ("--protect-frequent", "300"):
        assert not frequent
        assert "+frequent300|" in parsed["signature"]
    dry = prune(table, *cut, "--dry-run", "--json", "-")
    assert json.loads(dry.out)["occurrences"] == report
    several = prune(table, *cut, "-q", "--threads", "2", "--block-bytes", "300", "--json", "again")
    assert several.out == kept
    assert json.loads((tmp_path / "again").read_text())["occurrences"] == report


@pytest.mark.parametrize("name", CUTS)
def test_frequent_entries_are_protected_by_default_at_similarity_thresholds(table, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    cut = (*CUTS[name], *similar(CUTS[name]), "-q")
    unprotected = prune(table, *cut, "--protect-frequent", "none").out
    result = prune(table, *cut, "--json", "json").out
    signature = json.loads((tmp_path / "json").read_text())["signature"]
    if name in ("threshold", "threshold with protection", "own threshold"):
        assert result == prune(table, *cut, "--protect-frequent", "100").out != unprotected
        removed = set(LINES) - set(result.splitlines(keepends=True))
        assert not [row for row, line in zip(ROWS, LINES, strict=True) if line in removed and is_frequent(row)]
        # It protects only such entries.
        protected = set(result.splitlines(keepends=True)) - set(unprotected.splitlines(keepends=True))
        assert {line for row, line in zip(ROWS, LINES, strict=True) if is_frequent(row)} >= protected
        assert "+frequent100|" in signature
    else:
        assert result == unprotected
        assert "frequent" not in signature


def test_the_warning_names_the_option_that_keeps_frequent_entries(table):
    outcome = prune(table, "-t", "0.7", *BARE, *SIMILAR, "-q", "--protect-frequent", "none")
    result = expected(outcome.out)["mutual_translations_removed"]
    first = result["most_frequent"][0]
    assert outcome.message.startswith(
        f"phrasetool: warning: removed {result['entries']} mutual translations seen more than 100 times: "
        f"{first['source']} ||| {first['target']} ({first['count']:,}), "
    )
    assert outcome.message.endswith("--protect-frequent 100 keeps such entries")
    assert prune(table, "-t", "0.7", *BARE, *SIMILAR, "-q").err == ""


def test_protected_entries_are_counted(table, tmp_path):
    outcome = prune(table, "-t", "0.7", *BARE, *SIMILAR, "-o", tmp_path / "o", "--json", tmp_path / "j")
    frequent = sum(is_frequent(row) and max(row[2:4]) < 0.7 for row in ROWS)
    report = json.loads((tmp_path / "j").read_text())
    assert (report["protected_frequent"], report["protected_by_best_k"]) == (frequent, 0)
    assert (
        f"{frequent} of {report['removed']['below_threshold'] + frequent} below the threshold were kept as "
        in outcome.err
    )
    swept = prune(table, "--sweep", "0.7:0.7:1", *BARE, *SIMILAR, "--json", tmp_path / "s")
    row = json.loads((tmp_path / "s").read_text())["thresholds"][0]
    assert (row["kept"], row["protected"]) == (report["kept"], frequent)
    assert "mutual translations seen more than 100 times" in swept.err


def test_a_size_that_protected_entries_exceed(table):
    protected = sum(is_frequent(row, 50) for row in ROWS)
    options = ("--method", "random", *BARE, "--protect-frequent", "50")
    outcome = run_inside("prune", table, "--target-size", str((protected - 1) / len(ROWS)), *options)
    assert (outcome.code, f"{protected} of {len(ROWS)} entries" in outcome.err) == (1, True)
    assert "a larger --protect-frequent" in outcome.err
    size = str((protected + 0.5) / len(ROWS))
    assert prune(table, "--target-size", size, *options, "-q").out.count(b"\n") == protected
    # By similarity alone, a threshold is searched.
    outcome = run_inside("prune", table, "--target-size", str((protected - 1) / len(ROWS)), *options[2:], *SIMILAR)
    assert (outcome.code, f"{protected} of {len(ROWS)} entries" in outcome.err) == (1, True)


def test_saved_similarities(table, model_folder, tmp_path):
    """Of lines with saved similarities, only the counts are parsed."""
    cut, scores = ("-t", "0.7", *BARE, "-q", "--similarities", tmp_path / "scores.parquet"), tmp_path / "no model"
    first = prune(table, *cut, "-m", model_folder, "--force", "--json", tmp_path / "a")
    second = prune(table, *cut, "-m", scores, "--json", tmp_path / "b")
    assert first.out == second.out
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert json.loads((tmp_path / "a").read_text())["occurrences"] == expected(first.out)


def test_parts(table, tmp_path):
    whole = prune(table, "-t", "0.7", *BARE, *SIMILAR, "-q").out
    prune_parts = (*BARE, *SIMILAR, "--threads", "2")
    assert run_inside("convert", table, "-o", tmp_path / "parts", "--part-entries", 50).code == 0
    outcome = prune(tmp_path / "parts", "-t", "0.7", *prune_parts, "-o", tmp_path / "out", "--json", tmp_path / "j")
    names = sorted((tmp_path / "out").glob("part-*.gz"))
    assert len(names) > 3
    assert b"".join(gzip.decompress(path.read_bytes()) for path in names) == whole
    report = expected(whole)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["occurrences"] == report == json.loads((tmp_path / "j").read_text())["occurrences"]
    assert f"of the occurrences ({report['removed']:,} of {report['total']:,})" in outcome.err
    unprotected = prune(
        tmp_path / "parts", "-t", "0.7", *prune_parts, "-o", tmp_path / "none", "--protect-frequent", "none"
    )
    assert "warning: removed" in unprotected.err
    assert "occurrences" not in json.loads((tmp_path / "parts" / "manifest.json").read_text())
    # A pruned folder may be pruned again.
    again = prune(tmp_path / "out", "-t", "0.8", *prune_parts, "-o", tmp_path / "again")
    assert "of the occurrences" in again.err


@pytest.mark.parametrize("cut", [("-t", "0.7", *BARE), ("--method", "count+semantic", "--target-size", "0.3")], ids=str)
def test_resumed_runs(table, tmp_path, monkeypatch, cut_after, cut):
    options = (*cut, *SIMILAR, "--block-bytes", "2000", "-o", tmp_path / "out", "--resume", "-q")
    monkeypatch.setattr(finished_work, "SECONDS", 0.0)
    cut_after(6)
    with pytest.raises(PowerCut):
        run_inside("prune", table, *options, "--stats", tmp_path / "s")
    cut_after(-1)
    outcome = prune(table, *options, "--stats", tmp_path / "s")
    assert outcome.code == 0
    kept = (tmp_path / "out").read_bytes()
    assert json.loads((tmp_path / "s").read_text())["occurrences"] == expected(kept)


NO_COUNTS = {
    "two of three": lambda n: f"{n}" if n % 2 else "",
    "none": lambda n: "",
    "not a number": lambda n: f"{n} {n} x",
    "negative": lambda n: f"{n} {n} -{n}",
    "nan": lambda n: f"{n} {n} nan",
    "infinite": lambda n: f"{n} {n} inf",
    "one of them": lambda n: f"{n} {n} {n}" if n != 1 else f"{n} {n} {n}x",
}


@pytest.mark.parametrize("cut", [("-t", "0.7"), ("--method", "probability", "--target-size", "0.3")], ids=str)
@pytest.mark.parametrize("name", NO_COUNTS)
def test_tables_without_joint_counts(tmp_path, name, cut):
    lines = [
        f"{s} ||| {t} ||| {a:.6f} {b:.6f} 0.5 0.5 ||| 0-0 ||| {NO_COUNTS[name](n)}\n" for s, t, a, b, _, _, n in ROWS
    ]
    table = write(tmp_path / "t", "".join(lines).encode())
    missing = sum(name != "one of them" or row[6] == 1 for row in ROWS)
    message = (
        "the table has no joint counts"
        if missing == len(ROWS)
        else f"{missing:,} of {len(ROWS):,} entries have no joint"
    )
    for more in (), ("--dry-run",):
        outcome = prune(table, *cut, *BARE, *similar(cut), "-o", tmp_path / "o", "--json", tmp_path / "j", *more)
        assert json.loads((tmp_path / "j").read_text())["occurrences"] is None
        assert sum(message in line for line in outcome.err.splitlines()) == 1
        assert ("--protect-frequent cannot protect" in outcome.err) == ("-t" in cut)
        assert "of the occurrences" not in outcome.err
    (tmp_path / "o").unlink()
    refused = run_inside("prune", table, *cut, *BARE, *similar(cut), "-o", tmp_path / "o", "--protect-frequent", "5")
    line = 1 + next(i for i, row in enumerate(ROWS) if name != "one of them" or row[6] == 1)
    assert refused.code == 1
    assert f"t:{line}: the entry has no joint count" in refused.message
    assert "--protect-frequent none" in refused.message
    refused = run_inside("prune", table, "--method", "count", "--target-size", "0.3", "-o", tmp_path / "o")
    assert refused.code == 1
    assert f"t:{line}: the entry has no joint count" in refused.message
    assert "as in --method probability" in refused.message
    assert not (tmp_path / "o").exists()
    unprotected = prune(table, *cut, *BARE, *similar(cut), "-q", "--protect-frequent", "none").out
    assert unprotected == prune(table, *cut, *BARE, *similar(cut), "-q").out or name == "one of them"


def test_two_counts(tmp_path):
    """A missing third count is derived as phi(f|e) * c(t)."""
    lines = [f"{s} ||| {t} ||| {n / ct:.6g} {b:.6f} 0.5 0.5 ||| 0-0 ||| {ct} {cs}\n" for s, t, _, b, ct, cs, n in ROWS]
    table = write(tmp_path / "t", "".join(lines).encode())
    rule = ("-t", "0.5", *BARE, "--similarity-columns", "2,2", "--scale", "raw", "--json", tmp_path / "j")
    outcome = prune(table, *rule)
    report = json.loads((tmp_path / "j").read_text())["occurrences"]
    kept = set(outcome.out.decode().splitlines(keepends=True))
    assert report["total"] == sum(row[6] for row in ROWS)
    assert report["removed"] == sum(row[6] for row, line in zip(ROWS, lines, strict=True) if line not in kept)
    assert report["entries_with_derived_count"] == len(ROWS)
    assert "were derived as phi(f|e) * c(t)" in outcome.err
    assert len(kept) > prune(table, *rule, "--protect-frequent", "none").out.count(b"\n")
    assert prune(table, *rule, "--protect-frequent", "100").out == outcome.out


def test_malformed_lines_have_no_occurrences(tmp_path):
    table = write(tmp_path / "t", b"no entry\n" + DATA)
    rule = ("-t", "0.7", *BARE, *SIMILAR, "-q", "--json", tmp_path / "j", "--protect-frequent", "100")
    for on_error in "keep", "skip":
        kept = prune(table, *rule, "--on-error", on_error).out.replace(b"no entry\n", b"")
        assert json.loads((tmp_path / "j").read_text())["occurrences"] == expected(kept)


@pytest.mark.parametrize("wrong", ["-1", "x", "1.5", "", "9" * 30])
def test_invalid_counts(table, wrong):
    outcome = run_inside("prune", table, "-t", "0.7", *SIMILAR, "--protect-frequent", wrong)
    assert (outcome.code, "nor none" in outcome.err) == (2, True)


def test_from_python(table, tmp_path):
    cut = {"columns": (0, 1), "scale": "raw", "keep_top": 0, "protect": "none"}
    for choice, option in ((None, ()), ("none", ("--protect-frequent", "none")), (5, ("--protect-frequent", "5"))):
        protection = {} if choice is None else {"protect_frequent": choice}
        result = prune_from_python(table, tmp_path / "o", threshold=0.7, **cut, **protection)
        assert (tmp_path / "o").read_bytes() == prune(table, "-t", "0.7", *BARE, *SIMILAR, "-q", *option).out
        limit = 5 if choice == 5 else 100
        assert result.statistics.occurrences.report() == expected((tmp_path / "o").read_bytes(), limit)
    with pytest.raises(ValueError, match="expected a count"):
        prune_from_python(table, tmp_path / "o", threshold=0.7, **cut, protect_frequent="many")


@pytest.mark.requires_reference
def test_no_frequent_mutual_translation_leaves_the_reference_table(reference, tmp_path):
    path = reference / "phrase-table.gz"
    # Two score columns stand in for a model that gives common words a low similarity.
    rule = ("-t", "0.7", "--similarity-columns", "2,4", "--scale", "raw", *BARE, "-q", "--threads", "2")
    prune(path, *rule, "-o", tmp_path / "on", "--json", tmp_path / "j")
    prune(path, *rule, "-o", tmp_path / "off", "--protect-frequent", "none")
    frequent = set()
    with gzip.open(path, "rb") as lines:
        for line in lines:
            target, source, joint = map(float, line.split(b"|||")[4].split())
            if joint > 100 and joint / source > 0.5 and joint / target > 0.5:
                frequent.add(line)
    on, off = ({*(tmp_path / name).read_bytes().splitlines(keepends=True)} for name in ("on", "off"))
    assert len(frequent) == 161
    assert frequent <= on
    assert on == off | frequent != off
    report = json.loads((tmp_path / "j").read_text())["occurrences"]
    assert report["total"] == 1_719_321
    assert report["mutual_translations_removed"]["entries"] == 0
