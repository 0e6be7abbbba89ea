"""The same targets for Atheris, which looks for inputs that reach new code: `python -m tests.fuzz.guided TARGET`.

Atheris (`pip install atheris`) is not among the packages that tests need.  It sees into Python, not into kernels.  The
options are libFuzzer's, as -max_total_time=600, and a folder of inputs to begin with.
"""

from __future__ import annotations

import sys


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["phrasetool", "moses_compat", "phrasetool_cli"]):
        from tests.fuzz.worker import family_of

        target = family_of(sys.argv[1])

    def attempt(data: bytes) -> None:
        target.attempt(target.head + b"\n" + data if target.lines else data)

    # What is right compiles the kernels.
    for seed in target.seeds:
        attempt(seed)
    atheris.Setup([sys.argv[0], *sys.argv[2:]], attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
