"""`annotate` and `prune` with an external sentence encoder."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import phrasetool
from moses_compat.measures.similarities import EncoderRequest
from phrasetool.text_encoders.encoders import StaticEncoder
from tests.commands import clean_environment, read, run_inside, run_outside, write
from tests.text_encoder_folders import WORDS, sentence_folder, static_folder, table_lines, transformer_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return static_folder(tmp_path_factory.mktemp("encoder") / "static")


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "t.gz", table_lines(400))


def similarities(path):
    """Return the similarities that the last two columns of a table encode."""
    lines = read(path).splitlines()
    return np.log([[float(x) for x in line.split(b" ||| ")[2].split()[-2:]] for line in lines]) + 1


def test_annotate(folder, table, tmp_path):
    outcome = run_inside("annotate", table, "--encoder", folder, "-o", tmp_path / "a.gz", "--json", tmp_path / "a.json")
    assert outcome.code == 0, outcome.err
    assert "ranks true pairs above random ones with AUC" in outcome.err
    assert "thresholds of other encoders and models do not apply" in outcome.err
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["columns"] == 2
    assert document["model_fits"][0]["auc"] > 0.8
    assert list(document["model_fits"][0]["quantiles"]) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    result = similarities(tmp_path / "a.gz")
    assert result.shape == (400, 2)
    assert abs(np.median(result) - document["model_fits"][0]["quantiles"]["0.5"]) < 0.05


def test_from_python(folder, table, tmp_path):
    request = EncoderRequest(str(folder))
    counts = phrasetool.annotate(table, tmp_path / "p.gz", encoder=request)
    assert (counts.entries, counts.unscored) == (400, 0)
    run_inside("annotate", table, "--encoder", folder, "-o", tmp_path / "c.gz", "-q")
    assert read(tmp_path / "p.gz") == read(tmp_path / "c.gz")
    pruned = phrasetool.prune(table, tmp_path / "s.gz", threshold=0.1, protect="none", keep_top=0, encoder=request)
    assert 0 < pruned.statistics.kept < 400


def test_annotate_with_a_model_too(folder, table, model_folder, tmp_path):
    outcome = run_inside(
        "annotate", table, "--encoder", folder, "-m", model_folder, "-o", tmp_path / "a.gz", "--force", "-q"
    )
    assert outcome.code == 0, outcome.err
    assert all(len(line.split(b" ||| ")[2].split()) == 8 for line in read(tmp_path / "a.gz").splitlines())
    run_inside("annotate", table, "--encoder", folder, "-o", tmp_path / "b.gz", "-q")
    np.testing.assert_array_equal(similarities(tmp_path / "a.gz"), similarities(tmp_path / "b.gz"))


def test_prune_by_threshold_and_saved_scores(folder, table, tmp_path):
    prune = ("prune", table, "-t", "0.1", "--keep-top", "0", "--protect", "none", "-q")
    saved = tmp_path / "scores.parquet"
    scored = run_inside(
        *prune, "--encoder", folder, "--similarities", saved, "-o", tmp_path / "one.gz", "--stats", tmp_path / "s"
    )
    assert scored.code == 0, scored.err
    statistics = json.loads((tmp_path / "s").read_text())
    assert statistics["signature"].startswith("encoder:static-")
    assert statistics["model_fit"]["auc"] > 0.8
    # The second run needs neither the encoder nor its vectors.
    (store,) = tmp_path.glob("t.*.vectors")
    shutil.rmtree(store)
    reused = run_inside(*prune, "--similarities", saved, "-o", tmp_path / "other.gz")
    assert reused.code == 0, reused.err
    assert 0 < len(read(tmp_path / "one.gz")) < len(read(table))
    assert read(tmp_path / "one.gz") == read(tmp_path / "other.gz")
    annotated = tmp_path / "a.gz"
    run_inside("annotate", table, "--encoder", folder, "-o", annotated, "-q")
    kept = [line for line, s in zip(read(table).splitlines(), similarities(annotated), strict=True) if s[0] > 0.1001]
    assert set(kept) <= set(read(tmp_path / "one.gz").splitlines())


@pytest.mark.parametrize("options", [("--target-size", "0.5", "--method", "semantic+count"), ("--sweep", "0:0.4:0.2")])
def test_prune_by_size_and_sweep(options, folder, table, tmp_path):
    output = () if "--sweep" in options else ("-o", tmp_path / "o.gz")
    outcome = run_inside("prune", table, "--encoder", folder, *options, *output)
    assert outcome.code == 0, outcome.err
    assert outcome.out.count(b"\n") >= 3 if "--sweep" in options else len(read(tmp_path / "o.gz").splitlines()) <= 200


def test_all_kinds_of_folders(table, tmp_path):
    plain = transformer_folder(tmp_path / "plain")
    for folder in (plain, sentence_folder(tmp_path / "sentence", plain)):
        out = tmp_path / f"{folder.name}.gz"
        # The weights are random: only characters that words share make pairs similar.
        outcome = run_inside("annotate", table, "--encoder", folder, "--prefix", "q ", "-o", out, "--force")
        assert outcome.code == 0, outcome.err
        assert np.ptp(similarities(out)) > 0.1


def test_the_store_can_be_named(folder, table, tmp_path):
    for _ in range(2):
        outcome = run_inside(
            "annotate", table, "--encoder", folder, "--encoder-store", tmp_path / "kept", "-o", tmp_path / "a.gz", "-q"
        )
        assert outcome.code == 0, outcome.err
    assert (tmp_path / "kept" / "store.json").is_file()
    assert not list(tmp_path.glob("*.vectors"))
    other_encoder = static_folder(tmp_path / "other", config={"normalize": False})
    outcome = run_inside("annotate", table, "--encoder", other_encoder, "--encoder-store", tmp_path / "kept", "-q")
    assert outcome.code == 1
    assert "holds vectors of another encoder" in outcome.message
    assert outcome.message.endswith("; name another folder with --encoder-store")
    changed = write(tmp_path / "changed.gz", table_lines(300, seed=9))
    outcome = run_inside("annotate", changed, "--encoder", folder, "--encoder-store", tmp_path / "kept", "-q")
    assert outcome.code == 1
    assert "it was made from another table; name another folder with --encoder-store" in outcome.message
    assert not (tmp_path / "changed.annotated.gz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("annotate", "-", "--encoder", "e"), "--encoder reads the table twice"),
        (("prune", "-t", "0.5", "--encoder", "e"), "--encoder reads the table twice"),
        (("annotate", "t.gz", "--prefix", "query: "), "--prefix is for a sentence encoder; name one with --encoder"),
        (("annotate", "t.gz", "--encoder-store", "s"), "--encoder-store is for a sentence encoder"),
        (
            ("annotate", "t.gz", "--encoder", "e", "--detokenise", "german"),
            "--detokenise: 'german' is not a language code",
        ),
        (("prune", "t.gz", "-t", "0.5", "--encoder", "e", "-m", "m"), "--encoder and --model are two sources"),
        (
            ("prune", "t.gz", "-t", "0.5", "--encoder", "e", "--similarity-columns", "5,6"),
            "--encoder and --similarity-columns are two sources",
        ),
        *(
            (
                ("prune", "t.gz", "-t", "0.5", "--method", method, "--similarity-columns", "5,6", "-m", "m"),
                "-m and --similarity-columns are two sources of similarities; give one",
            )
            for method in ("semantic", "parallel", "parallel+syntax", "count")
        ),
    ],
)
def test_bad_usage(arguments, message):
    outcome = run_inside(*arguments)
    assert outcome.code == 2
    assert message in outcome.err


def test_a_phrasetool_model_is_not_a_sentence_encoder(model_folder, table):
    outcome = run_inside("annotate", table, "--encoder", model_folder)
    assert outcome.code == 2
    assert f"{model_folder} is a model of phrasetool; name it with -m" in outcome.err


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_incomplete_folders(missing, table, tmp_path):
    folder = static_folder(tmp_path / "static")
    (folder / missing).unlink()
    outcome = run_inside("annotate", table, "--encoder", folder)
    assert outcome.code == 1
    assert "has no tokenizer.json" in outcome.message or "holds no weights in safetensors" in outcome.message
    assert not list(tmp_path.glob("*annotated*"))


def test_a_missing_package_is_named(table, tmp_path):
    folder = static_folder(tmp_path / "static")
    code = (
        "import sys; sys.modules['tokenizers'] = None; from phrasetool_cli.main import main; "
        f"main(['annotate', {str(table)!r}, '--encoder', {str(folder)!r}])"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert outcome.returncode == 1
    assert "phrasetool[encoders]" in outcome.stderr, outcome.stderr


def test_an_encoder_with_unaligned_languages_is_refused(tmp_path):
    vectors = np.random.default_rng(1).normal(size=(len(WORDS), 8))
    unaligned, table = static_folder(tmp_path / "apart", vectors=vectors), write(tmp_path / "t.gz", table_lines(1500))
    outcome = run_inside("prune", table, "-t", "0", "--encoder", unaligned, "-o", tmp_path / "o.gz")
    assert outcome.code == 1
    assert "hardly better than chance (AUC 0." in outcome.err.splitlines()[-1]
    assert outcome.err.splitlines()[-1].endswith("--force continues anyway")
    assert not (tmp_path / "o.gz").exists()


def test_an_interrupted_run_is_resumed(folder, table, tmp_path, monkeypatch):
    encode, left = StaticEncoder.encode, [1]

    def interrupted(self, texts, side):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return encode(self, texts, side)

    monkeypatch.setattr(StaticEncoder, "encode", interrupted)
    assert run_inside("annotate", table, "--encoder", folder, "--threads", "1").code == 130
    monkeypatch.setattr(StaticEncoder, "encode", encode)
    assert run_inside("annotate", table, "--encoder", folder, "-q").code == 0
    again = write(tmp_path / "again.gz", table_lines(400))
    assert run_inside("annotate", again, "--encoder", folder, "-q").code == 0
    assert read(tmp_path / "t.annotated.gz") == read(tmp_path / "again.annotated.gz")


LIBRARIES = {"phrasetool.text_encoders.encoders", "torch", "transformers", "sentence_transformers", "tokenizers"}
CHECK = f"sys.exit(bool({LIBRARIES} & set(sys.modules)))"


@pytest.mark.parametrize("command", ["annotate", "prune", "train"])
def test_help_imports_no_model_library(command):
    code = f"import sys\nfrom phrasetool_cli.main import cli\ntry:\n    cli(['{command}', '--help'])\n"
    code += "except SystemExit:\n    pass\n" + CHECK
    outcome = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, check=False)
    assert outcome.returncode == 0, outcome.stderr


def test_a_phrasetool_model_imports_no_model_library(model_folder, tmp_path):
    table = write(tmp_path / "t.gz", b"das haus ||| the house ||| 0.5\n")
    code = (
        "import sys\nfrom phrasetool_cli.main import main\ntry:\n"
        f"    main(['annotate', {str(table)!r}, '-m', {str(model_folder)!r}, '-q'])\nexcept SystemExit as end:\n"
        "    assert not end.code, end.code\n"
    ) + CHECK
    outcome = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert (tmp_path / "t.annotated.gz").is_file()


def test_static_vectors_import_no_torch(folder, table):
    outcome = run_outside("annotate", table, "--encoder", folder, "-q", PYTHONPROFILEIMPORTTIME="1")
    assert outcome.code == 0
    assert "safetensors" in outcome.err
    assert " torch\n" not in outcome.err
