import numpy as np

from moses_compat.measures.neural.opinion_queue import NeuralOpinions, OpinionQueue


def opinions(first, count):
    numbers = np.arange(first, first + count)
    return NeuralOpinions(-numbers.astype(np.float32), numbers + 1, numbers % 3 > 0)


def test_blocks_take_what_windows_gave():
    queue = OpinionQueue()
    for first, count in ((0, 4), (4, 0), (4, 5)):
        queue.put(opinions(first, count))
    found = queue.take_block(np.array([False, True, False]))
    assert np.isnan(found.logs[1])
    assert found.logs[[0, 2]].tolist() == [0, -1]
    assert (found.words.tolist(), found.opinion.tolist()) == ([1, 1, 2], [False, False, True])
    assert queue.size == 7
    rest = queue.take(7)
    assert rest.logs.tolist() == [-i for i in range(2, 9)]
    assert queue.take(0).logs.tolist() == []
