"""Coverage-guided fuzzing of the same targets with Atheris: `python -m tests.fuzz.guided TARGET`.

Atheris (`pip install atheris`) is not a dependency of the tests.  It measures coverage of Python code, not of kernels.
Further arguments are those of libFuzzer, such as -max_total_time=600 and a folder of initial inputs.
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

    # Valid inputs compile the kernels.
    for seed in target.seeds:
        attempt(seed)
    atheris.Setup([sys.argv[0], *sys.argv[2:]], attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
