"""Cheap variants of a test, run within one test case."""

import functools
import inspect
from collections.abc import Mapping

import pytest

# Reporting a failure may take longer than running a variant.
MOST_FAILURES = 3


def for_each(names, variants):
    """Run a test with each variant, as `pytest.mark.parametrize` does, but as one test case.

    This is for variants of milliseconds.  They run until `MOST_FAILURES` have failed; the error lists these.  Each
    variant has a separate `tmp_path`, and its changes by `monkeypatch` are undone.

    Args:
        names: name of an argument of the test, or a tuple of names.
        variants: values, or tuples of values if there are several arguments; the keys of a mapping name its values.
    """
    rows = list(variants.items()) if isinstance(variants, Mapping) else [(None, value) for value in variants]
    if not rows:
        raise ValueError("a test without variants tests nothing")

    def decorate(test):
        @functools.wraps(test)
        def every(**fixtures):
            failures, skips = [], []
            for number, (label, value) in enumerate(rows):
                values = {names: value} if isinstance(names, str) else dict(zip(names, value, strict=True))
                try:
                    _run(test, number, {**fixtures, **values})
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"variant: {label or repr(values)[:300]}")
                    failures.append(failure)
                    if len(failures) == MOST_FAILURES:
                        break
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of the first {number + 1} variants fail", failures)
            if len(skips) == len(rows):
                raise skips[0]

        signature = inspect.signature(test)
        kept = [
            parameter
            for name, parameter in signature.parameters.items()
            if name not in (names if isinstance(names, tuple) else (names,))
        ]
        every.__signature__ = signature.replace(parameters=kept)
        return every

    return decorate


def _run(test, number, arguments):
    if "tmp_path" in arguments:
        arguments["tmp_path"] = arguments["tmp_path"] / str(number)
        arguments["tmp_path"].mkdir()
    if "monkeypatch" not in arguments:
        return test(**arguments)
    with arguments["monkeypatch"].context() as patch:
        return test(**{**arguments, "monkeypatch": patch})
