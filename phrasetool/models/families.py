"""Registry of model families: a new family is a package of its own and a line here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFamily:
    """A family of models.

    Attributes:
        name: name in `config.json` and of `train --model`.
        description: noun phrase with its article, for messages.
        model: `module:class` of its `SavedModel`; empty where other programs define the format of the folder.
        training: `module:class` of the settings of its training, whose options become flags of `phrasetool train`.
    """

    name: str
    description: str
    model: str
    training: str


_ALL = (
    ModelFamily(
        "brae", "a model of phrase pairs",
        "phrasetool.phrase_encoder.model:BilingualModel", "phrasetool.phrase_encoder.settings:TrainingSettings",
    ),
    ModelFamily(
        "autoencoder", "an autoencoder of one language",
        "phrasetool.models.autoencoder:AutoencoderModel",
        "phrasetool.training.autoencoder.autoencoder_settings:AutoencoderSettings",
    ),
    ModelFamily(
        "continuous", "a translator",
        "phrasetool.translator.model:NeuralModel", "phrasetool.translator.settings:NeuralSettings",
    ),
    ModelFamily(
        "masked-lm", "a BERT", "", "phrasetool.training.masked_lm.masked_lm_settings:MaskedLmSettings",
    ),
    ModelFamily(
        "parallel", "a classifier of sentence pairs",
        "phrasetool.pair_classifier.model:ParallelModel", "phrasetool.pair_classifier.settings:ParallelSettings",
    ),
    ModelFamily(
        "tagger", "a tagger", "phrasetool.tagger.model:TaggerModel", "phrasetool.tagger.settings:TaggerSettings",
    ),
    ModelFamily(
        "syntax", "a syntactic encoder", "phrasetool.syntax.model:SyntaxModel",
        "phrasetool.syntax.settings:SyntaxSettings",
    ),
)  # fmt: skip
# Name -> family.
FAMILIES = {family.name: family for family in _ALL}
# Families whose models `SavedModel` loads, by name.
SAVED = {name: family for name, family in FAMILIES.items() if family.model}
