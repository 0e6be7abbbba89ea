"""Entry point of `python -m phrasetool`."""

import importlib

if __name__ == "__main__":
    # Imported by name, because the package must not depend on the command line.
    importlib.import_module("phrasetool_cli.console").run()
