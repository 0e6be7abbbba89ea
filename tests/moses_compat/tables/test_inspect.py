import math
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moses_compat.files.streams import Input
from moses_compat.tables.inspect import _RULES, inspect_table, verdicts
from tests import naive
from tests.commands import write
from tests.pairwise import in_turn
from tests.tables import MALFORMED, OTHER_FILES, TABLES
from tests.test_promise import tables_with_oddities
from tests.variants import for_each

KEYS = {
    b"Counts", b"SourceLabels", b"TargetConstituentBoundariesLeft", b"TargetConstituentBoundariesRightAdjacent",
    b"TargetPreferences", b"Tree", b"SpanLength", b"NonTermContext", b"Orientation",
}  # fmt: skip

LOADERS = ["moses", "moses2", "processPhraseTableMin", "CreateOnDiskPt", "CreateProbingPT"]


def inspect(path, threads=1, block_bytes=1 << 21):
    with Input(str(path)) as source:
        return inspect_table(source, threads=threads, block_bytes=block_bytes)


def is_bracket(token):
    return len(token) >= 2 and token.startswith(b"[") and token.endswith(b"]")


def phrase_oddities(tokens):
    """Return names of oddities, tokens without the label, and positions of non-terminals."""
    names = set()
    if tokens and is_bracket(tokens[-1]):
        names.add("label at the end")
        tokens = tokens[:-1]
    positions = {i for i, token in enumerate(tokens) if is_bracket(token)}
    if any(b"[" not in tokens[i][1:] for i in positions):
        names.add("bracket inside")
    return names, tokens, positions


def token_oddities(tokens):
    """Return the names of the oddities of single tokens."""
    return {
        name
        for token in tokens
        for name, odd in (
            ("token in brackets", is_bracket(token)), ("empty brackets", token == b"[]"),
            ("token of bars", not token.strip(b"|")),
        )
        if odd
    }  # fmt: skip


def alignment_oddities(points, source, target, written):
    """Return the names of the oddities of an alignment.

    Args:
        points: its points.
        source, target: number of tokens and positions of the non-terminals of a side.
        written: numbers of tokens of both sides, with labels.
    """
    if any(not re.fullmatch(rb"\d+-\d+", point) for point in points):
        return {"bad alignment"}
    names = set() if points else {"no alignment"}
    pairs = [tuple(map(int, point.split(b"-"))) for point in points]
    if any(s >= source[0] or t >= target[0] for s, t in pairs):
        names.add("alignment beyond the phrase")
    if written[0] and any(s >= written[0] or t >= written[1] for s, t in pairs):
        names.add("alignment beyond the tokens")
    if any(t >= written[1] for _, t in pairs):
        names.add("alignment beyond the target")
    if pairs and not target[0]:
        names.add("alignment of an empty target")
    inside = [(s, t) for s, t in pairs if s < source[0] and t < target[0]]
    rules = [(s, t) for s, t in inside if s in source[1] or t in target[1]]
    # A repeated point pairs a non-terminal twice.
    fits = sorted(s for s, _ in rules) == sorted(source[1]) and sorted(t for _, t in rules) == sorted(target[1])
    return names if fits else names | {"non-terminals differ"}


def is_count(token):
    return naive.number_fault(token) == "ok" and 0 <= float(token) <= 1e11


def is_joint_possible(tokens):
    """Return whether the third count, if any, is consistent with the first two."""
    if len(tokens) < 3 or not is_count(tokens[2]):
        return True
    return not naive.impossible_joint_count(*(float(token) if is_count(token) else math.nan for token in tokens[:3]))


def property_oddities(field):
    pieces = [piece.strip(b" \t") for piece in field.split(b"{{")]
    names = {"properties"} if field.strip(b" \t") else set()
    if pieces[0]:
        names.add("bad property")
        return names
    for piece in pieces[1:]:
        key = re.match(rb"[^ {]*", piece)[0]
        if not piece[len(key) :].startswith(b" "):
            return names | {"bad property"}
        if key not in KEYS:
            names.add("unknown property")
    return names


def line_oddities(line, fault):
    """Return the names of the oddities of a line, by naive Python, and the tokens of its fields."""
    content = line.removesuffix(b"\n")
    names = set()
    if content.endswith(b"\r"):
        content = content[:-1]
        names.add("carriage return")
    fields = content.split(b"|||")
    tokens = [naive.tokens(field) for field in fields]
    names |= {"tab"} if b"\t" in content else set()
    names |= {"zero byte"} if b"\0" in content else set()
    if b"  " in re.sub(rb"(?<=\|)  (?=\|)", b" ", content):
        names.add("double space")
    if any(not field.endswith(b" ") for field in fields[:-1] if field is not fields[0] or field) or any(
        field and not field.startswith(b" ") for field in fields[1:]
    ):
        names.add("no space next to |||")
    if not content.strip(b" \t"):
        return (names | {"blank line"}) - {""}, None
    if fault != "ok":
        names.add({"few fields": "fewer than 3 fields", "not a number": "score is not a number", "nan": "score is NaN",
                   "wrong count": "a different number of scores"}[fault])  # fmt: skip
    if len(fields) < 3:
        return names - {""}, None
    sides = [phrase_oddities(side) for side in tokens[:2]]
    names |= sides[0][0] | sides[1][0]
    names |= {"empty source"} if not tokens[0] else set()
    names |= {"empty target"} if not tokens[1] else set()
    if any(field.strip(b" \t") != b" ".join(token) for field, token in zip(fields[:4], tokens, strict=False)):
        names.add("gap between tokens")
    if any(field.strip(b" \t") != b" ".join(token) for field, token in zip(fields[:2], tokens, strict=False)):
        names.add("gap inside a phrase")
    names |= token_oddities(tokens[0] + tokens[1])
    shapes = [(len(side[1]), side[2]) for side in sides]
    names |= alignment_oddities(tokens[3] if len(fields) > 3 else [], *shapes, [len(side) for side in tokens[:2]])
    if len(shapes[0][1]) != len(shapes[1][1]):
        names.add("non-terminals differ")
    if "non-terminals differ" in names and not shapes[0][1]:
        names ^= {"non-terminals differ", "non-terminal of the target alone"}
    if len(fields) > 4 and not (all(map(is_count, tokens[4])) and is_joint_possible(tokens[4])):
        names.add("bad counts")
    if len(fields) > 5 and tokens[5]:
        values = tokens[5][1::2]
        names.add("sparse scores")
        if len(tokens[5]) % 2 or any(naive.number_fault(value) != "ok" for value in values):
            names.add("bad sparse scores")
    if len(fields) > 6:
        names |= property_oddities(fields[6])
    if len(fields) > 7:
        names.add("more than 7 fields")
    return names - {""}, tokens


def naive_oddities(table):
    """Return name -> (number of lines, first line)."""
    collected = {}

    def note(name, number):
        lines, first = collected.get(name, (0, number))
        collected[name] = (lines + 1, first)

    parsed, groups = naive.parse_table(table, naive.first_score_count(table))
    lines = naive.split_lines(table)
    seen_sources = set()
    for first, last in pairwise(groups):
        pairs = set()
        key = None
        for i in range(first, last):
            names, tokens = line_oddities(lines[i], parsed[i].fault)
            for name in names:
                note(name, i + 1)
            if parsed[i].fault == "ok":
                for name, wrong in (
                    ("zero score", lambda x: 0 <= x <= 3.7e-44),
                    ("negative score", lambda x: x < 0),
                    ("infinite score", lambda x: x > 3.4028234663852886e38),
                ):
                    if any(map(wrong, parsed[i].values)):
                        note(name, i + 1)
            try:
                lines[i].decode()
            except UnicodeDecodeError:
                note("not UTF-8", i + 1)
            if i and lines[i].removesuffix(b"\n") < lines[i - 1].removesuffix(b"\n"):
                note("out of order", i + 1)
            if tokens is not None:
                pair = tuple(tokens[0]), tuple(tokens[1])
                if pair in pairs:
                    note("duplicate pair", i + 1)
                pairs.add(pair)
            if i == first and tokens is not None:
                key = tuple(tokens[0])
        if key is not None:
            if key in seen_sources:
                note("source not contiguous", first + 1)
            seen_sources.add(key)
    return collected


def found_oddities(summary):
    first_line = {
        "empty first line", "first line of one token", "first line of the Hiero format", "out of order without blanks",
        "first words come back", "too many beginnings",
    }  # fmt: skip
    return {
        name: (oddity.lines, oddity.first)
        for name, oddity in summary.oddities.items()
        if "|" not in name.replace("|||", "") and "factors" not in name and name not in first_line
    }


@for_each(("name", "ways"), in_turn(sorted(TABLES), [(1, 1 << 21), (2, 1), (2, 300)], 2))
def test_every_table(name, tmp_path, ways):
    table = TABLES[name]
    summary, in_blocks = (inspect(write(tmp_path / "t", table), *arguments) for arguments in ways)
    assert found_oddities(summary) == found_oddities(in_blocks) == naive_oddities(table)
    lines = naive.split_lines(table)
    assert summary.entries == len(lines)
    assert summary.bytes == len(table)
    assert summary.fields == Counter(len(line.split(b"|||")) for line in lines)
    parsed, groups = naive.parse_table(table, naive.first_score_count(table))
    assert summary.sources == len(groups) - 1 if table else summary.sources == 0
    good = [line.values for line in parsed if line.fault == "ok"]
    assert summary.scores == (len(good[0]) if good else -1)
    for column, values in zip(summary.columns, zip(*good, strict=True), strict=True):
        assert (column.smallest, column.largest) == pytest.approx((min(values), max(values)), rel=1e-12)
        assert math.isclose(column.total, sum(values), rel_tol=1e-9)
        assert column.histogram.sum() == len(values)


@settings(max_examples=80)
@given(tables_with_oddities(), st.sampled_from([1, 100, 1 << 21]))
@example(MALFORMED, 1)
def test_random_tables(workspace, table, size):
    summary = inspect(write(workspace / "inspect-in", table), 2, size)
    assert found_oddities(summary) == naive_oddities(table)


def test_factors(tmp_path):
    for name, expected in {
        "factored source": (3, 1), "factored target": (1, 2), "factored both": (3, 2), "seven fields": (1, 1),
    }.items():  # fmt: skip
        assert inspect(write(tmp_path / "t", TABLES[name])).factors == expected
    summary = inspect(write(tmp_path / "t", TABLES["stray pipes"]), 2, 1)
    result = {name: (o.lines, o.first) for name, o in summary.oddities.items() if " in a " in name}
    assert result == {
        "stray | in a source": (2, 1),
        "stray | in a target": (1, 2),
        "too many factors in a target": (1, 5),
    }
    few = TABLES["factored both"].replace(b"das|NN|x", b"das")
    oddity = inspect(write(tmp_path / "t", few)).oddities["too few factors in a source"]
    assert oddity.lines == few.count(b"das") == sum(line.count(b"das") for line in few.splitlines()[oddity.first - 1 :])


def test_a_source_comes_back_after_a_large_group(tmp_path):
    table = TABLES["one group"] + b"haus ||| house ||| 1 1\n" + b"das ||| a ||| 1 1\n"
    for size in (1, 1 << 21):
        assert found_oddities(inspect(write(tmp_path / "t", table), 1, size))["source not contiguous"] == (1, 302)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("seven fields", "phrase table"), ("hierarchical", "rule table (SCFG)"), ("glue", "rule table (SCFG)"),
        ("empty", "empty table"), ("brackets", "rule table (SCFG)"), ("bracket tokens", "phrase table"),
        ("reordering", "phrase table"),
    ],
)  # fmt: skip
def test_kinds(tmp_path, name, kind):
    assert inspect(write(tmp_path / "t", TABLES[name])).kind == kind


def test_kinds_of_other_files(tmp_path):
    for name in ("extract", "lexical", "n-best", "arpa", "ini"):
        summary = inspect(write(tmp_path / "t", OTHER_FILES[name]))
        assert summary.entries == summary.faults
        assert "table" not in summary.kind or "translation" in summary.kind
    assert inspect(write(tmp_path / "t", b"one\ntwo\n")).kind == "plain text without ||| between fields"
    assert inspect(write(tmp_path / "t", OTHER_FILES["pairs"])).kind == "phrase pairs with counts"
    orientations = b"a ||| b ||| 0.2 0.2 0.6 0.1 0.2 0.7\na ||| c ||| 0.25 0.25 0.5 0.4 0.3 0.3 \n"
    assert inspect(write(tmp_path / "t", orientations)).kind == "phrase table, or a reordering table"


def test_first_lines(tmp_path):
    for text, name in (
        (b"\na ||| b ||| 1\n", "empty first line"),
        (b"1\na ||| b ||| 1\n", "first line of one token"),
        (b"[X] ||| a ||| 1 ||| 0-0\n", "first line of the Hiero format"),
    ):
        assert inspect(write(tmp_path / "t", text)).oddities[name].first == 1


def judge(tmp_path, text):
    with Input(str(write(tmp_path / "t", text))) as source:
        return {verdict.loader: verdict for verdict in verdicts(inspect_table(source))}


GOOD = b"a ||| b ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| |||\na ||| c ||| 0.5 1 1 1 ||| 0-0 ||| 1 1 1 ||| |||\n"


def test_a_table_that_every_program_loads(tmp_path):
    result = judge(tmp_path, GOOD)
    assert list(result) == LOADERS
    assert {verdict.answer for verdict in result.values()} == {"yes"}
    assert [verdict.options for verdict in result.values()] == [
        "num-features=4", "num-features=4", "-nscores 4", "1 1 4 100 2", "--num-scores 4",
    ]  # fmt: skip


# A third line, and verdicts for moses, moses2, processPhraseTableMin, CreateOnDiskPt and CreateProbingPT.
@pytest.mark.parametrize(
    ("line", "answers"),
    [
        (b"a ||| d ||| 0.5 0.5 0.5 0 ||| 0-0", "but but but but but"),
        (b"a ||| d ||| 0.5 0.5 0.5 -1 ||| 0-0", "no no no no no"),
        (b"a ||| d ||| 0.5 0.5 0.5 x ||| 0-0", "no but but but but"),
        (b"a ||| d ||| 0.5 0.5 0.5 nan ||| 0-0", "no no but but no"),
        (b"a ||| d ||| 0.5 0.5 0.5 inf ||| 0-0", "but but but but but"),
        (b"a ||| d ||| 0.5 0.5 0.5 ||| 0-0", "no no no no no"),
        (b"a ||| d", "no no no no no"),
        (b"", "no no no no no"),
        (b"a ||| d ||| 0.5 0.5 0.5 1", "yes yes but yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0:0", "no no but but but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 4-0", "but yes no yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-4", "but but no no yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0\r", "yes yes yes yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1\r", "yes yes but yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1\r", "yes yes yes yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| |||\r", "yes yes yes yes yes"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| x 1 |||", "yes but but yes but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| x |||", "but but but yes but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| ||| {{Counts 1 1 1}}", "yes but but yes but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| ||| {{Sim 1}}", "no but but no but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| ||| sim", "no but but no but"),
        (b"a ||| d ||| 0.5 0.5 0.5 1 ||| 0-0 ||| 1 1 1 ||| ||| ||| 5", "yes yes yes yes yes"),
        (b"a ||| d [x] ||| 0.5 0.5 0.5 1 ||| 0-0", "but yes yes but yes"),
        (b"a ||| d [x] e ||| 0.5 0.5 0.5 1 ||| 0-0", "no yes yes but yes"),
        (b"a ||| d|e ||| 0.5 0.5 0.5 1 ||| 0-0", "but but but no but"),
        (b"a ||| d|e|f|g|h ||| 0.5 0.5 0.5 1 ||| 0-0", "no but no no but"),
        (b"a ||| d  e ||| 0.5 0.5 0.5 1 ||| 0-0", "yes yes no yes no"),
        (b"a ||| d\te ||| 0.5 0.5 0.5 1 ||| 0-0", "yes yes no no no"),
        (b"a |||d ||| 0.5 0.5 0.5 1 ||| 0-0", "yes yes yes no yes"),
        (b"a ||| c ||| 0.5 1 1 1 ||| 0-0 ||| 2", "yes yes but yes yes"),
        (b"a ||| a ||| 0.5 0.5 0.5 1 ||| 0-0", "yes yes no yes yes"),
        (b"b ||| a ||| 0.5 0.5 0.5 1 ||| 0-0\na  ||| q ||| 1 1 1 1 ||| 0-0", "yes yes no no no"),
    ],
    ids=str,
)
def test_one_line(tmp_path, line, answers):
    result = judge(tmp_path, GOOD + line + b"\n")
    assert " ".join(verdict.answer.split()[-1] for verdict in result.values()) == answers
    for verdict in result.values():
        assert all(objection.first >= 3 for objection in verdict.objections)


def test_loaders_and_first_lines(tmp_path):
    for first in (b"", b"1"):
        objection = judge(tmp_path, first + b"\n" + GOOD)["moses"].objections[0]
        assert (objection.first, objection.stops) == (1, True)
        assert "first line" in objection.reason


def test_rule_tables(tmp_path):
    result = judge(tmp_path, TABLES["hierarchical"])
    assert [verdict.answer for verdict in result.values()] == ["yes", "yes", "no", "yes", "no"]
    assert "room for 1.2 keys a source" in result["CreateProbingPT"].objections[0].reason
    assert judge(tmp_path, TABLES["glue one count"])["CreateProbingPT"].answer == "yes"
    assert result["CreateProbingPT"].options == "--num-scores 2 --scfg"
    differ = judge(tmp_path, TABLES["non-terminals differ"])["moses"]
    assert (differ.answer, differ.objections[0].first, differ.objections[0].lines) == ("no", 1, 5)


def test_loaders_of_factored_tables(tmp_path):
    result = judge(tmp_path, TABLES["factored both"])
    assert result["moses"].options == "num-features=4 input-factor=0,1,2 output-factor=0,1"
    assert result["CreateOnDiskPt"].options == "3 2 4 100 2"
    assert judge(tmp_path, TABLES["two counts"])["processPhraseTableMin"].options == "-nscores 5 -rankscore 2"


def test_too_many_factors_in_most_tokens(tmp_path):
    for side, table in {"source": b"a|b|c|d|e ||| x", "target": b"x ||| a|b|c|d|e|f"}.items():
        result = judge(tmp_path, table + b" ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\n")
        assert result["moses"].answer == "no"
        assert [one.reason for one in result["moses"].objections] == [f"a {side} token with more than 4 factors"]
        assert result["CreateOnDiskPt"].answer == ("no" if side == "target" else "yes, but")


def test_no_table(tmp_path):
    for text in (OTHER_FILES["lexical"], TABLES["empty"]):
        assert judge(tmp_path, text) == {}


def test_rules_for_programs_name_oddities_that_inspect_reports(tmp_path):
    names = set()
    more_tables = [b"\n" + GOOD, b"1\n" + GOOD, b"[X] ||| a ||| 1\n", TABLES["factored both"].replace(b"|NN|x", b"", 1)]
    more_tables += [TABLES["factored target"].replace(b"|NN", b"", 1), b"a ||| x ||| 1 ||| 0-0\r\n", MALFORMED]
    more_tables += [word + b" ||| x ||| 1\na ||| y ||| 1\nb ||| x ||| 1\n" for word in (b"a|b|c|d|e", b"a|b")]
    more_tables += [b"a ||| x|1|2|3|4 ||| 1\na ||| y ||| 1\nb ||| x ||| 1\n", b"a ||| x [X][X] y ||| 1\n"]
    more_tables += [b"a ||| || [] ||| 1\n", b"a ||| \0 ||| 1\nb ||| x ||| 1\na b ||| x ||| 1\n"]
    more_tables += [b"\xef\xbb\xbf" + GOOD]
    for text in [*TABLES.values(), *more_tables]:
        with Input(str(write(tmp_path / "t", text))) as source:
            names |= inspect_table(source).oddities.keys()
    assert {name for stops, minds in _RULES.values() for name in {**stops, **minds}} <= names
