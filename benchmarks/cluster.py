"""Overhead of a cluster: `annotate --engine ray` on a cluster of this machine, compared with threads of one process.

The reference table, and several of it behind each other, so that what begins once can be told from what each entry
costs; and the same in part files, which each process reads and writes directly.  The cluster runs before; a command
finds it by its address.  All outputs are compared, byte for byte.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import shlex
import shutil
from pathlib import Path

from measuring import COMMAND, WORK, alternate, compile_kernels, model, reference, report, summary

from moses_compat.files.streams import Input
from moses_compat.jobs.table_parts import split_table

COPIES = 6
PART_ENTRIES = 500_000
PARTS = "parts"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    compile_kernels()
    context = ray.init(num_cpus=max(options.workers), include_dashboard=False, log_to_driver=False)
    # Processes compared with as many threads; more of them than cores cannot be faster.
    own = {count: f"{min(count, os.cpu_count() or 1)} threads" for count in options.workers}
    cluster = ["--engine", "ray", "--address", context.address_info["gcs_address"]]
    engines = {name: ["--threads", name.split()[0]] for name in own.values()} | {
        f"{count} processes": ["--threads", str(count), *cluster] for count in options.workers
    }
    tables, entries = _inputs()
    times = alternate(_commands(engines, tables), options.rounds)
    _compare_and_remove(engines, tables)
    more = {
        name: [
            (many - once) / (COPIES - 1)
            for many, once in zip(times[f"{name}, {COPIES}"], times[f"{name}, 1"], strict=True)
        ]
        for name in engines
    }
    figures = {
        name: {
            "seconds, a table": summary(times[f"{name}, 1"]), "seconds, each table more": summary(more[name]),
            "seconds, in parts": summary(times[f"{name}, {PARTS}"]),
        }
        for name in engines
    }  # fmt: skip
    ratios = {
        f"{count} processes to {threads}": summary(
            [a / b for a, b in zip(more[f"{count} processes"], more[threads], strict=True)]
        )
        for count, threads in own.items()
    }
    report("cluster", {
        "copies": COPIES, "bar": 1.15, "same bytes": True, "entries in parts": entries, "engines": figures,
        "each more": ratios,
    })  # fmt: skip


def _inputs() -> tuple[dict[str, Path], int]:
    """One table, several behind each other, these in part files; and how many entries the parts have."""
    tables = {"1": reference() / "phrase-table.gz", str(COPIES): WORK / "copies.gz", PARTS: WORK / "cluster-parts"}
    with tables[str(COPIES)].open("wb") as out:
        for _ in range(COPIES):
            with tables["1"].open("rb") as one:
                shutil.copyfileobj(one, out)
    shutil.rmtree(tables[PARTS], ignore_errors=True)
    with Input(str(tables[str(COPIES)])) as source:
        made = split_table(source, str(tables[PARTS]), PART_ENTRIES)
    return tables, sum(part.entries for part in made)


def _commands(engines: dict[str, list[str]], tables: dict[str, Path]) -> dict[str, list[str] | str]:
    """Return the commands that annotate each table with each engine; an existing folder is removed first."""
    commands: dict[str, list[str] | str] = {}
    for kind, table in tables.items():
        for name, arguments in engines.items():
            output = str(_output(name, kind))
            words = [COMMAND, "annotate", str(table), "-m", model(), "-o", output, "-q", *arguments]
            commands[f"{name}, {kind}"] = words if kind != PARTS else f"rm -rf {output}; {shlex.join(words)}"
    return commands


def _compare_and_remove(engines: dict[str, list[str]], tables: dict[str, Path]) -> None:
    """Make sure that all engines have written the same bytes."""
    first, *others = engines
    for kind in tables:
        one = _output(first, kind)
        for other in (_output(name, kind) for name in others):
            if kind == PARTS:
                names = [path.name for path in one.iterdir()]
                assert not any(filecmp.cmpfiles(one, other, names, shallow=False)[1:]), other
                shutil.rmtree(other)
            else:
                assert filecmp.cmp(one, other, shallow=False), other
                other.unlink()
        if kind == PARTS:
            shutil.rmtree(one)
        else:
            one.unlink()


def _output(name: str, kind: str) -> Path:
    ending = "" if kind == PARTS else ".gz"
    return WORK / f"cluster-{kind}-{name.replace(' ', '-')}{ending}"


if __name__ == "__main__":
    main()
