"""Checkouts whose commands are compared, and the servers that run the commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Code that prints the path of the package that an interpreter imports.
_WHERE = "import importlib.util as u; print(u.find_spec('phrasetool').origin)"


@dataclass(frozen=True)
class Side:
    """A checkout.

    Attributes:
        name: `before` or `after`.
        python: its interpreter.
        script: its `phrasetool`, in the folder of the interpreter.
        root: folder of the checkout, None if only an interpreter was given.
        code: folder from which the package is loaded.
    """

    name: str
    python: str
    script: str
    root: str | None
    code: str

    @classmethod
    def of(cls, name: str, given: str) -> Side:
        """Return the side of a checkout with `.venv`, of an interpreter, or of a `phrasetool` next to one.

        Raises:
            SystemExit: a file is missing, the interpreter has no package phrasetool, or the command of a checkout runs
                the code of another folder.
        """
        path = Path(os.path.abspath(given))
        root = path if path.is_dir() else None
        python = path / ".venv" / "bin" / "python" if root else path.with_name("python")
        script = python.with_name("phrasetool")
        for needed in (python, script):
            if not needed.is_file():
                sys.exit(f"--{name} {given}: there is no {needed}")
        outcome = subprocess.run([python, "-P", "-c", _WHERE], capture_output=True, text=True, cwd="/", check=False)
        if outcome.returncode:
            sys.exit(f"--{name} {given}: {python} finds no package phrasetool")
        code = Path(os.path.realpath(outcome.stdout.strip())).parent
        if root and not code.is_relative_to(os.path.realpath(root)):
            sys.exit(f"--{name} {given}: the command there runs the code in {code}; install the checkout itself")
        return cls(name, str(python), str(script), str(root) if root else None, str(code))

    def commit(self) -> str:
        """Return the commit of its code, with + if there are changes; empty if it is not known."""
        git = ["git", "-C", self.code]
        head = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False)
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False)
        return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


class Server:
    """A process that runs the commands of a side, one at a time; see `server.py`.

    Args:
        side: the side whose commands it runs.
        packages: packages loaded in advance.
        fresh: whether to start a new interpreter for each command, as for a user: slower, with nothing loaded in
            advance.
    """

    def __init__(self, side: Side, packages: Sequence[str] = (), fresh: bool = False) -> None:
        self.fresh = fresh
        self._side = side
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        self._process = subprocess.Popen(
            [side.python, str(Path(__file__).with_name("server.py")), *([] if fresh else packages)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(self, **request: Any) -> int:
        """Run a command; return its exit code.  The keywords are those of `server.become` and `server.attend`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        always = {
            "script": self._side.script,
            "fresh": self.fresh,
            "warm": False,
            "stop": "",
            "kill": None,
            "limit": 900,
        }
        self._process.stdin.write(json.dumps({**always, **request}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the server of {self._side.name} has ended")
        return int(answer)

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
