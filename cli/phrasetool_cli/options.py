"""Options that several commands share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from phrasetool_cli.checks import check_outputs, is_given
from phrasetool_cli.command import sections, verbose_option
from phrasetool_cli.parameter_types import Share, finite_number, size_in_bytes

if TYPE_CHECKING:
    from moses_compat.files.finished_work import FinishedWork
    from moses_compat.jobs.annotate import IniEdit
    from phrasetool.cluster.ray_runner import RayRunner
    from phrasetool.watch import Watch

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Option = Callable[[_Function], _Function]

_DEFAULT_MODEL = "phrasetool-model"
WHICH_MODEL = "[default: $PHRASETOOL_MODEL, else ./phrasetool-model]"


def default_model() -> str:
    """`$PHRASETOOL_MODEL`, or the folder `phrasetool train` writes."""
    return os.environ.get("PHRASETOOL_MODEL", _DEFAULT_MODEL)


def available_processors() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


model_option = click.option("-m", "--model", "model_folder", metavar="FOLDER", help=f"Model folder.  {WHICH_MODEL}")

reading_option = click.option(
    "--reading", type=click.Choice(["normalised", "density"]), default="normalised",
    help="How a translator scores an entry: by the probabilities of its words among all words, or, faster, by their "
         "densities alone.",
)  # fmt: skip


def output_option(help_text: str = "Where to write.") -> _Option[Any]:
    """`--output`, by default standard output."""
    return click.option(
        "-o", "--output", default="-", show_default=False, metavar="FILE",
        help=f"{help_text}  [default: -, standard output]",
    )  # fmt: skip


def threads_option(help_text: str = "Worker threads.") -> _Option[Any]:
    """`--threads`, by default all processors."""
    return click.option(
        "--threads", type=click.IntRange(1), default=available_processors, show_default=False, metavar="N",
        help=f"{help_text}  [default: all processors]",
    )  # fmt: skip


force_option = click.option("--force", is_flag=True, help="Go on although a check says that the input makes no sense.")
# How much a command says.
quiet_option = sections(
    None,
    click.option("--quiet", "-q", is_flag=True, is_eager=True, help="No progress, no summary."),
    verbose_option,
)


def device_option(help_text: str = "Where to compute: cpu, cuda or auto.") -> _Option[Any]:
    """`--device`."""
    return click.option("--device", default="auto", metavar="NAME", help=help_text)


def _chosen_device(name: str) -> str:
    # A CPU needs no torch.
    if name == "cpu":
        return name
    from phrasetool.nn.device import choose_device

    return str(choose_device(name))


scoring_device_option = click.option(
    "--device", type=_chosen_device, default="cpu", show_default=True, metavar="NAME",
    help="Where a model of phrases encodes: cpu, cuda or auto.  On a GPU similarities differ in their last digits.",
)  # fmt: skip

seed_option = click.option("--seed", type=click.IntRange(0), default=1, metavar="N", help="Random seed.")

allow_empty_option = click.option(
    "--allow-empty", is_flag=True, help="Go on although there is nothing to read, as may be in a pipeline."
)  # fmt: skip

sort_option = click.option(
    "--sort", is_flag=True,
    help="Sort TABLE first, as Moses does (LC_ALL=C sort), on disk if it is large.",
)  # fmt: skip

# Options of every command that streams a table.
table_options = sections(
    "How the table is read",
    click.option("--on-error", type=click.Choice(["fail", "skip", "keep"]), default="fail",
                 help="What to do about a line that is not a table entry: stop, leave it out, or pass it through."),
    threads_option(),
    allow_empty_option,
    force_option,
    click.option("--block-bytes", type=size_in_bytes, default="2M", metavar="SIZE",
                 help="How much text a thread takes at a time.  Changes speed and memory, never the output."),
    click.option("--max-line", type=size_in_bytes, default="16M", metavar="SIZE",
                 help="Refuse a line of more bytes, before it fills the memory."),
    None,
    quiet_option,
)  # fmt: skip

# The options that name a model, for every command that decodes.
decoder_model_options = sections(
    "Model",
    click.option("--moses-ini", "ini", required=True, metavar="FILE", help="The model: a moses.ini (version 2)."),
    click.option("--table", metavar="FILE", help="Use this phrase table instead of the one the ini names."),
    click.option("--reordering-table", metavar="FILE", help="Use this reordering table instead of the ini's."),
)

# Options of the search, named as in `SearchOptions`; what is not given is None: as in the ini, else as in Moses.
search_options = sections(
    "Search",
    click.option("--search", "algorithm", type=click.Choice(["stack", "cube"]),
                 help="Every extension of every hypothesis, or cube pruning: the most promising ones only.  "
                      "[default: ini, else stack]"),
    click.option("--stack", "stack_size", type=click.IntRange(1), metavar="N",
                 help="Hypotheses a stack keeps.  [default: ini, else 200]"),
    click.option("--pop-limit", type=click.IntRange(1), metavar="N",
                 help="Hypotheses cube pruning makes for a stack.  [default: ini, else 1000]"),
    click.option("--beam-threshold", type=Share(max_open=True), metavar="P",
                 help="Drop hypotheses less probable than this share of their stack's best.  "
                      "[default: ini, else 1e-5]"),
    click.option("--distortion-limit", type=int, metavar="N",
                 help="Words a jump may span; -1: any, up to 63.  [default: ini]"),
    click.option("--table-limit", type=click.IntRange(0), metavar="N",
                 help="Options per source phrase; 0: all.  [default: ini, else 20]"),
)  # fmt: skip

weight_option = click.option(
    "--weight", type=finite_number, default=0.0, metavar="W",
    help="Start weight of columns that the table in the ini did not have; 0 leaves every translation as it was.",
)  # fmt: skip

relative_option = click.option(
    "--relative", is_flag=True,
    help="In the ini that is written, make all paths relative to its folder.  Moses has to be started there.",
)  # fmt: skip

engine_options = sections(None, threads_option(), quiet_option)

# Options of the commands that rescore n-best lists.
list_source_option = click.option(
    "--source", required=True, metavar="FILE",
    help="The text that the list translates, a tokenised sentence a line; sentence 0 of the list is its first line.",
)  # fmt: skip

neural_column_options = sections(
    "What the columns say",
    click.option("--length", type=click.Choice(["words", "none"]), default="words",
                 help="Divide a log probability by the words it is of, and their end, or leave it."),
    click.option("--each", is_flag=True,
                 help="A column a model; else a column a direction, the mean of its models' log probabilities."),
)  # fmt: skip


def translators_option(required: bool) -> _Option[Any]:
    """`--model`, several times."""
    return click.option(
        "-m", "--model", "folders", multiple=True, required=required, metavar="FOLDER",
        help="A neural translator, of either direction: its vocabularies tell.  Again for another one.",
    )  # fmt: skip


cluster_options = sections(
    click.option("--engine", type=click.Choice(["threads", "ray"]), default="threads",
                 help="Who works: threads of this process, or as many processes of a Ray cluster, which begins on this "
                      "machine if --address names none.  The output is the same."),
    click.option("--address", metavar="HOST:PORT", help="Of the Ray cluster; `auto` for one that runs here."),
)  # fmt: skip


def chosen_runner(engine: str, address: str | None, threads: int) -> RayRunner | None:
    """What has work done; None for threads.

    Args:
        engine, address: as given.
        threads: of this process, or processes of a cluster that begins here.

    Raises:
        click.UsageError: an address without a cluster.
        ModuleNotFoundError: Ray is not installed.
        PhraseToolError: there is no cluster at the address.
    """
    if engine == "threads":
        if address is not None:
            raise click.UsageError("--address is for --engine ray")
        return None
    # Ray counts who uses it, unless told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from phrasetool.cluster.ray_runner import RayRunner

    return RayRunner(address, threads)


resume_option = click.option(
    "--resume", is_flag=True,
    help="Keep what is finished beside the output, in OUTPUT.unfinished, until all is done; and go on from what an "
         "interrupted run with --resume left there.",
)  # fmt: skip


def check_resumable(resume: bool, source: str, output: str) -> None:
    """Refuse to keep what is finished where there is no place for it, or where the input cannot be read again.

    Raises:
        click.UsageError: there is none, or it cannot.
    """
    from moses_compat.files.names import is_stream

    if resume and ("-" in (source, output) or is_stream(source) or is_stream(output)):
        raise click.UsageError("--resume keeps what is finished beside the output; expected files to read, and -o FILE")


def finished_work(
    resume: bool, output: str, source: str, files: Iterable[str], settings: Mapping[str, object], watch: Watch
) -> contextlib.AbstractContextManager[FinishedWork | None]:
    """What an interrupted run left, and what this one will keep; without `--resume` nothing, and it is forgotten.

    Args:
        resume: whether it was given.
        output: what is made.
        source: what it is made from.
        files: others that it depends on.
        settings: options that it depends on.
        watch: is told that work goes on.

    Raises:
        PhraseToolError: there is no place for it, see `check_resumable`; what is there is of another run; or a file
            cannot be read.
    """
    if not resume:
        return _forgetting(output)
    from moses_compat.files.finished_work import FinishedWork, described

    told = {os.path.abspath(file): described(file) for file in files}
    told |= {name.replace("_", " "): str(value) for name, value in settings.items()}
    return FinishedWork(output, source, told, watch.say)


@contextlib.contextmanager
def _forgetting(output: str) -> Iterator[None]:
    """Remove what an interrupted run kept of an output, once that is made anew."""
    from moses_compat.files.finished_work import forget_finished
    from moses_compat.files.names import is_stream

    yield
    if not is_stream(output):
        forget_finished(output)


def ini_edit(
    table: str, output: str, ini: str | None, ini_output: str | None, weight: float, scale: str, relative: bool,
    reordering: str | None = None,
) -> IniEdit | None:  # fmt: skip
    """Check all that can be wrong with an ini, before any work starts; it is to name another reordering table, too, if
    one is given."""
    if ini is None and ini_output is None:
        if is_given("weight"):
            raise click.UsageError("--weight is for the ini that --moses-ini-out writes")
        if relative:
            raise click.UsageError("--relative is for the ini that --moses-ini-out writes")
        return None
    if ini is None or ini_output is None:
        raise click.UsageError("--moses-ini and --moses-ini-out need each other")
    if scale == "raw":
        raise click.UsageError(
            "--scale raw is not for Moses: the logarithm of a negative score is no number, even at weight 0"
        )
    for option, path in (("TABLE", table), ("--output", output), ("--moses-ini-out", ini_output)):
        if path == "-":
            raise click.UsageError(f"with --moses-ini, {option} must be a file")

    from moses_compat.jobs.annotate import IniEdit, ini_beside

    there = ini_beside(table, ini)
    check_outputs([table, ini, *there.paths], [output, ini_output, reordering])
    if reordering:
        from moses_compat.ini.editing import with_reordering_table

        there = with_reordering_table(there, os.path.abspath(reordering))
    return replace(IniEdit.of(there, table, output, ini_output, weight), relative=relative)
