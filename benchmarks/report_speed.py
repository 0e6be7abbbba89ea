"""Time, memory and page size of `phrasetool report` on the reference table, with inputs for more and more modules."""

from __future__ import annotations

import json
import subprocess

from measuring import COMMAND, WORK, compile_kernels, model, reference, report, summary, usage

ROUNDS = 5
BARS = {"with a model, s": 60, "page, bytes": 4 << 20}


def main() -> None:
    compile_kernels()
    WORK.mkdir(exist_ok=True)
    folder, page, small = reference(), WORK / "table.html", WORK / "report.small.gz"
    table, texts = folder / "phrase-table.gz", folder.parent
    subprocess.run([COMMAND, "prune", table, "-m", model(), "--target-size", "30%", "-o", small, "-q"], check=True)
    runs = {
        "table alone": [],
        "with a model": ["-m", model()],
        "all modules": [
            "-m", model(), "--moses-ini", folder / "moses.ini", "--dev", texts / "dev.de", texts / "dev.en",
            "--bitext", texts / "train.de.gz", texts / "train.en.gz", "--compare", small,
        ],
    }  # fmt: skip
    figures: dict[str, object] = {}
    for name, options in runs.items():
        command = [COMMAND, "report", table, *options, "--threads", "2", "-o", page, "-q"]
        usages = [usage(command) for _ in range(ROUNDS)]
        figures[f"{name}, s"] = summary([process.wall for process in usages])
        figures[f"{name}, MB"] = round(max(process.peak for process in usages) / 1e6)
        figures[f"{name}, bytes"] = page.stat().st_size
    document = subprocess.run(
        [COMMAND, "report", table, "-o", page, "--json", "-", "-q"], check=True, capture_output=True
    ).stdout  # fmt: skip
    report("report_speed", {**figures, "entries": json.loads(document)["entries"], "bars": BARS})


if __name__ == "__main__":
    main()
