"""What `phrasetool --version` says: all that figures depend on, in the form of sacrebleu's signatures."""

from __future__ import annotations

# Packages whose version can change a figure or a byte of an output.
PACKAGES = (
    "numpy", "numba", "torch", "gensim", "scikit-learn", "eflomal", "sacrebleu", "pyarrow", "isal",
    "deflate",
)  # fmt: skip


def version_signature() -> str:
    """`phrasetool VERSION`, then `name:version` of Python, the packages and the system, with `|` between."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from phrasetool import __version__

    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    found["system"] = f"{platform.system()}-{platform.machine()}"
    return "|".join([f"phrasetool {__version__}", *(f"{name}:{value}" for name, value in found.items())])
