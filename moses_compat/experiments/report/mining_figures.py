"""A figure of mined pairs: precision, recall and F1 by threshold."""

from __future__ import annotations

import io

import matplotlib as mpl
from matplotlib.figure import Figure

from moses_compat.experiments.report.drawing import PALETTE, STYLE
from phrasetool.bitext.mining_quality import MiningQuality


def mining_figure(quality: MiningQuality, form: str) -> bytes:
    """Draw the curve.

    Args:
        quality: with at least one point.
        form: svg, png or pdf.
    """
    with mpl.rc_context(STYLE):
        figure = Figure((6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        thresholds = [point.threshold for point in quality.curve]
        for number, name in enumerate(("precision", "recall", "f1")):
            values = [100 * getattr(point, name) for point in quality.curve]
            axes.plot(thresholds, values, color=PALETTE[number][0], label="F1" if name == "f1" else name)
        if quality.best is not None:
            axes.axvline(quality.best.threshold, color=PALETTE[3][0], linestyle=":", linewidth=1)
        axes.set(xlabel="threshold", ylabel="%", ylim=(0, 102))
        axes.legend(loc="best")
        drawn = io.BytesIO()
        # No output holds a date.
        figure.savefig(drawn, format=form, metadata={"Date": None} if form == "svg" else None)
    return drawn.getvalue()
