"""Registry of model families; a new family is a package and an entry here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelFamily:
    """A family of models.

    Attributes:
        name: name in `config.json`.
        description: noun phrase with its article, for messages.
        model: `module:class` of its `SavedModel`; empty where other programs define the format of the folder.
        public: `module:class` of its public Python interface; empty where `model` is used.
        training: name of the kind of training, as in `phrasetool train KIND`.
        summary: summary of the training, for help.
        settings: `module:class` of the settings of the training, a `DeclaredSettings`; empty for a family with its own
            training command.
        train: `module:function` of the training, which takes the lines of each text, settings and a `TrainingRun`, and
            returns the saved model; empty for the same families.
        texts: names of the training texts in the help; the texts have one sentence or phrase per line.
    """

    name: str
    description: str
    model: str
    public: str
    training: str
    summary: str
    settings: str = ""
    train: str = ""
    texts: tuple[str, ...] = ()


# In the order of the help.
_ALL = (
    ModelFamily(
        "brae", "a model of phrase pairs",
        "phrasetool.phrase_encoder.model:BilingualModel", "phrasetool.library.models:PhraseModel",
        "phrases", "Train encoders of phrases of two languages on phrase pairs.",
    ),
    ModelFamily(
        "continuous", "a translator",
        "phrasetool.translator.model:TranslatorModel", "phrasetool.library.text_models:Translator",
        "translator", "Train a neural translator on a bitext or on phrase pairs.",
    ),
    ModelFamily(
        "parallel", "a classifier of sentence pairs",
        "phrasetool.pair_classifier.model:PairClassifierModel", "phrasetool.library.text_models:PairClassifier",
        "classifier", "Train a classifier of parallel sentence pairs.",
    ),
    ModelFamily(
        "tagger", "a tagger",
        "phrasetool.tagger.model:TaggerModel", "phrasetool.library.text_models:Tagger",
        "tagger", "Train a part-of-speech tagger on treebanks.",
    ),
    ModelFamily(
        "syntax", "a syntactic encoder",
        "phrasetool.syntax.model:SyntaxModel", "phrasetool.library.text_models:SyntaxEncoder",
        "syntax", "Train a syntactic encoder on bitexts and a tagger.",
    ),
    ModelFamily(
        "autoencoder", "an autoencoder of one language",
        "phrasetool.autoencoder.model:AutoencoderModel", "phrasetool.library.text_models:Autoencoder",
        "autoencoder", "Train an autoencoder of sentences on text.",
    ),
    ModelFamily(
        "masked-lm", "a BERT",
        "", "",
        "bert", "Train a BERT from scratch on text of one language or two.",
    ),
)  # fmt: skip
# Name -> family.
FAMILIES = {family.name: family for family in _ALL}


def saved_families() -> dict[str, ModelFamily]:
    """Return the families whose models `SavedModel` loads, by name."""
    return {name: family for name, family in FAMILIES.items() if family.model}


def any_of(names: Sequence[str]) -> str:
    """Return the descriptions of families as alternatives, such as `a tagger or a translator`."""
    *others, last = [FAMILIES[name].description for name in names]
    return f"{', '.join(others)} or {last}" if others else last
