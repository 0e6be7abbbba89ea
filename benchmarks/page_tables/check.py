"""Tables for the documentation: results of the checks on valid input, and their CPU time."""

from __future__ import annotations

from typing import Any

from page_tables.kept_results import find, markdown

# Small tables share a row.
_CUTS, _FORMS = (" lines", "cut from these, of 20 lines"), ("form of Moses", "in the forms of Moses' regression tests")


def _small(name: str) -> bool:
    return name.endswith(_CUTS[0]) or name.startswith(_FORMS[0])


def _row(name: str, results: dict[str, Any]) -> list[str]:
    fit, development = results.get("model_fit"), results.get("development")
    known = [f"{fit['source_known']:.0%}", f"{fit['target_known']:.0%}", f"{fit['auc']:.2f}"] if fit else [""] * 3
    texts = [f"{development['coverage']:.0%}", f"{development['bleu_at_start']:.1f}"] if development else [""] * 2
    return [name, *known, *texts, f"{results['commands']}", f"{len(results['refused'])}"]


def right_inputs() -> str:
    """Return a table of the measurements of the checks on valid input, and the number of rejections."""
    inputs = find("right_inputs/inputs")
    rows = [_row(name, result) for name, result in sorted(inputs.items()) if not _small(name)]
    for mark, title in (_CUTS, _FORMS):
        grouped = [result for name, result in inputs.items() if mark in name and _small(name)]
        commands, refused = (
            sum(result["commands"] for result in grouped),
            sum(len(result["refused"]) for result in grouped),
        )
        if not grouped:
            continue
        rows.append([f"{len(grouped)} tables {title}", *[""] * 5, f"{commands}", f"{refused}"])
    head = "input | source words known | target words known | AUC | dev tokens covered | BLEU, untuned"
    return markdown(f"{head} | commands | rejected", rows)


def check_costs() -> str:
    """Return a table of CPU seconds with and without the checks."""
    rows = [
        [f"`{name}`", *(f"{costs[mode]['median']:.2f} s" for mode in ("with", "without")),
         f"{costs['ratio']['median']:.3f}", f"{costs['ratio of the fastest']:.3f}"]
        for name, costs in find("right_inputs/CPU seconds").items()
    ]  # fmt: skip
    return markdown("command | with | without | ratio, median | ratio of the fastest", rows)


def _least(key: str) -> float:
    return min(min(fit[part] for part in key.split("+")) for fit in _fits())


def _fits() -> list[dict[str, Any]]:
    return [result["model_fit"] for result in find("right_inputs/inputs").values() if "model_fit" in result]


def _developments() -> list[dict[str, Any]]:
    return [result["development"] for result in find("right_inputs/inputs").values() if "development" in result]


TABLES = {"right inputs": right_inputs, "check costs": check_costs}
VALUES = {
    "least words known of right input": lambda: f"{100 * _least('source_known+target_known'):.0f}",
    "least AUC of right input": lambda: f"{_least('auc'):.2f}",
    "least coverage of right input": lambda: f"{100 * min(dev['coverage'] for dev in _developments()):.0f}",
    "least BLEU of right input": lambda: f"{min(dev['bleu_at_start'] for dev in _developments()):.1f}",
}
