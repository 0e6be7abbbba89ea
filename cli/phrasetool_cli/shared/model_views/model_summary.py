"""What a model folder holds, for `phrasetool inspect`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.tagger.model import TaggerModel
    from phrasetool.vocabulary import Vocabulary


def model_summary(path: str) -> tuple[dict[str, Any], list[str]]:
    """What a model is, for programs and for people."""
    from phrasetool.models.autoencoder import AutoencoderModel
    from phrasetool.models.bilingual import BilingualModel
    from phrasetool.models.neural import NeuralModel
    from phrasetool.models.parallel import ParallelModel
    from phrasetool.models.storage import load_model
    from phrasetool.syntax.model import SyntaxModel
    from phrasetool.tagger.model import TaggerModel

    model = load_model(path)
    if isinstance(model, TaggerModel | SyntaxModel):
        return _tagged(path, model)
    found: dict[str, Any] = {"kind": "model", "signature": model.signature}
    lines = [f"{path}: {model.signature}"]
    if isinstance(model, BilingualModel):
        found |= {"encoder": model.kind.name, "columns": list(model.columns)}
        lines += [f"  encoder        {model.kind.name}", f"  columns        {', '.join(model.columns)}"]
    if isinstance(model, NeuralModel):
        shape = {**asdict(model.architecture), "temperature": model.temperature}
        found |= {"architecture": shape, "numbers": sum(array.size for array in model.arrays.values())}
        lines += [f"  {key:<14} {value}" for key, value in shape.items()]
        lines.append(f"  numbers        {found['numbers']:,}")
    if isinstance(model, ParallelModel):
        shape = {**asdict(model.architecture), "temperature": model.temperature, "thresholds": model.thresholds}
        found |= {"architecture": shape, "numbers": sum(array.size for array in model.arrays.values())}
        lines += [f"  {key:<14} {value}" for key, value in shape.items()]
        lines.append(f"  numbers        {found['numbers']:,}")
    vocabularies: dict[str, Vocabulary] = {}
    if isinstance(model, ParallelModel):
        vocabularies = dict(zip(("source", "target"), model.vocabularies, strict=False))
    elif isinstance(model, AutoencoderModel):
        vocabularies = {"text": model.vocabulary}
    elif isinstance(model, BilingualModel | NeuralModel):
        vocabularies = {"source": model.source_vocabulary, "target": model.target_vocabulary}
    for name, vocabulary in vocabularies.items():
        common = b" ".join(vocabulary.words[1:9]).decode("utf-8", "replace")
        lines.append(f"  {name + ' words':<12}   {len(vocabulary) - 1:,} (most frequent: {common})")
    lines += [f"  {key:<20} {value}" for key, value in model.training.items()]
    words = {name: len(vocabulary) - 1 for name, vocabulary in vocabularies.items()}
    return {**found, "words": words, "training": dict(model.training)}, lines


def _tagged(path: str, model: TaggerModel | SyntaxModel) -> tuple[dict[str, Any], list[str]]:
    """The same of a tagger, or of an encoder of syntax."""
    from phrasetool.tagger.model import TaggerModel

    shape = asdict(model.shape)
    numbers = sum(array.size for array in model.arrays.values())
    if isinstance(model, TaggerModel):
        own = {"languages": model.languages, "tags": model.tags}
    else:
        own = {"languages": model.languages, "targets": model.targets}
    named = {name: ", ".join(values) for name, values in own.items()}
    shown = {**named, **{name: size for name, size in shape.items() if name not in own}, "numbers": f"{numbers:,}"}
    lines = [f"{path}: {model.signature}", *(f"  {key:<14} {value}" for key, value in shown.items())]
    lines += [f"  {key:<20} {value}" for key, value in model.training.items()]
    found = {"kind": "model", "signature": model.signature, **own}
    return {**found, "shape": shape, "numbers": numbers, "training": dict(model.training)}, lines
