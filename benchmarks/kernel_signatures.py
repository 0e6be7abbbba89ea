"""Record what kernels are called with, into the lists that are compiled ahead of time.

    python benchmarks/kernel_signatures.py

Runs the tests of all commands and of the library, and the demo, some ten minutes, and writes `kernel_signatures.txt` of
both packages.  To be run when a kernel has got other arguments; a kernel that is called with what no list has is still
compiled by numba when it is called.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import ROOT

from phrasetool.kernels.building import SIGNATURES
from phrasetool.kernels.jit import RECORD

RUNS = (["-m", "pytest", "-q", "tests/cli", "tests/library"], ["-m", "phrasetool", "demo", "{0}/demo"])
PACKAGES = ("phrasetool", "moses_compat")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        for run in RUNS:
            words = [word.format(folder) for word in run]
            subprocess.run([sys.executable, *words], cwd=ROOT, env={**os.environ, RECORD: str(record)}, check=False)
        lines = sorted({line for line in record.read_text().splitlines() if "?" not in line})
    for package in PACKAGES:
        ours = [line for line in lines if line.startswith(package)]
        (ROOT / package / SIGNATURES).write_text("\n".join(ours) + "\n")
        print(f"{len(ours)} signatures of {package}")


if __name__ == "__main__":
    main()
