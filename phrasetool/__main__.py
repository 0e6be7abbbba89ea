"""`python -m phrasetool`: the command."""

import importlib

if __name__ == "__main__":
    # By name: the package itself never imports the command line.
    importlib.import_module("phrasetool_cli.console").run()
