"""The plan of a ladder."""

import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.experiments.build import BuildPlan
from moses_compat.experiments.ladder import TESTS, plan_ladder
from tests.commands import run_inside, write
from tests.moses_compat.experiments.written_configs import TEXTS, config_of
from tests.small_experiment import INI

REORDERING = b"""[feature]
LexicalReordering name=LexicalReordering0 type=wbe-msd-backward-fe-allff input-factor=0 output-factor=0 path=reordering
"""
CONFIG = """\
[moses]
ini = "moses.ini"
{tables}
{texts}[ladder]
columns = ""
augment = false
tuning_seeds = 1
"""


@pytest.mark.parametrize("tables", [("table",), ("reordering_table",), ("table", "reordering_table")], ids="+".join)
def test_tables_that_replace_those_of_the_ini(tmp_path, tables):
    write(tmp_path / "moses.ini", INI.encode().replace(b"[feature]\n", REORDERING) + b"LexicalReordering0= 1 1 1\n")
    for name in ("table.gz", "table"):
        write(tmp_path / name, b"a ||| x ||| 0.5 0.4 0.3 0.2\n")
    for name in ("reordering", "reordering_table"):
        write(tmp_path / name, b"a ||| x ||| 0.5 0.3 0.2\n")
    for name in ("a", "b", "lm.arpa"):
        write(tmp_path / name, b"a\n")
    named = "\n".join(f'{name} = "{name}"' for name in tables)
    config = config_of(tmp_path, CONFIG.format(tables=named, texts=TEXTS))
    built = BuildPlan(config.moses.ini, config.moses.table, config.moses.reordering_table)
    plan = plan_ladder(
        config, config.ladder, built, {"dev": config.dev, TESTS: config.dev}, lambda name: str(tmp_path / name)
    )
    ((command,),) = plan.phases[0]
    outcome = run_inside(*command.arguments)
    assert outcome.code == 0, outcome.err
    model = MosesModel.read(plan.steps[0].table.ini)
    assert model.table == str(tmp_path / ("table" if "table" in tables else "table.gz"))
    assert model.reordering == str(tmp_path / ("reordering_table" if "reordering_table" in tables else "reordering"))
