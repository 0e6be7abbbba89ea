import subprocess
import sys

from tests.commands import clean_environment

SCRIPT = """
import sys
from phrasetool.smt.corpus.symbols import Symbols
assert Symbols().add(b"word") == 0
print("scipy" in sys.modules)
import scipy.linalg
from sklearn.isotonic import isotonic_regression
print(isotonic_regression([2.0, 0.0]).tolist())
"""


def test_kernels_import_no_scipy_and_leave_it_as_it_is():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=clean_environment()
    )
    assert done.stdout.splitlines() == ["False", "[1.0, 1.0]"]
