"""Overhead of a cluster: `annotate --engine ray` on a cluster of this machine, compared with threads of one process.

Annotates the reference table, several concatenated copies of it (to separate the start-up cost from the cost per
entry), and the same copies in part files, which each process reads and writes directly.  The cluster is started
beforehand; commands connect to it by its address.  All outputs are compared byte for byte.
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
    # Processes are compared with as many threads, at most as many as there are cores.
    thread_engines = {count: f"{min(count, os.cpu_count() or 1)} threads" for count in options.workers}
    cluster = ["--engine", "ray", "--address", context.address_info["gcs_address"]]
    engines = {name: ["--threads", name.split()[0]] for name in thread_engines.values()} | {
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
        for count, threads in thread_engines.items()
    }
    report("cluster", {
        "copies": COPIES, "bar": 1.15, "same bytes": True, "entries in parts": entries, "engines": figures,
        "each more": ratios,
    })  # fmt: skip


def _inputs() -> tuple[dict[str, Path], int]:
    """Return the paths of one table, of its concatenated copies and of their parts, and the entries in the parts."""
    tables = {"1": reference() / "phrase-table.gz", str(COPIES): WORK / "copies.gz", PARTS: WORK / "cluster-parts"}
    with tables[str(COPIES)].open("wb") as out:
        for _ in range(COPIES):
            with tables["1"].open("rb") as table:
                shutil.copyfileobj(table, out)
    shutil.rmtree(tables[PARTS], ignore_errors=True)
    with Input(str(tables[str(COPIES)])) as source:
        parts = split_table(source, str(tables[PARTS]), PART_ENTRIES)
    return tables, sum(part.entries for part in parts)


def _commands(engines: dict[str, list[str]], tables: dict[str, Path]) -> dict[str, list[str] | str]:
    """Return the commands that annotate each table with each engine; those for parts first remove the old folder."""
    commands: dict[str, list[str] | str] = {}
    for kind, table in tables.items():
        for name, arguments in engines.items():
            output = str(_output(name, kind))
            words = [COMMAND, "annotate", str(table), "-m", model(), "-o", output, "-q", *arguments]
            commands[f"{name}, {kind}"] = words if kind != PARTS else f"rm -rf {output}; {shlex.join(words)}"
    return commands


def _compare_and_remove(engines: dict[str, list[str]], tables: dict[str, Path]) -> None:
    """Check that all engines wrote the same bytes, and remove their outputs."""
    first, *others = engines
    for kind in tables:
        first_output = _output(first, kind)
        for output in (_output(name, kind) for name in others):
            if kind == PARTS:
                names = [path.name for path in first_output.iterdir()]
                assert not any(filecmp.cmpfiles(first_output, output, names, shallow=False)[1:]), output
                shutil.rmtree(output)
            else:
                assert filecmp.cmp(first_output, output, shallow=False), output
                output.unlink()
        if kind == PARTS:
            shutil.rmtree(first_output)
        else:
            first_output.unlink()


def _output(name: str, kind: str) -> Path:
    ending = "" if kind == PARTS else ".gz"
    return WORK / f"cluster-{kind}-{name.replace(' ', '-')}{ending}"


if __name__ == "__main__":
    main()
