"""Sentence pairs to train a translator or a classifier on: options, and reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from phrasetool.errors import DataError
from phrasetool_cli.checks import refuse_unused
from phrasetool_cli.parameter_types import FiniteRange
from phrasetool_cli.progress import TableProgress, TerminalWatch

if TYPE_CHECKING:
    from phrasetool.training.data import TextPairs


def _one_pair(
    context: click.Context, parameter: click.Parameter, pairs: tuple[tuple[str, str], ...]
) -> tuple[str, str] | None:
    if len(pairs) > 1:
        raise click.UsageError("--dev names one development set", context)
    return pairs[0] if pairs else None


# Several values are refused; without `multiple`, click would silently use the last one.
dev_option = click.option(
    "--dev", "development", nargs=2, multiple=True, metavar="SOURCE TARGET", callback=_one_pair,
    help="Development set.  [default: 5 % of the pairs]",
)  # fmt: skip

min_pair_count_option = click.option(
    "--min-pair-count", type=FiniteRange(0), default=0, metavar="C",
    help="Leave out pairs with a smaller joint count.",
)  # fmt: skip


@dataclass(frozen=True)
class PairFiles:
    """The files that sentence pairs are read from.

    Attributes:
        files: the two sides of a bitext, or phrase pairs.
        development: the two sides of a development set; None to hold out a part of the pairs.
        min_pair_count: phrase pairs with a smaller count are left out.
    """

    files: tuple[str, ...]
    development: tuple[str, str] | None
    min_pair_count: float

    def __post_init__(self) -> None:
        if len(self.files) > 2:
            raise click.UsageError(
                f"expected the two sides of a bitext, or one file of phrase pairs; {len(self.files)} files were given"
            )
        if len(self.files) == 2:
            refuse_unused({"min_pair_count": "phrase pairs, which have counts"})

    @property
    def all(self) -> list[str]:
        """Every file that is read."""
        return [*self.files, *(self.development or ())]

    def record(self, escaped: bool) -> dict[str, Any]:
        """Return the record of the files for `config.json`, with whether their words were escaped."""
        names = ("pairs_file",) if len(self.files) == 1 else ("source_file", "target_file")
        files: dict[str, Any] = dict(zip(names, self.files, strict=True))
        return {**files, "development_files": list(self.development or ()), "escaped": escaped}

    def read(
        self, max_length: int, seed: int, watch: TerminalWatch, quiet: bool,
        check: Callable[[TextPairs, tuple[str, ...]], None] | None = None,
    ) -> tuple[TextPairs, TextPairs]:  # fmt: skip
        """Read the training pairs and the development set.

        Args:
            max_length: pairs with a side of more words are left out.
            seed: random seed of the pairs that are held out.
            watch: receives the numbers of pairs left out and held out.
            quiet: whether to show no progress.
            check: raises an error if the texts of some files cannot be used; None for no further check.

        Raises:
            DataError: a file cannot be read, or has no usable pairs.
        """
        from moses_compat.corpora.bitexts import read_parallel_texts, read_phrase_texts
        from phrasetool.training.data import held_out

        with TableProgress("read texts", 0, quiet) as reading:
            if len(self.files) == 1:
                everything = read_phrase_texts(self.files[0], max_length, self.min_pair_count, reading)
            else:
                everything = read_parallel_texts(self.files[0], self.files[1], reading)
        if check is not None:
            check(everything, self.files)
        texts = _short(everything, max_length, self.files[-1], watch)
        if self.development is None:
            try:
                texts, held = held_out(texts, seed)
            except ValueError as error:
                raise DataError(self.files[0], str(error)) from error
            watch.say(f"{len(held):,} pairs are held out as the development set")
            return texts, held
        with TableProgress("read the development set", 0, quiet) as reading:
            held = read_parallel_texts(*self.development, reading)
        if check is not None:
            check(held, self.development)
        return texts, _short(held, max_length, self.development[1], watch)


def _short(texts: TextPairs, max_length: int, name: str, watch: TerminalWatch) -> TextPairs:
    try:
        short = texts.up_to(max_length)
    except ValueError as error:
        raise DataError(name, str(error)) from error
    if left_out := len(texts) - len(short):
        watch.say(f"{name}: {left_out:,} pairs of more than {max_length} words a side are left out")
    return short
