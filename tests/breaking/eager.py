"""`phrasetool` that keeps finished work at once, not every few seconds: what is killed early can be resumed, too."""

import sys

from moses_compat.files import finished_work
from phrasetool_cli.console import run

finished_work.SECONDS = 0.0
if __name__ == "__main__":
    sys.exit(run())
