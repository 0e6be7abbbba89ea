"""Compare output files, messages and exit codes of every command of phrasetool between two checkouts, byte for byte.

    python benchmarks/same_outputs.py --before ../before --after .
    python benchmarks/same_outputs.py --before ../before --after . --quick --only prune,annotate

The cases are in `tests/outputs/*.txt`: small tables with all oddities, the demo, training, texts, invalid usage and
data, and the reference run of 1.1 million entries.  Both sides run in the same folder, one after the other, on inputs
that `before` created.  Allowed differences are listed in `tests/outputs/compare.py` only, with reasons.  A line is
printed for each difference, and the exit status is then 1; differing outputs are kept in
`work/same-outputs/differences`.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from measuring import ROOT, WORK, reference, report

sys.path.insert(1, str(ROOT))
from tests.outputs import inputs
from tests.outputs.cases import FILES, REFERENCE, Case, Step, read_cases, values
from tests.outputs.compare import ALLOWED, LEFT_OUT
from tests.outputs.running import INPUTS, Outcome, Places
from tests.outputs.sides import Server, Side

# Options that no case uses, and the reason.
UNUSED = {
    "--help": "see `LEFT_OUT`", "-h": "see `LEFT_OUT`", "--version": "see `LEFT_OUT`",
    "--unseeded": "see `LEFT_OUT`",
}  # fmt: skip


def moses_programs() -> str | None:
    """Return the folder of Moses' binarisers, or None if they are not on the PATH."""
    program = shutil.which("CreateProbingPT")
    return os.path.dirname(os.path.abspath(program)) if program else None


def selected(options: argparse.Namespace) -> list[Case]:
    """Return the requested cases."""
    tables = inputs.odd_tables()
    names = {f"@tables/{name}": inputs.scores_of(data) for name, data in tables.items()}
    choices = values(names, options.quick)
    files = [name for name in FILES if not (options.quick and name == REFERENCE)]
    cases = {case.text: case for file in files for case in read_cases(file, choices, names)}
    selected = set(options.only.split(",")) if options.only else set()
    return [
        case for case in cases.values()
        if (not selected or selected & set(case.commands)) and (not options.match or options.match in case.text)
    ]  # fmt: skip


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder; exit with an error if another process works in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{folder}: another comparison is running here; name another folder with --place")
        yield


def prepared(folder: Path, before: Side, fresh: bool, reference_run: Path | None) -> None:
    """Create the inputs, unless the same `before` created them earlier."""
    key = f"{hashlib.sha256(Path(inputs.__file__).read_bytes()).hexdigest()} {before.code} {before.commit()}"
    stamp, large_stamp = folder / "made-by", folder / "large" / "made-by"
    if fresh or not stamp.is_file() or stamp.read_text() != key:
        shutil.rmtree(folder, ignore_errors=True)
    server = Server(before)

    def run(line: str) -> None:
        run_recipe(server, folder, Step.of(line))

    if not folder.is_dir():
        print(f"making the inputs in {folder}", file=sys.stderr)
        inputs.make_inputs(folder, run)
        stamp.write_text(key)
    if reference_run and not (large_stamp.is_file() and large_stamp.read_text() == str(reference_run)):
        inputs.make_large_inputs(folder, run, reference_run)
        large_stamp.write_text(str(reference_run))
    server.close()


def run_recipe(server: Server, folder: Path, step: Step) -> None:
    """Run a command that creates an input; exit with an error if it fails."""
    log, stop = folder / "said", step.variables.get("STOP", "")
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/")}
    code = server.run(
        folder=str(folder), environment=environment, arguments=list(step.words), stop=stop,
        stdin=os.devnull, stdout=os.devnull, stderr=str(log),
    )  # fmt: skip
    if code != (130 if stop else 0):
        sys.exit(f"an input cannot be made: phrasetool {' '.join(step.words)}: exit code {code}\n{log.read_text()}")


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and modification time of all files, to detect changed inputs."""
    files = (Path(root) / name for root, _, names in os.walk(folder) for name in names)
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def unused_options(side: Side, cases: Iterable[Case]) -> dict[str, list[str]]:
    """Return for each command the options that no case uses; all options for a command without cases."""
    words = defaultdict(set)
    for case in cases:
        for step in case.steps:
            words[step.words[0] if step.words else ""].update(word.partition("=")[0] for word in step.words)

    def help_of(*command: str) -> str:
        process = subprocess.run([side.script, *command, "--help"], capture_output=True, text=True, check=True)
        return process.stdout

    commands = re.findall(r"(?m)^  ([a-z][\w-]*) +[A-Z]", help_of().partition("Tables:")[2])
    if not commands:
        sys.exit("the overview of the commands cannot be read; see unused_options")
    options_by_command = {}
    for command in commands:
        options = re.findall(r"(?m)^  (--?[\w-]+)(?:, (--?[\w-]+))?", help_of(command).partition("Example:")[0])
        # Any spelling of an option counts.
        forms = [{form for form in option if form} for option in options]
        missing = sorted(max(form, key=len) for form in forms if not form & (words[command] | UNUSED.keys()))
        if missing or not words[command]:
            options_by_command[command] = missing
    return options_by_command


def run_all(cases: list[Case], places: Places, jobs: int, keep: Path) -> list[Outcome]:
    """Run the cases; print differences, and store differing outputs in a folder."""
    shutil.rmtree(keep, ignore_errors=True)
    outcomes = []
    with ThreadPoolExecutor(jobs) as pool:

        def run(number: int) -> Outcome:
            return places.mine().run(cases[number], keep / f"{number:05}")

        waiting = [pool.submit(run, number) for number in range(len(cases))]
        for future in as_completed(waiting):
            outcome = future.result()
            outcomes.append(outcome)
            for line in outcome.differences:
                print(f"DIFFERS  phrasetool {outcome.case.text}  |  {line}", flush=True)
            if outcome.wrong:
                print(f"BAD CASE  phrasetool {outcome.case.text}  |  {outcome.wrong}", flush=True)
    order = {case: i for i, case in enumerate(cases)}
    return sorted(outcomes, key=lambda outcome: order[outcome.case])


def figures(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return numbers of compared cases and files, in total and for every command."""
    by_command: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        counts = by_command[(outcome.case.commands or ["(none)"])[-1]]
        counts.update(
            cases=1, files=outcome.files, differ=bool(outcome.differences), milliseconds=round(1e3 * outcome.seconds)
        )
        counts.update(f"exit code {code}" for code in outcome.codes)
    allowed: Counter[str] = Counter()
    for outcome in outcomes:
        allowed.update(outcome.allowed)
    return {
        "cases": len(outcomes),
        "files": sum(outcome.files for outcome in outcomes),
        "cases_that_differ": sum(bool(outcome.differences) for outcome in outcomes),
        "differences": [f"{o.case.text}: {line}" for o in outcomes for line in o.differences],
        "bad_cases": [f"{o.case.text}: {o.wrong}" for o in outcomes if o.wrong],
        "commands": {name: dict(sorted(counts.items())) for name, counts in sorted(by_command.items())},
        "allowed": {allowed_.reason: allowed[allowed_.reason] for allowed_ in ALLOWED},
        "left_out": LEFT_OUT,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="a checkout with .venv, or an interpreter next to a phrasetool")
    parser.add_argument("--after", required=True, help="the same")
    parser.add_argument("--only", help="commands, with commas between: cases in which one of them is run")
    parser.add_argument("--match", help="cases with this in their text")
    parser.add_argument("--quick", action="store_true", help="without the reference run, and with fewer ways to run")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="cases side by side")
    parser.add_argument("--fresh-processes", action="store_true", help="an interpreter for each command; slow")
    parser.add_argument("--fresh-inputs", action="store_true", help="make the inputs again")
    parser.add_argument("--place", default=str(WORK / "same-outputs"), help="the folder to work in")
    parser.add_argument("--list", action="store_true", help="print the cases and do nothing")
    options = parser.parse_args()
    cases = selected(options)
    if options.list:
        print(*(f"phrasetool {case.text}" for case in cases), sep="\n")
        return
    sides = Side.of("before", options.before), Side.of("after", options.after)
    moses = moses_programs()
    skipped = Counter()
    for reason, word, available in (("Moses' programs are not on the PATH", "$MOSES", moses),):
        if not available:
            skipped[reason] = sum(word in case.text for case in cases)
            cases = [case for case in cases if word not in case.text]
    began, folder = time.monotonic(), Path(options.place).absolute()
    with alone_in(folder):
        reference_run = None if options.quick else reference().resolve()
        prepared(folder / INPUTS, sides[0], options.fresh_inputs, reference_run)
        untouched = snapshot(folder / INPUTS)
        places = Places(folder, sides, moses, options.fresh_processes)
        try:
            outcomes = run_all(cases, places, options.jobs, folder / "differences")
        finally:
            places.close()
        summary = figures(outcomes)
        touched = {path for path, _ in snapshot(folder / INPUTS).items() ^ untouched.items()}
        if touched:
            summary["bad_cases"] += [f"the input {path} was changed" for path in sorted(touched)]
            shutil.rmtree(folder / INPUTS)
    missing = {} if options.only or options.match else unused_options(sides[0], cases)
    print(
        f"{summary['cases']:,} cases, {summary['files']:,} files compared, "
        f"{summary['cases_that_differ']:,} cases differ"
    )
    for reason, count in skipped.items():
        print(f"{count:,} cases skipped: {reason}")
    summary = {
        "before": sides[0].commit(), "after": sides[1].commit(), "seconds": round(time.monotonic() - began),
        "cpu_seconds": round(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])),
        "skipped": dict(skipped), "options_in_no_case": missing, **summary,
    }  # fmt: skip
    if options.quick or options.only or options.match:
        # Incomplete comparisons are not stored.
        print(json.dumps(summary, indent=2))
    else:
        report("same_outputs", summary)
    sys.exit(bool(summary["differences"] or summary["bad_cases"] or missing))


if __name__ == "__main__":
    main()
