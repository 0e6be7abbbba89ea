"""Calls of Moses' own binarisers with the flags that a table needs.

Facts from their sources (mosesdecoder of February 2025): `misc/processPhraseTableMin.cpp`,
`misc/processLexicalTableMin.cpp`, `probingpt/CreateProbingPT.cpp`, `OnDiskPt/Main.cpp`.  Pitfalls of these programs:

* each needs the number of scores, and CreateProbingPT never checks it: with a wrong number all later records are
  garbage;
* processPhraseTableMin aborts if the score for ranking (2 by default) does not exist, and by default requires a word
  alignment in every line and no duplicate pairs;
* all detect gzip by the file name, and need sorted files.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from moses_compat.files.kinds import folder_kind
from moses_compat.files.packing import without_ending
from moses_compat.files.streams import Input
from moses_compat.tables.blocks import Progress
from moses_compat.tables.canonical import TableForm, examine, write_copy
from moses_compat.tables.inspect import Oddity, factor_options, objections_of
from moses_compat.tables.source_order import read_prefixes
from phrasetool.disk.folders import scratch_folder
from phrasetool.errors import DataError, PhraseToolError, reason

COMPACT, PROBING, ON_DISK = "compact", "probing", "ondisk"
KINDS = (COMPACT, PROBING, ON_DISK)
# The direct phrase probability, p(target | source), by which candidates are ranked.
_RANK = 2
_SHOWN_LINES = 20
_PROGRAMS = {COMPACT: "processPhraseTableMin", PROBING: "CreateProbingPT", ON_DISK: "CreateOnDiskPt"}
_REORDERING_PROGRAM = "processLexicalTableMin"
_CLASSES = {COMPACT: "PhraseDictionaryCompact", PROBING: "ProbingPT", ON_DISK: "PhraseDictionaryOnDisk"}
_NEED_CMPH = ("processPhraseTableMin", "processLexicalTableMin")
_FILES = {
    PROBING: ("probing_hash.dat", "TargetColl.dat", "TargetVocab.dat", "source_vocabids", "config"),
    ON_DISK: ("Source.dat", "TargetColl.dat", "TargetInd.dat", "Vocab.dat", "Misc.dat"),
}
_REORDERING_TYPES = {6: "wbe-msd-bidirectional-fe-allff", 8: "wbe-mslr-bidirectional-fe-allff"}

Tell = Callable[[str], None]


def find_moses_program(name: str, folder: str | None = None) -> str:
    """Return the path of a program of Moses.

    Args:
        name: such as `CreateProbingPT`.
        folder: look in this folder and its `bin` instead of on the PATH.

    Raises:
        PhraseToolError: the program is not installed there.
    """
    location = "on the PATH" if folder is None else f"in {folder}"
    program = shutil.which(
        name, path=None if folder is None else os.pathsep.join([folder, os.path.join(folder, "bin")])
    )
    if program is None:
        built = ", built with CMPH (bjam --with-cmph)" if name in _NEED_CMPH else ""
        message = f"the program {name} of Moses{built} is needed and is not {location}"
        raise PhraseToolError(message, remedy="name the folder of Moses")
    return os.path.abspath(program)


_NAME = re.compile(r"[^ \t\r\n=#\[\]]+")


@dataclass(frozen=True)
class BinarizeOptions:
    """Settings of binarisation.

    Args:
        kind: `compact`, `probing` or `ondisk`.
        folder: folder of the programs; the PATH if None.
        threads: number of threads for sorting, and for the programs that support threads.
        table_limit: ondisk only: number of entries of a source to keep, the best by column 3; 0 for all.
        factors: numbers of factors of source and target tokens; determined from the first lines if None.
        extra: additional arguments for the program of the phrase table.
    """

    kind: str
    folder: str | None = None
    threads: int = 1
    table_limit: int = 0
    factors: tuple[int, int] | None = None
    extra: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind!r}; expected one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class BinaryTable:
    """A binary table, and its feature line for a moses.ini.

    Attributes:
        path: the file or folder.
        scores: number of scores per entry.
        feature_line: line for the `[feature]` section.
    """

    path: str
    scores: int
    feature_line: str


def output_path(kind: str, output: str) -> str:
    """Return the file or folder that binarising to `output` creates."""
    return output.removesuffix(".minphr") + ".minphr" if kind == COMPACT else output.rstrip("/") or output


def reordering_output_path(output: str, reordering: str) -> str:
    """Return the path of a binary reordering table, in the folder of the phrase table."""
    name = os.path.basename(without_ending(reordering))
    return os.path.join(os.path.dirname(output.rstrip("/")), name + ".minlexr")


@dataclass
class OutputTransaction:
    """A temporary folder next to an output; files made in it are renamed to their final names when all are complete.

    Use as a context manager: after an exception, the old files are kept.

    Args:
        output: the output.

    Raises:
        PhraseToolError: the folder cannot be written to.
    """

    output: str
    folder: str = field(default="", init=False)
    _made: list[tuple[str, str]] = field(default_factory=list, init=False)
    _scratch: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False)

    def __enter__(self) -> OutputTransaction:
        parent = os.path.dirname(os.path.abspath(self.output))
        try:
            name = f".{os.path.basename(self.output)}."
            self.folder = self._scratch.enter_context(scratch_folder(parent, name, ".part"))
        except OSError as error:
            raise PhraseToolError(f"{self.output}: cannot write: {reason(error)}") from error
        return self

    def path(self, name: str) -> str:
        """Return a path in the temporary folder."""
        return os.path.join(self.folder, name)

    def publish(self, made: str, final: str) -> None:
        """Register a file or folder in the temporary folder to be renamed to its final name at the end."""
        self._made.append((made, os.path.abspath(final)))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._rename()
        finally:
            self._scratch.close()

    def _rename(self) -> None:
        renamed: list[tuple[str, str]] = []
        for number, (temporary, final) in enumerate(self._made):
            old = self.path(f"replaced.{number}")
            try:
                if os.path.lexists(final):
                    os.rename(final, old)
                renamed.append((old, final))
                os.rename(temporary, final)
            except OSError as error:
                self._undo(renamed)
                raise PhraseToolError(f"{final}: cannot write: {reason(error)}; nothing was changed") from error

    @staticmethod
    def _undo(renamed: list[tuple[str, str]]) -> None:
        for old, final in reversed(renamed):
            with contextlib.suppress(OSError):
                if os.path.isdir(final) and not os.path.islink(final):
                    shutil.rmtree(final)
                elif os.path.lexists(final):
                    os.unlink(final)
                if os.path.lexists(old):
                    os.rename(old, final)


def check_replaceable(kind: str, path: str) -> None:
    """Check, before any work starts, that only a table of this kind would be replaced.

    Raises:
        PhraseToolError: the output is a folder instead of a file or vice versa, or a folder with other content.
    """
    if not os.path.lexists(path):
        return
    if kind == COMPACT:
        if os.path.isdir(path):
            raise PhraseToolError(f"{path}: is a folder, expected a file name")
    elif not os.path.isdir(path):
        raise PhraseToolError(f"{path}: is a file; {_PROGRAMS[kind]} makes a folder; choose another name")
    elif os.listdir(path) and not _is_table(kind, path):
        raise PhraseToolError(f"{path}: the folder has other content than such a table; choose another name")


def _is_table(kind: str, path: str) -> bool:
    return folder_kind(path) is not None and set(os.listdir(path)) <= {*_FILES[kind], "Alignments.dat", "cache"}


def binarize(
    table: str,
    output: str,
    options: BinarizeOptions,
    reordering: Sequence[str] = (),
    name: str = "TranslationModel0",
    tell: Tell = lambda message: None,
    warn: Tell = lambda message: None,
    progress: Progress = lambda position, entries: None,
) -> list[BinaryTable]:
    """Create a binary phrase table and binary reordering tables with Moses' programs; either all of them or none.

    Args:
        table: the phrase table in text form, a file.
        output: the file (`.minphr` is added for compact) or folder to create.
        options: the settings.
        reordering: reordering tables, written next to `output` as `.minlexr`, which all of Moses' decoders read.
        name: name of the feature in the moses.ini.
        tell: receives the commands, and the output of a program that failed.
        warn: receives warnings about content that the binary table lacks.
        progress: called with the bytes of the file and the entries read so far.

    Returns:
        The binary phrase table, then the binary reordering tables.

    Raises:
        PhraseToolError: a program is missing, failed, or created an unexpected table.
        DataError: a table has a line that no binariser supports.
    """
    if not _NAME.fullmatch(name):
        raise PhraseToolError(f"{name!r} cannot be the name of a feature: a word without =, # and brackets")
    program = find_moses_program(_PROGRAMS[options.kind], options.folder)
    reordering_program = find_moses_program(_REORDERING_PROGRAM, options.folder) if reordering else ""
    final = output_path(options.kind, output)
    check_replaceable(options.kind, final)
    for path in (table, *reordering):
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise DataError(path, "is a pipe; a binariser reads its table more than once, so give a file")
    tables = []
    with OutputTransaction(final) as workplace:
        work = _Binarizer(workplace, options, tell, warn, progress)
        tables.append(work.phrase_table(program, table, final, name))
        for number, path in enumerate(reordering):
            tables.append(work.reordering_table(reordering_program, path, reordering_output_path(output, path), number))
    return tables


@dataclass(frozen=True)
class _Binarizer:
    """Binarisation in a temporary folder; see `binarize`."""

    place: OutputTransaction
    options: BinarizeOptions
    tell: Tell
    warn: Tell
    progress: Progress

    def phrase_table(self, program: str, table: str, final: str, name: str) -> BinaryTable:
        options = self.options
        form = original = examine(table, self.progress)
        if options.kind == COMPACT and form.rules:
            raise DataError(table, "is a rule table; PhraseDictionaryCompact is for phrase-based models only")
        if options.kind == PROBING and form.other_reordering_line:
            raise DataError(
                table, "the number of scores in {{LexRO ..}} differs from the first line's", form.other_reordering_line
            )
        form, text = self.ready_text(form, "table")
        self.check_lines(original, form, text)
        factors = options.factors or (form.source_factors, form.target_factors)
        if options.kind == COMPACT:
            arguments = self.compact_arguments(form, text)
        elif options.kind == PROBING:
            arguments = _probing_arguments(form, text)
        else:
            numbers = (*factors, form.scores, options.table_limit, min(_RANK, form.scores - 1))
            arguments = [*map(str, numbers), text, "made"]
        self.run([program, *arguments, *options.extra])
        binary = self.place.path("made.minphr" if options.kind == COMPACT else "made")
        if options.kind == COMPACT:
            _check_file(program, binary)
        else:
            _check_folder(options.kind, program, binary, form, factors)
        self.place.publish(binary, final)
        line = (
            f"{_CLASSES[options.kind]} name={name} num-features={form.scores} path={os.path.abspath(final)} "
            f"{factor_options(factors)}"
        )
        return BinaryTable(final, form.scores, line)

    def check_lines(self, original: TableForm, form: TableForm, text: str) -> None:
        """Reject lines that the program or its decoder does not support, and report what the program leaves out.

        Args:
            original: the form of the table, in which lines are numbered.
            form: the form of the file that is binarised, in which spaces and order have been corrected.
            text: name of that file, see `ready_text`.

        Raises:
            DataError: a line is not supported.
        """
        # These are handled by flags of the program, or by the copy.
        settled = {"no alignment", "bad alignment"}
        if form.reordering_scores and self.options.kind == PROBING:
            settled |= {"properties"}
        if form.rules:
            settled |= {"label at the end", "token in brackets"}
        odd = {
            name: original.oddities.get(name, oddity) for name, oddity in form.oddities.items() if name not in settled
        }
        if form.rules and self.options.kind == PROBING:
            with Input(os.path.join(self.place.folder, text)) as source:
                if read_prefixes(source, labelled=True).overfull:
                    odd["too many beginnings"] = Oddity(form.entries, 1)
        for objection in objections_of(_PROGRAMS[self.options.kind], odd):
            if objection.stops:
                raise DataError(original.path, f"{_PROGRAMS[self.options.kind]}: {objection.reason}", objection.first)
            lines = f" ({objection.lines:,} lines)" if objection.lines > 1 else ""
            self.warn(f"{original.path}:{objection.first}: {objection.reason}{lines}")

    def ready_text(self, form: TableForm, name: str) -> tuple[TableForm, str]:
        """Return the form and name of a file for the binariser: the table, a link with another name, or a copy."""
        if form.ready:
            if form.gzip == form.path.endswith(".gz"):
                return form, os.path.abspath(form.path)
            # Moses detects gzip only by the name.
            link = f"{name}.gz" if form.gzip else name
            os.symlink(os.path.abspath(form.path), self.place.path(link))
            return form, link
        if line := form.odd_line or form.unsorted_line:
            reason = (
                "a byte order mark, odd spaces, bars or line ends"
                if form.odd_line
                else "not in the order of LC_ALL=C sort"
            )
            self.tell(f"{form.path}:{line}: {reason}; a sorted, regular copy is binarised")
        copy = self.place.path(f"{name}.gz")
        write_copy(form, copy, self.options.threads)
        return examine(copy, self.progress), f"{name}.gz"

    def compact_arguments(self, form: TableForm, text: str) -> list[str]:
        arguments = ["-in", text, "-out", "made", "-nscores", str(form.scores), "-threads", str(self.options.threads)]
        if form.scores != 4:
            arguments += ["-rankscore", str(min(_RANK, form.scores - 1))]
        if form.unaligned_line or form.duplicate_line:
            if form.unaligned_line:
                reason = "there are entries without a word alignment"
            else:
                reason = "there are duplicate pairs"
            self.tell(f"{reason}, so the table is written with -encoding None, which makes it larger")
            arguments += ["-encoding", "None"]
        return arguments

    def reordering_table(self, program: str, path: str, final: str, number: int) -> BinaryTable:
        form, text = self.ready_text(examine(path, self.progress), f"reordering.{number}")
        if form.duplicate_line:
            raise DataError(path, f"a pair occurs twice, which {_REORDERING_PROGRAM} does not support")
        binary = f"reordering.{number}.made"
        self.run([program, "-in", text, "-out", binary, "-threads", str(self.options.threads)])
        binary = self.place.path(binary + ".minlexr")
        _check_file(program, binary)
        self.place.publish(binary, final)
        factors = factor_options((form.source_factors, form.target_factors))
        line = (
            f"LexicalReordering name=LexicalReordering{number} num-features={form.scores} "
            f"type={_REORDERING_TYPES.get(form.scores, 'TYPE')} {factors} "
            f"path={os.path.abspath(final).removesuffix('.minlexr')}"
        )
        return BinaryTable(final, form.scores, line)

    def run(self, command: Sequence[str]) -> None:
        """Run a program in the temporary folder.

        Raises:
            PhraseToolError: the program cannot be started or failed; the end of its output is reported.
        """
        self.tell(f"running in {self.place.folder}: {shlex.join(command)}")
        with tempfile.TemporaryFile(dir=self.place.folder) as output:
            try:
                process = subprocess.run(
                    command, cwd=self.place.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
                )
            except OSError as error:
                raise PhraseToolError(f"{command[0]}: cannot be run: {reason(error)}") from error
            if process.returncode == 0:
                return
            output.seek(0)
            lines = output.read().decode(errors="replace").splitlines()
        name = os.path.basename(command[0])
        for line in lines[-_SHOWN_LINES:]:
            self.tell(f"{name}: {line}")
        outcome = (
            f"with code {process.returncode}"
            if process.returncode > 0
            else f"by {signal.Signals(-process.returncode).name}"
        )
        raise PhraseToolError(f"{name} ended {outcome}; nothing was written")


def _probing_arguments(form: TableForm, text: str) -> list[str]:
    arguments = ["--num-scores", str(form.scores)]
    if form.reordering_scores:
        arguments += ["--num-lex-scores", str(form.reordering_scores)]
    if form.rules:
        arguments.append("--scfg")
    return [*arguments, "--input-pt", text, "--output-dir", "made"]


def _check_file(program: str, path: str) -> None:
    if not os.path.isfile(path) or not os.path.getsize(path):
        raise PhraseToolError(f"{os.path.basename(program)} succeeded but wrote no table; nothing was written")


def _check_folder(kind: str, program: str, folder: str, form: TableForm, factors: tuple[int, int]) -> None:
    """Check the description of a binary table against the text table."""
    for name in _FILES[kind]:
        _check_file(program, os.path.join(folder, name))
    if kind == PROBING:
        file, expected = "config", {"num_scores": form.scores, "num_lex_scores": form.reordering_scores}
        if not form.rules:
            expected["uniq_entries"] = form.sources
    else:
        file = "Misc.dat"
        expected = {"NumScores": form.scores, "NumSourceFactors": factors[0], "NumTargetFactors": factors[1]}
    with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as text:
        recorded = dict(re.findall(r"^(\w+)\s+(\d+)\s*$", text.read(), re.MULTILINE))
    for key, value in expected.items():
        if recorded.get(key) != str(value):
            raise PhraseToolError(
                f"{os.path.basename(program)} made a table whose {file} says {key} {recorded.get(key, 'nothing')}, "
                f"expected {value}; nothing was written"
            )
