"""What a request measures: where similarities come from, and what is asked for in vain."""

from pathlib import Path

import pytest

from moses_compat.jobs.prune_measures import checked_method, checked_tables
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.jobs.prune_sources import kept_path, similarity_source
from moses_compat.measures.similarities import ColumnSimilarities, FileSimilarities, ModelSimilarities
from phrasetool.watch import NOBODY
from tests.commands import read, write


def test_where_similarities_come_from(tmp_path, model_folder):
    kept = write(tmp_path / "kept", b"x")
    for given, kind in (
        ({"columns": (0, 1), "scores": str(kept)}, ColumnSimilarities),
        ({"scores": str(kept)}, FileSimilarities),
        ({"scores": str(tmp_path / "none"), "model_folder": str(model_folder)}, ModelSimilarities),
        ({"model_folder": str(model_folder)}, ModelSimilarities),
    ):
        assert type(similarity_source(PruneRequest("t", **given))) is kind


def test_what_was_read_from_a_file_is_not_kept_again(tmp_path):
    request = PruneRequest("t", scores=str(write(tmp_path / "kept", b"x")))
    assert kept_path(request, FileSimilarities(str(request.scores))) is None
    assert kept_path(request, ColumnSimilarities(0, 1)) == request.scores


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "composition"}, "needs weights"), ({"method": "significance"}, "needs corpora"),
        ({"reordering_table": "r"}, "need each other"), ({"target_size": 1.5}, "above 0, at most 1, not 1.5"),
    ],
)  # fmt: skip
def test_requests_that_make_no_sense(given, message):
    with pytest.raises(ValueError, match=message):
        checked_method(PruneRequest("t", **given))


def test_a_sorted_copy_is_there_while_it_is_needed(tmp_path):
    table = write(tmp_path / "t", b"b ||| x ||| 1\na ||| x ||| 1\n")
    request = PruneRequest(str(table), output=str(tmp_path / "out"), sort=True)
    with checked_tables(request, NOBODY) as found:
        assert read(Path(found.read_path)) == b"a ||| x ||| 1\nb ||| x ||| 1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
