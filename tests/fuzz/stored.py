"""Targets: files that commands read again: Parquet, similarities, finished work, stores, checkpoints, results."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np

from moses_compat.experiments.build_commands import RunStore
from moses_compat.files.finished_work import FinishedWork, digest_of_bytes
from moses_compat.files.streams import Input, Output
from moses_compat.measures.saved_scores import SavedScores, ScoreWriter
from moses_compat.tables.blocks import LineMarks
from moses_compat.tables.parquet import parquet_to_table, table_to_parquet
from phrasetool.disk.packed_values import packed, unpacked
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.text_encoders.margins import NORMALISATIONS
from phrasetool.text_encoders.vector_store import StoreKind, VectorStore
from phrasetool.training.loop import load_checkpoint, save_checkpoint
from tests.fuzz.target import Target, scratch, written
from tests.tables import TABLES

# Separates the two files of an input.
_BETWEEN = b"\n\n\n"


def _run_parquet(data: bytes) -> None:
    with Output(str(scratch("back"))) as output:
        parquet_to_table(written("t.parquet", data), output)


def _run_scores(data: bytes) -> None:
    saved = SavedScores(written("scores", data))
    while len(saved.take(7)[0].pairs):
        pass


def _run_packed(data: bytes) -> None:
    try:
        unpacked(data)
    except ValueError:
        # Readers turn this exception into an error that names the file.
        return


def _run_finished(data: bytes) -> None:
    """Resume work from settings and a finished item, whose digest is correct."""
    settings, _, kept = data.partition(_BETWEEN)
    source, folder = written("source", b"one\ntwo\n"), scratch("out.unfinished")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "settings.json").write_bytes(settings)
    (folder / "pass-000000000.done").write_bytes(digest_of_bytes(kept) + kept)
    with FinishedWork(str(scratch("out")), source, {"a": "b"}) as work:
        list(work.run("pass", lambda item: item, [b"1", b"2"], lambda item: np.zeros(3), 1))


def _run_store(data: bytes) -> None:
    """Read a store of vectors with a fuzzed header."""
    folder = scratch("store")
    if not folder.exists():
        folder.mkdir()
        for side in ("source", "target"):
            (folder / f"{side}.vectors").write_bytes(np.ones((3, 4), np.float16).tobytes())
            np.save(folder / f"{side}.keys.npy", np.arange(3, dtype=np.uint64))
            np.save(folder / f"{side}.rows.npy", np.arange(3))
        np.save(folder / "sample.npy", np.zeros((3, 3), np.int64))
    (folder / "store.json").write_bytes(data)
    store = VectorStore(folder, StoreKind(("a", "b"), "plain"))
    if not store.complete:
        return
    for side in ("source", "target"):
        store.vectors(side)
        store.keys(side)
    store.normalised(NORMALISATIONS["cosine"])


def _run_checkpoint(data: bytes) -> None:
    folder = scratch("checkpoint")
    folder.mkdir(exist_ok=True)
    (folder / "checkpoint.safetensors").write_bytes(data)
    load_checkpoint(folder)


def _run_result(data: bytes) -> None:
    written("runs-key.json", data)
    folder = scratch("runs")
    store = RunStore(str(folder))
    (folder / "key.json").write_bytes(data)
    store.read("key")


def _parquet(name: str) -> bytes:
    source, out = written("seed", TABLES[name]), scratch("seed.parquet")
    with Input(source) as table, Output(str(out)) as output:
        table_to_parquet(table, output)
    return out.read_bytes()


def _scores() -> bytes:
    path = scratch("seed.scores")
    with ScoreWriter(str(path), "model") as writer:
        scores = Scores(np.ones((9, 2), np.float32), np.ones(9, np.bool_))
        numbers = np.arange(9, dtype=np.uint32)
        writer.write(LineMarks(numbers, numbers, numbers.astype(np.uint16)), scores)
    return path.read_bytes()


def _checkpoint() -> bytes:
    import torch

    folder = scratch("seed-checkpoint")
    save_checkpoint(folder, {"a": torch.zeros(3, 2)}, {"identity": {}, "history": []})
    return Path(folder, "checkpoint.safetensors").read_bytes()


def _finished() -> bytes:
    """Return the files of a run that was interrupted after one item."""
    source = written("source", b"one\ntwo\n")
    with contextlib.suppress(KeyError), FinishedWork(str(scratch("out")), source, {"a": "b"}) as work:
        for _ in work.run("pass", lambda item: item, [b"1"], lambda item: np.zeros(3), 1):
            pass
        raise KeyError
    folder = scratch("out.unfinished")
    kept = (folder / "pass-000000000.done").read_bytes()[len(digest_of_bytes(b"")) :]
    return (folder / "settings.json").read_bytes() + _BETWEEN + kept


_STORE = {
    "schema": 1, "encoders": ["a", "b"], "texts": "plain", "complete": True, "phrases": [3, 3], "dimension": 4,
    "table": "x", "over_long": 0, "made": [], "fits": {},
}  # fmt: skip
_PACKED = packed([(b"1", np.arange(5)), (b"2", {"a": (1, 2.5, None, "x")}), (b"3", np.float32(2))])

TARGETS = (
    Target("Parquet", [_parquet(name) for name in list(TABLES)[:4]], _run_parquet, (b"PAR1", b"PAR1\x15")),
    Target("saved similarities", [_scores()], _run_scores, (b"PAR1",)),
    Target("packed values", [_PACKED, packed((1, [2, 3]))], _run_packed,
           (b'{"array": "<f8"', b'"shape": [1]', b'"object": "phrasetool.errors:DataError"', b'{"tuple": [', b"null")),
    Target("finished work", [_finished()], _run_finished,
           (b"null", b"[]", b'{"tuple": [', b'"array": "<f8"', b'{"bytes": 1}', _BETWEEN)),
    Target("store of vectors", [json.dumps(_STORE).encode()], _run_store,
           (b"null", b"[]", b"{}", b"-1", b"1e9", b'"made": ["source.centred"]', b'"fits": {"x": 1}', b"true")),
    Target("checkpoint", [_checkpoint()], _run_checkpoint, (b"F32", b"null", b"[0, 0]", b'"checkpoint"')),
    Target("results", [json.dumps({"translations": ["a b"], "seconds": 1.5}).encode()], _run_result,
           (b"null", b"[]", b"[" * 300, b"NaN")),
)  # fmt: skip
