import pytest

from moses_compat.experiments.settings import PruningGrid, PruningSystem, combinations_of, labels_of
from phrasetool.pruning.measures import COUNTS, FORCED, LOSSES, SIMILARITIES, SMOOTHED, USES
from tests.moses_compat.experiments.written_configs import GOOD, config_of


def test_labels_say_what_differs_and_are_unique():
    grid = PruningGrid(("semantic", "count+random"), ("product", "rank"), (0.28, 0.005), {"semantic": (0.7,)},
                       ("words", "none"), {1.0: 2}, (1, 2))  # fmt: skip
    systems = [PruningSystem(), *grid.systems()]
    labels = labels_of(systems)
    assert len(set(labels.values())) == len(systems) == 1 + 2 * 3 + 2 * 2 * 2 * 2
    assert labels[systems[0]] == "full"
    assert "semantic 28 %, protect words" in labels.values()
    assert "semantic at 0.7, protect none" in labels.values()
    assert "count+random (rank) 0.5 %, protect none, seed 2" in labels.values()


def test_who_looks_at_meaning():
    methods = ("composition+usage", "composition+semantic+usage", "usage:1", "semantic:0.7+usage:1")
    systems = list(PruningGrid(methods, ("product",), (0.1,)).systems())
    assert [system.semantic for system in systems] == [False, True, False, True]
    assert not PruningSystem().semantic


def test_short_labels_where_nothing_else_differs():
    grid = PruningGrid(("random", "semantic:0.7"), sizes=(0.1,))
    assert list(labels_of(list(grid.systems())).values()) == ["random 10 %", "semantic:0.7"]


def test_only_ways_that_mean_something():
    assert combinations_of("semantic", ("product", "rank")) == ("",)
    assert combinations_of("composition*2+semantic", ("product", "union", "rank")) == ("product", "rank")
    assert combinations_of("semantic:0.7+count:2", ("product", "union")) == ("union",)
    assert combinations_of("semantic:0.7+count:2", ("product",)) == ("intersection",)
    with pytest.raises(ValueError, match="weights have no effect"):
        combinations_of("composition*2+semantic", ("union",))


def test_what_forced_decoding_is_needed_for(folder):
    config = config_of(folder, GOOD)
    assert not config.counts_uses
    config = config_of(folder, GOOD.replace('"random"', '"composition+usage"'))
    assert config.counts_uses
    assert config.needs == {SIMILARITIES, COUNTS, LOSSES, USES}
    config = config_of(folder, GOOD + '[annotate]\ncolumns = ["forced + semantic"]\n')
    assert config.counts_uses
    assert config.annotate.columns == ("forced+semantic",)
    assert config.needs == {SIMILARITIES, COUNTS, LOSSES, FORCED}
    pruned = '[annotate]\ncolumns = []\nsizes = [1, 0.1]\nmethod = "composition+usage"\n'
    assert config_of(folder, GOOD + pruned).counts_uses


def test_smoothed_columns_need_no_bitext_and_no_model(folder):
    config = config_of(folder, GOOD.replace('"random"', '"count"') + '[annotate]\ncolumns = ["kneser-ney+forced"]\n')
    assert config.needs >= {SMOOTHED, FORCED}
    only = config_of(folder, GOOD[: GOOD.index("[prune]")] + '[annotate]\ncolumns = "kneser-ney"\n')
    assert only.needs == {SMOOTHED}
    assert not only.encodes
    assert not only.counts_uses
