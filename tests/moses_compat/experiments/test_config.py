"""Experiment configurations: values, defaults, and errors in one line."""

import shutil
import tomllib
from pathlib import Path

import pytest

from moses_compat.experiments.config import parse_config, read_experiment_config
from moses_compat.experiments.settings import AFFORDABLE, PruningSystem
from phrasetool.errors import DataError
from phrasetool.pruning.measures import COUNTS, LOSSES, SIMILARITIES
from tests.moses_compat.experiments.written_configs import GOOD, config_of


def test_what_is_left_out_has_a_value(folder):
    config = config_of(folder, GOOD)
    assert config.name == "c"
    assert config.output == str(folder / "experiment")
    assert config.bitext.source == str(folder / "a")
    assert (config.seed, config.samples, config.sentences) == (1, 1000, None)
    assert config.moses is config.annotate is config.neighbours is None
    assert config.needs == {SIMILARITIES, COUNTS, LOSSES}
    assert config.encodes
    assert config.prune.sizes == (0.5, 0.1)
    systems = list(config.prune.systems())
    assert len(systems) == 6
    assert systems[2] == PruningSystem("composition+semantic", "product", "size", 0.5, "words", AFFORDABLE, 0)
    assert systems[4] == PruningSystem("random", "", "size", 0.5, "words", AFFORDABLE, 1)


def test_everything_can_be_said(folder):
    text = (
        """\
name = "all"
output = "there/it/is"
seed = 3
samples = 10
[moses]
ini = "moses.ini"
table = "a"
pairs = "b"
"""
        + GOOD.replace("sizes = [0.1, 0.5]", "sizes = 0.5")
        + """\
combine = ["product", "rank"]
protect = ["all", "words"]
keep_top = {"0.07" = 3, "1" = 10}
seeds = [1, 2]
thresholds.semantic = [0.7, 0.8]
[model]
folder = "model"
options.temperature = 0.2
[annotate]
dimensions = [50, 100]
columns = ["semantic", "semantic + composition"]
tuning_seeds = 1
start = "ini"
sizes = [0.1, 1]
[ladder]
columns = ["kneser-ney", "semantic"]
rerank = "model"
sizes = [0.05, 0.1]
[neighbours]
phrases = ["a b", "c"]
[search]
algorithm = "stack"
table_limit = 0
"""
    )
    config = config_of(folder, text)
    assert config.output == str(folder / "there" / "it" / "is")
    assert config.moses.reordering_table is None
    assert config.prune.best_of(0.07) == 3
    assert config.prune.best_of(0.0701) == 10
    # semantic: 1 size and 2 thresholds; composition+semantic: 2 combinations; random: 2 seeds; all with 2 protections.
    assert len(list(config.prune.systems())) == 2 * (3 + 2 + 2)
    assert config.annotate.tuning_seeds == (1,)
    assert config.annotate.columns == ("semantic", "semantic+composition")
    assert config.annotate.measured == {"semantic", "composition"}
    assert config.annotate.sizes == (1, 0.1)
    assert config.ladder.columns == "kneser-ney+semantic"
    assert config.ladder.augment
    assert config.ladder.rerank == (str(folder / "model"),)
    assert config.ladder.sizes == (0.1, 0.05)
    assert config.search.algorithm == "stack"
    quick = config.quick()
    assert quick.output == str(folder / "there" / "it" / "is" / "quick")
    assert quick.sentences == 200
    assert quick.annotate.dimensions == (50,)
    assert quick.ladder.tuning_seeds == (1,)
    assert len(list(quick.prune.systems())) == 2 + 1 + 1


def test_criteria_with_thresholds_of_their_own(folder):
    config = config_of(folder, GOOD.replace('"random"', '"semantic:0.7+significance:a+e"'))
    system = list(config.prune.systems())[-1]
    assert (system.rule, system.combine, system.kind) == (
        "threshold", "intersection", "semantic:0.7+significance:a+e (intersection)"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sizes =", "size =", "unknown key prune.size; did you mean sizes?"),
        ("[prune]", '[search]\nalgorithm = "stack"\npop_limit = 9\n[prune]', "search.pop_limit: limits cube pruning"),
        ("[prune]", "[prun]", "unknown key prun; did you mean prune?"),
        ("[data.dev]", "[data.devel]", "unknown key data.devel; did you mean dev?"),
        ("[prune]", "zzz = 1\n[prune]", "unknown key data.tests.news.zzz; expected source, target"),
        ("sizes = [0.1, 0.5]", "sizes = []", "prune.sizes: is empty; give shares"),
        ("sizes = [0.1, 0.5]", "", "prune.sizes: is empty; give shares"),
        ('["semantic", "composition+semantic", "random"]', "[]", "prune.methods: is empty; give methods"),
        ("0.5]", "1.5]", "prune.sizes: holds 1.5; a size is a share"),
        ("0.5]", "0]", "prune.sizes: holds 0; a size is a share"),
        ("0.5]", "nan]", "prune.sizes: nan is not a finite number"),
        ("0.5]", '"x"]', "prune.sizes: 'x' is not a number"),
        ("0.5]", "true]", "prune.sizes: True is not a number"),
        ('"random"', '"randm"', "prune.methods: unknown criterion 'randm'; did you mean random?"),
        ('"random"', '"count+syntax"', "prune.methods: the method count\\+syntax is not supported in experiments"),
        ('"random"', '"significance"', "give \\[data.bitext\\]"),
        ('"random"', '"composition+usage"', "uses are counted in forced decoding .* give \\[data.bitext\\]"),
        ("[prune]", '[annotate]\ncolumns = "semantic+forced"\n[prune]', "uses are counted .* give \\[data.bitext\\]"),
        ("[prune]", "[ladder]\n[prune]", "uses are counted .* give \\[data.bitext\\]"),
        (
            "[prune]",
            '[ladder]\ncolumns = "composition"\n[prune]',
            "ladder.columns: holds 'composition'; expected semantic,",
        ),
        ("[prune]", '[ladder]\ncolumns = ""\nsizes = 1\n[prune]', "ladder.sizes: holds 1; the full table is there"),
        ("[prune]", '[ladder]\ncolumns = ""\nmethod = "semantic:0.7"\n[prune]', "ladder.method: has thresholds"),
        ("[prune]", '[ladder]\ncolumns = ""\nmethod = "significance"\n[prune]', "significance is tested on the bitext"),
        ("[prune]", '[ladder]\nrerank = "gone"\n[prune]', "ladder.rerank: there is no folder .*gone"),
        (
            "[prune]",
            '[ladder]\ncolumns = ""\naugment = false\nsizes = []\n[prune]',
            "ladder: has no steps: give at least one of columns, augment, rerank and sizes",
        ),
        ("[prune]", "[build]\nlm_order = 1\n[prune]", "build.lm_order: is 1; expected 2 or more"),
        ("[prune]", "[build]\nlm_order = 101\n[prune]", "build.lm_order: is 101; expected 100 or less"),
        ("[prune]", "[build]\nmax_phrase_length = 51\n[prune]", "build.max_phrase_length: is 51; expected 50 or less"),
        ("sizes", 'combine = "sum"\nsizes', "prune.combine: holds 'sum'; expected product, rank"),
        ("sizes", 'protect = "word"\nsizes', "prune.protect: holds 'word'; expected all, words, none"),
        ("sizes", "keep_top = -1\nsizes", "prune.keep_top: is -1; expected 0 or more"),
        ("sizes", "keep_top = {big = 3}\nsizes", "prune.keep_top: has the key 'big'"),
        ("sizes", "seeds = []\nsizes", "prune.seeds: is empty"),
        (
            "sizes",
            "thresholds.semantic = [7]\nsizes",
            "prune.thresholds.semantic: 7.0 is outside the range of semantic",
        ),
        ('"random"', '"semantic:7"', "prune.methods: 7 is outside the range of semantic"),
        ("sizes", "thresholds = 0.7\nsizes", "prune.thresholds: 0.7 is not a table"),
        ('source = "a"', 'source = "gone"', "source: there is no file .*gone"),
        ('source = "a"', "", "the key data.*source is missing"),
        ("tests.news", "tests.dev", "data.tests.dev: is the name of another text"),
        ("[prune]", '[model]\nfolder = "gone"\n[prune]', "model.folder: there is no folder .*gone"),
        ("[prune]", "[model]\noptions.temprature = 1\n[prune]", "model.options.temprature; did you mean temperature?"),
        ("[prune]", '[model]\nloss = "margin"\n[prune]', "model.loss: is 'margin'; did you mean max-margin\\?"),
        ("[prune]", '[model]\nencoder = "meanmax"\n[prune]', "model.encoder: is 'meanmax'; did you mean mean-max\\?"),
        ("[prune]", "[model]\noptions.head = 2\n[prune]", "unknown key model.options.head"),
        ("[prune]", "[model]\noptions.temperature = 0.01\n[prune]", "\\[model\\]: temperature is 0.01, expected"),
        ("[prune]", "[model]\noptions.optimizer = 3\n[prune]", "\\[model\\]: optimizer is 3, expected text"),
        ("[prune]", '[model]\nencoder = "mean-max"\ndimension = 30\n[prune]', "\\[model\\]: 4 heads cannot share 15"),
        (
            "[prune]",
            '[model]\nencoder = "mean-max"\n[annotate]\ndimensions = [512, 31]\n[prune]',
            "annotate.dimensions: mean-max makes vectors of an even dimension",
        ),
        ("[prune]", '[annotate]\ncolumns = ["x"]\n[prune]', "annotate.columns: holds 'x'; expected semantic"),
        ("[prune]", "[annotate]\ntuning_seeds = []\n[prune]", "annotate.tuning_seeds: is empty"),
        ("[prune]", "[annotate]\ncolumns = []\n[prune]", "annotate.columns: is empty, and there is one size only"),
        ("[prune]", "[annotate]\nsizes = [1, 2]\n[prune]", "annotate.sizes: holds 2; a size is a share"),
        ("[prune]", "[search]\nstack = 0\n[prune]", "search.stack: is 0; expected 1 or more"),
        ("[prune]", "[prune", "not TOML"),
    ],
)
def test_what_is_wrong_is_named(folder, old, new, message):
    text = '[moses]\nini = "moses.ini"\n' + GOOD[GOOD.index("[data.dev]") :]
    assert old in text
    with pytest.raises(DataError, match=message) as caught:
        config_of(folder, text.replace(old, new, 1))
    assert str(caught.value).startswith(str(folder / "c.toml") + ": ")
    assert "\n" not in str(caught.value)


def test_too_little_is_refused(folder):
    with pytest.raises(DataError, match="nothing to do: give at least one of"):
        config_of(folder, GOOD[: GOOD.index("[prune]")])
    with pytest.raises(DataError, match="give \\[moses\\] with a finished model"):
        config_of(folder, GOOD[GOOD.index("[data.dev]") :])
    tests = GOOD[GOOD.index("[data.tests.news]") : GOOD.index("[prune]")]
    with pytest.raises(DataError, match=r"data.tests: is empty"):
        config_of(folder, GOOD.replace(tests, ""))
    with pytest.raises(DataError, match="No such file"):
        read_experiment_config(str(folder / "none.toml"))


def test_another_folder_to_write_to(folder):
    values = tomllib.loads(GOOD)
    assert parse_config(values, str(folder / "c.toml"), "elsewhere").output == "elsewhere"


def test_the_encoder_brings_its_dimension_and_options(folder):
    more = '[model]\nencoder = "mean-max"\nloss = "sampled"\noptions.heads = 8\noptions.negatives = 2\n'
    model = config_of(folder, GOOD + more).model
    assert (model.encoder, model.loss, model.dimension) == ("mean-max", "sampled", 512)
    assert model.options == {"heads": 8, "negatives": 2}


def test_the_example_can_be_read(tmp_path):
    example = Path(__file__).parents[3] / "examples" / "experiments" / "demo.toml"
    (tmp_path / "examples" / "experiments").mkdir(parents=True)
    (tmp_path / "demo-output" / "engine").mkdir(parents=True)
    for name in ("train", "dev", "test"):
        for side in ("zh", "en"):
            (tmp_path / "demo-output" / "engine" / f"{name}.{side}").write_text("a\n")
    path = shutil.copy(example, tmp_path / "examples" / "experiments")
    config = read_experiment_config(path)
    assert config.output == str(tmp_path / "demo-output" / "experiment")
    # Settings that are commented out are valid.
    text = example.read_text()
    for line in ("keep_top = 10", 'combine = ["product", "rank"]', "sizes = [1, 0.5]"):
        assert f"# {line}" in text
        Path(path).write_text(text.replace(f"# {line}", line))
        read_experiment_config(path)
