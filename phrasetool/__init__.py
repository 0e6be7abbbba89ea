"""phrasetool: learn what phrases mean, then make phrase tables smaller and better.

    >>> import phrasetool
    >>> model = phrasetool.load_model(demo_model)
    >>> model.similarity(["经济"], ["economy"]).shape
    (1, 2)

The names below are the library.  They are imported when they are first used, so `import phrasetool` takes no time and
needs none of the heavy packages.  What knows Moses' files stands in `moses_compat` and is only named here.

The packages under `phrasetool` know phrases, vectors, models and rules.  They know no Moses syntax, print nothing and
never exit the interpreter.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Name -> `module:name`.  `__init__.pyi` says the same to tools that read types.
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
