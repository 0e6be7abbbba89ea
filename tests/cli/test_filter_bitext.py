"""`phrasetool filter-bitext`: pairs one by one, odd lines, threads, interruptions, other languages."""

import gzip
import json
import math
import os
import re
import warnings
from dataclasses import replace

import kenlm
import numpy as np
import pytest

from moses_compat.files import streams
from moses_compat.jobs import filter_bitext
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.pair_classifier.model import PairClassifierModel
from phrasetool.pair_classifier.settings import PairClassifierSettings
from phrasetool.pair_classifier.training import fresh_classifier
from tests.commands import full_disk_after, read, run_inside, run_outside, write
from tests.comparable_text import WORDS as STATIC_WORDS
from tests.comparable_text import encoder_folder
from tests.parallel_models import FAST, bert_folder, random_parallel_model, toy_lines, toy_pairs
from tests.variants import for_each

ODD = [
    (b"saa sbb\tscc\r\n", b"taa tbb tcc\r\n"), (b"\n", b"taa\n"), (b"  \n", b"\n"), (b"?!\n", b"taa tbb\n"),
    (b"saa  sbb\n", b"saa sbb\n"), (b"&amp; saa\n", b"& saa\n"), (b"saa " * 25 + b"\n", b"taa " * 25 + b"\n"),
    (b"s\xffa saa\n", b"taa\n"), (b"saa sbb scc sdd see", b"taa tbb tcc tdd tee"),
]  # fmt: skip


def dirty_lines(count=600, seed=3):
    """Return source and target lines; every second pair has the target of another pair."""
    sources, targets = toy_lines(count, seed)
    mixed = targets[1::2][1:] + targets[1::2][:1]
    targets[1::2] = mixed
    return [line + b"\n" for line in sources], [line + b"\n" for line in targets]


def bitext(folder, sides=None):
    folder.mkdir(exist_ok=True)
    sides = sides or dirty_lines()
    return [write(folder / name, b"".join(lines)) for name, lines in zip(("s", "t"), sides, strict=True)]


def odd_bitext(folder):
    sides = dirty_lines(400)
    return bitext(folder, [side + [pair[index] for pair in ODD] for index, side in enumerate(sides)])


@pytest.fixture
def kept(tmp_path):
    return "-o", tmp_path / "ks", tmp_path / "kt"


def rows(path):
    return [line.split(b"\t") for line in read(path).splitlines()]


def test_probabilities_equal_those_of_single_pairs(classifier_folder, kept, tmp_path):
    source, target = odd_bitext(tmp_path)
    outcome = run_inside(
        "filter-bitext", source, target, "-m", classifier_folder, *kept, "--scores", tmp_path / "scores",
        "--rejected", tmp_path / "rejected", "--json", tmp_path / "json", "--threshold", 0.3,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    model = PairClassifierModel.load(classifier_folder)
    pairs = list(zip(source.read_bytes().splitlines(True), target.read_bytes().splitlines(True), strict=True))
    plain = [[line.replace(b"\t", b" ").strip() for line in pair] for pair in pairs]
    expected = np.array([model.probabilities([s], [t])[0] if s and t else 0 for s, t in plain])
    result = rows(tmp_path / "scores")
    assert [float(row[0]) for row in result] == pytest.approx(expected, abs=2e-5)
    assert [row[3:] for row in result] == plain
    kept_pairs = [pair for pair, p in zip(pairs, expected, strict=True) if p >= 0.3]
    assert (tmp_path / "ks").read_bytes() == b"".join(pair[0] for pair in kept_pairs)
    assert (tmp_path / "kt").read_bytes() == b"".join(pair[1] for pair in kept_pairs)
    assert [row[1] == b"kept" for row in result] == (expected >= 0.3).tolist()
    rejected_numbers = [number for number, p in enumerate(expected, 1) if p < 0.3]
    assert [int(row[2]) for row in rows(tmp_path / "rejected")] == rejected_numbers
    report = json.loads((tmp_path / "json").read_text())
    assert (report["pairs"], report["kept"], report["rejected"]) == (409, len(kept_pairs), len(rejected_numbers))
    assert (report["threshold"], report["copies"], report["over_long"]) == (0.3, 2, 1)
    assert report["reasons"]["empty"] == 2
    assert report["reasons"]["unknown"] == 3
    assert report["reasons"]["probability"] == len(rejected_numbers) - 5
    assert f"kept {len(kept_pairs)} of 409 pairs" in outcome.err


def test_keeps_correct_pairs_and_drops_wrong_ones(classifier_folder, kept, tmp_path):
    source, target = bitext(tmp_path)
    options = ("--scores", tmp_path / "scores", "--threshold", "best", "--json", tmp_path / "json")
    outcome = run_inside("filter-bitext", source, target, "-m", classifier_folder, *kept, *options)
    assert outcome.code == 0, outcome.err
    report, best = (
        json.loads((tmp_path / "json").read_text()),
        PairClassifierModel.load(classifier_folder).thresholds["best"],
    )
    assert report["threshold"] == best != 0.5
    assert "ranks true pairs above random ones with AUC 0.7" in outcome.err
    verdicts = np.array([row[1] == b"kept" for row in rows(tmp_path / "scores")])
    assert verdicts[::2].mean() > 0.5
    assert verdicts[1::2].mean() < 0.15


def test_threads_and_block_sizes_change_no_byte(classifier_folder, tmp_path, monkeypatch):
    odd_bitext(tmp_path)
    names = ("ks", "kt.gz", "scores.gz", "rejected")
    command = ("filter-bitext", "s", "t", "-m", classifier_folder, "-q", "-o", *names[:2], "--scores", names[2],
               "--rejected", names[3], "--explain", "--drop-copies")  # fmt: skip
    outputs = []
    for threads in (1, 2):
        outcome = run_outside(*command, "--threads", threads, cwd=tmp_path)
        assert (outcome.code, outcome.err) == (0, "")
        outputs.append([(tmp_path / name).read_bytes() for name in names])
    monkeypatch.setattr(streams, "BYTES_PER_BLOCK", 7)
    monkeypatch.chdir(tmp_path)
    assert run_inside(*command, "--threads", 2).code == 0
    outputs.append([(tmp_path / name).read_bytes() for name in names])
    assert outputs[0] == outputs[1] == outputs[2]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "s", "t"])


def test_explained_probabilities_differ_only_by_length(classifier_folder, kept, tmp_path):
    random_parallel_model(length="none").save(tmp_path / "m")
    source, target = bitext(tmp_path / "b")
    scored = ("--scores", tmp_path / "scores", "--explain", "--force", "-q")
    assert run_inside("filter-bitext", source, target, "-m", tmp_path / "m", *kept, *scored).code == 0
    result = rows(tmp_path / "scores")
    assert [float(row[5]) for row in result] == pytest.approx([float(row[0]) for row in result], abs=3e-6)
    assert run_inside("filter-bitext", source, target, "-m", classifier_folder, *kept, *scored).code == 0
    assert max(abs(float(row[5]) - float(row[0])) for row in rows(tmp_path / "scores")) > 0.01


def test_interrupted_work_is_resumed(classifier_folder, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(filter_bitext, "PAIRS", 50)
    source, target = bitext(tmp_path)
    command = ("filter-bitext", source, target, "--threads", 1, "--scores", tmp_path / "scores", "-m")
    assert run_inside(*command, classifier_folder, *kept, "-q").code == 0
    expected = [(tmp_path / name).read_bytes() for name in ("ks", "kt", "scores")]
    for name in ("ks", "kt", "scores"):
        (tmp_path / name).unlink()
    with full_disk_after(3):
        failed = run_inside(*command, classifier_folder, *kept, "-q")
    assert (failed.code, "the disk is full" in failed.message) == (1, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ks.scores-1", "s", "t"]
    assert len(list((tmp_path / "ks.scores-1").iterdir())) == 3
    random_parallel_model().save(tmp_path / "other")
    message = run_inside(*command, tmp_path / "other", *kept, "-q", "--force").err
    assert "holds scores of another model" in message
    other_bitext = bitext(tmp_path / "b", dirty_lines(seed=9))
    refused = run_inside("filter-bitext", *other_bitext, "-m", classifier_folder, *kept, "-q")
    assert (refused.code, "holds scores of another bitext" in refused.message) == (1, True)
    outcome = run_inside(*command, classifier_folder, *kept)
    assert (outcome.code, "150 were scored by an earlier run" in outcome.err) == (0, True)
    assert [(tmp_path / name).read_bytes() for name in ("ks", "kt", "scores")] == expected
    assert not (tmp_path / "ks.scores-1").exists()


def test_pipes_compression_and_empty_bitexts(classifier_folder, tmp_path):
    source, target = bitext(tmp_path)
    packed = write(tmp_path / "s.gz", source.read_bytes())
    plain = run_inside("filter-bitext", packed, target, "-m", classifier_folder, "-q", "-o", "-", tmp_path / "kt")
    piped = run_inside(
        "filter-bitext", "-", target, "-m", classifier_folder, "-q", "-o", tmp_path / "ks.gz", tmp_path / "kt2.gz",
        stdin=source.read_bytes(),
    )  # fmt: skip
    assert (plain.code, piped.code) == (0, 0)
    assert plain.out == read(tmp_path / "ks.gz") != b""
    assert (tmp_path / "kt").read_bytes() == gzip.decompress((tmp_path / "kt2.gz").read_bytes())
    nothing = bitext(tmp_path / "b", ([], []))
    outputs = ("-m", classifier_folder, "-o", tmp_path / "es", tmp_path / "et")
    refused = run_inside("filter-bitext", *nothing, *outputs)
    assert (refused.code, "--allow-empty continues anyway" in refused.message) == (1, True)
    assert run_inside("filter-bitext", *nothing, *outputs, "--allow-empty", "-q").code == 0
    assert (tmp_path / "es").read_bytes() == (tmp_path / "et").read_bytes() == b""


def test_models_of_other_languages_are_refused_and_dirty_bitexts_are_not(classifier_folder, kept, tmp_path):
    source, target = bitext(tmp_path)
    foreign_source = write(tmp_path / "o", source.read_bytes().replace(b"s", b"x").replace(b"aa", b"yy"))
    model = ("-m", classifier_folder, *kept)
    swapped = run_inside("filter-bitext", target, source, *model)
    assert (swapped.code, "source and target look swapped" in swapped.message) == (1, True)
    foreign = run_inside("filter-bitext", foreign_source, target, *model)
    assert (foreign.code, "trained on other languages" in foreign.message) == (1, True)
    shuffled = write(tmp_path / "u", b"".join(sorted(target.read_bytes().splitlines(True))))
    chance = run_inside("filter-bitext", source, shuffled, *model)
    assert (chance.code, "hardly better than chance" in chance.message) == (1, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o", "s", "t", "u"]
    forced = run_inside("filter-bitext", source, shuffled, *model, "--force")
    assert (forced.code, "warning: " in forced.err) == (0, True)


def test_an_encoder_and_a_minimum_cosine(kept, tmp_path):
    folder = encoder_folder(tmp_path / "encoder")
    rng = np.random.default_rng(1)
    drawn = [rng.integers(0, STATIC_WORDS, 5) for _ in range(40)]
    source = [" ".join(f"s{i}" for i in words).encode() + b"\n" for words in drawn]
    target = [" ".join(f"t{i}" for i in words).encode() + b"\n" for words in drawn]
    target[::2] = target[::2][1:] + target[::2][:1]
    files = bitext(tmp_path / "b", (source, target))
    outcome = run_inside("filter-bitext", *files, "--encoder", folder, "--threshold", 0.9, *kept)
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "ks").read_bytes() == b"".join(source[1::2])
    refused = run_inside("filter-bitext", *files, "--encoder", folder, *kept)
    assert (refused.code, "needs --threshold" in refused.message) == (2, True)


def test_a_classifier_of_subword_units_reports_truncated_sentences(kept, tmp_path):
    """The encoder reads 30 tokens, two of them special; the classifier reads 90 words."""
    folder = bert_folder(tmp_path / "bert")
    settings = PairClassifierSettings.from_options({**FAST, "max_length": 90}, encoder=f"hf:{folder}")
    fresh = fresh_classifier(toy_pairs(20), settings)
    thresholds = {"half": 0.5, "best": 0.5}
    PairClassifierModel(
        [], fresh.architecture, fresh.classifier.arrays(), 1.0, thresholds, {}, fresh.encoder
    ).save(tmp_path / "m")  # fmt: skip
    lines = [b"saa " * count + b"\n" for count in (27, 28, 29, 1)]
    files = bitext(tmp_path / "b", (lines, [b"taa\n", b"taa\n", b"taa\n", b"tbb " * 91 + b"\n"]))
    options = ("--threshold", 0, "--scores", tmp_path / "scores", "--force")
    outcome = run_inside("filter-bitext", *files, "-m", tmp_path / "m", *options, *kept)
    assert outcome.code == 0, outcome.err
    assert [row[2] for row in rows(tmp_path / "scores")] == [b"-", b"-", b"long", b"long"]
    assert "2 exceed the maximum length of the model and were truncated" in outcome.err
    outcome = run_inside("mine", *files, "-m", tmp_path / "m", "-o", tmp_path / "mined")
    assert "2 sentences exceed the encoder's maximum length and were truncated" in outcome.err


def test_a_sentence_encoder_reports_truncated_sentences(kept, tmp_path):
    """The encoder reads 30 tokens, two of them special."""
    folder = bert_folder(tmp_path / "bert")
    lines = [b"saa " * count + b"\n" for count in (28, 29, 1, 1)]
    files = bitext(tmp_path / "b", (lines, [b"taa\n", b"taa\n", b"tbb " * 29 + b"\n", b"taa\n"]))
    options = ("--threshold", -1, "--scores", tmp_path / "scores", "--force")
    outcome = run_inside("filter-bitext", *files, "--encoder", folder, *options, *kept)
    assert outcome.code == 0, outcome.err
    assert [row[2] for row in rows(tmp_path / "scores")] == [b"-", b"long", b"long", b"-"]
    assert "2 exceed the maximum length of the model and were truncated" in outcome.err


def test_explaining_a_bitext_without_complete_pairs(kept, tmp_path):
    random_parallel_model().save(tmp_path / "m")
    files = bitext(tmp_path / "b", ([b"\n", b"saa\n"], [b"taa\n", b"\n"]))
    options = ("--scores", tmp_path / "scores", "--explain", "--force", "-q")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = run_inside("filter-bitext", *files, "-m", tmp_path / "m", *kept, *options)
    assert outcome.code == 0, outcome.err
    assert [(row[0], row[5]) for row in rows(tmp_path / "scores")] == [(b"0.000000", b"0.000000")] * 2


def test_subword_encoders_read_only_utf8(kept, tmp_path):
    folder = bert_folder(tmp_path / "bert")
    files = bitext(tmp_path / "b", ([b"saa\n", b"s\xff\n"], [b"taa\n", b"tbb\n"]))
    outcome = run_inside("filter-bitext", *files, "--encoder", folder, "--threshold", 0.1, *kept)
    assert (outcome.code, "s:2: is not UTF-8" in outcome.message) == (1, True)


@for_each(
    ("arguments", "code", "said"),
    [
        (["S", "T", "--threshold", "nan"], 2, "not a finite number"),
        (["S", "T", "--threshold", "1.5"], 2, "1.5"),
        (["S", "T", "--threshold", "-0.5"], 2, "expected a probability from 0 to 1"),
        (["S", "T", "--threshold", "better"], 2, "better"),
        (["-", "-"], 2, "only one input can be standard input"),
        (["S", "T", "--explain"], 2, "--explain adds a column to --scores"),
        (["S", "T", "--encoder", "E"], 2, "name a classifier with --model, a"),
        (["S", "T", "--prefix", "query: "], 2, "--prefix is for a sentence encoder"),
        (["S", "S"], 1, "is also the source file"),
        (["S", "SHORT"], 1, "ends after 3 lines"),
        (["S", "MISSING"], 1, "No such file"),
        (["S", "T", "--scores", "S"], 1, "the output is the input"),
        (["S", "T", "--scores", "KEPT"], 1, "two outputs go to one file"),
    ],
)
def test_errors_precede_any_output(arguments, code, said, classifier_folder, tmp_path):
    source, target = bitext(tmp_path / "b")
    names = {"S": source, "T": target, "SHORT": write(tmp_path / "b" / "short", b"taa\n" * 3),
             "MISSING": tmp_path / "none", "KEPT": tmp_path / "ks"}  # fmt: skip
    resolved = [names.get(argument, argument) for argument in arguments]
    outcome = run_inside(
        "filter-bitext", *resolved, "-m", classifier_folder, "-o", tmp_path / "ks", tmp_path / "kt", "-q"
    )
    assert (outcome.code, said in outcome.message) == (code, True), outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


def test_other_kinds_of_models_are_refused(model_folder, kept, tmp_path):
    outcome = run_inside("filter-bitext", *bitext(tmp_path), "-m", model_folder, *kept)
    assert (outcome.code, "train classifier" in outcome.message) == (1, True)


def test_the_default_threshold_is_the_models_and_the_precision_is_reported(classifier_folder, kept, tmp_path):
    source, target = bitext(tmp_path)
    best = PairClassifierModel.load(classifier_folder).thresholds["best"]
    outcome = run_inside(
        "filter-bitext", source, target, "-m", classifier_folder, *kept, "--scores", tmp_path / "scores"
    )
    assert outcome.code == 0, outcome.err
    assert f"score less than {best:g}" in outcome.err
    probabilities = [float(row[0]) for row in rows(tmp_path / "scores") if row[1] == b"kept"]
    assert min(probabilities) >= best - 1e-6
    assert f"expected precision {np.mean(probabilities):.1%}" in outcome.err


@pytest.mark.parametrize(("share", "expected"), [("10%", 60), ("0.5", 300), ("1", 600)])
def test_the_most_probable_share_of_the_pairs_is_kept(classifier_folder, kept, tmp_path, share, expected):
    source, target = bitext(tmp_path)
    arguments = ("filter-bitext", source, target, "-m", classifier_folder, *kept, "--scores", tmp_path / "scores")
    outcome = run_inside(*arguments, "--keep", share, "--json", tmp_path / "j")
    assert outcome.code == 0, outcome.err
    result = rows(tmp_path / "scores")
    kept_probabilities, rejected_probabilities = (
        [float(row[0]) for row in result if row[1] == name] for name in (b"kept", b"rejected")
    )
    assert len(kept_probabilities) == expected
    assert min(kept_probabilities) >= max(rejected_probabilities, default=0)
    threshold = json.loads((tmp_path / "j").read_text())["threshold"]
    # The reported threshold keeps the same pairs.
    before = (tmp_path / "ks").read_bytes()
    assert run_inside(*arguments, "--threshold", repr(threshold)).code == 0
    assert (tmp_path / "ks").read_bytes() == before


def test_a_share_of_a_pipe_or_with_a_threshold_is_refused(classifier_folder, kept, tmp_path):
    source, target = bitext(tmp_path)
    arguments = ("-m", classifier_folder, *kept, "--keep", "0.5")
    piped = run_inside("filter-bitext", "-", target, *arguments, stdin=source.read_bytes())
    assert (piped.code, "standard input: cannot be read twice" in piped.message) == (1, True)
    both = run_inside("filter-bitext", source, target, *arguments, "--threshold", "0.5")
    assert (both.code, "give --threshold or --keep" in both.message) == (2, True)


def test_nothing_is_written_if_no_pair_is_kept(classifier_folder, kept, tmp_path):
    source, target = bitext(tmp_path)
    write(tmp_path / "ks", b"old\n")
    arguments = ("filter-bitext", source, target, "-m", classifier_folder, *kept, "--threshold", "1", "-q")
    outcome = run_inside(*arguments)
    assert outcome.code == 1
    assert "no pair of 600 reaches the threshold 1; the best has 0." in outcome.message
    assert (tmp_path / "ks").read_bytes() == b"old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ks", "s", "t"]
    assert run_inside(*arguments, "--force").code == 0
    assert (tmp_path / "ks").read_bytes() == (tmp_path / "kt").read_bytes() == b""


def test_each_half_is_scored_by_the_classifier_of_the_other(kept, tmp_path, monkeypatch):
    from moses_compat.jobs import cross_training

    source, target = bitext(tmp_path, dirty_lines(500))
    trained = {}

    def classifier(folder, half, development, watch):
        lines = [(folder / f"{half}.{side}").read_bytes().splitlines() for side in ("source", "target")]
        trained[half] = list(zip(*lines, strict=True))
        return random_parallel_model(1 if half == "even" else 2)

    monkeypatch.setattr(cross_training, "_classifier", classifier)
    outcome = run_inside(
        "filter-bitext", source, target, "--cross-train", "--threshold", "0", *kept, "--scores", tmp_path / "scores"
    )
    assert outcome.code == 0, outcome.err
    pairs = [tuple(line.strip() for line in pair) for pair in zip(*dirty_lines(500), strict=True)]
    assert (trained["even"], trained["odd"]) == (pairs[::2], pairs[1::2])
    scores = [float(row[0]) for row in rows(tmp_path / "scores")]
    for start, seed in ((0, 2), (1, 1)):
        sides = [[pair[side] for pair in pairs[start::2]] for side in range(2)]
        assert scores[start::2] == pytest.approx(random_parallel_model(seed).probabilities(*sides), abs=2e-5)
    assert not cross_training.classifier_folder(tmp_path / "ks").exists()


def test_an_unfinished_training_on_another_bitext_is_refused(kept, tmp_path, monkeypatch):
    from phrasetool.pair_classifier import settings as parallel_settings
    from phrasetool_cli.progress import TerminalWatch

    settings_class = parallel_settings.PairClassifierSettings
    fast = {**FAST, "epochs": 2, "search_units": 0}
    del fast["search_epochs"]
    monkeypatch.setattr(parallel_settings, "PairClassifierSettings", lambda **options: settings_class(**fast))

    def interrupt(self, message):
        if "epoch 1/2" in message:
            raise PhraseToolError("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(TerminalWatch, "say", interrupt)
        outcome = run_inside("filter-bitext", *bitext(tmp_path, dirty_lines(400)), "--cross-train", *kept)
    assert (outcome.code, outcome.message) == (1, "phrasetool: interrupted"), outcome.err
    outcome = run_inside("filter-bitext", *bitext(tmp_path, dirty_lines(400, 7)), "--cross-train", *kept)
    assert outcome.code == 1
    folder = tmp_path / "ks.classifiers"
    assert f"{folder}/even/checkpoint.safetensors: cannot resume: the texts differ" in outcome.err
    assert outcome.err.endswith(f"delete {folder} to start again\n")


def test_classifiers_do_not_learn_from_dropped_copies(kept, tmp_path, monkeypatch):
    from moses_compat.jobs import cross_training

    sources, targets = dirty_lines(500)
    copies = range(0, 500, 10)
    for row in copies:
        targets[row] = sources[row]
    source, target = bitext(tmp_path, (sources, targets))
    learnt = []

    def classifier(folder, half, development, watch):
        lines = [(folder / f"{half}.{side}").read_bytes().splitlines() for side in ("source", "target")]
        learnt.append([*zip(*lines, strict=True)])
        return random_parallel_model(1)

    monkeypatch.setattr(cross_training, "_classifier", classifier)
    arguments = ("filter-bitext", source, target, "--cross-train", "--threshold", "0", *kept)
    warning = f"{len(copies)} of 500 pairs are two equal sentences; classifiers that learn from them keep them"
    outcome = run_inside(*arguments)
    assert (outcome.code, warning in outcome.err) == (0, True), outcome.err
    outcome = run_inside(*arguments, "--drop-copies")
    assert (outcome.code, warning in outcome.err) == (0, False), outcome.err
    pairs = [tuple(line.strip() for line in pair) for pair in zip(sources, targets, strict=True)]
    assert learnt[:2] == [pairs[::2], pairs[1::2]]
    assert learnt[2] == [pair for pair in pairs[::2] if pair[0] != pair[1]]
    assert learnt[3] == learnt[1]
    assert read(tmp_path / "ks").count(b"\n") == 500 - len(copies)


def test_complete_cross_training_leaves_no_classifiers(tmp_path, monkeypatch):
    from moses_compat.jobs import cross_training
    from moses_compat.jobs.filter_bitext import FilterRequest

    monkeypatch.setattr(cross_training, "_classifier", lambda folder, half, development, watch: random_parallel_model())
    request = FilterRequest(*map(str, bitext(tmp_path, dirty_lines(500))), (f"{tmp_path}/ks", f"{tmp_path}/kt"), 2.0)
    folder = cross_training.classifier_folder(request.kept[0])
    # The classifiers are kept if the work is incomplete.
    with pytest.raises(DataError, match="reaches the threshold"):
        cross_training.filter_by_cross_training(request)
    assert folder.is_dir()
    cross_training.filter_by_cross_training(replace(request, threshold=0.0))
    assert not folder.exists()
    assert (tmp_path / "ks").stat().st_size > 0


def test_cross_training_finds_wrong_pairs(kept, tmp_path, monkeypatch):
    """Both classifiers are trained, with settings that learn the toy language in seconds."""
    from phrasetool.pair_classifier import settings as parallel_settings

    fast = {**FAST, "epochs": 6, "search_units": 0}
    del fast["search_epochs"]
    settings_class = parallel_settings.PairClassifierSettings
    monkeypatch.setattr(
        parallel_settings,
        "PairClassifierSettings",
        lambda **options: settings_class(**fast),
    )
    # One pair in five is wrong.
    sources, targets = toy_lines(1500, 4)
    wrong = range(0, 1500, 5)
    targets[::5] = [*targets[5::5], targets[0]]
    sides = [[line + b"\n" for line in side] for side in (sources, targets)]
    source, target = bitext(tmp_path, sides)
    arguments = ("filter-bitext", source, target, "--cross-train", "--keep", "80%", *kept)
    outcome = run_inside(*arguments, "--scores", tmp_path / "scores")
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("training a classifier") == 2
    rejected_rows = [row for row, line in enumerate(rows(tmp_path / "scores")) if line[1] == b"rejected"]
    assert len(set(rejected_rows) & set(wrong)) > 0.8 * len(rejected_rows)
    # If a development set of correct pairs determines the threshold, all pairs of a half are used for training.
    dev = bitext(tmp_path / "dev", [[line + b"\n" for line in side] for side in toy_lines(120, 9)])
    outcome = run_inside(
        "filter-bitext", source, target, "--cross-train", "--dev", *dev, "--scores", tmp_path / "dev.scores", *kept
    )
    assert outcome.code == 0, outcome.err
    # Classifiers trained on wrong pairs are too uncertain to estimate the precision.
    assert "expected precision" not in outcome.err
    assert outcome.err.count("750 pairs, and 120 as its development set") == 2
    f1_scores = [float(share) for share in re.findall(r"positions, epoch 6/6: F1 ([\d.]+)% on the dev", outcome.err)]
    assert len(f1_scores) == 2
    assert min(f1_scores) > 90
    assert read(tmp_path / "dev.scores") != read(tmp_path / "scores")
    kept_rows = [row for row, line in enumerate(rows(tmp_path / "dev.scores")) if line[1] == b"kept"]
    assert len(set(kept_rows) - set(wrong)) > 0.9 * len(kept_rows) > 900
    alone = run_inside("filter-bitext", source, target, "-m", "model", "--dev", *dev, *kept)
    assert (alone.code, "--dev is for --cross-train" in alone.err) == (2, True)


def test_cross_training_needs_files_with_enough_pairs(kept, tmp_path):
    source, target = bitext(tmp_path, dirty_lines(60))
    outcome = run_inside("filter-bitext", source, target, "--cross-train", *kept)
    assert (outcome.code, "one half has only 30 pairs; expected 100" in outcome.message) == (1, True)
    piped = run_inside("filter-bitext", "-", target, "--cross-train", *kept, stdin=source.read_bytes())
    assert (piped.code, "two classifiers are trained before" in piped.message) == (1, True)
    both = run_inside("filter-bitext", source, target, "--cross-train", "-m", "model", *kept)
    assert (both.code, "or train two classifiers with --cross-train" in both.message) == (2, True)


def test_a_share_is_exact_despite_ties_and_dropped_copies(classifier_folder, kept, tmp_path):
    """Of pairs with equal scores, the first are kept; dropped copies are not part of the kept share."""
    sources, targets = ([line + b"\n" for line in side] for side in toy_lines(40))
    sources, targets = sources[:1] * 60 + sources, targets[:1] * 60 + targets
    source, target = bitext(tmp_path, (sources, targets))
    arguments = ("filter-bitext", source, target, "-m", classifier_folder, *kept, "--force", "-q")
    for share, expected in (("10%", 10), ("50%", 50)):
        outcome = run_inside(*arguments, "--keep", share, "--scores", tmp_path / "scores")
        assert outcome.code == 0, outcome.err
        assert read(tmp_path / "ks").count(b"\n") == expected
    # The 60 equal pairs tie; those beyond the share are not below its threshold.
    rows = [line.split(b"\t") for line in read(tmp_path / "scores").splitlines()]
    tied = {row[0] for row in rows if row[2] == b"tie"}
    assert len(tied) == 1
    assert tied == {min((row[0] for row in rows if row[1] == b"kept"), key=float)}
    copies = bitext(tmp_path / "copies", ([*sources[50:80], *sources[:10]], [*targets[50:80], *sources[:10]]))
    outcome = run_inside("filter-bitext", *copies, *arguments[3:], "--keep", "50%", "--drop-copies")
    assert outcome.code == 0, outcome.err
    assert read(tmp_path / "ks").count(b"\n") == 20


def test_pipes_are_refused_before_any_work(classifier_folder, kept, tmp_path):
    _, target = bitext(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for options in (("--cross-train",), ("-m", classifier_folder, "--keep", "10%")):
        outcome = run_inside("filter-bitext", pipe, target, *options, *kept)
        assert outcome.code == 1
        assert "name a file" in outcome.message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe", "s", "t"]
    few = bitext(tmp_path / "few", dirty_lines(60))
    assert run_inside("filter-bitext", *few, "--cross-train", *kept).code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few", "pipe", "s", "t"]


@pytest.fixture(scope="module")
def fluent(tmp_path_factory):
    """Return a folder of texts with ordered words, in which every second target is shuffled, and language models."""
    folder, rng = tmp_path_factory.mktemp("fluent"), np.random.default_rng(4)

    def text(name, count, shuffled):
        lines = []
        for number in range(count):
            words = np.sort(rng.choice(30, rng.integers(4, 9), replace=False))
            if shuffled and number % 2:
                rng.shuffle(words)
            lines.append(" ".join(f"w{word}" for word in words) + "\n")
        return write(folder / name, "".join(lines).encode())

    text("good", 600, False)
    text("general", 600, True)
    text("t", 400, True)
    text("s", 400, False)
    write(folder / "other", b"nothing in common\nnothing at all\n" * 50)
    for name in ("good", "general", "other"):
        assert run_inside("lm", folder / name, "-o", folder / f"{name}.arpa", "--order", 3, "-q").code == 0
    return folder


def test_language_models_keep_the_fluent_half(fluent, kept, tmp_path):
    models = fluent / "good.arpa", fluent / "general.arpa"
    language_models = ("--lm", models[0], "--general-lm", models[1])
    options = (*language_models, "--keep", "50%", "--scores", tmp_path / "scores")
    outcome = run_inside("filter-bitext", fluent / "s", fluent / "t", *options, *kept)
    assert outcome.code == 0, outcome.err
    assert "expected precision" not in outcome.err
    result = rows(tmp_path / "scores")
    good, general = (kenlm.Model(str(path)) for path in models)
    for score, state, _, _, target in result:
        words = len(target.split()) + 1
        entropies = [-model.score(target.decode()) * math.log(10) / words for model in (general, good)]
        assert float(score) == pytest.approx(entropies[0] - entropies[1], abs=2e-5)
        assert state in (b"kept", b"rejected")
    right = [(number % 2 == 0) == (row[1] == b"kept") for number, row in enumerate(result)]
    assert np.mean(right) > 0.9
    # The equivalent threshold in nats, on one thread, keeps the same pairs; the source side adds its own difference.
    threshold = min(float(row[0]) for row in result if row[1] == b"kept") - 1e-5
    again = run_inside(
        "filter-bitext", fluent / "s", fluent / "t", *language_models, "--threshold", threshold, "-o", tmp_path / "a",
        tmp_path / "b", "--threads", 1,
    )  # fmt: skip
    assert again.code == 0, again.err
    assert (tmp_path / "b").read_bytes() == (tmp_path / "kt").read_bytes()
    scores = {}
    for name, more in (
        ("target", ("--lm", models[0])),
        ("source", ("--source-lm", models[0])),
        ("source difference", ("--source-lm", models[0], "--general-source-lm", models[1])),
        ("both", (*language_models, "--source-lm", models[0], "--general-source-lm", models[1])),
    ):
        outputs = ("--threshold", -99, "--scores", tmp_path / name, "-o", tmp_path / "a", tmp_path / "b")
        assert run_inside("filter-bitext", fluent / "s", fluent / "t", *more, *outputs).code == 0
        scores[name] = np.array([float(row[0]) for row in rows(tmp_path / name)])
    difference = np.array([float(row[0]) for row in result])
    assert scores["both"] == pytest.approx(scores["source difference"] + difference, abs=3e-6)
    for name, column in (("source", 3), ("target", 4)):
        lines = [row[column].decode() for row in result]
        expected = [good.score(line) * math.log(10) / (len(line.split()) + 1) for line in lines]
        assert scores[name] == pytest.approx(expected, abs=2e-5)


def test_fluency_of_pairs_with_an_empty_side_is_not_written(fluent, kept, tmp_path):
    source, target = write(tmp_path / "s", b"w1 w2\n\nw3\n"), write(tmp_path / "t", b"w1 w2\nw1 w2 w3\nw4\n")
    options = ("--threshold", -9, "--scores", tmp_path / "scores", "--rejected", tmp_path / "rejected")
    outcome = run_inside("filter-bitext", source, target, "--lm", fluent / "good.arpa", *options, *kept)
    assert outcome.code == 0, outcome.err
    scores = [row[0] for row in rows(tmp_path / "scores")]
    assert (scores[1], float(scores[0]) < 0, float(scores[2]) < 0) == (b"-", True, True)
    assert rows(tmp_path / "rejected") == [[b"empty", b"-", b"2", b"", b"w1 w2 w3"]]


def test_language_models_score_escaped_words_as_written(kept, tmp_path):
    lines = b"it &apos;s a dog\nhe &apos;s a cat &amp; dog\nthe dog is a cat\n" * 8
    source, target = (write(tmp_path / name, lines) for name in ("s", "t"))
    model = tmp_path / "lm.arpa"
    outcome = run_inside("lm", target, "--order", 2, "-o", model, "--estimator", "built-in", "-q")
    assert outcome.code == 0, outcome.err
    reference = kenlm.Model(str(model))
    assert "&apos;s" in reference
    for options in (("--lm", model), ("--source-lm", model)):
        outputs = ("--keep", 1, "--scores", tmp_path / "scores", *kept)
        outcome = run_inside("filter-bitext", source, target, *options, *outputs)
        assert outcome.code == 0, outcome.err
        expected = [
            reference.score(line) * math.log(10) / (len(line.split()) + 1) for line in lines.decode().splitlines()
        ]
        assert [float(row[0]) for row in rows(tmp_path / "scores")] == pytest.approx(expected, abs=2e-5)


def test_reused_scores_of_a_share_are_counted(fluent, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(filter_bitext, "PAIRS", 100)
    command = ("filter-bitext", fluent / "s", fluent / "t", "--lm", fluent / "good.arpa", "--keep", "50%", *kept)
    with full_disk_after(3):
        assert run_inside(*command, "--threads", 1).code == 1
    outcome = run_inside(*command, "--json", tmp_path / "json")
    assert (outcome.code, "300 were scored by an earlier run" in outcome.err) == (0, True), outcome.err
    assert json.loads(read(tmp_path / "json"))["resumed"] == 300
    assert "earlier run" not in run_inside(*command).err


def test_language_models_accept_an_empty_bitext(fluent, kept, tmp_path):
    empty = [write(tmp_path / name, b"") for name in ("s", "t")]
    models = ("--lm", fluent / "good.arpa", "--source-lm", fluent / "good.arpa", "--keep", "50%")
    outcome = run_inside("filter-bitext", *empty, *models, "--allow-empty", *kept)
    assert outcome.code == 0, outcome.err
    assert read(tmp_path / "kt") == b""


def test_bad_usage_of_language_models(fluent, kept):
    good, general = fluent / "good.arpa", fluent / "general.arpa"
    for options, code, message in (
        (("--lm", good), 2, "--lm and --source-lm need --keep, or --threshold, the minimum score of kept pairs"),
        (("--lm", good, "--cross-train"), 2, "name a classifier with --model, a sentence encoder"),
        (("--general-lm", general, "--cross-train"), 2, "--general-lm is compared with a model of good text"),
        (("--lm", good, "--general-source-lm", general, "--keep", 1), 2, "of good text: name one with --source-lm"),
        (("--lm", good, "--keep", "1%", "--explain", "--scores", "x"), 2, "--explain needs a classifier"),
        (
            ("--lm", good, "--keep", 0.5, "--prefix", "x"),
            2,
            "--prefix is for a sentence encoder; name one with --encoder",
        ),
        (("--lm", good, "--keep", 0.5, "--dev", fluent / "s", fluent / "t"), 2, "--dev is for --cross-train"),
        (("--lm", good, "--general-lm", good, "--keep", 0.5), 1, "are the same model, so every score would be 0"),
        (("--lm", fluent / "other.arpa", "--keep", 0.5), 1, "other.arpa: knows 0% of the tokens of"),
        (("--source-lm", fluent / "other.arpa", "--keep", 0.5), 1, "other.arpa: knows 0% of the tokens of"),
        (("--lm", fluent / "t", "--keep", 0.5), 1, "t: kenlm cannot read it as a language model: first non-empty line"),
    ):
        outcome = run_inside("filter-bitext", fluent / "s", fluent / "t", *options, *kept)
        assert (outcome.code, message in outcome.err) == (code, True), outcome.err
