"""The curve of mined pairs."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from moses_compat.experiments.report.mining_figures import mining_figure
from phrasetool.bitext.mining_quality import evaluate_mining


def test_same_bytes_and_all_curves():
    quality = evaluate_mining(np.array([3.0, 2.0, 1.0]), [(1, 1), (2, 3), (3, 3)], {(1, 1), (3, 3)})
    drawn = mining_figure(quality, "svg")
    assert drawn == mining_figure(quality, "svg")
    for name in (b"precision", b"recall", b"F1", b"threshold"):
        assert b">" + name in drawn
    assert mining_figure(quality, "pdf").startswith(b"%PDF")
