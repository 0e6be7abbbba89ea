"""Edits of a moses.ini make the requested changes, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.ini.editing import moved_to, new_moses_ini, with_relative_paths, with_table, with_weights
from moses_compat.ini.moses_ini import ENCODING
from moses_compat.ini.reading import parse_moses_ini, read_moses_ini
from moses_compat.ini.tables import check_table, phrase_tables
from phrasetool.errors import DataError, PhraseToolError
from tests.moses_compat.ini.ini_examples import VERSION_1, VERSION_2

EXAMPLES = {"1": VERSION_1, "2": VERSION_2}
# Variants of a file with the same meaning.
FORMS = {
    "as it is": lambda data: data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "latin-1": lambda data: data + b"# W\xf6rter \xff\xfe\n",
    "no last newline": lambda data: data.rstrip(b"\n"),
    "crlf, no last newline": lambda data: data.replace(b"\n", b"\r\n").rstrip(b"\r\n"),
}


@pytest.fixture
def read_bytes(tmp_path):
    def read(data):
        path = tmp_path / "moses.ini"
        path.write_bytes(data)
        return read_moses_ini(str(path))

    return read


def table_of(ini, name):
    return next(feature for feature in ini.features if feature.name == name)


def differences(before, after):
    """Return the removed lines and the added lines, in order; a changed line is in both."""
    import difflib

    result = list(difflib.ndiff(before.split("\n"), after.split("\n")))
    return [line[2:] for line in result if line[0] == "-"], [line[2:] for line in result if line[0] == "+"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", EXAMPLES)
def test_the_same_table_with_the_same_scores_changes_no_byte(read_bytes, version, form):
    data = FORMS[form](EXAMPLES[version].encode())
    ini = read_bytes(data)
    assert ini.version == int(version)
    tables = phrase_tables(ini)
    assert len(tables) == {"1": 2, "2": 3}[version]
    for table in tables:
        check_table(ini, table)
        columns = int(table.arguments["num-features"])
        for path in (None, table.arguments["path"]):
            assert with_table(ini, table, path, columns, 0.5).encode(*ENCODING) == data
    assert with_weights(ini, {}).encode(*ENCODING) == data
    assert with_weights(ini, ini.weights).encode(*ENCODING) == data


@pytest.mark.parametrize("form", FORMS)
def test_two_more_scores_in_version_2(read_bytes, form):
    data = FORMS[form](VERSION_2.encode())
    ini = read_bytes(data)
    changed = with_table(ini, table_of(ini, "TranslationModel0"), "/new/small.gz", 4).encode(*ENCODING)
    # Spaces, comments and the spelling of the old weights are kept.
    assert changed == data.replace(
        b"Model0  num-features=2 path=small.gz", b"Model0  num-features=4 path=/new/small.gz"
    ).replace(b"0.0639497231451392\t+1e-1", b"0.0639497231451392\t+1e-1 0 0")


def test_a_table_without_a_name_with_components(read_bytes):
    ini = read_bytes(VERSION_2.encode())
    changed = with_table(ini, table_of(ini, "PhraseDictionaryMemory0"), "d", 6, -0.25)
    assert changed == VERSION_2.replace(
        "path=/tables/domain.gz num-features=4 tuneable-components=true,false,true,true table",
        "path=d num-features=6 tuneable-components=true,false,true,true,true,true table",
    ).replace("= .2 0.20 2e-1 0.2", "= .2 0.20 2e-1 0.2 -0.25 -0.25")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_weights_that_moses_supplies_are_written_down(read_bytes, end):
    """An untuned table may lack a weight line: Moses then uses 1, but the new columns need other weights."""
    ini = read_bytes(VERSION_2.replace("\n", end).encode())
    table = table_of(ini, "Fixed")
    check_table(ini, table)
    removed, added = differences(ini.text, with_table(ini, table, "f", 3))
    carriage = end.removesuffix("\n")
    assert removed == [f"PhraseDictionaryMemory name=Fixed num-features=1 tuneable=false path=fixed{carriage}"]
    assert added == [
        f"PhraseDictionaryMemory name=Fixed num-features=3 tuneable=false path=f{carriage}", f"Fixed= 1 0 0{carriage}"
    ]  # fmt: skip
    again = read_bytes(with_table(ini, table, "f", 3).encode())
    assert again.weights["Fixed"] == [1, 0, 0]


def test_a_table_that_leaves_its_single_score_unsaid(read_bytes):
    text = "[feature]\nRuleTable path=t # one score\n[weight]\nRuleTable0= 0.5"
    ini = read_bytes(text.encode())
    check_table(ini, ini.features[0])
    expected = "[feature]\nRuleTable path=t num-features=2 # one score\n[weight]\nRuleTable0= 0.5 0.1"
    assert with_table(ini, ini.features[0], None, 2, 0.1) == expected


@pytest.mark.parametrize("form", FORMS)
def test_two_more_scores_in_version_1(read_bytes, form):
    data = FORMS[form](VERSION_1.encode())
    ini = read_bytes(data)
    end = b"\r\n" if "crlf" in form else b"\n"
    first, second = phrase_tables(ini)
    changed = with_table(ini, first, "/new/small.gz", 4).encode(*ENCODING)
    assert changed == data.replace(b"0 0 0 2  small.gz   # main", b"0 0 0 4  /new/small.gz   # main").replace(
        b" 0.10  # backward", b" 0.10  # backward" + end + b"0" + end + b"0"
    )
    changed = with_table(ini, second, "/new/glue", 2, 0.25).encode(*ENCODING)
    assert changed == data.replace(b"6 0 0 1 /tables/glue", b"6 0 0 2 /new/glue").replace(
        b"1.0" + end, b"1.0" + end + b"0.25" + end
    )


def test_weights_at_the_end_of_a_file_without_a_last_newline(read_bytes):
    ini = read_bytes(b"[ttable-file]\n0 0 0 1 t\n[weight-t]\n1")
    assert with_table(ini, ini.features[0], "t", 3) == "[ttable-file]\n0 0 0 3 t\n[weight-t]\n1\n0\n0"


@given(st.sampled_from(sorted(EXAMPLES)), st.sampled_from(sorted(FORMS)), st.integers(0, 2), st.integers(0, 5),
       st.floats(-1e3, 1e3), st.from_regex(r"[^\s#\x00]{1,20}", fullmatch=True))  # fmt: skip
def test_an_edit_is_read_back(workspace, version, form, number, more, weight, path):
    target = workspace / "edit.ini"
    target.write_bytes(FORMS[form](EXAMPLES[version].encode()))
    before = read_moses_ini(str(target))
    tables = phrase_tables(before)
    table = tables[number % len(tables)]
    columns = int(table.arguments["num-features"])
    text = with_table(before, table, path, columns + more, weight)
    target.write_bytes(text.encode(*ENCODING))
    after = read_moses_ini(str(target))
    changed = table_of(after, table.name)
    check_table(after, changed)
    assert changed.arguments["path"] == path
    assert changed.arguments["num-features"] == str(columns + more)
    weights = {**before.weights}
    if more:
        old = before.weights.get(table.name, [1.0])
        weights[table.name] = [*old, *[pytest.approx(weight, rel=1e-8)] * more]
    assert after.weights == weights
    assert [f.name for f in after.features] == [f.name for f in before.features]
    assert [f for f in after.features if f.name != table.name and f.section == "feature"] == [
        f for f in before.features if f.name != table.name and f.section == "feature"
    ]
    # All lines except those of the table and its weights are kept, in order.
    named = {table.line, before.weight_lines.get(table.name)}
    rest = [line for n, line in enumerate(before.lines, 1) if n not in named]
    lines = iter(after.lines)
    assert all(line in lines for line in rest)


LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "  ", "# [weight]", "#", "[more]", "[ a ] # x", "a=b", "\x0by\x85z\u2028", "a #b", "\r"]),
        st.text(st.characters(codec="utf-8", exclude_characters="\n["), max_size=12),
        st.binary(max_size=8).map(lambda data: data.translate(None, b"\n[").decode(*ENCODING)),
    ),
    max_size=10,
)


@given(LINES, LINES, st.sampled_from(sorted(EXAMPLES)), st.integers(1, 3))
def test_lines_around_and_unknown_sections_stay(workspace, head, tail, version, more):
    """An edit does not depend on the rest of the file."""
    text = "\n".join([*(f"# {line}" for line in head), EXAMPLES[version] + "[other]", *tail])
    path = workspace / "around.ini"
    path.write_bytes(text.encode(*ENCODING))
    ini = read_moses_ini(str(path))
    changed = with_table(ini, phrase_tables(ini)[0], "t", 2 + more)
    path.write_bytes(EXAMPLES[version].encode())
    plain = read_moses_ini(str(path))
    expected = with_table(plain, phrase_tables(plain)[0], "t", 2 + more)
    assert changed == text.replace(EXAMPLES[version], expected)


def test_weights_of_version_1_are_set_in_their_lines(read_bytes):
    ini = read_bytes(VERSION_1.encode())
    weights = {"KENLM0": [0.25], "WordPenalty0": [-0.5], "LexicalReordering0": [1, 2, 3, 4, 5, 0.36]}
    changed = with_weights(ini, weights, "tuned")
    expected = VERSION_1.replace("\n0.5\n", "\n0.25\n").replace("\n-1\n", "\n-0.5\n")
    for value, line in enumerate(["0.31", "0.32", "0.33", "0.34", "0.35"], 1):
        expected = expected.replace(f"\n{line}\n", f"\n{value}\n")
    assert changed == f"# tuned\n{expected}"
    with pytest.raises(DataError, match="KENLM0 has 1 weights, not 2"):
        with_weights(ini, {"KENLM0": [1, 2]})


@pytest.mark.parametrize("version", EXAMPLES)
def test_in_another_folder_relative_paths_become_absolute(read_bytes, tmp_path, version):
    ini = read_bytes(EXAMPLES[version].encode())
    moved = moved_to(ini, str(tmp_path / "elsewhere"))
    expected = EXAMPLES[version]
    for name in ("small.gz", "reordering.gz", "fixed"):
        expected = expected.replace(f"={name}", f"={tmp_path / name}").replace(f" {name}", f" {tmp_path / name}")
    assert moved.text == expected
    # An edit after the move keeps both changes.
    assert with_table(moved, phrase_tables(ini)[0], None, 3).count(str(tmp_path)) == expected.count(str(tmp_path))


def test_fewer_scores_are_refused(read_bytes):
    for text in EXAMPLES.values():
        ini = read_bytes(text.encode())
        table = phrase_tables(ini)[0]
        with pytest.raises(DataError, match=rf"moses.ini:{table.line}: {table.name} has 2 scores, but t only 1"):
            with_table(ini, table, "t", 1)


@pytest.mark.parametrize("path", ["a b", "a#b", "a\tb"])
def test_paths_that_no_ini_can_hold(read_bytes, path):
    ini = read_bytes(VERSION_2.encode())
    with pytest.raises(PhraseToolError, match="can have no blank and no #"):
        with_table(ini, phrase_tables(ini)[0], path, 2)
    with pytest.raises(PhraseToolError, match="no blank and no #"):
        new_moses_ini(path, 4, "lm", 3)


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("folder", ["new", "."])
def test_relative_paths_lead_to_the_same_files(tmp_path, read_bytes, example, folder):
    ini = read_bytes(EXAMPLES[example].encode())
    (tmp_path / folder).mkdir(exist_ok=True)
    ini_path = str(tmp_path / folder / "moses.ini")
    moved = moved_to(ini, str(tmp_path / folder))
    again = parse_moses_ini(ini_path, with_relative_paths(parse_moses_ini(ini_path, moved.text)))
    paths = [path for feature in again.features if (path := feature.arguments.get("path"))]
    assert paths
    assert not any(path.startswith("/") for path in paths)
    assert [*map(str, again.paths)] == [str((tmp_path / path).resolve()) for path in ini.paths]
    # A second call changes nothing.
    assert with_relative_paths(again) == again.text


def test_relative_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "a b").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a b")
    text = new_moses_ini(str(tmp_path / "link" / "t"), 4, str(tmp_path / "lm"), 3)
    with pytest.raises(PhraseToolError, match="a b/t: a path in a moses"):
        with_relative_paths(parse_moses_ini(str(tmp_path / "moses.ini"), text))
