"""Run the cells of docs/tour.ipynb next to a `demo-output` folder, and store their output in the notebook.

    make demo && .venv/bin/python docs/generate_tour.py

To change the tour, edit the cells of the notebook, then run this script.  A test also runs the cells.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parent / "tour.ipynb"
FIGURE = "similarities.svg"


def cells(notebook: Path = NOTEBOOK) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    return [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def run(code: list[str], folder: Path) -> list[str]:
    """Run cells in a folder, one after another, and return the output of each."""
    printed, names = [], {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for text in code:
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, str(NOTEBOOK), "exec"), names)
            printed.append(output.getvalue())
    return printed


def main() -> None:
    """Run the notebook in the working directory and store the output of its cells."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    printed = run(["".join(cell["source"]) for cell in code], Path.cwd())
    for number, (cell, text) in enumerate(zip(code, printed, strict=True), 1):
        cell["execution_count"] = number
        stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["outputs"] = [stream] if text else []
    if os.path.exists(FIGURE):
        figure = {"image/svg+xml": Path(FIGURE).read_text("utf-8").splitlines(keepends=True)}
        code[-1]["outputs"].append({"output_type": "display_data", "data": figure, "metadata": {}})
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
