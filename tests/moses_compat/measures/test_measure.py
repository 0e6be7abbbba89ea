"""Measures of a whole table compared with naive Python."""

import io
import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.files.streams import Input
from moses_compat.ini.reading import read_moses_ini
from moses_compat.ini.tables import TableWeights, choose_table, weights_of
from moses_compat.jobs.prune_ranking import sizes_by_threshold
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.lines.counts import LARGEST_COUNT, CountUse
from moses_compat.measures.measure import ComposedEntries, FieldPlaces, MeasureRequest, measure_table
from moses_compat.measures.pair_counts import PairUses, SmoothedProbabilities, count_table
from moses_compat.measures.pair_test import CorpusCheck, CorpusMismatchError
from moses_compat.measures.similarities import ColumnSimilarities, FileSimilarities, ModelSimilarities
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.errors import DataError
from phrasetool.pruning.measures import (
    COUNTS,
    FORCED,
    LOSSES,
    MODEL_SCORES,
    PROBABILITIES,
    SCORED,
    SIGNIFICANCE,
    SIMILARITIES,
    SMOOTHED,
    USES,
)
from phrasetool.watch import SILENT
from tests import naive, naive_filter
from tests.commands import read, write
from tests.moses_compat.engine.test_extracted import GOLDEN
from tests.moses_compat.ini.test_table_weights import ini_of
from tests.pairwise import in_turn
from tests.tables import MALFORMED, MALFORMED_LINES, TABLES
from tests.variants import for_each

SCANS = [{}, {"threads": 2, "block_bytes": 1}, {"threads": 2, "block_bytes": 300}]
# Tables with scores that have no logarithm.
NEGATIVE = ["zero and negative", "numbers in other forms"]
RULES = ["brackets", "hierarchical", "non-terminals differ", "glue", "glue one count", "glue seven fields",
         "target syntax"]  # fmt: skip
SOURCE = b"das haus ist gr\xfcn !\ndas haus ist nicht gr\xfcn\nist das haus gr\xfcn\n\nnie gesehen : das\nhaus\n"
TARGET = b"the house is green !\nthe house is not green\nis the house green\na house\nnever seen : the\nhouse\n"


def measure(folder, data, on_error="keep", scan=None, **request):
    path = write(folder / "table", data)
    with Input(str(path)) as source:
        return measure_table(source, MeasureRequest(scan=TableScan(on_error, **(scan or {})), **request)).whole()


def weights_for(data, jump=0.125):
    columns = max(naive.first_score_count(data), 0)
    values = random.Random(columns).choices([0.05, 0.3, -0.1, 0.125], k=columns)
    return TableWeights(np.array(values, np.float32), 0.2, jump, "TranslationModel0")


def naive_scores(line, weights):
    logs = [max(math.log(v), -100) if np.float32(v) > 0 else -100.0 for v in line.values]
    return sum(w * x for w, x in zip(weights.scores.tolist(), logs, strict=True)) + weights.phrase_penalty


def check(measures, data, weights=None, losses=False):
    """Compare all measures that need no other file with naive versions."""
    lines, groups = naive.parse_table(data, naive.first_score_count(data))
    good = [line.fault == "ok" for line in lines]
    np.testing.assert_array_equal(measures.malformed, [not ok for ok in good])
    np.testing.assert_array_equal(measures.group_offsets, groups if lines else [0])
    sources = naive.group_sources(lines, groups) if lines else []
    source_words = [[t for t in naive.tokens(source) if not naive.is_label(t)] for source in sources]
    np.testing.assert_array_equal(measures.source_lengths, [len(words) for words in source_words])
    direct = [line.values[:3][-1] if ok else 0 for line, ok in zip(lines, good, strict=True)]
    largest = float(np.finfo(np.float32).max)
    np.testing.assert_array_equal(measures[PROBABILITIES], np.clip(direct, -largest, largest).astype(np.float32))
    counts = [
        naive.entry_counts(data[line.start : line.end], LARGEST_COUNT)[0][2] if ok else 0
        for line, ok in zip(lines, good, strict=True)
    ]
    np.testing.assert_array_equal(measures[COUNTS], np.array(counts, np.float32))
    assert len(measures.malformed) == len(lines)
    for measure, values in measures.columns.items():
        assert len(values) == len(lines)
        assert values.dtype == measure.dtype
    if weights is None:
        assert MODEL_SCORES not in measures
        return
    scores = [naive_scores(line, weights) if ok else 0 for line, ok in zip(lines, good, strict=True)]
    np.testing.assert_allclose(measures[MODEL_SCORES], scores, rtol=1e-5, atol=1e-5)
    if losses:
        entries = [
            (tuple(naive.tokens(line.source)), tuple(naive.tokens(line.target)), score)
            for line, score, ok in zip(lines, scores, good, strict=True)
            if ok
        ]
        result = measures[LOSSES][~measures.malformed]
        np.testing.assert_allclose(result, naive.composition_losses(entries, weights.distortion), rtol=1e-4, atol=1e-4)
        assert not measures[LOSSES][measures.malformed].any()


@for_each(("name", "scans"), in_turn(sorted(TABLES), SCANS, 2))
def test_tables_of_all_shapes(tmp_path, name, scans):
    data = TABLES[name]
    for scan in scans:
        check(measure(tmp_path, data, scan=scan), data)
        if name not in NEGATIVE:
            losses = name not in RULES
            weights = weights_for(data)
            check(measure(tmp_path, data, scan=scan, weights=weights, losses=losses), data, weights, losses)


WORDS = st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=4).map(b" ".join)
LINES = st.builds(
    lambda source, target, scores, rest: b"%s ||| %s ||| %s%s\n" % (source, target, b" ".join(scores), rest),
    WORDS,
    WORDS,
    st.lists(st.sampled_from([b"1", b"0.5", b"0", b"0.01", b"1e-44"]), min_size=2, max_size=2),
    st.sampled_from([b"", b" ||| 0-0 ||| 3 2 7", b" ||| x ||| 3 2 2.5 |||", b" ||| ||| 4 2", b" ||| |||  ||| 1 1 9"]),
)
BROKEN = st.sampled_from([b"a b\n", b"\n", b"a ||| b\n", b"a ||| b ||| 1\n", b"a ||| b ||| 1 nan\n"])


@given(st.lists(st.one_of(LINES, LINES, LINES, BROKEN), max_size=30), st.sampled_from(SCANS), st.booleans())
def test_random_tables(workspace, lines, scan, in_order):
    data = b"".join(sorted(lines) if in_order else lines)
    # The first valid line sets the number of scores, even if it has only one.
    weights = weights_for(data)
    check(measure(workspace, data, scan=scan, weights=weights, losses=True), data, weights, losses=True)


@pytest.mark.parametrize("scan", SCANS)
def test_the_scan_never_changes_a_byte(tmp_path, scan):
    data = TABLES["seven fields"]
    once = measure(tmp_path, data, weights=weights_for(data), losses=True)
    again = measure(tmp_path, data, weights=weights_for(data), losses=True, scan=scan)
    for name, value in vars(once).items():
        if isinstance(value, np.ndarray):
            assert value.tobytes() == getattr(again, name).tobytes()


def test_progress_is_reported_for_every_block(tmp_path):
    recorded = []
    data = TABLES["seven fields"]
    measure(tmp_path, data, scan={"block_bytes": 300, "progress": lambda *arguments: recorded.append(arguments)})
    assert len(recorded) > 3
    assert recorded[-1] == (len(data), data.count(b"\n"))


def test_malformed_lines(tmp_path):
    with pytest.raises(DataError, match="table:2: a score is not a number"):
        measure(tmp_path, MALFORMED, "fail")
    weights = weights_for(MALFORMED)
    for on_error in ("skip", "keep"):
        measures = measure(tmp_path, MALFORMED, on_error, weights=weights, losses=True)
        assert (np.flatnonzero(measures.malformed) + 1).tolist() == MALFORMED_LINES
        check(measures, MALFORMED, weights, losses=True)


def test_a_table_without_any_entry(tmp_path):
    measures = measure(tmp_path, b"a ||| b\nno entry\n", weights=weights_for(MALFORMED), losses=True)
    assert measures.malformed.all()
    assert measures[LOSSES].tolist() == [0, 0]


def test_missing_counts_are_unknown_and_refused_where_they_are_needed(tmp_path):
    """A pair without a count is not assumed to have been seen once."""
    wrong = [b"-2", b"0", b"5.01", b"inf", b"-inf", b"1e300", b"x"]
    data = b"".join(b"a ||| b ||| 0.5 1 1 1 ||| 0-0 ||| 8 5 %s\n" % count for count in (b"2.5", b"5", b"", *wrong))
    np.testing.assert_array_equal(measure(tmp_path, data)[COUNTS], [2.5, 5.0, 4.0] + [np.nan] * len(wrong))
    use = CountUse("the method count", "prune without counts")
    with pytest.raises(DataError, match=r":4: the entry has no joint count \(found '8 5 -2'\); the method count needs"):
        measure(tmp_path, data, count_use=use)
    assert MeasureRequest.of({COUNTS}, TableScan(), weights=lambda: None).count_use


def test_losses_need_weights():
    with pytest.raises(ValueError, match="without the weights"):
        MeasureRequest(losses=True)


def test_a_table_of_another_number_of_scores(tmp_path):
    message = "table:1: the entries have 2 scores, but TranslationModel3 has 4 weights"
    with pytest.raises(DataError, match=message):
        measure(tmp_path, MALFORMED, weights=TableWeights(np.ones(4, np.float32), name="TranslationModel3"))


@pytest.mark.parametrize(("score", "message"), [(b"-0.5", "is negative"), (b"inf", "is infinite")])
def test_scores_without_a_logarithm(tmp_path, score, message):
    data = b"a ||| b ||| 1\na ||| c ||| %s\n" % score
    assert len(measure(tmp_path, data)) == 2
    with pytest.raises(DataError, match=f"table:2: a score {message}"):
        measure(tmp_path, data, weights=TableWeights(np.ones(1, np.float32)), scan={"block_bytes": 1})


@pytest.mark.parametrize("name", RULES)
def test_rules_have_no_compositions(tmp_path, name):
    with pytest.raises(DataError, match=r"all its entries are rules with labels such as \[X\]"):
        measure(tmp_path, TABLES[name], weights=weights_for(TABLES[name]), losses=True)


def naive_significance(data):
    corpora = [[line.split() for line in text.split(b"\n")[:-1]] for text in (SOURCE, TARGET)]
    for line in naive.parse_table(data, naive.first_score_count(data))[0]:
        if line.fault != "ok":
            yield 0.0
            continue
        parts = [naive_filter.runs(field, False) for field in (line.source, line.target)]
        if not all(parts):
            yield math.inf
            continue
        source, target = map(naive_filter.sentences_of, parts, corpora)
        yield naive_filter.negative_log_p(len(source & target), len(source), len(target), len(corpora[0]))


@for_each("scan", SCANS)
@for_each("name", ["lexicalised", "empty targets", "hierarchical", "brackets", "empty"])
def test_significance(tmp_path, monkeypatch, name, scan):
    monkeypatch.setattr(CorpusCheck, "check", lambda self: None)
    corpora = str(write(tmp_path / "f", SOURCE)), str(write(tmp_path / "e.gz", TARGET))
    data = TABLES[name] + (b"no entry\n" if TABLES[name] else b"")
    measures = measure(tmp_path, data, scan=scan, corpora=corpora)
    np.testing.assert_allclose(measures[SIGNIFICANCE], list(naive_significance(data)), rtol=1e-5, atol=1e-5)
    assert measures.alpha == pytest.approx(math.log(6))


def test_corpora_of_another_table(tmp_path):
    path, short = str(write(tmp_path / "f", SOURCE)), str(write(tmp_path / "e", b"a\n"))
    with pytest.raises(CorpusMismatchError, match="does not occur in"):
        measure(tmp_path, TABLES["lexicalised"], corpora=(path, path))
    with pytest.raises(DataError, match=r"the file ends after 1 lines, but .*f has 6"):
        measure(tmp_path, TABLES["lexicalised"], corpora=(path, short))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scan", SCANS)
def test_similarities_of_a_model_and_of_a_file(tmp_path, model, scan, weighted):
    data = TABLES["seven fields"] + b"no entry\n"
    table, saved = str(write(tmp_path / "table", data)), str(tmp_path / "saved")
    request = PruneRequest(table, sweep=[0.5], scan=TableScan("keep"))
    sizes_by_threshold(request, ModelSimilarities(model), saved, SILENT, request.best)
    weights = weights_for(data) if weighted else None
    options = {"scan": scan, "weights": weights, "losses": weighted}
    computed = measure(tmp_path, data, similarities={SIMILARITIES: ModelSimilarities(model)}, **options)
    check(computed, data, weights, losses=weighted)
    lines = naive.parse_table(data, 4)[0]
    for i in range(0, len(lines) - 1, 7):
        source, target = (
            naive.word_ids(field, vocabulary.words)
            for field, vocabulary in (
                (lines[i].source, model.source_vocabulary), (lines[i].target, model.target_vocabulary),
            )
        )  # fmt: skip
        np.testing.assert_allclose(computed[SIMILARITIES][i], naive.similarities(source, target, model), atol=1e-4)
    assert not computed[SCORED][-1]
    assert computed[SCORED].any()
    loaded = measure(tmp_path, data, similarities={SIMILARITIES: FileSimilarities(saved)}, **options)
    assert loaded[SIMILARITIES].tobytes() == computed[SIMILARITIES].tobytes()
    np.testing.assert_array_equal(loaded[SCORED], computed[SCORED])
    check(loaded, data, weights, losses=weighted)


def test_saved_similarities_of_another_table(tmp_path, model):
    request = PruneRequest(str(write(tmp_path / "t", MALFORMED)), sweep=[0.5], scan=TableScan("keep"))
    sizes_by_threshold(request, ModelSimilarities(model), str(tmp_path / "saved"), SILENT, request.best)
    saved = {SIMILARITIES: FileSimilarities(str(tmp_path / "saved"))}
    with pytest.raises(DataError, match="made from another table"):
        measure(tmp_path, TABLES["lexicalised"], similarities=saved)
    with pytest.raises(DataError, match=r"has 9 rows, but .* has 1 entries"):
        measure(tmp_path, MALFORMED[: MALFORMED.index(b"\n") + 1], similarities=saved)


@pytest.mark.parametrize("weighted", [False, True])
def test_similarities_of_columns(tmp_path, weighted):
    data = TABLES["seven fields"]
    weights = weights_for(data) if weighted else None
    measures = measure(
        tmp_path, data, similarities={SIMILARITIES: ColumnSimilarities(3, 1, "raw")}, weights=weights, losses=weighted
    )
    check(measures, data, weights, losses=weighted)
    expected = [[min(line.values[3], 1), min(line.values[1], 1)] for line in naive.parse_table(data, 4)[0]]
    np.testing.assert_array_equal(measures[SIMILARITIES], np.array(expected, np.float32))
    assert measures[SCORED].all()


def pairs_for(data):
    """Return uses of every third entry of a table and of pairs that are not in it, each pair twice."""
    rng = random.Random(len(data))
    lines = [line for line in naive.parse_table(data, naive.first_score_count(data))[0] if line.fault == "ok"][::3]
    pairs = [(tuple(naive.tokens(line.source)), tuple(naive.tokens(line.target))) for line in lines]
    pairs += [(source, (b"nothing",)) for source, _ in pairs[::2]] + [((b"nothing",), target) for _, target in pairs]
    return [(*pair, rng.choice([0, 1, 2.5, 7])) for pair in pairs for _ in range(2)]


@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize(("weighted", "probabilities"), [(False, False), (False, True), (True, True)])
def test_uses_and_probabilities_of_forced_decoding(tmp_path, scan, weighted, probabilities):
    data = TABLES["seven fields"] + b"no entry\n"
    pairs = pairs_for(data)
    text = b"".join(b"%s  ||| %s ||| %g\n" % (b" ".join(s), b" ".join(t), count) for s, t, count in pairs)
    weights = weights_for(data) if weighted else None
    forced_pairs = PairUses.read(str(write(tmp_path / "pairs", text)))
    measures = measure(tmp_path, data, scan=scan, weights=weights, forced_pairs=forced_pairs,
                       forced_probabilities=probabilities)  # fmt: skip
    check(measures, data, weights)
    assert (FORCED in measures) == probabilities
    for i, line in enumerate(naive.parse_table(data, 4)[0]):
        if line.fault != "ok":
            assert measures[USES][i] == 0
            assert not probabilities or measures[FORCED][i].tolist() == [0, 0]
            continue
        source, target = tuple(naive.tokens(line.source)), tuple(naive.tokens(line.target))
        uses = sum(count for s, t, count in pairs if (s, t) == (source, target))
        assert measures[USES][i] == uses
        if probabilities:
            totals = (
                sum(pair[2] for pair in pairs if pair[side] == phrase) for side, phrase in enumerate((source, target))
            )
            expected = [(uses + line.values[column]) / (total + 1)
                        for total, column in zip(totals, (2, 0), strict=True)]  # fmt: skip
            np.testing.assert_allclose(measures[FORCED][i], np.clip(expected, 1e-6, 1), rtol=1e-6)


def test_pairs_of_another_table_and_tables_of_other_scores(tmp_path):
    pairs = PairUses.read(str(write(tmp_path / "pairs", b"x ||| y ||| 1\n")))
    with pytest.raises(DataError, match=r"pairs: none of its pairs with a count above 0 is in .*table"):
        measure(tmp_path, TABLES["seven fields"], forced_pairs=pairs)
    assert len(measure(tmp_path, b"", forced_pairs=pairs)[USES]) == 0
    with pytest.raises(DataError, match=r"table:1: the entries have 2 scores; .* the 4 that Moses' training writes"):
        measure(tmp_path, MALFORMED, forced_pairs=pairs, forced_probabilities=True)
    with pytest.raises(ValueError, match="cannot be measured without its pairs"):
        MeasureRequest(forced_probabilities=True)


@pytest.mark.parametrize("scan", SCANS)
@pytest.mark.parametrize("method", ["kneser-ney", "good-turing"])
def test_smoothed_probabilities(tmp_path, scan, method):
    data = read(GOLDEN / "table.3.gz") + b"no entry\n"
    measures = measure(tmp_path, data, scan=scan, smoothing=method)
    check(measures, data)
    with Input(str(tmp_path / "table")) as source:
        smoothed = SmoothedProbabilities("t", count_table(source, TableScan("keep")), method)
    block, _ = TableParser(scores=4)(0, np.frombuffer(data, np.uint8))
    expected = smoothed(block).astype(np.float32)
    expected[-1] = 0
    assert measures[SMOOTHED].dtype == np.float32
    assert np.array_equal(measures[SMOOTHED], expected)
    assert measure(tmp_path, b"", scan=scan, smoothing=method)[SMOOTHED].shape == (0, 2)
    with pytest.raises(DataError, match=r"table:1: the entry has no joint count; smoothing needs"):
        measure(tmp_path, b"a ||| b ||| 1\n", scan=scan, smoothing=method)


def test_standard_input_cannot_be_smoothed(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a ||| b ||| 1 ||| ||| 1 1 1\n")))
    with pytest.raises(ValueError, match="read twice"), Input("-") as source:
        measure_table(source, MeasureRequest(smoothing="kneser-ney")).whole()


def test_only_required_inputs_are_read(tmp_path):
    inputs = {
        "similarities": {SIMILARITIES: FileSimilarities("none")}, "corpora": ("no", "file"),
        "forced_pairs": str(tmp_path / "pairs"), "weights": lambda: TableWeights(np.ones(4, np.float32)),
    }  # fmt: skip
    scan = TableScan()
    assert MeasureRequest.of((), scan, **{**inputs, "weights": None}) == MeasureRequest(scan=scan)
    request = MeasureRequest.of({LOSSES, SIGNIFICANCE, SIMILARITIES}, scan, **inputs)
    assert request.losses
    assert request.weights.name == "the model"
    assert (request.corpora, request.similarities[SIMILARITIES].path) == (("no", "file"), "none")
    assert request.forced_pairs is None
    with pytest.raises(DataError, match="pairs: "):
        MeasureRequest.of({USES}, scan, **inputs)
    assert MeasureRequest.of({SMOOTHED}, scan, **inputs) == MeasureRequest(scan=scan, smoothing="kneser-ney")
    write(tmp_path / "pairs", b"x ||| y ||| 1\n")
    for needs, probabilities in (({USES}, False), ({FORCED}, True), ({FORCED, USES}, True)):
        request = MeasureRequest.of(needs, scan, **inputs)
        assert (request.forced_pairs.path, request.forced_probabilities) == (inputs["forced_pairs"], probabilities)


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_losses_do_not_depend_on_the_scale_of_the_weights(tmp_path, factor):
    """Scores and weights are powers of two, so that nothing is rounded."""
    write(tmp_path / "t", b"a ||| x ||| 0.5\na b ||| x y ||| 0.0625\nb ||| y ||| 0.25\nb c ||| z ||| 1\n")
    collected = []
    for scale in (1.0, factor):
        feature = "PhraseDictionaryMemory name=T num-features=1 path=t\nDistortion\nUnknownWordPenalty"
        weights = f"T= {0.5 * scale}\nDistortion0= {-0.5 * scale}\nUnknownWordPenalty0= 1\n"
        ini = ini_of(tmp_path, f"[feature]\n{feature}\n[weight]\n{weights}")
        with Input(str(tmp_path / "t")) as source:
            measures = measure_table(source, MeasureRequest(weights_of(ini, ini.features[0]), losses=True)).whole()
        collected.append(measures[LOSSES])
    np.testing.assert_allclose(collected[0], [np.inf, -0.5 * np.log(2), np.inf, np.inf], rtol=1e-6)
    np.testing.assert_array_equal(collected[0], collected[1])


@pytest.mark.requires_reference
def test_the_reference_table(reference):
    """90.0 % of the entries can be composed, 53.6 % at no loss."""
    path = str(reference / "phrase-table.gz")
    ini = read_moses_ini(str(reference / "moses.ini"))
    request = MeasureRequest(weights_of(ini, choose_table(ini, path)), losses=True, scan=TableScan(threads=2))
    with Input(path) as source:
        measures = measure_table(source, request).whole()
    assert len(measures) == 1_117_535
    assert np.isfinite(measures[LOSSES]).mean() == pytest.approx(0.900, abs=5e-4)
    assert (measures[LOSSES] <= 0).mean() == pytest.approx(0.536, abs=5e-4)
    assert all(first < last for first, last in pairwise(measures.group_offsets.tolist()))


def test_field_offsets_of_the_requested_rows():
    text = np.frombuffer(b"a ||| x ||| 1\na ||| y ||| 1\nb c ||| x ||| 1\n[X] d ||| z ||| 1\n", np.uint8)
    block, _ = TableParser(scores=1)(0, text)
    fields = FieldPlaces.of(block, np.array([1, 2, 3]))
    data = text.tobytes()
    targets = zip(fields.source_ends, fields.target_ends, strict=True)
    assert [data[a:b] for a, b in zip(fields.starts, fields.source_ends, strict=True)] == [b"a ", b"b c ", b"[X] d "]
    assert [data[a:b] for a, b in targets] == [b"||| y ", b"||| x ", b"||| z "]
    assert (fields.heads.tolist(), fields.groups.tolist(), fields.words.tolist()) == ([0, 1, 2], [0, 1, 2], [1, 2, 1])


def test_entries_of_compositions():
    text = np.frombuffer(b"a ||| x ||| 1\na ||| y z ||| 1\nb c ||| x ||| 1\n[X] d e ||| z ||| 1\n", np.uint8)
    block, _ = TableParser(scores=1)(0, text)
    result = ComposedEntries.of(text, FieldPlaces.of(block, np.arange(4)), np.zeros(4, np.float32))
    assert (result.sources, result.rules) == (3, 1)
    # Labels are words of a source, too.
    assert result.entries.levels.tolist() == [1, 1, 2, 3]
    assert result.entries.counts == {1: 2, 2: 1, 3: 1}
