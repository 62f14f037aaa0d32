"""States that add up batch by batch, merge, and travel as files."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import reference_data
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import tidyfair as tf

if TYPE_CHECKING:
    from pathlib import Path

OF_LABELS = tf.metric_set(
    tf.accuracy, tf.sens, tf.demographic_parity("sex"), tf.equalized_odds("race"), tf.theil_index,
    tf.differential_fairness("sex", "race"), tf.independence("race"), tf.separation("sex"),
)  # fmt: skip
OF_SCORES = tf.metric_set(tf.roc_auc, tf.brier_class, tf.auc_parity("race"), tf.theil_index_of_scores)
OF_NUMBERS = tf.metric_set(tf.rmse, tf.rsq, tf.mae_difference("race"), tf.explained_by_groups("sex"))
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


def same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert_frame_equal(found, expected, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("name", CALLS)
@settings(deadline=None, max_examples=6, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(cuts=st.lists(st.integers(0, 1000), max_size=6), order=st.randoms(use_true_random=False))
def test_batches_in_any_order_give_the_same_as_one_call(name: str, cuts: list[int], order: Any) -> None:
    metrics, columns = CALLS[name]
    parts = batches(cuts)
    order.shuffle(parts)
    seen = tf.Accumulator(metrics, **columns)
    for part in parts:
        seen.update(part)
    same(seen.compute(on_undefined="ignore"), metrics(DATA, **columns, on_undefined="ignore"))


def test_many_batches_are_merged_on_the_way() -> None:
    seen = tf.Accumulator(OF_LABELS, "y_true", "y_pred")
    for start in range(0, 1000, 5):
        seen.update(DATA[start : start + 5])
    assert OF_LABELS(DATA, "y_true", "y_pred", on_undefined="ignore").equals(seen.compute(on_undefined="ignore"))
    assert repr(seen).startswith("<accumulator of 1,000 rows for <metric set of")


def test_accumulators_merge_and_forget() -> None:
    one, other = (tf.Accumulator(OF_LABELS, "y_true", "y_pred").update(part) for part in batches([300]))
    whole = OF_LABELS(DATA, "y_true", "y_pred", on_undefined="ignore")
    assert one.merge(other).compute(on_undefined="ignore").equals(whole)
    assert one.merge(tf.Accumulator(OF_LABELS, "y_true", "y_pred")).state.cells["n"].sum() == 1000
    groups = OF_LABELS.by_group(DATA, "y_true", "y_pred")
    assert one.compute_by_group().equals(groups)
    with pytest.raises(tf.ArgumentError, match="Nothing has been counted"):
        one.reset().compute()
    odd: Any = 5
    with pytest.raises(tf.ArgumentError, match="merges with another one, or with a tally"):
        one.merge(odd)
    with pytest.raises(tf.ArgumentError, match="Only tallies of the same columns"):
        other.merge(tf.accuracy.tally(DATA, "y_true", "y_pred"))


@pytest.mark.parametrize("name", CALLS)
def test_states_travel_as_files(name: str, tmp_path: Path) -> None:
    metrics, columns = CALLS[name]
    like = metrics.tally(DATA[:0], **columns)
    states: list[tf.Tally] = []
    for place, part in enumerate(batches([100, 700])):
        path = tmp_path / f"{place}.parquet"
        tf.save_state(metrics.tally(part, **columns), path)
        states.append(tf.load_state(path, like))
    same(metrics.compute(sum(states), on_undefined="ignore"), metrics(DATA, **columns, on_undefined="ignore"))


def test_a_state_of_labels_holds_no_rows(tmp_path: Path) -> None:
    tf.save_state(OF_LABELS.tally(DATA, "y_true", "y_pred"), tmp_path / "state.parquet")
    assert len(pl.read_parquet(tmp_path / "state.parquet")) < 40


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.parquet"
    like = OF_LABELS.tally(DATA, "y_true", "y_pred")
    tf.save_state(like, path)

    def refused(what: str, wanted: tf.Tally = like) -> None:
        with pytest.raises(tf.ArgumentError, match=what):
            tf.load_state(path, wanted)

    refused("counted for other keys", tf.accuracy.tally(DATA, "y_true", "y_pred"))
    refused("counted for other estimate", OF_LABELS.tally(DATA.rename({"y_pred": "p"}), "y_true", "p"))
    refused("counted for other weights", OF_LABELS.tally(DATA, "y_true", "y_pred", case_weights="weight"))
    written = json.loads(pl.read_parquet_metadata(path)["tidyfair"])
    pl.read_parquet(path).write_parquet(path, metadata={"tidyfair": json.dumps(written | {"version": 99})})
    refused("of version 99; this release reads version 1")
    DATA.write_parquet(path)
    refused("is no state: `save_state` writes them")
    DATA.write_parquet(path, metadata={"tidyfair": "no json"})
    refused("cannot be read as a state")
    path.write_bytes(path.read_bytes()[:200])
    refused("cannot be read as a state")
    path.unlink()
    refused("cannot be read as a state")


# States that are shown to others


def test_small_cells_are_left_out_with_what_gives_them_away(tmp_path: Path) -> None:
    rare = tf.metric_set(tf.sens, tf.demographic_parity("race"))
    tally = rare.tally(DATA, "y_true", "y_pred")
    path = tmp_path / "state.parquet"
    tf.save_state(tally, path, suppress_below=15)
    shown = tf.load_state(path, tally).cells
    counts = tally.cells.sort("k0", "truth", "estimate")["n"].to_list()
    left = shown.sort("k0", "truth", "estimate")
    assert any(count < 15 for count in counts)
    for count, kept, hidden in zip(counts, left["n"], left["hidden"], strict=True):
        assert kept == (0 if hidden else count)
        assert hidden == 1 or count >= 15
    # of no group, and of no pair of labels, is a single one left out
    for margin in (["k0"], ["truth", "estimate"]):
        alone = (
            left.group_by(margin)
            .agg(pl.col("hidden").sum(), pl.len())
            .filter((pl.col("hidden") == 1) & (pl.col("len") > 1))
        )
        assert alone.is_empty()


def test_what_touches_them_has_no_value(tmp_path: Path) -> None:
    rare = tf.metric_set(tf.sens, tf.demographic_parity("race"), tf.theil_index, tf.independence("race"))
    tally = rare.tally(DATA, "y_true", "y_pred")
    path = tmp_path / "state.parquet"
    tf.save_state(tally, path, suppress_below=15)
    state = tf.load_state(path, tally)
    groups = rare.compute_by_group(state)
    whole = rare.by_group(DATA, "y_true", "y_pred")
    for row, full in zip(groups.to_dicts(), whole.to_dicts(), strict=True):
        if row[".status"] == "suppressed":
            assert row[".estimate"] is None
        elif row[".metric"] == "detection_prevalence":
            assert row[".estimate"] == full[".estimate"]
    statuses = dict(groups.filter(pl.col(".metric") == "detection_prevalence").select(".group", ".status").rows())
    assert statuses["rare"] == "suppressed"
    assert "ok" in statuses.values()
    found = rare.compute(state, explain=True, on_undefined="ignore")
    assert found.filter(pl.col(".metric").is_in(["sens", "theil_index"]))[".status"].to_list() == ["suppressed"] * 2
    # a distance to all is one to what is not known
    assert found.filter(pl.col(".metric") == "independence")[".estimate"].to_list() == [None]
    assert "rare" in found.filter(pl.col(".metric") == "demographic_parity")[".groups_left_out"].to_list()[0]
    with pytest.warns(tf.UndefinedWarning, match="suppressed"):
        rare.compute(state)
    # and stays so in sums
    again = rare.compute_by_group(state + tally).filter(pl.col(".group") == "rare")
    assert set(again[".status"]) == {"suppressed"}


def test_only_counts_of_labels_are_suppressed(tmp_path: Path) -> None:
    path = tmp_path / "state.parquet"
    scored = OF_SCORES.tally(DATA, "y_true", probs="score")
    with pytest.raises(tf.ArgumentError, match="Only counts of labels can be suppressed"):
        tf.save_state(scored, path, suppress_below=5)
    odd: Any = 2.5
    with pytest.raises(tf.ArgumentError, match="`suppress_below` is a number of rows"):
        tf.save_state(OF_LABELS.tally(DATA, "y_true", "y_pred"), path, suppress_below=odd)
