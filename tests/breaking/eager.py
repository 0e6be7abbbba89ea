"""`phrasetool` that stores finished work immediately instead of every few seconds, so early kills can be resumed."""

import sys

from moses_compat.files import finished_work
from phrasetool_cli.console import run

finished_work.SECONDS = 0.0
if __name__ == "__main__":
    sys.exit(run())
