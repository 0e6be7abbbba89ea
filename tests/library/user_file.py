"""User code for mypy only: `make types` checks it strictly, and each ignored error must be an error."""

import numpy as np
import numpy.typing as npt
import pandas as pd

import phrasetool


def use() -> None:
    """Use the public types."""
    model = phrasetool.PhraseModel.load("model")
    similar: npt.NDArray[np.float32] = model.similarity(["a"], ["b"])
    trained: phrasetool.PhraseModel = phrasetool.train([("a", "b"), ("a", "c", 2.0)], "folder", dimension=8)
    pruned = phrasetool.prune("table", "small", threshold=0.7, model="model")
    kept: int = pruned.statistics.kept
    entries: pd.DataFrame = pruned.entries
    translations: list[str] = phrasetool.decode(["a b"], "moses.ini")
    print(similar, trained, kept, entries, translations)
    tags: list[list[str]] = phrasetool.Tagger.load("tagger").tag(["a b"], "en")
    translated: list[str] = phrasetool.Translator.load("translator").translate(["a b"], beam=2)
    parallel: npt.NDArray[np.float32] = phrasetool.PairClassifier.load("classifier").probability(["a"], ["b"])
    vectors: npt.NDArray[np.float32] = phrasetool.SyntaxEncoder.load("syntax").encode(["a b"])
    written: list[str] = phrasetool.Autoencoder.load("autoencoder").reconstruct(["a b"])
    print(tags, translated, parallel, vectors, written, phrasetool.load_model("model"))
    phrasetool.prune("table")  # type: ignore[call-arg]
    phrasetool.decode(["a b"], 3)  # type: ignore[arg-type]
    phrasetool.nothing  # type: ignore[attr-defined]
    model.encode(["a"], "sauce")  # type: ignore[arg-type]
