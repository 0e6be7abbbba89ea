"""`phrasetool.toml` and `--config`: defaults of options, and errors in them."""

import json
import os

import pytest

from tests.commands import run_inside, run_outside, write
from tests.tables import TABLES
from tests.variants import for_each

RULE = "[prune]\nthreshold = -1\nquiet = true\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write(tmp_path / "t", TABLES["lattice"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(folder, text, *arguments, name="phrasetool.toml"):
    (folder / name).write_text(text)
    return run_inside(*arguments)


def test_the_file_in_the_working_directory_is_read(folder, model_folder):
    outcome = configured(folder, f"{RULE}model = '{model_folder}'\n", "prune", "t")
    assert (outcome.code, outcome.out, outcome.err) == (0, TABLES["lattice"], "")


def test_a_named_file_is_read_instead(folder, model_folder):
    (folder / "phrasetool.toml").write_text("[nothing]\n")
    outcome = configured(folder, RULE, "--config", "other", "prune", "t", "-m", model_folder, name="other")
    assert (outcome.code, outcome.out) == (0, TABLES["lattice"])


def test_the_command_line_overrides_conflicting_settings(folder, model_folder):
    text = "[prune]\nthreshold = 1\nkeep-top = 0\n"
    assert configured(folder, text, "prune", "t", "-m", model_folder).out != TABLES["lattice"]
    assert run_inside("prune", "t", "-m", model_folder, "-t", "-1").out == TABLES["lattice"]
    assert run_inside("prune", "t", "-m", model_folder, "--target-size", "100%").out == TABLES["lattice"]
    assert run_inside("prune", "t", "-m", model_folder, "--method", "semantic:-1").out == TABLES["lattice"]
    refused = run_inside("prune", "t", "-m", model_folder, "--method", "semantic:-1", "-t", "-1")
    assert (refused.code, "have their own thresholds" in refused.err) == (2, True), refused.err


@pytest.mark.parametrize(
    ("settings", "typed", "message"),
    [
        ("quiet = true", ["-v"], "quiet: false"),
        ("verbose = true", ["-q"], ""),
        ("model = 'none'", ["--encoder", "missing"], "missing: no such folder"),
        ("encoder = 'none'\nprefix = 'query: '", ["-m", "missing"], "missing: no such model folder"),
        ("encoder = 'none'", ["--similarity-columns", "4,5"], ""),
        ("similarity-columns = '4,5'", ["-m", "missing"], "missing: no such model folder"),
        ("similarity-columns = '4,5'", ["--encoder", "missing"], "missing: no such folder"),
        ("model = 'none'", ["--similarity-columns", "4,5"], ""),
    ],
)
def test_the_command_line_wins_against_each_conflicting_default(folder, settings, typed, message):
    write(folder / "t", b"a ||| b ||| 0.1 0.1 0.1 0.5 0.5\n")
    source = [] if {"--encoder", "-m", "--similarity-columns"} & set(typed) else ["--similarity-columns", "4,5"]
    outcome = configured(folder, f"[prune]\n{settings}\n", "prune", "t", "-t", "-1", *source, *typed)
    assert outcome.code == (1 if "missing" in typed else 0), outcome.err
    assert message in outcome.err
    assert "none: " not in outcome.err
    assert "-v" in typed or "version: " not in outcome.err
    assert "-q" not in typed or outcome.err == ""


@pytest.mark.parametrize(
    ("settings", "typed", "message"),
    [
        ("quiet = true\nverbose = true", [], "give --quiet or --verbose, not both"),
        ("model = 'm'\nsimilarity-columns = '4,5'", [], "-m and --similarity-columns are two sources"),
        ("", ["-q", "-v"], "give --quiet or --verbose, not both"),
    ],
)
def test_conflicts_within_the_command_line_or_the_file_are_refused(folder, settings, typed, message):
    outcome = configured(folder, f"[prune]\n{settings}\n", "prune", "t", "-t", "-1", *typed)
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err


def test_a_model_and_columns_are_two_sources_for_two_criteria(folder, model_folder):
    typed = ["-t", "-1", "--method", "semantic+parallel", "--similarity-columns", "1,2", "-m", model_folder]
    outcome = run_inside("prune", "t", *typed)
    assert (outcome.code, "which the method parallel needs" in outcome.err) == (1, True), outcome.err


def test_configured_sources_of_mine_and_export_give_way(folder):
    text = "[mine]\nencoder = 'none'\nprefix = 'x'\n[export]\nmodel = 'none'\n[filter-bitext]\nkeep = '10%'\n"
    write(folder / "a", b"a\n")
    outcome = configured(folder, text, "mine", "a", "t", "-m", "missing")
    assert (outcome.code, "missing: no such model folder" in outcome.err) == (1, True), outcome.err
    outcome = run_inside("export", "t", "--to", "vmap", "--similarity-columns", "1,2")
    assert "two sources" not in outcome.err
    outcome = run_inside("filter-bitext", "a", "t", "-m", "missing", "--threshold", "0.5", "-o", "x", "y")
    assert (outcome.code, "missing: no such model folder" in outcome.err) == (1, True), outcome.err


SIMILAR = ["--similarity-columns", "5,6", "--scale", "raw"]


@pytest.mark.parametrize(
    ("settings", "typed"),
    [
        ("[prune]\nmethod = 'semantic:0.7+count:20'", ["prune", "t", *SIMILAR, "-t", "0.5"]),
        ("[prune]\nmethod = 'semantic:0.7+count:20'", ["prune", "t", *SIMILAR, "--target-size", "100%"]),
        ("[prune]\nmethod = 'semantic:0.7+count:20'", ["prune", "t", *SIMILAR, "--sweep", "0:1:0.5"]),
        ("[prune]\nmax-bleu-loss = 0.3\ndev = ['a', 'b']\nstack = 9", ["prune", "t", *SIMILAR, "-t", "0.5"]),
        ("[prune]\nmax-bleu-loss = 0.3\nnon-inferior = true", ["prune", "t", *SIMILAR, "--method", "semantic:0.5"]),
        ("[prune]\noutput = 'o'\nrejected = 'r'\nstats = 's'", ["prune", "t", *SIMILAR, "--sweep", "0:1:0.5"]),
        ("[prune]\nresume = true", ["prune", "-", *SIMILAR, "-t", "0.5"]),
        ("[annotate]\nresume = true", ["annotate", "t", "-o", "-"]),
        ("[annotate]\nrelative = true\naddress = 'auto'", ["annotate", "t", "-o", "-"]),
        ("[annotate]\ntagger = 'x'\nlanguages = 'de,en'", ["annotate", "t", "-o", "-"]),
        ("[annotate]\ntagger = 'x'\nlanguages = 'de,en'\nsyntax-columns = 'all'",
         ["annotate", "t", "--smoothing", "good-turing", "-o", "-"]),
        ("[export]\nformat = 'tbx'\nlanguages = 'de,en'", ["export", "t", "--to", "vmap"]),
        ("[export]\nformat = 'tbx'\nlanguages = 'de,en'", ["export", "t", "--to", "lexicon", "--format", "tsv"]),
        ("[export]\nformat = 'binary'", ["export", "t", "--to", "lexicon"]),
        ("[annotate]\nmoses-ini = 'i'\nweight = 1", ["annotate", "t", "-o", "-"]),
        ("[annotate]\nmoses-ini = 'i'\nmoses-ini-out = 'o'", ["annotate", "t", "-o", "-"]),
        ("[annotate]\nmoses-ini-out = 'o'", ["annotate", "t", "-o", "-"]),
        ("[augment]\nmoses-ini = 'i'\nreordering-table = 'r'", ["augment", "t", "--text", "t", "--force", "-o", "-"]),
        ("[augment]\nreordering-out = 'r'", ["augment", "t", "--text", "t", "--force", "-o", "-"]),
        ("[prune]\nreordering-table = 'r'", ["prune", "t", *SIMILAR, "-t", "0.5"]),
        ("[pivot]\nreordering-out = 'r'", ["pivot", "t", "t", "-o", "-"]),
        ("[pivot]\nreordering-tables = ['r', 'r']", ["pivot", "t", "t", "-o", "-"]),
    ],
)  # fmt: skip
def test_configured_options_without_effect_give_way(folder, settings, typed):
    table = b"".join(b"%s ||| %s ||| 0.5 0.5 0.5 0.5 0.8 0.8 ||| 0-0 ||| 9 9 9\n" % (s, s) for s in (b"a", b"b", b"c"))
    write(folder / "t", table)
    (folder / "empty.toml").write_text("")
    alone = run_inside("--config", "empty.toml", *typed, stdin=table)
    assert (alone.code, alone.out != b"") == (0, True), alone.err
    outcome = run_inside("--config", write(folder / "settings.toml", settings.encode()), *typed, stdin=table)
    assert (outcome.code, outcome.out, outcome.err) == (0, alone.out, alone.err)
    assert sorted(os.listdir(folder)) == ["empty.toml", "settings.toml", "t"]


@for_each(
    ("settings", "typed", "message"),
    [
        ("[mine]\nthreshold = 1", ["mine", "a", "t", "-m", "missing", "--dev-gold", "a"], "missing: no such model"),
        ("[mine]\ndev-gold = 'none'\ndev = ['none', 'none']", ["mine", "a", "t", "-m", "missing", "--threshold", "1"],
         "missing: no such model"),
        ("[mine]\nprobability-weight = 1", ["mine", "a", "t", "-m", "missing", "--rerank", "0"],
         "missing: no such model"),
        ("[mine]\nrerank = 0", ["mine", "a", "t", "-m", "missing", "--probability-weight", "1"],
         "missing: no such model"),
        ("[translate]\nnew-words = 'none'", ["translate", "a", "-m", "missing"], "missing: no such model"),
        ("[tune]\nsource = 'none'\nreference = 'a'\nrelative = true",
         ["tune", "--dev", "a", "a", "--moses-ini", "missing", "-o", "-"], "missing: No such file"),
        ("[moses-ini]\nrelative = true", ["moses-ini", "missing", "--table", "t"], "missing: No such file"),
        ("[moses-ini]\nname = 'none'", ["moses-ini", "--table", "missing", "--lm", "a"], "missing: No such file"),
        ("[rerank]\nsave-weights = 'none/none'",
         ["rerank", "a", "--source", "a", "--weights", "missing", "-o", "x"], "missing: No such file"),
        ("[filter-bitext]\nexplain = true", ["filter-bitext", "a", "a", "--lm", "a", "--keep", "60%", "-o", "x", "y"],
         "a: kenlm cannot read it"),
        ("[filter-bitext]\nexplain = true\nscores = 's'",
         ["filter-bitext", "a", "a", "--lm", "a", "--keep", "60%", "-o", "x", "y"], "a: kenlm cannot read it"),
        ("[filter-bitext]\ngeneral-lm = 'none'",
         ["filter-bitext", "a", "a", "--source-lm", "a", "--keep", "60%", "-o", "x", "y"], "a: kenlm cannot read it"),
        ("[annotate]\nscale = 'raw'",
         ["annotate", "t", "-m", "a", "--moses-ini", "missing", "--moses-ini-out", "o"], "missing: No such file"),
        ("[annotate]\nmoses-ini = 'none'\nmoses-ini-out = 'o'", ["annotate", "t", "-m", "missing", "--scale", "raw"],
         "missing: no such model"),
        ("[train]\nsource-text = 'none'", ["train", "phrases", "a", "--source-autoencoder", "missing"],
         "missing: no such model"),
        ("[train]\nsource-autoencoder = 'none'", ["train", "phrases", "a", "--source-text", "missing"],
         "missing: No such file"),
        ("[train]\ntemperature = 0.3", ["train", "phrases", "missing", "--loss", "cosine"], "missing: No such file"),
        ("[train]\nresume = true", ["train", "phrases", "missing", "--overwrite"], "missing: No such file"),
        ("[train]\nmargin = 0.3\ntarget-text = 'none'",
         ["train", "translator", "a", "a", "--loss", "cross-entropy", "--target-vectors", "missing"],
         "missing: No such file"),
        ("[train]\ntune-embeddings = true", ["train", "classifier", "missing", "a"], "missing: No such file"),
        ("[train]\ndev = ['none', 'none']", ["train", "bert", "missing"], "missing: No such file"),
        ("[train]\nunits = 10\nown-language = false",
         ["train", "syntax", "--start", "a", "--tagger", "missing", "--language-text", "de", "a"],
         "missing: no such model"),
        # `--dev` is the current name for other kinds, and a former name of `--dev-treebank`.
        ("[train]\ndev = ['none', 'none']", ["train", "tagger", "--treebank", "de", "missing"],
         "missing: No such file"),
    ],
)  # fmt: skip
def test_typed_options_replace_each_conflicting_default(folder, settings, typed, message):
    write(folder / "a", b"a\n")
    outcome = configured(folder, f"{settings}\n", *typed)
    assert (outcome.code, message in outcome.err) == (1, True), outcome.err


def test_a_typed_model_replaces_configured_similarities(folder, model_folder):
    text = "[prune]\nsimilarities = 's.pq'\n"
    assert configured(folder, text, "prune", "t", "-m", model_folder, "-t", "-1").code == 0
    assert (folder / "s.pq").exists()
    outcome = run_inside("prune", "t", "-m", "missing", "-t", "-1")
    assert (outcome.code, "missing: no such model folder" in outcome.err) == (1, True), outcome.err
    assert run_inside("prune", "t", "-t", "-1").out == TABLES["lattice"]


@for_each(
    ("settings", "typed", "message"),
    [
        ("model = 'none'", ["--lm", "a"], "a: kenlm cannot read it"),
        ("cross-train = true\ndev = ['a', 'a']", ["--lm", "a"], "a: kenlm cannot read it"),
        ("encoder = 'none'\nprefix = 'x'", ["--source-lm", "a"], "a: kenlm cannot read it"),
        ("lm = 'a'\ngeneral-lm = 'none'\nsource-lm = 'none'", ["-m", "missing"], "missing: no such model folder"),
        ("lm = 'a'\ngeneral-lm = 'none'", ["--encoder", "missing"], "missing: no such folder"),
        ("cross-train = true\ndev = ['a', 'a']", ["-m", "missing"], "missing: no such model folder"),
    ],
)
def test_a_typed_scorer_replaces_configured_ones(folder, settings, typed, message):
    write(folder / "a", b"a\n")
    outcome = configured(
        folder, f"[filter-bitext]\n{settings}\n", "filter-bitext", "a", "a", "--keep", "60%", "-o", "x", "y", *typed
    )
    assert (outcome.code, message in outcome.err) == (1, True), outcome.err


@for_each(
    ("settings", "typed", "message"),
    [
        ("weights = 'none'", ["--dev-list", "missing", "--dev", "a", "a"], "missing: No such file"),
        ("dev-list = 'none'\ndev = ['none', 'none']\ndev-reference = 'none'", ["--weights", "missing"],
         "missing: No such file"),
        ("dev-list = 'none'\ndev-source = 'none'\ndev-reference = ['none']", ["--weights", "missing"],
         "missing: No such file"),
    ],
)  # fmt: skip
def test_typed_weights_or_development_sets_replace_configured_ones(folder, settings, typed, message):
    write(folder / "a", b"a\n")
    outcome = configured(folder, f"[rerank]\n{settings}\n", "rerank", "a", "--source", "a", "-o", "out", *typed)
    assert (outcome.code, message in outcome.err) == (1, True), outcome.err


def test_a_repeatable_option_is_one_value_or_a_list(folder, model_folder):
    for value in (f"'{model_folder}'", f"['{model_folder}']"):
        outcome = configured(folder, f"[annotate]\nmodel = {value}\njson = 'a.json'\n", "annotate", "t", "-o", "a")
        assert outcome.code == 0, outcome.err
        assert json.loads((folder / "a.json").read_text())["columns"] == 2


def test_ems_prune_uses_the_settings_of_prune(folder, model_folder):
    outcome = configured(folder, f"{RULE}model = '{model_folder}'\n", "ems-prune", "t", "small")
    assert (outcome.code, outcome.err) == (0, "")
    assert (folder / "small.gz").exists()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[prune]\n# words\nprotekt = 'words'\n", 3, "prune has no option --protekt; did you mean protect?"),
        ("[align]\nseed = 1\n[prun]\n", 3, "unknown command 'prun'; did you mean "),
        ("prune = 1\n", 1, "expected a section [prune], found a value"),
        ("[prune]\nprotect = 'word'\n", 2, "protect of prune: 'word' is not one of"),
        ("[prune]\nquiet = 1\n", 2, "quiet of prune: expected true or false, found 1"),
        ("[prune]\nthreshold = true\n", 2, "threshold of prune: expected a number or a text, found True"),
        ("[prune]\nthreshold = [1, 2]\n", 2, "threshold of prune: expected one value, found a list"),
        ("[prune]\n\nbitext = 'one'\n", 3, "bitext of prune: expected a list of 2 values"),
        ("[prune]\ntarget-size = '130%'\n", 2, "target-size of prune: 1.3 is not in the range"),
        ("[prune]\nprotect: 'words'\n", 2, "is not valid TOML: Expected '='"),
        ("[train]\narchitectur = 'rae'\n", 2, "train has no option --architectur; did you mean architecture?"),
    ],
)
def test_errors_have_a_line_number(folder, text, line, message):
    outcome = configured(folder, text, "prune", "t", "-t", "-1")
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: phrasetool.toml:{line}: {message}")


def test_invalid_utf8(folder):
    for mark in (b"", b"\xef\xbb\xbf"):
        (folder / "phrasetool.toml").write_bytes(mark + b"[prune]\nmodel = '\xff'\n")
        assert run_inside("prune", "t").message == "phrasetool: phrasetool.toml:2: is not UTF-8 (byte 0xff)"


def test_a_byte_order_mark_is_skipped(folder):
    (folder / "phrasetool.toml").write_bytes(b"\xef\xbb\xbf[inspect]\nquiet = 1\n")
    expected = "phrasetool: phrasetool.toml:2: quiet of inspect: expected true or false, found 1"
    assert run_inside("inspect", "t").message == expected


def test_a_missing_named_file(folder):
    assert run_inside("--config", "no", "prune", "t").message == "phrasetool: no: no such configuration file"


def test_debug_may_follow_config(folder):
    outcome = run_inside("--config", "no", "--debug", "prune", "t")
    assert "Traceback" in outcome.err


def test_a_configured_command_keeps_its_help_options(folder):
    (folder / "phrasetool.toml").write_text("[lm]\norder = 3\n[filter-pt]\non-error = 'skip'\n")
    outcome = run_outside("lm", "-h", cwd=folder)
    assert (outcome.code, outcome.err) == (0, "")
    # The -h of filter-pt is not help: it declares a hierarchical table.
    assert run_outside("filter-pt", "-h", cwd=folder).err.startswith("phrasetool: error: nothing to do")


def test_the_global_help_reads_no_file(folder):
    assert configured(folder, "[nothing]\n", "--help").code == 0


def test_commands_of_the_demo_read_no_file(folder):
    """The commands that the demo runs are those that it prints, so they must not read the user's settings."""
    (folder / "phrasetool.toml").write_text("[extract]\nmax-length = 1\n[moses-ini]\nno-such = 1\n")
    outcome = run_outside("--config", os.devnull, "demo", "--files", "made", cwd=folder)
    assert outcome.code == 0, outcome.err
    assert (folder / "made/engine/moses.ini").exists()
