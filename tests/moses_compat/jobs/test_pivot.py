"""Pivot tables compared with naive Python."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from moses_compat.jobs.pivot import PivotRequest, pivot
from moses_compat.lines.counts import CountUse
from moses_compat.measures.similarities import ColumnSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from phrasetool.watch import Watch
from tests.commands import read, write
from tests.moses_compat.jobs.toy_pivot_tables import reordering_text, table_text, triangle
from tests.naive_pivot import pivoted


class Listener(Watch):
    """A listener that records messages."""

    def __init__(self):
        self.said = []

    def say(self, message):
        self.said.append(message)


OPTIONS = st.fixed_dictionaries(
    {
        "keep": st.sampled_from([0, 1, 3]),
        "least": st.sampled_from([0.0, 0.25]),
        "least_counts": st.booleans(),
        "columns": st.sampled_from([(), ("paths",), ("agreement",), ("paths", "agreement")]),
        "similarities": st.booleans(),
        "orientations": st.booleans(),
    }
)


def request_of(folder, pivots, keep=100, similarities=False, orientations=False, **options):
    """Write the tables of the pivot languages and return a request for them."""
    tables, reordering = [], []
    for number, pair in enumerate(pivots):
        names = [folder / f"{number}-{side}.gz" for side in range(2)]
        tables.append([str(write(name, table_text(lines, 6))) for name, lines in zip(names, pair, strict=True)])
        names = [folder / f"{number}-{side}.reo" for side in range(2)]
        reordering.append([str(write(name, reordering_text(lines))) for name, lines in zip(names, pair, strict=True)])
    if similarities:
        options["similarities"] = [(ColumnSimilarities(4, 5),) * 2] * len(pivots)
    if orientations:
        options |= {"reordering_tables": reordering, "reordering_out": str(folder / "out.reo")}
    return PivotRequest(tables, str(folder / "out"), keep=keep, scan=TableScan(force=True), **options)


def lines_of(path):
    """Return the text and (source, target) -> the other fields of a file with sorted, unique lines."""
    text = read(path)
    lines = text.splitlines()
    assert lines == sorted(lines)
    rows = [[field.strip() for field in line.decode().split("|||")] for line in lines]
    result = {(row[0], row[1]): row[2:] for row in rows}
    assert len(result) == len(lines)
    return text, result


@settings(
    max_examples=20, deadline=None, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(seed=st.integers(0, 10**6), count=st.integers(1, 3), options=OPTIONS)
def test_all_ways_are_summed(tmp_path, seed, count, options):
    pivots = triangle(seed, count)
    request = request_of(tmp_path, pivots, **options)
    report = pivot(request)
    expected = pivoted(pivots, **options)
    text, result = lines_of(tmp_path / "out")
    assert list(result) == list(expected)
    for pair, entry in expected.items():
        scores, points, counts, *rest = result[pair]
        assert [float(score) for score in scores.split()] == pytest.approx(entry.scores, rel=2e-5)
        assert points == " ".join(f"{s}-{t}" for s, t in entry.points)
        assert [float(number) for number in counts.split()] == pytest.approx(entry.counts, rel=2e-5)
        assert rest == ["", ""]
        assert (
            float(counts.split()[2]) <= min(map(float, counts.split()[:2])) or min(entry.counts[:2]) < entry.counts[2]
        )
    if options["orientations"]:
        _, oriented = lines_of(tmp_path / "out.reo")
        assert list(oriented) == list(result)
        for pair, entry in expected.items():
            numbers = [float(number) for number in oriented[pair][0].split()]
            assert numbers == pytest.approx(entry.orientations, rel=2e-5, abs=1e-9)
            assert sum(numbers[:3]) == pytest.approx(1, abs=1e-5)
    assert (report.entries, report.paths) == (len(expected), sum(len(entry.ways) for entry in expected.values()))
    assert report.sources == len({source for source, _ in expected})
    assert report.without_alignment == sum(not entry.points for entry in expected.values())
    assert len(report.columns) + 4 == len(next(iter(result.values()))[0].split()) if result else True
    # Memory, threads and block size do not change the output.
    pivot(replace(request, memory=1, scan=TableScan(threads=2, block_bytes=60, force=True)))
    assert read(tmp_path / "out") == text


def test_coverage_of_the_pivot_language(tmp_path):
    ((first, second),) = triangle(3)
    (coverage,) = pivot(request_of(tmp_path, [(first, second)])).coverages
    known = {line.source for line in second}
    middle = {line.target for line in first}
    assert (coverage.phrases, coverage.found_phrases) == (len(middle), len(middle & known))
    assert coverage.words == sum(len(phrase.split()) for phrase in middle)
    assert coverage.found_words == sum(len(phrase.split()) for phrase in middle & known)
    mass = sum(line.scores[2] for line in first if line.target in known) / sum(line.scores[2] for line in first)
    assert coverage.mass == pytest.approx(mass)


def test_an_identity_table_changes_nothing(tmp_path):
    ((first, _),) = triangle(5)
    for line in first:
        line.points = [(k, k) for k in range(min(len(line.source.split()), len(line.target.split())))]
    same = [
        replace(first[0], source=target, target=target, scores=[1.0] * 6, counts=[9, 9, 99], orientations=[1, 0, 0] * 2,
                points=[(k, k) for k in range(len(target.split()))])
        for target in sorted({line.target for line in first})
    ]  # fmt: skip
    pivot(request_of(tmp_path, [(first, same)], similarities=True, orientations=True))
    _, result = lines_of(tmp_path / "out")
    _, oriented = lines_of(tmp_path / "out.reo")
    assert len(result) == len(first)
    for line in first:
        scores, points, *_ = result[line.source, line.target]
        numbers = [float(score) for score in scores.split()]
        assert numbers[:4] == pytest.approx(line.scores[:4], rel=1e-5)
        # Similarities have the scale of `annotate`; those of the best path are those of the only one.
        assert numbers[4:] == pytest.approx(line.scores[4:] * 2, rel=1e-5)
        assert points == " ".join(f"{s}-{t}" for s, t in line.points)
        orientations = [float(number) for number in oriented[line.source, line.target][0].split()]
        assert orientations == pytest.approx(line.orientations, abs=2e-6)


@pytest.mark.parametrize(
    ("turned", "said"),
    [
        ((0,), "0-0.gz swapped?"),
        ((1,), "0-1.gz swapped?"),
        ((0, 1), "are the two tables swapped, or source and target of both"),
        ("capitals", "ignoring case, many more would be"),
        ("other", "expected tables with the same tokenisation and case of the pivot language"),
    ],
)
def test_mismatched_tables(tmp_path, turned, said):
    tables = list(triangle(1)[0])
    for side in turned if isinstance(turned, tuple) else ():
        tables[side] = [replace(line, source=line.target, target=line.source) for line in tables[side]]
    if isinstance(turned, str):
        change = str.upper if turned == "capitals" else "@@".join
        tables[0] = [replace(line, target=change(f"{line.target} x")) for line in tables[0]]
        tables[1] = [replace(line, source=f"{line.source} x") for line in tables[1]]
    request = request_of(tmp_path, [tables])
    with pytest.raises(DataError, match=r"0-0.gz: 0% of its \d+ target phrases .* are sources of .*") as error:
        pivot(replace(request, scan=TableScan()))
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def change_of(number, old, new):
    """Return a function that changes a line of a table."""

    def changed(text):
        lines = text.splitlines(keepends=True)
        lines[number] = lines[number].replace(old, new, 1)
        return b"".join(lines)

    return changed


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("0-1.gz", lambda text: b"".join(reversed(text.splitlines(keepends=True))), "are not sorted bytewise"),
        ("0-0.gz", lambda text: b"".join(reversed(text.splitlines(keepends=True))), "are not sorted bytewise"),
        ("0-0.gz", lambda text: b"a ||| the ||| 0.5 0.5 ||| 0-0\n", ":1: the entries have 2 scores, expected the 4"),
        ("0-0.reo", lambda text: b"".join(text.splitlines(keepends=True)[:-1]), "is not in step with"),
        ("0-1.reo", lambda text: text + b"zz ||| x ||| 0.5 0.25 0.25 0.5 0.25 0.25\n", "lines, but"),
        ("0-1.reo", change_of(1, b" ||| ", b" x ||| "), ":2: is not in step with"),
        ("0-0.reo", lambda text: text.replace(b"\n", b" 1 0 0\n"), ":1: the entries have 9 scores, expected the 6"),
    ],
)  # fmt: skip
def test_bad_tables(tmp_path, name, change, said):
    request = request_of(tmp_path, triangle(2), orientations=True)
    path = tmp_path / name
    write(path, change(read(path)))
    with pytest.raises(DataError, match=name.replace(".", r"\.")) as error:
        pivot(request)
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.reo").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"a ||| the ||| 1 1 -0.5 1 ||| 0-0 ||| 1 1 1\n", "negative or infinite"),
        (b"a ||| the ||| 1 1 1 1 ||| 0-0 32768-0 ||| 1 1 1\n", "the point 32768-0 has a position beyond 32,767"),
        (b"a ||| the ||| 1 1 1 1 ||| 0:0 ||| 1 1 1\n", "expected alignment points like 0-0 1-2"),
        (b"a ||| the ||| 1 1 1 ||| 0-0 ||| 1 1 1\n", "3 scores, expected the 4 of Moses' training"),
        (b"a ||| the ||| 1 1 1 x ||| 0-0 ||| 1 1 1\n", "a score is not a number"),
    ],
)
def test_bad_lines(tmp_path, line, said):
    request = request_of(tmp_path, triangle(2))
    write(tmp_path / "0-0.gz", line)
    with pytest.raises(DataError, match=r"0-0\.gz:1: ") as error:
        pivot(request)
    assert said in str(error.value)


def test_tables_without_counts(tmp_path):
    """No counts are invented: a pair with a path through an entry without a count has unknown counts, too."""
    pivots = triangle(2)
    request = request_of(tmp_path, pivots)
    for side, table_lines in enumerate(pivots[0]):
        write(tmp_path / f"0-{side}.gz", b"".join(b"|||".join(line.split(b"|||")[:3]).strip() + b"\n"
                                                   for line in table_text(table_lines).splitlines()))  # fmt: skip
        for line in table_lines:
            line.points, line.counts = [], [math.nan] * 3
    watch = Listener()
    report = pivot(request, watch)
    expected = pivoted(pivots)
    _, result = lines_of(tmp_path / "out")
    assert report.without_alignment == len(result) == len(expected)
    for pair, entry in expected.items():
        counts = [float(number) for number in result[pair][2].split()]
        assert counts == ([] if math.isnan(sum(entry.counts)) else pytest.approx(entry.counts, rel=2e-5))
    assert sum(not counts.split() for _, _, counts, *_ in result.values()) > 0
    assert [line.partition(": ")[2] for line in watch.said] == [
        "the table has no joint counts: entries through them have no counts"
    ] * 2
    with pytest.raises(DataError, match=r"0-0.gz:1: the entry has no joint count; --counts needs"):
        pivot(replace(request, count_use=CountUse("--counts")))


def test_entries_without_counts(tmp_path):
    """The count of a source is known if any of its entries has it."""
    rng = random.Random(1)
    pivots = triangle(2, 2)
    for line in (line for tables in pivots for lines in tables for line in lines):
        if rng.random() < 0.5:
            line.counts = [math.nan] * 3
    pivot(request_of(tmp_path, pivots))
    expected = pivoted(pivots)
    _, result = lines_of(tmp_path / "out")
    for pair, entry in expected.items():
        counts = [float(number) for number in result[pair][2].split()]
        assert counts == ([] if math.isnan(sum(entry.counts)) else pytest.approx(entry.counts, rel=2e-5))
    assert sum(not counts.split() for _, _, counts, *_ in result.values()) not in {0, len(result)}


@pytest.mark.parametrize("counted", ["b", "z"])
def test_the_first_known_count_of_a_source(tmp_path, counted):
    end = "0.5 0.5 0.5 0.5 ||| 0-0 ||| {} ||| |||\n"
    known = end.format("10 10 5")
    first = sorted([f"a ||| {counted} ||| {known}", f"a ||| k ||| {end.format('')}"])
    names = [
        write(tmp_path / "ab", "".join(first).encode()),
        write(tmp_path / "bc", f"{counted} ||| c ||| {known}".encode()),
    ]
    pivot(PivotRequest([[str(name) for name in names]], str(tmp_path / "out"), scan=TableScan(force=True)))
    _, result = lines_of(tmp_path / "out")
    assert result["a", "c"][2] == "10 10 2.5"


def test_shuffled_tables_are_sorted_first(tmp_path):
    request = request_of(tmp_path, triangle(4), orientations=True)
    pivot(request)
    expected = [read(tmp_path / name) for name in ("out", "out.reo")]
    for path in [*tmp_path.glob("0-*")]:
        write(path, b"".join(reversed(read(path).splitlines(keepends=True))))
    pivot(replace(request, sort=True, folder=str(tmp_path)))
    assert [read(tmp_path / name) for name in ("out", "out.reo")] == expected
    assert {path.name for path in tmp_path.iterdir()} == {"0-0.gz", "0-1.gz", "0-0.reo", "0-1.reo", "out", "out.reo"}
