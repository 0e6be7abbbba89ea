"""Frames of an invented experiment, small enough to know every number."""

from itertools import pairwise

import numpy as np
import pandas as pd

NAN = float("nan")
# Loss on ALL and p against the full table, by method and size.
LOSSES = {
    "composition+semantic": {0.5: (0.00, 0.500), 0.1: (-0.05, 0.200), 0.05: (-0.09, 0.040)},
    "composition": {0.5: (-0.02, 0.400), 0.1: (-0.30, 0.009), 0.05: (-1.00, 0.0005)},
    "random": {0.5: (-6.00, 0.001), 0.1: (-20.00, 0.001), 0.05: (-25.00, 0.001)},
}
FULL = {"test a": 40.0, "test b": 30.0, "ALL": 36.0, "dev": 41.0}
NASTY = ["&apos;s <b>", "a | b", "`x` *y* _z_", "</script><script>alert(1)</script>", "北京 的", "日本 の 町",
         "$x$ \\ [a](b)", "\x00\x1b\x85\u202e!", 'say "hi"', "Q0Q", "# 1. -"]  # fmt: skip


def pruning(protects=("all", "words"), losses=LOSSES, texts=("test a", "test b", "ALL", "dev"), seeds=1):
    rows = []

    def add(system, method, rule, wanted, protect, keep, seed, share, loss, p):
        for text in texts:
            lost = loss - 0.2 if text == "dev" else loss
            rows.append({
                "system": system, "method": method, "combine": "product" if "+" in method else "",
                "semantic": "semantic" in method, "rule": rule, "wanted": wanted, "protect": protect, "keep_top": keep,
                "seed": seed, "entries": round(share * 2000), "share": share, "text": text, "bleu": FULL[text] + lost,
                "low": FULL[text] + lost - 0.8, "high": FULL[text] + lost + 0.8, "difference": lost, "p": p,
                "worst": NAN if method == "full" else lost - 0.1,
                "best": NAN if method == "full" else lost + 0.05,
                "command": "" if method == "full" else f"phrasetool prune --method {method} --target-size {wanted}",
            })  # fmt: skip

    add("full", "full", "full", 1.0, "none", 0, 0, 1.0, 0.0, NAN)
    for row in rows:
        row.update(bleu=FULL[row["text"]], low=FULL[row["text"]] - 0.8, high=FULL[row["text"]] + 0.8, difference=0.0)
    for protect in protects:
        for method, sizes in losses.items():
            for size, (loss, p) in sizes.items():
                for seed in range(1, seeds + 1) if method == "random" else [0]:
                    system = f"{method} {100 * size:g} % {protect} {seed}"
                    add(
                        system,
                        method,
                        "size",
                        size,
                        protect,
                        3 if size < 0.1 else 10,
                        seed,
                        size,
                        loss - 0.1 * (seed > 1),
                        p,
                    )
    return pd.DataFrame(rows)


def contests(*found):
    columns = ("wanted", "protect", "with_semantics", "without", "bleu_with", "bleu_without", "difference", "p",
               "worst", "best", "dev_with", "dev_without")  # fmt: skip
    rows = [
        (size, "words", "composition+semantic", "composition", 36.0 + gain, 36.0, gain, p, gain - 0.15, gain + 0.15,
         41.2, 41.1)
        for size, gain, p in found
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def annotation(gain=0.25, p=0.004):
    rows = [
        (system, columns, n, 3, text, bleu + more, 0.05, more, low, high, chance, 41.5)
        for system, columns, n, more, low, high, chance in (
            ("baseline", "", 0, 0.0, NAN, NAN, NAN),
            ("annotated n=50", "semantic", 50, gain, gain - 0.2, gain + 0.15, p),
        )
        for text, bleu in FULL.items()
    ]
    columns = (
        "system",
        "columns",
        "dimension",
        "tuning_seeds",
        "text",
        "bleu",
        "deviation",
        "difference",
        "low",
        "high",
        "p",
        "dev_bleu",
    )
    return pd.DataFrame(rows, columns=columns)


def ladder(total=(0.4, 1.5, 1.2), p=0.004):
    """Return steps for columns, new entries, and a tenth of both, with these total gains over the original table."""
    columns = ("step", "entries", "share", "tuning_seeds", "text", "bleu", "deviation", "gain", "gain_low",
               "gain_high", "gain_p", "total", "total_low", "total_high", "total_p")  # fmt: skip
    rows = []
    steps = zip(
        ("+ columns", "+ augment", "all, 10 %"), (2000, 2040, 204), (1.0, 1.0, 0.1), (0.0, *total), total, strict=False
    )
    for text in ("test a", "test b", "ALL"):
        rows.append(("table", 2000, 1.0, 3, text, FULL[text], 0.1, *[NAN] * 8))
    for step, entries, share, below, step_total in steps:
        gain = step_total - below
        for text in ("test a", "test b", "ALL"):
            rows.append((step, entries, share, 3, text, FULL[text] + step_total, 0.1, gain, gain - 0.2, gain + 0.2, p,
                         step_total, step_total - 0.5, step_total + 0.5, p))  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def neighbours():
    rows = [
        (phrase, language, model, rank, NASTY[(index + rank) % len(NASTY)], 1 - rank / 8)
        for language in ("source", "target")
        for index, phrase in enumerate(NASTY[:3])
        for model in ("BRAE", "RAE")
        for rank in (2, 1)
    ]
    return pd.DataFrame(rows, columns=("phrase", "language", "model", "rank", "neighbour", "similarity"))


def histogram(systems=("composition 10 %", "semantic <10 %>")):
    edges = np.linspace(-1, 1, 9)
    rows = [
        (low, high, direction, 10 * index, 20 + index, system)
        for system in systems
        for direction in ("source-to-target", "target-to-source")
        for index, (low, high) in enumerate(pairwise(edges))
    ]
    return pd.DataFrame(rows, columns=("low", "high", "direction", "kept", "removed", "system"))


def phrase_map(count=60):
    rng = np.random.default_rng(3)
    words = [*NASTY, *(f"phrase {number}" for number in range(count))][:count]
    rows = [
        (*rng.normal(size=2), word, f"<{word}>", 1000 // (index + 1), language)
        for index, word in enumerate(words)
        for language in ("source", "target")
    ]
    return pd.DataFrame(rows, columns=("x", "y", "phrase", "translation", "frequency", "language"))


def surprises():
    rows = [
        (method, kind, NASTY[rank], NASTY[-rank - 1], 3, 0.125, 0.5, NAN if rank == 2 else 12.0, float("inf"), rank)
        for method in ("composition", "composition+semantic")
        for kind in ("kept", "removed")
        for rank in (2, 1)
    ]
    columns = (
        "method",
        "kind",
        "source",
        "target",
        "count",
        "probability",
        "similarity",
        "significance",
        "loss",
        "rank",
    )
    return pd.DataFrame(rows, columns=columns)


def all_frames():
    return {
        "pruning": pruning(),
        "contests": contests((0.1, 0.25, 0.002), (0.05, 0.01, 0.4)),
        "annotation": annotation(),
        "ladder": ladder(),
        "neighbours": neighbours(),
        "histogram": histogram(),
        "map": phrase_map(),
        "surprises": surprises(),
    }


FACTS = {
    "name": "small",
    "config": {"name": "small", "text": "[prune]\nmethods = ['composition'] # <all>\n"},
    "machine": "A processor, 2 cores",
    "versions": {"phrasetool": "0.1.0", "numpy": "2.0"},
    "commands": {"align": "phrasetool align a.de a.en", "lm": "phrasetool lm a.en"},
    "seconds": {"build: align": 7.25, "runs": 3725.0},
}
