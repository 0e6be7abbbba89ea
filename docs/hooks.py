"""MkDocs hooks: changes to pages for which there is no plugin.

* Equations are converted to MathML, which browsers display without a script.
* `CONTRIBUTING.md` and `CHANGELOG.md` at the top level of the repository become pages.

Pages link to these two files by their paths in the repository, so that the links also work there; a hook replaces these
paths by those in the site.
"""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
TOP_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_EQUATION = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(\.\.?/[^)#\s]+)(?=[)#])")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages whose files are outside `docs/`."""
    for name, path in TOP_PAGES.items():
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to files outside `docs/` by links to the corresponding pages of the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def turned(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, match[1]))
        return posixpath.relpath(TOP_PAGES[target], folder or ".") if target in TOP_PAGES else match[1]

    return _LINK.sub(turned, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Convert equations from LaTeX to MathML."""

    def mathml(match: re.Match[str]) -> str:
        return convert(html.unescape(match[3]), display="inline" if match[2] == "(" else "block")

    return _EQUATION.sub(mathml, content)
