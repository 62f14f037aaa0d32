"""Accumulators add batches up, merge, and are saved to files and loaded."""

from __future__ import annotations

import copy
import errno
import io
import itertools
import json
import math
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import examples, reference_data
from hypothesis import HealthCheck, given, settings, strategies as st
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.calling.streaming import sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OF_LABELS = tf.metric_set(
    tf.accuracy, tf.sens, tf.demographic_parity("sex"), tf.equalized_odds("race"), tf.inequality.theil_index,
    tf.differential_fairness("sex", "race"), tf.independence("race"), tf.separation("sex"),
)  # fmt: skip
OF_SCORES = tf.metric_set(tf.roc_auc, tf.brier_class, tf.auc_parity("race"), tf.inequality.theil_index)
OF_NUMBERS = tf.metric_set(tf.rmse, tf.rsq, tf.mae.difference("race"), tf.inequality.explained_by_groups("sex"))
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "labels": (OF_LABELS, {"truth": "y_true", "estimate": "y_pred"}),
    "labels in folds, weighted": (
        OF_LABELS, {"truth": "y_true", "estimate": "y_pred", "group_by": "age_band", "case_weights": "weight"},
    ),
    "sides": (OF_LABELS, {"truth": "y_true", "estimate": "y_pred", "group_by": tf.privileged(sex=1)}),
    "a threshold": (OF_LABELS, {"truth": "y_true", "probs": "score", "threshold": 0.4}),
    "scores": (OF_SCORES, {"truth": "y_true", "probs": "score", "case_weights": "weight"}),
    "numbers": (OF_NUMBERS, {"truth": "y_reg", "estimate": "pred_reg", "group_by": "age_band"}),
}  # fmt: skip
DATA = reference_data("c1000_nopos")


def batches(cuts: list[int]) -> list[pl.DataFrame]:
    ends = [0, *sorted(cuts), len(DATA)]
    return [DATA[start:end] for start, end in itertools.pairwise(ends)]


def same(result: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert_frame_equal(result, expected, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("name", CALLS)
@settings(deadline=None, max_examples=examples(6), database=None, suppress_health_check=[HealthCheck.too_slow])
@given(cuts=st.lists(st.integers(0, 1000), max_size=6), order=st.randoms(use_true_random=False))
def test_batches_in_any_order_equal_one_call(name: str, cuts: list[int], order: Any) -> None:
    metrics, columns = CALLS[name]
    parts = batches(cuts)
    order.shuffle(parts)
    seen = tf.Accumulator(metrics, **columns)
    for part in parts:
        seen.update(part)
    same(seen.compute(on_undefined="ignore"), metrics(DATA, **columns, on_undefined="ignore"))


def test_many_small_batches_equal_one_call() -> None:
    seen = tf.Accumulator(OF_LABELS, "y_true", "y_pred")
    for start in range(0, 1000, 5):
        seen.update(DATA[start : start + 5])
    assert OF_LABELS(DATA, "y_true", "y_pred", on_undefined="ignore").equals(seen.compute(on_undefined="ignore"))
    assert repr(seen).startswith("<accumulator of 1,000 rows for <metric set of")


def test_small_batches_are_added_without_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pl.DataFrame({"y": [0, 1, 1, 0], "p": [0, 1, 0, 1], "sex": pl.Series(["f", "m"] * 2, dtype=pl.Enum("fm"))})
    seen = tf.Accumulator(tf.metric_set(tf.accuracy, tf.demographic_parity("sex")), "y", "p").update(batch)

    def query(*_: Any, **__: Any) -> Any:
        pytest.fail("a query was made")

    with monkeypatch.context() as patch:
        patch.setattr(pl.LazyFrame, "collect", query)
        for _ in range(40):
            seen.update(batch)
    assert seen.state.cells["n"].sum() == 41 * 4
    assert seen.compute()[".estimate"].to_list() == [0.5, 1.0]


def test_accumulators_merge_and_reset(engine: Callable[[pl.DataFrame], Any]) -> None:
    one, other = (tf.Accumulator(OF_LABELS, "y_true", "y_pred").update(engine(part)) for part in batches([300]))
    whole = OF_LABELS(DATA, "y_true", "y_pred", on_undefined="ignore")
    assert one.merge(other).compute(on_undefined="ignore").equals(whole)
    assert one.merge(tf.Accumulator(OF_LABELS, "y_true", "y_pred")).state.cells["n"].sum() == 1000
    groups = OF_LABELS.by_group(DATA, "y_true", "y_pred")
    assert one.compute_by_group().equals(groups)
    with pytest.raises(tf.errors.ArgumentError, match="Nothing has been counted"):
        one.reset().compute()
    odd: Any = 5
    with pytest.raises(tf.errors.ArgumentError, match="can be merged with another accumulator or a tally"):
        one.merge(odd)
    with pytest.raises(tf.errors.ArgumentError, match="Only tallies of the same columns"):
        other.merge(tf.accuracy.tally(DATA, "y_true", "y_pred"))


# Threads


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that give way to each other as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], object], threads: int = 16) -> None:
    """Let threads begin together, and hand on what goes wrong in one."""
    ready = Barrier(threads)

    def one(number: int) -> None:
        ready.wait()
        work(number)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(threads)))


@pytest.mark.usefixtures("hasty_threads")
def test_concurrent_updates_lose_no_batch() -> None:
    batch = pl.DataFrame({"y": [1, 0, 1, 1], "p": [1, 1, 0, 1]})
    seen = tf.Accumulator(tf.accuracy, "y", "p")
    at_once(lambda _: [seen.update(batch) for _ in range(100)])
    assert seen.state.cells["n"].sum() == 16 * 100 * 4
    counted = tf.accuracy.tally(batch, "y", "p")
    at_once(lambda _: [seen.merge(counted) for _ in range(200)])
    assert seen.state.cells["n"].sum() == 16 * (100 + 200) * 4
    assert seen.compute()[".estimate"].item() == 0.5


@pytest.mark.usefixtures("hasty_threads")
def test_concurrent_compute_sees_whole_batches() -> None:
    counted = tf.accuracy.tally(pl.DataFrame({"y": [1, 0, 1, 1], "p": [1, 1, 0, 1]}), "y", "p")
    seen = tf.Accumulator(tf.accuracy, "y", "p").merge(counted)
    rows = list[int]()

    def work(number: int) -> None:
        for _ in range(100):
            if number % 2:
                seen.merge(counted)
            else:
                assert seen.compute()[".estimate"].item() == 0.5
                rows.append(sum(seen.state.cells["n"].to_list()))

    at_once(work, 8)
    assert seen.state.cells["n"].sum() == (1 + 4 * 100) * 4
    assert all(item % 4 == 0 for item in rows)


@pytest.mark.usefixtures("hasty_threads")
def test_mutual_merges_do_not_deadlock() -> None:
    batch = pl.DataFrame({"y": [1, 0, 1, 1], "p": [1, 1, 0, 1]})
    both = [tf.Accumulator(tf.accuracy, "y", "p").update(batch) for _ in range(2)]
    at_once(lambda number: [both[number].merge(both[1 - number]) for _ in range(20)], 2)
    assert all(item.compute()[".estimate"].item() == 0.5 for item in both)


def test_merge_with_itself_raises() -> None:
    seen = tf.Accumulator(tf.sens, "y", "p").update(PEOPLE)
    with pytest.raises(tf.errors.ArgumentError, match="every row would count twice"):
        seen.merge(seen)
    assert seen.state.cells["n"].sum() == 4


def test_copies_of_an_accumulator_are_independent() -> None:
    seen = tf.Accumulator(tf.sens, "y", "p").update(PEOPLE)
    for other in (copy.copy(seen), copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):  # noqa: S301 - our own
        other.update(PEOPLE)
        assert other.state.cells["n"].sum() == 8
        assert seen.state.cells["n"].sum() == 4
        assert other.compute().equals(seen.compute())


def test_failed_merge_leaves_accumulator_unchanged() -> None:
    seen, other = (tf.Accumulator(tf.equal_opportunity("g"), "y", "p").update(NUMBERS) for _ in range(2))
    other = tf.Accumulator(tf.equal_opportunity("g"), "y", "p")
    other.update(NUMBERS.with_columns(g=pl.lit(None))).update(NUMBERS.with_columns(TEXTS["g"]))
    with pytest.raises(tf.errors.ArgumentError, match="The column 'g' is"):
        seen.merge(other)
    assert seen.state.cells["n"].sum() == 4


@pytest.mark.parametrize("name", CALLS)
def test_states_are_saved_and_loaded(name: str, tmp_path: Path) -> None:
    metrics, columns = CALLS[name]
    like = metrics.tally(DATA[:0], **columns)
    states: list[tf.types.Tally] = []
    for index, part in enumerate(batches([100, 700])):
        path = tmp_path / f"{index}.parquet"
        tf.save_state(metrics.tally(part, **columns), path)
        states.append(tf.load_state(path, like))
    same(metrics.compute(sum(states), on_undefined="ignore"), metrics(DATA, **columns, on_undefined="ignore"))


def test_state_of_labels_holds_no_rows(tmp_path: Path) -> None:
    tf.save_state(OF_LABELS.tally(DATA, "y_true", "y_pred"), tmp_path / "state.parquet")
    assert len(pl.read_parquet(tmp_path / "state.parquet")) < 40


def test_incompatible_state_files_raise(tmp_path: Path) -> None:
    path = tmp_path / "state.parquet"
    like = OF_LABELS.tally(DATA, "y_true", "y_pred")
    tf.save_state(like, path)

    def refused(what: str, wanted: tf.types.Tally = like) -> None:
        with pytest.raises(tf.errors.ArgumentError, match=what):
            tf.load_state(path, wanted)

    refused("counted with different keys", tf.accuracy.tally(DATA, "y_true", "y_pred"))
    refused("counted with different estimate", OF_LABELS.tally(DATA.rename({"y_pred": "p"}), "y_true", "p"))
    refused("counted with different weights", OF_LABELS.tally(DATA, "y_true", "y_pred", case_weights="weight"))
    forged(path, {"version": 99})
    refused("has version 99; this release reads version 2")
    forged(path, "no json")
    refused("cannot be read as a state")
    DATA.write_parquet(path)
    refused("was not written by `save_state`")
    path.write_bytes(path.read_bytes()[:200])
    refused("was not written by `save_state`")
    path.unlink()
    refused("cannot be read as a state")


# Suppression of small counts


def test_suppression_hides_small_cells_and_their_complements(tmp_path: Path) -> None:
    rare = tf.metric_set(tf.sens, tf.demographic_parity("race"))
    tally = rare.tally(DATA, "y_true", "y_pred")
    path = tmp_path / "state.parquet"
    tf.save_state(tally, path, suppress_below=15)
    shown = tf.load_state(path, tally).cells
    small = tally.cells.filter(pl.col("n") < 15)["k0"].unique()
    assert len(small)
    # a group is left out with all its counts, and those that it lacks
    hidden = shown.filter(pl.col("hidden") == 1)
    assert set(small) <= set(hidden["k0"])
    assert (hidden.group_by("k0").len()["len"] == 4).all()
    assert (hidden["n"] == 0).all()
    kept = shown.filter(pl.col("hidden") == 0).drop("hidden")
    assert_frame_equal(kept, tally.cells.filter(pl.col("k0").is_in(kept["k0"].to_list())), check_row_order=False)


def test_metrics_of_suppressed_groups_are_null(tmp_path: Path) -> None:
    rare = tf.metric_set(tf.sens, tf.demographic_parity("race"), tf.inequality.theil_index, tf.independence("race"))
    tally = rare.tally(DATA, "y_true", "y_pred")
    path = tmp_path / "state.parquet"
    tf.save_state(tally, path, suppress_below=15)
    state = tf.load_state(path, tally)
    groups = rare.compute_by_group(state)
    whole = rare.by_group(DATA, "y_true", "y_pred")
    for row, full in zip(groups.to_dicts(), whole.to_dicts(), strict=True):
        if row[".status"] == "suppressed":
            assert row[".estimate"] is None
        elif row[".metric"] == "selection_rate":
            assert row[".estimate"] == full[".estimate"]
    statuses = dict(groups.filter(pl.col(".metric") == "selection_rate").select(".group", ".status").rows())
    assert statuses["rare"] == "suppressed"
    assert "ok" in statuses.values()
    result = rare.compute(state, explain=True, on_undefined="ignore")
    assert result.filter(pl.col(".metric").is_in(["sens", "theil_index"]))[".status"].to_list() == ["suppressed"] * 2
    # a distance to all is one to what is not known
    assert result.filter(pl.col(".metric") == "independence")[".estimate"].to_list() == [None]
    assert "rare" in result.filter(pl.col(".metric") == "demographic_parity")[".groups_left_out"].to_list()[0]
    with pytest.warns(tf.errors.UndefinedWarning, match="suppressed"):
        rare.compute(state)
    # and stays so in sums
    again = rare.compute_by_group(state + tally).filter(pl.col(".group") == "rare")
    assert set(again[".status"]) == {"suppressed"}


def test_suppression_covers_every_threshold(tmp_path: Path) -> None:
    fair = tf.metric_set(tf.demographic_parity("race"))
    tally = fair.tally(DATA, "y_true", probs="score", threshold=[0.2, 0.5])
    tf.save_state(tally, tmp_path / "state.parquet", suppress_below=4)
    groups = fair.compute_by_group(tf.load_state(tmp_path / "state.parquet", tally))
    rare = groups.filter(pl.col(".group") == "rare")
    assert rare.select(".estimate", ".n", ".denominator", ".status").rows() == [(None, None, None, "suppressed")] * 2
    assert "ok" in groups[".status"].to_list()


def test_comparison_of_suppressed_groups_has_status_suppressed(tmp_path: Path) -> None:
    people = pl.DataFrame({"y": [1, 0, 1], "p": [1, 1, 0], "g": list("aab")})
    metric = tf.demographic_parity("g")
    tally = metric.tally(people, "y", "p")
    tf.save_state(tally, tmp_path / "state.parquet", suppress_below=2)
    result = metric.compute(tf.load_state(tmp_path / "state.parquet", tally), explain=True, on_undefined="ignore")
    assert result.select(".estimate", ".status").row(0) == (None, "suppressed")


def test_majority_of_suppressed_groups_has_no_reference(tmp_path: Path) -> None:
    sizes = {"big": (3, 200, 0, 190), "tiny": (20, 20, 25, 25), "b": (50, 60, 70, 80), "c": (30, 40, 90, 50)}
    pairs = list(itertools.product([0, 1], [0, 1]))
    rows = [(g, *pair) for g, counts in sizes.items() for pair, n in zip(pairs, counts, strict=True) for _ in range(n)]
    people = pl.DataFrame(rows, schema=["g", "truth", "guess"], orient="row")
    metric = tf.demographic_parity("g", aggregate=tf.difference(to="majority"))
    tally = metric.tally(people, "truth", "guess")
    tf.save_state(tally, tmp_path / "state.parquet", suppress_below=5)
    result = metric.compute(tf.load_state(tmp_path / "state.parquet", tally), explain=True, on_undefined="ignore")
    assert result.select(".estimate", ".status").row(0) == (None, "no_reference")
    # with too few rows to count, they still are not shown
    few = tf.demographic_parity("g", min_n=1000)
    states = few.compute_by_group(tf.load_state(tmp_path / "state.parquet", tally))
    assert dict(states.select(".group", ".status").rows())["big"] == "suppressed"


def test_suppression_of_scores_raises(tmp_path: Path) -> None:
    path = tmp_path / "state.parquet"
    scored = OF_SCORES.tally(DATA, "y_true", probs="score")
    with pytest.raises(tf.errors.ArgumentError, match="Only counts of labels can be suppressed"):
        tf.save_state(scored, path, suppress_below=5)
    odd: Any = 2.5
    with pytest.raises(tf.errors.ArgumentError, match="`suppress_below` is a whole number"):
        tf.save_state(OF_LABELS.tally(DATA, "y_true", "y_pred"), path, suppress_below=odd)


def within(distance: float) -> tf.types.Metric:
    """A metric of a user's: its statistic is called the same whatever the distance."""
    near: Any = {"near": lambda truth, estimate: ((truth - estimate).abs() <= distance).cast(pl.Float64)}
    return tf.new_numeric_metric(
        lambda near, instances: (near, instances), f"within_{distance:g}", "maximize", (0, 1), statistics=near
    )


def test_statistics_of_the_same_name_are_kept_separate(tmp_path: Path) -> None:
    rents, path = pl.DataFrame({"y": [1.0, 2, 3], "p": [1.0, 12, 13]}), tmp_path / "state.parquet"
    both = tf.metric_set(within(50), within(1))
    tf.save_state(both.tally(rents, "y", "p"), path)
    again = tf.metric_set(within(50), within(1))
    result = again.compute(tf.load_state(path, again.tally(rents.head(0), "y", "p")))
    assert result[".estimate"].to_list() == pytest.approx([1.0, 1 / 3])
    other = tf.metric_set(within(50), within(2))
    with pytest.raises(tf.errors.ArgumentError, match="was counted with different sums"):
        tf.load_state(path, other.tally(rents.head(0), "y", "p"))


PEOPLE = pl.DataFrame(
    {"y": [1, 0, 1, 1], "p": [1, 1, 0, 1], "age": [30, 45, 50, 60], "s": [0.2, 0.4, 0.6, 0.8], "g": list("abab")}
).with_columns(team=pl.col("g"))


def by_age(edge: int) -> pl.Expr:
    return (pl.col("age") > edge).alias("x")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"threshold": {"g": {"a": 0.3, "b": 0.7}}}, {"threshold": {"team": {"a": 0.3, "b": 0.7}}}),
        ({"group_by": by_age(40)}, {"group_by": by_age(55)}),
        ({"group_by": "g"}, {"group_by": "team"}),
        ({"group_by": tf.privileged(g="a")}, {"group_by": tf.privileged(g="b")}),
        ({"threshold": 0.3}, {"threshold": [0.3]}),
    ],
)
def test_state_of_other_columns_raises(one: Any, other: Any, tmp_path: Path) -> None:
    path, columns = tmp_path / "state.parquet", {"truth": "y", "probs": "s"}
    one, other = ({"threshold": 0.5} | item for item in (one, other))
    fair: Any = tf.metric_set(tf.sens)
    tf.save_state(fair.tally(PEOPLE, **columns, **one), path)
    assert fair.compute(tf.load_state(path, fair.tally(PEOPLE.head(0), **columns, **one))).height
    with pytest.raises(tf.errors.ArgumentError, match="was counted with different"):
        tf.load_state(path, fair.tally(PEOPLE.head(0), **columns, **other))


def test_unserializable_states_raise(tmp_path: Path) -> None:
    doubled = pl.col("age").map_batches(lambda age: age * 2, return_dtype=pl.Int64, is_elementwise=True).alias("x")
    tally = tf.sens.tally(PEOPLE, "y", "p", group_by=doubled)
    with pytest.raises(tf.errors.ArgumentError, match="calls a Python function"):
        tf.save_state(tally, tmp_path / "state.parquet")
    with pytest.raises(tf.errors.ArgumentError, match="cannot be written"):
        tf.save_state(tf.sens.tally(PEOPLE, "y", "p"), tmp_path / "nowhere" / "state.parquet")
    odd: Any = tf.Accumulator(tf.sens, "y", "p")
    with pytest.raises(tf.errors.ArgumentError, match="or the `state` of an accumulator"):
        tf.save_state(odd, tmp_path / "state.parquet")


# Damaged, forged and unwritable files

DAMAGED = """
import json, random, sys
from pathlib import Path
import tidyfair as tf
from calling.test_streaming import DATA, OF_LABELS

path, tally = Path(sys.argv[1]), OF_LABELS.tally(DATA, "y_true", "y_pred")
whole, chance, kept = path.read_bytes(), random.Random(int(sys.argv[2])), 0
expected = tf.load_state(path, tally).cells
for attempt in range(int(sys.argv[3])):
    place, other = chance.randrange(len(whole)), chance.randrange(len(whole))
    damaged = [
        lambda: whole[:place] + bytes([whole[place] ^ (1 << chance.randrange(8))]) + whole[place + 1 :],
        lambda: whole[:place],
        lambda: whole[place:],
        lambda: whole[:place] + chance.randbytes(1 + place % 9) + whole[place:],
        lambda: whole[other:] + whole[:other],
        lambda: whole[:place] + chance.randbytes(40) + whole[place + 40 :],
    ][attempt % 6]()
    path.write_bytes(damaged)
    try:
        state = tf.load_state(path, tally)
    except tf.errors.ArgumentError:
        continue
    assert damaged == whole
    assert state.cells.equals(expected)
    kept += 1
print("kept", kept)
"""


def test_damaged_files_raise_before_parsing(tmp_path: Path) -> None:
    # in a process of its own, because a parser that panics ends it, or writes to stderr
    path = tmp_path / "state.parquet"
    tf.save_state(OF_LABELS.tally(DATA, "y_true", "y_pred"), path)
    command = [sys.executable, "-c", DAMAGED, str(path), "1", "300"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])  # noqa: S603 - our own
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kept ")


def test_file_without_digest_raises(tmp_path: Path) -> None:
    path, tally = tmp_path / "state.parquet", OF_LABELS.tally(DATA, "y_true", "y_pred")
    tf.save_state(tally, path)
    # the same parquet file, without the digest
    pl.read_parquet(path).write_parquet(path, metadata=pl.read_parquet_metadata(path))
    with pytest.raises(tf.errors.ArgumentError, match="was not written by `save_state`, or is damaged"):
        tf.load_state(path, tally)


def forged(path: Path, about: dict[str, Any] | str | None = None, **columns: Any) -> None:
    """Write a state again with other contents, and with the digest of these."""
    result = json.loads(pl.read_parquet_metadata(path)["tidyfair"])
    text = about if isinstance(about, str) else json.dumps(result | (about or {}))
    written = io.BytesIO()
    pl.read_parquet(path).with_columns(**columns).write_parquet(written, metadata={"tidyfair": text})
    path.write_bytes(sealed(written.getvalue()))


FORGED: dict[str, dict[str, Any]] = {
    "fractional counts": {"n": pl.col("n") + 0.5},
    "counts as floats": {"n": pl.col("n").cast(pl.Float64)},
    "counts as text": {"n": pl.col("n").cast(pl.String)},
    "counts as lists": {"n": pl.concat_list("n")},
    "negative counts": {"n": -pl.col("n")},
    "missing counts": {"n": pl.lit(None, pl.Int64)},
    "counts whose sum is too large": {"n": pl.lit(2**62)},
    "a column more": {"more": pl.lit(1)},
    "labels of another kind": {"truth": pl.col("truth").cast(pl.String)},
    "labels as lists": {"truth": pl.concat_list("truth")},
    "fractional labels": {"truth": pl.col("truth") + 0.5},
    "a combination twice": {"truth": pl.lit(1), "k0": pl.lit(1)},
    "negative suppressed": {"hidden": pl.lit(-1)},
    "suppressed as text": {"hidden": pl.lit("no")},
    "rows and cells mixed": {"\0row": pl.lit(value=True)},
    "rows as text": {"\0row": pl.lit("yes")},
    "no object": {"about": "[1, 2]"},
    "no text": {"about": "\x00"},
    "deep": {"about": "[" * 100_000},
    "another version": {"about": {"version": [1]}},
    "other keys": {"about": {"keys": {"a": {}}}},
    "null sums": {"about": {"sums": None}},
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_raise(name: str, tmp_path: Path) -> None:
    path, tally = tmp_path / "state.parquet", OF_LABELS.tally(DATA, "y_true", "y_pred")
    tf.save_state(tally, path)
    forged(path, **FORGED[name])
    with pytest.raises(tf.errors.TidyfairError, match=r"state\.parquet"):
        tf.load_state(path, tally)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf, None, "heavy"])
def test_forged_weights_raise(weight: Any, tmp_path: Path) -> None:
    path, tally = tmp_path / "state.parquet", OF_LABELS.tally(DATA, "y_true", "y_pred", case_weights="weight")
    tf.save_state(tally, path)
    forged(path, w=pl.lit(weight))
    with pytest.raises(tf.errors.TidyfairError, match=r"state\.parquet.*'w'"):
        tf.load_state(path, tally)


@pytest.mark.parametrize("end", [2.0, math.nan, None])
def test_forged_score_bounds_raise(end: float | None, tmp_path: Path) -> None:
    path, tally = tmp_path / "state.parquet", OF_SCORES.tally(DATA, "y_true", probs="score")
    tf.save_state(tally, path)
    columns: dict[str, Any] = {"least s0": pl.lit(end, pl.Float64)}
    forged(path, **columns)
    with pytest.raises(tf.errors.ArgumentError, match="'least s0' are above those of 'most s0', or missing"):
        tf.load_state(path, tally)


@pytest.mark.parametrize("odd", ["a[1].parquet", "a*.parquet", "a?.parquet", "~a", "{a}.parquet", "a%20b"])
def test_file_names_are_literal(odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a1.parquet").write_bytes(b"another file")
    tally = OF_LABELS.tally(DATA, "y_true", "y_pred")
    monkeypatch.chdir(tmp_path)
    tf.save_state(tally, odd)
    assert {item.name for item in tmp_path.iterdir()} == {"a1.parquet", odd}
    assert tf.load_state(odd, tally).cells.equals(tally.cells)
    assert tf.load_state(tmp_path / odd, tally).cells.equals(tally.cells)


KEYS: dict[str, pl.Series] = {
    "Duration": pl.Series([timedelta(days=1), None, timedelta(2), timedelta(2)]),
    "Int128": pl.Series([2**100, None, 1, 1], dtype=pl.Int128),
    "Decimal": pl.Series([Decimal("1.50"), None, Decimal(2), Decimal(2)], dtype=pl.Decimal(38, 2)),
    "Time": pl.Series([time(1), None, time(2), time(2)]),
    "Datetime": pl.Series([datetime(2020, 1, 1, tzinfo=UTC), None, *[datetime(2020, 1, 2, tzinfo=UTC)] * 2]),
    "Enum": pl.Series(["a", None, "b", "b"], dtype=pl.Enum(["b", "a"])),
    "UInt8": pl.Series([1, None, 2, 2], dtype=pl.UInt8),
    "Null": pl.Series([None] * 4),
}
if hasattr(pl, "UInt128"):  # from polars 1.34 on
    KEYS["UInt128"] = pl.Series([2**127 + 1, None, 1, 1], dtype=pl.UInt128)


@pytest.mark.parametrize("kind", KEYS)
def test_keys_keep_their_type_in_a_file(kind: str, tmp_path: Path) -> None:
    people = PEOPLE.with_columns(g=KEYS[kind])
    metrics = tf.metric_set(tf.accuracy, tf.demographic_parity("g"))
    tally = metrics.tally(people, "y", "p")
    tf.save_state(tally, tmp_path / "state")
    loaded = tf.load_state(tmp_path / "state", metrics.tally(people.head(0), "y", "p"))
    assert loaded.cells.schema["k0"] == KEYS[kind].dtype
    assert_frame_equal(loaded.cells, tally.cells)
    assert metrics.compute(loaded).equals(metrics(people, "y", "p"))


def test_full_disk_raises_and_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tally = tmp_path / "state.parquet", OF_LABELS.tally(DATA, "y_true", "y_pred")
    tf.save_state(tally, path)
    before = path.read_bytes()

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(tf.errors.ArgumentError, match=r"cannot be written to .*No space left on device"):
        tf.save_state(tally, path)
    with pytest.raises(tf.errors.ArgumentError, match="No space left on device"):
        tf.save_state(tally, tmp_path / "new.parquet")
    assert [item.name for item in tmp_path.iterdir()] == ["state.parquet"]
    assert path.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no device that is always full")
def test_device_is_not_replaced() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"'/dev/full'.*No space left on device"):
        tf.save_state(OF_LABELS.tally(DATA, "y_true", "y_pred"), "/dev/full")
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("odd", [5, None, b"state", True, 2.5, pl.col("a"), "", "a\0b", "\ud800"])
def test_bad_paths_raise(odd: Any) -> None:
    tally = OF_LABELS.tally(DATA, "y_true", "y_pred")
    with pytest.raises(tf.errors.ArgumentError, match="The state cannot be written to"):
        tf.save_state(tally, odd)
    with pytest.raises(tf.errors.ArgumentError, match="cannot be read as a state"):
        tf.load_state(odd, tally)


TEXTS = PEOPLE.with_columns(pl.col("y").cast(pl.String), g=pl.Series(["1", "1", "2", "3"]))
NUMBERS = PEOPLE.with_columns(g=pl.Series([1, 1, 2, 2]))


@pytest.mark.parametrize(
    ("first", "second", "column"),
    [
        (NUMBERS, NUMBERS.with_columns(TEXTS["g"]), "g"),
        (NUMBERS, NUMBERS.with_columns(TEXTS["y"]), "y"),
        (
            PEOPLE.cast({"g": pl.Enum(["a", "b"])}), PEOPLE.cast({"g": pl.Enum(["b", "a"])}), "g",
        ),
        (NUMBERS, NUMBERS.with_columns(g=pl.date(2020, 1, pl.col("g"))), "g"),
    ],
)  # fmt: skip
def test_batches_of_other_types_raise(first: pl.DataFrame, second: pl.DataFrame, column: str) -> None:
    seen = tf.Accumulator(tf.equal_opportunity("g"), "y", "p").update(first)
    with pytest.raises(tf.errors.ArgumentError, match=f"The column '{column}' is .* cast it to one type"):
        seen.update(second)
    assert seen.state.cells["n"].sum() == 4


LARGE = 2**53
SAME_AS_FLOATS: dict[str, tuple[pl.Series, pl.Series]] = {
    "whole numbers and floats": (pl.Series([LARGE, LARGE, LARGE + 1, LARGE + 1]), pl.Series([float(LARGE)] * 4)),
    "floats and whole numbers": (pl.Series([float(LARGE)] * 4), pl.Series([1, 1, LARGE + 1, LARGE + 1])),
    "small floats": (pl.Series([2**24 + 1, 2**24, 1, 1]), pl.Series([2.0**24] * 4, dtype=pl.Float32)),
    "long decimals": (pl.Series([Decimal("0.10000000000000000001")] * 4), pl.Series([0.1] * 4)),
}  # fmt: skip
if hasattr(pl, "UInt128"):
    ones, large = pl.Series([1] * 4, dtype=pl.Int128), pl.Series([2**127 + 3] * 4, dtype=pl.UInt128)
    SAME_AS_FLOATS["whole numbers of 128 bits"] = (ones, large)


@pytest.mark.parametrize("name", SAME_AS_FLOATS)
def test_keys_that_collide_as_floats_raise(name: str, tmp_path: Path) -> None:
    first, second = (PEOPLE.with_columns(g=keys) for keys in SAME_AS_FLOATS[name])
    metric = tf.demographic_parity("g")
    seen = tf.Accumulator(metric, "y", "p").update(first)
    before = seen.compute_by_group()
    with pytest.raises(tf.errors.ColumnError, match=r"The column 'g' is .* cannot represent all values exactly"):
        seen.update(second)
    # and what was counted stays as it was
    assert seen.compute_by_group().equals(before)
    one, other = (metric.tally(item, "y", "p") for item in (first, second))
    tf.save_state(other, tmp_path / "state.parquet")
    with pytest.raises(tf.errors.ColumnError, match="cannot represent all values exactly"):
        _ = one + tf.load_state(tmp_path / "state.parquet", one)


def test_number_keys_of_different_types_merge_by_value() -> None:
    metric = tf.demographic_parity("g")
    kinds = [pl.Int64, pl.Float64, pl.UInt8, pl.Float32, pl.Decimal(10, 2)]
    seen = tf.Accumulator(metric, "y", "p")
    for kind in kinds:
        seen.update(PEOPLE.with_columns(g=pl.Series([1, 2, 1, 2]).cast(kind)))
    groups = seen.compute_by_group().sort(".group")
    assert groups[".n"].to_list() == [10, 10]


def test_null_key_takes_the_type_of_later_batches() -> None:
    seen = tf.Accumulator(tf.equal_opportunity("g"), "y", "p")
    seen.update(PEOPLE.with_columns(g=pl.lit(None))).update(NUMBERS)
    with pytest.raises(tf.errors.ArgumentError, match="The column 'g' is Int64 in one part and String in another"):
        seen.update(PEOPLE)
    assert seen.state.cells["n"].sum() == 8


def test_numbers_and_booleans_are_compatible_labels() -> None:
    seen = tf.Accumulator(tf.accuracy, "y", "p").update(PEOPLE).update(PEOPLE.cast({"y": pl.Boolean, "p": pl.Float64}))
    assert seen.compute()[".estimate"].item() == 0.5
    nobody = PEOPLE.with_columns(p=pl.lit(None))
    assert seen.update(nobody).compute()[".estimate"].item() == 0.5


def test_accumulator_rejects_states_of_other_columns_and_metrics() -> None:
    other = tf.Accumulator(tf.sens, "y", "g").update(PEOPLE.with_columns(g=pl.lit(1)))
    seen = tf.Accumulator(tf.sens, "y", "p")
    for strange in (other, tf.accuracy.tally(PEOPLE, "y", "g"), tf.brier_class.tally(PEOPLE, "y", probs="s")):
        with pytest.raises(tf.errors.ArgumentError, match=r"counted with different '(estimate|metrics)"):
            seen.merge(strange)
    odd: Any = tf.demographic_parity
    with pytest.raises(tf.errors.ArgumentError, match=r'give the feature, `demographic_parity\("column"\)`'):
        tf.Accumulator(odd, "y", "p")


def test_tallies_of_ordered_rows_do_not_add_up() -> None:
    parts = [tf.mase.tally(item, "y", "p") for item in (PEOPLE[:2], PEOPLE[2:])]
    with pytest.raises(tf.errors.ArgumentError, match="depend on the order of rows"):
        _ = parts[0] + parts[1]
    scaled = tf.metric_tweak(tf.mase, "mase", mae_train=2.0)
    whole = sum(scaled.tally(item, "y", "p") for item in (PEOPLE[:2], PEOPLE[2:]))
    assert isinstance(whole, tf.types.Tally)
    assert scaled.compute(whole).equals(scaled(PEOPLE, "y", "p"))


def test_keys_that_are_true_are_no_numbers() -> None:
    batches = [pl.DataFrame({"y": [1, 0], "p": [1, 1], "g": pl.Series(keys)}) for keys in ([True, False], [1, 0])]
    total = tf.Accumulator(tf.accuracy.difference("g"), "y", "p")
    total.update(batches[0])
    with pytest.raises(tf.errors.ArgumentError, match="The column 'g' is Boolean in one part and Int64 in another"):
        total.update(batches[1])
