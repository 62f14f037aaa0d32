"""Labels, the event, and estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import as_polars

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable


def sens(
    truth: Any, estimate: Any, engine: Callable[[pl.DataFrame], Any] = pl.DataFrame, **options: Any
) -> tuple[str, float | None]:
    data = engine(pl.DataFrame({"t": truth, "e": estimate}))
    options = {"on_undefined": "ignore", **options}
    return as_polars(tf.sens(data, "t", "e", **options)).select(".estimator", ".estimate").row(0)


LEVELS = pl.Enum(["no", "yes"])


@pytest.mark.parametrize(
    ("truth", "estimate"),
    [
        ([True, True, False], [True, False, False]),
        ([1, 1, 0], [1, 0, 0]),
        ([1.0, 1.0, 0.0], [1, 0, 0]),
        ([True, True, False], [1, 0, 0]),
        ([1, 1, -1], [1, -1, -1]),
        ([1, 1, 1], [1, 0, 1]),
        (pl.Series([1, 1, 0], dtype=pl.UInt8), pl.Series([1, 0, 0], dtype=pl.Int64)),
    ],
    ids=["Boolean", "zero-one", "float-int", "Boolean-int", "minus-plus", "lone-truth", "unsigned"],
)
def test_event_of_numbers_and_booleans_is_inferred(
    truth: Any, estimate: Any, engine: Callable[[pl.DataFrame], Any]
) -> None:
    expected = 2 / 3 if list(truth) == [1, 1, 1] else 0.5
    assert sens(truth, estimate, engine) == ("binary", pytest.approx(expected))


def test_single_label_is_completed_to_a_pair() -> None:
    assert sens([0, 0], [0, 0]) == ("binary", None)
    assert sens([1, 1], [1, 1]) == ("binary", 1.0)
    assert sens([0, 0], [1, 1]) == ("binary", None)
    assert sens([True], [True]) == ("binary", 1.0)
    # of words only with the other one named
    assert sens(["no", "no"], ["no", "no"], pos_label="yes") == ("binary", None)
    with pytest.raises(tf.errors.LabelError, match="not among the labels"):
        sens(["no", "no"], ["no", "no"], pos_label=1)


def test_minus_one_alone_is_paired_with_one(engine: Callable[[pl.DataFrame], Any]) -> None:
    data = pl.DataFrame({"t": [-1, -1], "e": [-1, -1]})
    both = tf.metric_set(tf.sens, tf.spec, tf.accuracy)
    result = as_polars(both(engine(data), "t", "e", on_undefined="ignore"))
    assert result[".estimate"].to_list() == [None, 1.0, 1.0]
    # 1 alone is half of 0 and 1, unless the other half is asked for
    assert sens([1, 1], [1, 1], pos_label=0) == ("binary", None)
    assert sens([1, 1], [1, 1], pos_label=-1) == ("binary", None)


def test_pos_label_joins_disjoint_labels_of_truth_and_estimate(
    engine: Callable[[pl.DataFrame], Any],
) -> None:
    data = pl.DataFrame({"t": ["no"] * 3, "e": ["yes"] * 3})
    both = tf.metric_set(tf.sens, tf.spec, tf.selection_rate, tf.accuracy)
    for frame in (data, data.select(t="e", e="t")):
        rates = frame.select(
            sens=pl.when(frame["t"][0] == "yes").then(0.0), spec=pl.when(frame["t"][0] == "no").then(0.0),
            selected=(pl.col("e") == "yes").mean(), accuracy=(pl.col("e") == pl.col("t")).mean(),
        ).row(0)  # fmt: skip
        result = both(engine(frame), "t", "e", pos_label="yes", on_undefined="ignore")
        assert as_polars(result)[".estimate"].to_list() == list(rates)
    # neither without an event, nor with a third label
    for pos_label, estimate in ((None, "yes"), ("yes", "maybe")):
        with pytest.raises(tf.errors.LabelError, match="have no label in common"):
            sens(["no", "no"], ["yes", estimate], pos_label=pos_label)


def test_multiclass_fold_without_pos_label_is_null(engine: Callable[[pl.DataFrame], Any]) -> None:
    whole = pl.DataFrame({"t": list("abcab"), "e": list("abcbb"), "g": list("xyxyy"), "fold": [1, 1, 1, 2, 2]})
    fold = engine(whole.filter(fold=2))
    fair = tf.metric_set(tf.sens, tf.selection_rate, tf.demographic_parity("g"))
    with pytest.warns(tf.errors.UndefinedWarning, match=r"`pos_label='c'` does not occur among the labels 'a', 'b'"):
        result = as_polars(fair(fold, "t", "e", pos_label="c", explain=True))
    assert result[".estimate"].to_list() == [None, None, None]
    assert result[".status"].to_list()[:2] == ["unseen_event", "unseen_event"]
    groups = as_polars(fair.by_group(fold, "t", "e", pos_label="c"))
    assert set(groups[".status"]) == {"unseen_event"}
    # with all labels listed, it is a label that nobody has
    result = as_polars(fair(fold, "t", "e", pos_label="c", labels=list("abc"), on_undefined="ignore"))
    assert result[".estimate"].to_list() == [None, 0.0, 0.0]
    with pytest.raises(tf.errors.UndefinedError, match="unseen event"):
        fair(fold, "t", "e", pos_label="c", on_undefined="raise")


def test_absent_pos_label_gives_null_everywhere() -> None:
    data = pl.DataFrame(
        {"t": list("aab") * 20, "e": list("abb") * 20, "p": [0.2, 0.4, 0.7] * 20, "g": list("xyxy") * 15}
    )
    fair = tf.demographic_parity("g")
    scored = tf.metric_set(tf.roc_auc, tf.brier_class, tf.mean_score)
    quiet: dict[str, Any] = {"pos_label": "c", "on_undefined": "ignore"}
    assert scored(data, "t", probs="p", **quiet)[".estimate"].to_list() == [None] * 3
    for interval in ("auto", "bootstrap", "bayes"):
        sure = fair(data, "t", "e", interval=interval, times=20, **quiet)
        assert sure.select(".estimate", ".lower", ".upper").row(0) == (None, None, None)
    # a number may be missing, but nobody is judged by what may be a slip
    refusing: list[Callable[[], object]] = [
        lambda: tf.check(fair, below=0.1)(data, "t", "e", pos_label="c"),
        lambda: tf.report(data, "t", "e", by="g", pos_label="c"),
        lambda: tf.inference.disparity_test(fair)(data, "t", "e", pos_label="c"),
        lambda: tf.inference.subgroup_search(tf.selection_rate, ["g"])(data, "t", "e", pos_label="c"),
        lambda: tf.calibration.curve(data, "t", probs="p", pos_label="c"),
        lambda: tf.conf_mat(data, "t", probs="p", threshold=0.5, pos_label="c"),
    ]
    for call in refusing:
        with pytest.raises(tf.errors.LabelError, match="list all of them as `labels=`"):
            call()


@pytest.mark.parametrize("slip", ["YES", " yes", "Yes"])
def test_pos_label_in_another_case_raises(slip: str) -> None:
    for estimate in (["yes", "no"], ["yes", "yes"]):
        with pytest.raises(tf.errors.LabelError, match="Did you mean 'yes'"):
            sens(["yes", "yes"], estimate, pos_label=slip)


@pytest.mark.parametrize(("marker", "pos_label"), [(-100.0, None), (-1, 1)])
def test_negative_marker_in_truth_raises_with_ignore_index(
    marker: float, pos_label: int | None, engine: Callable[[pl.DataFrame], Any]
) -> None:
    data = pl.DataFrame({"t": [1, 0, marker, 1], "e": [1, 0, 1, 0], "p": [0.9, 0.2, 0.8, 0.4]}, strict=False)
    ways: list[dict[str, Any]] = [
        {"estimate": "e"}, {"probs": "p", "threshold": 0.5}, {"estimate": "e", "case_weights": "p"}
    ]  # fmt: skip
    given = engine(data)
    for way in ways:
        with pytest.raises(
            tf.errors.LabelError, match=rf"holds {marker} in 1 rows.*`ignore_index={marker}` in `.arrays`"
        ):
            tf.accuracy(given, "t", pos_label=pos_label, **way)
    with pytest.raises(tf.errors.LabelError, match="ignore_index"):
        tf.roc_auc(given, "t", probs="p", pos_label=pos_label)
    with pytest.raises(tf.errors.LabelError, match="ignore_index"):
        tf.accuracy.arrays(data["t"], data["e"], pos_label=pos_label)
    # all of the truth may be marked
    with pytest.raises(tf.errors.LabelError, match="ignore_index"):
        tf.accuracy(engine(data.with_columns(t=pl.lit(marker))), "t", "e", pos_label=pos_label)
    left_out = data.filter(pl.col("t") != marker)
    expected = tf.accuracy(left_out, "t", "e")[".estimate"].item()
    assert expected == 2 / 3
    assert tf.accuracy.arrays(data["t"], data["e"], ignore_index=marker)[".estimate"].item() == expected
    # listed, it is meant
    listed = tf.accuracy(given, "t", "e", labels=[marker, 0, 1], pos_label=pos_label)
    assert as_polars(listed)[".estimate"].item() == 0.5


def test_negative_numbers_may_be_labels() -> None:
    # -1 and 1, also where 1 alone is predicted; predicted too; several; without predictions
    assert sens([-1, 1], [1, 1]) == ("binary", 1.0)
    assert sens([-1, 0, 1], [-1, 0, 0])[0] == "macro"
    assert sens([-2, -1, 0, 1], [0, 0, 1, 1])[0] == "macro"
    shares = tf.prevalence.by_group(pl.DataFrame({"t": [-1, 0, 1]}), "t", estimator="macro_weighted")
    assert shares[".estimate"].item() == pytest.approx(1 / 3)


def test_enum_order_does_not_choose_the_event() -> None:
    truth, estimate = ["yes", "yes", "no"], ["yes", "no", "no"]
    for levels in (["no", "yes"], ["yes", "no"]):
        dtype = pl.Enum(levels)
        columns = pl.Series(truth, dtype=dtype), pl.Series(estimate, dtype=dtype)
        assert sens(*columns, pos_label="yes")[1] == 0.5
        with pytest.raises(tf.errors.LabelError, match="Which label"):
            sens(*columns)


def test_enum_truth_with_text_estimate() -> None:
    truth = pl.Series(["yes", "yes", "no"], dtype=LEVELS)
    assert sens(truth, ["yes", "no", "no"], pos_label="yes")[1] == 0.5
    with pytest.raises(tf.errors.LabelError, match="'Yes' is not among 'no', 'yes'"):
        sens(truth, ["Yes", "no", "no"], pos_label="yes")


def test_multiclass_estimators() -> None:
    truth, estimate = list("aabbc"), list("abbbc")
    assert sens(truth, estimate) == ("macro", pytest.approx((1 / 2 + 1 + 1) / 3))
    assert sens(truth, estimate, pos_label="a") == ("binary", 0.5)
    assert sens(truth, estimate, estimator="macro_weighted")[1] == pytest.approx((2 * 0.5 + 2 + 1) / 5)
    assert sens(truth, estimate, estimator="micro") == ("micro", 0.8)
    # averages over two labels need no event
    assert sens(["x", "y"], ["x", "x"], estimator="macro") == ("macro", 0.5)


def test_listed_labels_count_when_absent() -> None:
    truth, estimate = ["a", "b"], ["b", "b"]
    three = pl.DataFrame({"t": truth, "e": estimate})
    with pytest.warns(tf.errors.ConstantWarning, match="detection_prevalence cannot vary"):
        result = tf.detection_prevalence(three, "t", "e", labels=["a", "b", "c"])
    assert result[".estimate"][0] == pytest.approx(1 / 3)
    # spec of c is 1: nobody is c, and nobody was taken for one
    assert tf.spec(three, "t", "e", labels=["a", "b", "c"])[".estimate"][0] == pytest.approx((1 + 0 + 1) / 3)
    # labels that say they belong together need not overlap
    assert sens(["a"], ["b"], labels=["a", "b"], pos_label="a") == ("binary", 0.0)


def test_label_order_matters_only_to_weighted_kappa() -> None:
    data = pl.DataFrame({"t": ["low", "mid", "high", "high"], "e": ["mid", "mid", "high", "low"]})
    linear = tf.metric_tweak(tf.kap, "linear", weighting="linear")
    in_order = linear(data, "t", "e", labels=["low", "mid", "high"])[".estimate"][0]
    alphabetical = linear(data, "t", "e", labels=["high", "low", "mid"])[".estimate"][0]
    # steps of disagreement 1 + 2; margins 1 1 2 and 1 2 1 give 3.5 by chance
    assert in_order == pytest.approx(1 - 3 / 3.5)
    assert alphabetical != pytest.approx(in_order)
    # words have no order of their own
    with pytest.raises(tf.errors.LabelError, match="list them in order"):
        linear(data, "t", "e")
    # without weighting none is needed
    assert tf.kap(data, "t", "e")[".estimate"][0] is not None


def test_one_vs_rest_on_two_labels_is_binary() -> None:
    data = pl.DataFrame({"t": [1, 1, 0, 0], "e": [1, 0, 0, 1], "g": list("abab")})
    several = tf.metric_set(tf.equal_opportunity("g"), tf.accuracy.difference("g"))
    assert several(data, "t", "e", estimator="one_vs_rest").equals(several(data, "t", "e"))


def test_one_vs_rest_keeps_precision_beside_large_weights() -> None:
    # of the rows that are not a, 0.4 of 0.6 are not taken for a; the label a weighs 10^16 times as much
    data = pl.DataFrame({"t": list("aabbc"), "e": list("aabba"), "w": [1e15, 2e15, 0.1, 0.3, 0.2], "g": ["x"] * 5})
    by_label = tf.new_groupwise_metric(tf.spec, "x", tf.group_minimum())("g").by_group(
        data, "t", "e", case_weights="w", estimator="one_vs_rest"
    )
    expected = [tf.spec(data, "t", "e", case_weights="w", pos_label=label)[".estimate"].item() for label in "abc"]
    assert by_label[".estimate"].to_list() == pytest.approx(expected, rel=1e-12)
    assert expected[0] == pytest.approx(0.4 / 0.6)
    mean = tf.spec(data, "t", "e", case_weights="w", estimator="macro")[".estimate"].item()
    assert mean == pytest.approx(sum(expected) / 3, rel=1e-12)


def test_a_word_among_numbers_may_mean_missing() -> None:
    data = pl.DataFrame({"truth": ["0", "1", "NA"], "predicted": [0, 1, 1]})
    with pytest.raises(tf.errors.LabelError) as caught:
        tf.accuracy(data, "truth", "predicted")
    advice = "pl.col('truth').replace('NA', None).cast(pl.Int64)"
    assert f"'truth' is text because of 'NA'. If that means missing, read it as null: `{advice}`." in str(caught.value)
    known = data.with_columns(pl.col("truth").replace("NA", None).cast(pl.Int64))
    assert tf.accuracy(known, "truth", "predicted")[".estimate"].item() == 1


@pytest.mark.parametrize(
    ("strays", "steps"),
    [
        (["No", "yes", "yes "], ".str.strip_chars().str.to_lowercase()"),
        (["no", "yes", "Yes"], ".str.to_lowercase()"),
        (["no", "yes", "\tyes"], ".str.strip_chars()"),
    ],
)
def test_case_and_blanks_do_not_make_labels(strays: list[str], steps: str) -> None:
    data = pl.DataFrame({"t": ["no", "yes", "yes"], "e": strays})
    for event in ("yes", None):
        with pytest.raises(tf.errors.LabelError, match="differ only by case or blanks"):
            tf.sens(data, "t", "e", pos_label=event)
    with pytest.raises(tf.errors.LabelError, match="'e' holds") as caught:
        tf.accuracy(data, "t", "e")
    # the calls that it shows work
    assert f"`data.with_columns(pl.col('t', 'e'){steps})`" in str(caught.value)
    clean = eval(f"data.with_columns(pl.col('t', 'e'){steps})")  # noqa: S307 - what the message says
    assert tf.accuracy(clean, "t", "e", pos_label="yes")[".estimate"].item() == 1
    kept = sorted({"no", "yes", *strays})
    assert f"`labels={kept!r}`" in str(caught.value)
    assert tf.accuracy(data, "t", "e", labels=kept)[".estimator"].item() == "multiclass"
    with pytest.raises(tf.errors.LabelError, match=r"also holds .* make it one: .*, or list every label"):
        tf.accuracy(data, "t", "e", labels=["no", "yes"])


def test_blanks_inside_of_labels() -> None:
    data = pl.DataFrame(
        {"t": ["not paid", "paid"], "e": ["not\u00a0 paid", "paid"]}, schema_overrides={"e": pl.Categorical}
    )
    with pytest.raises(tf.errors.LabelError) as caught:
        tf.accuracy(data, "t", "e", pos_label="paid")
    advice = """pl.col('t', 'e').cast(pl.String).str.replace_all(r"\\s+", " ")"""
    assert advice in str(caught.value)
    clean = data.with_columns(eval(advice))  # noqa: S307 - what the message says
    assert tf.accuracy(clean, "t", "e", pos_label="paid")[".estimate"].item() == 1
    with pytest.raises(tf.errors.LabelError, match=r"differ only by case or blanks.*write it in one way"):
        tf.accuracy.arrays(data["t"], data["e"], pos_label="paid")


def test_levels_that_declare_both_are_different_labels() -> None:
    dtype = pl.Enum(["a", "A"])
    data = pl.DataFrame({"t": ["a", "A", "A"], "e": ["a", "A", "a"]}, schema={"t": dtype, "e": dtype})
    assert tf.sens(data, "t", "e", pos_label="A")[".estimate"].item() == 0.5
