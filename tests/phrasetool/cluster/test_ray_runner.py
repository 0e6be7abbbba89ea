"""The Ray runner on a real cluster of two nodes on this machine."""

import itertools
import os
import signal
import time

import numpy as np
import pandas as pd
import pytest

from phrasetool.errors import DataError, PhraseToolError
from phrasetool.pipeline import run
from tests.commands import run_inside, write
from tests.small_experiment import write_experiment
from tests.tables import TABLES

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    two_nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    two_nodes.second = two_nodes.add_node(num_cpus=2)
    ray.init(two_nodes.address, log_to_driver=False, logging_level="ERROR")
    yield two_nodes
    ray.shutdown()
    two_nodes.shutdown()


@pytest.fixture
def runner(cluster):
    from phrasetool.cluster.ray_runner import RayRunner

    return RayRunner()


class Counted:
    """Work that writes to its own array, of which each process has a copy."""

    def __init__(self):
        self.done = np.zeros(1, np.int64)

    def __call__(self, block):
        self.done[0] += 1
        return block["number"] ** 2, os.getpid(), int(self.done[0])


# The cluster has fewer than 7 processors.
@pytest.mark.parametrize("processes", [1, 7])
def test_results_come_in_order(runner, processes):
    work, blocks = Counted(), [{"number": i} for i in range(200)]
    result = list(runner(iter(blocks), work, processes))
    assert [square for square, _, _ in result] == [square for square, _, _ in run(blocks, Counted(), 1)]
    assert len({process for _, process, _ in result}) <= processes
    assert os.getpid() not in {process for _, process, _ in result}
    assert work.done[0] == 0


def test_results_before_an_error_are_delivered(runner):
    def refuse(number):
        if number == 45:
            raise DataError("table", "is bad", number, remedy="go on")
        return number

    collected = []
    with pytest.raises(DataError, match="table:45: is bad") as caught:
        collected.extend(runner(range(100), refuse, 2))
    assert (caught.value.line, caught.value.remedy) == (45, "go on")
    assert collected == list(range(45))
    with pytest.raises(ZeroDivisionError):
        list(runner([0], lambda number: 1 / number, 1))
    with pytest.raises(ValueError, match="0 processes"):
        next(runner([1], refuse, 0))


def test_tables_are_the_same_with_threads_and_ray(cluster, model_folder, tmp_path):
    table = write(tmp_path / "t", TABLES["seven fields"])
    for arguments in (
        ("annotate", table, "-m", model_folder, "--block-bytes", 64),
        ("annotate", table, "-m", model_folder, "--block-bytes", 64, "--scale", "softmax", "--resume"),
        ("prune", table, "-m", model_folder, "--block-bytes", 64, "-t", 0.1, "--keep-top", 1),
        ("prune", table, "-m", model_folder, "--block-bytes", 64, "--method", "count+semantic", "--target-size", 0.4),
    ):
        files = []
        for engine in (["threads"], ["ray", "--address", cluster.address]):
            files.append(tmp_path / f"{engine[0]}.gz")
            outcome = run_inside(*arguments, "-q", "-o", files[-1], "--threads", 2, "--engine", *engine)
            assert (outcome.code, outcome.err) == (0, "")
        assert files[0].read_bytes() == files[1].read_bytes()


def test_part_files_are_the_same_with_threads_and_ray(cluster, model_folder, tmp_path):
    table = write(tmp_path / "t", TABLES["seven fields"])
    assert run_inside("convert", table, "-o", tmp_path / "parts", "--part-entries", 4, "-q").code == 0
    for command in (["annotate"], ["prune", "-t", 0.2]):
        collected = []
        for engine in (["threads"], ["ray", "--address", cluster.address]):
            out = tmp_path / f"{command[0]}-{engine[0]}"
            outcome = run_inside(*command, tmp_path / "parts", "-m", model_folder, "-o", out, "-q", "--engine", *engine)
            assert (outcome.code, outcome.err) == (0, "")
            collected.append({path.name: path.read_bytes() for path in out.iterdir()})
        assert collected[0] == collected[1]


EXPERIMENT = """\
[prune]
methods = ["usage"]
sizes = [0.5]
[annotate]
tuning_seeds = [1]
columns = ["semantic"]
iterations = 1
"""


def test_an_experiment_gives_the_same_results_with_threads_and_ray(cluster, tmp_path):
    """The experiment includes forced decoding, which runs in its own process, tables and tuning."""
    frames = []
    for engine in (["threads"], ["ray", "--address", cluster.address]):
        config = write_experiment(tmp_path / engine[0], EXPERIMENT)
        outcome = run_inside("experiment", config, "-q", "--threads", 2, "--engine", *engine)
        assert outcome.code == 0, outcome.err
        tables = {path.stem: pd.read_parquet(path) for path in sorted((config.parent / "out").glob("*.parquet"))}
        frames.append({name: frame.drop(columns="command", errors="ignore") for name, frame in tables.items()})
    assert frames[0].keys() == frames[1].keys() >= {"pruning", "annotation"}
    for name, frame in frames[0].items():
        pd.testing.assert_frame_equal(frame, frames[1][name])


def test_a_missing_cluster(cluster, tmp_path, model_folder):
    table = write(tmp_path / "t", TABLES["seven fields"])
    wrong = run_inside("annotate", table, "-m", model_folder, "-o", tmp_path / "o", "--address", "auto")
    assert (wrong.code, "--address is for --engine ray" in wrong.err) == (2, True)
    ray.shutdown()
    from phrasetool.cluster.ray_runner import RayRunner

    try:
        with pytest.raises(PhraseToolError, match="cannot connect to a Ray cluster"):
            RayRunner("ray://127.0.0.1:1")
    finally:
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")


class Placed:
    """Work that also returns its process and its node."""

    def __call__(self, block):
        time.sleep(0.02)
        return block["number"] ** 2, os.getpid(), ray.get_runtime_context().get_node_id()


def test_processes_and_nodes_that_are_lost(cluster, runner):
    """The last test, because it removes a node, and with it the processors for one of three processes."""
    nodes, blocks_left = {}, None

    def blocks():
        nonlocal blocks_left
        for number in itertools.count():
            if blocks_left is not None:
                blocks_left -= 1
                if blocks_left < 0:
                    return
            yield {"number": number, "pad": bytes(1 << 17)}

    collected = []
    for square, process, node in runner(blocks(), Placed(), 3):
        collected.append(square)
        nodes[process] = node
        if blocks_left is None and len(nodes) == 3:
            victim = next(
                candidate for candidate, candidate_node in nodes.items() if candidate_node != cluster.second.node_id
            )
            os.kill(victim, signal.SIGKILL)
            cluster.remove_node(cluster.second, allow_graceful=False)
            blocks_left = 100
    assert collected == [i**2 for i in range(len(collected))]
    assert runner.lost >= 2
