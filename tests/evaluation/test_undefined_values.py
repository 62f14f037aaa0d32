"""Undefined and infinite values, averages that cannot vary, and the columns of results whatever the data are."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable

    from polars import DataFrame

FAIR = tf.metric_set(
    tf.accuracy, tf.sens, tf.demographic_parity("sex"), tf.equalized_odds("sex"), tf.equal_opportunity("sex", "race")
)


def test_one_warning_names_metric_and_groups(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    data = engine(loans)
    with pytest.warns(tf.errors.UndefinedWarning) as caught:
        FAIR(data, "truth", "estimate")
    # narwhals warns of Dask by itself
    caught = [item for item in caught if item.category is tf.errors.UndefinedWarning]
    assert len(caught) == 1
    assert str(caught[0].message) == (
        "sens has no value (zero denominator) in sex:race 'f:b', sex:race 'f:rare', sex:race 'm:rare'. "
        '(on_undefined="ignore" silences this.)'
    )
    assert caught[0].filename == __file__


def test_warning_names_at_most_ten_groups() -> None:
    data = pl.DataFrame({"t": [0] * 12 + [1, 1], "e": [0, 1] * 7, "g": range(14)})
    with pytest.warns(tf.errors.UndefinedWarning, match="g '9' and 2 more"):
        tf.equal_opportunity("g")(data, "t", "e")


def test_on_undefined_options(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    gap = tf.equal_opportunity("race")
    data = engine(loans)
    ignored = as_polars(gap(data, "truth", "estimate", on_undefined="ignore", explain=True))
    assert ignored[".groups_left_out"].to_list() == [["rare"]]
    assert ignored[".estimate"].item() == pytest.approx(1 / 4)  # 3 of 4 positives of a are found, the only one of b is
    nulled = as_polars(gap(data, "truth", "estimate", on_undefined="null", explain=True))
    assert nulled.select(".estimate", ".status").row(0) == (None, "undefined_group")


COMPLETE = pl.DataFrame({"t": [1, 1, 0, 0] * 4, "e": [1, 0, 1, 0] * 4, "g": [*"aabb"] * 4, "f": [1, 2] * 8})
"""Every group has every rate."""
COLUMNS_OF = {
    "nothing defined": COMPLETE.with_columns(t=pl.lit(1), e=pl.lit(1)),
    "one group lacks a rate": COMPLETE.with_columns(t=pl.when(pl.col("g") == "a").then(1).otherwise("t")),
    "a rare group": pl.concat([COMPLETE, pl.DataFrame({"t": [0], "e": [0], "g": ["c"], "f": [1]})]),
    "missing": COMPLETE.with_columns(t=pl.when(pl.col("g") == "a").then(None).otherwise("t")),
    "no rows": COMPLETE.clear(),
}


@pytest.mark.parametrize("which", COLUMNS_OF)
@pytest.mark.parametrize(
    "options", [{}, {"explain": True}, {"interval": "auto", "explain": True, "times": 20}], ids=str
)
def test_result_columns_depend_on_the_call_and_not_on_the_data(which: str, options: dict[str, Any]) -> None:
    metrics = tf.metric_set(tf.f_meas, tf.equalized_odds("g"), tf.demographic_parity("g"), tf.f_meas.group_minimum("g"))
    given: Any = {"pos_label": 1, "group_by": "f", "on_undefined": "ignore", **options}
    for call in (metrics, metrics.by_group):
        by_group_options = {name: value for name, value in given.items() if call is metrics or name != "explain"}
        expected = call(COMPLETE, "t", "e", **by_group_options)
        assert call(COLUMNS_OF[which], "t", "e", **by_group_options).schema == expected.schema


def test_by_group_always_has_a_level_column() -> None:
    three = pl.DataFrame({"t": [0, 1, 2, 0], "e": [0, 1, 1, 2], "g": [*"aabb"]})
    two = three.filter(pl.col("t") < 2, pl.col("e") < 2)
    tables = [tf.equal_opportunity("g").by_group(data, "t", "e", on_undefined="ignore") for data in (three, two)]
    assert pl.concat(tables)[".level"].null_count() == sum(map(len, tables))


def test_infinite_value_is_not_undefined() -> None:
    data = pl.DataFrame({"t": [1, 1, 0, 0], "e": [1, 0, 0, 0]})
    result = tf.positive_likelihood_ratio(data, "t", "e", explain=True)
    assert result.select(".estimate", ".status").row(0) == (float("inf"), "infinite")
    never = tf.positive_likelihood_ratio(data.with_columns(e=pl.lit(0)), "t", "e", on_undefined="ignore")
    assert never[".estimate"].item() is None


THREE = pl.DataFrame({"t": list("abcabcab"), "e": list("abbaacca"), "g": list("xyyxxyxy")})


def _cannot_vary(call: Callable[[], pl.DataFrame]) -> list[str]:
    """The metrics that a warning names; one warning for each call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [
        str(item.message).partition(" cannot vary")[0] for item in caught if item.category is tf.errors.ConstantWarning
    ]


def test_constant_averages_warn_once() -> None:
    both = tf.metric_set(tf.selection_rate, tf.sens, tf.prevalence, tf.demographic_parity("g"))
    assert _cannot_vary(lambda: both(THREE, "t", "e")) == ["selection_rate, prevalence"]
    alone = tf.metric_set(tf.selection_rate, tf.sens, tf.prevalence)
    assert _cannot_vary(lambda: alone(THREE, "t", "e", group_by="g")) == ["selection_rate, prevalence"]
    parity = tf.demographic_parity("g")
    averages: list[Any] = ["macro", "micro"]
    for estimator in averages:
        assert _cannot_vary(lambda asked=estimator: parity(THREE, "t", "e", estimator=asked)) == ["demographic_parity"]
        assert parity(THREE, "t", "e", estimator=estimator, on_undefined="ignore")[".estimate"].item() == 0
    # neither by default, nor of one label, nor where averages vary
    calls: list[dict[str, Any]] = [
        {}, {"estimator": "one_vs_rest"}, {"pos_label": "a"}, {"estimator": "macro_weighted"},
        {"estimator": "macro", "on_undefined": "ignore"},
    ]  # fmt: skip
    assert all(not _cannot_vary(lambda asked=asked: parity(THREE, "t", "e", **asked)) for asked in calls)
    odds = tf.treatment_equality("g")
    assert _cannot_vary(lambda: odds(THREE, "t", "e", estimator="micro")) == ["treatment_equality"]
    assert not _cannot_vary(lambda: odds(THREE, "t", "e", estimator="macro"))


@pytest.mark.parametrize("kind", ["class", "prob"])
@pytest.mark.filterwarnings("ignore::tidyfair.errors.UndefinedWarning")
def test_constant_warning_names_exactly_the_constant_averages(kind: Any) -> None:
    random = np.random.default_rng(1)
    frames: list[pl.DataFrame] = []
    for rows in (37, 64, 101):
        labels = pl.Series(["a", "b", "c", *random.choice(list("abc"), rows, p=[0.6, 0.3, 0.1])])
        guesses = pl.Series([*random.choice(list("abc"), rows, p=[0.2, 0.3, 0.5]), "a", "b", "c"])
        # some without a prediction, which coverage is about
        guesses[0] = None
        scores = random.dirichlet([1, 2, 3], len(labels))
        frames.append(
            pl.DataFrame({"t": labels, "e": guesses, **{f"p{index}": scores[:, index] for index in range(3)}})
        )
    probs: Any = {"probs": ["p0", "p1", "p2"], "labels": list("abc")} if kind == "prob" else {}
    for metric in tf.get_metrics(kind):
        assert isinstance(metric, tf.types.Metric)
        if metric.definition.over_levels:
            continue
        averages: list[Any] = ["macro", "macro_weighted", *([] if metric.definition.is_of_rows else ["micro"])]
        for estimator in averages:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", tf.errors.ConstantWarning)
                values = [metric(item, "t", "e", estimator=estimator, **probs)[".estimate"].item() for item in frames]
            same = None not in values and max(values) - min(values) < 1e-12
            assert len(caught) == (3 if same else 0), (metric.name, estimator, values)


def test_between_group_inequality_of_multiclass_is_one_vs_rest() -> None:
    # mean benefits of all labels add up to their number, in every group
    index = tf.inequality.between_group_theil_index("g")
    result = index(THREE, "t", "e", explain=True).row(0, named=True)
    values = {label: index(THREE, "t", "e", pos_label=label)[".estimate"].item() for label in "abc"}
    assert (result[".estimator"], result[".estimate"]) == ("one_vs_rest", max(values.values()))
    assert values[result[".level"]] == result[".estimate"] > 0
