"""lmplz as an external program: its arguments, output and errors.  A shell script takes its place."""

import os

import pytest

from moses_compat.engine.language_models import find_lmplz, run_lmplz
from moses_compat.files.streams import Output
from phrasetool.errors import DataError, PhraseToolError
from tests.commands import read


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts a script on the PATH as lmplz and returns its path."""

    def make(script):
        path = tmp_path / "bin/lmplz"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}/usr/bin:/bin")
        return str(path)

    return make


def test_it_is_found_on_the_path(program, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert find_lmplz() is None
    path = program("true")
    assert find_lmplz() == path


@pytest.mark.parametrize("name", ["lm.arpa", "lm.arpa.gz"])
@pytest.mark.parametrize(
    ("prune", "told"),
    [
        ((), b"-o 3 -S 1073741824b --discount_fallback\n"),
        ((0, 0, 2), b"-o 3 -S 1073741824b --prune 0 0 2 --discount_fallback\n"),
    ],
)
def test_all_blocks_go_in_and_what_comes_out_is_written(program, tmp_path, name, prune, told):
    # More than a pipe can buffer, in both directions at once.
    blocks = [b"a b %d\n" % i * 3000 for i in range(40)]
    with Output(str(tmp_path / name)) as out:
        assert run_lmplz(program('echo "$@"; cat'), iter(blocks), out, 3, prune, 1 << 30) == []
    assert read(tmp_path / name) == told + b"".join(blocks)


def test_orders_whose_discounts_were_replaced_count_from_one(program, tmp_path):
    script = """cat > /dev/null
for order in 0 2; do echo "Substituting fallback discounts for order $order: D1=0.5" >&2; done
echo "something else: order 1" >&2"""
    with Output(str(tmp_path / "lm")) as out:
        assert run_lmplz(program(script), [b"a\n"], out, 3, (), 1 << 30) == [1, 3]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo '=== 1/5 ===' >&2; echo 'no <s>' >&2; echo >&2; echo ==== >&2; exit 3", "no <s>"),
        ("exit 7", "exit status 7"), ("cat > /dev/null; exit 1", "exit status 1"),
        (r"printf 'w\366rter\n' >&2; exit 1", "w\ufffdrter"),
    ],
)  # fmt: skip
def test_its_last_words_are_the_error(program, tmp_path, script, message):
    path = program(script)
    with pytest.raises(PhraseToolError) as caught, Output(str(tmp_path / "lm")) as out:
        run_lmplz(path, [b"a b c\n" * 30_000] * 5, out, 3, (), 1 << 30)
    assert str(caught.value) == f"{path}: {message}"
    assert not (tmp_path / "lm").exists()


@pytest.mark.parametrize("script", ["cat", "cat > /dev/null; exec sleep 60"])
@pytest.mark.timeout(30)
def test_a_corpus_that_cannot_be_read_stops_it(program, tmp_path, script):
    def blocks():
        yield b"a b\n"
        raise DataError("corpus", "is damaged", 2)

    with pytest.raises(DataError, match="corpus:2: is damaged"), Output(str(tmp_path / "lm")) as out:
        run_lmplz(program(script), blocks(), out, 3, (), 1 << 30)
    assert not (tmp_path / "lm").exists()
