import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from phrasetool.phrase_encoder.kinds import Mean, MeanMax, Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.phrase_encoder.parameters import RaeParameters
from phrasetool.vocabulary import Vocabulary
from phrasetool_cli.console import spin_briefly

# Test processes share the cores, and PyTorch's threads (it is imported later) wait for each other: a test that takes
# 4 seconds on one core takes 50 on two busy ones.
os.environ.setdefault("OMP_NUM_THREADS", "1")
spin_briefly()

# Continuous integration draws the same examples every time; a developer's run looks for new ones.
settings.register_profile(
    "tests",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("tests")

ROOT = Path(__file__).parent.parent
SOURCE_WORDS = [
    b"<unk>",
    b"das",
    b"haus",
    b"ist",
    b"gr\xfcn",
    b"nicht",
    b"&",
    b"|",
    b"'s",
    b'"',
    b"[",
    b"]",
    b"!",
    b"a",
]
TARGET_WORDS = [b"<unk>", b"the", b"house", b"is", b"green", b"not", b"&", b"|", b"'s", b'"', b"[", b"]", b"!", b"&lt;"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Reset the number of PyTorch threads, which a command run in this process may have changed."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def random_parameters(words, dimension, seed):
    rng = np.random.default_rng(seed)
    parameters = RaeParameters.random(rng.normal(size=(words, dimension)).astype(np.float32), rng)
    arrays = parameters.arrays()
    for name in ("compose_bias", "reconstruct_bias", "transform_bias"):
        arrays[name] = rng.normal(0, 0.3, arrays[name].shape).astype(np.float32)
    return RaeParameters(**arrays)


# A small encoder of every registered kind.
KINDS = {"rae": Rae(), "mean": Mean(), "mean-max": MeanMax(word_units=6, heads=2, feed_forward=7)}


def random_encoder(kind, words, dimension, seed):
    """Return random parameters of an encoder of any kind, with non-zero biases."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(words, kind.word_dimension(dimension))).astype(np.float32)
    arrays = kind.initial(vectors, dimension, "normal", rng).arrays()
    for name, array in arrays.items():
        if name.endswith("_bias"):
            arrays[name] = rng.normal(0, 0.3, array.shape).astype(np.float32)
    return kind.parameters(arrays)


FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def model():
    vocabularies = Vocabulary(SOURCE_WORDS, range(len(SOURCE_WORDS))), Vocabulary(TARGET_WORDS)
    parameters = random_parameters(len(SOURCE_WORDS), 10, 1), random_parameters(len(TARGET_WORDS), 10, 2)
    return BilingualModel(*vocabularies, *parameters, Rae(), {"loss": "none"})


@pytest.fixture(scope="session", params=sorted(KINDS))
def any_model(request):
    """A model with encoders of each kind."""
    vocabularies = Vocabulary(SOURCE_WORDS, range(len(SOURCE_WORDS))), Vocabulary(TARGET_WORDS)
    kind = KINDS[request.param]
    sides = (random_encoder(kind, len(vocabulary), 12, seed) for seed, vocabulary in enumerate(vocabularies))
    return BilingualModel(*vocabularies, *sides, kind, {"loss": "none"})


@pytest.fixture(scope="session")
def any_model_folder(any_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / any_model.kind.name
    any_model.save(folder)
    return folder


@pytest.fixture(scope="session")
def model_folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "brae"
    model.save(folder)
    return folder


@pytest.fixture(scope="session")
def workspace(tmp_path_factory):
    """A folder shared by tests that run many examples."""
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="session")
def reference():
    """The folder of a real Moses run."""
    folder = Path(os.environ.get("PHRASETOOL_DATA", ROOT.parent / "shared/data")) / "multi30k-de-en/moses"
    if not (folder / "phrase-table.gz").exists():
        pytest.skip(f"no reference run in {folder}; name the folder of the corpora with PHRASETOOL_DATA")
    return folder


@pytest.fixture(scope="session")
def moses():
    """Function that returns the path of `moses` or of another program, as in `moses("CreateProbingPT")`.

    It searches the PATH and the folder MOSES_BIN, and skips the test if the program is missing.  MOSES_BIN is not on
    the PATH, because commands in other tests would use the programs that they find there.
    """

    def find(program="moses"):
        result = shutil.which(program) or shutil.which(program, path=os.environ.get("MOSES_BIN") or os.devnull)
        if result is None:
            pytest.skip(f"no real Moses: the program {program} is neither on the PATH nor in MOSES_BIN")
        return result

    find()
    return find


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory):
    """Folder of a sentence-pair classifier for the toy language of `parallel_models`."""
    pytest.importorskip("torch")
    from tests.parallel_models import trained_folder

    return trained_folder(tmp_path_factory.mktemp("classifier") / "model")


@pytest.fixture(scope="session")
def toy_tagger_folder(tmp_path_factory):
    """Folder of a tagger for the toy languages of `toy_treebanks`."""
    pytest.importorskip("torch")
    from phrasetool.tagger.settings import TaggerSettings
    from phrasetool.tagger.training import held_out_sentences, train_tagger
    from phrasetool.training.run import TrainingRun
    from tests.toy_treebanks import FAST, toy_sentences

    folder = tmp_path_factory.mktemp("tagger") / "model"
    banks = held_out_sentences({language: toy_sentences(language, 60, 1) for language in ("en", "de")}, 1)
    train_tagger(*banks, TaggerSettings(**FAST), TrainingRun(folder))
    return folder


@pytest.fixture(scope="session")
def toy_tagger(toy_tagger_folder):
    """The loaded tagger of `toy_tagger_folder`."""
    from phrasetool.tagger.model import TaggerModel

    return TaggerModel.load(toy_tagger_folder)


@pytest.fixture(scope="session")
def syntax_folder(tmp_path_factory):
    """Folder of an untrained syntax encoder for the toy languages of `toy_treebanks`."""
    from tests.syntax_models import random_syntax_model

    folder = tmp_path_factory.mktemp("syntax") / "model"
    random_syntax_model().save(folder)
    return folder


# Reasons for skipping a test that do not apply in continuous integration: there, such a skip is a failure.
EQUIPMENT = ("not installed", "could not import", "on the PATH", "no reference run", "no real Moses", "no such data")


def _fail_where_equipment_is_missing(report):
    if "CI" in os.environ and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if any(words in reason for words in EQUIPMENT):
            report.outcome = "failed"
            report.longrepr = f"continuous integration is equipped for this test, which was skipped: {reason}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Fail tests skipped for missing equipment in continuous integration."""
    outcome = yield
    _fail_where_equipment_is_missing(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """Fail files skipped for missing equipment in continuous integration."""
    outcome = yield
    _fail_where_equipment_is_missing(outcome.get_result())


def pytest_collection_modifyitems(items):
    """Run slow files first, then those of this folder, so that no worker waits for a long test at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, item.path.parent != FOLDER))
