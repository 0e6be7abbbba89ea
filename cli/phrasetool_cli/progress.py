"""Progress of long-running work: a bar on a terminal, lines at intervals elsewhere."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from phrasetool.watch import FileProgress, ItemTick, ReadingProgress, Watch
from phrasetool_cli.command import report_step
from phrasetool_cli.messages import bars, write

if TYPE_CHECKING:
    from phrasetool.phrase_encoder.trainer import IterationReport

_INTERVAL = 30.0


# Maximum width of a bar, and seconds before it predicts the remaining time.
_WIDTH, _TOO_EARLY = 80, 3.0


def say(message: str) -> None:
    """Print a message on standard error."""
    write(message)


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _bar(**settings: Any) -> Any:
    """Return a tqdm bar that fits a terminal of 80 columns, and predicts nothing in its first seconds.

    Models are loaded and kernels compiled before the first step, so a prediction would be hours.
    """
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[type-arg, misc, unused-ignore]
        @property
        def format_dict(self) -> dict[str, Any]:
            values: dict[str, Any] = super().format_dict
            if values["elapsed"] < _TOO_EARLY:
                # Without a rate, tqdm shows "?" in place of the remaining time.
                values["rate"] = None
            return values

    columns = shutil.get_terminal_size((_WIDTH, 24)).columns
    return Bar(file=sys.stderr, ncols=min(_WIDTH, max(columns - 1, 20)), **settings)


class _Progress:
    """A bar, or lines at intervals.

    Args:
        quiet: show nothing.
        step: name of the step.
        bar: settings of tqdm.
    """

    def __init__(self, quiet: bool, step: str, **bar: Any) -> None:
        self._quiet, self._step = quiet, step
        self._start = self._last = time.monotonic()
        self._bar: Any = None
        if not quiet and sys.stderr.isatty():
            self._bar = _bar(**bar)
            bars.append(self._bar)

    def _is_time(self, now: float) -> bool:
        """Whether a line is due now."""
        if self._quiet or now - self._last < _INTERVAL:
            return False
        self._last = now
        return True

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            bars.remove(self._bar)
            self._bar.close()
        report_step(self._step, self.seconds)


class TableProgress(_Progress):
    """Progress through a table, by the bytes consumed of its file.

    Args:
        label: name of the step.
        size: bytes of the file, 0 if unknown (a pipe).
        quiet: show nothing.
    """

    def __init__(self, label: str, size: int, quiet: bool = False) -> None:
        super().__init__(
            quiet, label, total=size or None, desc=label, unit="B", unit_scale=True, leave=False, delay=0.5
        )
        self._label, self._size = label, size

    def __call__(self, position: int, entries: int) -> None:
        """Report the bytes consumed and the entries processed so far."""
        now = time.monotonic()
        rate = entries / max(now - self._start, 1e-9)
        if self._bar is not None:
            self._bar.set_postfix_str(f"{entries:,} entries, {rate:,.0f}/s", refresh=False)
            self._bar.update(position - self._bar.n)
        elif self._is_time(now):
            left = ""
            if self._size and position:
                remaining = (now - self._start) * (self._size - position) / position
                left = f", {position / self._size:.0%}, {_duration(remaining)} left"
            say(f"{self._label}: {entries:,} entries, {rate:,.0f} a second{left}")


class ItemProgress(_Progress):
    """Progress through a number of items, such as sentences.

    Args:
        label: name of the step.
        total: number of items; None if it is unknown.
        unit: name of an item, in the singular.
        quiet: show nothing.
        finished: number of items that an interrupted run completed.
    """

    def __init__(self, label: str, total: int | None, unit: str, quiet: bool = False, finished: int = 0) -> None:
        super().__init__(quiet, label, total=total, initial=finished, desc=label, unit=unit, leave=False, delay=0.5)
        self._label, self._total, self._unit = label, total, unit
        self._before = self._done = finished
        # Time at which the first items were finished, and their number.
        self._first: tuple[float, int] | None = None

    def tick(self, count: int = 1) -> None:
        """Count further finished items."""
        self._done += count
        now = time.monotonic()
        is_first = self._first is None
        if self._first is None:
            self._first = now, self._done
        if self._bar is not None:
            self._bar.update(count)
        elif self._is_time(now):
            of = "" if self._total is None else f" of {self._total:,}"
            line = f"{self._label}: {self._done:,}{of} {self._unit}s"
            if self._total is not None and is_first:
                # The time includes loading and compiling, so a prediction would be hours.
                say(line)
                return
            rate = max(self._done - self._before, 1) / (now - self._start)
            began, finished = self._first
            if self._done > finished:
                rate = max(rate, (self._done - finished) / max(now - began, 1e-9))
            left = "" if self._total is None else f", {_duration(max(self._total - self._done, 0) / rate)} left"
            say(f"{line}, {rate:,.1f} a second{left}")

    def reach(self, done: int) -> None:
        """Set the number of finished items."""
        self.tick(done - self._done)


class TrainingProgress(_Progress):
    """Progress of training: a line per iteration, above a bar on a terminal.

    Args:
        pairs: number of pairs in an iteration.
        pretrain, iterations: maximum number of iterations of each phase.
        quiet: show nothing.
        finished: number of iterations of both phases that an interrupted training completed.
    """

    def __init__(self, pairs: int, pretrain: int, iterations: int, quiet: bool = False, finished: int = 0) -> None:
        total = pairs * (pretrain + iterations)
        super().__init__(quiet, "train", total=total, initial=pairs * finished, unit="pair", unit_scale=True)
        self._pairs = pairs
        self._totals = {"pretrain": pretrain, "train": iterations}
        self._times: list[float] = []
        # Time of the first batch, and the pairs since.
        self._first: float | None = None
        self._since_first = 0

    def tick(self, pairs: int) -> None:
        """Count further processed pairs."""
        if self._first is None:
            self._first = time.monotonic()
        else:
            self._since_first += pairs
        if self._bar is not None:
            self._bar.update(pairs)

    def report(self, report: IterationReport) -> None:
        """Report a finished iteration."""
        total = self._totals[report.phase]
        text = f"{report.phase} {report.iteration}/{total}: error {report.joint_error:.4f}"
        if report.accuracy_at_1 is not None:
            text += f", accuracy@1 {report.accuracy_at_1:.3f}, AUC {report.auc:.3f}"
        now = time.monotonic()
        seconds = now - self._last
        if not self._times and self._first is not None and self._since_first:
            # Kernels are compiled or loaded before the end of the first batch.
            seconds = (now - self._first) * self._pairs / self._since_first
        self._times.append(max(seconds, 1e-9))
        self._last = now
        seconds = statistics.median(self._times)
        left = total - report.iteration + (self._totals["train"] if report.phase == "pretrain" else 0)
        remaining = f", {_duration(left * seconds)} left" if left else ""
        if not self._quiet:
            say(f"{text} ({self._pairs / self._times[-1]:,.0f} pairs/s{remaining})")


class TerminalWatch(Watch):
    """Listener that shows bars and lines.

    Args:
        quiet: show nothing but warnings.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = self.quiet = quiet
        self._warnings: set[str] = set()

    def say(self, message: str) -> None:
        """Print a message, unless quiet."""
        if not self._quiet:
            say(message)

    def warn(self, message: str) -> None:
        """Print a warning, once: a file that is read several times may cause the same warning each time."""
        if message not in self._warnings:
            self._warnings.add(message)
            write(message, "warning")

    @contextlib.contextmanager
    def file(self, label: str, size: int) -> Iterator[FileProgress]:
        """Show progress through a file."""
        with TableProgress(label, size, self._quiet) as progress:
            yield progress

    @contextlib.contextmanager
    def items(self, label: str, total: int, unit: str, finished: int = 0) -> Iterator[ItemTick]:
        """Show progress through items."""
        with ItemProgress(label, total, unit, self._quiet, finished) as progress:
            yield progress.tick

    @contextlib.contextmanager
    def reading(self, paths: Mapping[str, str]) -> Iterator[ReadingProgress]:
        """Show progress through files that are read one after another."""
        bars: dict[str, TableProgress] = {}
        with contextlib.ExitStack() as shown:

            def report(label: str, position: int, entries: int) -> None:
                if label not in bars:
                    shown.close()
                    size = os.path.getsize(paths[label]) if os.path.isfile(paths[label]) else 0
                    bars[label] = shown.enter_context(TableProgress(f"reading the {label}", size, self._quiet))
                bars[label](position, entries)

            yield report
