"""What an experiment remembers: finished runs, and commands of phrasetool, each run once in a process of its own.

A command is done when its outputs exist and were made by the same command from the same files.  `commands.json`
remembers that, so an experiment that was killed continues.

Why processes: a command aligns, trains or decodes with threads and memory of its own, which it gives back when it ends;
two of them side by side share no interpreter lock; one that does not end can be ended and leaves nothing half-written;
and the report tells its readers to type what was run.  Starting one costs 0.3 to 0.4 s.  Side by side pays: on the demo
one command after another takes 24 % longer, in experiments that train 10 % (a model next to another model, or next to
the forced decoding that counts uses).
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from moses_compat.engine.model import MosesModel
from moses_compat.files.finished_work import forget_finished
from moses_compat.files.streams import Output
from phrasetool.errors import PhraseToolError, reason
from phrasetool.training.run import CHECKPOINT

_VERSION = "1"

_LANES = 2
# Has a command go on where a check finds that its input makes no sense; its outputs are the same without.
FORCE = "--force"


def file_digest(path: str) -> str:
    """Hexadecimal digits of what a file holds.

    Raises:
        PhraseToolError: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()[:24]
    except OSError as error:
        raise PhraseToolError(f"{path}: cannot read: {reason(error)}") from error


def digest_of(*parts: bytes | str) -> str:
    """Hexadecimal digits that differ when a part differs."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:20]


def decoder_identity(model: MosesModel, texts: Mapping[str, bytes]) -> str:
    """Digits that differ when anything differs that translations depend on, besides the entries and the weights."""
    features = model.features
    return digest_of(
        _VERSION,
        *(file_digest(path) for path in model.paths),
        repr((features.sizes, features.reordering, features.unknown_weight)),
        repr(model.search),
        # Of one table, what was kept before there could be several is found again.
        *([repr((model.decoding, model.place))] if len(features.tables) > 1 else []),
        *(part for name, text in texts.items() for part in (name, text)),
    )


def read_record(path: str) -> dict[str, Any]:
    """What a JSON file holds; nothing if it is not there, or damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


class RunStore:
    """Finished runs, a JSON file each, which is there whole or not at all.

    Args:
        folder: is made if it is not there.

    Raises:
        PhraseToolError: the folder cannot be made.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise PhraseToolError(f"{folder}: cannot make the folder: {reason(error)}") from error

    def unfinished(self, key: str) -> str:
        """Beside which a run keeps what it has finished, see `FinishedWork`."""
        return os.path.join(self.folder, key)

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, f"{key}.json")

    def read(self, key: str) -> dict[str, Any] | None:
        """What a run found; None if it was not finished, or its file is damaged."""
        record = read_record(self._path(key))
        return record if "translations" in record else None

    def write(self, key: str, record: Mapping[str, Any]) -> None:
        """Keep what a run found."""
        with Output(self._path(key)) as out:
            out.write_text(json.dumps(record, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n")


@dataclass(frozen=True)
class BuildCommand:
    """A command to run.

    Attributes:
        name: unique.
        arguments: of `phrasetool`.
        outputs: files it makes, names below the build folder.
        after: commands whose outputs it reads.
        threads: whether it takes `--threads`.
        cluster: whether a cluster can do its work.
        resumes: the model folder that it can go on with, if it was interrupted.
        keeps: the output beside which it keeps what it has finished, so that it can go on.
        anchored: whether its outputs name files by where they are.
    """

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    after: tuple[BuildCommand, ...] = ()
    threads: bool = True
    cluster: bool = False
    resumes: str | None = None
    keeps: str | None = None
    anchored: bool = False

    @property
    def line(self) -> str:
        """What somebody in the current folder would type."""
        return shlex.join(["phrasetool", *map(shown_path, self.arguments)])

    @property
    def lineage(self) -> Iterator[BuildCommand]:
        """It, and all that come before it."""
        yield self
        for before in self.after:
            yield from before.lineage


# Commands in order, each of which may read what the one before it made.
Chain = Sequence[BuildCommand]
# Chains that can run side by side, phase by phase.
Phases = Sequence[Sequence[Chain]]


def commands_of(phases: Phases) -> list[BuildCommand]:
    """All commands, in order."""
    return [command for phase in phases for chain in phase for command in chain]


# Command -> present name of an option -> its names when identities of commands were first computed, one for each value:
# what was made before options were renamed is found again.
_FORMER_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "train": {
        "--architecture": ("--encoder",), "--epochs": ("--iterations",),
        "--pretrain-epochs": ("--pretrain-iterations",), "--label-smoothing": ("--smoothing",),
        "--attention-layers": ("--layers",),
    },
    "prune": {"--similarities": ("--scores",), "--bitext": ("--corpus",)},
    "extract": {"--reordering-out": ("--reordering-table",)},
    "tune": {"--dev": ("--source", "--reference")},
    "rerank": {"--dev": ("--dev-source", "--dev-reference")},
}  # fmt: skip


def former_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command with the names of options that identities are computed with."""
    names = _FORMER_NAMES.get(arguments[0], {})
    former: list[str] = []
    further: list[str] = []
    for argument in arguments:
        if argument in names:
            first, *further = names[argument]
            former.append(first)
            continue
        former.append(argument)
        # The next value of an option that once was several.
        if further and len(former) > 1 and former[-2].startswith("--"):
            former.append(further.pop(0))
    return former


class BuildStore:
    """A folder of things that were made, with a file that says how.

    Args:
        folder: must be there before something is made.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._record_path = os.path.join(folder, "commands.json")
        self._record = read_record(self._record_path)
        self._lock = threading.Lock()
        self._digests: dict[str, str] = {}

    def path(self, name: str) -> str:
        """A file of the folder."""
        return os.path.join(self.folder, name)

    def identity(self, command: BuildCommand, checked: bool = False) -> str:
        """Digits that differ when the command, a file it reads from elsewhere, or a command before it differs.

        Args:
            command: it.
            checked: of the command as it would be without `FORCE`.
        """
        made = {self.path(name) for one in command.lineage for name in one.outputs}
        made |= {os.path.dirname(path) for path in made}
        parts = [
            self._portable(argument, made)
            for argument in former_arguments(command.arguments)
            if not (checked and argument == FORCE)
        ]
        place = os.path.abspath(self.folder) if command.anchored else ""
        return digest_of(place, *parts, *(self.identity(before, checked) for before in command.after))

    def _portable(self, argument: str, made: set[str]) -> str:
        """An argument without the place of the files it names, but with what they hold if no command made them."""
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

    def is_done(self, command: BuildCommand) -> bool:
        """Whether this very command has made its outputs, and they are there."""
        return (
            bool(self._record.get(command.name, {}).get("done"))
            and self._is_last(command)
            and all(os.path.exists(self.path(name)) for name in command.outputs)
        )

    def can_resume(self, command: BuildCommand) -> bool:
        """Whether this very command, if it was interrupted, can go on with what it left."""
        there = command.resumes is not None and os.path.exists(os.path.join(command.resumes, CHECKPOINT))
        return (there or command.keeps is not None) and self._is_last(command)

    def _is_last(self, command: BuildCommand) -> bool:
        """Whether the last command of this name was the same; one that passed the checks is, for one without them."""
        last = self._record.get(command.name, {}).get("identity")
        return last is not None and last in (self.identity(command), self.identity(command, checked=True))

    def remember(self, command: BuildCommand, **facts: Any) -> None:
        """Write down that a command is running, or was run."""
        entry = {"command": command.line, "identity": self.identity(command), **facts}
        with self._lock:
            self._record[command.name] = entry
            with Output(self._record_path) as out:
                out.write_text(json.dumps(self._record, indent=1, ensure_ascii=False).encode() + b"\n")

    def seconds(self, commands: Iterable[BuildCommand]) -> dict[str, float]:
        """How long commands took when they were run, where that is known."""
        found = {command.name: self._record.get(command.name, {}).get("seconds") for command in commands}
        return {name: float(seconds) for name, seconds in found.items() if seconds is not None}


@dataclass(frozen=True)
class CommandRunner:
    """Runs commands.

    Attributes:
        store: what was made before.
        program: what runs `phrasetool` with arguments.
        threads: for all that run at a time together.
        say: told what each command does and says.
        engine: options of commands whose work a cluster can do.
    """

    store: BuildStore
    program: Sequence[str]
    threads: int
    say: Callable[[str], None] = lambda message: None
    engine: Sequence[str] = ()

    def make(self, chains: Iterable[Chain]) -> None:
        """Run the commands of chains that are not done, two chains at a time.

        While there is one chain left, its commands have all threads, else their share of them.

        Raises:
            PhraseToolError: a command failed; it says what the command said.
        """
        todo = [[command for command in chain if not self.store.is_done(command)] for chain in chains]
        todo = [chain for chain in todo if chain]
        lanes = min(_LANES, self.threads)
        unfinished = set(range(len(todo)))
        processes = _Processes()

        def follow(number: int) -> None:
            for command in todo[number]:
                self._run(command, self.threads if len(unfinished) == 1 else max(self.threads // lanes, 1), processes)
            unfinished.discard(number)

        with ThreadPoolExecutor(lanes) as pool:
            try:
                for future in as_completed([pool.submit(follow, number) for number in range(len(todo))]):
                    future.result()
            except BaseException:
                processes.end()
                raise

    def _run(self, command: BuildCommand, threads: int, processes: _Processes) -> None:
        arguments = [*command.arguments, *(["--threads", str(threads)] if command.threads else [])]
        if command.cluster:
            arguments += self.engine
        if self.store.can_resume(command):
            arguments.append("--resume")
        elif command.resumes is not None:
            # What is there was made by another command.
            arguments.append("--overwrite")
        elif command.keeps is not None:
            forget_finished(command.keeps)
            arguments.append("--resume")
        self.store.remember(command, done=False)
        self.say(f"{command.name}: {command.line}")
        began = time.monotonic()
        process = processes.start([*self.program, *arguments])
        if process is None:
            return
        last = self._relay(command, process, processes)
        if code := process.wait():
            raise PhraseToolError(f"{last or f'exit code {code}'} (step {command.name})")
        seconds = time.monotonic() - began
        self.store.remember(command, done=True, seconds=round(seconds, 3))
        self.say(f"{command.name}: done in {seconds:.0f} s")

    def _relay(self, command: BuildCommand, process: subprocess.Popen[bytes], processes: _Processes) -> str:
        """Pass on what a command says, with its name; return its last words."""
        last = ""
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                text = line.decode(errors="replace").strip().removeprefix("phrasetool: ").removeprefix("error: ")
                last = text or last
                if text and not processes.ended:
                    self.say(f"{command.name}: {text}")
        return last


class _Processes:
    """Processes that can be ended together; once they were, none is started."""

    def __init__(self) -> None:
        self.ended = False
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, arguments: Sequence[str]) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self.ended:
                return None
            process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self._started.append(process)
            return process

    def end(self) -> None:
        with self._lock:
            self.ended = True
            for process in self._started:
                # Nothing happens to those that have ended by themselves.
                process.terminate()


def shown_path(argument: str) -> str:
    """A path as somebody in the current folder would write it: relative, if the two are in one tree."""
    if not os.path.isabs(argument):
        return argument
    together = os.path.commonpath([os.getcwd(), argument])
    return argument if together == os.path.dirname(together) else os.path.relpath(argument)
