"""Decoding and tuning from Python give the same results as the commands."""

import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.library import decode, tune
from phrasetool.errors import DataError
from phrasetool.watch import Watch
from tests.commands import run_inside, write
from tests.small_experiment import INI, naive_bleu, table_lines, write_experiment

SENTENCES = ["a b c d e a b", "", "zzz a yyy b", "  e\te  d ", "c"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library") / "x"
    write_experiment(folder)
    write(folder / "small.gz", b"".join(table_lines()[::3]))
    # References that the decoder can approximate, so that there is something to tune.
    other_ini = INI.replace("0.3 0.2 0.4 0.1", "0.1 0.4 0.3 0.2").replace("LM0= 0.4", "LM0= 0.3")
    write(folder / "other.ini", other_ini.encode())
    reference = decode((folder / "dev.src").read_text().splitlines(), folder / "other.ini")
    write(folder / "dev.near", "".join(f"{line}\n" for line in reference).encode())
    return folder


def done(*arguments, **options):
    outcome = run_inside(*arguments, "-q", **options)
    assert outcome.code == 0, outcome.err
    return outcome.out.decode()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("search", "flags"),
    [({}, ()), ({"algorithm": "cube", "pop_limit": 7}, ("--search", "cube", "--pop-limit", "7")),
     ({"stack_size": 1, "distortion_limit": 0}, ("--stack", "1", "--distortion-limit", "0"))],
    ids=str,
)  # fmt: skip
def test_decode_is_the_command(folder, threads, search, flags):
    ini = folder / "moses.ini"
    text = "".join(f"{sentence}\n" for sentence in SENTENCES)
    expected = done("decode", "--moses-ini", ini, *flags, "-", stdin=text.encode()).split("\n")[:-1]
    assert len(expected) == len(SENTENCES)
    assert decode(iter(SENTENCES), str(ini), search=search, threads=threads) == expected
    # Unknown words are copied.
    assert {"zzz", "yyy"} <= {*expected[2].split()}


def test_another_table(folder):
    ini, small = folder / "moses.ini", folder / "small.gz"
    text = (folder / "one.src").read_text()
    expected = done("decode", "--moses-ini", ini, "--table", small, folder / "one.src").splitlines()
    assert decode(text.splitlines(), ini, table=small) == expected
    assert decode(text.splitlines(), ini) != expected


def test_no_sentences_and_who_watches(folder):
    recorded = []

    class Telling(Watch):
        def items(self, label, total, unit, finished=0):
            recorded.append((label, total, unit))
            return super().items(label, total, unit)

    assert decode([], folder / "moses.ini", watch=Telling()) == []
    assert recorded == [("translate", 0, "sentence")]


def test_what_decode_refuses(folder):
    with pytest.raises(DataError, match=r"none\.ini: No such file"):
        decode(["a"], folder / "none.ini")
    with pytest.raises(DataError, match=r"none\.gz: No such file"):
        decode(["a"], folder / "moses.ini", table=folder / "none.gz")
    with pytest.raises(TypeError, match="stack_sise"):
        decode(["a"], folder / "moses.ini", search={"stack_sise": 3})


OPTIONS = [
    ({"iterations": 2, "seed": 3}, ("--iterations", "2", "--seed", "3")),
    ({"iterations": 3, "algorithm": "pro"}, ("--iterations", "3", "--algorithm", "pro")),
]


@pytest.mark.parametrize(("options", "flags"), OPTIONS, ids=str)
def test_tune_is_the_command(folder, tmp_path, options, flags):
    ini, source, target, out = (folder / "moses.ini", folder / "dev.src", folder / "dev.near", folder / "tuned.ini")
    done("tune", "--moses-ini", ini, "--dev", source, target, "-o", out, *flags)
    by_hand = out.read_bytes()
    out.unlink()
    result = tune(ini, source, [target], out, **options)
    assert out.read_bytes() == by_hand
    assert result.bleu == max(result.steps) > 0
    assert 1 <= len(result.steps) <= options["iterations"] + 1
    tuned = MosesModel.read(str(out))
    assert [*tuned.weights] != [*MosesModel.read(str(ini)).weights]
    for name, numbers in result.weights.items():
        part = tuned.features.slices[next(f for f in tuned.features.slices if tuned.features.name(f) == name)]
        assert tuned.weights[part].tolist() == pytest.approx(list(numbers), rel=1e-8)
    # The tuned weights give the reported BLEU.
    hypothesis = decode(source.read_text().splitlines(), out)
    assert result.bleu == pytest.approx(naive_bleu(hypothesis, target.read_text().splitlines()), abs=1e-6)


def test_what_tune_refuses(folder, tmp_path):
    ini, out = folder / "moses.ini", tmp_path / "out.ini"
    with pytest.raises(DataError, match=r"one\.trg"):
        tune(ini, folder / "dev.src", [folder / "one.trg"], out)
    with pytest.raises(TypeError, match="iteration"):
        tune(ini, folder / "dev.src", [folder / "dev.trg"], out, iteration=3)
    assert not out.exists()
