import pytest

from moses_compat.engine.eflomal_priors import read_priors
from phrasetool.errors import DataError
from tests.commands import write

TEXT = "LEX\tHaus\thouse\t3\nLEX\t<NULL>\tthe\t0.5\nFERF\tHaus\t1\t2\nFERR\thouse\t2\t1\nHMMF\t-1\t4\nHMMR\t2\t1e2\n"


def test_reads(tmp_path):
    priors = read_priors(str(write(tmp_path / "priors.gz", TEXT.encode())))
    assert priors.lexical == [("Haus", "house", 3), ("<NULL>", "the", 0.5)]
    assert priors.fertilities == ([("Haus", 1, 2)], [("house", 2, 1)])
    assert priors.jumps == ({-1: 4}, {2: 100})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "LEX\ta\t1",
        "LEX\ta\tb\tx",
        "LEX\ta\tb\tnan",
        "LEX\ta\tb\t-1",
        "FERF\ta\tb\t1",
        "FERR\ta\t-1\t1",
        "HMMF\t1.5\t1",
        "X\t1\t2",
    ],
)  # fmt: skip
def test_bad_lines(tmp_path, line):
    path = write(tmp_path / "priors", f"{TEXT}{line}\nLEX\ta\tb\t1\n".encode())
    with pytest.raises(DataError, match=r"priors:7: not a prior: expected LEX"):
        read_priors(str(path))
