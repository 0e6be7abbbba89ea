"""Finished work of an experiment: runs, and commands of phrasetool, each executed once, in a separate process.

A command is done when its outputs exist and were made by the same command from the same files.  `commands.json` records
this, so that an experiment that was killed can be resumed.

Reasons for processes: a command aligns, trains or decodes with its own threads and memory, which it releases when it
ends; two parallel commands share no interpreter lock; a command that hangs can be terminated without leaving
half-written files; and the report shows readers the commands that were run.  Starting a process takes 0.3 to 0.4 s.
Parallel commands save time: on the demo, one command after another takes 24 % longer, in experiments that train 10 % (a
model next to another model, or next to the forced decoding that counts uses).
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
from dataclasses import dataclass, field
from typing import Any

from moses_compat.engine.model import MosesModel
from moses_compat.engine.model_lines import MAX_PHRASE_LENGTH
from moses_compat.files.finished_work import forget_finished
from moses_compat.files.streams import Output
from phrasetool.errors import PhraseToolError, reason
from phrasetool.training.run import CHECKPOINT

_VERSION = "1"

_LANES = 2
# Makes a command ignore failed sanity checks; the outputs do not depend on it.
FORCE = "--force"


def file_digest(path: str) -> str:
    """Return a hexadecimal digest of a file's contents.

    Raises:
        PhraseToolError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()[:24]
    except OSError as error:
        raise PhraseToolError(f"{path}: cannot read: {reason(error)}") from error


def digest_of(*parts: bytes | str) -> str:
    """Return a hexadecimal digest of several parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:20]


def decoder_identity(model: MosesModel, texts: Mapping[str, bytes]) -> str:
    """Return a digest of everything that translations depend on, except the entries and the weights."""
    features = model.features
    return digest_of(
        _VERSION,
        *(file_digest(path) for path in model.paths),
        repr((features.sizes, features.reordering, features.unknown_weight)),
        repr(model.search),
        # Left out for a single table, so that runs from before the support of several tables are reused.
        *([repr((model.decoding, model.place))] if len(features.tables) > 1 else []),
        # Left out if they are the defaults, for the same reason.
        *([f"max-phrase-length {model.longest}"] if model.longest != MAX_PHRASE_LENGTH else []),
        *([] if features.has_distortion else ["no Distortion"]),
        *(part for name, text in texts.items() for part in (name, text)),
    )


def read_record(path: str) -> dict[str, Any]:
    """Read the object of a JSON file; return an empty one if the file is missing or damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


class RunStore:
    """Store of finished runs, one JSON file each, which is either complete or absent.

    Args:
        folder: folder of the files; created if it does not exist.

    Raises:
        PhraseToolError: the folder cannot be created.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise PhraseToolError(f"{folder}: cannot make the folder: {reason(error)}") from error

    def unfinished(self, key: str) -> str:
        """Return the path next to which a run stores its finished work, see `FinishedWork`."""
        return os.path.join(self.folder, key)

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, f"{key}.json")

    def read(self, key: str) -> dict[str, Any] | None:
        """Return the record of a run; None if the run is not finished or its file is damaged."""
        record = read_record(self._path(key))
        return record if "translations" in record else None

    def write(self, key: str, record: Mapping[str, Any]) -> None:
        """Store the record of a finished run."""
        with Output(self._path(key)) as out:
            out.write_text(json.dumps(record, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n")


@dataclass(frozen=True)
class BuildCommand:
    """A command to run.

    Attributes:
        name: unique name of the command.
        arguments: arguments of `phrasetool`.
        outputs: files that the command writes, relative to the build folder.
        after: commands whose outputs it reads.
        threads: whether it has the option `--threads`.
        cluster: whether its work can run on a cluster.
        resumes: the model folder from which it can resume after an interruption.
        keeps: the output next to which it stores its finished work, from which it can resume.
        anchored: whether its outputs contain absolute paths.
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
        """The command line, as typed in the current folder."""
        return shlex.join(["phrasetool", *map(shown_path, self.arguments)])

    @property
    def lineage(self) -> Iterator[BuildCommand]:
        """The command and all commands before it."""
        yield self
        for before in self.after:
            yield from before.lineage


# Commands in order, each of which may read the outputs of the one before it.
Chain = Sequence[BuildCommand]
# Chains that can run in parallel, phase by phase.
Phases = Sequence[Sequence[Chain]]


def commands_of(phases: Phases) -> list[BuildCommand]:
    """Return all commands, in order."""
    return [command for phase in phases for chain in phase for command in chain]


# Command -> current name of an option -> its former names, one for each value.  Identities are computed with the former
# names, so that files from before an option was renamed are reused.
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
    """Return the arguments of a command with the former names of options, with which identities are computed."""
    names = _FORMER_NAMES.get(arguments[0], {})
    former: list[str] = []
    further: list[str] = []
    for argument in arguments:
        if argument in names:
            first, *further = names[argument]
            former.append(first)
            continue
        former.append(argument)
        # Each further value used to have its own option.
        if further and len(former) > 1 and former[-2].startswith("--"):
            former.append(further.pop(0))
    return former


class BuildStore:
    """A folder of outputs of commands, with a record of these commands.

    Args:
        folder: the folder; it must exist before a command is recorded.
        files_by_ini: path of a moses.ini -> the files that are read with it, on which its commands depend, too.
    """

    def __init__(self, folder: str, files_by_ini: Mapping[str, Sequence[str]] | None = None) -> None:
        self.folder = folder
        self._files_by_ini = files_by_ini or {}
        self._record_path = os.path.join(folder, "commands.json")
        self._record = read_record(self._record_path)
        self._lock = threading.Lock()
        self._digests: dict[str, str] = {}

    def path(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return os.path.join(self.folder, name)

    def identity(self, command: BuildCommand, checked: bool = False) -> str:
        """Return a digest of a command, of its input files that no command makes, and of the commands before it.

        Input files are files in its arguments, and files that are read with a moses.ini in its arguments.

        Args:
            command: the command.
            checked: leave out the option `FORCE`.
        """
        outputs = {self.path(name) for earlier in command.lineage for name in earlier.outputs}
        outputs |= {os.path.dirname(path) for path in outputs}
        parts = [
            self._portable(argument, outputs)
            for argument in former_arguments(command.arguments)
            if not (checked and argument == FORCE)
        ]
        folder = os.path.abspath(self.folder) if command.anchored else ""
        return digest_of(folder, *parts, *(self.identity(before, checked) for before in command.after))

    def _portable(self, argument: str, made: set[str]) -> str:
        """Replace a path in an argument by the contents of the file, or if a command makes it, by its relative path."""
        if argument in made:
            return "build:" + os.path.relpath(argument, self.folder)
        if os.path.isfile(argument):
            if argument not in self._digests:
                self._digests[argument] = file_digest(argument)
            named = [self._portable(path, made) for path in self._files_by_ini.get(argument, ())]
            return ",".join(["file:" + self._digests[argument], *named])
        if os.path.isdir(argument):
            return "folder:" + "".join(
                self._portable(os.path.join(argument, name), made) for name in sorted(os.listdir(argument))
            )
        return argument

    def is_done(self, command: BuildCommand) -> bool:
        """Whether the outputs of a command exist and were made by the same command."""
        return (
            bool(self._record.get(command.name, {}).get("done"))
            and self._is_last(command)
            and all(os.path.exists(self.path(name)) for name in command.outputs)
        )

    def can_resume(self, command: BuildCommand) -> bool:
        """Whether an interrupted run of the same command left work from which the command can resume."""
        checkpointed = command.resumes is not None and os.path.exists(os.path.join(command.resumes, CHECKPOINT))
        return (checkpointed or command.keeps is not None) and self._is_last(command)

    def _is_last(self, command: BuildCommand) -> bool:
        """Whether the last command of this name was the same; a run without `FORCE` also counts as one with it."""
        last = self._record.get(command.name, {}).get("identity")
        return last is not None and last in (self.identity(command), self.identity(command, checked=True))

    def remember(self, command: BuildCommand, **facts: Any) -> None:
        """Record that a command is running or has been run."""
        entry = {"command": command.line, "identity": self.identity(command), **facts}
        with self._lock:
            self._record[command.name] = entry
            with Output(self._record_path) as out:
                out.write_text(json.dumps(self._record, indent=1, ensure_ascii=False).encode() + b"\n")

    def seconds(self, commands: Iterable[BuildCommand]) -> dict[str, float]:
        """Return the times of commands in their last run, as far as they are recorded."""
        seconds_by_name = {command.name: self._record.get(command.name, {}).get("seconds") for command in commands}
        return {name: float(seconds) for name, seconds in seconds_by_name.items() if seconds is not None}


class Outlook:
    """Default listener of a `CommandRunner`, which ignores all events."""

    def begin(self, name: str) -> None:
        """Receive the name of a command that begins."""

    def end(self, name: str, seconds: float) -> str:
        """Receive the name and the seconds on one core of a finished command; return text to show after its time."""
        return ""


@dataclass(frozen=True)
class CommandRunner:
    """Runs commands.

    Attributes:
        store: the record of earlier commands.
        program: the command line of `phrasetool`, without arguments.
        threads: total number of threads of the commands that run at the same time.
        say: receives each command line and the messages of the commands.
        engine: options for commands whose work can run on a cluster.
        outlook: receives each command that begins or ends.
    """

    store: BuildStore
    program: Sequence[str]
    threads: int
    say: Callable[[str], None] = lambda message: None
    engine: Sequence[str] = ()
    outlook: Outlook = field(default_factory=Outlook)

    def make(self, chains: Iterable[Chain]) -> None:
        """Run those commands of chains that are not done, two chains at a time.

        The commands of the last remaining chain get all threads; otherwise each command gets its share of them.

        Raises:
            PhraseToolError: a command failed; the error has its last message.
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
            # A different command made the existing folder.
            arguments.append("--overwrite")
        elif command.keeps is not None:
            forget_finished(command.keeps)
            arguments.append("--resume")
        self.store.remember(command, done=False)
        self.say(f"{command.name}: {command.line}")
        self.outlook.begin(command.name)
        began = time.monotonic()
        process = processes.start([*self.program, *arguments])
        if process is None:
            return
        last = self._relay(command, process, processes)
        if code := process.wait():
            raise PhraseToolError(f"{last or f'exit code {code}'} (step {command.name})")
        seconds = time.monotonic() - began
        self.store.remember(command, done=True, seconds=round(seconds, 3))
        used = threads if command.threads else 1
        self.say(f"{command.name}: done in {seconds:.0f} s{self.outlook.end(command.name, seconds * used)}")

    def _relay(self, command: BuildCommand, process: subprocess.Popen[bytes], processes: _Processes) -> str:
        """Forward the messages of a command, with its name; return the last one."""
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
    """Processes that are terminated together, after which no process is started."""

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
                # This has no effect on processes that have already ended.
                process.terminate()


def shown_path(argument: str) -> str:
    """Return a path relative to the current folder, if both have a common folder other than the root."""
    if not os.path.isabs(argument):
        return argument
    common = os.path.commonpath([os.getcwd(), argument])
    return argument if common == os.path.dirname(common) else os.path.relpath(argument)
