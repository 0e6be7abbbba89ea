import gzip

import pytest

from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.session import overlaps, read_experiment_texts, write_pair
from moses_compat.experiments.settings import TextPair
from phrasetool.errors import DataError
from tests.small_experiment import write_experiment

PRUNE = '[prune]\nmethods = ["count"]\nsizes = 0.5\n'


def test_texts_are_read_as_far_as_they_are_wanted(tmp_path):
    config = read_experiment_config(str(write_experiment(tmp_path, PRUNE)))
    texts = read_experiment_texts(config)
    assert list(texts.sources) == ["dev", "one", "two"]
    assert texts.sentences == 12 + 15 + 10
    assert texts.references["two"] == (tmp_path / "two.trg").read_text().splitlines()
    few = read_experiment_texts(config.quick())
    assert few.sources == texts.sources
    write_pair(few, ["one"], TextPair(str(tmp_path / "s"), str(tmp_path / "t")))
    assert (tmp_path / "t").read_bytes() == (tmp_path / "one.trg").read_bytes()


def test_texts_that_do_not_fit_are_refused(tmp_path):
    path = str(write_experiment(tmp_path, PRUNE))
    (tmp_path / "one.trg").write_text("a\n")
    with pytest.raises(DataError, match=r"one.trg:2: the file ends after 1 lines, but .*one.src has 15"):
        read_experiment_texts(read_experiment_config(path))
    (tmp_path / "one.src").write_text("")
    with pytest.raises(DataError, match=r"one.src: the file has no lines"):
        read_experiment_texts(read_experiment_config(path))


def test_overlaps(tmp_path):
    """A pair counts if both sides are equal except for spaces; a last line may lack its line end."""
    config = read_experiment_config(str(write_experiment(tmp_path, PRUNE)))
    for side, lines in (("src", [b"a  b", b"c", b"a b", b"d"]), ("trg", [b"x y", b"z", b"w", b"v"])):
        (tmp_path / f"dev.{side}").write_bytes(b"\n".join(lines))
    (tmp_path / "t.src.gz").write_bytes(gzip.compress(b"a b\nc\nd\n"))
    (tmp_path / "t.trg").write_bytes(b" x y\nq\nv")
    result = overlaps(TextPair(str(tmp_path / "t.src.gz"), str(tmp_path / "t.trg")), read_experiment_texts(config))
    assert result == {"dev": (2, 4)}
