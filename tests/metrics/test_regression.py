"""Metrics of predicted numbers equal scikit-learn or plain arithmetic, and keep their precision at large means."""

from __future__ import annotations

import math
import statistics
import warnings
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from conftest import as_polars, examples
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from public_names import public
from sklearn import metrics

import tidyfair as tf
from tidyfair.metrics import inequality

if TYPE_CHECKING:
    from collections.abc import Callable

LAW = settings(
    deadline=None,
    max_examples=examples(10),
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)


class Part(NamedTuple):
    """What counts of a group: rows with both numbers and a weight above zero."""

    y: list[float]
    e: list[float]
    w: list[float]
    weighted: bool


@dataclass(frozen=True)
class Case:
    rows: list[dict[str, Any]]
    weighted: bool

    @property
    def frame(self) -> pl.DataFrame:
        number = dict.fromkeys(("truth", "estimate", "weight"), pl.Float64)
        return pl.DataFrame(self.rows, schema={**number, "group": pl.String})

    @property
    def counting(self) -> dict[str, Any]:
        return {"case_weights": "weight"} if self.weighted else {}

    def part(self, group: str) -> Part:
        kept = [
            (row["truth"], row["estimate"], row["weight"] if self.weighted else 1.0)
            for row in self.rows
            if row["group"] == group and row["truth"] is not None and row["estimate"] is not None
        ]
        kept = [row for row in kept if row[2] > 0]
        y, e, w = ([row[index] for row in kept] for index in range(3))
        return Part(y, e, w, self.weighted)

    @property
    def groups(self) -> list[str]:
        return sorted({row["group"] for row in self.rows})


# quarters add up exactly, so that constant values are recognized
QUARTERS = st.integers(1, 40).map(lambda k: k / 4)


@st.composite
def cases(draw: st.DrawFn, numbers: st.SearchStrategy[float] = QUARTERS) -> Case:
    gaps = [st.none()] if draw(st.booleans()) else []
    weighted = draw(st.booleans())
    row = st.fixed_dictionaries(
        {
            "truth": st.one_of(numbers, *gaps),
            "estimate": st.one_of(numbers, *gaps),
            "weight": st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 3.0]),
            "group": st.sampled_from("abc"),
        }
    )
    rows = draw(st.lists(row, min_size=1, max_size=30))
    if weighted and not any(row["weight"] for row in rows):
        weighted = False  # weights that are all zero are an error
    return Case(rows, weighted)


# References


def mean(values: list[float], weights: list[float]) -> float:
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def errors(part: Part) -> list[float]:
    return [y - e for y, e in zip(part.y, part.e, strict=True)]


def average(of: Callable[[float, float], float]) -> Callable[[Part], float | None]:
    return lambda part: mean([of(y, e) for y, e in zip(part.y, part.e, strict=True)], part.w) if part.y else None


def sklearn(function: Callable[..., float], **options: Any) -> Callable[[Part], float | None]:
    return lambda part: float(function(part.y, part.e, sample_weight=part.w, **options)) if part.y else None


def exact(part: Part) -> tuple[Fraction, Fraction, Fraction, Fraction, Fraction, Fraction]:
    """Variation of truth and estimate, covariation, the distance of means, total weight, and freedom."""
    y, e, w = ([Fraction(item) for item in column] for column in part[:3])
    total = sum(w, Fraction(0))
    my, me = (sum((a * b for a, b in zip(column, w, strict=True)), Fraction(0)) / total for column in (y, e))
    rows = list(zip(y, e, w, strict=True))
    return (
        sum(((a - my) ** 2 * c for a, _, c in rows), Fraction(0)),
        sum(((b - me) ** 2 * c for _, b, c in rows), Fraction(0)),
        sum(((a - my) * (b - me) * c for a, b, c in rows), Fraction(0)),
        my - me,
        total,
        total - sum((c * c for c in w), Fraction(0)) / total,
    )


def correlation(part: Part) -> float | None:
    if not part.y:
        return None
    truth, estimate, both, *_ = exact(part)
    return float(both) / math.sqrt(truth) / math.sqrt(estimate) if truth and estimate else None


def rsq(part: Part) -> float | None:
    return None if (r := correlation(part)) is None else r * r


def concordance(part: Part, *, bias: bool = False) -> float | None:
    """Covariances unbiased with reliability weights, or as Lin had them; a single row has none."""
    if not part.y:
        return None
    truth, estimate, both, gap, total, freedom = exact(part)
    by = total if bias else freedom
    if not freedom or not by or not (truth or estimate or gap):
        return None
    below = truth / by + estimate / by + gap * gap
    return float(2 * both / by / below) if below else None


def rmse(part: Part) -> float:
    return math.sqrt(mean([item**2 for item in errors(part)], part.w))


def rsq_trad(part: Part) -> float | None:
    if not part.y or not exact(part)[0]:
        return None
    return float(metrics.r2_score(part.y, part.e, sample_weight=part.w))


def rmse_relative(part: Part) -> float | None:
    wide = max(part.y) - min(part.y) if part.y else 0
    return rmse(part) / wide if wide else None


def over_error(spread: float, error: float) -> float | None:
    return spread / error if error else math.inf if spread else None


def rpd(part: Part) -> float | None:
    if not part.y or not exact(part)[5]:
        return None
    truth, *_, freedom = exact(part)
    return over_error(math.sqrt(truth / freedom), rmse(part))


def rpiq(part: Part) -> float | None:
    if not part.y:
        return None
    low, high = np.quantile(part.y, [0.25, 0.75])
    return over_error(float(high - low), rmse(part))


def iic(part: Part) -> float | None:
    r = correlation(part)
    sides = [
        [(abs(item), w) for item, w in zip(errors(part), part.w, strict=True) if (item < 0) == over] for over in (0, 1)
    ]
    if r is None or not all(sides):
        return None
    sizes = [mean(*([row[index] for row in side] for index in (0, 1))) for side in sides]
    return r * min(sizes) / max(sizes) if max(sizes) else None


def gini(part: Part) -> float | None:
    if not part.y or min(part.y) == max(part.y):
        return None

    def area(order: list[int]) -> float:
        passed = gained = twice = 0.0
        for index in order:
            now = passed + part.w[index], gained + part.y[index] * part.w[index]
            twice += (now[0] - passed) * (now[1] + gained)
            passed, gained = now
        return twice / (passed * gained) - 1

    places = range(len(part.y))
    by_estimate = sorted(places, key=lambda index: (-part.e[index], -part.y[index]))
    return area(by_estimate) / area(sorted(places, key=lambda index: -part.y[index]))


def median_absolute_error(part: Part) -> float | None:
    if not part.y:
        return None
    if not part.weighted:
        return statistics.median(map(abs, errors(part)))
    order = sorted((abs(Fraction(item)), Fraction(w)) for item, w in zip(errors(part), part.w, strict=True))
    reached, half = Fraction(0), sum(map(Fraction, part.w), Fraction(0)) / 2
    result: list[Fraction] = []
    for index, (size, w) in enumerate(order):
        reached += w
        if reached == half:
            return float((size + order[index + 1][0]) / 2)
        if reached > half:
            result.append(size)
    return float(result[0])


def mase(part: Part) -> float | None:
    steps = [abs(b - a) for a, b in zip(part.y, part.y[1:], strict=False)]
    return mean([*map(abs, errors(part))], part.w) / statistics.fmean(steps) if steps and any(steps) else None


def huber(y: float, e: float, delta: float) -> float:
    size = abs(y - e)
    return size**2 / 2 if size <= delta else delta * (size - delta / 2)


REFERENCES: dict[str, Callable[[Part], float | None]] = {
    "mae": sklearn(metrics.mean_absolute_error),
    "mse": sklearn(metrics.mean_squared_error),
    "rmse": sklearn(metrics.root_mean_squared_error),
    "rmse_relative": rmse_relative,
    "msd": average(lambda y, e: y - e),
    "residual_bias": average(lambda y, e: e - y),
    "mape": lambda part: None if (m := sklearn(metrics.mean_absolute_percentage_error)(part)) is None else 100 * m,
    "mpe": average(lambda y, e: 100 * (y - e) / y),
    "smape": average(lambda y, e: 200 * abs(y - e) / (abs(y) + abs(e))),
    "huber_loss": average(lambda y, e: huber(y, e, 1.0)),
    "huber_loss_pseudo": average(lambda y, e: math.sqrt(1 + (y - e) ** 2) - 1),
    "pinball_loss": sklearn(metrics.mean_pinball_loss, alpha=0.5),
    "poisson_log_loss": average(lambda y, e: e - math.floor(y) * math.log(e) + math.lgamma(math.floor(y) + 1)),
    "median_absolute_error": median_absolute_error,
    "mean_prediction": lambda part: mean(part.e, part.w) if part.y else None,
    "mean_truth": lambda part: mean(part.y, part.w) if part.y else None,
    "prediction_total": lambda part: mean(part.e, part.w) * sum(part.w) if part.y else None,
    "ratio_of_means": lambda part: mean(part.e, part.w) / mean(part.y, part.w) if part.y and any(part.y) else None,
    "rsq": rsq,
    "rsq_trad": rsq_trad,
    "ccc": concordance,
    "rpd": rpd,
    "iic": iic,
    "gini_coef": gini,
}
UNWEIGHTED = {"rpiq": rpiq, "mase": mase}
"""Quartiles of weighted rows are yardstick's own; the steps of `mase` count rows of weight zero."""
TWEAKS: dict[str, tuple[tf.types.Metric, Callable[[Part], float | None]]] = {
    "ccc_biased": (tf.metric_tweak(tf.ccc, "ccc_biased", bias=True), lambda part: concordance(part, bias=True)),
    "huber_2": (tf.metric_tweak(tf.huber_loss, "huber_2", delta=2), average(lambda y, e: huber(y, e, 2))),
    "pseudo_2": (
        tf.metric_tweak(tf.huber_loss_pseudo, "pseudo_2", delta=2),
        average(lambda y, e: 4 * (math.sqrt(1 + ((y - e) / 2) ** 2) - 1)),
    ),
    "pinball_0.9": (
        tf.metric_tweak(tf.prediction_intervals.pinball_loss, "pinball_0.9", quantile=0.9),
        sklearn(metrics.mean_pinball_loss, alpha=0.9),
    ),
}


OF_ONE_COLUMN = ["mean_prediction", "mean_truth", "prediction_total"]


def test_every_numeric_metric_has_a_reference() -> None:
    elsewhere = {*inequality.__all__}
    assert {metric.name for metric in tf.get_metrics("numeric")} - elsewhere == {*REFERENCES, *UNWEIGHTED}


Values = dict[str, tuple[float | None, str]]


def values(results: pl.DataFrame, key: str) -> Values:
    pairs = zip(results[".estimate"], results[".status"], strict=True)
    return dict(zip(results[key].to_list(), pairs, strict=True))


def close(result: float | None, expected: float | None) -> bool:
    if result is None or expected is None:
        return result is expected
    return math.isclose(result, expected, rel_tol=1e-9, abs_tol=1e-11)


def assert_equals(metric: tf.types.Metric, reference: Callable[[Part], float | None], case: Case) -> None:
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("group")
    compared = values(gap.by_group(case.frame, "truth", "estimate", **case.counting), ".group")
    parted = values(metric.by_group(case.frame, "truth", "estimate", group_by="group", **case.counting), "group")
    assert list(compared) == list(parted) == case.groups
    for group in case.groups:
        if metric.name in ("mean_prediction", "mean_truth", "prediction_total"):
            continue  # they need one column only: see below
        expected = reference(case.part(group))
        assert close(compared[group][0], expected), (group, compared[group], expected)
        assert close(parted[group][0], expected), (group, parted[group], expected)
        assert (compared[group][1] in ("ok", "infinite")) == (expected is not None)


@pytest.mark.parametrize("name", [*REFERENCES, *UNWEIGHTED, *TWEAKS])
@LAW
@given(case=cases())
def test_group_values_equal_the_reference(name: str, case: Case) -> None:
    if name in UNWEIGHTED:
        case = Case(case.rows, weighted=False)
    metric, reference = TWEAKS.get(name) or (public(name), (REFERENCES | UNWEIGHTED)[name])
    assert_equals(metric, reference, case)


@LAW
@given(cases())
def test_means_need_only_one_column(case: Case) -> None:
    for metric, name in ((tf.mean_prediction, "estimate"), (tf.mean_truth, "truth")):
        result = values(metric.by_group(case.frame, **{name: name}, group_by="group", **case.counting), "group")
        totals = values(
            tf.surveys.total.by_group(case.frame, estimate=name, group_by="group", **case.counting), "group"
        )
        for group, (value, _) in result.items():
            alone = Case([{**row, "truth": row[name], "estimate": row[name]} for row in case.rows], case.weighted)
            part = alone.part(group)
            assert close(value, mean(part.y, part.w) if part.y else None)
            assert close(totals[group][0], mean(part.y, part.w) * sum(part.w) if part.y else None)


def test_weighted_median_is_midpoint_at_half_the_weight(
    engine: Callable[[pl.DataFrame], Any],
) -> None:
    data = pl.DataFrame({"truth": [1.0, 2.0, 5.0], "estimate": [0.0, 0.0, 0.0], "weight": [1, 1, 2]})
    result = as_polars(tf.median_absolute_error(engine(data), "truth", "estimate", case_weights="weight"))
    assert result[".estimate"].item() == 3.5


def test_groups_of_weight_0_leave_the_median_of_others() -> None:
    data = pl.DataFrame({"truth": [1.0, 2.0, 5.0], "estimate": 0.0, "weight": [0.0, 1.0, 2.0], "group": [*"abb"]})
    result = tf.median_absolute_error(
        data, "truth", "estimate", case_weights="weight", group_by="group", on_undefined="ignore"
    )
    assert result[".estimate"].to_list() == [None, 5.0]


@LAW
@given(cases())
def test_unweighted_median_equals_scikit_learn(case: Case) -> None:
    case = Case(case.rows, weighted=False)

    def reference(part: Part) -> float | None:
        return float(metrics.median_absolute_error(part.y, part.e)) if part.y else None

    assert_equals(tf.median_absolute_error, reference, case)


def test_relative_errors_with_zero_truths(engine: Callable[[pl.DataFrame], Any]) -> None:
    data = pl.DataFrame({"truth": [0.0, 1.0, 0.0, 1.0], "estimate": [1.0, 1.0, 0.0, 1.0], "group": [*"aabb"]})
    result = tf.metric_set(tf.mape, tf.smape)(
        engine(data), "truth", "estimate", group_by="group", on_undefined="ignore", explain=True
    )
    assert as_polars(result).select(".metric", "group", ".estimate", ".status").rows() == [
        ("mape", "a", math.inf, "infinite"),
        ("mape", "b", None, "zero_denominator"),
        ("smape", "a", 100.0, "ok"),
        ("smape", "b", None, "zero_denominator"),
    ]


# Digits


def far_away(middle: float, seed: int = 1, rows: int = 200) -> pl.DataFrame:
    """Numbers of unit variance about a mean, in binary fractions so that they are exact."""
    random = np.random.default_rng(seed)
    truth = np.round(random.standard_normal(rows) * 1024) / 1024
    estimate = np.round((truth * 0.8 + 0.3 * random.standard_normal(rows) + 0.1) * 1024) / 1024
    weight = random.integers(0, 5, rows) / 4
    return pl.DataFrame({"truth": truth + middle, "estimate": estimate + middle, "weight": weight})


def part_of(data: pl.DataFrame, *, weighted: bool) -> Part:
    kept = data.filter(pl.col("weight") > 0) if weighted else data
    weight = kept["weight"].to_list() if weighted else [1.0] * len(kept)
    return Part(kept["truth"].to_list(), kept["estimate"].to_list(), weight, weighted)


CENTRED = tf.metric_set(tf.rsq, tf.ccc, tf.rsq_trad, tf.rpd, tf.iic)


def assert_no_digits_lost(result: pl.DataFrame, data: pl.DataFrame, *, weighted: bool) -> None:
    part = part_of(data, weighted=weighted)
    wrong: dict[str, tuple[float | None, float | None]] = {}
    for name, number in result.select(".metric", ".estimate").rows():
        expected = REFERENCES[name](part)
        if name == "rsq_trad":
            squares = sum(Fraction(w) * (Fraction(y) - Fraction(e)) ** 2 for y, e, w in zip(*part[:3], strict=True))
            expected = float(1 - squares / exact(part)[0])
        if number is None or expected is None or not math.isclose(number, expected, rel_tol=1e-9):
            wrong[name] = number, expected
    assert not wrong


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("middle", [0.0, 1e6, 1e9, -1e9])
def test_large_mean_keeps_precision(middle: float, weighted: bool) -> None:  # noqa: FBT001 - parametrized
    data = far_away(middle)
    options: dict[str, Any] = {"case_weights": "weight"} if weighted else {}
    assert_no_digits_lost(CENTRED(data, "truth", "estimate", **options), data, weighted=weighted)


def spread_out(first: str) -> pl.DataFrame:
    parts = {
        name: far_away(middle, seed).with_columns(group=pl.lit(name))
        for seed, (name, middle) in enumerate({"near": 0.0, "far": 1e9, "middle": -3e4}.items())
    }
    return pl.concat([parts.pop(first), *parts.values()])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", ["near", "far", "middle"])
def test_distant_groups_keep_precision(first: str, weighted: bool) -> None:  # noqa: FBT001 - parametrized
    data = spread_out(first)
    options: dict[str, Any] = {"case_weights": "weight"} if weighted else {}
    parted = CENTRED(data, "truth", "estimate", group_by="group", **options)
    gaps = [
        tf.new_groupwise_metric(metric, f"{metric.name}_gap", tf.difference())("group")
        for metric in CENTRED
        if isinstance(metric, tf.types.Metric)
    ]
    compared = pl.concat([gap.by_group(data, "truth", "estimate", **options) for gap in gaps])
    for group in ("near", "far", "middle"):
        mine = data.filter(group=group)
        assert_no_digits_lost(parted.filter(group=group), mine, weighted=weighted)
        assert_no_digits_lost(compared.filter(pl.col(".group") == group), mine, weighted=weighted)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", ["near", "far"])
def test_added_tallies_keep_precision(first: str, weighted: bool) -> None:  # noqa: FBT001 - parametrized
    data = spread_out(first)
    options: dict[str, Any] = {"case_weights": "weight"} if weighted else {}
    # one part has groups the other lacks, and where they share one, its halves are centred elsewhere
    parts = [data[:250], data[250:]]
    first_tally, second = (CENTRED.tally(part, "truth", "estimate", group_by="group", **options) for part in parts)
    for merged in (CENTRED.compute(first_tally + second), CENTRED.compute(second + first_tally)):
        for group in ("near", "far", "middle"):
            assert_no_digits_lost(merged.filter(group=group), data.filter(group=group), weighted=weighted)
    whole = far_away(1e9)
    halves = [CENTRED.tally(part, "truth", "estimate", **options) for part in (whole[:77], whole[77:])]
    assert_no_digits_lost(CENTRED.compute(halves[0] + halves[1]), whole, weighted=weighted)


def alone(truth: float | None, estimate: float | None, weight: float = 1.0) -> pl.DataFrame:
    numbers = {"truth": [truth], "estimate": [estimate], "weight": [weight]}
    return pl.DataFrame(numbers, schema=dict.fromkeys(numbers, pl.Float64))


ELSEWHERE = {
    "no estimate": alone(0.0, None),
    "no truth": alone(None, 0.0),
    "both in turn": pl.concat([alone(None, 0.0), alone(0.0, None)]),
    "no weight": alone(0.0, 0.0, 0.0),
}
"""Rows that do not count, far from those that do."""


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", ELSEWHERE)
def test_dropped_rows_do_not_affect_precision(name: str, first: bool) -> None:  # noqa: FBT001 - parametrized
    data, other = far_away(1e9), ELSEWHERE[name]
    options: dict[str, Any] = {"case_weights": "weight"} if name == "no weight" else {}
    parts = [other, data] if first else [data, other]
    at_once = CENTRED(pl.concat(parts), "truth", "estimate", on_undefined="ignore", **options)
    assert_no_digits_lost(at_once, data, weighted=bool(options))
    tallies = [CENTRED.tally(part, "truth", "estimate", **options) for part in parts]
    merged = CENTRED.compute(tallies[0] + tallies[1], on_undefined="ignore")
    assert_no_digits_lost(merged, data, weighted=bool(options))


def test_biased_ccc_does_not_depend_on_weight_scale() -> None:
    data = pl.DataFrame({"truth": [1.0, 2.0, 4.0], "estimate": [1.5, 2.5, 3.0], "weight": [0.25, 0.5, 0.25]})
    result = [
        TWEAKS["ccc_biased"][0](
            data.with_columns(pl.col("weight") * factor), "truth", "estimate", case_weights="weight"
        )[".estimate"].item()
        for factor in (1, 2, 3, 100)
    ]
    assert result == pytest.approx([concordance(part_of(data, weighted=True), bias=True)] * 4)


def surprise(count: int, rate: float) -> float:
    """The negative logarithm of a Poisson probability, with the factorial by its series, in sixty digits."""
    with localcontext(prec=60):
        k, mean, circle = Decimal(count), Decimal(rate), Decimal("6.283185307179586476925286766559005768394338798750")
        factorial = k * k.ln() - k + (circle * k).ln() / 2 + 1 / (12 * k) - 1 / (360 * k**3) + 1 / (1260 * k**5)
        return float(mean - k * mean.ln() + factorial)


@pytest.mark.parametrize("count", [10**3, 10**6, 10**9, 10**12, 10**15, 10**31])
def test_poisson_log_loss_of_large_counts_keeps_precision(count: int) -> None:
    for rate in (float(count), count * (1 + 1e-7), count * 1.5, count * 3.0, 1.0):
        data = pl.DataFrame({"y": [float(count)], "p": [rate]})
        result = tf.poisson_log_loss(data, "y", "p")[".estimate"].item()
        assert result == pytest.approx(surprise(int(float(count)), rate), rel=1e-6)


# Limits of floats


LAST_DIGITS = {
    "signed": pl.Series([2**63 - 1, 2**63 - 3], dtype=pl.Int64),
    "below zero": pl.Series([-(2**63), 5], dtype=pl.Int64),
    "unsigned": pl.Series([2**64 - 1, 2**64 - 3], dtype=pl.UInt64),
    "wide": pl.Series([2**100, 2**100 + 1], dtype=pl.Int128),
    "the first that has no float": pl.Series([2**53 + 1, 0], dtype=pl.Int64),
    "decimal": pl.Series(["90071992547409930.25", "1"]).str.to_decimal(scale=2),
}


@pytest.mark.parametrize("name", LAST_DIGITS)
def test_integers_beyond_2_to_53_raise(name: str) -> None:
    data = pl.DataFrame({"y": LAST_DIGITS[name], "p": [1.0, 2.0]})
    for truth, estimate, role in (("y", "p", "truth"), ("p", "y", "estimate")):
        message = rf"`{role}`: the column 'y' holds numbers as large as .+ whole numbers from 2\*\*53 on"
        with pytest.raises(tf.errors.ColumnError, match=message):
            tf.rmse(data, truth, estimate)
    labelled = data.with_columns(event=pl.Series([0, 1]))
    with pytest.raises(tf.errors.ColumnError, match=r"`probs`: .+ subtract the same number from all of it"):
        tf.roc_auc(labelled, "event", probs="y")
    plain = data.with_columns(pl.col("y").cast(pl.Float64))
    assert tf.rmse(plain, "y", "p")[".estimate"].item() > 0


def test_integers_below_2_to_53_are_exact(engine: Callable[[pl.DataFrame], Any]) -> None:
    data = pl.DataFrame({"y": [2**53 - 1, 2**53 - 4, 7], "p": [2**53 - 3, 2**53 - 1, 7]})
    result = as_polars(tf.metric_set(tf.rmse, tf.mae)(engine(data), "y", "p"))
    assert result[".estimate"].to_list() == pytest.approx([math.sqrt((4 + 9) / 3), 5 / 3])
    with pytest.raises(tf.errors.ColumnError, match=r"from 2\*\*53 on"):
        tf.rmse(engine(data.with_columns(pl.col("y") + 1)), "y", "p")


@pytest.mark.parametrize(("factor", "message"), [
    (1e154, "`truth`: the column 'y' holds numbers as large as 2e\\+154, whose squares cannot be summed"),
    (1e307, "`truth`: the column 'y' holds numbers as large as 2e\\+307, whose squares cannot be summed"),
    (1e-170, "`estimate`: all numbers in the column 'p' are 3e-170 or smaller, so their squares are rounded to zero"),
])  # fmt: skip
def test_numbers_whose_squares_overflow_raise(factor: float, message: str) -> None:
    data = pl.DataFrame({"y": [1.0, -2.0, 1.5], "p": [-1.0, 1.0, 3.0]}).with_columns(pl.all() * factor)
    if factor > 1:
        data = data.with_columns(p="y")
    for metric in (tf.rmse, tf.mse, tf.rsq, tf.ccc, tf.huber_loss, tf.mae):
        with pytest.raises(tf.errors.ColumnError, match=message):
            metric(data, "y", "p")


@pytest.mark.parametrize("factor", [1e-90, 1e90])
def test_metrics_scale_with_large_and_small_numbers(factor: float) -> None:
    data = pl.DataFrame({"y": [1.0, -2.0, 1.5], "p": [-1.0, 1.0, 3.0], "w": [1e70, 2e70, 1e70]})
    scaled = data.with_columns(pl.col("y", "p") * factor)
    calls: list[dict[str, Any]] = [{}, {"case_weights": "w"}]
    for options in calls:
        for metric, power in ((tf.rmse, 1), (tf.mae, 1), (tf.mse, 2), (tf.rsq, 0), (tf.ccc, 0), (tf.rsq_trad, 0)):
            result, plain = (metric(item, "y", "p", **options)[".estimate"].item() for item in (scaled, data))
            assert result == pytest.approx(plain * factor**power), metric.name


# Undefined values


CONSTANT = {
    "rsq": ("constant", "constant"), "rsq_trad": ("constant", "constant"), "rmse_relative": ("constant", "constant"),
    "mase": ("constant", "constant"), "iic": ("constant", "constant"), "gini_coef": ("constant", "constant"),
}  # fmt: skip


@pytest.mark.parametrize("middle", [0.1, 3.0, 1e9 + 0.1])
@pytest.mark.parametrize("name", CONSTANT)
def test_constant_truth_is_null_and_warned_once(name: str, middle: float) -> None:
    data = pl.DataFrame(
        {
            "truth": [1.0, 2.0, 4.0, *[middle] * 7],
            "estimate": [1.5, 2.5, 3.0, *(middle + step for step in (0.5, -0.5, 1.0, 0.0, 0.25, 2.0, 1.0))],
            "group": [*"aaabbbbbbb"],
        }
    )
    metric: tf.types.Metric = public(name)
    with pytest.warns(tf.errors.UndefinedWarning) as caught:
        result = metric(data, "truth", "estimate", group_by="group", explain=True)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"{name} has no value (constant) in (group='b'). ")
    assert result[".status"].to_list() == ["ok", "constant"]
    assert result[".estimate"].is_null().to_list() == [False, True]


@pytest.mark.parametrize("name", [*CONSTANT, "rpd"])
def test_single_row_group_is_constant(name: str) -> None:
    data = pl.DataFrame({"truth": [1.0, 2.0, 4.0, 5.1], "estimate": [1.5, 2.5, 3.0, 5.0], "group": [*"aaab"]})
    gap = tf.new_groupwise_metric(public(name), "gap", tf.difference())("group")
    with pytest.warns(tf.errors.UndefinedWarning) as caught:
        result = gap(data, "truth", "estimate", explain=True)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"{name} has no value (constant) in group 'b'. ")
    assert result[".estimate"].to_list() == [None]
    assert result[".groups_left_out"].to_list() == [["b"]]
    assert gap.by_group(data, "truth", "estimate")[".status"].to_list() == ["ok", "constant"]


def test_no_complete_rows_give_null() -> None:
    every = tf.get_metrics("numeric")
    data = pl.DataFrame({"truth": [None, 1.0], "estimate": [1.0, None]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = every(data, "truth", "estimate")
    assert [item.category for item in caught] == [tf.errors.UndefinedWarning]
    # the mean of the one is there without the other
    assert result.filter(pl.col(".estimate").is_not_null())[".metric"].to_list() == OF_ONE_COLUMN
