"""Tables for the documents: what our decoder does with the sections of a moses.ini and the arguments of features."""

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
    """The sections that Moses has in version 2, by what our decoder does with them."""
    classes = find("moses_settings/classes")
    return markdown("sections | treatment", [[_sections(classes[kind]), told] for kind, told in _TITLES.items()])


TABLES = {"sections of a moses.ini": sections}
