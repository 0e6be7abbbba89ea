"""Record the argument types of kernels, for the lists of kernels that are compiled ahead of time.

    python benchmarks/kernel_signatures.py

Runs the demo and the tests of all commands and of the library (about ten minutes), and writes `kernel_signatures.txt`
of both packages, the signatures of the demo first.  Run it when the arguments of a kernel have changed; numba still
compiles a kernel with an unlisted signature when it is called.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import ROOT

from phrasetool.kernels.building import OF_DEMO, OF_OTHERS, SIGNATURES
from phrasetool.kernels.jit import RECORD

RUNS = {
    OF_DEMO: ["-m", "phrasetool", "demo", "{0}/demo"],
    OF_OTHERS: ["-m", "pytest", "-q", "tests/cli", "tests/library"],
}
PACKAGES = ("phrasetool", "moses_compat")


def main() -> None:
    sections: dict[str, list[str]] = {}
    listed: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for number, (heading, run) in enumerate(RUNS.items()):
            record = Path(folder) / f"record-{number}"
            words = [word.format(folder) for word in run]
            subprocess.run([sys.executable, *words], cwd=ROOT, env={**os.environ, RECORD: str(record)}, check=False)
            lines = {line for line in record.read_text().splitlines() if "?" not in line} - listed
            sections[heading] = sorted(lines)
            listed |= lines
    for package in PACKAGES:
        package_sections = {
            heading: [line for line in lines if line.startswith(package)] for heading, lines in sections.items()
        }
        text = "\n".join(line for heading, lines in package_sections.items() for line in [heading, *lines])
        (ROOT / package / SIGNATURES).write_text(f"{text}\n")
        print(f"{package}: {' and '.join(str(len(lines)) for lines in package_sections.values())} signatures")


if __name__ == "__main__":
    main()
