"""Tables for the documentation: the syntax encoder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from stored import StoredStudy

from page_tables.kept_results import difference, find, markdown

RUNS = StoredStudy("syntax")

# Text encoders, by their names in the results.
_ENCODERS = {
    "autoencoder": "gated mean-max autoencoder", "bert": "BERT, mean of the last layer",
    "sentence": "sentence-transformers, phrases of captions", "syntax": "syntactic encoder, `default`",
    "translations": "syntactic encoder, `translations`",
}  # fmt: skip
# Table 4 of Liu et al. (2019), on the paper's sentences.
_PAPER_TABLE_4 = {
    "en": {"USE": "71.8 / 55.7", "BERT, mean": "89.1 / 84.7", "LASER": "86.3 / 76.7"},
    "zh": {"USE": "39.2 / 30.2", "BERT, mean": "65.8 / 67.1", "LASER": "56.9 / 45.2"},
}
# Baselines, in order, and their names.
_CONTROLS = {"untrained": "untrained", "words": "TF-IDF", "random": "noise", "tags": "counts of tags"}


@cache
def _runs() -> dict[str, list[dict[str, Any]]]:
    """Return the records of each seed, by kind of model."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for name in RUNS.runs():
        runs.setdefault(name.rpartition("-")[0], []).append(RUNS.record(name))
    return runs


def _rows(test: str, cell: Callable[[list[dict[str, Any]]], str], more: Callable[[dict[str, Any]], list[str]]) -> str:
    """Return a table with a row for each model and language.

    Args:
        test: name of a test of the benchmark.
        cell: function from the figures of one kind of vectors, one of each seed, to a cell.
        more: function from the figures of a language to the cells before these.
    """
    rows = []
    for kind, runs in _runs().items():
        for language in runs[0].get(test, {}):
            seeds = [run[test][language] for run in runs if "vectors" in run.get(test, {}).get(language, {})]
            if not seeds:
                continue
            names = ("model", *_CONTROLS)
            figures = [cell([seed["vectors"][name] for seed in seeds]) for name in names]
            rows.append([kind, f"{len(seeds)}", language, *more(seeds[0]), *figures])
    head = {"groups": "groups / sentences | the paper", "phrases": "groups / phrases", "distances": "the paper's FD"}
    return markdown(f"model | seeds | language | {head[test]} | encoder | {' | '.join(_CONTROLS.values())}", rows)


def _nearest(seeds: list[dict[str, Any]]) -> str:
    return " / ".join(
        f"{100 * np.mean([figures[name] for figures in seeds]):.1f}" for name in ("nearest_1", "nearest_5")
    )


def groups() -> str:
    """Return a table of 1-NN / 5-NN of held-out sentences."""

    def more(results: dict[str, Any]) -> list[str]:
        paper = " / ".join(f"{value:.1f}" for value in results.get("paper") or ())
        return [f"{results['groups']:,} / {results['grouped']:,}", paper]

    return _rows("groups", _nearest, more)


def encoders() -> str:
    """Return a table that compares other encoders with the syntax encoder, on held-out sentences, with one seed."""
    rows = []
    for language, kinds in find("syntax_encoders/languages").items():
        default, as_in_paper = (
            RUNS.record(f"{kind}-1")["groups"][language]["vectors"] for kind in ("default", "translations")
        )
        controls = {"syntax": default["model"], "translations": as_in_paper["model"], "TF-IDF": default["words"]}
        for kind, figures in {**kinds, **controls}.items():
            rows.append([
                language, _ENCODERS.get(kind, kind), f"{figures.get('dimension', '')}", _nearest([figures]),
                f"{figures['fd']:.3f}", f"{figures['rho']:.2f}",
            ])  # fmt: skip
        for name, nearest in _PAPER_TABLE_4[language].items():
            rows.append([language, f"{name}, in the paper", "", nearest, "", ""])
    return markdown("language | encoder | size | 1-NN / 5-NN | FD | rho", rows, 2)


def phrases() -> str:
    """Return a table of 1-NN / 5-NN of phrases of treebanks."""
    return _rows("phrases", _nearest, lambda found: [f"{found['groups']:,} / {found['grouped']:,}"])


def distances() -> str:
    """Return a table of FD and rho of sentences of treebanks."""

    def both(seeds: list[dict[str, Any]]) -> str:
        names = [name for name in ("fd", "rho", "rho_any_length") if name in seeds[0]]
        fd, *rhos = (float(np.mean([figures[name] for figures in seeds])) for name in names)
        return ", ".join([f"{fd:.3f}", *(f"{rho:.2f}" for rho in rhos)])

    def more(results: dict[str, Any]) -> list[str]:
        return [f"{results['paper_fd']:.3f}" if results.get("paper_fd") else ""]

    return _rows("distances", both, more)


def transfer() -> str:
    """Return a table of 1-NN / 5-NN of new languages, before and after training on some pairs."""
    rows = []
    for language, figures in find("syntax_transfer/languages").items():
        for row in figures["rows"]:
            p = "" if "p" not in row else "< 0.001" if row["p"] < 0.001 else f"{row['p']:.3f}"
            nearest = f"{row['nearest_1']:.1f} / {row['nearest_5']:.1f}"
            rows.append([language, f"{figures['groups']:,} / {figures['texts']:,}", f"{row['pairs']:,}", nearest, p])
    return markdown("language | groups / texts | pairs | encoder | p of no gain", rows)


def pruning() -> str:
    """Return a table of the gain in BLEU from syntax in a criterion, at each size."""
    rows = []
    for pair, pair_results in find("syntax_pruning/pairs").items():
        sizes = pair_results["differences"]
        for name in next(iter(sizes.values())):
            method = name.partition(" - ")[0]
            bleu = " / ".join(f"{pair_results['BLEU'][method][size]:.2f}" for size in sizes)
            rows.append(
                [
                    pair,
                    name.replace(" - ", " minus "),
                    bleu,
                    *(difference(by_comparison[name]) for by_comparison in sizes.values()),
                ]
            )
    heads = " | ".join(f"at {size.rstrip('%')} %" for size in sizes)
    return markdown(f"pair | methods | BLEU | {heads}", rows, 2)


def supported() -> str:
    """Return a table of entries whose tags occur in no sentence pair."""
    rows = []
    for name, figures in find("supported_tags/tables").items():
        unsupported_share = f"{100 * (1 - figures['supported'] / figures['entries']):.1f}"
        rows.append([name, f"{figures['entries']:,}", unsupported_share, f"{100 * (1 - figures['chance']):.1f}"])
    return markdown("table | entries | without support, % | by chance, %", rows)


def unsupported() -> str:
    """Return a table of the most frequent tags of entries that occur in no sentence pair."""
    rows = [
        [
            f"`{pattern['source']}`",
            f"`{pattern['target']}`",
            " &rarr; ".join(pattern["example"]),
            f"{pattern['entries']:,}",
        ]
        for pattern in find("supported_tags/tables/whole/unsupported")
    ]
    return markdown("source | target | example | entries", rows, 3)


TABLES = {
    "syntax groups": groups, "syntax encoders": encoders, "syntax phrases": phrases, "syntax distances": distances,
    "syntax transfer": transfer, "syntax pruning": pruning, "supported tags": supported,
    "unsupported tags": unsupported,
}  # fmt: skip
