"""A progress listener that records the events."""

import contextlib

from phrasetool.watch import Watch


class RecordingWatch(Watch):
    """Listener that records messages, warnings, and begun and finished steps."""

    def __init__(self):
        self.said, self.warned, self.begun, self.done = [], [], [], []

    def say(self, message):
        self.said.append(message)

    def warn(self, message):
        self.warned.append(message)

    @contextlib.contextmanager
    def file(self, label, size):
        self.begun.append((label, size))
        yield lambda position, entries: None

    @contextlib.contextmanager
    def items(self, label, total, unit, finished=0):
        self.begun.append((label, total))
        counts = []
        yield lambda count: counts.append(count)
        self.done.append((label, sum(counts)))

    @contextlib.contextmanager
    def reading(self, paths):
        self.begun.append(("load", paths["phrase table"]))
        yield lambda label, position, entries: None
