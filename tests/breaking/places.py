"""Working folders of commands: one for outputs, one for temporary files, and one for inputs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.breaking.small_inputs import make_inputs
from tests.breaking.writers import Writer, recipe
from tests.outputs.sides import Server, Side

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("click", "numpy", "pyarrow.parquet", "pandas", "sacrebleu", "torch", "gensim.models", "transformers")
# Seconds after which a command is considered to hang.
LIMIT = 120
_SECONDS = re.compile(rb'"seconds": (\{[^}]*\}|[\d.]+)|<dd>[\d,.]+ s</dd>|(?m:(?<=: )[\d,.\\]+ s$)')
# Files of experiments, which contain durations.
_TELL_SECONDS = ("experiment.json", "commands.json", "report.html", "report.md")

Tree = Mapping[str, str]


class Place:
    """A working folder, and a process from which commands are forked.

    Args:
        folder: a new folder, or that of an earlier run, whose inputs are reused.
        packages: packages loaded in advance.
        tables_alone: see `make_inputs`.

    Attributes:
        inputs, work, temporary: folders of inputs, outputs and temporary files.
        script: the Python script that is run with the arguments of a command.
    """

    def __init__(self, folder: Path, packages: Sequence[str] = PACKAGES, tables_alone: bool = False) -> None:
        self.inputs, self.work, self.temporary = folder / "in", folder / "work", folder / "tmp"
        self._said, self.script = folder / "said", str(Path(__file__).with_name("eager.py"))
        # A single thread during warm-up, because threads do not survive a fork.
        os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
        folder.mkdir(parents=True, exist_ok=True)
        self._server = Server(Side.of("now", str(ROOT)), packages)
        if not (self.inputs / "made").exists():
            shutil.rmtree(self.inputs, ignore_errors=True)
            make_inputs(self.inputs, tables_alone)
            for words in () if tables_alone else recipe():
                if self._run(self.inputs, words):
                    raise RuntimeError(f"an input cannot be made: {words}: {self.said()}")
            (self.inputs / "made").touch()

    def run(self, words: Sequence[str], kill: float | None = None, warm: bool = False) -> int:
        """Run a command in the working folder; return its exit code, negative for a signal.

        Args:
            words: its command line.
            kill: seconds until it is killed; None: never.
            warm: whether to run it in the server process, so that packages are loaded for later commands.
        """
        return self._run(self.work, words, kill, warm)

    def _run(self, folder: Path, words: Sequence[str], kill: float | None = None, warm: bool = False) -> int:
        self.temporary.mkdir(exist_ok=True)
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "OMP_NUM_THREADS") if name in os.environ}
        return self._server.run(
            folder=str(folder), environment={**inherited, "LC_ALL": "C.UTF-8", "TMPDIR": str(self.temporary)},
            arguments=list(words), stdin=os.devnull, stdout=os.devnull, stderr=str(self._said), kill=kill, warm=warm,
            limit=LIMIT, script=self.script,
        )  # fmt: skip

    def said(self) -> str:
        """Return standard error of the last command."""
        return self._said.read_text(errors="replace")

    def empty(self, writer: Writer) -> None:
        """Recreate the working folder with the copied inputs of the command."""
        for folder in (self.work, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for source, name in writer.copies:
            shutil.copy(self.inputs / source, self.work / name)

    def tree(self) -> dict[str, str]:
        """Return the digests of all current files by path; those of temporary files start with `tmp/`.

        The empty folder that torch creates for its compiler, shared by all processes of a user, is excluded.
        """
        temporary = {f"tmp/{name}": digest for name, digest in tree_of(self.temporary).items()}
        return tree_of(self.work) | {
            name: digest for name, digest in temporary.items() if not name.startswith("tmp/torchinductor_")
        }

    def close(self) -> None:
        """End the server process."""
        self._server.close()


def tree_of(folder: Path) -> dict[str, str]:
    """Return digests of all files below a folder by relative path, and `folder` for folders."""
    collected = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        try:
            collected[name] = "folder" if path.is_dir() else _digest(path)
        except FileNotFoundError:
            # A program started by a killed command is still running.
            continue
    return collected


def _digest(path: Path) -> str:
    data = path.read_bytes()
    if path.name in _TELL_SECONDS or path.parent.parent.name == "runs" or path.parent.name == "runs":
        data = _SECONDS.sub(b"", data)
    return hashlib.sha256(data).hexdigest()
