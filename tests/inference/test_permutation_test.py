"""Permutation tests of rates equal full enumeration, scipy and statsmodels."""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from benchmarks.measuring import forget_peak, peak_memory
from conftest import answer_kind, as_polars
from permutation_data import SAME, SMALL, TIMES, error, random_people
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.multitest import multipletests

import tidyfair as tf
from tidyfair import inference
from tidyfair.datasets import lending
from tidyfair.intervals.proportions import adjusted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Row = dict[str, Any]
    Rates = list[dict[str, float]]
    """For each rate of a metric, its value in each group."""


# Full enumeration


def orders(labels: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every different order of labels, some of which are equal."""
    if not labels:
        yield ()
    for first in sorted(set(labels)):
        rest = list(labels)
        rest.remove(first)
        for others in orders(rest):
            yield (first, *others)


@dataclass(frozen=True)
class Rate:
    """The rows that a rate is about, and those of them that it counts."""

    about: Callable[[Row], bool]
    holds: Callable[[Row], bool]

    def of(self, rows: Sequence[Row], groups: Sequence[str]) -> dict[str, float]:
        held: dict[str, list[bool]] = {}
        for row, group in zip(rows, groups, strict=True):
            held.setdefault(group, []).append(self.holds(row))
        return {group: sum(item) / len(item) for group, item in held.items()}

    def observed(self, rows: Sequence[Row]) -> dict[str, float]:
        mine = [row for row in rows if self.about(row)]
        return self.of(mine, [row["g"] for row in mine])

    def shuffled(self, rows: Sequence[Row], within: str | None) -> Rates:
        """The rates of groups for every way to shuffle who is in which group, within strata."""
        mine = [row for row in rows if self.about(row)]
        strata: dict[Any, list[Row]] = {}
        for row in mine:
            strata.setdefault(row[within] if within else None, []).append(row)
        together = [row for stratum in strata.values() for row in stratum]
        ways = (orders([row["g"] for row in stratum]) for stratum in strata.values())
        return [self.of(together, [*itertools.chain(*item)]) for item in itertools.product(*ways)]


SELECTION = Rate(lambda row: row["e"] is not None, lambda row: row["e"] == 1)
SENS = Rate(lambda row: row["t"] == 1 and row["e"] is not None, lambda row: row["e"] == 1)
SPEC = Rate(lambda row: row["t"] == 0 and row["e"] is not None, lambda row: row["e"] == 0)
PRECISION = Rate(lambda row: row["e"] == 1 and row["t"] is not None, lambda row: row["t"] == 1)
NPV = Rate(lambda row: row["e"] == 0 and row["t"] is not None, lambda row: row["t"] == 0)
ACCURACY = Rate(lambda row: None not in (row["e"], row["t"]), lambda row: row["e"] == row["t"])


def largest_range(rates: Rates) -> float:
    return max(max(item.values()) - min(item.values()) for item in rates)


def mean_range(rates: Rates) -> float:
    return statistics.mean(max(item.values()) - min(item.values()) for item in rates)


def smallest_ratio(rates: Rates) -> float:
    return min(min(item.values()) / max(item.values()) for item in rates)


def from_a(rates: Rates) -> float:
    return max(abs(value - item["a"]) for item in rates for value in item.values())


def smallest(rates: Rates) -> float:
    return min(min(item.values()) for item in rates)


def negative(value: float) -> float:
    return -value


def itself(value: float) -> float:
    return value


@dataclass(frozen=True)
class Exact:
    """A metric, and what it is worth for each way to shuffle."""

    metric: tf.types.GroupwiseMetric
    rates: tuple[Rate, ...]
    value: Callable[[Rates], float]
    severity: Callable[[float], float] = itself

    def observed(self, rows: Sequence[Row]) -> float:
        return self.value([rate.observed(rows) for rate in self.rates])

    def values(self, rows: Sequence[Row], within: str | None = None) -> list[float]:
        every = itertools.product(*(rate.shuffled(rows, within) for rate in self.rates))
        return [self.value(list(item)) for item in every]

    def p_values(self, rows: Sequence[Row], within: str | None = None) -> tuple[float, float]:
        """The probability of what is as bad or worse, and the same with half of what is as bad."""
        worse = self.severity(self.observed(rows))
        bad = [self.severity(value) for value in self.values(rows, within)]
        more, same = sum(item > worse + SAME for item in bad), sum(abs(item - worse) <= SAME for item in bad)
        assert same
        return (more + same) / len(bad), (more + same / 2) / len(bad)


def assert_exact(result: Row, case: Exact, rows: Sequence[Row], within: str | None = None) -> None:
    values = case.values(rows, within)
    p_value, _ = case.p_values(rows, within)
    assert result[".estimate"] == pytest.approx(case.observed(rows))
    assert result[".p_value"] == pytest.approx(p_value, abs=error(p_value))
    off = 4.5 * statistics.pstdev(values) / math.sqrt(TIMES) + SAME
    assert result[".expected"] == pytest.approx(statistics.mean(values), abs=off)
    # the range holds the values whose own p-value is 5 % or more
    bad = np.array([case.severity(value) for value in values])
    shares = (bad >= bad[:, None] - SAME).mean(axis=1)
    surely, maybe = (np.array(values)[shares >= 0.05 + sign * error(0.05)] for sign in (1, -1))
    assert maybe.min() - SAME <= result[".expected_lower"] <= surely.min() + SAME
    assert surely.max() - SAME <= result[".expected_upper"] <= maybe.max() + SAME


def shuffled_test(*metrics: tf.types.GroupwiseMetric, times: int = TIMES, **options: Any) -> Any:
    """The test of disparities themselves."""
    given: dict[str, Any] = {"studentized": False, **options}
    return partial(inference.disparity_test(*metrics, **given), times=times)


def frame(truth: str, estimate: str, groups: str) -> pl.DataFrame:
    """Rows from 1, 0 and - for what is missing."""
    read = {"1": 1, "0": 0, "-": None}
    return pl.DataFrame(
        {"t": [read[item] for item in truth], "e": [read[item] for item in estimate], "g": list(groups)},
        schema={"t": pl.Int64, "e": pl.Int64, "g": pl.String},
    )


PEOPLE = frame("1111100000", "1011010110", "aabbbaabbb")
THREE = frame("1110001101", "1101000011", "aaabbbbccc")

CASES = {
    "demographic_parity": Exact(tf.demographic_parity("g"), (SELECTION,), largest_range),
    "equal_opportunity": Exact(tf.equal_opportunity("g"), (SENS,), largest_range),
    "predictive_parity": Exact(tf.predictive_parity("g"), (PRECISION,), largest_range),
    "accuracy": Exact(tf.accuracy.difference("g"), (ACCURACY,), largest_range),
    "equalized_odds": Exact(tf.equalized_odds("g"), (SENS, SPEC), largest_range),
    "mean_of_odds": Exact(tf.average_abs_odds_difference("g"), (SENS, SPEC), mean_range),
    "use_accuracy": Exact(tf.conditional_use_accuracy_equality("g"), (PRECISION, NPV), largest_range),
    "ratio": Exact(tf.demographic_parity_ratio("g"), (SELECTION,), smallest_ratio, negative),
    "to_a": Exact(tf.demographic_parity("g", aggregate=tf.difference(to="a")), (SELECTION,), from_a),
    "minimum": Exact(tf.accuracy.group_minimum("g"), (ACCURACY,), smallest, negative),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("data", [PEOPLE, THREE], ids=["two groups", "three groups"])
def test_p_value_equals_full_enumeration(data: pl.DataFrame, name: str) -> None:
    result = shuffled_test(CASES[name].metric)(data, "t", "e").row(0, named=True)
    assert_exact(result, CASES[name], data.to_dicts())


def signed(rates: Rates) -> float:
    return rates[0]["b"] - rates[0]["a"]


def test_two_sides_have_a_two_sided_test() -> None:
    sides = Exact(tf.demographic_parity(tf.privileged(g="a")), (SELECTION,), signed, abs)
    data = frame("0" * 9, "111010000", "aaaabbbbb")
    result = shuffled_test(sides.metric)(data, "t", "e").row(0, named=True)
    assert_exact(result, sides, data.to_dicts())
    assert result[".estimate"] < 0 < result[".expected_upper"]
    # which of two tables of all that are possible is no likelier
    assert result[".p_value"] == pytest.approx(stats.fisher_exact([[3, 1], [1, 4]])[1], abs=error(0.2))


def test_two_group_test_equals_hypergeometric() -> None:
    data = pl.DataFrame({"e": [1] * 14 + [0] * 26 + [1] * 21 + [0] * 9, "g": ["a"] * 40 + ["b"] * 30})
    draws: Any = stats.hypergeom(70, 35, 40)
    there = np.arange(5, 36)
    apart = np.abs(there / 40 - (35 - there) / 30)
    expected = float(draws.pmf(there)[apart >= abs(14 / 40 - 21 / 30) - SAME].sum())
    result = shuffled_test(tf.demographic_parity("g"))(data, estimate="e").row(0, named=True)
    assert result[".p_value"] == pytest.approx(expected, abs=error(expected))
    assert result[".expected"] == pytest.approx(float((draws.pmf(there) * apart).sum()), abs=0.005)
    assert (result[".n"], result[".method"]) == (70, "permutation")


def test_mid_p_counts_ties_half() -> None:
    for name in ("demographic_parity", "ratio", "equalized_odds"):
        _, expected = CASES[name].p_values(THREE.to_dicts())
        result = shuffled_test(CASES[name].metric, mid_p=True)(THREE, "t", "e").row(0, named=True)
        assert result[".p_value"] == pytest.approx(expected, abs=error(expected))
        assert result[".method"] == "permutation, mid-p"


def test_smallest_p_value_is_one_over_draws() -> None:
    data = pl.DataFrame({"e": [1] * 60 + [0] * 60, "g": ["a"] * 60 + ["b"] * 60})
    for mid_p, least in ((False, 1 / 100), (True, 0.5 / 100)):
        result = shuffled_test(tf.demographic_parity("g"), times=99, mid_p=mid_p)(data, estimate="e")
        assert result[".p_value"].item() == pytest.approx(least)


def test_large_tables_agree_with_chi_squared() -> None:
    counts = {"a": (480, 520), "b": (505, 495), "c": (440, 560)}
    data = pl.concat(pl.DataFrame({"e": [1] * hits + [0] * rest, "g": g}) for g, (hits, rest) in counts.items())
    tested: Any = stats.chi2_contingency(np.array(list(counts.values())))
    expected = float(tested.pvalue)
    # of three groups of one size the range is no chi squared, but nearly as likely
    result = shuffled_test(tf.demographic_parity("g"))(data, estimate="e", seed=4)[".p_value"].item()
    assert result == pytest.approx(expected, rel=0.35)
    unequal = shuffled_test(tf.new_groupwise_metric(tf.selection_rate, "sd", tf.aggregates.standard_deviation())("g"))
    assert unequal(data, estimate="e")[".p_value"].item() == pytest.approx(expected, abs=0.01)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory cannot be measured")
def test_permutation_of_many_groups_uses_little_memory() -> None:
    random, rows, groups = np.random.default_rng(20), 20_000, 2_000
    data = pl.DataFrame({"estimate": random.random(rows) < 0.5, "group": random.integers(0, groups, rows)})
    test = inference.disparity_test(tf.demographic_parity("group"))

    def used(times: int) -> float:
        forget_peak()
        before = peak_memory()
        assert test(data, estimate="estimate", times=times)[".n"].item() == rows
        return peak_memory() - before

    used(100)  # what is imported and kept at the first call
    # a number for each of 2,000 more draws and each group would be 32 MB more
    assert used(2_500) < used(500) + 16


# Strata

STRATA = frame("1100110010", "1101100011", "aabbbaabbb").with_columns(s=pl.Series(list("xxxxxyyyyy")))


@pytest.mark.parametrize("name", ["demographic_parity", "equal_opportunity", "accuracy", "ratio", "minimum"])
def test_within_shuffles_inside_strata(name: str) -> None:
    rows = STRATA.to_dicts()
    result = shuffled_test(CASES[name].metric, within="s")(STRATA, "t", "e").row(0, named=True)
    assert_exact(result, CASES[name], rows, "s")
    assert "within s" in result[".hypothesis"]


def test_missing_stratum_is_a_stratum() -> None:
    data = STRATA.with_columns(s=pl.when(pl.col("s") != "y").then("s"))
    ways = (shuffled_test(tf.demographic_parity("g"), within="s")(item, "t", "e") for item in (data, STRATA))
    one, other = (way[".p_value"].item() for way in ways)
    assert one == pytest.approx(other, abs=2 * error(other))


def test_strata_may_be_several_columns_and_expressions() -> None:
    data = STRATA.with_columns(u=pl.Series(list("ijijiijjij")))
    case = CASES["demographic_parity"]
    pasted = data.with_columns(both=pl.col("s") + pl.col("u"))
    for within in (["s", "u"], (pl.col("s") + pl.col("u")).alias("both of them")):
        result = shuffled_test(case.metric, within=within)(data, "t", "e").row(0, named=True)
        assert_exact(result, case, pasted.to_dicts(), "both")


def test_within_strata_removes_simpsons_paradox() -> None:
    """As in Berkeley: nobody is treated differently where they apply, but they apply elsewhere."""
    shares = {("f", "hard"): (16, 80), ("m", "hard"): (4, 20), ("f", "easy"): (14, 20), ("m", "easy"): (56, 80)}
    data = pl.concat(
        pl.DataFrame({"e": [1] * hits + [0] * (size - hits), "g": group, "where": where})
        for (group, where), (hits, size) in shares.items()
    )
    crude = shuffled_test(tf.demographic_parity("g"))(data, estimate="e").row(0, named=True)
    inside = shuffled_test(tf.demographic_parity("g"), within="where")(data, estimate="e").row(0, named=True)
    assert crude[".estimate"] == inside[".estimate"] == pytest.approx(0.3)
    assert crude[".p_value"] < 0.001
    assert inside[".p_value"] > 0.4
    # what is expected is what the departments make
    assert inside[".expected"] == pytest.approx(0.3, abs=0.01)


def test_min_n_applies_to_groups_and_not_to_strata() -> None:
    metric = tf.demographic_parity("g", min_n=4)
    result = shuffled_test(metric, within="s")(STRATA, "t", "e")
    assert result[".estimate"].item() == pytest.approx(metric(STRATA, "t", "e")[".estimate"].item())


def test_reference_is_a_group_across_strata() -> None:
    case = CASES["to_a"]
    result = shuffled_test(case.metric, within="s")(STRATA, "t", "e").row(0, named=True)
    assert_exact(result, case, STRATA.to_dicts(), "s")


@pytest.mark.parametrize("within", ["g", ["s", "s"], "nowhere", 3])
def test_within_rejects_bad_strata(within: Any) -> None:
    with pytest.raises(tf.errors.TidyfairError):
        shuffled_test(tf.demographic_parity("g"), within=within)(STRATA, "t", "e")
    with pytest.raises(tf.errors.ArgumentError, match="privileged"):
        shuffled_test(tf.demographic_parity(tf.privileged(g="a")), within="s")(STRATA, "t", "e")


# Rows and groups that are tested


def test_incomplete_rows_are_not_shuffled() -> None:
    data = frame("11-0011-00110", "1101-01101001", "aaaabbbbbbbaa")
    for name in ("demographic_parity", "equal_opportunity", "accuracy", "equalized_odds"):
        result = shuffled_test(CASES[name].metric)(data, "t", "e").row(0, named=True)
        assert_exact(result, CASES[name], data.to_dicts())
    assert shuffled_test(tf.demographic_parity("g"))(data, "t", "e")[".n"].item() == 12
    assert shuffled_test(tf.equal_opportunity("g"))(data, "t", "e")[".n"].item() == 6
    assert shuffled_test(tf.equalized_odds("g"))(data, "t", "e")[".n"].item() == 10


def test_na_rm_false_with_missing_values_gives_null() -> None:
    data = frame("1-001100", "11010010", "aaaabbbb")
    assert shuffled_test(tf.accuracy.difference("g"))(data, "t", "e", na_rm=False)[".p_value"].item() is None
    assert shuffled_test(tf.demographic_parity("g"))(data, "t", "e", na_rm=False)[".p_value"].item() is not None


def test_groups_below_min_n_are_left_out() -> None:
    metric = tf.equal_opportunity("g", min_n=3)
    data = frame("1111111100", "1100101010", "aaaabbbccc")
    result = shuffled_test(metric)(data, "t", "e").row(0, named=True)
    big = data.filter(pl.col("g") != "c")
    assert_exact(result, Exact(metric, (SENS,), largest_range), big.to_dicts())


def test_groups_without_denominator_are_left_out() -> None:
    data = frame("111100100", "110001100", "aabbccbac")
    result = shuffled_test(tf.equal_opportunity("g"))(data, "t", "e").row(0, named=True)
    assert_exact(result, CASES["equal_opportunity"], data.filter(pl.col("t") == 1).to_dicts())


def test_single_group_has_p_value_1() -> None:
    data = frame("1100", "1010", "aaaa")
    result = shuffled_test(tf.demographic_parity("g"), tf.demographic_parity_ratio("g"))(data, "t", "e")
    assert result.select(".estimate", ".expected", ".p_value").rows() == [(0.0, 0.0, 1.0), (1.0, 1.0, 1.0)]


LARGEST = pl.DataFrame(
    {
        "t": [0] * 50 + [1] * 27, "e": [0, 1] * 25 + [1, 0, 1, 1, 1] + [1] * 10 + [0, 1] * 6,
        "g": ["a"] * 55 + ["b"] * 10 + ["c"] * 12,
    }
)  # fmt: skip
NOBODY = frame("110000", "101010", "aabbcc")

SAME_AS: dict[str, tuple[tf.types.GroupwiseMetric, pl.DataFrame]] = {
    "range": (tf.demographic_parity("g"), SMALL),
    "overall": (tf.demographic_parity("g", aggregate=tf.difference(to="overall")), SMALL),
    "rest": (tf.demographic_parity("g", aggregate=tf.difference(to="rest")), SMALL),
    "rest_with_small_groups": (tf.demographic_parity("g", min_n=5, aggregate=tf.difference(to="rest")), SMALL),
    "overall_with_small_groups": (tf.demographic_parity("g", min_n=5, aggregate=tf.difference(to="overall")), SMALL),
    "majority": (tf.demographic_parity("g", aggregate=tf.difference(to="majority")), SMALL),
    "majority_of_all_rows": (tf.equal_opportunity("g", aggregate=tf.difference(to="majority")), LARGEST),
    "signed": (tf.demographic_parity("g", aggregate=tf.difference(to="c", signed=True)), SMALL),
    "log_ratio": (tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio()), SMALL),
    "to_number": (tf.demographic_parity("i", aggregate=tf.difference(to=1)), SMALL),
    "to_truth_value": (tf.demographic_parity("flag", aggregate=tf.difference(to=True)), SMALL),
    "to_null": (tf.demographic_parity("w", unknown="group", aggregate=tf.difference(to=(None,))), SMALL),
    "to_several": (tf.demographic_parity("g", "h", aggregate=tf.difference(to=("a", "x"))), SMALL),
    "to_text_of_several": (tf.demographic_parity("g", "h", aggregate=tf.difference(to="a:x")), SMALL),
    "sides": (tf.equal_opportunity(tf.privileged(g="a")), SMALL),
    "neither": (tf.demographic_parity(tf.privileged({"g": "a"}, unprivileged={"g": "b"})), SMALL),
    "weighted_mean": (tf.new_groupwise_metric(tf.sens, "x", tf.aggregates.group_mean(weighted=True))("g"), SMALL),
    "less": (tf.new_groupwise_metric(tf.sens, "x", tf.difference(), less=tf.fall_out)("g"), SMALL),
    "one_group_has_a_value": (tf.equal_opportunity("g"), NOBODY),
    "one_rate_has_no_value": (tf.equalized_odds("g"), NOBODY),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_AS)
def test_tested_estimate_equals_the_metric(name: str) -> None:
    metric, data = SAME_AS[name]
    expected = metric(data, "t", "e", on_undefined="ignore")[".estimate"].item()
    try:
        result = shuffled_test(metric, times=50)(data, "t", "e")
    except tf.errors.ArgumentError:
        # what cannot be tested may be refused, but there is no other number
        assert name == "less"
        return
    assert result[".estimate"].item() == (None if expected is None else pytest.approx(expected))
    assert (result[".p_value"].item() is None) == (expected is None)


def test_multiclass_estimate_equals_the_metric() -> None:
    for metric in (tf.equal_opportunity("g"), tf.predictive_parity("g"), tf.accuracy.difference("g")):
        expected = metric(SMALL, "many", "guess", on_undefined="ignore")[".estimate"].item()
        try:
            result = inference.disparity_test(metric)(SMALL, "many", "guess", times=50)
        except tf.errors.ArgumentError:
            continue
        assert result[".estimate"].item() == pytest.approx(expected), metric.name


def test_infinite_ratio_in_small_groups_has_large_p_value() -> None:
    data = pl.DataFrame({"e": [0, 0, 0, 0, 1, 0, 1, 0], "g": list("aaaabbbb")})
    result = shuffled_test(tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio()))(data, estimate="e").row(
        0, named=True
    )
    # either group has both of those selected in 6 of 28 ways
    assert result[".estimate"] == math.inf
    assert result[".p_value"] == pytest.approx(12 / 28, abs=error(0.43))
    assert result[".expected"] == result[".expected_upper"] == math.inf


def own_range(groups: pl.DataFrame) -> float:
    values = groups[".estimate"].to_list()
    return max(values) - min(values)


VALUE = pl.col(".estimate")
OWN: list[tuple[Any, Any]] = [
    (tf.new_aggregate(own_range, equal=0), tf.difference()),
    (tf.new_aggregate(VALUE.max() - VALUE.min(), equal=0), tf.difference()),
    (tf.new_aggregate(VALUE.min() / VALUE.max(), equal=1), tf.ratio()),
    (tf.new_aggregate((VALUE - pl.col(".overall")).abs().max(), equal=0), tf.difference(to="overall")),
]


@pytest.mark.parametrize(("own", "known"), OWN, ids=lambda item: repr(item)[:30])
@pytest.mark.parametrize("factory", [tf.equal_opportunity, tf.new_groupwise_metric(tf.f_meas, "f", tf.difference())])
def test_custom_aggregates_are_tested_as_library_ones(factory: Any, own: Any, known: Any) -> None:
    result, expected = (
        inference.disparity_test(factory("g", aggregate=item))(random_people(300), "t", "e", times=300).row(
            0, named=True
        )
        for item in (own, known)
    )
    assert result == pytest.approx(expected)


def test_function_aggregates_use_fewer_draws_by_default() -> None:
    asked = list[int]()

    def counting(groups: pl.DataFrame) -> float:
        asked.append(len(groups))
        return own_range(groups)

    metric = tf.demographic_parity("g", aggregate=tf.new_aggregate(counting, equal=0))
    for times, least in ((None, 1_000), (70, 70)):
        asked.clear()
        inference.disparity_test(metric)(SMALL, estimate="e", times=times)
        assert least < len(asked) <= least + 5


def test_complementary_rates_give_the_same_test() -> None:
    both = tf.new_groupwise_metric(tf.metric_set(tf.sens, tf.miss_rate), "both", tf.difference())
    one, other = (shuffled_test(metric("g"))(SMALL, "t", "e", seed=1) for metric in (both, tf.equal_opportunity))
    assert one[".estimate"].item() == pytest.approx(other[".estimate"].item())
    assert one[".p_value"].item() == pytest.approx(other[".p_value"].item(), abs=2 * error(0.5))
    assert one[".n"].item() == other[".n"].item()


# Outer groups, scores and frames


CERTAIN = [".metric", ".by", ".hypothesis", ".estimate", ".n", ".method"]
BY_CHANCE = [".expected", ".p_value"]


@pytest.mark.parametrize(
    "test",
    [inference.disparity_test, tf.inference.pairwise, inference.worst_groups],
    ids=["disparity_test", "pairwise", "worst_groups"],
)
def test_added_tallies_give_the_same_test(test: Any, tmp_path: Path) -> None:
    loans, metric = lending(3_000), tf.equal_opportunity("race")
    one, other = (metric.tally(part, "repaid", "approved") for part in (loans[:500], loans[500:]))
    assert (
        test(metric)
        .compute(one + other, pos_label="yes")
        .equals(test(metric)(loans, "repaid", "approved", pos_label="yes"))
    )
    tf.save_state(one, tmp_path / "state.parquet", suppress_below=10)
    with pytest.raises(tf.errors.ArgumentError, match="Suppressed groups cannot be tested"):
        test(metric).compute(tf.load_state(tmp_path / "state.parquet", one), pos_label="yes")


def test_tally_without_rows_raises_with_keep_rows() -> None:
    loans, metric = lending(500), tf.mae.difference("sex")
    test = inference.disparity_test(metric)
    with pytest.raises(tf.errors.ArgumentError, match="count with `keep_rows=True`"):
        test.compute(metric.tally(loans, "weight", "score"), times=20)
    kept = metric.tally(loans, "weight", "score", keep_rows=True)
    # sums of floats agree but for their last digits
    assert_frame_equal(test.compute(kept, times=20), test(loans, "weight", "score", times=20), rel_tol=1e-12, abs_tol=0)


def test_outer_groups_are_tested_separately() -> None:
    people = random_people()
    test = shuffled_test(tf.equal_opportunity("g"), tf.demographic_parity("h"))
    result = test(people, "t", "e", group_by="fold")
    assert result.columns[:3] == ["fold", ".metric", ".by"]
    for (fold,), part in people.group_by("fold"):
        alone = test(part, "t", "e")
        mine = result.filter(fold=fold)
        assert mine.select(CERTAIN).equals(alone.select(CERTAIN))
        for name in BY_CHANCE:
            assert mine[name].to_list() == pytest.approx(alone[name].to_list(), abs=2 * error(0.5)), name


def test_outer_keys_keep_their_type() -> None:
    people = random_people().with_columns(
        pl.when(pl.col("fold") > 1).then("fold").alias("some"),
        pl.col("h").cast(pl.Enum(["y", "x"])).alias("level"),
        pl.date(2026, pl.col("fold"), 1).alias("day"),
    )
    for key in ("fold", "some", "level", "day", "h"):
        expected = tf.demographic_parity("g")(people, "t", "e", group_by=key)[key]
        assert inference.disparity_test(tf.demographic_parity("g"))(people, "t", "e", group_by=key, times=20)[
            key
        ].equals(expected, check_dtypes=True), key


def test_tests_on_every_engine(engine: Callable[[pl.DataFrame], Any]) -> None:
    people = random_people(60)
    test = inference.disparity_test(tf.demographic_parity("g"))
    given = engine(people)
    result = test(given, "t", "e", group_by="fold", times=100)
    assert type(result) is answer_kind(given)
    expected = test(people, "t", "e", group_by="fold", times=100)
    assert as_polars(result)[".p_value"].to_list() == expected[".p_value"].to_list()
    grouped: Any = people.group_by("fold")
    assert test(grouped, "t", "e", times=100).equals(expected)


def test_test_with_threshold() -> None:
    people = random_people()
    made = people.with_columns(e=(pl.col("score") >= 0.3).cast(pl.Int64))
    test = shuffled_test(tf.equalized_odds("g"))
    assert test(people, "t", probs="score", threshold=0.3).equals(test(made, "t", "e"))
    with pytest.raises(tf.errors.ArgumentError, match="do not accept a list of values"):
        test(people, "t", probs="score", threshold=[0.3, 0.4])


def test_test_with_pos_label() -> None:
    words = SMALL.with_columns(pl.col("t", "e").replace_strict({0: "no", 1: "yes"}, return_dtype=pl.String))
    test = shuffled_test(tf.equal_opportunity("g"))
    assert test(words, "t", "e", pos_label="yes").equals(test(SMALL, "t", "e"))


def test_same_seed_gives_same_p_value() -> None:
    people = random_people()
    one, other = tf.equal_opportunity("g"), tf.demographic_parity_ratio("h")
    call: dict[str, Any] = {"group_by": "fold", "times": 500, "seed": 8}
    expected = inference.disparity_test(one, adjust="none")(people, "t", "e", **call)
    shuffled = people.sample(fraction=1, shuffle=True, seed=3)
    assert inference.disparity_test(one, adjust="none")(shuffled, "t", "e", **call).equals(expected)
    together = inference.disparity_test(other, one, adjust="none")(people, "t", "e", **call)
    assert together.filter(pl.col(".metric") == one.name).equals(expected)
    call["seed"] = 9
    another = inference.disparity_test(one, adjust="none")(people, "t", "e", **call)
    assert another[".estimate"].equals(expected[".estimate"])
    assert not another[".expected"].equals(expected[".expected"])


@pytest.mark.simulation
def test_error_rate_of_equal_groups_within_strata() -> None:
    random = np.random.default_rng(12)
    worlds, rows = 120, 60
    people = pl.DataFrame(
        {
            "world": np.repeat(np.arange(worlds), rows), "t": random.integers(0, 2, worlds * rows),
            "e": (random.uniform(size=worlds * rows) < 0.3).astype(int),
            "g": random.choice(list("abc"), worlds * rows, p=[0.5, 0.3, 0.2]),
            "s": random.choice(list("xy"), worlds * rows),
        }
    )  # fmt: skip
    for metric, within in ((tf.equalized_odds("g"), None), (tf.demographic_parity("g"), "s")):
        test = inference.disparity_test(metric, within=within, adjust="none")
        p_values = test(people, "t", "e", group_by="world", times=199)[".p_value"].to_numpy()
        for level in (0.05, 0.1, 0.3):
            often = float((p_values <= level).mean())
            assert often <= level + 3.5 * math.sqrt(level * (1 - level) / worlds), (metric.name, level)
        # and the test is not one that never rejects
        assert float((p_values <= 0.3).mean()) >= 0.15


# Many tests

FAMILIES: dict[str, list[str]] = {"metric": [".metric"], "by": [".by"], "all": []}
WAYS = {"holm": "holm", "bh": "fdr_bh", "by": "fdr_by"}


def assert_adjusted(result: pl.DataFrame, way: str, family: str) -> None:
    keyed = result.with_columns(pl.concat_str(pl.lit(""), *FAMILIES[family]).alias("family"))
    for _, part in keyed.group_by("family"):
        expected: Any = multipletests(part[".p_value"].to_numpy(), method=WAYS[way])[1]
        assert part[".p_adjusted"].to_list() == pytest.approx(list(expected))
    assert result[".adjustment"].unique().to_list() == [f"{way} over {family}"]


def assert_closed(pairs: pl.DataFrame, family: str) -> None:
    """Holm's adjustment for as many pairs as can be equal: none, one or all of three groups."""
    keys = [] if family == "all" else [f".{family}"]
    parts = pairs.partition_by(keys) if keys else [pairs]
    for part in parts:
        possible = {0}
        for comparison in part.partition_by("fold", ".metric", ".by"):
            of_one = {1: (0, 1), 3: (0, 1, 3)}[len(comparison)]
            possible = {one + other for one in possible for other in of_one}
        ordered = part.sort(".p_value", ".p_adjusted")
        least = 0.0
        for before, (raw, closed) in enumerate(ordered.select(".p_value", ".p_adjusted").rows()):
            most = max(number for number in possible if number <= len(part) - before)
            least = max(least, min(1.0, most * raw))
            assert closed == pytest.approx(least)
    assert pairs[".adjustment"].unique().to_list() == [f"closed holm over {family}"]


@pytest.mark.parametrize(
    ("way", "family"), [("holm", "metric"), ("holm", "by"), ("holm", "all"), ("bh", "metric"), ("by", "all")]
)
def test_p_values_are_adjusted_per_family(way: Any, family: Any) -> None:
    people = random_people().with_columns(e=pl.when(pl.col("g") == "c").then(1).otherwise("e"))
    metrics = [tf.demographic_parity("g"), tf.demographic_parity("h"), tf.equal_opportunity("g")]
    result = inference.disparity_test(*metrics, adjust=way, family=family)(people, "t", "e", group_by="fold", times=50)
    assert len(result) == 9
    assert_adjusted(result, way, family)
    one_rate = [tf.demographic_parity("g"), tf.equal_opportunity("g"), tf.demographic_parity("h")]
    pairs = tf.inference.pairwise(*one_rate, adjust=way, family=family)(people, "t", "e", group_by="fold")
    assert len(pairs) == 3 * (3 + 3 + 1)
    if way == "holm":
        assert_closed(pairs, family)
    else:
        assert_adjusted(pairs, way, family)


@pytest.mark.parametrize("way", ["holm", "bh", "by", "none"])
def test_adjusted_p_value_is_never_below_the_raw_one(way: str) -> None:
    random = np.random.default_rng(2)
    for count in range(1, 60):
        p_values = np.full(count, random.uniform())
        assert (adjusted(p_values, way) >= p_values).all()


def test_adjust_none_keeps_p_values() -> None:
    test = inference.disparity_test(tf.demographic_parity("g"), tf.equal_opportunity("g"), adjust="none")
    result = test(random_people(), "t", "e", times=100)
    assert result[".p_adjusted"].equals(result[".p_value"], check_names=False)
    assert result[".adjustment"].to_list() == ["none over all"] * 2


def test_undefined_tests_are_not_adjusted() -> None:
    nobody = NOBODY.with_columns(t=pl.lit(0))
    metrics = (tf.equal_opportunity("g"), tf.demographic_parity("g"))
    result = inference.disparity_test(*metrics)(nobody, "t", "e", pos_label=1, labels=[0, 1], times=100)
    assert result[".p_value"][0] is result[".p_adjusted"][0] is result[".estimate"][0] is None
    assert result[".p_adjusted"][1] == result[".p_value"][1]
    assert result[".hypothesis"][0].startswith("sens")


@pytest.mark.parametrize("within", [None, "s"])
@pytest.mark.parametrize("group_by", [None, "u"])
def test_no_rows_give_null_p_value(within: str | None, group_by: str | None) -> None:
    nothing = STRATA.with_columns(u="s").head(0)
    result = inference.disparity_test(tf.demographic_parity("g"), within=within)(
        nothing, "t", "e", group_by=group_by, times=20
    )
    assert result[".p_value"].to_list() == [None] * (group_by is None)
    assert tf.inference.pairwise(tf.demographic_parity("g"))(nothing, "t", "e", group_by=group_by).is_empty()


def test_class_imbalance_has_no_test() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="which permutation does not change"):
        inference.disparity_test(tf.counts.class_imbalance("g"))(SMALL)


@pytest.mark.parametrize("make", [inference.disparity_test, tf.inference.pairwise])
def test_tests_reject_non_comparisons(make: Any) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r'did you mean `demographic_parity\("col"\)`'):
        make(tf.demographic_parity)
    user = tf.new_groupwise_metric(tf.sens, "mine", pl.col(".estimate").max())("g")
    if make is inference.disparity_test:
        with pytest.raises(
            tf.errors.ArgumentError, match=r"the direction of mine is unknown; .+ `new_aggregate\(…, equal=…\)`"
        ):
            make(user)
    for odd in (tf.accuracy, [tf.demographic_parity("g")], None, "demographic_parity", tf.metric_set(tf.sens)):
        with pytest.raises(tf.errors.ArgumentError, match=r"takes comparisons of groups"):
            make(odd)
    with pytest.raises(tf.errors.ArgumentError, match="needs a comparison of groups"):
        make()


OF_DRAWS = {"times", "seed"}
ODD_OPTIONS: list[dict[str, Any]] = [
    {"times": 0}, {"times": 2.5}, {"times": True}, {"times": "many"}, {"times": 10**12}, {"seed": -1}, {"seed": 0.5},
    {"seed": None}, {"adjust": "bonferoni"}, {"adjust": None}, {"family": "metrics"}, {"family": 1},
]  # fmt: skip


@pytest.mark.parametrize("options", ODD_OPTIONS, ids=str)
@pytest.mark.parametrize("make", [inference.disparity_test, tf.inference.pairwise])
def test_bad_test_options_raise(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(tf.errors.ArgumentError):
        make(tf.demographic_parity("g"), **{name: value for name, value in options.items() if name not in OF_DRAWS})(
            SMALL, "t", "e", **{name: value for name, value in options.items() if name in OF_DRAWS}
        )


def test_bad_options_of_one_test_raise() -> None:
    make: Any = inference.disparity_test
    with pytest.raises(tf.errors.ArgumentError, match="max_t"):
        make(tf.demographic_parity("g"), adjust="max_t")
    with pytest.raises(tf.errors.ArgumentError, match="mid_p"):
        make(tf.demographic_parity("g"), mid_p="no")
    pairs: Any = tf.inference.pairwise
    for level in (0, 1, 1.0, 95, math.nan, "0.9", True, None):
        with pytest.raises(tf.errors.ArgumentError, match="`conf_level` is a number between 0 and 1"):
            pairs(tf.demographic_parity("g"))(SMALL, "t", "e", conf_level=level)


ODD_CALLS: list[dict[str, Any]] = [
    {"interval": "auto"}, {"explain": True}, {"on_undefined": "raise"}, {"score_bins": 4},
    {"times": 5}, {"seed": -3}, {"conf_level": 9}, {"na_rm": "maybe"}, {"nonsense": 1},
]  # fmt: skip


@pytest.mark.parametrize("options", ODD_CALLS, ids=lambda item: next(iter(item)))
@pytest.mark.parametrize("make", [inference.disparity_test, tf.inference.pairwise])
def test_bad_calls_raise_alike_for_data_and_tallies(make: Any, options: dict[str, Any]) -> None:
    data = random_people(40).with_columns(w=pl.lit(2.0))
    if make is tf.inference.pairwise:
        # pairs raise for what is undefined
        options = {"on_undefined": "never"} if "on_undefined" in options else options
    test = make(tf.demographic_parity("g"))
    with pytest.raises(tf.errors.TidyfairError) as in_call:
        test(data, "t", "e", **options)
    with pytest.raises(tf.errors.TidyfairError) as of_tally:
        test.compute(tf.demographic_parity("g").tally(data, "t", "e"), **options)
    assert str(of_tally.value).split(" Known:")[0] == str(in_call.value).split(" Known:")[0]


def test_compute_rejects_data_and_counting_options() -> None:
    test: Any = inference.disparity_test(tf.demographic_parity("g"))
    data = random_people(40)
    with pytest.raises(tf.errors.ArgumentError, match="needs the result of `tally`"):
        test.compute(data)
    tally = tf.demographic_parity("g").tally(data, "t", "e")
    with pytest.raises(tf.errors.ArgumentError, match="'group_by' is an option of counting; give it to `tally`"):
        test.compute(tally, group_by="h")


def rare_and_large_groups(seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    sizes, step = [600, 500, 400, 12, 40], random.choice([0.0, 0.02, 0.05])
    group = np.repeat(list("abcde"), sizes)
    rate = 0.4 + step * (np.unique(group, return_inverse=True)[1] % 3)
    truth = random.random(len(group)) < 0.5
    return pl.DataFrame({"g": group, "t": truth.astype(int), "e": (random.random(len(group)) < rate).astype(int)})


JUDGED: list[Any] = [
    tf.demographic_parity("g"),
    tf.demographic_parity_ratio("g"),
    tf.equalized_odds("g"),
    tf.accuracy.difference("g"),
    tf.f_meas.difference("g"),
    tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio()),
    tf.demographic_parity(tf.privileged(g="a")),
    tf.demographic_parity("g", aggregate=tf.aggregates.standard_deviation()),
    tf.demographic_parity("g", to="rest"),
]


@pytest.mark.parametrize("options", [{}, {"studentized": False}, {"mid_p": True}], ids=str)
def test_disparities_are_outside_of_what_is_expected_if_their_p_value_is_below_5_percent(options: Any) -> None:
    judged: set[bool] = set()
    for seed in range(6):
        data = rare_and_large_groups(seed)
        result = inference.disparity_test(*JUDGED, adjust="none", **options)(data, "t", "e", times=199)
        for row in result.drop_nulls(".expected_lower").to_dicts():
            slack = 1e-9
            is_outside = not row[".expected_lower"] - slack <= row[".estimate"] <= row[".expected_upper"] + slack
            assert is_outside == (row[".p_value"] < 0.05), row
            judged.add(is_outside)
        assert result[".expected_lower"].null_count() == 0
    assert judged == {True, False}


def test_expected_range_has_no_scale_where_equal_groups_have_no_value() -> None:
    data = rare_and_large_groups(1)
    lowest = tf.selection_rate.group_minimum("g")
    result = inference.disparity_test(lowest)(data, "t", "e", times=199).row(0, named=True)
    assert (result[".expected"], result[".expected_lower"], result[".expected_upper"]) == (None, None, None)
    assert 0 < result[".p_value"] <= 1
    itself = inference.disparity_test(lowest, studentized=False)(data, "t", "e", times=199).row(0, named=True)
    assert itself[".expected_lower"] <= itself[".expected"] <= itself[".expected_upper"]


def test_expected_range_of_two_groups_is_that_of_the_differences_themselves() -> None:
    data = rare_and_large_groups(2).filter(pl.col("g").is_in(["a", "d"]))
    parity = tf.demographic_parity("g")
    one, other = (
        inference.disparity_test(parity, studentized=studentized)(data, "t", "e").row(0, named=True)
        for studentized in (True, False)
    )
    for name in (".estimate", ".expected", ".expected_lower", ".expected_upper", ".p_value"):
        assert one[name] == pytest.approx(other[name]), name


def test_what_is_not_read_does_not_change_a_test() -> None:
    random = np.random.default_rng(3)
    data = pl.DataFrame({name: random.integers(0, size, 300) for name, size in (("g", 3), ("y", 2), ("p", 2))})
    test = tf.inference.disparity_test(tf.demographic_parity("g"))
    assert_frame_equal(test(data, "y", "p", times=500), test(data, estimate="p", times=500))
