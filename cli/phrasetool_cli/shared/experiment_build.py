"""Steps of an experiment: phrasetool's own commands, each in a process of its own, done once.

A step is done when its outputs are there and were made by the same command from the same files; that is remembered in
`commands.json`, so an experiment that was killed goes on.  Steps that do not need each other run side by side.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from phrasetool.errors import PhraseToolError
from phrasetool_cli.shared.progress import say

_LANES = 2
_RUN = [sys.executable, "-c", "from phrasetool_cli.main import main; main()"]
_CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Step:
    """A command to run.

    Attributes:
        name: unique.
        arguments: of `phrasetool`.
        outputs: files it makes, names without a folder or below the build folder.
        after: steps whose outputs it reads.
        threads: whether it takes `--threads`.
        resumes: the model folder that it can go on with, if it was interrupted.
        anchored: whether its outputs name files by where they are.
    """

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    after: tuple[str, ...] = ()
    threads: bool = True
    resumes: str | None = None
    anchored: bool = False


class Builder:
    """Runs steps in a folder.

    Args:
        folder: where outputs go.
        threads: for all steps that run at a time together.
        quiet: say nothing.
    """

    def __init__(self, folder: str, threads: int, quiet: bool) -> None:
        self.folder = folder
        self._threads, self._quiet = threads, quiet
        self._record_path = os.path.join(folder, "commands.json")
        self._record: dict[str, dict[str, Any]] = self._read_record()
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._digests: dict[str, str] = {}
        self._stopped = False

    def _read_record(self) -> dict[str, dict[str, Any]]:
        try:
            with open(self._record_path, encoding="utf-8") as file:
                record = json.load(file)
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def _write_record(self) -> None:
        from moses_compat.files.streams import Output

        with Output(self._record_path) as out:
            out.write_text(json.dumps(self._record, indent=1, ensure_ascii=False).encode() + b"\n")

    def path(self, name: str) -> str:
        """A file of the build folder."""
        return os.path.join(self.folder, name)

    def run(self, steps: Sequence[Step]) -> tuple[dict[str, str], dict[str, float]]:
        """Run the steps that are not done; those whose inputs are there run side by side.

        Returns:
            The command line of each step, and how many seconds it took when it was run, if that is known.

        Raises:
            PhraseToolError: a step failed; it says what the command said.
        """
        os.makedirs(self.folder, exist_ok=True)
        identities = self.identities(steps)
        waiting = [step for step in steps if not self._done(step, identities[step.name])]
        unfinished = {step.name for step in waiting}
        lanes = min(_LANES, self._threads)
        running: dict[Future[None], Step] = {}
        with ThreadPoolExecutor(lanes) as pool:
            try:
                while waiting or running:
                    ready = [step for step in waiting if not unfinished & set(step.after)][: lanes - len(running)]
                    share = self._threads if len(ready) + len(running) == 1 else max(self._threads // lanes, 1)
                    for step in ready:
                        waiting.remove(step)
                        running[pool.submit(self._run, step, identities[step.name], share)] = step
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        future.result()
                        unfinished.discard(running.pop(future).name)
            except BaseException:
                self._stop()
                raise
        return (
            {step.name: self._command_line(step) for step in steps},
            {
                step.name: float(self._record[step.name]["seconds"])
                for step in steps
                if "seconds" in self._record.get(step.name, {})
            },
        )

    def identities(self, steps: Sequence[Step]) -> dict[str, str]:
        """Digits that differ when the command, a file it reads from elsewhere, or a step before it differs."""
        from moses_compat.experiments.runs import digest_of

        found: dict[str, str] = {}
        made = {self.path(name) for step in steps for name in step.outputs}
        made |= {os.path.dirname(path) for path in made}
        for step in steps:
            parts = [self._portable(argument, made) for argument in step.arguments]
            place = os.path.abspath(self.folder) if step.anchored else ""
            found[step.name] = digest_of(place, *parts, *(found[name] for name in step.after))
        return found

    def _portable(self, argument: str, made: set[str]) -> str:
        """An argument without the place of the files it names, but with what they hold if no step made them."""
        from moses_compat.experiments.runs import file_digest

        if argument in made:
            return "build:" + os.path.relpath(argument, self.folder)
        if os.path.isfile(argument):
            if argument not in self._digests:
                self._digests[argument] = file_digest(argument)
            return "file:" + self._digests[argument]
        if os.path.isdir(argument):
            return "folder:" + "".join(
                self._portable(os.path.join(argument, name), made) for name in sorted(os.listdir(argument))
            )
        return argument

    def _done(self, step: Step, identity: str) -> bool:
        there = self._record.get(step.name, {})
        return (
            there.get("identity") == identity
            and bool(there.get("done"))
            and all(os.path.exists(self.path(name)) for name in step.outputs)
        )

    def _command_line(self, step: Step) -> str:
        return shlex.join(["phrasetool", *map(shown, step.arguments)])

    def _remember(self, step: Step, identity: str, **facts: Any) -> None:
        with self._lock:
            self._record[step.name] = {"command": self._command_line(step), "identity": identity, **facts}
            self._write_record()

    def _run(self, step: Step, identity: str, threads: int) -> None:
        arguments = [*step.arguments, *(["--threads", str(threads)] if step.threads else [])]
        there = self._record.get(step.name, {})
        if step.resumes and there.get("identity") == identity and os.path.exists(
            os.path.join(step.resumes, _CHECKPOINT)
        ):  # fmt: skip
            arguments.append("--resume")
        self._remember(step, identity, done=False)
        if not self._quiet:
            say(f"{step.name}: {self._command_line(step)}")
        began = time.monotonic()
        with self._lock:
            if self._stopped:
                return
            process = subprocess.Popen([*_RUN, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self._running.append(process)
        last = self._relay(step, process)
        code = process.wait()
        with self._lock:
            self._running.remove(process)
        if code:
            raise PhraseToolError(f"{last or f'exit code {code}'} (step {step.name})")
        seconds = time.monotonic() - began
        self._remember(step, identity, done=True, seconds=round(seconds, 3))
        if not self._quiet:
            say(f"{step.name}: done in {seconds:.0f} s")

    def _relay(self, step: Step, process: subprocess.Popen[bytes]) -> str:
        """Pass on what a command says, with the name of its step; return its last words."""
        last = ""
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                text = line.decode(errors="replace").strip().removeprefix("phrasetool: ").removeprefix("Error: ")
                last = text or last
                if text and not self._quiet and not self._stopped:
                    say(f"{step.name}: {text}")
        return last

    def _stop(self) -> None:
        """End the commands that are still running; they leave nothing half-written."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.terminate()


def shown(argument: str) -> str:
    """A path as somebody in the current folder would write it: relative, if the two are in one tree."""
    if not os.path.isabs(argument):
        return argument
    together = os.path.commonpath([os.getcwd(), argument])
    return argument if together == os.path.dirname(together) else os.path.relpath(argument)
