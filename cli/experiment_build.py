"""What an experiment needs and does not have: made by phrasetool's own commands, each in a process of its own.

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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from phrasetool.errors import PhraseToolError
from phrasetool_cli.progress import say

if TYPE_CHECKING:
    from phrasetool.experiments.settings import ExperimentConfig

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


@dataclass
class Built:
    """Where everything is.

    Attributes:
        ini: a moses.ini with tuned weights.
        table, reordering_table: instead of those the ini names, if the configuration says so.
        pairs: phrase pairs, empty if nothing needs them.
        models: model folders, by dimension.
        scores: saved similarities, by dimension.
        dimension: of the model that prunes.
        unsupervised: the folder of the model that was only pre-trained, if neighbours are asked for.
        commands: the command line of each step.
        seconds: how long each took.
    """

    ini: str
    table: str | None = None
    reordering_table: str | None = None
    pairs: str = ""
    models: dict[int, str] = field(default_factory=dict)
    scores: dict[int, str] = field(default_factory=dict)
    dimension: int = 0
    unsupervised: str | None = None
    commands: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


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
        from moses_compat.streams import Output

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
        identities = self._identities(steps)
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

    def _identities(self, steps: Sequence[Step]) -> dict[str, str]:
        """Digits that differ when the command, a file it reads from elsewhere, or a step before it differs."""
        from moses_compat.experiment_runs import digest_of

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
        from moses_compat.experiment_runs import file_digest

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


def build(config: ExperimentConfig, dev: tuple[str, str], builder: Builder) -> Built:
    """Make what the experiment needs.

    Args:
        config: what there is, and what is wanted.
        dev: files of the development set to tune on.
        builder: runs the commands.
    """
    steps: list[Step] = []
    built = _decoder(config, dev, builder, steps)
    if config.encodes:
        _encoders(config, built, builder, steps)
    built.commands, built.seconds = builder.run(steps)
    if not config.moses:
        # What the ini names, so that commands can be told.
        built.table = builder.path("table.gz")
    return built


def _decoder(config: ExperimentConfig, dev: tuple[str, str], builder: Builder, steps: list[Step]) -> Built:
    """The steps from a bitext to a tuned model."""
    if config.moses:
        return Built(config.moses.ini, config.moses.table, config.moses.reordering_table)
    assert config.bitext is not None
    path, seed = builder.path, str(config.seed)
    sides = (config.bitext.source, config.bitext.target)
    lm_text = (config.bitext.target, *config.build.lm_text)
    search = _search_options(config)
    steps += [
        Step("align", ("align", *sides, "-o", path("aligned.gz"), "--seed", seed), ("aligned.gz",), threads=False),
        Step(
            "extract",
            ("extract", *sides, path("aligned.gz"), "-o", path("table.gz"), "--reordering-table",
             path("reordering.gz"), "--max-length", str(config.build.max_phrase_length)),
            ("table.gz", "reordering.gz"), ("align",),
        ),
        Step(
            "lm", ("lm", *lm_text, "--order", str(config.build.lm_order), "-o", path("lm.arpa.gz")), ("lm.arpa.gz",),
            threads=False,
        ),
        Step(
            "moses-ini",
            ("moses-ini", "--table", path("table.gz"), "--reordering-table", path("reordering.gz"), "--lm",
             path("lm.arpa.gz"), "-o", path("start.ini")),
            ("start.ini",), ("extract", "lm"), threads=False, anchored=True,
        ),
        Step(
            "tune",
            ("tune", "--moses-ini", path("start.ini"), "--source", dev[0], "--reference", dev[1], "--seed", seed,
             *search, "-o", path("moses.ini")),
            ("moses.ini",), ("moses-ini",),
        ),
    ]  # fmt: skip
    # `lm` can run beside `align` only if it stands before what waits for that.
    steps.sort(key=lambda step: step.name != "lm")
    return Built(path("moses.ini"))


def _search_options(config: ExperimentConfig) -> list[str]:
    search = config.search
    given = {"--search": search.algorithm, "--stack": search.stack, "--pop-limit": search.pop_limit,
             "--table-limit": search.table_limit}  # fmt: skip
    return [part for option, value in given.items() if value is not None for part in (option, str(value))]


def _encoders(config: ExperimentConfig, built: Built, builder: Builder, steps: list[Step]) -> None:
    """The steps from a tuned model to pairs, models of phrases, and saved similarities."""
    from moses_compat.decoding import MosesModel

    own = config.model.folder
    built.dimension = _dimension_of(own) if own else config.model.dimension
    dimensions = {built.dimension} if "similarities" in config.needs or config.neighbours else set()
    if config.annotate and "semantic" in config.annotate.measured:
        dimensions |= set(config.annotate.dimensions)
    trained = dimensions - ({built.dimension} if own else set())
    table = builder.path("table.gz")
    if config.moses:
        table = built.table or MosesModel.read(config.moses.ini).table
    built.pairs, before = _pairs(config, built, builder, steps, table, bool(trained or config.neighbours))
    if config.neighbours:
        built.unsupervised = builder.path("model-rae")
        iterations = ("--iterations", "0", "--pretrain-iterations", str(config.neighbours.pretrain_iterations))
        steps.append(_train_step(config, "rae", built.pairs, built.dimension, iterations, before, builder))
    made = ("extract",) if not config.moses else ()
    for dimension in sorted(dimensions):
        model = own if own and dimension == built.dimension else builder.path(f"model-n{dimension}")
        built.models[dimension] = model
        built.scores[dimension] = builder.path(f"scores-n{dimension}.parquet")
        if dimension in trained:
            passes = tuple(
                part
                for option, value in (
                    ("--iterations", config.model.iterations),
                    ("--pretrain-iterations", config.model.pretrain_iterations),
                )
                if value is not None
                for part in (option, str(value))
            )
            steps.append(_train_step(config, f"n{dimension}", built.pairs, dimension, passes, before, builder))
        steps.append(
            Step(
                f"scores-n{dimension}",
                ("prune", table, "-m", model, "--scores", built.scores[dimension], "--sweep", "0:0:1"),
                (os.path.basename(built.scores[dimension]),),
                (*made, *((f"train-n{dimension}",) if dimension in trained else ())),
            )
        )


def _dimension_of(folder: str) -> int:
    from phrasetool.models.storage import load_model

    return load_model(folder).dimension


def _pairs(
    config: ExperimentConfig, built: Built, builder: Builder, steps: list[Step], table: str, needed: bool
) -> tuple[str, tuple[str, ...]]:
    """Where the phrase pairs come from, and the steps after which they are there."""
    if config.moses and config.moses.pairs:
        return config.moses.pairs, ()
    if config.bitext is None or not needed:
        return table, ("extract",) if not config.moses else ()
    pairs = builder.path("pairs.gz")
    instead = [part for option, value in (("--table", built.table), ("--reordering-table", built.reordering_table))
               if value for part in (option, value)]  # fmt: skip
    options = ("--leave-one-out",) if config.build.leave_one_out else ()
    steps.append(
        Step(
            "force-decode",
            ("force-decode", "--moses-ini", built.ini, *instead, config.bitext.source, config.bitext.target, *options,
             "-o", pairs),
            ("pairs.gz",), () if config.moses else ("tune",),
        )
    )  # fmt: skip
    return pairs, ("force-decode",)


def _train_step(
    config: ExperimentConfig, name: str, pairs: str, dimension: int, iterations: tuple[str, ...],
    after: tuple[str, ...], builder: Builder,
) -> Step:  # fmt: skip
    model = config.model
    folder = builder.path(f"model-{name}")
    texts = [part for option, paths in (("--source-text", model.source_text), ("--target-text", model.target_text))
             for path in paths for part in (option, path)]  # fmt: skip
    options = [part for key, value in model.options.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    count = ("--min-pair-count", f"{model.min_pair_count:g}") if model.min_pair_count else ()
    return Step(
        f"train-{name}",
        ("train", pairs, "-o", folder, "--dimension", str(dimension), "--loss", model.loss, "--seed", str(config.seed),
         "--device", "cpu", *iterations, *count, *texts, *options),
        (os.path.join(f"model-{name}", "config.json"),), after, resumes=folder,
    )  # fmt: skip
