import pytest

from moses_compat.experiments.systems import PruningGrid, PruningSystem, labels_of, ways_of


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
    assert ways_of("semantic", ("product", "rank")) == ("",)
    assert ways_of("composition*2+semantic", ("product", "union", "rank")) == ("product", "rank")
    assert ways_of("semantic:0.7+count:2", ("product", "union")) == ("union",)
    assert ways_of("semantic:0.7+count:2", ("product",)) == ("intersection",)
    with pytest.raises(ValueError, match="weights mean nothing"):
        ways_of("composition*2+semantic", ("union",))
