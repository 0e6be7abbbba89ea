"""The development set on which BLEU is measured during the search for a table size."""

import pytest

from moses_compat.jobs.bleu_budget import DevelopmentSet
from moses_compat.jobs.prune_request import PruneRequest
from phrasetool.errors import DataError
from phrasetool.watch import SILENT, Watch
from tests.commands import write
from tests.small_experiment import write_experiment


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget") / "x"
    write_experiment(folder)
    return folder


def request_of(folder, source="dev.src", reference="dev.trg", **options):
    settings = {"ini": str(folder / "moses.ini"), "dev": (str(folder / source), str(folder / reference)), **options}
    return PruneRequest(str(folder / "table.gz"), max_bleu_loss=0.5, **settings)


def test_reading(folder):
    result = DevelopmentSet.read(request_of(folder, search={"stack_size": 7}), SILENT)
    assert (result.source, result.reference) == tuple((folder / name).read_bytes() for name in ("dev.src", "dev.trg"))
    assert result.sentences == 12
    assert result.model.search.stack_size == 7
    assert result.model.search.distortion_limit == 3
    assert result.model.table == str(folder / "table.gz")


@pytest.mark.parametrize("missing", ["ini", "dev"])
def test_both_are_needed(folder, missing):
    with pytest.raises(ValueError, match="give dev SOURCE REFERENCE and moses_ini INI"):
        request_of(folder, **{missing: None})


def test_unsuitable_texts(folder):
    write(folder / "nothing", b"")
    with pytest.raises(DataError, match="nothing: the file has no lines"):
        DevelopmentSet.read(request_of(folder, source="nothing"), SILENT)
    with pytest.raises(DataError, match=r"one\.trg"):
        DevelopmentSet.read(request_of(folder, reference="one.trg"), SILENT)


@pytest.mark.parametrize("shared", [0, 1, 5])
def test_sentences_of_the_training_corpora_cause_a_warning(folder, tmp_path, shared):
    class Listening(Watch):
        def __init__(self):
            self.warnings = []

        def warn(self, message):
            self.warnings.append(message)

    corpora = []
    for side in ("src", "trg"):
        dev = (folder / f"dev.{side}").read_bytes().splitlines(keepends=True)[:shared]
        corpora.append(str(write(tmp_path / side, b"zzz yyy\n" + b"".join(dev))))
    watch = Listening()
    DevelopmentSet.read(request_of(folder, corpora=tuple(corpora)), watch)
    assert [message.partition(" are in")[0] for message in watch.warnings] == (
        [f"{shared} of 12 sentence pairs of {folder / 'dev.src'}"] if shared else []
    )
