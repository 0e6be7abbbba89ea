import threading

import pytest

from phrasetool.pipeline import run


def assert_threads_end():
    for thread in threading.enumerate():
        if thread.name.startswith("phrasetool"):
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_order(threads):
    second_ended = threading.Event()

    def work(block):
        # With several threads, the first block ends only after the second.
        if block == 0 and threads > 1:
            assert second_ended.wait(30)
        if block == 1:
            second_ended.set()
        return block * 10

    assert list(run(range(50), work, threads)) == [block * 10 for block in range(50)]
    assert list(run([], work, threads)) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_blocks_under_way_than_allowed(threads):
    gate = threading.Event()
    requested = []

    def blocks():
        for block in range(100):
            requested.append(block)
            if len(requested) > 2 * threads:
                gate.set()
            yield block

    def work(block):
        assert gate.wait(30)
        return block

    results = run(blocks(), work, threads)
    assert next(results) == 0
    assert len(requested) == 2 * threads + 1
    delivered = 1
    for result in results:
        assert result == delivered
        delivered += 1
        assert len(requested) - delivered <= 2 * threads + 1
    assert delivered == 100


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_in_the_work_stops_everything(threads):
    requested, processed = [], []

    def blocks():
        for block in range(1000):
            requested.append(block)
            yield block

    def work(block):
        if block == 3:
            raise ZeroDivisionError("three")
        processed.append(block)
        return block

    results = []
    with pytest.raises(ZeroDivisionError, match="three"):
        results.extend(run(blocks(), work, threads))
    # Few blocks are requested after the one that failed, and only requested blocks are processed.
    assert len(requested) <= 3 + 2 * threads + 2
    assert max(processed, default=0) < len(requested)


def test_results_before_an_exception_are_delivered():
    def work(block):
        if block == 3:
            raise ZeroDivisionError
        return block

    delivered = []
    with pytest.raises(ZeroDivisionError):
        delivered.extend(run(range(10), work, 2))
    assert delivered == [0, 1, 2]


def test_an_exception_in_the_input_stops_everything():
    def blocks():
        yield 0
        yield 1
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        list(run(blocks(), lambda block: block, 2))
    assert_threads_end()


def test_closing_early_skips_blocks_that_have_not_started():
    recorded = []
    closed = threading.Event()

    def blocks():
        try:
            yield from range(1000)
        finally:
            closed.set()

    def work(block):
        recorded.append(block)
        return block

    results = run(blocks(), work, 2)
    assert next(results) == 0
    results.close()
    assert len(recorded) <= 6
    assert_threads_end()


def test_closing_early_awaits_running_work_but_joins_no_thread(monkeypatch):
    """A join never returns if the garbage collector closes the results while another thread is being started."""
    submitted, entered, gate, ended = threading.Event(), threading.Event(), threading.Event(), []

    def blocks():
        for block in range(1000):
            if block == 2:
                submitted.set()
            yield block

    def work(block):
        if block == 0:
            assert submitted.wait(30)
        else:
            entered.set()
            assert gate.wait(30)
            ended.append(block)
        return block

    results = run(blocks(), work, 1)
    assert next(results) == 0
    assert entered.wait(30)
    timer = threading.Timer(0.2, gate.set)
    timer.start()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", lambda thread, timeout=None: pytest.fail("a thread is joined"))
        results.close()
    assert ended == [1]
    timer.join()
    assert_threads_end()


def test_no_threads():
    with pytest.raises(ValueError, match="0 threads"):
        list(run([1], lambda block: block, 0))
