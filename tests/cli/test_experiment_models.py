"""`phrasetool experiment` with existing models: translators, and an external encoder."""

import json

import numpy as np
import pandas as pd
import pytest

from moses_compat.measures.saved_scores import SavedScores
from tests.commands import run_inside
from tests.decoder_models import SOURCE, TARGET
from tests.small_experiment import table_lines, write_experiment
from tests.table_translators import translator
from tests.text_encoder_folders import static_folder

MORE = """\
[prune]
methods = ["semantic", "count+semantic"]
sizes = [0.5]
[annotate]
tuning_seeds = 1
iterations = 1
"""
OWN = 'folder = "model"\n'


def experiment(folder, model, more=MORE):
    """Write an experiment with these lines as `[model]`; return the path."""
    path = write_experiment(folder, more)
    text = path.read_text()
    assert text.count(OWN) == 1
    path.write_text(text.replace(OWN, model))
    return path


def translators(folder):
    words = [b"<unk>", *SOURCE], [b"<unk>", *TARGET]
    for name, (source, target) in {"forward": words, "backward": words[::-1]}.items():
        translator(source, target).save(folder / name)


def run(path, *more):
    return run_inside("experiment", path, "--threads", "1", "-q", "--force", *more)


def frame(folder, name):
    return pd.read_parquet(folder / "out" / f"{name}.parquet")


def test_two_translators(tmp_path):
    folder = tmp_path / "x"
    path = experiment(folder, 'folder = "forward"\nsecond_folder = "backward"\n')
    translators(folder)
    outcome = run(path)
    assert outcome.code == 0, outcome.err
    pruning = frame(folder, "pruning")
    assert set(pruning.method) == {"full", "semantic", "count+semantic"}
    # The saved scores that the reported command uses are those of both translators.
    saved = SavedScores(str(folder / "out" / "build" / "scores-given.parquet"))
    _, scores = saved.take(len(table_lines()))
    assert (scores.similarities[:, 0] != scores.similarities[:, 1]).any()
    assert "scores-given.parquet" in " ".join(pruning.command.dropna())
    annotation = frame(folder, "annotation")
    assert list(dict.fromkeys(annotation.system)) == ["baseline", "annotated"]
    facts = json.loads((folder / "out" / "experiment.json").read_text())
    assert "scores-given" in facts["commands"]
    # Translators have no phrase vectors for the map.
    assert not (folder / "out" / "map.parquet").exists()

    refused = run(experiment(folder, 'folder = "forward"\n', "[neighbours]\n"))
    assert refused.code == 1
    assert "forward: has no vectors of phrases, which [neighbours] in " in refused.err


def test_an_external_encoder(tmp_path):
    folder = tmp_path / "x"
    path = experiment(folder, '[model.text_encoder]\nfolder = "static"\n')
    words = [word.decode() for word in (*SOURCE, *TARGET)]
    static_folder(folder / "static", words, np.random.default_rng(1).normal(size=(len(words), 8)))
    outcome = run(path)
    assert outcome.code == 0, outcome.err
    assert set(frame(folder, "pruning").method) == {"full", "semantic", "count+semantic"}
    facts = json.loads((folder / "out" / "experiment.json").read_text())
    assert "--encoder" in facts["commands"]["scores-given"]
    assert (folder / "out" / "build" / "vectors").is_dir()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ('second_folder = "model"\n', "model.second_folder: is the translator of the other direction; give the first"),
        (
            'folder = "model"\n[model.text_encoder]\nfolder = "model"\n',
            "model.text_encoder: takes the place of model.folder; give one of them",
        ),
        ("[model.text_encoder]\n", "the key model.text_encoder.folder is missing"),
        (
            'folder = "model"\nsecond_folder = "model"\n',
            "computes both directions; only translators can be combined",
        ),
    ],
)
def test_conflicting_settings(tmp_path, model, message):
    outcome = run(experiment(tmp_path / "x", model))
    assert outcome.code == 1
    assert message in outcome.err


def test_a_model_of_phrase_pairs_gives_columns_of_its_own_dimension(tmp_path):
    folder = tmp_path / "x"
    outcome = run(experiment(folder, OWN))
    assert outcome.code == 0, outcome.err
    assert list(dict.fromkeys(frame(folder, "annotation").system)) == ["baseline", "annotated n=6"]
