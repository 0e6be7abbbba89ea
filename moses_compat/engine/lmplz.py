"""kenlm's estimator, lmplz, if it is installed."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Iterable, Sequence

from moses_compat.files.streams import Output
from phrasetool.errors import PhraseToolError

_CHUNK = 1 << 22
# By itself lmplz takes 80 % of the machine; it sorts on disk what does not fit, so this is no limit to the corpus.
_MEMORY = "1G"
_FALLBACK = "Substituting fallback discounts for order"


def find_lmplz() -> str | None:
    """Where lmplz is on the PATH, or None."""
    return shutil.which("lmplz")


def run_lmplz(program: str, blocks: Iterable[bytes], output: Output, order: int, prune: Sequence[int]) -> list[int]:
    """Estimate a language model with lmplz, with --discount_fallback.

    Args:
        program: the path of lmplz.
        blocks: the corpus, whole lines.
        output: where the ARPA text goes, compressed if the name says so.
        order: the length of the longest n-grams.
        prune: as lmplz --prune.

    Returns:
        The orders whose discounts could not be estimated and were replaced.

    Raises:
        PhraseToolError: lmplz failed; the message is its own.
    """
    pruning = ["--prune", *map(str, prune)] if prune else []
    command = [program, "-o", str(order), "-S", _MEMORY, *pruning, "--discount_fallback"]
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
