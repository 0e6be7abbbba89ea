"""What a cluster costs: `annotate --engine ray` on a cluster of this machine, against threads of one process.

The reference table, and several of it behind each other, so that what begins once can be told from what each entry
costs; and the same in part files, which each process reads and writes by itself.  The cluster runs before; a command
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
from moses_compat.jobs.parts.part_folder import split_table

COPIES = 6
PART_ENTRIES = 500_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    compile_kernels()
    folder = model()
    tables = {1: reference() / "phrase-table.gz", COPIES: WORK / "copies.gz"}
    with tables[COPIES].open("wb") as out:
        for _ in range(COPIES):
            with tables[1].open("rb") as one:
                shutil.copyfileobj(one, out)
    found = ray.init(num_cpus=max(options.workers), include_dashboard=False, log_to_driver=False)
    address = found.address_info["gcs_address"]
    # Processes beside as many threads; more of them than the machine has cores cannot be faster than that.
    cores = os.cpu_count() or 1
    own = {count: f"{min(count, cores)} threads" for count in options.workers}
    engines = {name: ["--threads", name.split()[0]] for name in own.values()} | {
        f"{count} processes": ["--threads", str(count), "--engine", "ray", "--address", address]
        for count in options.workers
    }
    commands: dict[str, list[str] | str] = {
        f"{name}, {copies}": [
            COMMAND, "annotate", str(table), "-m", folder, "-o", str(_output(name, copies)), "-q", *arguments
        ]
        for copies, table in tables.items()
        for name, arguments in engines.items()
    }  # fmt: skip
    parts = WORK / "cluster-parts"
    shutil.rmtree(parts, ignore_errors=True)
    with Input(str(tables[COPIES])) as source:
        entries = sum(part.entries for part in split_table(source, str(parts), PART_ENTRIES))
    folders = {name: WORK / f"cluster-parts-{name.replace(' ', '-')}" for name in engines}
    for name, arguments in engines.items():
        annotate = shlex.join(
            [COMMAND, "annotate", str(parts), "-m", folder, "-o", str(folders[name]), "-q", *arguments]
        )
        commands[f"{name}, parts"] = f"rm -rf {folders[name]}; {annotate}"
    times = alternate(commands, options.rounds)
    first = next(iter(engines))
    more = {}
    for name in engines:
        for copies in tables:
            assert filecmp.cmp(_output(name, copies), _output(first, copies), shallow=False), (name, copies)
        both = zip(times[f"{name}, {COPIES}"], times[f"{name}, 1"], strict=True)
        more[name] = [(many - once) / (COPIES - 1) for many, once in both]
    for made in folders.values():
        names = [path.name for path in folders[first].iterdir()]
        assert not any(filecmp.cmpfiles(made, folders[first], names, shallow=False)[1:]), made
        shutil.rmtree(made if made != folders[first] else parts)
    shutil.rmtree(folders[first])
    figures = {
        name: {
            "seconds, a table": summary(times[f"{name}, 1"]),
            "seconds, each table more": summary(more[name]),
            "seconds, in parts": summary(times[f"{name}, parts"]),
        }
        for name in engines
    }
    ratios = {
        f"{count} processes to {threads}": summary(
            [a / b for a, b in zip(more[f"{count} processes"], more[threads], strict=True)]
        )
        for count, threads in own.items()
    }
    report(
        "cluster",
        {
            "copies": COPIES,
            "bar": 1.15,
            "same bytes": True,
            "entries in parts": entries,
            "engines": figures,
            "each more": ratios,
        },
    )
    for name in engines:
        for copies in tables:
            _output(name, copies).unlink()


def _output(name: str, copies: int) -> Path:
    return WORK / f"cluster-{name.replace(' ', '-')}-{copies}.gz"


if __name__ == "__main__":
    main()
