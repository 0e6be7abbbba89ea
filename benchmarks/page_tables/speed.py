"""Tables for the documentation: speed and memory of the commands, and the engine compared with Moses."""

from __future__ import annotations

import math

from page_tables.kept_results import difference, find, markdown


def _median(path: str, digits: int = 1) -> str:
    return f"{find(path + '/median'):.{digits}f}"


def _at_least(value: float) -> str:
    """Round up to one significant digit."""
    power = math.floor(math.log10(value))
    return f"{math.ceil(value / 10**power) * 10.0**power:.0e}"


def _row(command: str, path: str, ratio: str = "", memory: str = "") -> list[str]:
    """Return a row with seconds, the ratio to recompression, and peak memory."""
    share = f"{find(ratio + '/median'):.2f}" if ratio else ""
    return [command, f"{_median(path)} s", share, f"{find(memory)} MB" if memory else ""]


def commands() -> str:
    """Return a table of wall seconds of commands on the reference table."""
    speed, ratio = "table_speed/seconds", "table_speed/ratio to zcat | gzip -6"
    smoothed, step = "smoothed_columns", "reordering_in_step/seconds"
    rows = [
        _row("recompression with gzip alone", f"{speed}/zcat | gzip -6"),
        _row("`annotate`: read, encode all phrases, score, write", f"{speed}/annotate", f"{ratio}/annotate"),
        _row("`prune --threshold`", f"{speed}/prune", f"{ratio}/prune"),
        _row("`prune --threshold --similarities`: similarities of an earlier run", f"{speed}/prune --scores",
             f"{ratio}/prune --scores"),
        _row("`prune` with its reordering table", f"{step}/prune both"),
        _row("`prune --similarities` with its reordering table", f"{step}/prune both --scores"),
        _row("`annotate --smoothing kneser-ney`", f"{smoothed}/kneser-ney/seconds",
             f"{smoothed}/kneser-ney/ratio to zcat | gzip -6", memory=f"{smoothed}/kneser-ney/peak_mb"),
        _row("`annotate --forced-pairs`", f"{smoothed}/forced pairs/seconds",
             f"{smoothed}/forced pairs/ratio to zcat | gzip -6"),
        _row("`filter-pt -l a+e`, index of the corpus included", "filter_pt/seconds/filter-pt -l a+e",
             memory="filter_pt/peak_mb"),
        _row("`inspect`", "interchange/seconds/inspect", memory="interchange/peak memory, MB/inspect"),
        _row("`convert` to Parquet", "interchange/seconds/convert to Parquet",
             memory="interchange/peak memory, MB/convert to Parquet"),
        _row("`convert` back to text", "interchange/seconds/convert to text",
             memory="interchange/peak memory, MB/convert to text"),
    ]  # fmt: skip
    return markdown("command | time | ratio to recompressing | peak memory", rows)


def methods() -> str:
    """Return a table of pruning by whole-table methods, with similarities of an earlier run."""
    recompression = find("method_speed/seconds/zcat | gzip -6/median")
    rows = [
        [f"`{name}`", f"{_median(f'method_speed/seconds/{name}')} s",
         f"{find(f'method_speed/seconds/{name}/median') / recompression:.2f}", f"{memory} MB"]
        for name, memory in find("method_speed/peak memory MB").items()
    ]  # fmt: skip
    return markdown(
        "`prune --target-size 0.1 --similarities --method` | time | ratio to recompressing | peak memory", rows
    )


def startup() -> str:
    """Return a table of first and warm runs of an installed wheel, with compiled kernels and with numba's."""
    rows = [
        [
            f"`{label.partition(',')[0]}`{''.join(label.partition(',')[1:])}",
            *(f"{run[key]:.2f} s" for key in ("first", "warm", "CPU", "first by numba", "CPU by numba")),
        ]
        for label, run in find("startup/commands, s").items()
    ]
    return markdown("command | first run | later runs | CPU | first run, not precompiled | CPU, not precompiled", rows)


def memory() -> str:
    """Return a table of peak memory on the table and on copies of it."""
    rows = []
    for name in ("annotate", "prune"):
        small, large = find(f"memory/{name}/peak_mb")
        rows.append([f"`{name}`", f"{small} MB", f"{large} MB", f"{find(f'memory/{name}/seconds/1'):.0f} s"])
    entries, copies = find("extraction/phrase-table/entries") / 1e6, find("memory/copies")
    return markdown(f"command | {entries:.1f} million entries | {copies} times as many | time for these", rows)


def large_methods() -> str:
    """Return a table of peak memory and work files of a method on the table and on a large one."""
    rows = [
        [f"{int(entries) / 1e6:.1f} million", f"{run['peak_mb']} MB", f"{run['work_files_gb']:.1f} GB",
         f"{run['cpu_seconds']:.0f} s"]
        for entries, run in find("large_methods/tables").items()
    ]  # fmt: skip
    return markdown(f"entries, `{find('large_methods/method')}` | peak memory | work files | CPU", rows)


def outside_memory() -> str:
    """Return a table of peak memory and CPU of `lm` and `extract`, by memory limit."""
    rows = [
        [f"`{name}`", limit, f"{run['peak_mb']} MB", f"{run['cpu_seconds']:.0f} s"]
        for name in ("lm", "extract")
        for limit, run in find(f"outside_memory/{name}/limits").items()
    ]
    return markdown("command | `--memory` | peak memory | CPU", rows, right=2)


def engine() -> str:
    """Return a table that compares each step of the engine with Moses' result."""
    table, reordering = find("extraction/phrase-table"), find("extraction/reordering-table")
    small, large = find("language_model/lm3.train"), find("language_model/lm5.pruned")
    model, search = find("decoder/model"), find("decoder/search")
    forced = find("decoder/forced decoding")
    worst = max(part["largest_difference_log10_probability"] for part in (small, large))
    rows = [
        ["phrase table from the same alignments", f"{table['byte_identical_lines']:,} of "
         f"{table['entries_of_reference']:,} lines byte-identical"],
        ["reordering table from the same alignments", f"{reordering['byte_identical_lines']:,} of "
         f"{reordering['entries_of_reference']:,} lines byte-identical"],
        ["3-gram and pruned 5-gram language models", f"the same n-grams as lmplz, log10 p within {_at_least(worst)}"],
        ["model score of Moses' n-best derivations", f"{model['derivations']:,} derivations, every total within "
         f"{_at_least(model['total'])}"],
        ["best translation, plain stacks of 200", f"{search['same words as Moses']:,} of {search['sentences']:,} "
         "sentences word for word the same"],
        ["forced decoding of the training set", f"{forced['outcomes']['reached']:,} of {forced['sentences']:,} "
         f"sentences reached; Moses: {forced['reached by Moses']:,}"],
    ]  # fmt: skip
    return markdown("step | compared with Moses", rows, right=2)


def decoders() -> str:
    """Return a table that compares real Moses decoders with ours."""
    searches = find("decoder/beside Moses")
    titles = {
        "cube": "cube pruning, stack and pop limit 400", "stack": "stacks of 200",
    }  # fmt: skip
    rows = []
    for search, title in titles.items():
        spent, ratios = searches[search]["CPU ms a sentence"], searches[search]["ratio to"]
        rows.append([f"{title}: CPU per sentence", *(f"{spent[p]['median']:.1f} ms" for p in _DECODERS),
                     *(f"{ratios[p]['median']:.2f}" for p in _DECODERS[:2])])  # fmt: skip
    for clock, title in (("wall", "one sentence from a cold start"), ("cpu", "the same, CPU")):
        timing = searches[f"one sentence, {clock} s"]
        rows.append([title, *(f"{timing[p]['median']:.1f} s" for p in _DECODERS),
                     *(f"{timing['ratio to'][p]['median']:.2f}" for p in _DECODERS[:2])])  # fmt: skip
    return markdown("measurement | `moses` | `moses2` | `phrasetool` | ratio to `moses` | ratio to `moses2`", rows)


_DECODERS = ("moses", "moses2", "phrasetool")


def decoder_scores() -> str:
    """Return a table that compares model scores of best derivations with those of real Moses decoders."""
    rows = []
    for search, title in (("cube", "cube pruning"), ("stack", "stacks")):
        for program in _DECODERS[:2]:
            scores = find(f"decoder/beside Moses/{search}/model score against/{program}")
            shares = (f"{100 * scores[outcome]:.1f} %" for outcome in ("better", "equal", "worse"))
            rows.append([f"{title}, `{program}`", f"{scores['mean of ours']:.3f}", f"{scores['mean of theirs']:.3f}",
                         *shares])  # fmt: skip
    return markdown(
        "search and program | mean, `phrasetool` | mean, Moses | `phrasetool` better | equal | `phrasetool` worse", rows
    )


def engine_bleu() -> str:
    """Return a table of BLEU on four test sets: our decoder with Moses' tables, and the whole engine."""
    rows = []
    for name, whole_engine in find("whole_engine/BLEU").items():
        decoder = find(f"decoder/{name}")
        rows.append([name.replace("_", "\\_"), *(f"{value:.2f}" for value in (
            decoder["moses"], decoder["stack"], decoder["cube"], whole_engine["phrasetool"]))])  # fmt: skip
    return markdown(
        "test set | Moses | Moses' model, stacks | Moses' model, cube pruning | all steps by `phrasetool`", rows
    )


def distortion_limits() -> str:
    """Return a table of BLEU by distortion limit, gain over Moses' default, and time of translating."""
    rows = []
    for pair, pair_results in find("distortion_limits/pairs").items():
        bleu = pair_results["BLEU"]
        gains = [f"{bleu[limit]:.2f}, {difference(gain)}" for limit, gain in pair_results["gains"].items()]
        times = " / ".join(f"{pair_results['milliseconds'][limit]:.1f}" for limit in ("6", *pair_results["gains"]))
        rows.append([pair, f"{bleu['6']:.2f}", *gains, times])
    return markdown("language pair | limit of 6 | limit of 12 | no limit (`-1`) | ms per sentence", rows)


def engine_speed() -> str:
    """Return a table of the time of each step from a bitext to translations."""
    seconds = find("whole_engine/seconds")
    rows = [[f"`{name}`", f"{value:.0f} s"] for name, value in seconds.items()]
    rows.append(["total", f"{find('whole_engine/minutes'):.1f} min"])
    return markdown("step | time", rows)


def tuning() -> str:
    """Return a table of BLEU on the development set by tuning seed."""
    rows = []
    for algorithm, title in (("mira", "batch MIRA"), ("pro", "PRO")):
        runs = [find(f"tuning/{algorithm}, seed {seed}") for seed in (1, 2, 3)]
        seconds = ", ".join(f"{run['seconds']:.0f}" for run in runs)
        rows.append([title, *(f"{run['BLEU']:.2f}" for run in runs), seconds])
    return markdown("optimiser | seed 1 | seed 2 | seed 3 | seconds", rows)


def training() -> str:
    """Return a table of pairs per second and the time for a table of the paper's size."""
    rows = [
        [
            f"`{loss}`",
            f"{figures['pairs_per_second']:,}",
            f"{figures['minutes_for_25_iterations_of_the_papers_pairs']} min",
        ]
        for loss, figures in ((name, find(f"training_speed/{name}")) for name in ("in-batch", "max-margin"))
    ]
    return markdown("loss | pairs per second | 25 iterations of 1.12 million pairs", rows)


def subnormals() -> str:
    """Training speed at the beginning and at the end of a measurement, with and without subnormal numbers."""
    rows = []
    for settings, results in (("a quarter", "subnormals"), ("the paper's", "subnormals-paper")):
        window, speeds = find(f"{results}/window"), find(f"{results}/texts_per_second")
        for number in (0, len(speeds["zero"]) - 1):
            updates = f"{number * window + 1:,} to {(number + 1) * window:,}"
            rows.append(
                [settings, updates, *(f"{speeds[treatment][number]:.0f}" for treatment in ("calculated", "zero"))]
            )
    return markdown("dimensions | updates | with subnormal numbers, texts per second | with 0, texts per second", rows)


def beams() -> str:
    """Return a table of the share of sentences with the model score of Moses, by search and beam threshold."""
    searches = (("cube", "cube pruning"), ("stack", "stacks"))
    thresholds = list(find("beam_threshold/cube"))
    rows = [
        [title, *(f"{100 * scores['equal']:.1f} %" for scores in find(f"beam_threshold/{search}").values())]
        for search, title in searches
    ]
    return markdown(" | ".join(["same score at a beam threshold of", *thresholds]), rows)


def families() -> str:
    """Return a table of the training speed of every family on CPU, and on GPU if measured."""
    rows = []
    for name, family in find("training_devices/families").items():
        rates = (family.get(device, {}).get("per second") for device in ("cpu", "cuda"))
        shown = (f"{rate:,.0f}" if rate else "not measured" for rate in rates)
        rows.append([name, family["unit"], *shown])
    return markdown("model | unit | two cores, per second | GPU, per second", rows)


def devices() -> str:
    """Return a table of annotating with two threads, on the CPU alone and with a GPU."""
    rows = [
        [name, *(f"{figures['seconds'][device]['median']:.1f} s" for device in ("cpu", "cuda"))]
        for name, figures in find("scoring_device/models").items()
    ]
    return markdown("model | two threads | with a GPU", rows)


TABLES = {
    "startup": startup, "devices": devices, "beams": beams, "families": families,
    "commands": commands, "methods": methods, "memory": memory, "large methods": large_methods,
    "outside memory": outside_memory, "decoders": decoders, "decoder scores": decoder_scores,
    "engine": engine, "engine bleu": engine_bleu,
    "distortion limits": distortion_limits, "engine speed": engine_speed, "tuning": tuning, "training": training,
    "subnormals": subnormals,
}  # fmt: skip
VALUES = {
    "million entries": lambda: f"{find('extraction/phrase-table/entries') / 1e6:.1f}",
}  # fmt: skip
