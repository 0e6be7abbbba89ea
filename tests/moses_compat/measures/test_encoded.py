import json

import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.lines.fields import phrase_text
from moses_compat.measures.encoded import encoder_similarities
from moses_compat.measures.entry_reader import EntryReader
from moses_compat.measures.similarities import EncoderRequest
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError, ModelError
from phrasetool.text_encoders.encoders import StaticEncoder
from phrasetool.watch import Watch
from tests.commands import write
from tests.text_encoder_folders import MEANINGS, WORDS, static_folder, table_lines


class RecordingWatch(Watch):
    def __init__(self):
        self.lines = []

    def say(self, message):
        self.lines.append(message)

    def warn(self, message):
        self.lines.append(f"warning: {message}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return static_folder(tmp_path_factory.mktemp("encoder") / "static")


def source_of(table, request, watch=None, **options):
    path = str(table)
    return encoder_similarities(request, path, lambda: Input(path), TableScan(**options), watch or Watch())


def scores_of(table, source, **options):
    """Return the similarities of all entries, and which entries have one."""
    with Input(str(table)) as file:
        reader = EntryReader(file, TableScan(**options), source)
        result = [reader(item).scores for item in reader.items()]
        reader.finish(sum(len(part.scored) for part in result))
    return np.concatenate([part.similarities for part in result]), np.concatenate([part.scored for part in result])


def naive(data, folder, centred, margin):
    """Return similarities by their definition, over all phrases and in double precision."""
    encoder = StaticEncoder(folder)
    pairs = [[phrase_text(part) for part in line.split(b"|||")[:2]] for line in data.splitlines()]
    sides = []
    for side in range(2):
        texts = sorted({pair[side] for pair in pairs})
        vectors = encoder.encode(texts, "source").astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        if centred:
            vectors -= vectors.mean(0)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        sides.append((texts, vectors))
    cosines = sides[0][1] @ sides[1][1].T
    reached = [np.sort(c, axis=1)[:, -10:].mean(1) for c in (cosines, cosines.T)]
    result = 2 * cosines - reached[0][:, None] - reached[1][None, :] if margin else cosines
    return np.array([result[sides[0][0].index(s), sides[1][0].index(t)] for s, t in pairs]).clip(-1, 1)


@pytest.mark.parametrize(
    ("normalise", "centred", "margin"),
    [("centred-margin", 1, 1), ("margin", 0, 1), ("centred", 1, 0), ("cosine", 0, 0)],
)
def test_similarities_follow_their_definition(normalise, centred, margin, folder, tmp_path):
    data = table_lines(400)
    table = write(tmp_path / "t.gz", data)
    source = source_of(table, EncoderRequest(str(folder), normalise=normalise))
    result, scored = scores_of(table, source)
    assert scored.all()
    np.testing.assert_array_equal(result[:, 0], result[:, 1])
    # Vectors are stored in half precision.
    np.testing.assert_allclose(result[:, 0], naive(data, folder, centred, margin), atol=4e-3)


def test_the_store_serves_later_runs_without_the_encoder(folder, tmp_path, monkeypatch):
    table = write(tmp_path / "t.gz", table_lines(400))
    first, again = RecordingWatch(), RecordingWatch()
    source = source_of(table, EncoderRequest(str(folder)), first)
    monkeypatch.setattr(StaticEncoder, "__init__", lambda self, folder: pytest.fail("the encoder is loaded"))
    source_again = source_of(table, EncoderRequest(str(folder)), again)
    assert source.signature == source_again.signature
    assert source.signature.startswith("encoder:static-")
    assert source.signature.endswith("|texts:detokenise=none|normalise:centred-margin")
    np.testing.assert_array_equal(scores_of(table, source)[0], scores_of(table, source_again)[0])
    assert len(list(tmp_path.glob("t.*.vectors"))) == 1
    assert first.lines[0].endswith(".vectors holds vectors of 350 sources and 345 targets")
    assert first.lines[1:] == again.lines
    assert "ranks true pairs above random ones with AUC" in again.lines[0]
    assert source.fit.auc > 0.8


def test_bytes_do_not_depend_on_threads_and_blocks(folder, tmp_path):
    table = write(tmp_path / "t.gz", table_lines(400))
    option_sets = [{"threads": 1}, {"threads": 3, "block_bytes": 100}]
    collected = []
    for number, options in enumerate(option_sets):
        source = source_of(table, EncoderRequest(str(folder), store=str(tmp_path / str(number))), **options)
        collected.append(scores_of(table, source, **options)[0])
    np.testing.assert_array_equal(collected[0], collected[1])


def test_an_encoder_for_each_side(folder, tmp_path):
    # The target encoder only knows words of the target.
    targets = static_folder(tmp_path / "target", WORDS[1::2], MEANINGS)
    table = write(tmp_path / "t.gz", table_lines(400))
    source = source_of(table, EncoderRequest(str(folder), str(targets)))
    assert source.fit.auc > 0.8
    assert source.signature.count("static-") == 2
    small = static_folder(tmp_path / "small", WORDS[1::2], MEANINGS[:, :3])
    with pytest.raises(ModelError, match="has dimension 8, but the target encoder has 3"):
        source_of(table, EncoderRequest(str(folder), str(small)))


def test_phrases_of_unknown_words_labels_and_factors(folder, tmp_path):
    data = table_lines(300) + b"zzz ||| dog ||| 0.5 0.5 0.5 0.5\n[X] ||| dog ||| 0.5 0.5 0.5 0.5\n"
    data += b"hund|N ||| yyy xxx ||| 0.5 0.5 0.5 0.5\nhund|N ||| dog|N ||| 0.5 0.5 0.5 0.5\n"
    table = write(tmp_path / "t.gz", data)
    result, scored = scores_of(table, source_of(table, EncoderRequest(str(folder))))
    assert scored[-4:].tolist() == [False, False, False, True]
    assert scored[:-4].all()
    assert not result[-4:-1].any()
    assert result[-1, 0] > 0


def test_malformed_lines_have_no_score(folder, tmp_path):
    table = write(tmp_path / "t.gz", table_lines(300) + b"no entry\n")
    source = source_of(table, EncoderRequest(str(folder)), on_error="keep")
    result, scored = scores_of(table, source, on_error="keep")
    assert not scored[-1]
    assert not result[-1].any()


def test_texts_are_prepared(tmp_path, folder):
    ready = EncoderRequest(str(folder), detokenise="de,zh", prefix="query: ").ready
    assert (ready("a , b", 0), ready("a ， b", 1)) == ("query: a, b", "query: a，b")
    assert EncoderRequest(str(folder), detokenise="zh").ready("很 好", 0) == "很好"
    assert EncoderRequest(str(folder)).ready("a , b", 1) == "a , b"
    for wrong in ("german", "de,en,fr", "de,"):
        with pytest.raises(ValueError, match=r"expected (a|one)"):
            EncoderRequest(str(folder), detokenise=wrong)
    with pytest.raises(ValueError, match="unknown normalisation 'no'"):
        EncoderRequest(str(folder), normalise="no")


def test_the_prefix_belongs_to_the_store(folder, tmp_path):
    table = write(tmp_path / "t.gz", table_lines(400))
    source_of(table, EncoderRequest(str(folder)))
    with pytest.raises(ModelError, match="its phrases were preprocessed differently"):
        source_of(table, EncoderRequest(str(folder), prefix="ein "))


def test_an_encoder_of_one_language_is_refused(tmp_path):
    rng = np.random.default_rng(1)
    apart = static_folder(tmp_path / "apart", vectors=rng.normal(size=(len(WORDS), 8)))
    table = write(tmp_path / "t.gz", table_lines(1500))
    with pytest.raises(DataError, match="ranks true pairs hardly better than chance") as error:
        source_of(table, EncoderRequest(str(apart)))
    assert error.value.remedy == "go on"
    watch = RecordingWatch()
    source_of(table, EncoderRequest(str(apart)), watch, force=True)
    assert watch.lines[-1].startswith("warning: ")


def test_a_store_of_another_table(folder, tmp_path):
    data = table_lines(400)
    table = write(tmp_path / "t.gz", data)
    source = source_of(table, EncoderRequest(str(folder)))
    fewer, more = data[: data.index(b"\n", 2000) + 1], data + b"zzz ||| dog ||| 0.5 0.5 0.5 0.5\n"
    with pytest.raises(DataError, match=r"holds \d+ phrases that are not in it; it was made from another table"):
        scores_of(write(tmp_path / "fewer.gz", fewer), source)
    with pytest.raises(DataError, match=r"more\.gz:401: .* holds no vector for the source of this entry"):
        scores_of(write(tmp_path / "more.gz", more), source)


def test_truncated_phrases_are_counted(folder, tmp_path):
    long = b" ".join([b"hund"] * 600)
    table = write(tmp_path / "t.gz", table_lines(300) + b"zz " + long + b" ||| dog ||| 0.5 0.5 0.5 0.5\n")
    watch = RecordingWatch()
    source_of(table, EncoderRequest(str(folder)), watch)
    assert f"1 phrases are longer than {folder} reads; they were truncated" in watch.lines


def test_an_empty_table(folder, tmp_path):
    table = write(tmp_path / "t", b"")
    source = source_of(table, EncoderRequest(str(folder)), allow_empty=True)
    assert source.fit.pairs == 0
    header = json.loads((tmp_path / next(tmp_path.glob("*.vectors")) / "store.json").read_text())
    assert header["phrases"] == [0, 0]
