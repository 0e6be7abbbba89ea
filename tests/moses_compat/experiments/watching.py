"""A watch that remembers what it is told."""

import contextlib


class Told:
    """See `Watch`."""

    def __init__(self):
        self.said, self.warned, self.begun, self.done = [], [], [], []

    def say(self, message):
        self.said.append(message)

    def warn(self, message):
        self.warned.append(message)

    @contextlib.contextmanager
    def table(self, label, size):
        self.begun.append((label, size))
        yield lambda position, entries: None

    @contextlib.contextmanager
    def sentences(self, label, total):
        self.begun.append((label, total))
        counts = []
        yield lambda count: counts.append(count)
        self.done.append((label, sum(counts)))

    @contextlib.contextmanager
    def loading(self, model):
        self.begun.append(("load", model.table))
        yield lambda label, position, entries: None
