"""Suppression of small counts, attacked by linear programming with all that is shown."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import examples
from polars.testing import assert_frame_equal
from scipy.optimize import linprog

import tidyfair as tf
from tidyfair.tallies import hidden_groups

SHAPES = [
    # cells by dimension, and the margins that are shown, by the dimensions that they keep
    ((6,), [(0,), ()]),
    ((4, 3), [(0, 1), (0,), (1,), ()]),
    ((5, 3), [(0,), (1,), ()]),
    ((3, 3, 2), [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,), ()]),
    ((3, 2, 2), [(0, 1), (1, 2), (0, 2), ()]),
    ((4, 2, 2), [(0, 1), (2,), ()]),
]
"""Tables with two and three features, some of which are linked without a table of their crossing."""


def group_numbers(shape: tuple[int, ...], kept: tuple[int, ...]) -> Any:
    """The group of each cell in the margin that keeps some dimensions."""
    cells = np.array(list(itertools.product(*map(range, shape))))
    return np.array([int(np.ravel_multi_index([cell[axis] for axis in kept], [shape[axis] for axis in kept]))
                     if kept else 0 for cell in cells])  # fmt: skip


def random_tables(number: int, seed: int) -> Iterator[tuple[Any, list[Any], int]]:
    """Counts of cells by label, tables and the least count that is shown."""
    rng = np.random.default_rng(seed)
    for index in range(number):
        shape, margins = SHAPES[index % len(SHAPES)]
        labels = int(rng.integers(1, 5))
        scale = rng.choice([3, 12, 60], size=(int(np.prod(shape)), 1))
        counts = rng.poisson(scale * rng.uniform(0.1, 1.5, size=(1, labels)), size=(int(np.prod(shape)), labels))
        counts[rng.random(counts.shape) < 0.1] = 0
        yield counts, [group_numbers(shape, kept) for kept in margins], int(rng.choice([3, 5, 10]))


def ends(relations: Any, totals: Any, own: Any) -> tuple[float, float]:
    """The least and largest sum of some cells that agrees with known sums of cells."""
    known: dict[str, Any] = {"A_eq": relations, "b_eq": totals} if len(relations) else {}
    lowest, highest = (linprog(sign * own, **known) for sign in (1, -1))
    return lowest.fun, np.inf if highest.status == 3 else -highest.fun


def sums(tables: list[Any]) -> Any:
    """The groups of tables as a matrix of groups by cells."""
    return np.array([(table == group).astype(float) for table in tables for group in range(int(table.max()) + 1)])


def attacked(number: int, seed: int) -> int:
    """The number of small counts that were attacked, none of which was recovered."""
    protected = 0
    for counts, tables, below in random_tables(number, seed):
        members, is_hidden = sums(tables), np.concatenate(hidden_groups(counts, tables, below))
        totals = members @ counts
        for group, label in np.argwhere((totals > 0) & (totals < below)):
            lower, upper = ends(members[~is_hidden], totals[~is_hidden, label], members[group])
            protected += 1
            assert is_hidden[group]
            assert lower < 1e-6, (counts, below)
            assert upper > below - 1e-6, (counts, below)
    return protected


def test_linear_programming_recovers_no_small_count() -> None:
    assert attacked(40, 0) > 200


@pytest.mark.simulation
def test_linear_programming_recovers_no_small_count_in_many_tables() -> None:
    tables = int(os.environ.get("RANDOM_TABLES", "250"))
    assert attacked(tables, 1) > 2 * tables


def overlapping_tables(number: int, seed: int) -> Iterator[tuple[Any, Any, Any, int]]:
    """Counts of combinations of three tags and a feature, by label, with the tags and the feature of each."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        cells = np.array(list(itertools.product([0, 1], [0, 1], [0, 1], [0, 1])))
        counts = rng.poisson(rng.choice([1, 4, 15, 60], size=(16, 1)), size=(16, int(rng.integers(1, 4))))
        counts[rng.random(counts.shape) < 0.15] = 0
        yield counts, cells[:, :3], cells[:, 3], int(rng.choice([3, 5, 10]))


def attacked_overlapping(number: int, seed: int) -> int:
    """The number of small counts of tags, of two tags together and of combinations that were attacked in vain."""
    protected = 0
    for counts, tags, feature, below in overlapping_tables(number, seed):
        nobody = (tags.sum(axis=1) == 0)[:, None]
        of_group = np.hstack([tags, nobody]).astype(float)
        cell, group = of_group.nonzero()
        shown_tags, shown_feature, shown_all = hidden_groups(counts, [(cell, group), feature, feature * 0], below)
        is_shown = ~shown_tags
        singles = of_group.T
        pairs = {(i, j): singles[i] * singles[j] for i, j in itertools.combinations(range(3), 2)}
        # intervals of the difference of two groups that are shown tell how many people both have
        known = [
            *singles[is_shown], *(row for (i, j), row in pairs.items() if is_shown[i] and is_shown[j]),
            *sums([feature])[~shown_feature], *sums([feature * 0])[~shown_all],
        ]  # fmt: skip
        relations = np.array(known).reshape(-1, 16)
        combinations = np.unique(tags, axis=0, return_inverse=True)[1]
        secrets = [*singles, *pairs.values(), *sums([combinations.ravel()]), *sums([feature])]
        for own, label in itertools.product(secrets, range(counts.shape[1])):
            if 0 < own @ counts[:, label] < below:
                lower, upper = ends(relations, relations @ counts[:, label], own)
                assert lower < 1e-6, (counts, below)
                assert upper > below - 1e-6, (counts, below)
                protected += 1
    return protected


def test_people_in_several_groups_are_not_given_away() -> None:
    assert attacked_overlapping(30, 0) > 90


@pytest.mark.simulation
def test_people_in_several_groups_are_not_given_away_in_many_tables() -> None:
    tables = int(os.environ.get("RANDOM_TABLES", "500"))
    assert attacked_overlapping(tables, 1) > 3 * tables


def test_groups_that_overlap_are_hidden_with_the_people_that_they_share() -> None:
    sizes = {"a": 60, "b": 50, "c": 40, "a;b": 2, "b;c": 20, "none": 30}
    people = pl.DataFrame({"tags": [tags for tags, size in sizes.items() for _ in range(size)]})
    people = people.with_columns(guess=1)
    tags = tf.memberships("tags", separator=";")
    for by in (tags, tf.memberships("a", "b", "c", name="tags")):
        data = people.with_columns(pl.col("tags").str.split(";").list.contains(name).alias(name) for name in "abc")
        call: dict[str, Any] = {"estimate": "guess", "pos_label": 1, "suppress_below": 5}
        groups = tf.selection_rate.difference(by).by_group(data, **call)
        # 2 people are both a and b, so that one of these is not shown; everybody in all is
        shown = dict(groups.select(".group", ".n").rows())
        assert shown in ({"a": 62, "b": None, "c": 60, "none": 30}, {"a": None, "b": 72, "c": 60, "none": 30})
        table = tf.compare_groups(tf.selection_rate, by=by, to="c")(data, **call)
        assert table.filter(pl.col(".status") == "suppressed")[".n"].to_list() == [None]
    unsure = people.with_columns(a=pl.Series([None, *[True] * 201]), b=pl.Series([True] * 202))
    with pytest.raises(tf.errors.ArgumentError, match=r"is known whether they are in one group of 'a\|b'"):
        tf.selection_rate.difference(tf.memberships("a", "b"))(unsure, estimate="guess", pos_label=1, suppress_below=5)


def test_groups_are_hidden_only_for_small_counts() -> None:
    counts = np.array([[40, 10], [3, 20], [30, 25], [80, 90]])
    (by_group, every) = hidden_groups(counts, [np.arange(4), np.zeros(4, dtype=int)], 5)
    # the smallest other group goes with the one that has a small count, and all rows are shown
    assert by_group.tolist() == [False, True, True, False] or by_group.tolist() == [True, True, False, False]
    assert every.tolist() == [False]
    (by_group, every) = hidden_groups(counts, [np.arange(4), np.zeros(4, dtype=int)], 3)
    assert not by_group.any()
    # a count of 0 is nobody's
    counts[1, 0] = 0
    (by_group, every) = hidden_groups(counts, [np.arange(4), np.zeros(4, dtype=int)], 5)
    assert not by_group.any()


def people_of(counts: Any) -> pl.DataFrame:
    """Rows of two features, a truth and a prediction."""
    cells = itertools.product("abcd", "xyz", [0, 1], [0, 1])
    rows = [cell for cell, count in zip(cells, counts.ravel().tolist(), strict=True) for _ in range(count)]
    return pl.DataFrame(rows, schema=["g", "h", "truth", "guess"], orient="row")


def random_people(number: int) -> Iterator[tuple[pl.DataFrame, int]]:
    """Rows, and the least count that is shown."""
    rng = np.random.default_rng(5)
    for _ in range(number):
        counts = rng.poisson(rng.choice([1, 6, 40, 90], size=(4, 3, 1)), size=(4, 3, 4))
        counts[rng.random(counts.shape) < 0.15] = 0
        yield people_of(counts), int(rng.choice([3, 5, 10]))


def test_saved_states_and_totals_give_no_small_count_away(tmp_path: Path) -> None:
    metric, pairs = tf.equalized_odds("g", "h"), list(itertools.product([0, 1], [0, 1]))
    for people, below in random_people(examples(40)):
        tally = metric.tally(people, "truth", "guess")
        tf.save_state(tally, tmp_path / "state.parquet", suppress_below=below)
        shown = tf.load_state(tmp_path / "state.parquet", tally).cells
        assert not ((shown["n"] > 0) & (shown["n"] < below)).any()
        true = {row[:4]: row[4] for row in tally.cells.select("k0", "k1", "truth", "estimate", "n").rows()}
        hidden = {*shown.filter(pl.col("hidden") > 0).select("k0", "k1").rows()}
        groups = sorted({key[:2] for key in true})
        margins = [
            [0] * len(groups),
            *(np.unique([group[key] for group in groups], return_inverse=True)[1] for key in (0, 1)),
        ]
        margins = [np.array(margin) for margin in margins]
        is_shown = np.array([group not in hidden for group in groups])
        for pair in pairs:
            counts = np.array([true.get((*group, *pair), 0) for group in groups])
            totals = sums(margins)
            # totals that are small themselves are not published
            totals = totals[~((totals @ counts > 0) & (totals @ counts < below))]
            relations = np.vstack([totals, np.eye(len(groups))[is_shown]])
            for index in np.flatnonzero((counts > 0) & (counts < below)):
                own = np.eye(len(groups))[index]
                lower, upper = ends(relations, relations @ counts, own)
                if lower > 1e-6 or upper < below - 1e-6:
                    # the totals say so without any group
                    assert np.allclose(ends(totals, totals @ counts, own), (lower, upper), atol=1e-6)


def test_frames_give_no_small_count_away() -> None:
    by_pair = tf.equalized_odds("g", "h")
    parities = (tf.equal_opportunity("g"), tf.accuracy.difference("h"))
    fair = tf.metric_set(tf.accuracy, tf.selection_rate, by_pair, *parities)
    attacks = 0
    for people, below in random_people(15):
        frame = fair.by_group(people, "truth", "guess", suppress_below=below, on_undefined="ignore")
        cells = list(itertools.product("abcd", "xyz", [0, 1], [0, 1]))
        weights = {"sens": ((1, 1), (1, 0)), "spec": ((0, 0), (0, 1)), "accuracy": ((0, 0), (1, 1), (0, 1), (1, 0)),
                   "selection_rate": ((0, 1), (1, 1), (0, 0), (1, 0))}  # fmt: skip
        hits = {"sens": ((1, 1),), "spec": ((0, 0),), "accuracy": ((0, 0), (1, 1)), "selection_rate": ((0, 1), (1, 1))}
        relations: list[Any] = []
        totals: list[float] = []
        hidden: list[dict[str, Any]] = []
        for row in frame.to_dicts():
            inside = [all(row[key] in {None, cell[at]} for at, key in enumerate("gh")) for cell in cells]
            if row[".status"] == "suppressed":
                assert row[".estimate"] is row[".n"] is row[".denominator"] is None
                hidden.append({"inside": inside})
                continue
            value = (row[".estimate"] or 0.0) * row[".denominator"]
            for pairs, total in ((weights[row[".metric"]], row[".denominator"]), (hits[row[".metric"]], value)):
                relations.append(
                    [float(is_in and cell[2:] in pairs) for cell, is_in in zip(cells, inside, strict=True)]
                )
                totals.append(round(total))
            relations.append([float(is_in) for is_in in inside])
            totals.append(row[".n"])
        counts = people.group_by("g", "h", "truth", "guess").len()
        true = {row[:4]: row[4] for row in counts.rows()}
        for inside in {tuple(one["inside"]) for one in hidden}:
            for pair in itertools.product([0, 1], [0, 1]):
                own = np.array([float(is_in and cell[2:] == pair) for cell, is_in in zip(cells, inside, strict=True)])
                if 0 < own @ np.array([true.get(cell, 0) for cell in cells]) < below:
                    lower, upper = ends(np.array(relations), np.array(totals), own)
                    assert lower < 1e-6
                    assert upper > below - 1e-6
                    attacks += 1
    assert attacks > 60


def rare_people() -> pl.DataFrame:
    """Two large groups, a small one, and people of unknown groups."""
    sizes = {"a": 60, "b": 40, "c": 30, "rare": 2, "Unknown": 3, None: 3}
    groups = [group for group, size in sizes.items() for _ in range(size)]
    people = pl.DataFrame({"g": groups}).with_row_index("i")
    hit = (pl.col("i") % 3 == 0).cast(pl.Int64)
    return people.with_columns(truth=hit, guess=(pl.col("i") % 2), score=pl.col("i") / 140, number=pl.col("i") * 1.0)


@pytest.mark.parametrize("interval", [None, "auto"])
@pytest.mark.parametrize(
    ("metric", "call"),
    [
        (tf.selection_rate, {"estimate": "guess"}),
        (tf.f_meas, {"truth": "truth", "estimate": "guess"}),
        (tf.roc_auc, {"truth": "truth", "probs": "score"}),
        (tf.brier_class, {"truth": "truth", "probs": "score"}),
        (tf.rmse, {"truth": "number", "estimate": "score"}),
    ],
)
def test_all_kinds_of_values_are_suppressed(metric: tf.types.Metric, call: dict[str, str], interval: Any) -> None:
    people = rare_people()
    options: dict[str, Any] = {**call, "suppress_below": 5, "interval": interval, "on_undefined": "ignore"}
    for unknown in ("apart", "group", "drop"):
        parity = metric.difference("g", unknown=unknown)
        frame = parity.by_group(people, **options)
        hidden = frame.filter(~pl.col(".group").is_in(["a", "b", "c"]))
        numbers = [name for name in (".estimate", ".n", ".denominator", ".lower", ".upper") if name in frame.columns]
        assert hidden.select(pl.all_horizontal(pl.col(numbers).is_null()).all()).item()
        assert set(hidden[".status"]) <= {"suppressed", "unknown"}
        # the smallest other group goes with the small ones, and others are as they were
        shown = frame.filter(pl.col(".n").is_not_null())
        without: dict[str, Any] = {**options, "suppress_below": None}
        full = parity.by_group(people, **without)
        assert 0 < len(shown) < 4
        assert_frame_equal(shown, full.filter(pl.col(".group").is_in(shown[".group"].to_list())))
        result = parity(people, **options, explain=True)
        assert all(entry["denominator"] is None for entry in result[".left_out"].item())
        values = shown[".estimate"]
        span = float(np.ptp(values.to_numpy())) if len(values) > 1 else None
        assert result[".estimate"].item() == (span if span is None else pytest.approx(span))


def test_rows_that_are_hidden_are_not_known() -> None:
    rows = pl.DataFrame(
        {"y": [1, 0] * 10, "p": [1, 1, 0, 0] * 5, "g": ["a"] * 17 + ["b"] * 3, "fold": [1] * 2 + [2] * 18}
    )
    seen = tf.metric_set(tf.accuracy, tf.demographic_parity("g"))(
        rows, "y", "p", group_by="fold", explain=True, suppress_below=5, on_undefined="ignore"
    )
    assert seen.filter(pl.col(".metric") == "accuracy").select("fold", ".n", ".status").rows()[0] == (
        1, None, "suppressed",
    )  # fmt: skip


def test_notices_have_no_small_count() -> None:
    people = rare_people()
    unknown = pytest.warns(tf.errors.UnknownGroupWarning, match="unknown in some of 138 rows")
    with pytest.warns(tf.errors.UndefinedWarning, match="suppressed"), unknown:
        tf.demographic_parity("g")(people, estimate="guess", suppress_below=5)
    missing = people.with_columns(pl.when(pl.col("i") % 10 > 0).then("guess").alias("guess"))
    undefined = pytest.warns(tf.errors.UndefinedWarning, match="suppressed")
    with undefined, pytest.warns(tf.errors.MissingPredictionsWarning) as caught:
        tf.demographic_parity("g", unknown="drop")(missing, estimate="guess", suppress_below=4)
    (message,) = [str(one.message) for one in caught if one.category is tf.errors.MissingPredictionsWarning]
    assert "rare" not in message


def test_other_verbs_refuse_suppressed_tallies() -> None:
    people, parity = rare_people(), tf.demographic_parity("g")
    tally = parity.tally(people, estimate="guess", suppress_below=5)
    with pytest.raises(tf.errors.ArgumentError, match=r"disparity_test\(\) does not support `suppress_below`"):
        tf.inference.disparity_test(parity).compute(tally)
    with pytest.raises(tf.errors.ArgumentError, match="does not show the groups of guess"):
        tf.metric_set(tf.selection_rate.difference("guess")).compute_by_group(
            tf.metric_set(parity, tf.demographic_parity("guess")).tally(people, estimate="guess").suppressed([], 5)
        )
    with pytest.raises(tf.errors.ArgumentError, match='not with "overall"'):
        tf.compare_groups(tf.selection_rate, by="g", to="overall")(people, estimate="guess", suppress_below=5)
    verdict = tf.check(parity, below=0.9).compute(tally, on_undefined="ignore")
    assert verdict.select(".unknown", ".unknown_share").row(0) == (None, None)


def test_parts_of_the_data_are_suppressed_together() -> None:
    people, parity = rare_people(), tf.demographic_parity("g")
    halves = [parity.tally(part, estimate="guess", suppress_below=5) for part in (people[::2], people[1::2])]
    whole = parity.by_group(people, estimate="guess", suppress_below=5)
    assert parity.compute_by_group(halves[0] + halves[1]).equals(whole)
    seen = tf.Accumulator(parity, estimate="guess", suppress_below=5)
    for part in people.iter_slices(10):
        seen.update(part)
    assert seen.compute_by_group().equals(whole)


def test_audits_tables_and_matrices_hold_no_small_count() -> None:
    people = rare_people()
    filed = tf.audit("model_card", people, "truth", "guess", by="g", pos_label=1, suppress_below=5)
    frame = filed.tables["performance"]
    assert frame.filter(pl.col(".group") == "rare")[".n"].null_count() == len(frame.filter(pl.col(".group") == "rare"))
    assert "Suppressed: groups in which some count is fewer than 5" in filed.markdown()
    compared = tf.compare_groups(tf.selection_rate, by="g", to="highest")(people, estimate="guess", suppress_below=5)
    assert compared.filter(pl.col(".group") == "rare").select(".n", ".share", ".estimate").row(0) == (None,) * 3
    assert compared.filter(pl.col(".n").is_null())[".share"].null_count() == compared[".n"].null_count()
    with pytest.raises(tf.errors.ArgumentError, match="the table 'scores' has other numbers"):
        tf.audit("nyc_ll144", people, probs="score", by="g", suppress_below=5)
    matrix = tf.conf_mat(people, "truth", "guess", group_by="g", suppress_below=5)
    assert matrix.filter(pl.col("g") == "rare").select(".n", ".status").unique().rows() == [(None, "suppressed")]
    assert matrix.drop_nulls(".n").filter(pl.col(".n").is_between(1, 4)).is_empty()
    with pytest.raises(tf.errors.ArgumentError, match="a count of all rows is small"):
        tf.audit("model_card", people.head(9), "truth", "guess", by="g", pos_label=1, suppress_below=5)


def test_pages_and_notices_count_no_few_unknown_people_or_missing_predictions() -> None:
    row = pl.int_range(pl.len())
    people = pl.DataFrame({"g": ["a", "b", "c"] * 200, "truth": [0, 1] * 300, "guess": [0, 0, 1, 1] * 150})
    few = people.with_columns(pl.when(row >= 4).then("g").alias("g"))
    page = tf.report(few, truth="truth", estimate="guess", by="g", suppress_below=10).markdown()
    assert "**G is unknown for** some of 600 rows; not compared." in page
    missing = people.with_columns(pl.when(row >= 3).then("guess").alias("guess"))
    undefined = pytest.warns(tf.errors.UndefinedWarning, match="suppressed")
    with undefined, pytest.warns(tf.errors.MissingPredictionsWarning, match="missing in some of 600 rows"):
        tf.demographic_parity("g")(missing, estimate="guess", suppress_below=10)


def test_changes_and_hidden_totals_tell_no_small_count() -> None:
    row = pl.int_range(pl.len())
    people = pl.DataFrame({"g": ["a", "b"] * 100, "truth": [0, 1] * 100, "guess": [0, 0, 1, 1] * 50})
    other = people.with_columns(other=pl.when(row < 3).then(1 - pl.col("guess")).otherwise("guess"))
    with pytest.raises(tf.errors.ArgumentError, match="changes tell how few rows two models judge differently"):
        tf.compare_models(tf.accuracy)(other, "truth", one="guess", other="other", suppress_below=10)
    # all rows are hidden for the label of four unknown people, so that groups are shown and their sum would tell
    stray = people.with_columns(
        pl.when(row >= 4).then("g").alias("g"), pl.when(row < 4).then(2).otherwise("guess").alias("guess")
    )
    parity = tf.demographic_parity("g")
    call: dict[str, Any] = {"estimate": "guess", "pos_label": 1, "suppress_below": 10}
    with pytest.warns(tf.errors.UnknownGroupWarning, match="g is unknown in some rows"):
        parity(stray, **call)
    shown = parity.by_group(stray, **call)
    assert shown.filter(pl.col(".status") == "ok")[".n"].sum() == 196


def test_comparisons_with_people_who_are_hidden_say_so() -> None:
    people = pl.DataFrame({"g": ["a", "b"] * 100 + ["c"] * 5, "guess": [0, 1, 1, 0, 1] * 41})
    parity = tf.demographic_parity("g", to="rest")
    result = parity(people, estimate="guess", suppress_below=10, explain=True, on_undefined="ignore")
    assert result.select(".estimate", ".status").row(0) == (None, "suppressed")
