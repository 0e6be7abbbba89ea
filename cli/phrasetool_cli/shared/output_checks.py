"""What a command refuses to write, before any work starts."""

from __future__ import annotations

from collections.abc import Iterable

from phrasetool.errors import PhraseToolError


def check_outputs(inputs: Iterable[str | None], outputs: Iterable[str | None], *, folders: bool = False) -> None:
    """Refuse to write over an input or a model, twice to one file, or where nothing can be written.

    What is None was not given.

    Args:
        inputs, outputs: files.
        folders: outputs may be folders, too, and only their names are checked.

    Raises:
        PhraseToolError: two of the paths are one file, or a file cannot be made.
    """
    from moses_compat.files.checks import check_writable
    from moses_compat.files.names import model_of, same_file

    given = [path for path in inputs if path is not None]
    named = [path for path in outputs if path is not None]
    for i, path in enumerate(named):
        for other in given:
            if same_file(path, other):
                raise PhraseToolError(f"{path}: the output is the input {other}; choose another name")
        if folder := model_of(path):
            raise PhraseToolError(f"{path}: the output is a file of the model in {folder}; choose another name")
        for other in named[:i]:
            if same_file(path, other) or path == other == "-":
                raise PhraseToolError(f"{path}: two outputs go to one file")
    for path in named if not folders else ():
        check_writable(path)
