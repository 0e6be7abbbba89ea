"""User text is split like in Moses, by `phrasetool.text_splitting`; Python's methods split at more characters."""

import ast

from phrasetool.text_splitting import lines_with_ends, single_spaced, split_lines, split_words, tabs_as_spaces
from tests.test_architecture import PATHS, nodes
from tests.variants import for_each

SPLITTING = {"split", "rsplit", "strip", "rstrip", "lstrip"}
# Harmless uses of Python's white space, which do not read user text: module -> (what is split, number of uses).
ALLOWED = {
    "phrasetool.errors": ("messages of libraries", 2),
    "phrasetool.pruning.methods": ("an option", 2),
    "phrasetool.kernels.building": ("files and settings of our own", 3),
    "moses_compat.pages.html": ("text that is displayed", 1),
    "moses_compat.pages.drawing": ("numbers of a drawing", 1),
    "moses_compat.experiments.report.pages": ("text that is displayed", 2),
    "moses_compat.experiments.settings": ("a setting", 1),
    "phrasetool.smt.aligning.eflomal": ("points that eflomal wrote, and its messages", 3),
    "phrasetool.smt.evaluation.bleu": ("words as sacrebleu counts them", 1),
    "phrasetool.smt.evaluation.metrics": ("words as sacrebleu counts them", 2),
    "moses_compat.lines.fields": ("words that readers of dictionaries split", 1),
    "moses_compat.files.kinds": ("the configuration of a binary table", 2),
    "moses_compat.tables.binarize": ("messages and settings of Moses' programs", 2),
    "moses_compat.tables.canonical": ("messages of a program", 1),
    "moses_compat.tables.parquet": ("messages of a library", 1),
    "moses_compat.engine.development_check": ("punctuation", 1),
    "moses_compat.engine.language_models": ("messages of a program", 1),
    "moses_compat.experiments.experiment": ("the name of the processor", 1),
    "moses_compat.experiments.build_commands": ("messages of a program", 1),
    "phrasetool_cli.parameter_types": ("an option", 3),
    "phrasetool_cli.main": ("a message", 1),
    "phrasetool_cli.commands.lm": ("an option", 1),
    "phrasetool_cli.config_file": ("a configuration file in TOML", 3),
}
# Number of files read as text by module; Python then treats a carriage return as a line end, too.
READ_AS_TEXT = {
    "phrasetool.kernels.building": 1, "phrasetool.models.saved_model": 1, "phrasetool.text_encoders.folder_safety": 1,
    "phrasetool.text_encoders.vector_store": 1, "moses_compat.pages.html": 1,
    "moses_compat.jobs.table_parts": 2, "moses_compat.tables.binarize": 1, "moses_compat.files.kinds": 1,
    "moses_compat.files.finished_work": 2, "moses_compat.experiments.build_commands": 1,
    "moses_compat.experiments.experiment": 2, "phrasetool_cli.train.run": 1, "phrasetool_cli.commands.demo": 5,
    "phrasetool_cli.process": 1,
}  # fmt: skip


def without_separator(node):
    """Return whether a call splits at or strips Python's default white space."""
    first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg in ("sep", "chars")), None)
    return first is None or (isinstance(first, ast.Constant) and first.value is None)


def splits_at_white_space(tree_nodes):
    """Yield nodes that split at, strip or search for Python's white space."""
    with_separator = {
        node.func for node in tree_nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not without_separator(node)
    }  # fmt: skip
    documents = {
        node.body[0].value for node in tree_nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr)
    }  # fmt: skip
    for node in tree_nodes:
        if isinstance(node, ast.Attribute):
            if node.attr in ("splitlines", "isspace") or (node.attr in SPLITTING and node not in with_separator):
                yield node
        elif isinstance(node, ast.Constant) and node not in documents and isinstance(node.value, str | bytes):
            if ("\\s" if isinstance(node.value, str) else b"\\s") in node.value:
                yield node


def reads_as_text(tree_nodes):
    """Yield calls that open or read a file as text with Python's line ends."""
    for node in tree_nodes:
        if not isinstance(node, ast.Call) or any(keyword.arg == "newline" for keyword in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        of_os = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "os"
        if name == "read_text" or (name == "open" and not of_os and _is_text_mode(node)):
            yield node


def _is_text_mode(call):
    """Return whether an `open` reads text; its mode is the argument that consists only of mode letters."""
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    modes = [
        value.value for value in values
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and set(value.value) <= set("rwaxbt+")
    ]  # fmt: skip
    return not modes or ("b" not in modes[0] and not set(modes[0]) & set("wax"))


def test_only_text_splitting_splits_user_text():
    line_numbers = {name: [n.lineno for n in splits_at_white_space(nodes(path))] for name, path in PATHS.items()}
    allowed = {name: count for name, (_, count) in ALLOWED.items()}
    violations = {name: sorted(lines) for name, lines in line_numbers.items() if len(lines) > allowed.get(name, 0)}
    assert not violations, "use phrasetool.text_splitting"


def test_user_text_is_read_as_bytes():
    counts = {name: len(list(reads_as_text(nodes(path)))) for name, path in PATHS.items()}
    assert not {name: count for name, count in counts.items() if count > READ_AS_TEXT.get(name, 0)}


@for_each(
    ("code", "count"),
    [
        ("a.split()", 1), ("a.split(None, 1)", 1), ("a.split(sep=None)", 1), ("a.split('x')", 0),
        ("map(str.split, a)", 1),
        ("a.rsplit(maxsplit=1)", 1), ("a.splitlines(True)", 1), ("a.strip()", 1), ("a.strip(' ')", 0),
        ("a.isspace()", 1), ("filter(str.isspace, a)", 1), (r"re.split('\\s+', a)", 1), (r"re.split(b'\\s+', a)", 1),
        ("def f():\n    '''\\\\s'''", 0),
    ],
)  # fmt: skip
def test_splitting_at_white_space_is_detected(code, count):
    assert len(list(splits_at_white_space(list(ast.walk(ast.parse(code)))))) == count


@for_each(
    ("code", "count"),
    [
        ("open(a)", 1), ("open(a, 'rb')", 0), ("open(a, encoding='utf-8')", 1), ("open(a, newline='\\n')", 0),
        ("a.open()", 1), ("a.open('w')", 0), ("a.open(mode='rt')", 1), ("gzip.open(a, 'rt')", 1), ("a.read_text()", 1),
        ("os.open(a, 0)", 0),
    ],
)  # fmt: skip
def test_reading_as_text_is_detected(code, count):
    assert len(list(reads_as_text(ast.walk(ast.parse(code))))) == count


@for_each("space", ["\xa0", "\u3000", "\u2028", "\x85", "\v", "\f", "\x1c", "\r"])
def test_only_spaces_and_tabs_separate_words(space):
    word = f"a{space}b"
    line = f" \t{word}  c\t{word}\t "
    for convert, words in ((str, [word, "c", word]), (str.encode, [word.encode(), b"c", word.encode()])):
        assert split_words(convert(line)) == words
        assert split_words(single_spaced(convert(line))) == words
        assert single_spaced(convert(line)) == convert(" ").join(words)
    text = f"{word}\n\n{word}\r\nlast{space}"
    assert split_lines(text) == [word, "", word, f"last{space}".removesuffix("\r")]
    assert split_lines(text.encode()) == [line.encode() for line in split_lines(text)]
    assert "".join(lines_with_ends(text)) == text
    assert lines_with_ends(text.encode())[:3] == [word.encode() + b"\n", b"\n", word.encode() + b"\r\n"]
    assert tabs_as_spaces(line.encode()) == [f"{word}  c {word}".encode()]


def test_empty_text_and_empty_lines():
    assert split_lines(b"") == lines_with_ends(b"") == []
    assert split_lines("\n") == [""]
    assert split_lines(b"a\n") == [b"a"]
