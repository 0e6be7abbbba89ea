from moses_compat.experiments.report.facts import duration, fact_lists
from moses_compat.experiments.report.pages import write_report


def test_facts_of_any_shape():
    facts = {
        "config": {"prune": {"sizes": [0.1, 0.05], "quick": True, "x": None}, "seed": 1},
        "machine": {"cores": 2},
        "commands": ["a b", ["c", "d"]],
        "seconds": {"all": 59.96},
    }
    found = {facts.name: facts for facts in fact_lists(facts)}
    assert found["config"].rows == (
        ("prune.sizes", "0.1, 0.05"),
        ("prune.quick", "yes"),
        ("prune.x", ""),
        ("seed", "1"),
    )
    assert [value for _, value in found["commands"].rows] == ["a b", "c d"]
    assert found["time"].rows == (("all", "60.0 s"),)
    assert list(fact_lists({})) == []
    write_report("x", {}, facts)


def test_durations():
    assert [duration(seconds) for seconds in (0.04, 7.25, 61, 3725)] == ["0.0 s", "7.2 s", "1 min 1 s", "1 h 2 min"]
