"""Templates of pages: the frame that all pages share (`base.html.j2`) and the macros for tables (`tables.html.j2`).

A page has its style and script in itself and asks no other machine for anything.
"""

from __future__ import annotations

import re
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from moses_compat.pages.drawing import GREY, PALETTE, number_text, printable

_SHARED = ("base.html.j2", "tables.html.j2")


def page_template(package: str, name: str) -> Template:
    """The template of a page.

    Args:
        package: package that holds the template.
        name: its file; it may extend `base.html.j2` and import from `tables.html.j2`.
    """

    def text_of(file: str) -> str:
        folder = "moses_compat.pages" if file in _SHARED else package
        return (files(folder) / file).read_text("utf-8")

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(text_of)
    )
    environment.filters.update(prose=prose, breakable=breakable, printable=printable, number=number_text)
    environment.globals.update(palette=PALETTE, grey=GREY)
    return environment.get_template(name)


def prose(sentence: str) -> Markup:
    """A sentence of ours for a page: escaped, names in backticks as code, double asterisks as strong."""
    parts = re.split(r"`([^`]*)`", str(escape(sentence)))
    parts[0::2] = [re.sub(r"\*\*(.*?)\*\*", r"<strong>\1</strong>", part) for part in parts[0::2]]
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    return Markup("".join(parts))


def breakable(text: str) -> Markup:
    """Text of a cell, escaped, that may be broken after each `+`."""
    return Markup(str(escape(text)).replace("+", "+<wbr>"))


def as_it_is(drawing: str) -> Markup:
    """A drawing for a template, which escapes nothing in it."""
    return Markup(drawing)
