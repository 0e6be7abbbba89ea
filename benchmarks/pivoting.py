"""BLEU of tables through English, and the gain by similarities of their two halves.

    de-cs, cs-de    Multi30k: German-English learnt from one half of the sentences, Czech-English from the other
    zh-es           Python's documentation: Chinese-English and Spanish-English, no English sentence in both

Tuned and tested on what both corpora translate, joined by its English side.  The systems differ in the scores behind
the four of the triangulated table:

    plain           none
    control         the probability of the best path, and the number of paths: both ignore similarity
    control+legs    also similarities of the two halves, combined by `pivot --similarity-columns`
    control+model   also similarities of a model trained on likely pairs of the triangulated table, by `annotate`

NAME+words: words of the texts without an entry were given some by `augment`.  NAME+rerank: a neural translator chose
from n-best lists, which was trained on the halves with what they lack translated from English.  `translated`: a table
of that bitext instead of one through English.  Each is tuned with three seeds.  There are tables of direct bitexts of
several sizes, alone and in one ini with the plain table.  All have one language model, of the targets of the second
half.

The table is pruned as in `pruning_study.py`, with the weights of the plain table's first seed and with default weights:
by methods that use no similarity, and by similarities of either kind, of three model seeds; BRAE's loss once.

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
# System -> the scores of the whole table that it has, from 1.
_CONTROL, _LEGS, _MODEL = (5, 6), (7, 8, 9, 10), (11, 12)
SYSTEMS: dict[str, tuple[int, ...]] = {
    "plain": (),
    "control": _CONTROL,
    "control+legs": (*_CONTROL, *_LEGS),
    "control+model": (*_CONTROL, *_MODEL),
}
# Those that are given more entries, and those of which a translator chooses, which are tuned before.
_WORDS, _RERANKED = "+words", "+rerank"
AUGMENTED = tuple(f"{name}{_WORDS}" for name in ("plain", "control"))
RERANKED = tuple(f"{name}{_RERANKED}" for name in ("plain", f"control{_WORDS}"))
# A table of the bitext that the translator is trained on.
TRANSLATED = "translated"
# Comparisons in addition to those with plain.
BEYOND = {name: "control" for name in SYSTEMS if name.startswith("control+")}
# Pruning: methods without and with similarities, and by other counts, of `pivot --counts`.
WITHOUT = ("count", "probability", "composition", "composition+count")
WITH = ("semantic", "count+semantic", "composition+semantic")
OTHER_COUNTS = "count of --counts min"
# Similarities of the two halves, as scores of the whole table.
LEGS = "legs"
PRUNING = ROOT / "benchmarks" / "results" / "pivot_pruning"
# With default weights, tables are pruned to these sizes only.
SMALLEST = (0.1, 0.05)
TOGETHER = (1000, 5000, 14500)
# A pair is learnt from if it was seen so often, and is so probable either way.
_SEEN, _LIKELY = 2.0, 0.1
_SEEN_THROUGH = 1.0


def likely_pairs(table: Path, pairs: Path, seen: float) -> None:
    """The entries of a table that were seen often and are probable, with their counts, to train on."""
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
    """A table with the similarities of a model that is trained on likely pairs of a table."""
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
    """The triangulated table with all columns, and its reordering table."""
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
            "pivot", *legs, "--extra-columns", "ways", "--similarity-columns", "5,6", "--reordering-tables",
            *reordering,
            "--reordering-out", reordering_table, "-o", triangulated, "--threads", threads,
        )  # fmt: skip
    whole = annotated(triangulated, pair.work / "through", _SEEN_THROUGH, threads, sample, triangulated)
    return whole, reordering_table


def with_scores(table: Path, output: Path, scores: Sequence[int]) -> None:
    """A table with these scores, from 1, behind the first four."""
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
    """An ini with default weights."""
    lm = pair.work / "lm.arpa.gz"
    if not lm.exists():
        command("lm", pair.text("second", pair.target), "--order", "5", "-o", lm)
    if not ini.exists():
        command("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", lm, "-o", ini)
    return ini


def system_ini(pair: Triangle, system: str, threads: str, sample: int | None) -> Path:
    """The ini of a system, not tuned."""
    whole, reordering = whole_table(pair, threads, sample)
    folder = pair.work / "systems"
    folder.mkdir(exist_ok=True)
    table = folder / f"{system}.gz"
    if not table.exists():
        with_scores(whole, table, SYSTEMS[system])
    return ini_of(pair, table, reordering, folder / f"{system}.ini")


def augmented_ini(pair: Triangle, system: str, threads: str, sample: int | None) -> Path:
    """The ini of a system with entries for words that have none, not tuned."""
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
    """Return the ini of a direct bitext of this many pairs."""
    folder = pair.work / f"direct-{size}"
    folder.mkdir(exist_ok=True)
    sides = []
    for language in (pair.source, pair.target):
        sides.append(str(folder / f"text.{language}"))
        write_lines(sides[-1], read_text_lines(pair.text("direct", language))[:size])
    return ini_of(pair, *extracted(folder, sides, threads), folder / "start.ini")


def together_ini(pair: Triangle, size: int, threads: str, sample: int | None) -> Path:
    """The ini of two tables, the plain one and a direct bitext's, with a reordering table for both."""
    plain, direct = system_ini(pair, "plain", threads, sample), direct_ini(pair, size, threads)
    folder = pair.work / f"together-{size}"
    folder.mkdir(exist_ok=True)
    reordering, ini = folder / "reordering.gz", folder / "start.ini"
    if not ini.exists():
        # Of an entry that is in both, the last line counts.
        with open(reordering, "wb") as out:
            for path in (pair.work / "reordering.gz", direct.parent / "reordering.gz"):
                out.write(path.read_bytes())
        text = plain.read_text().replace(str(pair.work / "reordering.gz"), str(reordering))
        table = f"path={direct.parent / 'table.gz'} input-factor=0 output-factor=0"
        for line, more in (
            ("0 T 0\n", "1 T 1\n"),
            ("Distortion\n", f"PhraseDictionaryMemory name=Direct num-features=4 {table}\n"),
            ("[weight]\n", "Direct= 0.2 0.2 0.2 0.2\n"),
        ):
            text = text.replace(line, line + more)
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
        """Likely pairs of the triangulated table, for every loss."""
        return str(self.pair.work / "through" / "pairs.gz")

    def of_legs(self) -> Measures:
        """The measures with the similarities of the two halves."""
        return self.with_similarities(ColumnSimilarities(4, 5))

    def with_other_counts(self) -> Measures:
        """The measures with the counts of `pivot --counts min`."""
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

        other = measure_file(str(table), TableScan(threads=self.threads), SILENT, request).whole()
        assert len(other) == len(self.measures)
        return self.measures.with_columns({COUNTS: other[COUNTS]})


def pruning_config(pair: Triangle, ini: Path, weights: str) -> ExperimentConfig:
    """The texts, and the plain weights on the table that has the similarities of the halves as scores 5 and 6."""
    folder = pair.work / "trial"
    folder.mkdir(exist_ok=True)
    table, written = folder / "table.gz", folder / f"{weights}.ini"
    if not table.exists():
        with_scores(pair.work / "through" / "annotated.gz", table, _LEGS[:2])
    if not written.exists():
        command("moses-ini", ini, "--table", table, "-o", written)
    lines = [f'name = "{pair.name}"', f'output = "{folder}"', "[moses]", f'ini = "{written}"']
    for section, part in (("dev", "dev"), *((f"tests.{test}", test) for test in pair.tests)):
        lines += [f"[data.{section}]"]
        lines += [f'source = "{pair.text(part, pair.source)}"', f'target = "{pair.text(part, pair.target)}"']
    lines += ["[prune]", 'methods = ["count"]', "sizes = [0.1]"]
    path = folder / f"{weights}.toml"
    path.write_text("\n".join(lines) + "\n")
    return read_experiment_config(str(path))


def all_of(methods: Sequence[str], sizes: tuple[float, ...]) -> list[PruningSystem]:
    """Tables by all methods and of all sizes."""
    return [one for method in methods for one in of_size(method, sizes)]


def prune(pair: Triangle, inis: Mapping[str, Path], threads: int) -> None:
    """Translate with pruned tables, unless their results are stored.

    Args:
        pair: the language pair.
        inis: name of weights -> ini of the plain table with these weights; the tuned ones first.
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
    """BLEU of finished runs, compared with the plain table tuned with the same seeds, and with the control."""
    samples_by_name: dict[str, dict[int, BleuSamples]] = {}
    for run in runs.runs():
        if run.startswith(f"{pair.name}/"):
            name, _, seed = run.removeprefix(f"{pair.name}/").rpartition("-")
            statistics = runs.run(run).read()
            samples_by_name.setdefault(name, {})[int(seed)] = Bootstrap(len(statistics))(statistics)
    figures: dict[str, Any] = {}
    for name, samples in samples_by_name.items():
        figures[name] = {"BLEU": [round(one.bleu, 2) for _, one in sorted(samples.items())]}
        kind, _, size = name.partition("-")
        direct = f"direct-{size}" if kind == "together" else None
        others = {
            "to plain": "plain",
            "to direct": direct,
            "to control": BEYOND.get(name),
        }
        for label, other in others.items():
            seeds = sorted(samples.keys() & samples_by_name.get(other or "", {}).keys())
            if other and other != name and seeds:
                figures[name][label] = compared(*([samples_by_name[n][seed] for seed in seeds] for n in (other, name)))
    return {"systems": figures}


def measure(pair: Triangle, runs: StoredStudy, seeds: Sequence[int], threads: str, sample: int | None) -> None:
    """Make, tune, prune and keep what is missing of a pair."""
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
            # Its statistics are stored, but the weights are not.
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
