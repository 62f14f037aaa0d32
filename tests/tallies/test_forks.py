"""Forks of a process in which polars has run raise an error."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest
from conftest import reference_data

import tidyfair as tf

if TYPE_CHECKING:
    import polars as pl

FRAME = reference_data("a400_weighted")


FORKED = """
import os, signal, sys, threading, warnings
import polars as pl
import tidyfair as tf

warnings.simplefilter("ignore")  # of Python itself, that threads and forks do not go together
FRAME = {"y": [1, 0, 1], "p": [1, 1, 1], "g": ["a", "b", "b"]}

def metric():
    return tf.accuracy(pl.DataFrame(FRAME), "y", "p")[".estimate"].item()

def tell(what):
    # written at once, so that no buffer is there twice
    os.write(1, f"{what}\\n".encode())

def in_a_fork(work):
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    signal.alarm(20)  # what hangs is ended
    try:
        tell(work())
    except tf.errors.TidyfairError as error:
        tell(type(error).__name__)
    os._exit(0)
"""
"""A program that forks, whose children say what comes of a call, or are ended by a signal."""

FORKS: dict[str, tuple[str, list[str]]] = {
    "before polars has run": ("in_a_fork(metric); in_a_fork(metric); tell(metric())", ["0.66", "0.66", "0.66"]),
    "after polars alone": ("pl.DataFrame(FRAME).group_by('g').len(); in_a_fork(metric)", ["ForkError"]),
    "a fork of a fork that runs": ("in_a_fork(lambda: (metric(), in_a_fork(metric))[0])", ["ForkError", "0.66"]),
    "where polars has begun anew": (
        "in_a_fork(lambda: (pl.DataFrame(FRAME).group_by('g').len(), metric())[1])", ["0.66"],
    ),
    "after a metric": (
        """
        people, counted = pl.DataFrame(FRAME), tf.accuracy.tally(pl.DataFrame(FRAME), 'y', 'p')
        in_pandas, seen = people.to_pandas(), tf.Accumulator(tf.accuracy, 'y', 'p').update(people)
        def beside():
            other = threading.Thread(target=threading.Event().wait, daemon=True)
            other.start()
            return metric()
        tell(metric())
        in_a_fork(metric); in_a_fork(beside)
        in_a_fork(lambda: tf.accuracy.arrays([1, 0], [1, 1])); in_a_fork(lambda: tf.accuracy(in_pandas, 'y', 'p'))
        in_a_fork(lambda: tf.accuracy.compute(counted)); in_a_fork(lambda: counted + counted)
        in_a_fork(lambda: tf.save_state(counted, 'nowhere.parquet'))
        in_a_fork(lambda: seen.update(people)); in_a_fork(seen.compute)
        fresh = tf.Accumulator(tf.accuracy, 'y', 'p')
        in_a_fork(lambda: fresh.update(people)); in_a_fork(lambda: fresh.merge(counted)); in_a_fork(lambda: seen.state)
        tell(metric())
        """, ["0.66", *["ForkError"] * 12, "0.66"],
    ),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="threads are seen in /proc")
@pytest.mark.parametrize("name", FORKS)
def test_fork_after_polars_has_run_raises_fork_error(name: str) -> None:
    code, expected = FORKS[name]
    program = f"{FORKED}\n{textwrap.dedent(code)}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)  # noqa: S603 - our own
    assert [line[:9] if line[0].isalpha() else line[:4] for line in done.stdout.split()] == expected, done.stderr
    assert done.returncode == 0


def pooled(part: pl.DataFrame) -> float:
    return tf.accuracy(part, "y_true", "y_pred")[".estimate"].item()


@pytest.mark.skipif(sys.platform != "linux", reason="threads are seen in /proc")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_pool_of_forks_raises_instead_of_hanging() -> None:
    with get_context("fork").Pool(2) as pool, pytest.raises(tf.errors.ForkError, match=r'get_context\("spawn"\)'):
        pool.map_async(pooled, [FRAME[:150], FRAME[150:]]).get(timeout=60)
