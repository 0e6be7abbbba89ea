"""Options that several commands share."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from phrasetool_cli.checks import check_outputs, is_given, refuse_two_standard_inputs, refuse_unused
from phrasetool_cli.command import sections, verbose_option
from phrasetool_cli.messages import hint
from phrasetool_cli.parameter_types import Share, finite_number, size_in_bytes

if TYPE_CHECKING:
    from moses_compat.files.finished_work import FinishedWork
    from moses_compat.jobs.annotate import IniEdit
    from moses_compat.measures.similarities import EncoderRequest
    from phrasetool.cluster.ray_runner import RayRunner
    from phrasetool.watch import Watch

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Option = Callable[[_Function], _Function]

SCHEMA_VERSION = 1
STANDARD = "-"
_DEFAULT_MODEL = "phrasetool-model"
# Runs phrasetool in another process, whether or not `phrasetool` is on the PATH, and without the configuration file of
# the current folder, which would change the results.
_CODE = f"import sys; from phrasetool_cli.main import main; main(['--config', {os.devnull!r}, *sys.argv[1:]])"
PROGRAM = (sys.executable, "-c", _CODE)
WHICH_MODEL = "[default: ./phrasetool-model]"


def default_model() -> str:
    """Return `$PHRASETOOL_MODEL`, or if that is unset or empty, the folder that `phrasetool train` writes."""
    return os.environ.get("PHRASETOOL_MODEL") or _DEFAULT_MODEL


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


model_option = click.option("-m", "--model", "model_folder", metavar="FOLDER", help=f"Model folder.  {WHICH_MODEL}")


class _TranslatorScore(click.Choice[str]):
    """Scores of translators, converted to their names in the library; these names, former values, are valid, too."""

    _names = {"softmax": "normalised", "unnormalised": "density"}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(list(self._names))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the library's name."""
        return value if value in self._names.values() else self._names[super().convert(value, param, ctx)]


translator_score_option = click.option(
    "--translator-score", "reading", type=_TranslatorScore(), default="softmax",
    help="Score of translators.",
)  # fmt: skip


def standard_output(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return `-` for /dev/stdout and the like."""
    from moses_compat.files.paths import descriptor_of

    return STANDARD if value and descriptor_of(value) == 1 else value


def is_open(path: str) -> bool:
    """Whether a path is a standard stream or an open descriptor, which has no name that another file can give."""
    from moses_compat.files.paths import descriptor_of

    return path == STANDARD or descriptor_of(path) is not None


def refuse_open_folder(path: str) -> None:
    """Refuse a standard stream or an open descriptor as the folder of part files.

    Raises:
        click.UsageError: the path names one.
    """
    if is_open(path):
        raise click.UsageError("expected a folder to write part files to, with -o")


def output_option(help_text: str = "Output file.") -> _Option[Any]:
    """Return the option `--output`, by default standard output."""
    return click.option(
        "-o", "--output", default="-", show_default=False, metavar="FILE", callback=standard_output,
        help=f"{help_text}  [default: -, standard output]",
    )  # fmt: skip


def threads_option(help_text: str = "Worker threads.") -> _Option[Any]:
    """Return the option `--threads`, by default all processors."""
    return click.option(
        "--threads", type=click.IntRange(1), default=available_processors, show_default=False, metavar="N",
        help=f"{help_text}  [default: all processors]",
    )  # fmt: skip


force_option = click.option("--force", is_flag=True, help="Ignore failed sanity checks.")
# Verbosity of a command.
quiet_option = sections(
    None,
    click.option("--quiet", "-q", is_flag=True, help="Print warnings and errors only."),
    verbose_option,
)


def device_option(help_text: str = "Device: cpu, cuda or auto.") -> _Option[Any]:
    """Return the option `--device`."""
    return click.option("--device", default="auto", metavar="NAME", help=help_text)


def _chosen_device(name: str) -> str:
    # The CPU does not need torch.
    if name == "cpu":
        return name
    from phrasetool.nn.device import choose_device

    return str(choose_device(name))


scoring_device_option = click.option(
    "--device", type=_chosen_device, default="cpu", show_default=True, metavar="NAME",
    help="Device: cpu, cuda or auto.",
)  # fmt: skip

seed_option = click.option("--seed", type=click.IntRange(0), default=1, metavar="N", help="Random seed.")

allow_empty_option = click.option(
    "--allow-empty", is_flag=True, help="Accept empty input."
)  # fmt: skip

temporary_option = click.option(
    "--temporary", type=click.Path(exists=True, file_okay=False), metavar="FOLDER",
    help="Folder of temporary files.  [default: $TMPDIR]",
)  # fmt: skip

sort_option = click.option(
    "--sort", is_flag=True,
    help="Sort TABLE first (LC_ALL=C).",
)  # fmt: skip

# Options of every command that streams a table.
table_options = sections(
    "Reading",
    click.option("--on-error", type=click.Choice(["fail", "skip", "keep"]), default="fail",
                 help="Action for malformed lines."),
    threads_option(),
    allow_empty_option,
    force_option,
    click.option("--block-bytes", type=size_in_bytes, default="2M", metavar="SIZE",
                 help="Text per thread at a time."),
    click.option("--max-line", type=size_in_bytes, default="16M", metavar="SIZE",
                 help="Refuse longer lines."),
    None,
    quiet_option,
)  # fmt: skip

# The options that name a model, for every command that decodes.
decoder_model_options = sections(
    "Model",
    click.option(
        "--moses-ini", "ini", required=True, metavar="FILE", help="Read the model from this moses.ini (version 2)."
    ),
    click.option("--table", metavar="FILE", help="Use this phrase table instead of the ini's."),
    click.option("--reordering-table", metavar="FILE", help="Use this reordering table instead of the ini's."),
)

# Search options, named as in `SearchOptions`; the default, None, is the value of the ini, or else that of Moses.
search_options = sections(
    "Search",
    click.option("--search", "algorithm", type=click.Choice(["stack", "cube"]),
                 help="Search algorithm.  [default: ini, else stack]"),
    click.option("--stack", "stack_size", type=click.IntRange(1), metavar="N",
                 help="Hypotheses per stack.  [default: ini, else 200]"),
    click.option("--pop-limit", type=click.IntRange(1), metavar="N",
                 help="Cube pruning pop limit.  [default: ini, else 1000]"),
    click.option("--beam-threshold", type=Share(max_open=True), metavar="P",
                 help="Beam threshold.  [default: ini, else 1e-5]"),
    click.option("--distortion-limit", type=int, metavar="N",
                 help="Maximum words of a jump; -1: 63.  [default: ini]"),
    click.option("--table-limit", type=click.IntRange(0), metavar="N",
                 help="Entries per source.  [default: ini, else 20]"),
)  # fmt: skip

weight_option = click.option(
    "--weight", type=finite_number, default=0.0, metavar="W",
    help="Initial weight of new score columns in the ini.",
)  # fmt: skip

relative_option = click.option(
    "--relative", is_flag=True,
    help="Write paths in the ini relative to its folder.",
)  # fmt: skip


def dev_option(help_text: str, metavar: str = "SOURCE REFERENCE") -> _Option[Any]:
    """Return the option `--dev`, the two sides of a development set."""
    return click.option("--dev", "development", nargs=2, metavar=metavar, help=help_text)


def former_option(*names: str, **settings: Any) -> _Option[Any]:
    """Return an option of earlier releases, which works for one more release and is not listed."""
    return click.option(*names, hidden=True, **settings)


def hint_at_dev(former: str) -> None:
    """Recommend `--dev` in place of former options, unless the command is quiet."""
    if not click.get_current_context().params.get("quiet"):
        hint(f"{former} are now `--dev SOURCE TARGET`; the old form works for one more release")


engine_options = sections(None, threads_option(), quiet_option)

# Options of the commands that rescore n-best lists.
list_source_option = click.option(
    "--source", required=True, metavar="FILE",
    help="Source text of the list, one tokenised sentence per line.",
)  # fmt: skip

neural_column_options = sections(
    "Columns",
    click.option("--length-normalisation", "length", type=click.Choice(["words", "none"]), default="words",
                 help="Divide log-probabilities by length (including </s>), or not."),
    click.option("--each", is_flag=True,
                 help="Write a column for each model instead of a mean for each direction."),
)  # fmt: skip


reranking_language_models_option = click.option(
    "--lm", "language_models", multiple=True, metavar="FILE",
    help="Language model, ARPA text or a binary file of kenlm; repeatable.",
)  # fmt: skip


translators_option = click.option(
    "-m", "--model", "folders", multiple=True, metavar="FOLDER",
    help="Translator of either direction; repeatable.",
)  # fmt: skip

cluster_options = sections(
    click.option("--engine", type=click.Choice(["threads", "ray"]), default="threads",
                 help="Run in threads or on a Ray cluster."),
    click.option("--address", metavar="HOST:PORT", help="Address of the Ray cluster, or `auto`."),
)  # fmt: skip


def chosen_runner(engine: str, address: str | None, threads: int) -> RayRunner | None:
    """Return the runner of parallel work; None for threads.

    Args:
        engine, address: values of the options.
        threads: number of threads of this process, or of processes of a cluster that is started here.

    Raises:
        click.UsageError: an address was given, but the engine is not Ray.
        ModuleNotFoundError: Ray is not installed.
        PhraseToolError: no cluster answers at the address.
    """
    if engine == "threads":
        refuse_unused({"address": "--engine ray"})
        return None
    # Switch Ray's usage statistics off, unless the user switched them on.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from phrasetool.cluster.ray_runner import RayRunner

    return RayRunner(address, threads)


resume_option = click.option(
    "--resume", is_flag=True,
    help="Continue an interrupted run (OUTPUT.unfinished).",
)  # fmt: skip


def checked_resume(resume: bool, source: str, output: str) -> bool:
    """Return whether to resume; False for a configured `--resume` if input or output is a stream.

    Finished work cannot be stored next to a stream, and the input is read again.

    Raises:
        click.UsageError: the option is typed, and input or output is a stream.
    """
    from moses_compat.files.paths import is_stream

    if not resume or not (is_stream(source) or is_stream(output) or is_open(output)):
        return resume
    if is_given("resume"):
        raise click.UsageError("--resume keeps finished work next to the output; expected files to read, and -o FILE")
    return False


def checked_relative(relative: bool, output: str) -> bool:
    """Return whether paths become relative; False for a configured `--relative` if the ini goes to a stream.

    Raises:
        click.UsageError: the option is typed, and the ini goes to a stream.
    """
    if relative and is_open(output) and is_given("relative"):
        raise click.UsageError("--relative needs to know the folder of the ini; name it with --output")
    return relative and not is_open(output)


def finished_work(
    resume: bool, output: str, source: str, files: Iterable[str], settings: Mapping[str, object], watch: Watch
) -> contextlib.AbstractContextManager[FinishedWork | None]:
    """Return the finished work of an interrupted run, to which this run adds; without `--resume`, it is removed.

    Args:
        resume: whether `--resume` was given.
        output: the output file.
        source: the input file.
        files: other files that the output depends on.
        settings: options that the output depends on.
        watch: receives a message when work is resumed.

    Raises:
        PhraseToolError: input or output is not a regular file; the stored work belongs to another run; or a file
            cannot be read.
    """
    if not resume:
        return _forgetting(output)
    from moses_compat.files.finished_work import FinishedWork, described

    identity = {os.path.abspath(file): described(file) for file in files}
    identity |= {name.replace("_", " "): str(value) for name, value in settings.items()}
    return FinishedWork(output, source, identity, watch.say)


@contextlib.contextmanager
def _forgetting(output: str) -> Iterator[None]:
    """Remove the stored work of an interrupted run once its output is complete."""
    from moses_compat.files.finished_work import forget_finished
    from moses_compat.files.paths import is_stream

    yield
    if not is_stream(output) and not is_open(output):
        forget_finished(output)


def ini_edit(
    table: str, output: str, ini: str | None, ini_output: str | None, weight: float, scale: str, relative: bool,
    reordering: str | None = None,
) -> IniEdit | None:  # fmt: skip
    """Check the options and files of a new ini before any work starts; return None without one.

    If a reordering table is given, the new ini names it in place of the old one.  A configured ini gives way to
    streams and a typed scale that it excludes.

    Raises:
        click.UsageError: an option or a file of the ini is missing, has no effect, or cannot be used.
        DataError: the ini or the table cannot be read, or the ini cannot have more columns for the table.
        PhraseToolError: an output is an input or another output, or cannot be written.
    """
    files = {"TABLE": table, "--output": output, "--reordering-out": reordering, "--moses-ini-out": ini_output}
    streams = [option for option, path in files.items() if path is not None and is_open(path)]
    is_typed = is_given("ini") or is_given("ini_output")
    if not is_typed and (streams or (scale == "raw" and is_given("scale"))):
        ini = ini_output = None
    if ini is None and ini_output is None:
        refuse_unused(dict.fromkeys(("weight", "relative"), "the ini that --moses-ini-out writes"))
        return None
    if ini is None or ini_output is None:
        raise click.UsageError("--moses-ini and --moses-ini-out must be given together")
    if scale == "raw":
        raise click.UsageError(
            "--scale raw is not for Moses: the logarithm of a negative score is not a number, even at weight 0"
        )
    if streams:
        raise click.UsageError(f"with --moses-ini, {streams[0]} must be a file")

    from moses_compat.jobs.annotate import IniEdit, ini_of_table

    moses_ini = ini_of_table(table, ini)
    check_outputs([table, ini, *moses_ini.paths], [output, ini_output, reordering])
    if reordering:
        from moses_compat.ini.editing import with_reordering_table

        moses_ini = with_reordering_table(moses_ini, os.path.abspath(reordering))
    return replace(IniEdit.of(moses_ini, table, output, ini_output, weight), relative=relative)


json_option = click.option(
    "--json", "json_file", is_flag=False, flag_value=STANDARD, metavar="[FILE]", callback=standard_output,
    help="Write results as JSON to FILE or standard output.",
)  # fmt: skip


def json_document(
    path: str | None, inputs: Iterable[str | None] = (), outputs: Iterable[str | None] = (), indent: int = 2
) -> Callable[[Mapping[str, Any]], None]:
    """Return a function that writes the document of the running command; the file appears if the command succeeds.

    Args:
        path: value of `--json`; None writes nothing.
        inputs: inputs of the command.
        outputs: its other outputs.
        indent: spaces per level.

    Returns:
        Function of the document; it adds `schema_version` if the document has none.

    Raises:
        click.UsageError: document and data would both go to standard output, the file exists and is not JSON, or two
            inputs are standard input.
        PhraseToolError: the document would overwrite an input or another output, or cannot be written.
    """
    from moses_compat.files.streams import Output

    inputs, outputs = list(inputs), list(outputs)
    refuse_two_standard_inputs(inputs)
    if path is None:
        return lambda document: None
    if path == STANDARD and STANDARD in outputs:
        raise click.UsageError(
            "--json and the output both go to standard output; write one of them to a file (--json FILE or -o FILE)"
        )
    check_outputs(inputs, [*outputs, path])
    _check_file(path)
    output = click.get_current_context().with_resource(Output(path))

    def write(document: Mapping[str, Any]) -> None:
        whole = {"schema_version": SCHEMA_VERSION, **document}
        # Counts may be numpy scalars.
        text = json.dumps(whole, indent=indent, ensure_ascii=False, default=lambda value: value.item())
        output.write_text(f"{text}\n".encode("utf-8", "replace"))
        output.flush()

    return write


def _check_file(path: str) -> None:
    """Refuse an existing file that is not JSON: `--json` before an argument takes the argument as its FILE."""
    from moses_compat.files.packing import HEAD_BYTES, packing_for, without_ending

    if is_open(path) or not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    # An earlier document is JSON, plain or compressed.
    packed = without_ending(path).endswith(".json") and (packing := packing_for(path)) and packing.begins(head, path)
    if head and head[:1] not in (b"{", b"[") and not packed:
        raise click.UsageError(
            f"--json {path}: this file exists and is not JSON; name another one, or write `--json -` for standard "
            "output"
        )


# Parameters of `sentence_encoder_options` and of `encoder_options` that have no effect without `--encoder`.
SENTENCE_ENCODER = ("target_encoder", "detokenise", "prefix")
_ENCODER = (*SENTENCE_ENCODER, "normalise", "encoder_store")

sentence_encoder_options = sections(
    "Sentence encoder",
    click.option("--encoder", metavar="FOLDER",
                 help="Pretrained sentence encoder."),
    click.option("--target-encoder", metavar="FOLDER",
                 help="Encoder of the target side.  [default: the same]"),
    click.option("--detokenise", metavar="LANG",
                 help="Detokenise by language, or SOURCE,TARGET."),
    click.option("--prefix", metavar="TEXT", help="Prepend this to every text, as in 'query: '."),
)  # fmt: skip

encoder_options = sections(
    "Sentence encoder",
    sentence_encoder_options,
    click.option("--normalise", type=click.Choice(["centred-margin", "margin", "centred", "cosine"]),
                 help="Centre vectors, apply CSLS.  [default: the first]"),
    click.option("--encoder-store", metavar="FOLDER",
                 help="Folder of stored vectors.  [default: TABLE.ID.vectors]"),
)  # fmt: skip


def refuse_encoder_options() -> None:
    """Refuse options of a sentence encoder in a call that names none.

    Raises:
        click.UsageError: one of these options is on the command line.
    """
    refuse_unused(dict.fromkeys(_ENCODER, "a sentence encoder; name one with --encoder"))


def chosen_encoder(values: dict[str, Any], table: str, inputs: bool = True) -> EncoderRequest | None:
    """Take the requested encoder out of the values of all options; None without one.

    Args:
        values: values of all options by name.
        table: the table; it is read twice.
        inputs: whether the encoder is used; not if similarities exist already.

    Raises:
        click.UsageError: options contradict each other, the encoder cannot be used, or a language is unknown.
    """
    folder, more = values.pop("encoder"), {name: values.pop(name) for name in _ENCODER}
    if folder is None:
        # A configured option of an encoder is ignored if another source of similarities is typed.
        refuse_encoder_options()
        return None
    from moses_compat.files.paths import is_stream
    from moses_compat.measures.similarities import EncoderRequest

    if inputs and is_stream(table):
        raise click.UsageError("--encoder reads the table twice, so it cannot come from standard input or a pipe")
    if os.path.isfile(os.path.join(folder, "source.vocab")):
        raise click.UsageError(f"{folder} is a model of phrasetool; name it with -m")
    fields = {"target_folder" if name == "target_encoder" else name.removeprefix("encoder_"): value
             for name, value in more.items() if value is not None}  # fmt: skip
    try:
        return EncoderRequest(folder, **fields)
    except ValueError as error:
        raise click.UsageError(f"--detokenise: {error}") from error
