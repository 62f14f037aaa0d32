"""Groups known as probabilities: bounds equal brute force and linear programs, and hold the truth where it is known."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.optimize import linprog

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.inference import probabilistic_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore::tidyfair.errors.ProxyWarning")

GROUPS = {"a": "p_a", "b": "p_b", "c": "p_c"}
ENDS = (".lower_bound", ".upper_bound")
DISPARITY_ENDS = (".disparity_lower_bound", ".disparity_upper_bound")
# truth and estimate of rows in the numerator, and in the denominator
RATES: dict[str, tuple[tf.types.Metric, set[tuple[int, int]], set[tuple[int, int]]]] = {
    "selection_rate": (tf.selection_rate, {(1, 1), (0, 1)}, {(1, 1), (1, 0), (0, 1), (0, 0)}),
    "sens": (tf.sens, {(1, 1)}, {(1, 1), (1, 0)}),
    "fall_out": (tf.fall_out, {(0, 1)}, {(0, 1), (0, 0)}),
    "precision": (tf.precision, {(1, 1)}, {(1, 1), (0, 1)}),
    "accuracy": (tf.accuracy, {(1, 1), (0, 0)}, {(1, 1), (1, 0), (0, 1), (0, 0)}),
    "threat_score": (tf.threat_score, {(1, 1)}, {(1, 1), (1, 0), (0, 1)}),
}


def with_probabilities(people: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """People with the shares of the groups in `g` among those of the same `by`."""
    shares = [(pl.col("g") == group).mean().over(by).alias(name) for group, name in GROUPS.items()]
    return people.with_columns(shares)


def people(rows: int, seed: int) -> pl.DataFrame:
    """People of three groups, whose outcomes depend on the group and on the value `z` of a proxy."""
    random = np.random.default_rng(seed)
    z = random.integers(0, 6, rows)
    shares = random.dirichlet([0.8] * 3, 6)
    group = (random.random(rows)[:, None] > shares.cumsum(axis=1)[z]).sum(axis=1).clip(max=2)
    truth = random.random(rows) < 0.2 + 0.1 * z - 0.1 * group
    estimate = random.random(rows) < 0.2 + 0.4 * truth + 0.15 * group
    frame = pl.DataFrame({
        "z": z, "g": np.array(["a", "b", "c"])[group], "y": truth.astype(int), "e": estimate.astype(int),
        "w": random.gamma(2, 1, rows), "part": random.integers(0, 2, rows),
    })  # fmt: skip
    return with_probabilities(frame, ["z"])


def rate_of(cells: list[tuple[int, int]], hits: set[tuple[int, int]], rows: set[tuple[int, int]]) -> float:
    """A rate of some rows by plain counting."""
    counted = [cell for cell in cells if cell in rows]
    return sum(cell in hits for cell in counted) / len(counted) if counted else math.nan


# Bounds


def assignments(groups: list[str]) -> Iterator[tuple[str, ...]]:
    """All ways to say which row belongs to which group, if so many rows belong to each."""
    return iter(dict.fromkeys(itertools.permutations(groups)))


@pytest.mark.parametrize("name", RATES)
def test_bounds_are_the_extremes_of_all_assignments_of_members(name: str) -> None:
    metric, hits, rows = RATES[name]
    random, compared = np.random.default_rng(len(name)), 0
    for _ in range(3):
        values = [random.choice(["a", "b", "c"], 5).tolist(), random.choice(["a", "b"], 4).tolist()]
        cells = [[(int(y), int(e)) for y, e in random.integers(0, 2, (len(value), 2))] for value in values]
        data = with_probabilities(
            pl.DataFrame({
                "z": [z for z, value in enumerate(values) for _ in value], "g": [g for value in values for g in value],
                "y": [y for value in cells for y, _ in value], "e": [e for value in cells for _, e in value],
            }),
            ["z"],
        )  # fmt: skip
        seen: dict[tuple[str, str | None], list[float]] = {}
        every = [cell for value in cells for cell in value]
        for first, second in itertools.product(*map(assignments, values)):
            of_group = {g: [c for c, own in zip(every, first + second, strict=True) if own == g] for g in GROUPS}
            of_rest = {g: [c for c, own in zip(every, first + second, strict=True) if own != g] for g in GROUPS}
            rates = {g: rate_of(of_group[g], hits, rows) for g in GROUPS}
            for g in GROUPS:
                seen.setdefault((g, None), []).append(rates[g])
                seen.setdefault((g, "a"), []).append(rates[g] - rates["a"])
                seen.setdefault((g, "overall"), []).append(rates[g] - rate_of(every, hits, rows))
                seen.setdefault((g, "rest"), []).append(rates[g] - rate_of(of_rest[g], hits, rows))
        for to in ("a", "overall", "rest"):
            table = probabilistic_groups(metric, GROUPS, to=to, proxy="z")(data, "y", "e", pos_label=1)
            for row in table.iter_rows(named=True):
                for key, ends in ((None, ENDS), (to, DISPARITY_ENDS)):
                    low, high = (row[end] for end in ends)
                    possible = [value for value in seen[row[".group"], key] if not math.isnan(value)]
                    if not possible or row[".group"] == key:
                        assert (low, high) == (None, None)
                    elif key is None or len(possible) == len(seen[row[".group"], key]):
                        assert (low, high) == pytest.approx((min(possible), max(possible)))
                        compared += key is not None
                    else:
                        # parts of a row would come as near as one likes, but a group without rows has no rate
                        assert low - 1e-12 <= min(possible) <= max(possible) <= high + 1e-12
    assert compared >= 4


def coupling(members: np.ndarray, outcomes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What joint shares of values, groups and kinds of rows must add up to: equations and their right hand sides."""
    values, groups = members.shape
    kinds = outcomes.shape[1]
    equations, sums = [], []
    for z in range(values):
        for g in range(groups):
            equation = np.zeros((values, groups, kinds))
            equation[z, g] = 1
            equations.append(equation.ravel())
            sums.append(members[z, g])
        for k in range(kinds):
            equation = np.zeros((values, groups, kinds))
            equation[z, :, k] = 1
            equations.append(equation.ravel())
            sums.append(outcomes[z, k])
    return np.array(equations), np.array(sums)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_the_optima_of_linear_programs_and_hold_jointly(seed: int) -> None:
    random = np.random.default_rng(seed)
    counts = random.integers(1, 9, (4, 3))  # values by hit, miss, other
    shares = random.dirichlet([0.7] * 3, 4)
    cells = {0: (1, 1), 1: (1, 0), 2: (0, 1)}
    rows = [
        {"z": z, "y": y, "e": e, **dict(zip(GROUPS.values(), shares[z], strict=True))}
        for z in range(4) for kind, (y, e) in cells.items() for _ in range(counts[z, kind])
    ]  # fmt: skip
    table = probabilistic_groups(tf.sens, GROUPS, to="b")(pl.DataFrame(rows), "y", "e")
    outcomes = counts / counts.sum()
    members = shares * outcomes.sum(axis=1, keepdims=True)
    equations, sums = coupling(members, outcomes)
    shape = (4, 3, 3)
    for g in range(len(GROUPS)):
        hit, denominator = np.zeros(shape), np.zeros(shape)
        hit[:, g, 0], denominator[:, g, :2] = 1, 1
        # Charnes and Cooper (1962): shares are scaled so that the denominator is 1, by the last variable
        scaled = np.vstack([np.column_stack([equations, -sums]), np.append(denominator.ravel(), 0)])
        goal = np.append(hit.ravel(), 0)
        right = np.append(np.zeros(len(sums)), 1)
        low, high = (sign * linprog(sign * goal, A_eq=scaled, b_eq=right).fun for sign in (1, -1))
        assert table.row(g, named=True)[".lower_bound"] == pytest.approx(low, abs=1e-9)
        assert table.row(g, named=True)[".upper_bound"] == pytest.approx(high, abs=1e-9)
    # one coupling has both ends of a disparity, so that no narrower bounds hold
    ends = table.select(*ENDS).to_numpy()
    for g, one_end, other_end in ((0, 1, 0), (0, 0, 1), (2, 1, 0), (2, 0, 1)):
        extra = np.zeros((2, *shape))
        for index, (number, rate) in enumerate(((g, ends[g, one_end]), (1, ends[1, other_end]))):
            extra[index, :, number, 0] = 1 - rate
            extra[index, :, number, 1] = -rate
        attained = linprog(
            np.zeros(math.prod(shape)), A_eq=np.vstack([equations, extra.reshape(2, -1)]), b_eq=np.append(sums, [0, 0])
        )
        assert attained.status == 0
        name = DISPARITY_ENDS[one_end]
        assert table[name][g] == pytest.approx(ends[g, one_end] - ends[1, other_end])


@pytest.mark.simulation
@pytest.mark.parametrize("name", RATES)
def test_true_rates_lie_within_bounds_where_probabilities_are_right(name: str) -> None:
    metric, _, _ = RATES[name]
    for seed in range(20):
        data = people(150, seed)
        truths = dict(
            metric.difference("g").by_group(data, "y", "e", on_undefined="ignore")[[".group", ".estimate"]].rows()
        )
        table = probabilistic_groups(metric, GROUPS, to="a", proxy="z")(data, "y", "e")
        for row in table.drop_nulls(".estimate").iter_rows(named=True):
            truth = truths.get(row[".group"])
            if truth is not None:
                assert row[".lower"] <= row[".lower_bound"] <= truth + 1e-12
                assert truth - 1e-12 <= row[".upper_bound"] <= row[".upper"]
                assert row[".lower_bound"] - 1e-12 <= row[".estimate"] <= row[".upper_bound"] + 1e-12


def test_true_disparities_of_loans_lie_within_bounds() -> None:
    cells = ["age_band", "fold"]
    names = {race: f"p_{race}" for race in lending()["race"].unique()}
    loans = lending().with_columns((pl.col("race") == race).mean().over(cells).alias(p) for race, p in names.items())
    for metric in (tf.selection_rate, tf.sens, tf.precision):
        truths = dict(
            metric.difference("race")
            .by_group(loans, "repaid", "approved", pos_label="yes")[[".group", ".estimate"]]
            .rows()
        )
        table = probabilistic_groups(metric, names, to="White", proxy=cells)(
            loans, "repaid", "approved", pos_label="yes"
        )
        assert table[".n_expected"].to_list() == pytest.approx([(loans["race"] == race).sum() for race in names])
        for row in table[1:].iter_rows(named=True):
            truth = truths[row[".group"]] - truths["White"]
            assert row[".disparity_lower_bound"] <= truth <= row[".disparity_upper_bound"]


def test_better_proxies_give_narrower_bounds() -> None:
    data = people(600, 3).with_columns(half=pl.col("z") % 2)
    narrow = probabilistic_groups(tf.selection_rate, GROUPS, proxy="z")(data, estimate="e")
    wide = probabilistic_groups(tf.selection_rate, GROUPS, proxy="half")(data, estimate="e")
    assert (wide[".lower_bound"] <= narrow[".lower_bound"]).all()
    assert (wide[".upper_bound"] >= narrow[".upper_bound"]).all()
    # the weighted estimator reads the probabilities of rows, whatever the proxy is
    assert wide[".estimate"].to_list() == pytest.approx(narrow[".estimate"].to_list(), rel=1e-12)
    # a value has the mean of its probabilities
    mean = with_probabilities(data, ["half"])
    expected = probabilistic_groups(tf.selection_rate, GROUPS)(mean, estimate="e")
    assert_frame_equal(wide.select(".n_expected", *ENDS), expected.select(".n_expected", *ENDS))


def test_rows_with_the_same_probabilities_share_a_value_unless_a_proxy_is_given() -> None:
    data = people(300, 5)
    call = probabilistic_groups(tf.sens, GROUPS)
    assert_frame_equal(call(data, "y", "e"), probabilistic_groups(tf.sens, GROUPS, proxy=["z"])(data, "y", "e"))


def test_known_membership_gives_the_rates_of_groups_and_no_range() -> None:
    known = people(400, 1).with_columns((pl.col("g") == group).alias(name) for group, name in GROUPS.items())
    for metric in (tf.selection_rate, tf.sens, tf.accuracy):
        table = probabilistic_groups(metric, GROUPS, to="b")(known, "y", "e")
        rates = metric.difference("g").by_group(known, "y", "e", interval="analytic")
        for column in (".estimate", *ENDS):
            assert table[column].to_list() == pytest.approx(rates[".estimate"].to_list())
        # Wilson's limits, or normal ones where these are wider
        rate, rows = rates[".estimate"].to_numpy(), rates[".denominator"].to_numpy()
        reach = 1.959964 * np.sqrt(rate * (1 - rate) / rows)
        assert table[".lower"].to_list() == pytest.approx(np.minimum(rates[".lower"].to_numpy(), rate - reach).tolist())
        assert table[".upper"].to_list() == pytest.approx(np.maximum(rates[".upper"].to_numpy(), rate + reach).tolist())


@pytest.mark.parametrize("to", ["rest", "overall", "majority", "g0"])
def test_estimates_lie_within_bounds_and_bounds_within_limits_of_few_odd_rows(to: str) -> None:
    random = np.random.default_rng(len(to))
    for step in range(60):
        rows, values, groups = (int(random.integers(low, high)) for low, high in ((1, 30), (1, 6), (2, 5)))
        shares = random.dirichlet([0.3] * groups, values)
        if step % 3 == 0:
            shares = np.eye(groups)[random.integers(0, groups, values)]
        z = random.integers(0, values, rows)
        columns = {f"p{group}": shares[z, group] for group in range(groups)}
        # weights may be zero, or nearly
        weight = random.gamma(0.3, 1, rows) * (random.random(rows) < 0.8) + 1e-12
        labels = {name: random.integers(0, 2, rows) for name in ("y", "e")}
        metric, _, _ = list(RATES.values())[step % len(RATES)]
        table = probabilistic_groups(metric, {f"g{group}": f"p{group}" for group in range(groups)}, to=to)(
            pl.DataFrame(columns | labels | {"w": weight}), "y", "e", case_weights="w", labels=[0, 1], pos_label=1
        )
        columns_in_order = (".lower", ".lower_bound", ".estimate", ".upper_bound", ".upper")
        disparities = (
            ".disparity_lower", ".disparity_lower_bound", ".disparity", ".disparity_upper_bound", ".disparity_upper"
        )  # fmt: skip
        for names in (columns_in_order, disparities):
            numbers = table.select(names).drop_nulls().to_numpy()
            assert len(numbers) == len(table) - table[names[2]].null_count()
            assert (np.diff(numbers) >= -1e-9).all()


# The weighted estimator


def test_weighted_estimator_is_the_mean_by_probability() -> None:
    data = people(200, 2)
    table = probabilistic_groups(tf.sens, GROUPS, to="rest")(data, "y", "e", case_weights="w")
    weight, hit, positive = data["w"].to_numpy(), (data["y"] * data["e"]).to_numpy(), data["y"].to_numpy()
    for index, name in enumerate(GROUPS.values()):
        p = data[name].to_numpy() * weight
        rate, rest = (
            (p * hit).sum() / (p * positive).sum(),
            ((weight - p) * hit).sum() / ((weight - p) * positive).sum(),
        )
        assert table[".estimate"][index] == pytest.approx(rate)
        assert table[".disparity"][index] == pytest.approx(rate - rest)
        assert table[".n_expected"][index] == pytest.approx(data[name].sum())


def test_weighted_estimator_is_off_by_minus_the_covariance_within_values() -> None:
    # Chen, Kallus, Mao, Svacha and Udell (2019), Fairness under unawareness
    data = people(500, 4)
    table = probabilistic_groups(tf.selection_rate, GROUPS)(data, estimate="e")
    for index, group in enumerate(GROUPS):
        is_member = (pl.col("g") == group).cast(pl.Float64)
        covariance = data.group_by("z").agg(
            rows=pl.len(), covariance=(is_member * pl.col("e")).mean() - is_member.mean() * pl.col("e").mean()
        )
        rows = covariance["rows"].to_numpy()
        expected = -(rows @ covariance["covariance"].to_numpy()) / (data["g"] == group).sum()
        error = table[".estimate"][index] - data.filter(pl.col("g") == group)["e"].mean()
        assert error == pytest.approx(expected)
    # `c` is selected more often than others of the same value, so that the estimate of `c` is too low
    assert table[".estimate"][2] < data.filter(pl.col("g") == "c")["e"].mean()


def test_every_call_warns_once_that_the_estimate_is_biased() -> None:
    call = probabilistic_groups(tf.selection_rate, GROUPS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(people(200, 1), estimate="e", group_by="part")
    (warning,) = caught
    assert warning.category is tf.errors.ProxyWarning
    assert "covariance of outcome and membership" in str(warning.message)
    assert "few rows" not in str(warning.message)
    assert warning.filename == __file__


def test_values_with_few_rows_are_warned_of_and_have_wide_limits() -> None:
    random = np.random.default_rng(0)
    alone = pl.DataFrame({"p_a": random.random(100), "e": random.integers(0, 2, 100)})
    alone = alone.with_columns(p_b=1 - pl.col("p_a"))
    with pytest.warns(tf.errors.ProxyWarning, match="The 100 rows have 100 values of the probabilities, so few rows"):
        table = probabilistic_groups(tf.selection_rate, {"a": "p_a", "b": "p_b"})(alone, estimate="e")
    # of single rows the bounds see nothing but their outcome, and limits know that this is nothing
    assert table[".lower_bound"].to_list() == pytest.approx(table[".upper_bound"].to_list())
    assert table.select(".lower", ".upper").rows() == [(0.0, 1.0), (0.0, 1.0)]
    with pytest.warns(tf.errors.ProxyWarning, match="The 100 rows have 100 values of 'id', so few rows"):
        probabilistic_groups(tf.selection_rate, {"a": "p_a", "b": "p_b"}, proxy="id")(
            alone.with_columns(id=pl.int_range(pl.len())), estimate="e"
        )


# Limits


@pytest.mark.simulation
@pytest.mark.parametrize("is_tie", [False, True])
def test_limits_hold_the_bounds_of_the_population(is_tie: bool) -> None:  # noqa: FBT001 - a parameter of the test
    random = np.random.default_rng(7)
    members, size = random.dirichlet([0.6] * 3, 8), random.dirichlet([5.0] * 8)
    # where members are as many as hits, the bounds of rows are too narrow, because both terms vary by chance
    hits = members[:, 0] if is_tie else random.beta(2, 2, 8)
    highest = (size[:, None] * np.minimum(members, hits[:, None])).sum(axis=0) / (size @ members)
    lowest = (size[:, None] * np.maximum(members + hits[:, None] - 1, 0)).sum(axis=0) / (size @ members)
    call = probabilistic_groups(tf.selection_rate, GROUPS, to="a", proxy="z")
    times, rows = 150, 400
    samples: list[pl.DataFrame] = []
    for run in range(times):
        z = random.choice(8, rows, p=size)
        data = pl.DataFrame({"z": z, "e": (random.random(rows) < hits[z]).astype(int)})
        data = data.with_columns(pl.Series(name, members[z, g]) for g, name in enumerate(GROUPS.values()))
        samples.append(data.with_columns(run=run))
    tables = call(pl.concat(samples), estimate="e", group_by="run").partition_by("run")
    assert len(tables) == times
    held, held_differences = np.zeros(3), np.zeros(2)
    for table in tables:
        lower, upper, low, high = table.select(".lower", ".upper", ".disparity_lower", ".disparity_upper").to_numpy().T
        held += (lower <= lowest + 1e-12) & (highest - 1e-12 <= upper)
        low, high = low[1:], high[1:]
        held_differences += (low <= lowest[1:] - highest[0] + 1e-12) & (highest[1:] - lowest[0] - 1e-12 <= high)
    # 95 % promised; three standard errors of 150 runs are 0.053
    assert (held / times >= 0.95 - 0.053).all()
    assert (held_differences / times >= 0.95 - 0.053).all()


def test_limits_are_wider_with_more_confidence() -> None:
    data, call = people(400, 1), probabilistic_groups(tf.selection_rate, GROUPS)
    widths = [
        (table[".upper"] - table[".lower"]).sum()
        for table in (call(data, estimate="e", conf_level=level) for level in (0.8, 0.95, 0.999))
    ]
    assert widths == sorted(widths)
    assert len(set(widths)) == 3


# Laws


def test_rows_in_another_order_give_the_same() -> None:
    data, call = people(300, 6), probabilistic_groups(tf.sens, GROUPS, to="majority")
    expected = call(data, "y", "e", case_weights="w")
    assert_frame_equal(call(data.sample(fraction=1, shuffle=True, seed=1), "y", "e", case_weights="w"), expected)


def test_weights_of_another_scale_give_the_same() -> None:
    data, call = people(300, 6), probabilistic_groups(tf.sens, GROUPS)
    expected = call(data, "y", "e", case_weights="w")
    assert_frame_equal(call(data.with_columns(pl.col("w") * 1000), "y", "e", case_weights="w"), expected)
    equal = call(data.with_columns(w=2.0), "y", "e", case_weights="w")
    assert_frame_equal(equal, call(data, "y", "e"))


def test_frequencies_equal_repeated_rows() -> None:
    data = people(200, 8).with_columns(often=pl.int_range(pl.len()) % 3)
    call = probabilistic_groups(tf.accuracy, GROUPS, proxy="z")
    repeated = data.select(pl.all().repeat_by("often")).explode(pl.selectors.all()).drop_nulls("z")
    assert_frame_equal(call(data, "y", "e", frequency_weights="often"), call(repeated, "y", "e"))


def test_outer_groups_equal_filtered_rows() -> None:
    data, call = people(400, 9), probabilistic_groups(tf.sens, GROUPS, to="majority", proxy="z")
    together = call(data, "y", "e", group_by="part")
    for (part,), rows in data.partition_by("part", as_dict=True).items():
        own = together.filter(pl.col("part") == part).drop("part")
        assert_frame_equal(own, call(rows, "y", "e"))


def test_groups_in_another_order_give_the_same_rows() -> None:
    data = people(300, 10)
    one = probabilistic_groups(tf.sens, GROUPS, to="b")(data, "y", "e")
    other = probabilistic_groups(tf.sens, dict(reversed(GROUPS.items())), to="b")(data, "y", "e")
    assert_frame_equal(one, other.reverse())


def test_two_groups_of_misses_mirror_those_of_hits() -> None:
    data, lowest, highest = people(300, 11), ".lower", ".upper"
    hits = probabilistic_groups(tf.sens, GROUPS)(data, "y", "e")
    misses = probabilistic_groups(tf.miss_rate, GROUPS)(data, "y", "e")
    for one, other in (ENDS, (lowest, highest)):
        assert hits[one].to_list() == pytest.approx((1 - misses[other]).to_list())


# Data of all kinds


def test_every_engine_gives_the_same() -> None:
    data, call = people(300, 12), probabilistic_groups(tf.sens, GROUPS, to="a", proxy="z")
    expected = call(data, "y", "e", group_by="part", case_weights="w")
    options: dict[str, Any] = {"group_by": "part", "case_weights": "w"}
    of_pandas = call(data.to_pandas(), "y", "e", **options)
    assert_frame_equal(pl.from_pandas(of_pandas), expected, check_dtypes=False)
    assert_frame_equal(call(data.lazy(), "y", "e", **options), expected)
    assert_frame_equal(pl.DataFrame(call(data.to_arrow(), "y", "e", **options)), expected)
    with duckdb.connect() as connection:
        connection.register("people", data.to_arrow())
        assert_frame_equal(call(connection.table("people"), "y", "e", **options), expected)


def test_scores_with_a_threshold_and_expressions_are_read() -> None:
    data = people(200, 13).with_columns(score=pl.col("e") * 0.8 + 0.1)
    expected = probabilistic_groups(tf.sens, {"a": "p_a", "others": (1 - pl.col("p_a")).alias("others")})
    table = expected(data, "y", probs="score", threshold=0.5)
    plain = probabilistic_groups(tf.sens, {"a": "p_a", "others": "q"})(data.with_columns(q=1 - pl.col("p_a")), "y", "e")
    assert_frame_equal(table, plain)


def test_rows_without_an_outcome_are_left_out() -> None:
    data = people(200, 14).with_columns(y=pl.when(pl.int_range(pl.len()) % 5 > 0).then("y"))
    call = probabilistic_groups(tf.sens, GROUPS)
    assert_frame_equal(call(data, "y", "e"), call(data.drop_nulls("y"), "y", "e"))
    # a rate that does not read the truth has them
    rates = probabilistic_groups(tf.selection_rate, GROUPS)
    assert_frame_equal(rates(data, "y", "e"), rates(data, estimate="e"))


def test_columns_are_the_same_without_rows() -> None:
    data, call = people(50, 1), probabilistic_groups(tf.sens, GROUPS, proxy="z")
    full = call(data, "y", "e", group_by="part")
    empty = call(data.clear(), "y", "e", group_by="part")
    assert empty.is_empty()
    assert empty.schema == full.schema
    ungrouped = call(data.clear(), "y", "e")
    assert ungrouped[".group"].to_list() == ["a", "b", "c"]
    assert ungrouped[".estimate"].null_count() == 3
    assert ungrouped[".status"].to_list() == ["zero_denominator"] * 3


def test_groups_without_members_have_no_rate_and_are_no_reference() -> None:
    data = people(100, 2).with_columns(p_a=0.0, p_b=0.25, p_c=0.75)
    table = probabilistic_groups(tf.selection_rate, GROUPS, to="a")(data, estimate="e")
    assert table[".status"].to_list() == ["zero_denominator", "no_reference", "no_reference"]
    assert table[".n_expected"].to_list() == [0.0, 25.0, 75.0]
    assert table[".upper_bound"].null_count() == 1
    assert table[".disparity_upper_bound"].null_count() == 3


def test_representation_shows_metric_groups_and_reference() -> None:
    text = repr(probabilistic_groups(tf.sens, GROUPS, to="a", proxy="z"))
    assert text == (
        "<ProbabilisticGroups of sens; groups=['a', 'b', 'c'], probabilities=['p_a', 'p_b', 'p_c'], to='a', "
        "proxy=['z']; call it with (data, truth, estimate, …)>"
    )


# Errors


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"p_a": pl.lit(1.5)},
            "`groups`: 'p_a' holds values from 1.5 to 1.5, but probabilities must lie between 0 and 1.",
        ),
        ({"p_a": pl.col("p_a") * 100 + 2}, "divide percent by 100"),
        ({"p_b": -pl.col("p_b") - 0.1}, "`groups`: 'p_b' holds values from -"),
        ({"p_a": pl.col("p_a") / 2}, "`groups`: the row sums of 'p_a', 'p_b', 'p_c' range from"),
        ({"p_a": pl.lit(None, pl.Float64)}, "`groups`: some values of 'p_a' are missing. Leave these rows out"),
        ({"p_a": pl.lit(math.nan)}, "`groups`: some values of 'p_a' are missing."),
        ({"p_c": pl.lit(math.inf)}, "`groups`: 'p_c' holds values from inf to inf"),
        ({"p_a": pl.col("g")}, "`groups`: the column 'p_a' is String, not numeric"),
        ({"p_a": pl.lit([0.5])}, "`by`: the column 'p_a' has dtype List"),
    ],
)
def test_columns_that_are_no_probabilities_raise(change: dict[str, pl.Expr], words: str) -> None:
    with pytest.raises(tf.errors.ColumnError) as caught:
        probabilistic_groups(tf.sens, GROUPS)(people(50, 1).with_columns(**change), "y", "e")
    assert words in str(caught.value)


def test_rounding_errors_of_probabilities_are_let_through() -> None:
    data = people(100, 1).with_columns(pl.col("p_a", "p_b", "p_c").cast(pl.Float32))
    table = probabilistic_groups(tf.sens, GROUPS)(data, "y", "e")
    assert table[".n_expected"].sum() == pytest.approx(100, abs=1e-4)


def twice(tp: Any, fp: Any, fn: Any) -> Any:
    """A rate in which some rows count twice."""
    return 2 * tp, 2 * tp + fp + fn


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((tf.roc_auc, GROUPS), "probabilistic_groups() takes a rate of labels, such as fall_out"),
        ((tf.demographic_parity("g"), GROUPS), "probabilistic_groups() takes a metric, such as fall_out"),
        ((tf.mcc, GROUPS), "mcc is not a share of rows"),
        (
            (tf.new_class_metric(twice, "twice", range=(0, 1)), GROUPS),
            "takes a rate that is a share of rows, such as selection_rate or sens, not twice",
        ),
        ((tf.sens, ["p_a", "p_b"]), "`groups` must map groups to columns of probabilities, such as"),
        ((tf.sens, {"a": "p_a"}), "`groups` must have two or more groups, not only 'a'"),
        ((tf.sens, {}), "`groups` must have two or more groups, not only nothing"),
        ((tf.sens, {"a": "p_a", "b": "p_a"}), "`groups`: 'p_a' is used for several groups"),
        ((tf.sens, {"rest": "p_a", "b": "p_b"}), "`groups`: 'rest' is reserved for the reference `to='rest'`"),
        ((tf.sens, {1: "p_a", 2: "p_b"}), "`groups` is a text of valid Unicode characters, not 1"),
    ],
)
def test_arguments_that_do_not_fit_raise(arguments: tuple[Any, Any], words: str) -> None:
    with pytest.raises(tf.errors.TidyfairError) as caught:
        probabilistic_groups(*arguments)
    assert words in str(caught.value)


def test_references_and_options_that_do_not_exist_raise() -> None:
    with pytest.raises(
        tf.errors.ArgumentError, match=r"`to=` must be 'a', 'b', 'c', 'rest', .*, not 'A'. Did you mean 'a'\?"
    ):
        probabilistic_groups(tf.sens, GROUPS, to="A")
    call, data = probabilistic_groups(tf.sens, GROUPS), people(50, 1)
    with pytest.raises(tf.errors.ArgumentError, match="Unknown argument 'interval'"):
        call(data, "y", "e", interval="auto")  # pyright: ignore[reportCallIssue] - on purpose
    with pytest.raises(tf.errors.ArgumentError, match="does not accept a list of values for threshold; give one value"):
        call(data, "y", probs="p_a", threshold=[0.1, 0.2])  # pyright: ignore[reportArgumentType] - on purpose
    with pytest.raises(tf.errors.ColumnError, match="`groups`: there is no column 'p_c'"):
        call(data.drop("p_c"), "y", "e")
    with pytest.raises(tf.errors.ColumnError, match="`proxy`: there is no column 'zip'"):
        probabilistic_groups(tf.sens, GROUPS, proxy="zip")(data, "y", "e")
    with pytest.raises(tf.errors.ColumnError, match="`proxy`: the data are grouped by 'z'"):
        probabilistic_groups(tf.sens, GROUPS, proxy="z")(data, "y", "e", group_by="z")
