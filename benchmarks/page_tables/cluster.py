"""Tables for the documentation: overhead of a cluster, and estimated times of large tables."""

from __future__ import annotations

from page_tables.kept_results import find, markdown

_ONE = {"1 threads": "1 thread", "1 processes": "1 process"}
# Sizes of tables, machines, and cores of a machine.
SIZES, MACHINES, CORES = (10**9, 10**11), (1, 10, 100), 16


def costs() -> str:
    """Return a table that compares threads of one process with as many processes of a cluster."""
    copies, more = find("cluster/copies"), find("cluster/each more")
    ratios = {name.partition(" to ")[0]: measured["median"] for name, measured in more.items()}
    rows = []
    for name, measured in find("cluster/engines").items():
        each = f"{measured['seconds, each table more']['median']:.1f} s"
        ratio = f"{ratios[name]:.2f}" if name in ratios else ""
        rows.append([
            _ONE.get(name, name), f"{measured['seconds, a table']['median']:.1f} s", each, ratio,
            f"{measured['seconds, in parts']['median']:.1f} s",
        ])  # fmt: skip
    return markdown(
        f"workers | one table | each further table | ratio to threads | {copies} tables, in part files", rows
    )


def _time(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def projection() -> str:
    """Return a table of estimated times in part files, if each core is as fast as the measured process."""
    entries = find("cluster/entries in parts")
    rate = entries / find("cluster/engines/1 processes/seconds, in parts/median")
    rows = [[f"{size:,}", *(_time(size / (rate * CORES * machines)) for machines in MACHINES)] for size in SIZES]
    head = " | ".join(f"{machines} {'machine' if machines == 1 else 'machines'}" for machines in MACHINES)
    return markdown(f"entries | {head}", rows)


TABLES = {"what a cluster costs": costs, "large tables on a cluster": projection}
