"""BLEU of pivot tables through English, and the gain from similarities of the two tables that they join.

    de-cs, cs-de    Multi30k: German-English from one half of the sentences, Czech-English from the other
    zh-es           Python's documentation: Chinese-English and Spanish-English, no English sentence in both

Development and test sets are the sentences translated in both corpora, joined by their English side.  The systems
differ in the scores after the four of the triangulated table:

    plain           none
    control         the probability of the best path, and the number of paths: both ignore similarity
    control+legs    also similarities of the two joined tables, combined by `pivot --similarity-columns`
    control+model   also similarities of a model trained on likely pairs of the triangulated table, by `annotate`

NAME+words has entries from `augment` for unknown words of the texts.  NAME+rerank chooses from n-best lists by a neural
translator, trained on the halves with the missing side translated from English.  `translated` has a table extracted
from that bitext instead of a pivot table.  Each is tuned with three seeds.  Tables of direct bitexts of several sizes
are measured alone and in one ini with the plain table.  All systems share one language model, of the targets of the
second half.

The table is pruned as in `pruning_study.py`, with the weights of the plain table's first seed and with default weights:
by methods without similarity, and by both kinds of similarities, with three model seeds; with BRAE's loss once.

BLEU statistics of all test sentences of tuned systems are in benchmarks/results/runs/, those of pruned tables
in benchmarks/results/pivot_pruning/.  Finished work is not repeated.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import neural_columns
from engines import SEARCH, command, extracted
from measuring import ROOT, WORK, report
from neural_columns import compared, tune
from stored import StoredStudy
from study import DEFAULT_LOSS, SIZES, Results
from trial import MODELS, SEEDS, Trial, at_thresholds, of_size
from triangle_texts import DIRECT, MIDDLE, SEED, Triangle, texts, triangles, write_lines
from triangle_translators import made_bitext, rerank

from moses_compat.corpora.texts import read_text_lines
from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.settings import ExperimentConfig, PruningSystem
from moses_compat.files.streams import Input, Output
from moses_compat.ini.tables import choose_table, weights_of
from moses_compat.measures.measure import MeasureRequest, measure_file
from moses_compat.measures.similarities import ColumnSimilarities
from moses_compat.tables.blocks import TableScan
from phrasetool.pruning.measures import COUNTS, LOSSES, OCCURRENCES, Measures
from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap
from phrasetool.watch import SILENT

TITLES = {"de-cs": "German-Czech", "cs-de": "Czech-German", "zh-es": "Chinese-Spanish"}
RUNS = StoredStudy("pivoting")
# System -> numbers of its scores in the table with all columns, from 1.
_CONTROL, _LEGS, _MODEL = (5, 6), (7, 8, 9, 10), (11, 12)
SYSTEMS: dict[str, tuple[int, ...]] = {
    "plain": (),
    "control": _CONTROL,
    "control+legs": (*_CONTROL, *_LEGS),
    "control+model": (*_CONTROL, *_MODEL),
}
# Systems with additional entries, and systems (tuned beforehand) whose n-best lists are reranked.
_WORDS, _RERANKED = "+words", "+rerank"
AUGMENTED = tuple(f"{name}{_WORDS}" for name in ("plain", "control"))
RERANKED = tuple(f"{name}{_RERANKED}" for name in ("plain", f"control{_WORDS}"))
# The system with a table of the bitext on which the translator is trained.
TRANSLATED = "translated"
# System -> the system that it is compared with in addition to plain.
BEYOND = {name: "control" for name in SYSTEMS if name.startswith("control+")}
# Pruning methods without and with similarities, and the label of pruning by other counts of `pivot --counts`.
WITHOUT = ("count", "probability", "composition", "composition+count")
WITH = ("semantic", "count+semantic", "composition+semantic")
OTHER_COUNTS = "count of --counts min"
# Label of the similarities of the two joined tables.
LEGS = "legs"
PRUNING = ROOT / "benchmarks" / "results" / "pivot_pruning"
# With default weights, tables are only pruned to these sizes.
SMALLEST = (0.1, 0.05)
TOGETHER = (1000, 5000, 14500)
# Minimum count, and minimum probability in both directions, of pairs to train on.
_SEEN, _LIKELY = 2.0, 0.1
_SEEN_THROUGH = 1.0


def likely_pairs(table: Path, pairs: Path, seen: float) -> None:
    """Write the frequent and probable entries of a table, with their counts, as training pairs."""
    with Input(str(table)) as source, Output(str(pairs)) as out:
        for piece in source.whole_lines():
            lines = []
            for line in piece.decode("utf-8", "surrogateescape").splitlines():
                fields = [part.strip() for part in line.split("|||")]
                scores, count = [float(score) for score in fields[2].split()], float(fields[4].split()[2])
                if count >= seen and min(scores[0], scores[2]) >= _LIKELY:
                    lines.append(f"{fields[0]} ||| {fields[1]} ||| {max(1, math.floor(count))}\n")
            out.write_text("".join(lines).encode("utf-8", "surrogateescape"))


def annotated(table: Path, folder: Path, seen: float, threads: str, sample: int | None, pairs_of: Path) -> Path:
    """Return `table` annotated with the similarities of a model trained on likely pairs of `pairs_of`."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs, model, output = folder / "pairs.gz", folder / "model", folder / "annotated.gz"
    if not pairs.exists():
        likely_pairs(pairs_of, pairs, seen)
    if not (model / "config.json").exists():
        quick = ["--iterations", "1", "--dimension", "10"] if sample else []
        command("train", pairs, "-o", model, "--threads", threads, "--overwrite", "--held-out", "0", *quick)
    if not output.exists():
        command("annotate", table, "-m", model, "-o", output, "--threads", threads, "--force")
    return output


def whole_table(pair: Triangle, threads: str, sample: int | None) -> tuple[Path, Path]:
    """Return the triangulated table with all columns, and its reordering table."""
    legs, reordering = [], []
    ends = (("first", pair.source, MIDDLE), ("second", MIDDLE, pair.target))
    for part, source, target in ends:
        folder = pair.work / part
        table, reordering_table = extracted(folder, [pair.text(part, source), pair.text(part, target)], threads)
        legs.append(annotated(table, folder, _SEEN, threads, sample, table))
        reordering.append(reordering_table)
    triangulated, reordering_table = pair.work / "triangulated.gz", pair.work / "reordering.gz"
    if not triangulated.exists():
        command(
            "pivot", *legs, "--extra-columns", "paths", "--similarity-columns", "5,6", "--reordering-tables",
            *reordering,
            "--reordering-out", reordering_table, "-o", triangulated, "--threads", threads,
        )  # fmt: skip
    whole = annotated(triangulated, pair.work / "through", _SEEN_THROUGH, threads, sample, triangulated)
    return whole, reordering_table


def with_scores(table: Path, output: Path, scores: Sequence[int]) -> None:
    """Write a table with these scores, numbered from 1, after the first four."""
    columns = [*range(4), *(number - 1 for number in scores)]
    with Input(str(table)) as source, Output(str(output)) as out:
        for piece in source.whole_lines():
            lines = []
            for line in piece.splitlines():
                fields = line.split(b" ||| ", 3)
                scores_text = fields[2].split()
                fields[2] = b" ".join(scores_text[number] for number in columns)
                lines.append(b" ||| ".join(fields) + b"\n")
            out.write_text(b"".join(lines))


def ini_of(pair: Triangle, table: Path, reordering: Path, ini: Path) -> Path:
    """Return an ini with default weights."""
    lm = pair.work / "lm.arpa.gz"
    if not lm.exists():
        command("lm", pair.text("second", pair.target), "--order", "5", "-o", lm)
    if not ini.exists():
        command("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", lm, "-o", ini)
    return ini


def system_ini(pair: Triangle, system: str, threads: str, sample: int | None) -> Path:
    """Return the untuned ini of a system."""
    whole, reordering = whole_table(pair, threads, sample)
    folder = pair.work / "systems"
    folder.mkdir(exist_ok=True)
    table = folder / f"{system}.gz"
    if not table.exists():
        with_scores(whole, table, SYSTEMS[system])
    return ini_of(pair, table, reordering, folder / f"{system}.ini")


def augmented_ini(pair: Triangle, system: str, threads: str, sample: int | None) -> Path:
    """Return the untuned ini of a system with additional entries for unknown words."""
    before = system_ini(pair, system, threads, sample)
    table, reordering, ini = (before.with_name(f"{system}{_WORDS}{end}") for end in (".gz", ".reordering.gz", ".ini"))
    if not ini.exists():
        parts = [part for name in ("dev", *pair.tests) for part in ("--text", pair.text(name, pair.source))]
        command(
            "augment", before.with_suffix(".gz"), *parts, "--reordering-table", pair.work / "reordering.gz",
            "--reordering-out", reordering, "--moses-ini", before, "--moses-ini-out", ini, "-o", table,
            "--threads", threads,
        )  # fmt: skip
    return ini


def direct_ini(pair: Triangle, size: int, threads: str) -> Path:
    """Return the untuned ini of a direct bitext of `size` pairs."""
    folder = pair.work / f"direct-{size}"
    folder.mkdir(exist_ok=True)
    sides = []
    for language in (pair.source, pair.target):
        sides.append(str(folder / f"text.{language}"))
        write_lines(sides[-1], read_text_lines(pair.text("direct", language))[:size])
    return ini_of(pair, *extracted(folder, sides, threads), folder / "start.ini")


def together_ini(pair: Triangle, size: int, threads: str, sample: int | None) -> Path:
    """Return the untuned ini of two tables, plain and a direct bitext's, with one reordering table for both."""
    plain, direct = system_ini(pair, "plain", threads, sample), direct_ini(pair, size, threads)
    folder = pair.work / f"together-{size}"
    folder.mkdir(exist_ok=True)
    reordering, ini = folder / "reordering.gz", folder / "start.ini"
    if not ini.exists():
        # For an entry in both tables, the last line is used.
        with open(reordering, "wb") as out:
            for path in (pair.work / "reordering.gz", direct.parent / "reordering.gz"):
                out.write(path.read_bytes())
        text = plain.read_text().replace(str(pair.work / "reordering.gz"), str(reordering))
        table = f"path={direct.parent / 'table.gz'} input-factor=0 output-factor=0"
        for line, addition in (
            ("0 T 0\n", "1 T 1\n"),
            ("Distortion\n", f"PhraseDictionaryMemory name=Direct num-features=4 {table}\n"),
            ("[weight]\n", "Direct= 0.2 0.2 0.2 0.2\n"),
        ):
            text = text.replace(line, line + addition)
        ini.write_text(text)
    return ini


def start_ini(pair: Triangle, name: str, threads: str, sample: int | None) -> Path:
    """Return the ini from which a system is tuned; names include `direct-SIZE` and `together-SIZE`."""
    kind, _, size = name.partition("-")
    if kind == "direct":
        return direct_ini(pair, int(size), threads)
    if kind == "together":
        return together_ini(pair, int(size), threads, sample)
    if name == TRANSLATED:
        table, reordering = extracted(pair.work / TRANSLATED, made_bitext(pair, threads), threads)
        return ini_of(pair, table, reordering, table.with_name("start.ini"))
    if name in AUGMENTED:
        return augmented_ini(pair, name.removesuffix(_WORDS), threads, sample)
    return system_ini(pair, name, threads, sample)


class PivotTrial(Trial):
    """Pruning of a triangulated table.

    Args:
        pair: the language pair.
        config: texts and decoder.
        results: where results are stored.
        threads: number of threads.
        weights: name of the decoder's weights, stored with every system.
    """

    def __init__(self, pair: Triangle, config: ExperimentConfig, results: Results, threads: int, weights: str) -> None:
        self.pair = pair
        # Models do not depend on the weights.
        super().__init__(
            config, pair.work / "trial", results, threads, frozenset({COUNTS, LOSSES, OCCURRENCES}),
            {"weights": weights},
        )  # fmt: skip

    def pairs_for(self, loss: str) -> str:
        """Return the file of likely pairs of the triangulated table, for every loss."""
        return str(self.pair.work / "through" / "pairs.gz")

    def of_legs(self) -> Measures:
        """Return the measures with the similarities of the two joined tables."""
        return self.with_similarities(ColumnSimilarities(4, 5))

    def with_other_counts(self) -> Measures:
        """Return the measures with the counts of `pivot --counts min`."""
        table = self.pair.work / "trial" / "min.gz"
        if not table.exists():
            legs = [self.pair.work / part / "table.gz" for part in ("first", "second")]
            command("pivot", *legs, "--counts", "min", "-o", table, "--threads", str(self.threads))

        def request(scan: TableScan) -> MeasureRequest:
            return MeasureRequest.of(
                {COUNTS},
                scan,
                weights=lambda: weights_of(self.model.ini, choose_table(self.model.ini, self.model.table)),
            )

        other_measures = measure_file(str(table), TableScan(threads=self.threads), SILENT, request).whole()
        assert len(other_measures) == len(self.measures)
        return self.measures.with_columns({COUNTS: other_measures[COUNTS]})


def pruning_config(pair: Triangle, ini: Path, weights: str) -> ExperimentConfig:
    """Return texts and decoder of a trial: plain weights, a table with similarities of the halves as scores 5 and 6."""
    folder = pair.work / "trial"
    folder.mkdir(exist_ok=True)
    table, trial_ini = folder / "table.gz", folder / f"{weights}.ini"
    if not table.exists():
        with_scores(pair.work / "through" / "annotated.gz", table, _LEGS[:2])
    if not trial_ini.exists():
        command("moses-ini", ini, "--table", table, "-o", trial_ini)
    lines = [f'name = "{pair.name}"', f'output = "{folder}"', "[moses]", f'ini = "{trial_ini}"']
    for section, part in (("dev", "dev"), *((f"tests.{test}", test) for test in pair.tests)):
        lines += [f"[data.{section}]"]
        lines += [f'source = "{pair.text(part, pair.source)}"', f'target = "{pair.text(part, pair.target)}"']
    lines += ["[prune]", 'methods = ["count"]', "sizes = [0.1]"]
    path = folder / f"{weights}.toml"
    path.write_text("\n".join(lines) + "\n")
    return read_experiment_config(str(path))


def all_of(methods: Sequence[str], sizes: tuple[float, ...]) -> list[PruningSystem]:
    """Return the tables of all methods and sizes."""
    return [system for method in methods for system in of_size(method, sizes)]


def prune(pair: Triangle, inis: Mapping[str, Path], threads: int) -> None:
    """Translate with pruned tables, unless their results are stored.

    Args:
        pair: the language pair.
        inis: name of weights -> ini of the plain table with these weights; tuned weights first.
        threads: number of threads.
    """
    results = Results(PRUNING, pair.name)
    results.facts = {"name": TITLES[pair.name], "models": MODELS}
    for weights, ini in inis.items():
        trial = PivotTrial(pair, pruning_config(pair, ini, weights), results, threads, weights)
        if weights == next(iter(inis)):
            results.take_over(trial.full_statistics(), MODELS)
        sizes = SIZES if weights == "tuned" else SMALLEST
        trial.translate([PruningSystem(), *all_of(WITHOUT, sizes)], trial.measures)
        trial.translate(all_of(["count"], sizes), trial.with_other_counts(), OTHER_COUNTS)
        trial.translate([*at_thresholds("semantic", (0.7,)), *all_of(WITH, sizes)], trial.of_legs(), LEGS)
        for seed in SEEDS:
            systems = [*at_thresholds("semantic", (0.7,)), *all_of(WITH, sizes)]
            trial.translate(systems, trial.similarities(DEFAULT_LOSS, seed), DEFAULT_LOSS, seed)
        if weights == "tuned":
            systems = [*at_thresholds("semantic", (0.7,)), *all_of(["semantic"], sizes)]
            trial.translate(systems, trial.similarities("max-margin", SEEDS[0]), "max-margin", SEEDS[0])
        results.save()


def figures_of(runs: StoredStudy, pair: Triangle) -> dict[str, Any]:
    """Return BLEU of finished runs, compared with plain, control or direct tables tuned with the same seeds."""
    samples_by_name: dict[str, dict[int, BleuSamples]] = {}
    for run in runs.runs():
        if run.startswith(f"{pair.name}/"):
            name, _, seed = run.removeprefix(f"{pair.name}/").rpartition("-")
            statistics = runs.run(run).read()
            samples_by_name.setdefault(name, {})[int(seed)] = Bootstrap(len(statistics))(statistics)
    figures: dict[str, Any] = {}
    for name, samples in samples_by_name.items():
        figures[name] = {"BLEU": [round(sample.bleu, 2) for _, sample in sorted(samples.items())]}
        kind, _, size = name.partition("-")
        direct = f"direct-{size}" if kind == "together" else None
        others = {
            "to plain": "plain",
            "to direct": direct,
            "to control": BEYOND.get(name),
        }
        for label, baseline in others.items():
            seeds = sorted(samples.keys() & samples_by_name.get(baseline or "", {}).keys())
            if baseline and baseline != name and seeds:
                figures[name][label] = compared(
                    *([samples_by_name[n][seed] for seed in seeds] for n in (baseline, name))
                )
    return {"systems": figures}


def measure(pair: Triangle, runs: StoredStudy, seeds: Sequence[int], threads: str, sample: int | None) -> None:
    """Build, tune and prune the missing systems of a pair, and store their results."""
    texts(pair, sample)
    sizes = [size for size in DIRECT if size <= len(read_text_lines(pair.text("direct", pair.source)))]
    names = (
        *SYSTEMS,
        *AUGMENTED,
        *RERANKED,
        TRANSLATED,
        *(f"direct-{size}" for size in sizes),
        *(f"together-{size}" for size in TOGETHER if size in sizes),
    )
    for seed, name in itertools.product(seeds, names):
        run = runs.run(f"{pair.name}/{name}-{seed}")
        if not run.exists() and name in RERANKED:
            tuned = pair.work / "tuned" / f"{name.removesuffix(_RERANKED)}-{seed}" / "moses.ini"
            rerank(pair, tuned, pair.work / "reranked" / f"{name}-{seed}", threads, run)
        elif not run.exists():
            ini = start_ini(pair, name, threads, sample)
            tune(ini, pair, pair.work / "tuned" / f"{name}-{seed}", seed, threads, run)
        else:
            continue
        print(pair.name, name, seed, figures_of(runs, pair)["systems"].get(name), flush=True)
    if not sample:
        tuned, untuned = pair.work / "tuned" / f"plain-{SEED}" / "moses.ini", pair.work / "systems" / "plain.ini"
        if not tuned.exists():
            # The statistics of this system are stored, but its weights are not.
            tune(untuned, pair, tuned.parent, SEED, threads, StoredStudy("again", pair.work).run("plain"))
        prune(pair, {"tuned": tuned, "default": untuned}, int(threads))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=WORK / "pivoting")
    parser.add_argument("--pairs", nargs="+", default=list(triangles(WORK)), choices=triangles(WORK))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--threads", default="2")
    parser.add_argument("--figures", action="store_true", help="put together what is kept, and measure nothing")
    parser.add_argument("--sample", type=int, metavar="N", help="N sentences per half; results are not stored")
    options = parser.parse_args()
    work, runs = options.work, RUNS
    if options.sample:
        work = options.work / f"sample-{options.sample}"
        runs, neural_columns.ITERATIONS = StoredStudy("runs", work), 1
    pairs = triangles(work)
    for name in options.pairs:
        if not options.figures:
            measure(pairs[name], runs, options.seeds, options.threads, options.sample)
        results = {name: figures for name, pair in pairs.items() if (figures := figures_of(runs, pair))["systems"]}
        if options.sample:
            print(json.dumps(results, indent=1))
        else:
            report("pivoting", {"search": SEARCH, "pairs": results})


if __name__ == "__main__":
    main()
