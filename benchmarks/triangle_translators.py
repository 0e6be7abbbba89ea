"""A neural translator that reranks n-best lists for a language pair that `pivoting.py` joins through English.

The pair has no bitext.  A synthetic one is made from the halves: the English side of each is translated into the
missing language by a phrase-based model of the other half.  Therefore half of each side is original text.
"""

from __future__ import annotations

from pathlib import Path

from engines import SEARCH, built, command
from ladders import TRAINING
from stored import StoredRun
from triangle_texts import MIDDLE, Triangle, write_lines

from moses_compat.corpora.texts import read_text_lines
from phrasetool.smt.evaluation.bleu import sentence_statistics

N_BEST = "100"
# A fast search with few hypotheses, because much text is translated.
_QUICK = ("--search", "cube", "--pop-limit", "100", "--stack", "100")


def made_bitext(pair: Triangle, threads: str) -> tuple[str, str]:
    """Return source and target text of the synthetic bitext, with a sentence pair for each pair of both halves."""
    texts: dict[str, list[str]] = {pair.source: [], pair.target: []}
    whole = [pair.text("made", language) for language in texts]
    if all(Path(path).exists() for path in whole):
        return whole[0], whole[1]
    halves = {"first": (pair.source, "second", pair.target), "second": (pair.target, "first", pair.source)}
    for part, (real, other_part, lacked) in halves.items():
        translated = pair.text(f"{part}-translated", lacked)
        if not Path(translated).exists():
            bitext, dev = ([pair.text(name, language) for language in (MIDDLE, lacked)] for name in (other_part, "dev"))
            ini, _ = built(pair.work / f"{MIDDLE}-{lacked}", bitext, dev, threads)
            text = pair.text(part, MIDDLE)
            command("decode", "--moses-ini", ini, *_QUICK, text, "-o", translated, "--threads", threads)
        texts[real] += read_text_lines(pair.text(part, real))
        texts[lacked] += read_text_lines(translated)
    for path, lines in zip(whole, texts.values(), strict=True):
        write_lines(path, lines)
    return whole[0], whole[1]


def _translator(pair: Triangle, threads: str) -> Path:
    """Return the folder of the translator, trained if it is missing."""
    folder = pair.work / "translator"
    if not (folder / "config.json").exists():
        bitext = made_bitext(pair, threads)
        command("train", *TRAINING, *bitext, "-o", folder, "--overwrite", "--threads", threads)
    return folder


def rerank(pair: Triangle, ini: Path, folder: Path, threads: str, run: StoredRun) -> None:
    """Rerank a tuned system's n-best lists of all test sentences, and store BLEU statistics."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = {"tests": (pair.text("tests", pair.source), pair.text("tests", pair.target))}
    for path, language in zip(sides["tests"], (pair.source, pair.target), strict=True):
        write_lines(path, [line for part in pair.tests for line in read_text_lines(pair.text(part, language))])
    sides["dev"] = pair.text("dev", pair.source), pair.text("dev", pair.target)
    for name, (source, _) in sides.items():
        lists = folder / f"{name}.nbest.gz"
        if not lists.exists():
            command(
                "decode", "--moses-ini", ini, *SEARCH, source, "--n-best-list", lists, N_BEST,
                "-o", folder / f"{name}.1best", "--threads", threads,
            )  # fmt: skip
    chosen = folder / "tests.reranked"
    command(
        "rerank", folder / "tests.nbest.gz", "--source", sides["tests"][0], "-m", _translator(pair, threads),
        "--dev-list", folder / "dev.nbest.gz", "--dev", sides["dev"][0], sides["dev"][1],
        "-o", chosen, "--threads", threads,
    )  # fmt: skip
    run.write(sentence_statistics(read_text_lines(str(chosen)), read_text_lines(sides["tests"][1])))
