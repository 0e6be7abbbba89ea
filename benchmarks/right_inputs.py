"""Do sanity checks reject valid input, and what is their CPU time?

Commands check their input before processing it: whether a model is compatible with a table, whether a development set
is suitable for a model, whether the entries of each source are adjacent.  Here they get only valid input, without
`--force`, and all errors and warnings are recorded:

* six corpora in both directions, each with a table, a model and weights from `SENTENCES` sentence pairs;
* the table of the reference run and a model trained on its forced decoding;
* the demo's files, and tables in all forms of Moses' regression tests;
* twenty lines of each of these tables, from the beginning and from the middle.

Built files are kept in `--work`.  Then `annotate`, `prune` and `tune` are timed with and without the checks, in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from measuring import ROOT, WORK, report, summary, usage
from right_tables import FORCED_SENTENCES, ITERATIONS, SENTENCES, Case, build, cases, moses_run, run, warnings_in

from moses_compat.engine.development_check import coverage
from moses_compat.engine.model import MosesModel

# Corpus for timing `tune`: the relative cost of checks is largest for one decoder run with a small table.
TUNED = "multi30k-de-en"
# Number of development sentences, for one run of the decoder.
DEV_SENTENCES = 200
BAR = 1.02
# Index of the score that `threshold-filter` uses.
_DIRECT = 2
_SEARCH = ("--search", "cube", "--pop-limit", "100", "--n-best-size", "20")
# Runs a command, without its checks if the first argument is `without`.
_SWITCH = """
import sys
from moses_compat.engine.development_check import DevelopmentCheck
from moses_compat.jobs import annotate, prune, prune_ranking
from moses_compat.measures.model_fit import FitCheck
from phrasetool_cli.main import main
if sys.argv.pop(1) == "without":
    FitCheck.look = lambda self, table, model, raws: raws
    for job in (annotate, prune):
        job.check_plausible = lambda *arguments: None
    order = prune.SourceOrder
    for job in (prune, prune_ranking):
        job.SourceOrder = lambda source, scan, needed: order(source, scan, needed=False)
    DevelopmentCheck.texts = DevelopmentCheck.bleu = DevelopmentCheck.language_models = lambda *arguments: None
    DevelopmentCheck.fit = lambda *arguments: None
main(sys.argv[1:])
"""


def commands(case: Case) -> dict[str, list[str]]:
    """Return the arguments of commands with checks, by name."""
    out, table, model = str(case.folder / "out"), str(case.table), ["-m", str(case.model)]
    arguments = {
        "annotate": ["annotate", table, *model, "-o", f"{out}.gz", "--json", f"{out}.json"],
        "prune": ["prune", table, *model, "-t", "0.7", "-o", f"{out}.gz"],
        "prune --method": ["prune", table, "--method", "count+probability", "-t", "0.2", "-o", f"{out}.gz"],
        "filter-pt": ["filter-pt", table, "-n", "10", "-i", "0", "-o", f"{out}.gz"],
    }
    if case.words:
        arguments["evaluate-model"] = ["evaluate-model", str(case.pairs or case.table), *model, "--limit", "1000"]
    if case.scores > _DIRECT:
        arguments["threshold-filter"] = ["threshold-filter", "0.001", table, "-o", f"{out}.gz"]
    if case.ini and case.pairs and case.reordering:
        arguments["prune, all that is known"] = [
            "prune", table, *model, "--moses-ini", str(case.ini), "--forced-pairs", str(case.pairs),
            "--reordering-table", str(case.reordering), "--reordering-out", f"{out}.r.gz", "--target-size", "0.1",
            "-o", f"{out}.gz"]  # fmt: skip
        arguments["remove-orphans"] = ["remove-orphans", table, "--reordering-table", str(case.reordering), "-o", out]
    if case.dev and case.ini:
        source, target = case.dev_lines(DEV_SENTENCES)
        texts = ["--moses-ini", str(case.ini), "--dev", source, target]
        outputs = ["-o", f"{out}.ini", "--json", f"{out}.tune.json"]
        arguments["tune"] = ["tune", *texts, *_SEARCH, "--iterations", "1", *outputs]
    return arguments


def covered(case: Case) -> float:
    """Return the share of a development set's tokens that the table can translate."""
    assert case.ini
    text = Path(case.dev_lines(DEV_SENTENCES)[0]).read_bytes()
    translator, sentences = MosesModel.read(str(case.ini)).load(text, 1, lambda *progress: None)
    return round(coverage(translator.table, sentences.sentences), 4)


def look(case: Case) -> dict[str, Any]:
    """Return the results of every check on an input."""
    refused, warned = dict(case.refused), dict(case.warned)
    arguments = commands(case)
    for name, command in arguments.items():
        code, text = run(command)
        # Messages are recorded without the folder.
        text = text.replace(f"{case.folder}/", "")
        if code:
            refused[name] = text
        if warnings := warnings_in(text):
            warned[name] = warnings
    results: dict[str, Any] = {"commands": len(arguments) + case.built, "refused": refused, "warned": warned}
    if "annotate" not in refused:
        fits = json.loads((case.folder / "out.json").read_text())["model_fits"]
        results |= {"model_fit": fits[0]} if fits else {}
    if "tune" in arguments and "tune" not in refused:
        bleu = json.loads((case.folder / "out.tune.json").read_text())["bleu_at_start"]
        results["development"] = {"coverage": covered(case), "bleu_at_start": round(bleu, 2)}
    return results


def costs(timed: dict[str, Case], rounds: int) -> dict[str, Any]:
    """Return CPU seconds of commands with and without their checks, in turn, on one thread.

    Args:
        timed: name of a command -> its input.
        rounds: number of measured rounds, after a warm-up round.
    """
    figures = {}
    for name, case in timed.items():
        command = [sys.executable, "-c", _SWITCH, "{}", *commands(case)[name], "--threads", "1", "-q"]
        modes = {mode: [*command[:3], mode, *command[4:]] for mode in ("with", "without")}
        times: dict[str, list[float]] = {mode: [] for mode in modes}
        for number in range(rounds + 1):
            for mode in sorted(modes, reverse=number % 2 == 0):
                seconds = usage(modes[mode]).cpu
                if number:
                    times[mode].append(seconds)
        ratios = [a / b for a, b in zip(times["with"], times["without"], strict=True)]
        fastest = min(times["with"]) / min(times["without"])
        figures[name] = {
            **{mode: summary(seconds) for mode, seconds in times.items()},
            "ratio": summary(ratios), "ratio of the fastest": round(fastest, 4),
        }  # fmt: skip
        print(name, round(statistics.median(ratios), 4), round(fastest, 4), file=sys.stderr, flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=WORK / "right-inputs")
    parser.add_argument(
        "--only", default="", help="inputs with this in their name; others stay as they were; `nothing`: none"
    )
    parser.add_argument("--rounds", type=int, default=5, help="of timing; 0: costs stay as they were measured before")
    options = parser.parse_args()
    # Earlier results are kept unless repeated.
    path = ROOT / "benchmarks" / "results" / "right_inputs.json"
    kept = json.loads(path.read_text()) if path.exists() else {"inputs": {}, "CPU seconds": {}}
    inputs = kept["inputs"]
    for case in cases(options.work, options.only) if options.only != "nothing" else ():
        inputs[case.name] = result = look(case)
        print(case.name, json.dumps(result), file=sys.stderr, flush=True)
    seconds = kept["CPU seconds"]
    if options.rounds:
        moses, small = moses_run(options.work / "reference"), next(build(TUNED, options.work / TUNED))
        seconds = costs({"annotate": moses, "prune": moses, "tune": small}, options.rounds)
    report("right_inputs", {
        "settings": {"sentence pairs": SENTENCES, "sentences of forced decoding": FORCED_SENTENCES,
                     "iterations": ITERATIONS, "development sentences": DEV_SENTENCES},
        "inputs": inputs,
        "commands": sum(result["commands"] for result in inputs.values()),
        "refused": sum(len(result["refused"]) for result in inputs.values()),
        "CPU seconds": seconds,
        "bar": BAR,
    })  # fmt: skip


if __name__ == "__main__":
    main()
