"""Scores of translations as text for people."""

from __future__ import annotations

import os
from collections.abc import Sequence

from phrasetool.smt.evaluation.metrics import MetricReport

# What is marked with a star.
SIGNIFICANT = 0.05


def any_significant(reports: Sequence[MetricReport]) -> bool:
    """Whether any system differs from the baseline."""
    return any((system.p_value or 1) < SIGNIFICANT for report in reports for system in report.systems)


def score_lines(report: MetricReport, files: Sequence[str]) -> list[str]:
    """The scores of all systems by one metric: a title, a line for each system, the signature.

    Args:
        report: of S systems.
        files: S paths; a system goes by the name of its file, or by its path if two have the same name.
    """
    names = [os.path.basename(path) for path in files]
    if len(set(names)) < len(names):
        names = list(files)
    if len(names) > 1:
        names[0] += " (baseline)"
    title = f"{report.name}, {'more' if report.higher_is_better else 'less'} is better"
    width = max(len(title), *(len(name) + 2 for name in names))
    compared = f"  {'difference':>10}  {'p':>7}" if len(files) > 1 else ""
    rows = [f"{title:<{width}}  {'score':>6}  {'95 %':>6}{compared}"]
    for name, system in zip(names, report.systems, strict=True):
        row = f"  {name:<{width - 2}}  {system.score:6.2f}  {'±' + format(system.interval, '.2f'):>6}"
        if system.p_value is not None:
            star = " *" if system.p_value < SIGNIFICANT else ""
            row += f"  {system.difference:>+10.2f}  {system.p_value:7.4f}{star}"
        rows.append(row)
    return [row.rstrip() for row in (*rows, f"  {report.signature}")]
