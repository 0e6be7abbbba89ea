"""Builds what `pyproject.toml` cannot say: a wheel whose kernels are compiled, with PHRASETOOL_COMPILE=1.

    PHRASETOOL_COMPILE=1 pip wheel --no-build-isolation --no-deps .

Without it the wheel fits every platform, and kernels are compiled when they are first called.
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

PACKAGES = ("phrasetool", "moses_compat")


class CompiledKernels(build_py):
    """Compiles the kernels of what was copied into the build folder."""

    def run(self) -> None:
        """Copy the packages, then compile."""
        super().run()
        if not _wanted() or self.editable_mode:
            return
        root = Path(self.build_lib).resolve()
        build = "from pathlib import Path; from phrasetool.kernels import building; building.build({0}, {0})"
        # A process of its own: the packages have to be those of the build folder.
        environment = {**os.environ, "PYTHONPATH": str(root), "PHRASETOOL_KERNELS": "numba"}
        for package in PACKAGES:
            code = build.format(f"Path({str(root / package)!r})")
            subprocess.run([sys.executable, "-c", code], env=environment, check=True)


class Platform(Distribution):
    """A wheel with compiled kernels is of one Python and one platform."""

    def has_ext_modules(self) -> bool:
        """Whether it is."""
        return _wanted()


def _wanted() -> bool:
    return os.environ.get("PHRASETOOL_COMPILE") == "1"


setup(cmdclass={"build_py": CompiledKernels}, distclass=Platform)
