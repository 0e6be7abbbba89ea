"""How long the command takes before it does anything."""

from __future__ import annotations

import subprocess
import sys

from measuring import COMMAND, alternate, report, summary

LOADED = """
import sys
from phrasetool_cli.main import main
try:
    main(sys.argv[1:])
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


def main() -> None:
    times = alternate({"phrasetool --help": [COMMAND, "--help"], "python -c pass": [sys.executable, "-c", "pass"]}, 15)
    torch = {}
    for name in ("annotate", "prune"):
        demo = ["examples/demo/phrase-table.gz", "-m", "demo-output/model", "-o", "/dev/null", "-q"]
        extra = ["-t", "0.5"] if name == "prune" else []
        done = subprocess.run([sys.executable, "-c", LOADED, name, *demo, *extra], stderr=subprocess.PIPE, text=True)
        torch[name] = done.stderr.split()[-1] == "True"
    report(
        "startup",
        {
            "seconds": {name: summary(values) for name, values in times.items()},
            "torch imported": torch,
            "bars": {"phrasetool --help": 0.3},
        },
    )


if __name__ == "__main__":
    main()
