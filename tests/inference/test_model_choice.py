"""Several models compared with one, and what changes show beside a margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

import tidyfair as tf
from tidyfair.datasets import lending

LOANS = lending(2_000).with_columns(pl.col("repaid") == "yes")
IN_USE = (pl.col("score") >= 0.5).alias("in use")
MODELS = [(pl.col("score") >= cut / 100).alias(f"at {cut}") for cut in (30, 45, 70)]
METRICS_IN_ORDER = ["accuracy", "selection_rate", "demographic_parity"]
METRICS = tf.metric_set(tf.accuracy, tf.selection_rate, tf.demographic_parity("sex"))


def test_several_models_are_the_single_comparisons_at_the_level_that_holds_for_all() -> None:
    together = tf.compare_models(METRICS)(LOANS, "repaid", one=IN_USE, others=MODELS)
    assert together[".metric"].to_list() == [name for name in METRICS_IN_ORDER for _ in MODELS]
    for number, model in enumerate(MODELS):
        alone = tf.compare_models(METRICS)(LOANS, "repaid", one=IN_USE, other=model, conf_level=1 - 0.05 / 3)
        of_model = together.filter(pl.col(".model_other") == f"at {(30, 45, 70)[number]}")
        assert of_model.select(alone.drop(".conf_level").columns).equals(alone.drop(".conf_level"))
    for metric in ("accuracy", "selection_rate"):
        rows = together.filter(pl.col(".metric") == metric)
        expected = np.asarray(multipletests(rows[".p_value"].to_numpy(), method="holm")[1])
        assert rows[".p_adjusted"].to_list() == pytest.approx(expected.tolist(), rel=1e-12)
    assert together.filter(pl.col(".metric") == "demographic_parity")[".p_adjusted"].null_count() == 3


def test_models_have_the_names_of_a_mapping_and_come_in_its_order() -> None:
    others = {"new": MODELS[2], "old": MODELS[0]}
    result = tf.compare_models(tf.accuracy)(LOANS, "repaid", one=IN_USE, others=others)
    assert result[".model_other"].to_list() == ["new", "old"]
    assert result[".model_one"].to_list() == ["in use", "in use"]


def verdict_of(lower: float, upper: float, margin: float, better: str) -> str:
    """What limits show, by the definitions."""
    if -margin < lower and upper < margin:
        return "equivalent"
    if better == "neither":
        return "different" if lower > 0 or upper < 0 else "not shown"
    least, most = (lower, upper) if better == "maximize" else (-upper, -lower)
    if least > 0:
        return "better"
    if most < 0:
        return "worse"
    return "not worse" if margin > 0 and least > -margin else "not shown"


@pytest.mark.parametrize("margin", [None, 0.0, 0.01, 0.05])
def test_verdicts_follow_from_limits_and_margin(margin: float | None) -> None:
    result = tf.compare_models(METRICS, margin=margin)(LOANS, "repaid", one=IN_USE, others=MODELS, group_by="age_band")
    better = {"accuracy": "maximize", "selection_rate": "neither", "demographic_parity": "minimize"}
    for row in result.drop_nulls(".lower").iter_rows(named=True):
        assert row[".margin"] == (margin or 0)
        assert row[".verdict"] == verdict_of(row[".lower"], row[".upper"], margin or 0, better[row[".metric"]])
    assert result.filter(pl.col(".lower").is_null())[".verdict"].null_count() == result[".lower"].null_count()


def test_one_model_has_a_verdict_where_there_is_a_margin() -> None:
    call: dict[str, Any] = {"one": IN_USE, "other": MODELS[1]}
    plain = tf.compare_models(tf.accuracy, tf.mcc)(LOANS, "repaid", **call)
    judged = tf.compare_models(tf.accuracy, tf.mcc, margin={"accuracy": 0.5})(LOANS, "repaid", **call)
    assert ".verdict" not in plain.columns
    assert judged.select(plain.columns).equals(plain)
    assert judged[".margin"].to_list() == [0.5, 0.0]
    assert judged[".verdict"][0] == "equivalent"


def test_gates_judge_the_change_to_each_of_several_models() -> None:
    gate = tf.check(tf.compare_models(tf.accuracy), above=-0.02)
    together = gate(LOANS, "repaid", one=IN_USE, others=MODELS)
    assert together[".model_other"].to_list() == ["at 30", "at 45", "at 70"]
    for number, model in enumerate(MODELS):
        alone = gate(LOANS, "repaid", one=IN_USE, other=model)
        # passes are judged one by one, and failures allow for their number
        columns = [name for name in alone.columns if name != ".verdict"]
        assert together[number : number + 1].select(columns).equals(alone.select(columns))
        assert (together[".verdict"][number] == "pass") == (alone[".verdict"][0] == "pass")


@pytest.mark.simulation
def test_equal_models_are_rarely_called_better_or_worse() -> None:
    random, wrong, runs = np.random.default_rng(5), 0, 120
    for _ in range(runs):
        truth = random.random(400) < 0.5
        models = {f"m{number}": np.where(random.random(400) < 0.8, truth, ~truth) for number in range(5)}
        data = pl.DataFrame({"truth": truth, **models})
        result = tf.compare_models(tf.accuracy)(data, "truth", one="m0", others=["m1", "m2", "m3", "m4"])
        wrong += result[".verdict"].is_in(["better", "worse"]).any()
    # at most 5 % of samples: 6 of 120, and 12 with a probability of 1 %
    assert wrong <= 12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.compare_models(tf.accuracy, margin={"acc": 0.1}), "no metric is called 'acc'"),
        (lambda: tf.compare_models(tf.accuracy, margin=-1), "`margin` is a finite number of 0 or more"),
        (lambda: tf.compare_models(tf.accuracy)(LOANS, "repaid", one=IN_USE), "with `other=`, one model, or with"),
        (lambda: compared(other=MODELS[0], others=MODELS), "with `other=`, one model, or with `others=`"),
        (lambda: compared(others=[]), "`others` names no model"),
        (lambda: compared(others="score"), "`others` is a list of columns"),
        (lambda: compared(others=[MODELS[0], MODELS[0]]), "'at 30' is given more than once"),
    ],
)
def test_models_and_margins_that_make_no_sense_are_refused(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.TidyfairError, match=message):
        call()


def compared(**models: Any) -> pl.DataFrame:
    return tf.compare_models(tf.accuracy)(LOANS, "repaid", one=IN_USE, **models)


@pytest.mark.parametrize(("name", "values"), [("order", ["q", "r"]), ("sign", ["+", "-"]), ("sign", [1, -1])])
def test_verdicts_keep_the_names_of_outer_groups(name: str, values: list[Any]) -> None:
    data = LOANS.with_columns(pl.Series(name, values * (len(LOANS) // 2)))
    call: dict[str, Any] = {"one": IN_USE, "other": MODELS[0]}
    results = tf.compare_models(METRICS, margin=0.05)(data, "repaid", group_by=name, **call)
    assert sorted(results[name].unique()) == sorted(values)
    first = results.filter(pl.col(name) == values[0]).drop(name)
    assert first.equals(tf.compare_models(METRICS, margin=0.05)(data[::2], "repaid", **call).select(first.columns))


def test_names_of_models_are_text() -> None:
    others: Any = {1: MODELS[0], "1": MODELS[1]}
    with pytest.raises(tf.errors.ArgumentError, match="the name of a model is text, not 1"):
        tf.compare_models(tf.accuracy)(LOANS, "repaid", one=IN_USE, others=others)


def test_a_change_without_a_value_has_no_p_value() -> None:
    data = LOANS.with_columns(pl.when(pl.col("score") > 0.3).then(MODELS[0]).alias("partly"))
    row = tf.compare_models(tf.accuracy)(data, "repaid", one=IN_USE, other="partly", na_rm=False).row(0, named=True)
    assert (row[".change"], row[".lower"], row[".p_value"]) == (None, None, None)


def test_undefined_values_are_an_error_where_that_is_asked_for() -> None:
    call: dict[str, Any] = {"one": IN_USE, "other": MODELS[0]}
    compare = tf.compare_models(tf.sens)
    assert compare(LOANS, "repaid", on_undefined="raise", **call)[".change"].null_count() == 0
    nobody_repaid = LOANS.with_columns(repaid=False)
    with pytest.raises(tf.errors.UndefinedError, match="sens has no value"):
        compare(nobody_repaid, "repaid", on_undefined="raise", **call)
    assert compare(nobody_repaid, "repaid", on_undefined="ignore", **call)[".change"].to_list() == [None]


def test_gates_of_models_refuse_what_they_would_ignore() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"leave `margin=` of compare_models\(\) out"):
        tf.check(tf.compare_models(tf.accuracy, margin=0.1), above=-0.02)
    gate: Any = tf.check(tf.compare_models(tf.accuracy), above=-0.02)
    with pytest.raises(tf.errors.ArgumentError, match="does not accept `conf_level`; give it to `check`"):
        gate(LOANS, "repaid", one=IN_USE, other=MODELS[0], conf_level=0.9)


def test_predictions_are_named_by_the_arguments_that_were_given() -> None:
    models = tf.compare_models(tf.accuracy)
    with pytest.raises(tf.errors.ColumnError, match="`one`: there is no column 'zzz'"):
        models(LOANS, "repaid", one="zzz", other=MODELS[0])
    several: Any = {"both": ["score", "sex"]}
    with pytest.raises(tf.errors.ColumnError, match="`other` takes a column name or a polars expression, not a list"):
        models(LOANS, "repaid", one=IN_USE, others=several)
    iterator: Any = iter(MODELS)
    assert models(LOANS, "repaid", one=IN_USE, others=iterator)[".model_other"].to_list() == ["at 30", "at 45", "at 70"]


def test_unknown_groups_are_noticed_once_for_all_models() -> None:
    people = LOANS.with_columns(sex=pl.when(pl.int_range(pl.len()) > 50).then("sex"))
    with pytest.warns(tf.errors.UnknownGroupWarning) as caught:
        tf.compare_models(tf.demographic_parity("sex"))(people, one=IN_USE, others=MODELS)
    assert len(caught) == 1
