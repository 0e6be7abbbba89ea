"""A complete configuration, which tests modify and read."""

from moses_compat.experiments.config import read_experiment_config

TEXTS = """\
[data.dev]
source = "a"
target = "b"
[data.tests.news]
source = "a"
target = "b"
"""
GOOD = f"""\
[data.bitext]
source = "a"
target = "b"
{TEXTS}[prune]
methods = ["semantic", "composition+semantic", "random"]
sizes = [0.1, 0.5]
"""


def config_of(folder, text):
    (folder / "c.toml").write_text(text)
    return read_experiment_config(str(folder / "c.toml"))
