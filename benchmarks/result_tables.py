"""Fill in the tables and numbers of README.md and docs/ from the results in benchmarks/results/.

    <!-- table: NAME -->           a table of TABLES, on the lines up to
    <!-- end -->

    <!-- value: NAME -->...<!-- end -->             a number or a word of VALUES, within a line
    <!-- value: PATH FORMAT -->...<!-- end -->      the value at a path of kept_results.find, with a Python format

README.md has no marks, which would distract readers of its source; it is written from docs/README.in.

Pages with such numbers must not contain decimal numbers outside of these marks, code and comments, so that none can
become stale.  `--check` changes nothing, and reports stale pages and typed numbers.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from page_tables import (
    augment,
    bleu,
    check,
    cluster,
    column,
    dirty,
    export,
    fault,
    improve,
    ladder,
    model,
    pivot,
    pruning,
    sentence,
    setting,
    speed,
    syntax,
    translator,
)
from page_tables.kept_results import find

ROOT = Path(__file__).resolve().parent.parent
_SUBJECTS = (
    augment, bleu, check, cluster, column, dirty, export, fault, improve, ladder, model, pivot, pruning, sentence,
    setting, speed, syntax, translator,
)  # fmt: skip
TABLES = {name: table for subject in _SUBJECTS for name, table in subject.TABLES.items()}
VALUES = {name: value for subject in _SUBJECTS for name, value in getattr(subject, "VALUES", {}).items()}
_MARKED = re.compile(r"<!-- (?P<kind>table|value): (?P<name>.+?) -->(?P<text>.*?)<!-- end -->", re.DOTALL)
# Text without results: marked text, code, comments, links, significance levels, thresholds and versions.
_NO_RESULT = re.compile(
    r"<!-- (?:table|value): .*?<!-- end -->|^```.*?^```|`[^`]*`|<!--.*?-->|\]\([^)]*\)"
    r"|p\s+[<=]\s+0\.0[15]|\b0\.[37]\b|\d+\.\d+\.\d+|Python \d\.\d+|Apache 2\.0",
    re.DOTALL | re.MULTILINE,
)
_FIGURE = re.compile(r"(?<![\w.])\d+\.\d+")


# The README with marks.
README = ROOT / "docs" / "README.in"


def pages() -> list[Path]:
    """Return all pages that may contain results."""
    return [README, *sorted((ROOT / "docs").rglob("*.md"))]


def value(name: str) -> str:
    """Return the text of a value.

    Raises:
        KeyError: no value has this name, and no result this path.
    """
    if name in VALUES:
        return VALUES[name]()
    path, _, form = name.rpartition(" ")
    return format(find(path), form)


def filled(text: str) -> str:
    """Return a page with all its tables and values filled in.

    Raises:
        KeyError: a name is unknown.
    """

    def fill(match: re.Match[str]) -> str:
        name = match["name"]
        new = f"\n\n{TABLES[name]()}\n\n" if match["kind"] == "table" else value(name)
        return f"<!-- {match['kind']}: {name} -->{new}<!-- end -->"

    return _MARKED.sub(fill, text)


def without_marks(text: str) -> str:
    """Return a filled page without marks."""
    return _MARKED.sub(lambda match: match["text"].strip() if match["kind"] == "table" else match["text"], text)


def typed(text: str) -> list[str]:
    """Return the decimal numbers of a page that are not filled in."""
    return _FIGURE.findall(_NO_RESULT.sub(" ", text))


def cut(text: str) -> bool:
    """Return whether a value begins a line, where its mark would end a Markdown paragraph."""
    return re.search(r"^ *(?:[*-] )?<!-- value: ", text, re.MULTILINE) is not None


def faults(page: Path, text: str) -> list[str]:
    """Return the problems of a page that must be fixed by hand."""
    problems = ["a value begins a line"] if cut(text) else []
    if page.parent.name == "results" or page == README:
        problems += [f"typed, not filled in: {number}" for number in typed(text)]
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something would change")
    check = parser.parse_args().check
    wrong = []
    for page in pages():
        text, name = page.read_text("utf-8"), page.relative_to(ROOT)
        wrong += [f"{name}: {fault}" for fault in faults(page, text)]
        outputs = {page: filled(text)}
        if page == README:
            outputs[ROOT / "README.md"] = without_marks(filled(text))
        for path, new in outputs.items():
            if path.exists() and path.read_text("utf-8") == new:
                continue
            if check:
                wrong.append(f"{path.relative_to(ROOT)}: stale; run `make documents`")
            else:
                path.write_text(new, "utf-8")
                print(f"{path.relative_to(ROOT)} changed")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
