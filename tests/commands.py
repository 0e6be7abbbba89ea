"""Run the command line in this process or in a subprocess; read and write tables on disk."""

import contextlib
import errno
import gzip
import io
import itertools
import os
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest


@dataclass
class Outcome:
    code: int
    out: bytes
    err: str

    @property
    def message(self):
        """The one line on standard error, without the label of errors."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("phrasetool: "), self.err
        assert "Traceback" not in self.err
        # Informational messages come with exit code 0 (or 130, interrupted), errors with another code.
        label = "phrasetool: error: "
        assert lines[0].startswith(label) == (self.code not in (0, 130)), self.err
        return lines[0].replace(label, "phrasetool: ", 1)


def whole_commands(text):
    """Return the stripped lines of a text; a command continued with backslashes counts as one line."""
    return [line.strip() for line in re.sub(r" \\\n\s+", " ", text.rstrip()).splitlines()]


class _Input:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


def run_inside(*arguments, stdin=None):
    """Run the command line in this process."""
    from phrasetool_cli.main import main

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    before = sys.stdin
    try:
        if stdin is not None:
            sys.stdin = _Input(stdin)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
    finally:
        sys.stdin = before
    return Outcome(end.value.code or 0, out.buffer.getvalue(), err.getvalue())


@contextlib.contextmanager
def full_disk_after(writes):
    """Let only some writes of finished scores succeed, and the others fail as on a full disk."""
    from moses_compat.measures import saved_scores

    write_table, calls = saved_scores.pq.write_table, itertools.count()

    def write_or_fail(*arguments, **options):
        if next(calls) >= writes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_table(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved_scores.pq, "write_table", write_or_fail)
        yield


# A shell that starts the tests in the background makes them and their subprocesses ignore SIGINT.
COMMAND = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from phrasetool_cli.console import run; run()",
]


def clean_environment(**changes):
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONUNBUFFERED", "PHRASETOOL_MODEL")}
    return {**kept, **changes}


def run_outside(*arguments, stdin=b"", cwd=None, **changes):
    """Run the command line in a subprocess."""
    outcome = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=clean_environment(**changes),
        check=False,
    )
    return Outcome(outcome.returncode, outcome.stdout, outcome.stderr.decode())


def write(path, data):
    """Write a table, compressed if its name ends in .gz; return the path."""
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def read(path):
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data
