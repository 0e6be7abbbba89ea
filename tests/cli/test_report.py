"""`report`: the numbers of each module against naive computations, verdicts, unusual tables, and the page."""

import gzip
import html
import json
import random
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest

from moses_compat.engine.decoder_tables import InputPhrases, load_entries
from moses_compat.table_report.entry_modules import memory_of
from moses_compat.table_report.input_modules import auc_of
from moses_compat.table_report.measuring import ReportRequest, lines_at, measure_report
from moses_compat.table_report.modules import CHECK, GOOD, PROBLEM, verdict_above
from moses_compat.table_report.page import report_table
from phrasetool.errors import DataError
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import build_table
from phrasetool.watch import SILENT
from tests.commands import clean_environment, run_inside, write
from tests.small_experiment import INI, small_model, table_lines, write_texts
from tests.tables import TABLES
from tests.variants import for_each

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("jinja2", reason="the extra `report` is not installed")

NEEDS = {
    "similarity": "-m MODEL", "thresholds": "-m MODEL", "suspicious": "-m MODEL",
    "coverage": "--dev SOURCE REFERENCE", "moses-ini": "--moses-ini INI", "bitext": "--bitext SOURCE TARGET",
    "compare": "--compare SMALL",
}  # fmt: skip


class Page(HTMLParser):
    """Parser that collects the cells of each table and the text of each section, and counts scripts."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.sections, self.scripts = {}, {}, 0
        self._table = self._section = self._cell = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert not {"src", "onclick", "onload", "onerror"} & attributes.keys()
        if tag == "table":
            self._table = self.tables.setdefault(attributes["id"], [])
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th"):
            self._table[-1].append("")
            self._cell = True
        elif tag == "section":
            self._section = attributes["id"]
            self.sections[self._section] = ""
        self.scripts += tag == "script"

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._cell = None
        elif tag == "table":
            self._table = None

    def handle_data(self, data):
        if self._cell:
            self._table[-1][-1] += data
        if self._section:
            self.sections[self._section] += data


def report(table, *options):
    """Return the modules of the JSON document, and the page."""
    out = table.parent / "report.html"
    outcome = run_inside("report", table, *options, "-o", out, "--json", "-", "-q")
    assert outcome.code == 0, outcome.err
    text = out.read_text("utf-8")
    page = Page(text)
    assert page.scripts == 1
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    return json.loads(outcome.out)["modules"], page


def facts(modules, name):
    return modules[name]["facts"]


def entries_of(table):
    """Return source, target and counts of each entry."""
    data = table.read_bytes()
    lines = (gzip.decompress(data) if table.suffix == ".gz" else data).decode().splitlines()
    fields = [[field.strip() for field in line.split("|||")] for line in lines]
    return [(row[0], row[1], [float(count) for count in row[4].split()]) for row in fields]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, a model, an ini and texts."""
    folder = tmp_path_factory.mktemp("report")
    write(folder / "table.gz", b"".join(sorted(table_lines())))
    small_model().save(folder / "model")
    rng = random.Random(3)
    for name, sentences in (("train", 60), ("dev", 20)):
        write_texts(folder, name, sentences, rng)
    (folder / "moses.ini").write_text(INI)
    return folder


@pytest.fixture(scope="module")
def table(folder):
    return folder / "table.gz"


def test_numbers_of_the_table_alone(table):
    modules, page = report(table)
    entries = entries_of(table)
    size = facts(modules, "size")
    sources = Counter(source for source, _, _ in entries)
    assert (size["entries"], size["sources"]) == (len(entries), len(sources))
    assert size["targets"] == len({target for _, target, _ in entries})
    assert size["bytes of text"] == len(gzip.decompress(table.read_bytes()))
    assert size["bytes of the file"] == table.stat().st_size
    groups = facts(modules, "entries-per-source")
    assert groups["largest"] == max(sources.values())
    assert groups["mean"] == pytest.approx(len(entries) / len(sources), abs=1e-6)
    assert groups["entries beyond the first 20 of a source"] == 0
    counts = facts(modules, "counts")
    joint = [values[2] for _, _, values in entries]
    assert counts["occurrences in all"] == sum(joint)
    assert counts["entries seen once"] == pytest.approx(joint.count(1) / len(joint), abs=1e-6)
    sums = Counter()
    for source, _, values in entries:
        sums[source] += values[2]
    largest = {source: max(values[1] for name, _, values in entries if name == source) for source in sources}
    less = sum(sums[source] < largest[source] for source in sources)
    equal = sum(sums[source] == largest[source] for source in sources)
    assert counts["sources whose joint counts add up to less"] == pytest.approx(less / len(sources), abs=1e-6)
    assert counts["sources whose joint counts add up to c(s)"] == pytest.approx(equal / len(sources), abs=1e-6)
    lengths = facts(modules, "lengths")
    words = [(len(source.split()), len(target.split())) for source, target, _ in entries]
    assert lengths["mean words of a target"] == pytest.approx(np.mean([b for _, b in words]), abs=1e-6)
    assert lengths["entries with a one-word source"] == pytest.approx(np.mean([a == 1 for a, _ in words]), abs=1e-6)
    for name, needs in NEEDS.items():
        assert (modules[name]["verdict"], modules[name]["advice"]) == ("not measured", f"not measured: needs {needs}")
        assert f"not measured: needs {needs}" in page.sections[name]
    assert modules["lines"]["verdict"] == modules["size"]["verdict"] == "good"
    rows = page.tables["sample-entries"][1:]
    assert len(rows) == len(entries)
    assert [(row[1], row[2]) for row in rows] == [(source, target) for source, target, _ in entries]
    assert [float(row[7]) for row in rows] == joint


def test_removed_shares_are_those_of_prune(table, folder):
    modules, _ = report(table, "-m", folder / "model")
    entries = entries_of(table)
    result, total = facts(modules, "thresholds"), sum(values[2] for _, _, values in entries)
    for threshold in (0.4, 0.5, 0.6, 0.7, 0.8):
        small = folder / "small.gz"
        outcome = run_inside("prune", table, "-m", folder / "model", "-t", threshold, "-o", small, "-q")
        assert outcome.code == 0, outcome.err
        kept = entries_of(small)
        assert result[f"entries removed at {threshold}"] == pytest.approx(1 - len(kept) / len(entries), abs=1e-6)
        kept_total = sum(values[2] for _, _, values in kept)
        assert result[f"occurrences removed at {threshold}"] == pytest.approx(1 - kept_total / total, abs=1e-6)
    assert result["entries removed at 0.8"] > result["entries removed at 0.4"] > 0


def test_similarities_are_those_of_the_model(table, folder):
    modules, page = report(table, "-m", folder / "model")
    model = BilingualModel.load(folder / "model")
    entries = entries_of(table)
    sides = [
        Phrases.from_lists([vocabulary.ids(entry[side].encode()) for entry in entries])
        for side, vocabulary in enumerate((model.source_vocabulary, model.target_vocabulary))
    ]
    best = model.scorer().score_pairs(*sides).max(axis=1)
    result = facts(modules, "similarity")
    assert result["entries with a score"] == len(entries)
    assert result["median similarity of entries"] == pytest.approx(np.median(best), abs=1e-5)
    shown = [float(row[-1].replace("−", "-")) for row in page.tables["sample-entries"][1:]]
    assert shown == pytest.approx(best.tolist(), abs=0.0051)
    limit = facts(modules, "suspicious")["suspicious below a similarity of"]
    rows = [i for i, entry in enumerate(entries) if entry[2][2] >= 10 and best[i] < limit]
    assert facts(modules, "suspicious")["suspicious entries"] == len(rows) == 0


def test_suspicious_entries_are_frequent_and_unlike(folder, tmp_path):
    """Each source once with a random target: a frequent entry is suspicious if its similarity is low."""
    lines = [line.rsplit(b" ", 1)[0] + b" 12\n" for line in table_lines()[::3]]
    lines = [re.sub(rb"\|\|\| \d+ \d+ 12\n", b"||| 12 12 12\n", line) for line in sorted(lines)]
    table = write(tmp_path / "t", b"".join(lines))
    modules, page = report(table, "-m", folder / "model")
    limit = facts(modules, "suspicious")["suspicious below a similarity of"]
    similar = [float(row[-1].replace("−", "-")) for row in page.tables["sample-entries"][1:]]
    count = facts(modules, "suspicious")["suspicious entries"]
    assert count == pytest.approx(sum(value < limit for value in similar), abs=2)
    assert count > 0.5 * len(lines)
    assert modules["suspicious"]["verdict"] == "problem"
    assert len(page.tables["suspicious-entries"]) == 31


def test_coverage_of_a_text(folder, tmp_path):
    table = write(tmp_path / "t", b"a ||| v ||| 1\na b ||| v w ||| 1\nb c d ||| x ||| 1\n")
    source = write(tmp_path / "dev.src", b"a b c\na\n\nb  c\td q q\nb a b c d\n")
    target = write(tmp_path / "dev.trg", b"v w z\nv\n\nx x\nz\n")
    modules, page = report(table, "--dev", source, target)
    result = facts(modules, "coverage")
    assert (result["tokens"], result["sentences"]) == (14, 4)
    # One-word entries cover `a`; all entries together cover `a b`, `b c d` and `a`.
    assert result["tokens covered by one-word entries"] == pytest.approx(3 / 14, abs=1e-6)
    assert result["tokens covered by any entry"] == pytest.approx((2 + 1 + 3 + 4) / 14, abs=1e-6)
    assert result["sentences covered by one-word entries"] == 0.25
    assert result["sentences covered by any entry"] == 0.25
    assert result["tokens of the reference in some target"] == pytest.approx(5 / 7, abs=1e-6)
    assert page.tables["oov"][1:] == [["b", "4", "3"], ["c", "3", "2"], ["d", "2", "2"], ["q", "2", "0"]]
    assert modules["coverage"]["verdict"] == "problem"


def test_a_bitext_is_compared_with_the_table(tmp_path):
    table = write(
        tmp_path / "t",
        b"a ||| v ||| 1 1 1 1 ||| 0-0 ||| 2 2 2\na ||| w ||| 1 1 1 1 ||| 0-0 ||| 2 2 3\n"
        b"b ||| v ||| 1 1 1 1 ||| 0-0 ||| 2 2 1\nc ||| w ||| 1 1 1 1 ||| 0-0 ||| 1 1 1\n",
    )
    source, target = write(tmp_path / "s", b"a b\na d\nc\n"), write(tmp_path / "t2", b"v w\nv\nz\n")
    modules, _ = report(table, "--bitext", source, target)
    result = facts(modules, "bitext")
    assert result["sentence pairs"] == 3
    assert result["source tokens in some source of the table"] == 0.8
    assert result["target tokens in some target of the table"] == 0.75
    assert result["sentence pairs all of whose words are known on both sides"] == pytest.approx(1 / 3, abs=1e-6)
    # `c ||| w` never occurs; the counts of `a ||| w` are impossible, and bad counts are no joint counts.
    assert result["entries that occur together in a sentence pair"] == 0.75
    assert result["entries whose joint count is consistent"] == pytest.approx(2 / 3, abs=1e-6)
    assert modules["bitext"]["verdict"] == modules["counts"]["verdict"] == "problem"


def test_the_bitext_of_a_table_is_consistent_with_it(folder, tmp_path):
    aligned = b"".join(
        b" ".join(b"%d-%d" % (i, i) for i in range(min(map(len, map(bytes.split, pair))))) + b"\n"
        for pair in zip(*((folder / f"train.{side}").read_bytes().splitlines() for side in ("src", "trg")), strict=True)
    )
    sides = folder / "train.src", folder / "train.trg"
    outcome = run_inside("extract", *sides, write(tmp_path / "aligned", aligned), "-o", tmp_path / "extracted.gz", "-q")
    assert outcome.code == 0, outcome.err
    modules, _ = report(tmp_path / "extracted.gz", "--bitext", *sides)
    result = facts(modules, "bitext")
    assert result["entries that occur together in a sentence pair"] == 1
    assert result["entries whose joint count is consistent"] == 1
    assert facts(modules, "counts")["sources whose joint counts add up to c(s)"] == 1
    assert run_inside("report", tmp_path / "extracted.gz", "--bitext", sides[0], folder / "dev.trg").code == 1


@pytest.mark.parametrize(
    ("change", "verdict", "advice"),
    [
        (("", ""), "good", "4 scores and 4 weights; let the ini name it with `phrasetool moses-ini`"),
        (("path=table.gz", "path={table}"), "good", "fits TranslationModel0: 4 scores and 4 weights; nothing to do"),
        (("num-features=4", "num-features=5"), "problem", "expects 5 scores and the table has 4: set `num-features=4`"),
        (("0.3 0.2 0.4 0.1", "0.3 0.2 0.4"), "problem", "has 3 weights for TranslationModel0"),
        (("0.3 0.2 0.4 0.1", "0.3 0 0.4 0"), "check", "The weight of score 2, 4 is 0"),
        (("TranslationModel0= 0.3 0.2 0.4 0.1\n", ""), "check", "has no weights for TranslationModel0"),
    ],
)
def test_fit_to_an_ini(table, tmp_path, change, verdict, advice):
    ini = tmp_path / "moses.ini"
    ini.write_text((INI.replace(*change) if change[0] else INI).replace("{table}", str(table)))
    modules, _ = report(table, "--moses-ini", ini)
    assert modules["moses-ini"]["verdict"] == verdict
    assert advice in modules["moses-ini"]["advice"]


def test_comparison_with_a_pruned_table(table, folder):
    small = folder / "half.gz"
    outcome = run_inside(
        "prune", table, "--method", "count", "--target-size", "0.4", "--keep-top", 1, "-o", small, "-q"
    )
    assert outcome.code == 0, outcome.err
    modules, page = report(table, "--compare", small, "-m", folder / "model")
    entries, kept = entries_of(table), entries_of(small)
    kept_pairs = {entry[:2] for entry in kept}
    removed = [entry for entry in entries if entry[:2] not in kept_pairs]
    result = facts(modules, "compare")
    assert (result["removed entries"], result["entries of the smaller table"]) == (len(removed), len(kept))
    removed_share = sum(values[2] for *_, values in removed) / sum(values[2] for *_, values in entries)
    assert result["removed share of the occurrences"] == pytest.approx(removed_share, abs=1e-6)
    assert result["pairs of the smaller table that the table lacks"] == 0
    lost_sources = {entry[0] for entry in removed} - {entry[0] for entry in kept}
    assert result["sources without an entry now"] == len(lost_sources)
    order = sorted(range(len(removed)), key=lambda i: (-removed[i][2][2], i))[:30]
    assert [tuple(row[1:3]) for row in page.tables["removed-entries"][1:]] == [removed[i][:2] for i in order]


def test_length_ratios(tmp_path):
    """Bars to the left hold ratios down to 1:2, 1:3 and so on; bars to the right, ratios up to 2:1, 3:1 and so on."""
    sides = [(1, 1), (1, 2), (1, 3), (2, 3), (1, 4), (1, 8), (1, 9), (2, 1), (3, 1), (5, 1), (8, 1), (9, 1), (7, 7)]
    lines = [b"%s ||| %s ||| 1\n" % (b" ".join([b"a"] * a), b" ".join([b"b"] * b)) for a, b in sides]
    table = write(tmp_path / "t", b"".join(sorted(lines)))
    modules, _ = report(table)
    text = html.unescape((tmp_path / "report.html").read_text())
    bars = re.findall(r"<title>([<>]?\d:\d): (\d+) entries</title>", text)
    assert dict(bars) == {
        "<1:8": "1", "1:8": "1", "1:5": "1", "1:3": "1", "1:2": "1", "1:1": "2", "2:1": "2", "3:1": "1", "5:1": "1",
        "8:1": "1", ">8:1": "1",
    }  # fmt: skip
    unequal = sum(max(pair) > 3 * min(pair) for pair in sides) / len(sides)
    name = "entries whose sides differ by more than 3 to 1"
    assert facts(modules, "lengths")[name] == pytest.approx(unequal, abs=1e-6)


def test_removed_mutual_translations_are_reported(tmp_path):
    lines = [b"a ||| v ||| 1 ||| 0-0 ||| 200 200 150\n", b"b ||| w ||| 1 ||| 0-0 ||| 900 900 150\n"]
    table = write(
        tmp_path / "t", b"".join(lines) + b"b ||| x ||| 1 ||| 0-0 ||| 1 1 1\na b ||| y ||| 1 ||| 0-0 ||| 1 1 1\n"
    )
    kept = write(tmp_path / "kept", b"a ||| v ||| 1\nb ||| x ||| 1\na b ||| y ||| 1\n")
    result = facts(report(table, "--compare", kept)[0], "compare")
    assert result["removed mutual translations seen more than 100 times"] == 0
    lost = write(tmp_path / "lost", lines[1] + b"a ||| z ||| 1\n")
    result = facts(report(table, "--compare", lost)[0], "compare")
    assert result["removed mutual translations seen more than 100 times"] == 1


def test_lost_words_and_foreign_pairs_are_problems(tmp_path):
    table = write(tmp_path / "t", b"a ||| v ||| 1\nb ||| w ||| 1\nb a ||| x ||| 1\n")
    modules, _ = report(table, "--compare", write(tmp_path / "small", b"b ||| w ||| 1\n"))
    assert modules["compare"]["verdict"] == "problem"
    assert "1 single words have lost all their entries" in modules["compare"]["advice"]
    assert facts(modules, "compare")["sources without an entry now"] == 2
    modules, _ = report(table, "--compare", write(tmp_path / "other", b"b ||| z ||| 1\n"))
    assert "1 pairs of " in modules["compare"]["advice"]
    assert "are not in the table" in modules["compare"]["advice"]


def measured(path, **inputs):
    return measure_report(ReportRequest(str(path), **inputs))


def test_memory_of_the_decoder(table):
    estimate = {name: size for name, size, _ in memory_of(measured(table), points=0)}
    lines = [entry[0] for entry in entries_of(table)]
    targets = Symbols()
    phrases = InputPhrases.of("\n".join(dict.fromkeys(lines)).encode())
    loaded = build_table(load_entries(str(table), phrases, targets, 4), phrases.symbols, targets)
    arrays = [
        loaded.index.offsets, loaded.index.words, loaded.index.slots, loaded.first, loaded.targets.offsets,
        loaded.targets.words, loaded.scores, loaded.reordering, loaded.alignments.offsets, loaded.counts,
        loaded.numbers, loaded.tables,
    ]  # fmt: skip
    size = sum(array.nbytes for array in arrays)
    assert estimate["phrasetool decode, whole table"] == pytest.approx(size, rel=0.01)


@pytest.mark.requires_moses
def test_memory_of_probing(table, moses, tmp_path):
    outcome = run_inside(
        "binarize", table, "--to", "probing", "-o", tmp_path / "probing", "-q", "--moses-bin",
        moses("CreateProbingPT").rpartition("/")[0],
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    size = sum((tmp_path / "probing" / name).stat().st_size for name in ("probing_hash.dat", "TargetColl.dat"))
    estimate = {name: size for name, size, _ in memory_of(measured(table), points=0)}
    assert estimate["ProbingPT, in memory or mapped"] == size


def test_verdicts_by_limits():
    assert [verdict_above(value, (0.1, 0.5)) for value in (0, 0.1, 0.11, 0.5, 0.51)] == [
        GOOD, GOOD, CHECK, CHECK, PROBLEM
    ]  # fmt: skip


def test_auc_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(1)
    values, others = (rng.integers(0, 9, size).astype(np.float32) for size in (40, 30))
    naive = np.mean([(a > b) + (a == b) / 2 for a in values for b in others])
    assert auc_of(values, others) == pytest.approx(naive)
    assert np.isnan(auc_of(values, others[:0]))


@pytest.mark.parametrize(
    ("data", "verdicts"),
    [
        (b"", {"size": "problem", "lines": "problem", "sample": "not measured", "lengths": "not measured"}),
        (b"a ||| b ||| 0.5\n", {"size": "good", "lines": "good", "counts": "check"}),
        (b"a ||| b ||| 0.5\nnothing\na ||| c ||| x\n", {"size": "good", "lines": "problem"}),
        (b"a ||| b ||| nan 1 1 1 ||| 0-0 ||| 1 1 1\n", {"size": "problem", "lines": "problem"}),
        (b"a ||| b ||| 0.5\na ||| b ||| 0.5\n", {"lines": "check"}),
        (b"a ||| b ||| 0.5 1\nb ||| c ||| 0.5 1\na ||| d ||| 0.5 1\n", {"lines": "check"}),
        (b"a ||| b ||| -1\n", {"lines": "problem"}),
        (b"a ||| " + b" ".join([b"w"] * 300) + b" ||| 0.5\n", {"lengths": "problem"}),
        (b"a ||| b ||| 1 1 1 1 ||| 0-0 ||| 2 3\n", {"counts": "good"}),
        (b"".join(b"a ||| b%d ||| 0.5\n" % k for k in range(40)), {"entries-per-source": "problem"}),
        ("北京 ||| <script>alert(1)</script> é ||| 0.5\n".encode(), {"lines": "good"}),
        (b"caf\xe9 ||| \x01\x1b[0m ||| 0.5\n", {"size": "good"}),
    ],
)
def test_unusual_tables(data, verdicts, folder, tmp_path):
    table = write(tmp_path / "t", data)
    modules, page = report(table, "-m", folder / "model", "--compare", table, "--dev", table, table)
    assert {name: modules[name]["verdict"] for name in verdicts} == verdicts
    assert page.sections.keys() == {*modules, "about"}
    if b"script" in data:
        assert page.tables["sample-entries"][1][1:3] == ["北京", "<script>alert(1)</script> é"]


@pytest.mark.parametrize("name", ["hierarchical", "stray pipes", "groups that come back", "sparse", "two counts"])
def test_tables_of_moses(name, folder, tmp_path):
    table = write(tmp_path / "t", TABLES[name])
    modules, _ = report(table, "-m", folder / "model", "--compare", table)
    lines = TABLES[name].count(b"\n")
    assert facts(modules, "size")["entries"] == lines
    assert facts(modules, "compare")["removed entries"] == 0


def test_threads_and_blocks_change_no_byte(folder):
    inputs = {
        "model_folder": str(folder / "model"), "small": str(folder / "table.gz"),
        "bitext": (str(folder / "train.src"), str(folder / "train.trg")),
        "development": (str(folder / "dev.src"), str(folder / "dev.trg")),
    }  # fmt: skip
    pages = {
        report_table(ReportRequest(str(folder / "table.gz"), **inputs, threads=threads, block_bytes=size)).html
        for threads, size in ((1, 1 << 21), (1, 1 << 21), (2, 700))
    }
    assert len(pages) == 1


def test_a_table_that_became_shorter_is_refused(table):
    scan = ReportRequest(str(table)).scan(SILENT)
    assert lines_at(str(table), scan, [3, 0])[3].number == 4
    with pytest.raises(DataError, match="has changed while it was read"):
        lines_at(str(table), scan, [0, 10**6])


def test_the_seed_draws_the_sample(tmp_path):
    table = write(tmp_path / "t", b"".join(b"a%05d ||| b ||| 0.5\n" % k for k in range(2500)))
    samples = [report(table, "--seed", seed)[1].tables["sample-entries"] for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    assert len(samples[0]) == 2001
    lines = [int(row[0].replace(",", "")) for row in samples[0][1:]]
    assert lines == sorted(set(lines))


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named(package, table):
    code = f"import sys; sys.modules.update(markupsafe=None, {package}=None)\n"
    code += "from phrasetool_cli.main import main; main(sys.argv[1:])"
    outcome = subprocess.run(
        [sys.executable, "-c", code, "report", table, "-q"], capture_output=True, text=True, check=False,
        env=clean_environment(),
    )  # fmt: skip
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert re.search(r"this needs (jinja2|matplotlib), .* pip install 'phrasetool\[report\]'$", outcome.stderr.strip())


@for_each(
    ("arguments", "code", "message"),
    [
        (("-", "-o", "out"), 2, "inputs must be files"),
        (("T", "--compare", "-", "-o", "out"), 2, "inputs must be files"),
        (("none", "-o", "out"), 1, "No such file"),
        (("T", "-m", "none", "-o", "out"), 1, "no such model folder"),
        (("T", "-o", "T"), 1, "the output is the input"),
        (("T", "--dev", "T", "D", "-o", "out"), 1, "lines"),
        (("T", "--moses-ini", "T", "-o", "out"), 1, "T: there is no [feature] section"),
        (("D", "-o", "out"), 1, "D: "),
        (("P", "-o", "out"), 1, "P: looks like phrase pairs"),
    ],
)
def test_refusals(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = write(tmp_path / "T", b"a ||| b ||| 0.5\n").read_bytes()
    # A language model, which is certainly not a table.
    write(tmp_path / "D", b"\n\\data\\\nngram 1=1\n\n\\1-grams:\n-1\ta\n\n\\end\\\n")
    write(tmp_path / "P", b"a ||| b\n")
    outcome = run_inside("report", *arguments, "-q")
    assert (outcome.code, outcome.out) == (code, b"")
    assert message in outcome.message
    assert (tmp_path / "T").read_bytes() == data
    assert sorted(path.name for path in tmp_path.iterdir()) == ["D", "P", "T"]
