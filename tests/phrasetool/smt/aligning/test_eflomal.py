import errno
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from phrasetool.errors import PhraseToolError
from phrasetool.smt.aligning import eflomal as module
from phrasetool.smt.aligning.eflomal import AlignerSettings, Priors, align, can_be_seeded, find_program
from phrasetool.smt.corpus.symbols import Symbols

WORDS = [
    (b"das", b"the"),
    (b"haus", b"house"),
    (b"ist", b"is"),
    (b"klein", b"small"),
    (b"Alt", b"Old"),
    (b"alt", b"old"),
]


def bitext(pairs=60, seed=1):
    """Return random word-for-word translations without reordering."""
    rng = np.random.default_rng(seed)
    chosen = [[WORDS[k] for k in rng.integers(0, len(WORDS), rng.integers(1, 7))] for _ in range(pairs)]
    source, target = Symbols(), Symbols()
    sides = [
        symbols.read_lines(b"".join(b" ".join(pair[side] for pair in sentence) + b"\n" for sentence in chosen))
        for side, symbols in ((0, source), (1, target))
    ]
    return sides[0], sides[1], source, target


def points(alignments):
    return [alignments[i] for i in range(len(alignments))]


@pytest.mark.parametrize("model", [1, 2, 3])
def test_finds_the_diagonal(model):
    sources, targets, *symbols = bitext()
    forward, reverse = align(sources, targets, *symbols, AlignerSettings(model))
    length = int(sources.lengths.sum())
    for direction in (forward, reverse):
        assert len(direction) == len(sources)
        assert direction.first_outside(sources.lengths, targets.lengths) == -1
        # Model 1 cannot distinguish the repetitions of a word.
        assert (direction.source == direction.target).sum() > (0.5 if model == 1 else 0.9) * length
    assert all(len({t for _, t in links}) == len(links) for links in points(forward))
    assert all(len({s for s, _ in links}) == len(links) for links in points(reverse))


@pytest.mark.skipif(not can_be_seeded(), reason="this eflomal cannot be seeded")
def test_seed():
    # The target sentences are unrelated to the source sentences, so that the seed matters.
    sources, _, source, _ = bitext()
    _, targets, _, target = bitext(seed=2)
    keep = np.flatnonzero(targets.lengths > 0)
    runs = [
        [
            points(direction)
            for direction in align(sources, targets.select(keep), source, target, AlignerSettings(seed=s))
        ]
        for s in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_without_seed():
    sources, targets, *symbols = bitext()
    forward, _ = align(sources, targets, *symbols, AlignerSettings(seed=None, threads=1, relative_iterations=0.1))
    assert len(forward) == len(sources)


def test_priors_decide():
    """The bitext alone leaves the alignment open; priors decide it, whatever the case of their words."""
    source, target = Symbols(), Symbols()
    sources, targets = source.read_lines(b"Das haus\n" * 4), target.read_lines(b"house The\n" * 4)
    for crossed in (False, True):
        words = [("das", "the"), ("HAUS", "house")] if crossed else [("das", "house"), ("haus", "the")]
        lexical = [(s, t, 1000.0) for s, t in words] + [("unseen", "the", 5.0), ("<NULL>", "the", 0.0)]
        fertilities = [("das", 1, 2.0)], [("the", 1, 2.0), ("unseen", 1, 1.0)]
        priors = Priors(lexical, ({1: 1.0}, {1: 1.0}), fertilities)
        forward, _ = align(sources, targets, source, target, AlignerSettings(model=1, priors=priors))
        assert points(forward) == [[(0, 1), (1, 0)] if crossed else [(0, 0), (1, 1)]] * 4
        # All kinds of priors are accepted by the model that uses them.
        assert len(align(sources, targets, source, target, AlignerSettings(priors=priors))[0]) == 4


def test_too_long_sentences_have_no_points():
    source, target = Symbols(), Symbols()
    long = b" ".join([b"a"] * 1024)
    sources, targets = source.read_lines(b"a b\n" + long + b"\na"), target.read_lines(b"x y\nx\nx")
    for direction in align(sources, targets, source, target, AlignerSettings(relative_iterations=0.01)):
        assert points(direction)[1] == []
        assert points(direction)[2] == [(0, 0)]


def test_iterations():
    """The default iterations are those that `eflomal-align` chooses."""
    assert AlignerSettings().iterations(29_000) == (7, 7, 29)
    assert AlignerSettings(model=2).iterations(29_000) == (7, 29, 0)
    assert AlignerSettings(model=1, relative_iterations=2).iterations(100) == (1000, 0, 0)
    assert AlignerSettings().iterations(10**9) == (2, 1, 2)


def test_invalid_arguments_are_refused():
    sources, targets, *symbols = bitext(2)
    with pytest.raises(ValueError, match="2 source and 1 target"):
        align(sources, targets.select(np.array([0])), *symbols)
    with pytest.raises(ValueError, match="0 source"):
        align(sources.select(np.zeros(0, int)), targets.select(np.zeros(0, int)), *symbols)


def test_failing_program(tmp_path, monkeypatch):
    sources, targets, *symbols = bitext(2)
    program = tmp_path / "eflomal"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('out of luck')\n")
    program.chmod(0o755)
    monkeypatch.setattr(module, "find_program", lambda: program)
    assert not can_be_seeded()
    with pytest.raises(PhraseToolError, match="eflomal failed: out of luck"):
        align(sources, targets, *symbols)


@pytest.mark.parametrize("method", ["write_bytes", "open"])
def test_a_full_disk_is_reported_with_the_folder(method, tmp_path, monkeypatch):
    sources, targets, *symbols = bitext(2)
    program = tmp_path / "eflomal"
    program.write_bytes(module._SYSTEM_RANDOM)

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "find_program", lambda: program)
    monkeypatch.setattr(module.Path, method, full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(PhraseToolError, match=rf"^{tmp_path}/phrasetool\.\w+: cannot write: the disk is full"):
        align(sources, targets, *symbols)
    assert os.listdir(tmp_path) == ["eflomal"]


def test_no_program(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PhraseToolError, match="is not installed"):
        find_program()


def test_program_without_arguments_prints_its_usage():
    """A patched copy of the program is checked by a run without arguments, which must not start any work."""
    outcome = subprocess.run([find_program()], capture_output=True, check=False, timeout=20)
    assert b"Usage" in outcome.stderr
