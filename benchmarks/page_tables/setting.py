"""Tables for the documentation: treatment of the sections of a moses.ini by our decoder."""

from __future__ import annotations

from moses_compat.ini.reading import VERSION_1
from page_tables.kept_results import find, markdown

_TITLES = {
    "supported": "supported",
    "only switched off": "accepted with values that change nothing, otherwise rejected",
    "no effect": "accepted; no effect on phrase-based translation",
    "refused": "rejected",
}


def _sections(names: list[str]) -> str:
    sections = [name[1:-1] for name in names if name.startswith("[") and name[1:-1] not in VERSION_1]
    return ", ".join(f"`{name}`" for name in sections)


def sections() -> str:
    """Return a table of the sections of Moses version 2, by their treatment in our decoder."""
    classes = find("moses_settings/classes")
    return markdown(
        "sections | treatment", [[_sections(classes[kind]), treatment] for kind, treatment in _TITLES.items()]
    )


TABLES = {"sections of a moses.ini": sections}
