"""Comparison of real Moses decoders with ours: same model, sentences and limits, run in turn on one thread each.

`moses` and `moses2` read a ProbingPT, a compact reordering table and a binary language model, which are built here from
the files of the reference run; our decoder reads these files directly.  Whole processes are measured.  The time for a
single sentence is the start-up time; the time per sentence is that of the additional sentences.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

from measuring import COMMAND, WORK, Usage, compile_kernels, summary, usage

from tests.n_best_lists import read_n_best

PROGRAMS = ("moses", "moses2", "phrasetool")
# Search, then stack size and pop limit.
SEARCHES = {"cube": (400, 400), "stack": (200, 1000)}
BARS = {"cube": 0.8, "stack": 0.4, "start": 1.0}
# Moses prints six digits, of sums in single precision.
TOLERANCE = 2e-3


def prepare(moses: Path, folder: Path) -> Path:
    """Build the files that real Moses reads of a run; return the ini that names them."""
    ini = folder / "moses2.ini"
    if ini.is_file():
        return ini
    folder.mkdir(parents=True, exist_ok=True)
    reordering = next(moses.glob("reordering-table*.gz"))
    binarize = [COMMAND, "binarize", str(moses / "phrase-table.gz"), "--to", "probing", "-o", str(folder / "probing")]
    lines = subprocess.run(
        [*binarize, "--reordering-table", str(reordering), "-q"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    arpa = folder / "lm.arpa"
    with arpa.open("wb") as file:
        subprocess.run(["zcat", moses / "lm5.pruned.arpa.gz"], check=True, stdout=file)
    subprocess.run(["build_binary", arpa, folder / "lm.bin"], check=True, capture_output=True)
    arpa.unlink()
    new = {"PhraseDictionaryMemory": lines[0], "LexicalReordering": lines[1]}
    text = (moses / "moses.ini").read_text().replace("./lm5.pruned.arpa.gz", str(folder / "lm.bin"))
    ini.write_text("".join(new.get(line.split(" ")[0], line) + "\n" for line in text.splitlines()))
    return ini


class Decoders:
    """The three programs on one text.

    Args:
        moses: folder of the reference run.
        sentences: tokenised sentences.
        beam: the beam threshold; empty for the default of the programs.
    """

    def __init__(self, moses: Path, sentences: list[str], beam: str = "") -> None:
        missing = [name for name in ("moses", "moses2", "build_binary", "CreateProbingPT") if not shutil.which(name)]
        if missing:
            raise SystemExit(f"not on the PATH: {', '.join(missing)}")
        self.folder = WORK / "real-decoders"
        self.inis = dict.fromkeys(PROGRAMS[:2], prepare(moses, self.folder)) | {"phrasetool": moses / "moses.ini"}
        self.sentences, self.beam = sentences, beam

    def command(self, program: str, search: str, count: int, best: Path | None = None) -> list[str]:
        """Return the command that decodes the first `count` sentences and writes their best derivations to `best`."""
        text = self.folder / f"{count}.txt"
        text.write_text("".join(f"{line}\n" for line in self.sentences[:count]))
        size, pops = (str(number) for number in SEARCHES[search])
        ini = str(self.inis[program])
        if program == "phrasetool":
            more = ["--n-best-list", str(best), "1"] if best else []
            # Start-up is measured with the default number of threads.
            threads = ["--threads", "1"] if count > 1 else []
            limit = ["--pop-limit", pops] if search == "cube" else []
            limit += ["--beam-threshold", self.beam] if self.beam else []
            limits = ["--search", search, "--stack", size, *limit, *threads]
            return [COMMAND, "decode", "--moses-ini", ini, str(text), *limits, *more, "-o", "/dev/null", "-q"]
        more = ["-n-best-list", str(best), "1"] if best else []
        number = str(int(search == "cube"))
        beam = ["-beam-threshold", self.beam] if self.beam else []
        limits = ["-search-algorithm", number, "-s", size, "-cbp", pops, *beam, "-threads", "1"]
        return [program, "-f", ini, "-i", str(text), *limits, *more]

    def scores(self, program: str, search: str) -> list[float]:
        """Return the model score of each sentence's best derivation."""
        best = self.folder / f"{program}.{search}.nbest"
        usage(self.command(program, search, len(self.sentences), best))
        totals = {candidate.sentence: candidate.total for candidate in reversed(list(read_n_best(str(best))))}
        return [totals[number] for number in range(len(self.sentences))]


def compared(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Compare model scores of the same sentences: means, and shares of better, equal and worse ones."""
    differences = [our_score - their_score for our_score, their_score in zip(ours, theirs, strict=True)]
    better = sum(difference > TOLERANCE for difference in differences)
    worse = sum(difference < -TOLERANCE for difference in differences)
    count = len(differences)
    return {
        "mean of ours": round(statistics.mean(ours), 4), "mean of theirs": round(statistics.mean(theirs), 4),
        "better": round(better / count, 4), "equal": round((count - better - worse) / count, 4),
        "worse": round(worse / count, 4),
    }  # fmt: skip


def beside_moses(
    moses: Path, sentences: list[str], rounds: int, searches: Sequence[str] = tuple(SEARCHES), scored: bool = True
) -> dict:
    """Compare the programs by CPU milliseconds per sentence, time for one sentence from start-up, and model scores."""
    compile_kernels()
    decoders = Decoders(moses, sentences)
    count = len(sentences)
    spent: dict[tuple[str, str, int], list[Usage]] = {}
    for number in range(rounds + 1):
        for search in searches:
            for program in PROGRAMS:
                # The first round, of one sentence, loads files into the cache and compiles kernels.
                for size in (1, count) if number else (1,):
                    process_usage = usage(decoders.command(program, search, size))
                    if number:
                        spent.setdefault((program, search, size), []).append(process_usage)
    figures: dict = {"bars": BARS}
    for search in searches:
        each = {
            program: [
                1000 * (whole.cpu - single.cpu) / (count - 1)
                for whole, single in zip(spent[program, search, count], spent[program, search, 1], strict=True)
            ]
            for program in PROGRAMS
        }
        figures[search] = {
            "sentences": count, "rounds": rounds, "stack and pop limit": SEARCHES[search],
            "CPU ms a sentence": _summaries(each), "ratio to": _ratios(each),
        }  # fmt: skip
        if scored:
            scores = {program: decoders.scores(program, search) for program in PROGRAMS}
            figures[search]["model score against"] = {"sentences": count} | {
                program: compared(scores["phrasetool"], scores[program]) for program in PROGRAMS[:2]
            }
    for clock in ("wall", "cpu"):
        start = {p: [getattr(single, clock) for s in searches for single in spent[p, s, 1]] for p in PROGRAMS}
        figures[f"one sentence, {clock} s"] = _summaries(start) | {"ratio to": _ratios(start)}
    return figures


def _summaries(runs: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {program: summary(values) for program, values in runs.items()}


def _ratios(runs: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Return the ratios of ours to each Moses program, round by round."""
    return {
        program: summary([a / b for a, b in zip(runs["phrasetool"], runs[program], strict=True)])
        for program in PROGRAMS[:2]
    }
