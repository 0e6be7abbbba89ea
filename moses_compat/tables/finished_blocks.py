"""What is made of the blocks of a table, in order; where interrupted work goes on, what was made before is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from moses_compat.files.finished_work import digest_of_bytes
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import LineScan, scan_lines
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.pipeline import run

Item = TypeVar("Item")
Made = TypeVar("Made")


def follow_blocks(
    name: str,
    items: Iterable[Item],
    work: Callable[[Item], tuple[SourceLook | None, Made]],
    order: SourceOrder,
    scan: TableScan,
    pass_over: Callable[[RawBlock, LineScan], None] = lambda raw, lines: None,
) -> Iterator[tuple[RawBlock, Made]]:
    """Each block of a table with what is made of it, in order.

    Args:
        name: of this pass through the table, where several are made.
        items: the blocks, each first in a tuple with what else belongs to it.
        work: makes something of a block, and looks at its sources; called by `scan.threads` threads.
        order: of the sources.
        scan: how the table is read; with `finished`, what was made before is not made again.
        pass_over: takes notice of a block of which that is so; called by the threads, too.

    Raises:
        DataError: as `SourceOrder.follow`, `FinishedWork.run` and `work`.
    """

    def done(item: Any) -> tuple[SourceLook | None, tuple[RawBlock, Made]]:
        look, made = work(item)
        return look, (item[0], made)

    def again(item: Any, made: Made) -> tuple[SourceLook | None, tuple[RawBlock, Made]]:
        raw = item[0]
        lines = scan_lines(raw.text, raw.scores, line_offsets=raw.line_offsets)
        pass_over(raw, lines)
        return order.look(raw, lines), (raw, made)

    def digest(item: Any) -> bytes:
        return digest_of_bytes(item[0].text)

    if scan.finished is None:
        return order.follow((scan.runner or run)(items, done, scan.threads))
    found = scan.finished.run(
        name, digest, items, done, scan.threads, lambda result: result[1][1], again, runner=scan.runner
    )
    return order.follow(found)
