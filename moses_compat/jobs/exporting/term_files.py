"""Files of term pairs: with tabs, with commas (RFC 4180), or TBX (ISO 30042:2019), which tools for translators read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from moses_compat.files.streams import Output
from phrasetool.export.terms import TermPair

FORMS = ("tsv", "csv", "tbx")
_COLUMNS = ("source", "target", "worth", "p(target|source)", "p(source|target)", "count")
# What XML 1.0 does not allow.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_terms(output: Output, pairs: Sequence[TermPair], form: str, languages: tuple[str, str]) -> None:
    """Write pairs.

    Args:
        form: `tsv`, `csv` or `tbx`.
        languages: codes of both, for TBX.

    Raises:
        ValueError: another form.
    """
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}; expected one of {', '.join(FORMS)}")
    text = _tbx(pairs, languages) if form == "tbx" else _tsv(pairs) if form == "tsv" else _csv(pairs)
    output.write_text(text.encode("utf-8", "surrogateescape"))


def _rows(pairs: Sequence[TermPair]) -> list[list[str]]:
    similar = any(pair.similarity is not None for pair in pairs)
    rows = [[*_COLUMNS, *(["similarity"] if similar else [])]]
    for pair in pairs:
        numbers = [pair.worth, pair.direct, pair.inverse, pair.count, *([pair.similarity] if similar else [])]
        written = ("" if number is None else f"{number:.6g}" for number in numbers)
        rows.append([pair.source, pair.target, *written])
    return rows


def _tsv(pairs: Sequence[TermPair]) -> str:
    return "".join("\t".join(row) + "\n" for row in _rows(pairs))


def _csv(pairs: Sequence[TermPair]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(_rows(pairs))
    return text.getvalue()


def _tbx(pairs: Sequence[TermPair], languages: tuple[str, str]) -> str:
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<tbx type="TBX-Core" style="dca" xml:lang={quoteattr(languages[0])} xmlns="urn:iso:std:iso:30042:ed-2">',
        "<tbxHeader><fileDesc><sourceDesc><p>Term pairs of a phrase table.</p></sourceDesc></fileDesc></tbxHeader>",
        "<text><body>",
    ]
    for number, pair in enumerate(pairs, 1):
        sections = "".join(
            f"<langSec xml:lang={quoteattr(language)}><termSec><term>{escape(_NOT_XML.sub('', term))}</term></termSec>"
            "</langSec>"
            for language, term in zip(languages, (pair.source, pair.target), strict=True)
        )
        lines.append(f'<conceptEntry id="c{number}">{sections}</conceptEntry>')
    lines.append("</body></text></tbx>")
    return "\n".join(lines) + "\n"
