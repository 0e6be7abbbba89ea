"""Build script for what `pyproject.toml` cannot configure: a wheel with compiled kernels, with PHRASETOOL_COMPILE=1.

    PHRASETOOL_COMPILE=1 pip wheel --no-build-isolation --no-deps .

Without this variable, the wheel is platform-independent, and kernels are compiled when they are first called.
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

PACKAGES = ("phrasetool", "moses_compat")


class CompiledKernels(build_py):
    """Build command that also compiles the kernels of the packages in the build folder."""

    def run(self) -> None:
        """Copy the packages, then compile their kernels if requested."""
        super().run()
        if not _wanted() or self.editable_mode:
            return
        root = Path(self.build_lib).resolve()
        build = "from pathlib import Path; from phrasetool.kernels import building; building.build({0}, {0})"
        # A separate process imports the packages from the build folder.
        environment = {**os.environ, "PYTHONPATH": str(root), "PHRASETOOL_KERNELS": "numba"}
        for package in PACKAGES:
            code = build.format(f"Path({str(root / package)!r})")
            subprocess.run([sys.executable, "-c", code], env=environment, check=True)


class Platform(Distribution):
    """Distribution that is specific to one Python version and one platform if kernels are compiled."""

    def has_ext_modules(self) -> bool:
        """Return whether the wheel is specific to a platform, because kernels are compiled."""
        return _wanted()


def _wanted() -> bool:
    return os.environ.get("PHRASETOOL_COMPILE") == "1"


setup(cmdclass={"build_py": CompiledKernels}, distclass=Platform)
