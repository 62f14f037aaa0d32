"""Sensitivity of gates: errors that turn a verdict equal brute force, and bounds hold for every missing truth."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.errors import ArgumentError
from tidyfair.inference import verdict_sensitivity

if TYPE_CHECKING:
    from collections.abc import Iterator

CELLS = {"tp": (1, 1), "fn": (1, 0), "fp": (0, 1), "tn": (0, 0), "selected": (None, 1), "unselected": (None, 0)}
TRUTHS = {"tp": "fp", "fp": "tp", "fn": "tn", "tn": "fn"}
Counts = dict[str, dict[str, int]]


def rows_of(counts: Counts) -> pl.DataFrame:
    """The rows of cells by group."""
    parts = [
        pl.DataFrame({"g": [group] * n, "y": [CELLS[cell][0]] * n, "p": [CELLS[cell][1]] * n},
                     schema={"g": pl.String, "y": pl.Int64, "p": pl.Int64})
        for group, cells in counts.items() for cell, n in cells.items()
    ]  # fmt: skip
    return pl.concat(parts)


def verdicts(metric: tf.types.GroupwiseMetric, tables: list[Counts], **limit: Any) -> list[str]:
    """The verdict on each table, judged alone."""
    cells: list[tuple[int, str, int | None, int, int]] = []
    for index, table in enumerate(tables):
        for group, counts in table.items():
            for cell, n in counts.items():
                truth, estimate = CELLS[cell]
                if n:
                    cells.append((index, group, truth, estimate, n))
    data = pl.DataFrame(
        cells, schema={"table": pl.Int64, "g": pl.String, "y": pl.Int64, "p": pl.Int64, "n": pl.Int64}, orient="row"
    )
    results = metric(
        data, "y", "p", group_by="table", frequency_weights="n", interval="auto", conf_level=0.9, explain=True,
        on_undefined="ignore",
    )  # fmt: skip
    return tf.check(results, **limit)[".verdict"].to_list()


def moved(counts: Counts, group: str, moves: dict[tuple[str, str, str], int]) -> Counts:
    """The counts after rows have moved: `(cell, other cell, group that it is in)`."""
    result = {name: dict(cells) for name, cells in counts.items()}
    for (cell, other, target), rows in moves.items():
        result[group][cell] -= rows
        result[target][other] = result[target].get(other, 0) + rows
    return result


def splits(rows: int, room: list[int]) -> Iterator[tuple[int, ...]]:
    """All ways to take so many rows out of several cells."""
    if not room:
        if rows == 0:
            yield ()
        return
    for first in range(min(rows, room[0]) + 1):
        for others in splits(rows - first, room[1:]):
            yield (first, *others)


def fewest(
    metric: tf.types.GroupwiseMetric, counts: Counts, group: str, error: str, most: int, **limit: Any
) -> int | None:
    """The fewest rows whose error turns the verdict, by trying all."""
    (now,) = verdicts(metric, [counts], **limit)
    others = [name for name in counts if name != group]
    cells = ("tp", "fn", "fp", "tn")
    if error == "wrong truth":
        kinds = [[(cell, TRUTHS[cell], group) for cell in cells]]
    elif error == "missing truth":
        kinds = [
            [("selected", one, group), ("unselected", other, group)] for one in ("tp", "fp") for other in ("fn", "tn")
        ]
    else:
        kinds = [[(cell, cell, other) for cell in counts[group]] for other in others]
    for rows in range(1, most + 1):
        tables: list[Counts] = []
        for kind in kinds:
            room = [counts[group].get(cell, 0) for cell, _, _ in kind]
            tables += [moved(counts, group, dict(zip(kind, split, strict=True))) for split in splits(rows, room)]
        if tables and any(verdict != now for verdict in verdicts(metric, tables, **limit)):
            return rows
    return None


SMALL: Counts = {
    "a": {"tp": 40, "fn": 12, "fp": 5, "tn": 20, "selected": 6, "unselected": 5},
    "b": {"tp": 36, "fn": 14, "fp": 9, "tn": 15, "selected": 2, "unselected": 7},
}
WIDE: Counts = {
    "a": {"tp": 60, "fn": 6, "fp": 3, "tn": 20, "selected": 3, "unselected": 4},
    "b": {"tp": 20, "fn": 34, "fp": 9, "tn": 15, "selected": 2, "unselected": 9},
}
CASES: dict[str, tuple[tf.types.GroupwiseMetric, Counts, dict[str, Any]]] = {
    "a pass": (tf.equal_opportunity("g"), SMALL, {"below": 0.22}),
    "a failure": (tf.equal_opportunity("g"), WIDE, {"below": 0.33}),
    "not enough evidence": (tf.accuracy.difference("g"), SMALL, {"below": 0.15}),
    "a ratio": (tf.equal_opportunity_ratio("g"), SMALL, {"above": 0.72}),
}


@pytest.mark.parametrize("name", CASES)
def test_fewest_errors_equal_those_of_brute_force(name: str) -> None:
    metric, counts, limit = CASES[name]
    result = verdict_sensitivity(tf.check(metric, **limit))(rows_of(counts), "y", "p")
    tried = 0
    for row in result.filter(pl.col(".group").is_not_null()).to_dicts():
        most = 6
        expected = fewest(metric, counts, row[".group"], row[".error"], most, **limit)
        if expected is None:
            assert row[".rows"] is None or row[".rows"] > most
        else:
            tried += 1
            assert (row[".error"], row[".group"], row[".rows"]) == (row[".error"], row[".group"], expected)
            assert row[".share"] == pytest.approx(expected / row[".n"])
    assert tried >= 2


def test_errors_that_are_named_turn_the_verdict_of_the_gate_and_fewer_do_not() -> None:
    people = lending()
    gate = tf.check(tf.equal_opportunity("sex"), below=0.1)
    result = verdict_sensitivity(gate)(people, "repaid", "approved", pos_label="yes")
    wrong = result.filter(pl.col(".error") == "wrong truth", pl.col(".moved") == "fn to tn")
    assert len(wrong) == 1
    row = wrong.row(0, named=True)
    is_moved = (pl.col("sex") == row[".group"]) & (pl.col("repaid") == "yes") & (pl.col("approved") == "no")
    for rows, verdict in ((0, "pass"), (int(row[".rows"] * 0.99) - 1, "pass"), (row[".rows"], row[".becomes"])):
        flipped = is_moved & (is_moved.cum_sum() <= rows)
        mended = people.with_columns(
            pl.when(flipped).then(pl.lit("no")).otherwise(pl.col("repaid").cast(pl.String)).alias("repaid"),
            pl.col("approved").cast(pl.String),
        )
        assert gate(mended, "repaid", "approved", pos_label="yes")[".verdict"].item() == verdict


@pytest.mark.parametrize("name", CASES)
def test_bounds_of_missing_truths_equal_those_of_all_truths_there_may_be(name: str) -> None:
    metric, counts, limit = CASES[name]
    result = verdict_sensitivity(tf.check(metric, **limit))(rows_of(counts), "y", "p")
    choices: dict[str, list[Counts]] = {}
    for group, cells in counts.items():
        choices[group] = [
            moved(counts, group, {
                ("selected", "tp", group): a, ("selected", "fp", group): cells["selected"] - a,
                ("unselected", "fn", group): b, ("unselected", "tn", group): cells["unselected"] - b,
            })
            for a in range(cells["selected"] + 1) for b in range(cells["unselected"] + 1)
        ]  # fmt: skip
    of_all = [{"a": one["a"], "b": other["b"]} for one, other in itertools.product(choices["a"], choices["b"])]
    for group, tables in (("a", choices["a"]), ("b", choices["b"]), (None, of_all)):
        data = pl.concat([rows_of(table).with_columns(table=index) for index, table in enumerate(tables)])
        values = metric(data, "y", "p", group_by="table", on_undefined="ignore")[".estimate"].to_numpy()
        row = result.filter(pl.col(".error") == "missing truth", pl.col(".group").eq_missing(pl.lit(group)))
        lowest, highest = row.select(".lowest", ".highest").row(0)
        # the nearest to equality may be between two whole numbers of rows
        if "above" in limit:
            assert lowest == pytest.approx(values.min())
            assert values.max() <= highest + 1e-12 <= values.max() + 0.02
        else:
            assert highest == pytest.approx(values.max())
            assert values.min() - 0.02 <= lowest - 1e-12 <= values.min()


@pytest.mark.parametrize("limit", [0.0, 0.1, 0.3, 1.0])
def test_bounds_of_missing_truths_that_differ_from_known_ones_by_a_limit(limit: float) -> None:
    def ends(known: tuple[int, int], rows: int, of_group: float) -> list[float]:
        """The fewest and the most events among rows without a truth."""
        share = known[0] / sum(known) if sum(known) else of_group
        return [rows * min(max(share + sign * limit, 0), 1) for sign in (-1, 1)]

    # nobody who was not selected in the second group has a truth
    counts: dict[str, dict[str, int]] = {
        "a": SMALL["a"], "b": {"tp": 36, "fn": 0, "fp": 9, "tn": 0, "selected": 2, "unselected": 31}
    }  # fmt: skip
    rates: dict[str, list[float]] = {}
    for group, own in counts.items():
        events = own["tp"] + own["fn"]
        of_group = events / (events + own["fp"] + own["tn"])
        hits = ends((own["tp"], own["fp"]), own["selected"], of_group)
        misses = ends((own["fn"], own["tn"]), own["unselected"], of_group)
        tried = [(own["tp"] + a) / (events + a + b) for a, b in itertools.product(hits, misses)]
        rates[group] = [min(tried), max(tried)]
    gate = tf.check(tf.equal_opportunity("g"), below=0.2)
    result = verdict_sensitivity(gate, missing_difference=limit)(rows_of(counts), "y", "p")
    row = result.filter(pl.col(".error") == "missing truth", pl.col(".group").is_null())
    highest = max(rates["a"][1] - rates["b"][0], rates["b"][1] - rates["a"][0], 0)
    lowest = max(rates["a"][0] - rates["b"][1], rates["b"][0] - rates["a"][1], 0)
    assert row.select(".lowest", ".highest").row(0) == pytest.approx((lowest, highest), abs=1e-12)
    with pytest.raises(ArgumentError, match="missing_difference"):
        verdict_sensitivity(gate, missing_difference=1.5)


def test_disparities_that_read_no_truth_have_rows_for_wrong_groups_alone() -> None:
    data = rows_of(SMALL)
    parity = tf.demographic_parity("g")
    for result in (
        verdict_sensitivity(parity, below=0.3)(data, "y", "p"),
        verdict_sensitivity(parity, below=0.3)(data, estimate="p"),
    ):
        assert result[".error"].to_list() == ["wrong group", "wrong group"]
        assert result[".n"].to_list() == [88, 83]
        assert result[".share"].null_count() == 0
    both = verdict_sensitivity(tf.metric_set(parity, tf.equal_opportunity("g")), below=0.3)(data, "y", "p")
    assert both.filter(pl.col(".metric") == "equal_opportunity")[".error"].n_unique() == 3
    assert both.filter(pl.col(".metric") == "demographic_parity")[".error"].n_unique() == 1


def test_no_rows_give_no_rows_with_the_columns_of_the_call() -> None:
    data = rows_of(SMALL).with_columns(fold=pl.lit("one"), w=0)
    for metric in (tf.demographic_parity("g"), tf.equal_opportunity("g")):
        tried = verdict_sensitivity(metric, below=0.3)
        alone, by_fold = tried(data, "y", "p"), tried(data, "y", "p", group_by="fold")
        assert tried(data.clear(), "y", "p").schema == alone.schema
        assert tried(data.clear(), "y", "p", group_by="fold").schema == by_fold.schema
        assert tried(data, "y", "p", frequency_weights="w").equals(alone.clear())


@pytest.mark.parametrize("times", [10**6, 10**10, 10**13])
def test_share_that_turns_a_verdict_of_very_many_rows_is_that_of_the_limit(times: int) -> None:
    counts = {"a": {"tp": 80, "fn": 20, "fp": 30, "tn": 70}, "b": {"tp": 75, "fn": 25, "fp": 30, "tn": 70}}
    data = rows_of({group: dict.fromkeys(cells, 1) for group, cells in counts.items()})
    data = data.with_columns(n=pl.Series([n * times for cells in counts.values() for n in cells.values()]))
    gate = tf.check(tf.equal_opportunity("g"), below=0.1)
    result = verdict_sensitivity(gate)(data, "y", "p", frequency_weights="n")
    shares = {(error, group): share for error, group, share in result.select(".error", ".group", ".share").rows()}
    # sensitivity of a rises to 0.85, or that of b falls to 0.7, by truths that turn from tn to fn, or fn to tn
    assert shares["wrong truth", "b"] == pytest.approx((75 / 0.7 - 100) / 200, rel=0.01)
    assert shares["wrong truth", "a"] == pytest.approx((100 - 80 / 0.85) / 200, rel=0.01)
    # members of b that were missed are counted in a, or the other way round
    assert shares["wrong group", "a"] is not None
    assert shares["wrong group", "b"] is not None


def test_a_huge_group_beside_a_small_one_is_tried_too() -> None:
    data = rows_of({"a": {"tp": 1, "fn": 1, "tn": 1}, "b": {"tp": 300, "fn": 100, "tn": 400}})
    data = data.with_columns(n=pl.when(pl.col("g") == "a").then(10**13).otherwise(1))
    result = verdict_sensitivity(tf.equal_opportunity("g"), below=0.5)(data, "y", "p", frequency_weights="n")
    wrong = result.filter(pl.col(".error") == "wrong truth", pl.col(".group") == "a")
    assert 0 < wrong[".share"].item() < 0.5


def test_outer_groups_features_of_several_columns_and_null_groups_have_rows_of_their_own() -> None:
    people = lending(1200).with_columns(pl.when(pl.col("race") != "Native").then("race").alias("race"))
    metric = tf.equal_opportunity("sex", "race", min_n=10, unknown="group")
    gate = verdict_sensitivity(metric, below=0.9)
    result = gate(people, "repaid", "approved", pos_label="yes", group_by="age_band")
    assert result.columns[0] == "age_band"
    assert result["age_band"].unique(maintain_order=True).to_list() == sorted(people["age_band"].unique())
    assert "female:null" in result[".group"].to_list()
    youngest = people.filter(pl.col("age_band") == "18-29")
    alone = gate(youngest, "repaid", "approved", pos_label="yes")
    assert alone.equals(result.filter(pl.col("age_band") == "18-29").drop("age_band"))


def test_scores_with_a_threshold_and_sides_of_a_condition_are_tried_too() -> None:
    people = lending(1500).to_pandas()
    gate = verdict_sensitivity(tf.equalized_odds(tf.privileged(race="White")), below=0.2)
    result = gate(people, "repaid", probs="score", threshold=0.5, pos_label="yes")
    assert type(result).__module__.startswith("pandas")
    assert result[".share"].notna().any()
    assert set(result[".group"].dropna()) == set(people["race"])


def test_a_tally_gives_what_data_give() -> None:
    gate = tf.check(tf.equal_opportunity("g"), below=0.22)
    data = rows_of(SMALL)
    tally = gate.metrics.tally(data, "y", "p")
    assert verdict_sensitivity(gate).compute(tally).equals(verdict_sensitivity(gate)(data, "y", "p"))


def test_four_fifths_rule_keeps_its_favourable_label() -> None:
    tried = verdict_sensitivity(tf.four_fifths("sex", pos_label="yes"))(lending(), estimate="approved")
    row = tried.filter(pl.col(".error") == "wrong group").row(0, named=True)
    assert row[".verdict"] == "pass"
    assert 0 < row[".share"] < 0.2


def test_picture_shows_every_share_and_says_where_none_turns_the_verdict() -> None:
    result = verdict_sensitivity(tf.equal_opportunity("g"), below=0.3)(rows_of(SMALL), "y", "p")
    chart = tf.autoplot(result).to_dict()
    drawn = [row for rows in chart["datasets"].values() for row in rows if "panel" in row]
    assert len(drawn) == len(result.filter(pl.col(".group").is_not_null()))
    assert {row["panel"] for row in drawn} == {"Wrong truth", "Missing truth", "Wrong group"}
    assert {row["why"] for row in drawn if row["estimate"] is None} == {"does not turn it"}


CALLS: list[tuple[Any, dict[str, Any], str]] = [
    (tf.accuracy, {"above": 0.5}, "does not compare groups"),
    (tf.auc_parity("g"), {"below": 0.5}, "from counts of labels"),
    (
        tf.check(tf.equal_opportunity("g"), below=0.1),
        {"below": 0.1},
        "uses the limit and the confidence level of the gate",
    ),
    (tf.check(tf.equal_opportunity("g"), below=0.1), {"conf_level": 0.9}, "the confidence level of the gate"),
    (tf.equal_opportunity("g"), {}, "^verdict_sensitivity.. needs one limit"),
    (
        tf.equal_opportunity("g"),
        {"below": 5},
        "^verdict_sensitivity.. no verdict depends|^verdict_sensitivity.*below=5",
    ),
    (tf.equal_opportunity, {"below": 0.1}, "did you mean"),
    (tf.equal_opportunity("g"), {"below": 0.1, "conf_level": 95}, "`conf_level`"),
    (5, {"below": 0.1}, "^verdict_sensitivity.. takes a gate, or disparities with a limit.* not 5"),
    (None, {"below": 0.1}, "^verdict_sensitivity.. takes a gate.* not None"),
    (tf.equal_opportunity("g")(rows_of(SMALL), "y", "p"), {"below": 0.1}, "^verdict_sensitivity.. takes a gate"),
]


@pytest.mark.parametrize(("given", "limit", "message"), CALLS)
def test_gates_that_cannot_be_tried_are_refused(given: Any, limit: dict[str, Any], message: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=message):
        verdict_sensitivity(given, **limit)


def test_weights_lists_of_thresholds_and_very_many_groups_are_refused() -> None:
    gate = verdict_sensitivity(tf.equal_opportunity("g"), below=0.1)
    data = rows_of(SMALL).with_columns(w=pl.lit(1.0), s=pl.lit(0.5))
    with pytest.raises(tf.errors.ArgumentError, match="`case_weights`"):
        gate(data, "y", "p", case_weights="w")
    with pytest.raises(tf.errors.ArgumentError, match="list of values for threshold"):
        gate(data, "y", probs="s", threshold=[0.2, 0.5])
    many = pl.DataFrame({"g": np.arange(60), "y": [1, 0] * 30, "p": [1, 0] * 30})
    with pytest.raises(tf.errors.ArgumentError, match="at most 30 groups"):
        gate(many, "y", "p")
