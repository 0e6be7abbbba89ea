"""Stepwise improvement of a Moses model with its bitext to a better and smaller one, with BLEU after each step.

Every step is a command of phrasetool, run once in a separate process (see `build_commands`), so an interrupted run can
be resumed.  New entries and columns come first, because counts of a pruned table are incomplete.  Weights are tuned
after each of these steps, because a column has no effect before tuning, and again after pruning, the last step.
"""

from __future__ import annotations

import filecmp
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from moses_compat.corpora.bitexts import read_text_pair, shared_pairs
from moses_compat.corpora.texts import check_sentences, read_text_lines, surface_words
from moses_compat.engine.decoder_tables import InputPhrases
from moses_compat.engine.development_check import DevelopmentCheck
from moses_compat.engine.model import MosesModel
from moses_compat.experiments.build_commands import (
    FORCE,
    BuildCommand,
    BuildStore,
    Chain,
    CommandRunner,
    Outlook,
)
from moses_compat.experiments.settings import TextPair
from moses_compat.files.streams import Input, Output
from moses_compat.tables.blocks import count_entries
from phrasetool.disk.folders import check_folder
from phrasetool.errors import PhraseToolError, reason
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.evaluation.bleu import Bootstrap, sentence_statistics
from phrasetool.watch import SILENT, Watch

# Steps that can be left out, in their order.
STEPS = ("forced-decoding", "model", "augment", "columns", "tune", "prune", "rerank")
N_BEST = 100
# Margin of the default pruning, which chooses the smallest table whose loss of BLEU on the development set is shown to
# be below it.
MARGIN = 0.3
# Development sets with fewer sentences are too small to tune on.
FEW_SENTENCES = 500
# Options of `train translator`, as in `docs/guides/rerank.md`: a softmax over target words, trained for minutes.
TRANSLATOR = (
    "--loss", "cross-entropy", "--epochs", "4", "--dropout", "0.2", "--learning-rate", "0.002", "--device", "cpu",
)  # fmt: skip
_GIVEN = "given model"
# Step -> its name in the table of results.
_ROWS = {"augment": "+ entries", "columns": "+ columns", "prune": "+ pruning"}
_RERANKED = "+ reranking"


@dataclass(frozen=True)
class ImproveRequest:
    """A run of `improve`.

    Attributes:
        ini: moses.ini of the model.
        train: the bitext that its table was extracted from.
        dev: the development set to tune and to choose the size on.
        output: folder of the result.
        tests: test sets; without one, BLEU is reported on the development set.
        texts: further source texts whose out-of-vocabulary words get entries.
        monolingual: source texts in which words with similar use are searched.
        without: steps to leave out, of `STEPS`.
        size: share of the entries to keep; None for the smallest table that is non-inferior on the development set.
        seed: random seed of all commands.
        threads: worker threads.
        force: whether failed sanity checks are ignored.

    Raises:
        ValueError: a step is unknown; a step or an option needs a step that is left out; no step changes the
            translations; or a test set is the development set.
    """

    ini: str
    train: TextPair
    dev: TextPair
    output: str
    tests: Sequence[TextPair] = ()
    texts: Sequence[str] = ()
    monolingual: Sequence[str] = ()
    without: frozenset[str] = frozenset()
    size: float | None = None
    seed: int = 1
    threads: int = 1
    force: bool = False

    def __post_init__(self) -> None:
        if unknown := self.without - set(STEPS):
            raise ValueError(f"unknown step {min(unknown)!r}; expected some of {', '.join(STEPS)}")
        if not self.does("tune") and self.does("columns"):
            raise ValueError("columns have no effect before tuning; leave out columns, too, or neither")
        if not self.does("prune") and self.size is not None:
            raise ValueError("a size is given, but pruning is left out")
        if any(_same_files(pair, self.dev) for pair in self.tests):
            raise ValueError("the test set is the development set, on which the weights are tuned; leave it out")
        if not self.does("augment") and (self.texts or self.monolingual):
            raise ValueError("texts for new entries are given, but augment is left out")
        if not any(self.does(step) for step in ("augment", "columns", "tune", "prune", "rerank")):
            raise ValueError("all steps that change the translations are left out")

    def does(self, step: str) -> bool:
        """Whether the run includes a step."""
        return step not in self.without


def _same_files(first: TextPair, second: TextPair) -> bool:
    """Whether the files of two pairs have the same content, whatever their names."""
    sides = ((first.source, second.source), (first.target, second.target))
    return all(os.path.isfile(a) and os.path.isfile(b) and filecmp.cmp(a, b, shallow=False) for a, b in sides)


@dataclass(frozen=True)
class System:
    """The model after a step.

    Attributes:
        name: the step that made it.
        ini, table: its files.
        translations: files of the translations of the evaluation text.
    """

    name: str
    ini: str
    table: str
    translations: str


@dataclass(frozen=True)
class StepResult:
    """Result of a step.

    Attributes:
        step: its name.
        entries, table_bytes: number of entries and file size of the phrase table.
        bleu: BLEU on the evaluation text.
        gain: difference to the given model; None for that model itself.
        gain_low, gain_high: 95 % interval of the gain.
        seconds: time of its commands, in this run or an earlier one.
    """

    step: str
    entries: int
    table_bytes: int
    bleu: float
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    seconds: float


@dataclass
class ImproveResult:
    """Result of a run.

    Attributes:
        text: `test` or `dev`, on which BLEU was measured.
        sentences: number of sentences of that text.
        steps: results of the given model and of each step.
        files: purpose of each file or folder of the output, by its path.
        commands: command lines that translate new text with the result.
    """

    text: str
    sentences: int
    steps: list[StepResult] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)


class _Plan:
    """The commands of a run: the main chain, and the chain of the translator that runs in parallel.

    Args:
        request: the run.
        store: the output folder.
        model: the given model.
    """

    def __init__(self, request: ImproveRequest, store: BuildStore, model: MosesModel) -> None:
        self._request, self._store = request, store
        self._force = (FORCE,) if request.force else ()
        self._ini, self._table, self._reordering = os.path.abspath(request.ini), model.table, model.reordering
        self._weights = self._ini
        self.main: list[BuildCommand] = []
        self.translator: list[BuildCommand] = []
        self.last: list[BuildCommand] = []
        self.systems: list[System] = []
        self._makers: dict[str, list[BuildCommand]] = {}
        self._pairs = self._model = ""
        self._build()

    def seconds(self, system: System) -> float:
        """Return the recorded seconds of the commands of a step."""
        return sum(self._store.seconds(self._makers[system.name]).values())

    @property
    def phases(self) -> list[list[Chain]]:
        """Chains that can run in parallel, phase by phase."""
        return [[self.main, self.translator] if self.translator else [self.main], [self.last]]

    @property
    def tested(self) -> str:
        """Stem of the evaluation text."""
        return "test" if self._request.tests else "dev"

    def text(self, name: str, side: str) -> str:
        """Return the path of a text that the run writes: `dev` or `test`, source or target."""
        return self._store.path(f"steps/{name}.{side}")

    def _build(self) -> None:
        request = self._request
        changes = {"augment": self._augment, "columns": self._annotate, "prune": self._prune}
        changes = {step: make for step, make in changes.items() if request.does(step)}
        # Only the n-best list of the last system is reranked.
        self._system(_GIVEN, 0, listed=not changes and not request.does("tune"))
        # The time of preparations is added to the first step.
        first = len(self.main)
        if request.does("forced-decoding") and any(map(request.does, ("model", "columns", "prune"))):
            self._force_decode()
        if request.does("model") and request.does("prune"):
            self._train()
        for number, (step, make) in enumerate(changes.items(), 1):
            make()
            self._tune(step, is_last=number == len(changes))
            self._system(_ROWS[step], first, listed=number == len(changes))
            first = len(self.main)
        if not changes and request.does("tune"):
            self._tune("given", is_last=True)
            self._system("tuned", first, listed=True)
        if request.does("rerank"):
            self._rerank()

    def _add(
        self, name: str, arguments: Sequence[str], outputs: Sequence[str], *, resumes: str | None = None,
        keeps: str | None = None, anchored: bool = False, threads: bool = True, chain: list[BuildCommand] | None = None,
        after: Sequence[BuildCommand] = (),
    ) -> BuildCommand:  # fmt: skip
        """Append a command to a chain; it can read the outputs of the commands before it."""
        chain = self.main if chain is None else chain
        before = tuple(chain[-1:]) + tuple(after)
        command = BuildCommand(
            name, tuple(arguments), tuple(outputs), before, threads=threads, resumes=resumes, keeps=keeps,
            anchored=anchored,
        )  # fmt: skip
        chain.append(command)
        return command

    def _system(self, name: str, first: int, listed: bool) -> None:
        """Translate the evaluation text, and write an n-best list to rerank if this is the last system.

        Args:
            name: name of the step.
            first: index of its first command in the main chain.
            listed: whether it is the last system.
        """
        stem = f"steps/{len(self.systems)}"
        path = self._store.path(f"{stem}.{self.tested}")
        options: list[str] = []
        outputs = [f"{stem}.{self.tested}"]
        if listed and self._request.does("rerank"):
            outputs.append(f"{stem}.{self.tested}.nbest.gz")
            options = ["--n-best-list", self._store.path(outputs[-1]), str(N_BEST)]
        self._add(
            f"translate-{len(self.systems)}",
            ("decode", "--moses-ini", self._weights, self.text(self.tested, "source"), *options, *self._force, "-o",
             path),
            outputs, keeps=path,
        )  # fmt: skip
        self._makers[name] = self.main[first:]
        self.systems.append(System(name, self._weights, self._table, path))

    def _force_decode(self) -> None:
        train, output = self._request.train, self._store.path("steps/forced-pairs.gz")
        self._pairs = output
        self._add(
            "force-decode",
            ("force-decode", "--moses-ini", self._ini, train.source, train.target, "--leave-one-out", *self._force,
             "-o", output),
            ["steps/forced-pairs.gz"], keeps=output,
        )  # fmt: skip

    def _train(self) -> None:
        self._model = self._store.path("phrase-model")
        self._add(
            "train-model",
            ("train", self._pairs or self._table, "-o", self._model, "--seed", str(self._request.seed), "--device",
             "cpu", *self._force),
            ["phrase-model/config.json"], resumes=self._model,
        )  # fmt: skip

    def _augment(self) -> None:
        request, names = self._request, ["steps/augmented.gz", "steps/augmented.ini"]
        table, ini = map(self._store.path, names)
        texts = [self.text("dev", "source"), *([self.text("test", "source")] if request.tests else []), *request.texts]
        options = [part for text in texts for part in ("--text", text)]
        options += [part for text in request.monolingual for part in ("--monolingual", text)]
        if self._reordering is not None:
            names.append("steps/augmented-reordering.gz")
            reordering = self._store.path(names[-1])
            options += ["--reordering-table", self._reordering, "--reordering-out", reordering]
            self._reordering = reordering
        self._add(
            "augment",
            ("augment", self._table, *options, "--moses-ini", self._weights, "--moses-ini-out", ini, "--seed",
             str(request.seed), *self._force, "-o", table),
            names, anchored=True,
        )  # fmt: skip
        self._table, self._weights = table, ini

    def _annotate(self) -> None:
        names = ["steps/annotated.gz", "steps/annotated.ini"]
        table, ini = map(self._store.path, names)
        forced = ["--forced-pairs", self._pairs] if self._pairs else []
        self._add(
            "annotate",
            ("annotate", self._table, *forced, "--moses-ini", self._weights, "--moses-ini-out", ini, *self._force, "-o",
             table),
            names, anchored=True,
        )  # fmt: skip
        self._table, self._weights = table, ini

    def _prune(self) -> None:
        request, names = self._request, ["phrase-table.gz", "steps/pruned.ini"]
        table, ini = map(self._store.path, names)
        criteria = ["composition", *(["semantic"] if self._model else []), *(["usage"] if self._pairs else [])]
        options = ["--method", "+".join(criteria)]
        options += ["-m", self._model] if self._model else []
        options += ["--forced-pairs", self._pairs] if self._pairs else []
        if request.size is None:
            dev = (self.text("dev", "source"), self.text("dev", "target"))
            options += ["--max-bleu-loss", f"{MARGIN:g}", "--non-inferior", "--dev", *dev]
        else:
            options += ["--target-size", f"{request.size:g}"]
        outputs, named = [names[0], "steps/pruned.json"], ["--table", table]
        if self._reordering is not None:
            outputs.append("reordering-table.gz")
            reordering = self._store.path(outputs[-1])
            options += ["--reordering-table", self._reordering, "--reordering-out", reordering]
            named += ["--reordering-table", reordering]
        self._add(
            "prune",
            ("prune", self._table, "--moses-ini", self._weights, *options, *self._force, "--stats",
             self._store.path("steps/pruned.json"), "-o", table),
            outputs,
        )  # fmt: skip
        self._add(
            "pruned-ini", ("moses-ini", self._weights, *named, "-o", ini), [names[1]], threads=False, anchored=True,
        )  # fmt: skip
        self._table, self._weights = table, ini

    def _tune(self, step: str, is_last: bool) -> None:
        """Tune the weights of a table; the ini of the last one is the result."""
        name = "moses.ini" if is_last else f"steps/{step}-tuned.ini"
        output = self._store.path(name)
        if not self._request.does("tune"):
            if is_last:
                self._add(
                    "result-ini", ("moses-ini", self._weights, "--table", self._table, "-o", output), [name],
                    threads=False, anchored=True,
                )  # fmt: skip
                self._weights = output
            return
        self._add(
            f"tune-{step}",
            ("tune", "--moses-ini", self._weights, "--dev", self.text("dev", "source"), self.text("dev", "target"),
             "--seed", str(self._request.seed), *self._force, "-o", output),
            [name], keeps=output, anchored=True,
        )  # fmt: skip
        self._weights = output

    def _rerank(self) -> None:
        """Rerank the list of the last system, by weights tuned on its list of the development set."""
        request, last = self._request, self.systems[-1]
        translator = self._store.path("translator")
        self._add(
            "train-translator",
            ("train", "translator", request.train.source, request.train.target, "-o", translator, *TRANSLATOR,
             "--seed", str(request.seed), *self._force),
            ["translator/config.json"], resumes=translator, chain=self.translator,
        )  # fmt: skip
        lists = f"{last.translations}.nbest.gz"
        dev_lists = lists
        if request.tests:
            path, name = self._store.path("steps/last.dev"), "steps/last.dev.nbest.gz"
            dev_lists = self._store.path(name)
            self._add(
                "list-dev",
                ("decode", "--moses-ini", last.ini, self.text("dev", "source"), "--n-best-list", dev_lists,
                 str(N_BEST), *self._force, "-o", path),
                ["steps/last.dev", name], keeps=path,
            )  # fmt: skip
        output = self._store.path(f"steps/reranked.{self.tested}")
        self._add(
            "rerank",
            ("rerank", lists, "--source", self.text(self.tested, "source"), "-m", translator, "--dev-list", dev_lists,
             "--dev", self.text("dev", "source"), self.text("dev", "target"), "--seed", str(request.seed),
             "--save-weights", self._store.path("rerank-weights.json"), *self._force, "-o", output),
            [f"steps/reranked.{self.tested}", "rerank-weights.json"], chain=self.last,
            after=(self.main[-1], self.translator[-1]),
        )  # fmt: skip
        self._makers[_RERANKED] = [*self.translator, *self.last]
        self.systems.append(System(_RERANKED, last.ini, last.table, output))


def improve(request: ImproveRequest, program: Sequence[str], watch: Watch = SILENT) -> ImproveResult:
    """Run the commands that have not finished yet, and return BLEU after each step.

    Args:
        request: the run.
        program: the command line of phrasetool, such as `["phrasetool"]`.
        watch: receives messages and progress.

    Raises:
        DataError: a file is empty or damaged, or the sides of a text differ in length.
        PhraseToolError: a command failed; or, unless forced, the development set is unrelated to the model.
    """
    check_folder(request.output)
    model = MosesModel.read(request.ini)
    model.check_files()
    pairs = {"dev": [request.dev], **({"test": list(request.tests)} if request.tests else {})}
    texts = {name: _read_texts(files) for name, files in pairs.items()}
    _warn_of_overlaps(request, texts, watch)
    folder = os.path.abspath(request.output)
    store = BuildStore(folder, {os.path.abspath(request.ini): model.paths})
    try:
        os.makedirs(store.path("steps"), exist_ok=True)
    except OSError as error:
        raise PhraseToolError(f"{folder}: cannot make the folder: {reason(error)}") from error
    for name, sides in texts.items():
        for side, text in zip(("source", "target"), sides, strict=True):
            with Output(store.path(f"steps/{name}.{side}")) as out:
                out.write_text(text)
    plan = _Plan(request, store, model)
    missing = [command for phase in plan.phases for chain in phase for command in chain if not store.is_done(command)]
    if missing:
        if request.does("tune") and (sentences := texts["dev"][0].count(b"\n")) < FEW_SENTENCES:
            watch.warn(
                f"{sentences:,} sentences are few to tune on: gains on the development set may not hold on other "
                f"text; use {FEW_SENTENCES:,} or more"
            )
        _check_development_set(request, model, texts["dev"], watch)
    forecast = Forecast(_expected_seconds(missing, request, model, texts), request.threads)
    if missing:
        watch.say(
            f"{len(missing)} commands to run; expect about {forecast.minutes:.0f} minutes on {request.threads} threads"
        )
    runner = CommandRunner(store, program, request.threads, watch.say, outlook=forecast)
    for chains in plan.phases:
        runner.make(chain for chain in chains if chain)
    result = _result(request, plan, store)
    with Output(store.path("improve.json")) as out:
        out.write_text(json.dumps(asdict(result), indent=1, ensure_ascii=False).encode() + b"\n")
    return result


def _read_texts(files: Sequence[TextPair]) -> tuple[bytes, bytes]:
    """Read texts and return their concatenation: source and target.

    The texts are checked here, because the commands would name the copies that they read.
    """
    sources, targets = zip(*(read_text_pair(pair.source, pair.target) for pair in files), strict=True)
    for pair, source in zip(files, sources, strict=True):
        check_sentences(source, pair.source)
    return b"".join(sources), b"".join(targets)


def _warn_of_overlaps(request: ImproveRequest, texts: Mapping[str, tuple[bytes, bytes]], watch: Watch) -> None:
    shared = shared_pairs((request.train.source, request.train.target), texts)
    for name, (count, of) in shared.items():
        watch.warn(
            f"{count:,} of {of:,} sentence pairs of the {name} set are in the bitext; BLEU on them does not predict "
            "BLEU on other text"
        )


def _check_development_set(request: ImproveRequest, model: MosesModel, text: tuple[bytes, bytes], watch: Watch) -> None:
    """Reject a development set that is unrelated to the table, before commands run."""
    check = DevelopmentCheck(model, request.dev.source, [request.dev.target], request.force, watch)
    source, target = text
    check.texts(source, [target])
    phrases = InputPhrases.of(surface_words(source, request.dev.source), model.longest)
    table = replace(model, reordering=None).load_table(phrases, Symbols(), request.threads)
    check.fit(table, phrases.sentences, source, [target])


# Seconds per sentence, or per entry of the table, on one core, from the run in benchmarks/results/improve.json (1.1
# million entries, 29,000 sentence pairs, most commands in parallel with another one).
_SECONDS_PER_SENTENCE = {
    "force-decode": 0.0025, "train": 0.0013, "train translator": 0.019, "tune": 0.15, "decode": 0.009, "rerank": 0.1,
    "prune": 0.15,
}  # fmt: skip
_SECONDS_PER_ENTRY = {"augment": 1.1e-5, "annotate": 3e-6, "prune": 5e-6}
# The pace of finished commands is used if at least this many seconds were expected for them.
_ENOUGH_SECONDS = 10.0


class Forecast(Outlook):
    """Forecast of the remaining time from expected times of commands and the pace of finished commands.

    Args:
        expected: name of a command -> its expected seconds on one core.
        threads: number of threads of the run; two commands run at a time.
        clock: returns seconds.
    """

    def __init__(
        self, expected: Mapping[str, float], threads: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._expected, self._threads, self._clock = expected, threads, clock
        self._begun: dict[str, float] = {}
        self._taken: dict[str, float] = {}

    @property
    def minutes(self) -> float:
        """Minutes until all commands are done."""
        pace, now = self._pace, self._clock()
        left = {name: seconds * pace for name, seconds in self._expected.items() if name not in self._taken}
        for name, began in self._begun.items():
            if name in left:
                # A command that runs in parallel with another one has one core.
                left[name] = max(left[name] - (now - began), 0.0)
        return sum(left.values()) / min(self._threads, 2) / 60

    @property
    def _pace(self) -> float:
        """Ratio of actual to expected seconds of finished commands; 1 if too few seconds were expected."""
        expected = sum(self._expected.get(name, 0.0) for name in self._taken)
        # Short commands are a poor basis to predict the time of long ones.
        return sum(self._taken.values()) / expected if expected >= _ENOUGH_SECONDS else 1.0

    def begin(self, name: str) -> None:
        """Record the start of a command."""
        self._begun[name] = self._clock()

    def end(self, name: str, seconds: float) -> str:
        """Record the end of a command; return text about the remaining time, empty after the last command."""
        self._taken[name] = seconds
        if len(self._taken) == len(self._expected):
            return ""
        return f"; about {self.minutes:.0f} minutes left"


def _expected_seconds(
    commands: Sequence[BuildCommand], request: ImproveRequest, model: MosesModel,
    texts: Mapping[str, tuple[bytes, bytes]],
) -> dict[str, float]:  # fmt: skip
    """Estimate the seconds of commands on one core, by name, from the sizes of their inputs.

    Args:
        commands: the commands to run.
        request: the run.
        model: the given model; the entries of its table are counted.
        texts: development set and test set.
    """
    if not commands:
        return {}
    entries = count_entries(model.table)
    with Input(request.train.source) as stream:
        bitext = stream.read_all().count(b"\n")
    sentences = {"train": bitext, "train translator": bitext, "force-decode": bitext}
    dev, test = (texts[name][0].count(b"\n") if name in texts else 0 for name in ("dev", "test"))
    seconds = {}
    for command in commands:
        name = " ".join(command.arguments[: 1 + (command.arguments[1] == "translator")])
        listed = {"decode": test or dev, "rerank": test + dev}
        lines = sentences.get(name, listed.get(name, dev))
        seconds[command.name] = _SECONDS_PER_ENTRY.get(name, 0.0) * entries
        if name != "prune" or request.size is None:
            seconds[command.name] += _SECONDS_PER_SENTENCE.get(name, 0.0) * lines
    return seconds


def _result(request: ImproveRequest, plan: _Plan, store: BuildStore) -> ImproveResult:
    references = read_text_lines(plan.text(plan.tested, "target"))
    bootstrap = Bootstrap(len(references))
    samples = [
        bootstrap(np.asarray(sentence_statistics(read_text_lines(system.translations), references)))
        for system in plan.systems
    ]
    result = ImproveResult(plan.tested, len(references))
    entries = {table: count_entries(table) for table in dict.fromkeys(system.table for system in plan.systems)}
    for system, score in zip(plan.systems, samples, strict=True):
        is_first = score is samples[0]
        low, high = (None, None) if is_first else score.difference_interval(samples[0])
        result.steps.append(StepResult(
            system.name, entries[system.table], os.path.getsize(system.table), round(score.bleu, 4),
            None if is_first else round(score.bleu - samples[0].bleu, 4), low, high, round(plan.seconds(system), 1),
        ))  # fmt: skip
    result.files = dict(_files(request, store))
    result.commands = _commands(request)
    return result


def _files(request: ImproveRequest, store: BuildStore) -> Iterator[tuple[str, str]]:
    """Yield the path and the purpose of each file or folder of the output."""
    uses = {
        "moses.ini": "the model, for Moses and `phrasetool decode`",
        "phrase-table.gz": "its phrase table",
        "reordering-table.gz": "its reordering table",
        "translator": "the translator that reranks",
        "rerank-weights.json": "its weights",
        "phrase-model": "the phrase model, for `prune`, `annotate` and `show`",
        "improve.json": "these figures",
        "steps": "intermediate files; may be deleted",
    }
    if not request.does("prune") and any(map(request.does, ("augment", "columns"))):
        uses["steps"] = "the tables of moses.ini, and intermediate files"
    for name, use in uses.items():
        if name == "improve.json" or os.path.exists(store.path(name)):
            yield os.path.join(request.output, name), use


def _commands(request: ImproveRequest) -> list[str]:
    """Return the command lines that translate new text with the result."""
    changed = any(map(request.does, (*_ROWS, "tune")))
    ini = os.path.join(request.output, "moses.ini") if changed else request.ini
    if not request.does("rerank"):
        return [f"phrasetool decode --moses-ini {ini} new.source -o new.target"]
    translator, weights = (os.path.join(request.output, name) for name in ("translator", "rerank-weights.json"))
    return [
        f"phrasetool decode --moses-ini {ini} new.source --n-best-list new.nbest.gz {N_BEST} -o new.first",
        f"phrasetool rerank new.nbest.gz --source new.source -m {translator} --weights {weights} -o new.target",
    ]
