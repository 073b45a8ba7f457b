"""Rivals for the tests of benchmarks; they are imported in separate processes, so this module imports little."""

import os
import signal
import time

import numpy as np
from threadpoolctl import threadpool_info


class Contestant:
    """A rival that follows instructions."""

    def __init__(self, base=0):
        if base < 0:
            raise ValueError("base is below 0")
        self.base = base

    def add(self, value):
        return self.base + value

    def where(self):
        return os.getpid()

    def threads(self):
        return [pool["num_threads"] for pool in threadpool_info()]

    def work(self, seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    def crash(self, number):
        os.kill(os.getpid(), number)

    def fail(self):
        raise ValueError("no such file")


class CrashingBliss:
    """A rival compiled for another processor."""

    def analyze(self, path):
        os.kill(os.getpid(), signal.SIGILL)


def built_to_crash(*_):
    os.kill(os.getpid(), signal.SIGILL)


class Index:
    """An index that returns the first rows for every query."""

    def ask(self, Q, value):
        return np.tile(np.arange(10), (len(Q), 1))

    def n_bytes(self):
        return 7


def built_well(X):
    return Index()
