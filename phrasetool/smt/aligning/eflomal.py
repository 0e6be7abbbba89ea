"""Word alignment in both directions with eflomal (Östling & Tiedemann 2016), a Gibbs sampler of IBM-style models.

The eflomal program runs on word ids written to a scratch folder.  It has no seed option: it seeds itself from the
system's random device.  To make a run repeatable, a copy of the program in the scratch folder is patched to read a file
there instead, and each direction then runs on one thread, because the program's threads share one generator.

Prior counts of word pairs, jumps and fertilities from an earlier alignment can be supplied.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sized
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from phrasetool.disk.folders import scratch_folder
from phrasetool.errors import PhraseToolError, reason
from phrasetool.phrases import Int32Array, Phrases
from phrasetool.smt.aligning.alignments import Alignments
from phrasetool.smt.corpus.symbols import Symbols

NO_WORD = "<NULL>"
# eflomal does not align longer sentences.
MAX_SENTENCE_WORDS = 1023

_PROGRAM = "eflomal"
# The program's random device, and a file name of the same length in its working directory.
_SYSTEM_RANDOM = b"\0/dev/urandom\0"
_SEED_FILE = b"\0eflomal.seed\0"


@dataclass(frozen=True)
class Priors:
    """Pseudo-counts that eflomal adds to its own.  Words are compared in lower case; `<NULL>` is not a word.

    Attributes:
        lexical: (source word, target word, weight).
        jumps: forward and reverse; jump -> weight.
        fertilities: forward, (source word, fertility, weight), and reverse, of target words.
    """

    lexical: list[tuple[str, str, float]] = field(default_factory=list)
    jumps: tuple[dict[int, float], dict[int, float]] = field(default_factory=lambda: ({}, {}))
    fertilities: tuple[list[tuple[str, int, float]], list[tuple[str, int, float]]] = field(
        default_factory=lambda: ([], [])
    )

    def __len__(self) -> int:
        return sum(map(len, (self.lexical, *self.jumps, *self.fertilities)))


def folded(words: Iterable[bytes]) -> list[str]:
    """Return words as eflomal compares them: in lower case."""
    return [word.decode("utf-8", "surrogateescape").lower() for word in words]


@dataclass(frozen=True)
class PriorUse:
    """Numbers of priors that an alignment uses.

    Attributes:
        lexical: word pairs with both words in the bitext, each on its side.
        fertilities: fertilities of words that are in the bitext on their side; 0 if the model has no fertilities.
        jumps: all jumps; 0 if the model has no jumps.
        swapped: word pairs with both words in the bitext, each on the opposite side.
        of_words: all word pairs and fertilities of the file.
        total: all priors of the file.
    """

    lexical: int
    fertilities: int
    jumps: int
    swapped: int
    of_words: int
    total: int

    @classmethod
    def of(cls, priors: Priors, source: Iterable[bytes], target: Iterable[bytes], model: int) -> PriorUse:
        """Count the priors that an alignment of a bitext uses.

        Args:
            priors: the priors of a file.
            source, target: the words of the bitext.
            model: 1 has neither jumps nor fertilities, 2 has jumps, 3 has both.
        """
        sides = {NO_WORD, *folded(source)}, {NO_WORD, *folded(target)}
        fertilities = sum(
            word != NO_WORD and word.lower() in side
            for side, entries in zip(sides, priors.fertilities, strict=True)
            for word, _, _ in entries
        )
        return cls(
            _pairs(priors, sides[0], sides[1]), fertilities if model == 3 else 0,
            sum(map(len, priors.jumps)) if model > 1 else 0, _pairs(priors, sides[1], sides[0]),
            len(priors.lexical) + sum(map(len, priors.fertilities)), len(priors),
        )  # fmt: skip

    @property
    def used(self) -> int:
        """Total number of priors used."""
        return self.lexical + self.fertilities + self.jumps


def _pairs(priors: Priors, source: Collection[str], target: Collection[str]) -> int:
    return sum(
        (s if s == NO_WORD else s.lower()) in source and (t if t == NO_WORD else t.lower()) in target
        for s, t, _ in priors.lexical
    )


@dataclass(frozen=True)
class AlignerSettings:
    """Settings of eflomal.

    Attributes:
        model: 1 IBM model 1, 2 with jumps (HMM), 3 with jumps and fertility.
        samplers: independent samplers whose results are averaged.
        relative_iterations: factor of the number of iterations that eflomal would choose.
        null_prior: prior probability that a word is not aligned.
        seed: makes a run repeatable; None for a random start.
        threads: used without a seed; with a seed, eflomal uses one thread per direction.
        priors: from an earlier alignment.
    """

    model: int = 3
    samplers: int = 3
    relative_iterations: float = 1.0
    null_prior: float = 0.2
    seed: int | None = 1
    threads: int = 2
    priors: Priors | None = None

    def iterations(self, sentences: int) -> tuple[int, int, int]:
        """Return the iterations of each model by eflomal's rule: the larger the bitext, the fewer."""
        full = max(2, round(self.relative_iterations * 5000 / math.sqrt(sentences)))
        quarter = max(1, full // 4)
        if self.model == 1:
            return full, 0, 0
        if self.model == 2:
            return max(2, quarter), full, 0
        return max(2, quarter), quarter, full


def find_program() -> Path:
    """Return the eflomal program: the one in its Python package, else the one on the PATH.

    Raises:
        PhraseToolError: eflomal is not installed.
    """
    package = importlib.util.find_spec(_PROGRAM)
    for folder in (package.submodule_search_locations or []) if package else []:
        program = Path(folder) / "bin" / _PROGRAM
        if program.is_file():
            return program
    program_on_path = shutil.which(_PROGRAM)
    if not program_on_path:
        raise PhraseToolError("eflomal, the word aligner, is not installed (pip install eflomal)")
    return Path(program_on_path)


@contextlib.contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """Name the folder in the error if files in it cannot be written: that of a full disk names none.

    Raises:
        PhraseToolError: a file cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise PhraseToolError(f"{folder}: cannot write: {reason(error)}") from error


def _seedable_copy(program: Path, folder: Path) -> Path | None:
    """Return a copy of the program that seeds itself from a file; None if it cannot be patched or does not run.

    Raises:
        PhraseToolError: the copy cannot be written.
    """
    data = program.read_bytes()
    if data.count(_SYSTEM_RANDOM) != 1:
        return None
    copy = folder / _PROGRAM
    with _writing_to(folder):
        copy.write_bytes(data.replace(_SYSTEM_RANDOM, _SEED_FILE))
        copy.chmod(0o700)
    try:
        # Without arguments the program only prints its usage; some systems do not run modified or temporary files.
        subprocess.run([copy], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return copy


def can_be_seeded() -> bool:
    """Return whether eflomal can be made repeatable on this system.

    Raises:
        PhraseToolError: eflomal is not installed.
    """
    with scratch_folder(None, "phrasetool.") as folder:
        return _seedable_copy(find_program(), Path(folder)) is not None


def _mixed(seed: int) -> int:
    """Return 64 well-mixed bits of a seed, not all zero (splitmix64, Steele, Lea & Flood 2014)."""
    x = (seed + 0x9E3779B97F4A7C15) % (1 << 64)
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % (1 << 64)
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % (1 << 64)
    return x ^ (x >> 31) or 1


class _Folded:
    """The words of a language in lower case, as eflomal counts them.

    Attributes:
        ids: int32, shape (V,), the folded id of each word.
        index: folded word -> folded id.
    """

    def __init__(self, symbols: Symbols) -> None:
        self.index: dict[str, int] = {}
        numbers = [self.index.setdefault(word, len(self.index)) for word in folded(symbols.words)]
        self.ids: Int32Array = np.array(numbers, np.int32)

    def number(self, word: str) -> int | None:
        """Return the number of a word in a file of priors: 0 for `<NULL>`, else its id plus one; None if unknown."""
        if word == NO_WORD:
            return 0
        known = self.index.get(word.lower())
        return None if known is None else known + 1

    def write(self, sentences: Phrases, path: Path) -> None:
        """Write sentences in the input format of the eflomal program."""
        words = self.ids[sentences.words].tolist()
        bounds = sentences.offsets.tolist()
        with path.open("w") as file:
            file.write(f"{len(sentences)} {len(self.index)}\n")
            for first, last in pairwise(bounds):
                if last - first > MAX_SENTENCE_WORDS:
                    file.write("0\n")
                else:
                    file.write(f"{last - first} {' '.join(map(str, words[first:last]))}\n")


def _write_priors(priors: Priors, source: _Folded, target: _Folded, path: Path) -> None:
    """Write priors in the input format of the eflomal program; words that are not in the bitext are left out."""
    lexical: dict[tuple[int, int], float] = {}
    for source_word, target_word, weight in priors.lexical:
        s, t = source.number(source_word), target.number(target_word)
        if s is not None and t is not None:
            lexical[s, t] = lexical.get((s, t), 0.0) + weight
    fertilities: list[dict[tuple[int, int], float]] = []
    for side, entries in zip((source, target), priors.fertilities, strict=True):
        sums: dict[tuple[int, int], float] = {}
        for word, fertility, weight in entries:
            number = side.number(word)
            if number:
                sums[number, fertility] = sums.get((number, fertility), 0.0) + weight
        fertilities.append(sums)
    with path.open("w") as file:
        parts: list[Sized] = [lexical, *priors.jumps, *fertilities]
        sizes = [len(source.index) + 1, len(target.index) + 1, *map(len, parts)]
        file.write(" ".join(map(str, sizes)) + "\n")
        file.writelines(f"{s} {t} {weight:g}\n" for (s, t), weight in sorted(lexical.items()))
        for direction in priors.jumps:
            file.writelines(f"{jump} {weight:g}\n" for jump, weight in sorted(direction.items()))
        for words in fertilities:
            file.writelines(f"{word} {count} {weight:g}\n" for (word, count), weight in sorted(words.items()))


def _read_links(path: Path, sentences: int) -> Alignments:
    """Read the output of the eflomal program: a line of points `s-t` for each sentence pair."""
    text = np.frombuffer(path.read_bytes(), np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if len(ends) != sentences:
        raise PhraseToolError(f"eflomal wrote {len(ends)} alignments for {sentences} sentence pairs")
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(text == ord("-"))[ends]])
    numbers: npt.NDArray[np.int32] = np.array(text.tobytes().replace(b"-", b" ").split(), np.int32)
    return Alignments.from_points(offsets, numbers[::2], numbers[1::2])


def align(
    sources: Phrases,
    targets: Phrases,
    source_symbols: Symbols,
    target_symbols: Symbols,
    settings: AlignerSettings | None = None,
) -> tuple[Alignments, Alignments]:
    """Align the words of sentence pairs, in both directions in parallel.

    Args:
        sources, targets: N sentences each, none of them empty.
        source_symbols, target_symbols: their words; case is ignored.
        settings: the seed is ignored where eflomal cannot be seeded (see `can_be_seeded`).

    Returns:
        The forward alignments, in which a target word has at most one source word, and the reverse ones, in which a
        source word has at most one target word.  Pairs with a side of more than MAX_SENTENCE_WORDS have no points.

    Raises:
        ValueError: the sides have different numbers of sentences, or none.
        PhraseToolError: eflomal is missing or failed.
    """
    settings = settings or AlignerSettings()
    if len(sources) != len(targets) or not len(sources):
        raise ValueError(f"{len(sources)} source and {len(targets)} target sentences")
    with scratch_folder(None, "phrasetool.") as name:
        folder = Path(name)
        source, target = _Folded(source_symbols), _Folded(target_symbols)
        with _writing_to(folder):
            source.write(sources, folder / "source")
            target.write(targets, folder / "target")
            if settings.priors is not None:
                _write_priors(settings.priors, source, target, folder / "priors")
        program, threads = find_program(), max(settings.threads // 2, 1)
        if settings.seed is not None and (copy := _seedable_copy(program, folder)):
            program, threads = copy, 1
            with _writing_to(folder):
                (folder / _SEED_FILE.strip(b"\0").decode()).write_bytes(_mixed(settings.seed).to_bytes(8, "little"))
        arguments = [
            str(program), "-q", "-m", str(settings.model), "-s", "source", "-t", "target", "-f", "forward",
            "-r", "reverse", "-n", str(settings.samplers), "-N", str(settings.null_prior),
        ]  # fmt: skip
        for model, iterations in enumerate(settings.iterations(len(sources)), 1):
            arguments += [f"-{model}", str(iterations)]
        if settings.priors is not None:
            arguments += ["-p", "priors"]
        _run(arguments, folder, threads)
        return _read_links(folder / "forward", len(sources)), _read_links(folder / "reverse", len(sources))


def _run(arguments: list[str], folder: Path, threads: int) -> None:
    """Run the eflomal program, both directions in parallel, each with this many threads."""
    openmp = {"OMP_NUM_THREADS": f"2,{threads}", "OMP_MAX_ACTIVE_LEVELS": "2", "OMP_DYNAMIC": "false"}
    process = subprocess.Popen(
        arguments, cwd=folder, env={**os.environ, **openmp}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        errors = process.communicate()[1].decode("utf-8", "replace").strip()
    finally:
        # An interrupt must not leave the sampler running.
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()
    if process.returncode:
        last_line = errors.splitlines()[-1] if errors else f"exit status {process.returncode}"
        raise PhraseToolError(f"eflomal failed: {last_line}")
