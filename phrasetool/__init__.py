"""phrasetool: learn representations of phrases, and make phrase tables smaller and better.

    >>> import phrasetool
    >>> model = phrasetool.load_model(demo_model)
    >>> model.similarity(["经济"], ["economy"]).shape
    (1, 2)

The names below are the public library.  They are imported on first use, so `import phrasetool` is fast and imports none
of the heavy packages.  Functions that process Moses' files are in `moses_compat` and only listed here.

The packages under `phrasetool` implement phrases, vectors, models and rules, independently of Moses syntax.  They print
nothing and never exit the interpreter.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Name -> `module:name`; `__init__.pyi` has the same names for type checkers.
_LIBRARY = {
    "PhraseModel": "phrasetool.library.models:PhraseModel",
    "Translator": "phrasetool.library.text_models:Translator",
    "PairClassifier": "phrasetool.library.text_models:PairClassifier",
    "Tagger": "phrasetool.library.text_models:Tagger",
    "SyntaxEncoder": "phrasetool.library.text_models:SyntaxEncoder",
    "Autoencoder": "phrasetool.library.text_models:Autoencoder",
    "load_model": "phrasetool.library.models:load_model",
    "train": "moses_compat.library:train",
    "read_table": "moses_compat.library:read_table",
    "table_blocks": "moses_compat.library:table_blocks",
    "prune": "moses_compat.library:prune",
    "Pruned": "moses_compat.library:Pruned",
    "annotate": "moses_compat.library:annotate",
    "tune": "moses_compat.library:tune",
    "Tuned": "moses_compat.library:Tuned",
    "decode": "moses_compat.library:decode",
    "evaluate": "phrasetool.smt.evaluation.metrics:evaluate",
    "Watch": "phrasetool.watch:Watch",
    "PhraseToolError": "phrasetool.errors:PhraseToolError",
    "DataError": "phrasetool.errors:DataError",
    "ModelError": "phrasetool.errors:ModelError",
}

__all__ = ["__version__", *_LIBRARY]


def __getattr__(name: str) -> Any:
    """Import a name of the library on first use (PEP 562)."""
    if name not in _LIBRARY:
        raise AttributeError(f"module 'phrasetool' has no attribute {name!r}")
    module, _, attribute = _LIBRARY[name].partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LIBRARY})
