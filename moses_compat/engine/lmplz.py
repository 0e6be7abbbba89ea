"""kenlm's estimator, lmplz, if it is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Sequence

from moses_compat.files.streams import Output
from phrasetool.errors import PhraseToolError

_CHUNK = 1 << 22
_FALLBACK = "Substituting fallback discounts for order"


def find_lmplz() -> str | None:
    """Where lmplz is on the PATH, or None."""
    return shutil.which("lmplz")


def run_lmplz(
    program: str, blocks: Iterable[bytes], output: Output, order: int, prune: Sequence[int], memory: int,
    folder: str | None = None,
) -> list[int]:  # fmt: skip
    """Estimate a language model with lmplz, with --discount_fallback.

    Args:
        program: the path of lmplz.
        blocks: the corpus, whole lines.
        output: where the ARPA text goes, compressed if the name says so.
        order: the length of the longest n-grams.
        prune: as lmplz --prune.
        memory: bytes that it may take, of which it would take 80 % of the machine by itself; what does not fit is
            sorted on disk.
        folder: where its files go; None for where it puts them.

    Returns:
        The orders whose discounts could not be estimated and were replaced.

    Raises:
        PhraseToolError: lmplz failed; the message is its own.
    """
    pruning = ["--prune", *map(str, prune)] if prune else []
    place = ["-T", os.path.join(folder, "")] if folder else []
    command = [program, "-o", str(order), "-S", f"{memory}b", *place, *pruning, "--discount_fallback"]
    messages: list[str] = []
    errors: list[Exception] = []

    def feed() -> None:
        assert process.stdin
        try:
            # When lmplz has ended early, what it said is the error.
            with contextlib.suppress(BrokenPipeError), process.stdin as stream:
                for block in blocks:
                    stream.write(block)
        except Exception as error:
            errors.append(error)
            process.kill()

    def listen() -> None:
        assert process.stderr
        messages.extend(line.decode(errors="replace").strip() for line in process.stderr)

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        feeder, listener = (threading.Thread(target=work, daemon=True) for work in (feed, listen))
        try:
            feeder.start()
            listener.start()
            assert process.stdout
            while chunk := process.stdout.read(_CHUNK):
                output.write_text(chunk)
        except BaseException:
            process.kill()
            feeder.join(1.0)
            raise
        feeder.join()
        listener.join()
    if errors:
        raise errors[0]
    if process.returncode:
        said = [line for line in messages if line and not line.startswith("=")]
        raise PhraseToolError(f"{program}: {said[-1] if said else f'exit status {process.returncode}'}")
    # lmplz counts orders from 0 in this message.
    return [int(line[len(_FALLBACK) :].split(":")[0]) + 1 for line in messages if line.startswith(_FALLBACK)]
