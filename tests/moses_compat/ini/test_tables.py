"""Selection of a phrase table of a moses.ini, and tables that cannot be annotated."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.ini.editing import with_table
from moses_compat.ini.reading import read_moses_ini
from moses_compat.ini.tables import check_table, choose_table, find_table, phrase_tables
from phrasetool.errors import DataError, PhraseToolError
from tests.moses_compat.ini.ini_examples import VERSION_1, VERSION_2


def ini_of(tmp_path, *paths, kind="PhraseDictionaryMemory"):
    """Return an ini with a table for each path."""
    lines = [f"{kind} name=TranslationModel{i} path={path} num-features=2" for i, path in enumerate(paths)]
    weights = [f"TranslationModel{i}= 1 2" for i in range(len(paths))]
    return read_text(tmp_path, "\n".join(["[feature]", *lines, "Distortion", "[weight]", *weights, ""]))


def read_text(tmp_path, text):
    (tmp_path / "moses.ini").write_text(text)
    return read_moses_ini(str(tmp_path / "moses.ini"))


@pytest.fixture
def files(tmp_path, monkeypatch):
    for name in ("a.gz", "b.gz", "c", "d", "d.gz", "work/e.gz", "work/a.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"das ||| the ||| 1 1\n")
    (tmp_path / "link.gz").symlink_to(tmp_path / "b.gz")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "table", "number"),
    [
        (["../a.gz", "../b.gz"], "../b.gz", 1),
        (["a.gz", "b.gz"], "../b.gz", 1),  # next to the ini
        (["x.gz", "e.gz"], "e.gz", 1),  # in the working directory
        (["./b.gz", "{}/c"], "../c", 1),
        (["a", "b"], "../b.gz", 1),
        (["a.gz", "c.gz"], "../c", 1),
        (["d", "d.gz"], "../d", 0),  # the exact name takes precedence
        (["d", "d.gz"], "../d.gz", 1),
        (["a.gz", "b.gz"], "../link.gz", 1),
        (["link.gz", "c"], "../b.gz", 0),
    ],
)
def test_the_table_that_is_meant(files, paths, table, number):
    ini = ini_of(files, *(path.format(files) for path in paths))
    assert find_table(ini, table).name == f"TranslationModel{number}"
    assert choose_table(ini, table).name == f"TranslationModel{number}"
    check_table(ini, find_table(ini, table))


def test_none_or_several(files):
    ini = ini_of(files, "a.gz", "b.gz")
    listed = r"TranslationModel0 \(a.gz\), TranslationModel1 \(b.gz\)"
    with pytest.raises(DataError, match=rf"moses.ini: none of its phrase tables is ../c: {listed}$"):
        find_table(ini, "../c")
    with pytest.raises(DataError, match=rf"several phrase tables could be meant: {listed}$"):
        choose_table(ini, "../c")
    assert choose_table(ini, "../c", "TranslationModel1").name == "TranslationModel1"
    with pytest.raises(DataError, match=rf"there is no phrase table LM0: {listed}"):
        choose_table(ini, "../c", "LM0")
    twice = ini_of(files, "../b.gz", "../link.gz", "../a.gz")
    with pytest.raises(DataError, match=r"several .* tables are ../b.gz: .*0 \(../b.gz\), .*1 \(../link.gz\)"):
        find_table(twice, "../b.gz")
    # A single table is chosen whatever its name, because the file may be a pruned part of it.
    for find in (choose_table, find_table):
        assert find(ini_of(files, "a.gz"), "../c").name == "TranslationModel0"
    with pytest.raises(DataError, match="there is no phrase table: it names none"):
        choose_table(read_text(files, "[feature]\nDistortion\n"), "../c")


def test_tables_of_version_1(files):
    ini = read_text(files, VERSION_1.replace("small.gz", "b.gz"))
    assert [table.name for table in phrase_tables(ini)] == ["PhraseDictionaryMemory0", "PhraseDictionaryMemory1"]
    assert find_table(ini, "../b.gz").arguments["path"] == "b.gz"
    for name in ("PhraseDictionaryMemory1", "TranslationModel1"):
        assert choose_table(ini, "../c", name).arguments["path"] == "/tables/glue"


BINARY = [
    ("PhraseDictionaryCompact", "CompactPT"), ("PhraseDictionaryOnDisk", "OnDisk"),
    ("PhraseDictionaryBinary", "binary"), ("ProbingPT", "ProbingPT"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "called"), BINARY)
def test_binary_tables_are_refused(files, kind, called):
    ini = ini_of(files, "no-such", kind=kind)
    # A file that the ini does not name gets the more helpful message, too.
    result = find_table(ini, "../a.gz")
    message = rf"moses.ini:2: TranslationModel0 is a {called} table \(no-such\), which cannot be annotated: "
    with pytest.raises(DataError, match=f"{message}annotate the text table it was made from and binarise the result"):
        check_table(ini, result)


@pytest.mark.parametrize("number", [1, 2, 12])
def test_binary_tables_of_version_1_are_refused(files, number):
    ini = read_text(files, VERSION_1.replace("0 0 0 2  small.gz", f"{number} 0 0 2  pt"))
    with pytest.raises(DataError, match=r"moses.ini:12: PhraseDictionary\w+0 is a \w+ table \(pt\), .* as type 0"):
        check_table(ini, phrase_tables(ini)[0])
    ini = read_text(files, VERSION_1.replace("0 0 0 2  small.gz", "14 0 0 2  pt x y"))
    with pytest.raises(DataError, match="a PhraseDictionaryDynSuffixArray reads no text table"):
        check_table(ini, phrase_tables(ini)[0])


@pytest.mark.parametrize(
    ("path", "text"),
    [("pt.minphr", "pt"), ("pt.minphr", "pt.gz"), ("pt", "pt.gz"), ("folder", "phrase-table.gz"),
     ("folder", "folder/phrase-table.gz")],
)  # fmt: skip
def test_the_text_table_beside_it_is_named(tmp_path, path, text):
    (tmp_path / "folder").mkdir()
    (tmp_path / text).write_bytes(b"")
    ini = ini_of(tmp_path, path, kind="PhraseDictionaryCompact")
    with pytest.raises(DataError, match=rf"made from \({tmp_path / text} exists next to it\) and binarise"):
        check_table(ini, ini.features[0])
    if path.startswith("pt"):
        assert find_table(ini, str(tmp_path / text)) == ini.features[0]


TABLE = "PhraseDictionaryMemory name=TranslationModel0  num-features=2"
# Errors: (old text, new text, start of the reported line, message).
FAULTS = [
    (TABLE, TABLE.replace("=2", "=3"), TABLE[:40], r"has num-features=3, but line \d+ has 2 weights; Moses stops"),
    (TABLE, TABLE.replace("=2", "=x"), TABLE[:40], "expected num-features=NUMBER, found 'x'"),
    (TABLE, TABLE.replace("=2", "=0"), TABLE[:40], "num-features=0: a table without scores cannot get more"),
    # Features with only sparse scores have no dense score.
    ("Distortion\n", "Distortion\nGeneration num-features=0 path=x\nSparseFeature num-features=0\n", None, None),
    (TABLE, TABLE.replace("  num-features=2", ""), TABLE[:40], "num-features=1, but line"),
    (TABLE, f"{TABLE} tuneable-components=true", TABLE[:40], "num-features=2, but 1 tuneable-components"),
    (TABLE, f"{TABLE} components=a", None, None),
    ("num-features=6 type", "num-features=7 type", "LexicalReordering name", "has num-features=7, but line"),
    ("LM0", "LM_big", "KENLM", "LM_big: tuning treats a name with an underscore as a sparse feature; rename it"),
    ("TranslationModel0", "Translation_Model", "PhraseDictionaryMemory name=Tr", "treats a name with an underscore"),
    (" TranslationModel0=", "# TranslationModel0=", TABLE[:40], "has no line TranslationModel0=, and Moses"),
    ("path=small.gz", "x=y", TABLE[:40], "expected path=FILE"),
    ("Distortion\n", "PhraseDictionaryGroup members=A,TranslationModel0 num-features=4\n", "PhraseDictionaryGroup",
     "PhraseDictionaryGroup0 combines TranslationModel0 with other tables"),
    ("Distortion\n", "PhraseDictionaryMultiModel components=TranslationModel0\n", "PhraseDictionaryMultiModel",
     "combines TranslationModel0 with other tables"),
    ("[weight]\n", "[weight-overwrite]\nLM0= 1 TranslationModel0= 1 x\n[weight]\n", "LM0= 1 Tr",
     r"\[weight-overwrite\] also refers to TranslationModel0; edit the ini by hand"),
    ("[weight]\n", "[alternate-weight-setting]\nid=a\nTranslationModel0= 1 2\n[weight]\n", "TranslationModel0= 1 2",
     r"\[alternate-weight-setting\] also refers to TranslationModel0"),
    ("[weight]\n", "[feature-overwrite]\nTranslationModel0 path=x\n[weight]\n", "TranslationModel0 path",
     r"\[feature-overwrite\] also refers to TranslationModel0"),
    ("[weight]\n", "[feature-overwrite]\nTranslationModel0 table-limit=50\n[weight]\n", None, None),
    ("LM0 ", "LM_big tuneable=false ", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message"), FAULTS, ids=range(len(FAULTS)))
def test_an_ini_that_moses_or_its_tuning_would_refuse(tmp_path, old, new, line, message):
    assert old in VERSION_2
    text = VERSION_2.replace(old, new)
    ini = read_text(tmp_path, text)
    table = choose_table(ini, "x", next(t.name for t in phrase_tables(ini)))
    if message is None:
        check_table(ini, table)
        return
    number = next(n for n, content in enumerate(text.split("\n"), 1) if content.strip().startswith(line))
    with pytest.raises(DataError, match=f"{os.sep}moses.ini:{number}: .*{message}") as error:
        check_table(ini, table)
    assert "\n" not in str(error.value)


def test_tables_that_are_no_text(tmp_path):
    ini = read_text(tmp_path, "[feature]\nPhraseDictionaryTransliteration path=t num-features=1\n")
    with pytest.raises(DataError, match=r"moses.ini:2: .*a PhraseDictionaryTransliteration reads no text table"):
        check_table(ini, choose_table(ini, "t"))


@settings(max_examples=300)
@given(st.sampled_from([VERSION_1, VERSION_2]), st.data())
def test_a_damaged_ini_is_edited_or_refused_in_one_line(workspace, text, data):
    """Lost, doubled, moved or changed lines cause no other exception than an error for users."""
    lines = text.split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at, to = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        words = lines[at].split(" ")
        word = data.draw(st.integers(0, len(words) - 1))
        change = data.draw(st.sampled_from(["lose", "double", "move", "lose a word", "change a word", "cut"]))
        if change == "lose" and len(lines) > 1:
            lines.pop(at)
        elif change == "double":
            lines.insert(to, lines[at])
        elif change == "move":
            lines[at], lines[to] = lines[to], lines[at]
        elif change == "lose a word":
            lines[at] = " ".join(words[:word] + words[word + 1 :])
        elif change == "change a word":
            words[word] = data.draw(st.sampled_from(["", "0", "-1", "1", "x", "=", "a=", "=b", "[", "]", "²", "1e999"]))
            lines[at] = " ".join(words)
        else:
            lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))]
    path = workspace / "damaged.ini"
    path.write_text("\n".join(lines))
    message = str(path)
    try:
        ini = read_moses_ini(str(path))
        for table in phrase_tables(ini):
            check_table(ini, table)
            columns = int(table.arguments.get("num-features", "1"))
            path.write_text(with_table(ini, table, "t", columns + 1))
            again = read_moses_ini(str(path))
            assert len(again.weights[table.name]) == columns + 1
    except PhraseToolError as error:
        message = str(error)
    assert "\n" not in message
    assert message.startswith(str(path))
