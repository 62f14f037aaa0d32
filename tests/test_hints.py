"""Hints: keywords of other libraries, and messages that show a newcomer what to write."""

from __future__ import annotations

import inspect
import pickle
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidyfair as tf
from tidyfair.specs.option_table import OF_CALLS, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

PEOPLE = pl.DataFrame({
    "y": [1, 0, 1, 0, 1, 0], "pred": [1, 0, 0, 0, 1, 1], "p": [0.9, 0.1, 0.4, 0.3, 0.8, 0.6], "sex": list("fffmmm"),
})  # fmt: skip
LOOSE: Any = tf
PARITY: Any = tf.demographic_parity("sex")
METRICS: dict[str, Any] = {
    "a metric": tf.accuracy, "a groupwise metric": PARITY, "a set": tf.metric_set(tf.accuracy, PARITY),
}  # fmt: skip
SAME_IN_EVERY_CALL = {
    "y_true": "`truth=`", "y_pred": "`estimate=`", "y_prob": "`probs=`", "y_score": "`probs=`",
    "alpha": "`conf_level=`, which is 1 - alpha", "n_boot": "`times=`", "n_boots": "`times=`",
    "sample_weight": "`case_weights=`", "average": '`estimator=`, such as "macro"', "random_state": "`seed=`",
}  # fmt: skip


def refusal(call: Callable[[], object]) -> str:
    """The message of an argument that is refused."""
    with pytest.raises(tf.errors.ArgumentError) as caught:
        call()
    return str(caught.value)


# Keywords of other libraries


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize(("keyword", "ours"), SAME_IN_EVERY_CALL.items())
def test_call_names_its_keyword_for_that_of_another_library(metric: Any, keyword: str, ours: str) -> None:
    expected = f"Unknown argument {keyword!r}. Here `{keyword}` is {ours}."
    assert refusal(lambda: metric(PEOPLE, **{keyword: "y"})) == expected
    assert refusal(lambda: metric.by_group(PEOPLE, **{keyword: "y"})) == expected


@pytest.mark.parametrize("keyword", ["sensitive_features", "by", "groups"])
def test_call_shows_where_the_compared_columns_are_given(keyword: str) -> None:
    for metric in METRICS.values():
        message = refusal(lambda metric=metric: metric(PEOPLE, "y", "pred", **{keyword: "sex"}))
        assert message == (
            f"Unknown argument {keyword!r}. Give the columns whose groups are compared first: "
            '`demographic_parity("sex")(data, …)` or `accuracy.difference("sex")(data, …)`. '
            "`group_by=` gives each group a separate row."
        )


def test_arrays_name_their_keywords_before_they_ask_for_arrays() -> None:
    truth, estimate = [1, 0], [1, 1]
    arrays: Any = tf.accuracy.arrays
    assert refusal(lambda: arrays(y_true=truth, y_pred=estimate)).endswith("Here `y_true` is `truth=`.")
    for method in (PARITY.arrays, PARITY.arrays_by_group):
        message = refusal(lambda method=method: method(truth, estimate, sensitive_features=["f", "m"]))
        assert message.endswith('Here `sensitive_features` is `by=`, such as `by={"sex": …}`.')
    # an option of a metric is not taken for a confidence level
    assert "metric_tweak" in refusal(lambda: tf.inequality.generalized_entropy_index.arrays(truth, estimate, alpha=1))


def test_factories_name_what_belongs_to_the_call_and_what_to_them() -> None:
    parity, odds = LOOSE.demographic_parity, LOOSE.equalized_odds
    assert refusal(lambda: parity(y_true="y", y_pred="pred", sensitive_features="sex")) == (
        'demographic_parity is a factory: write `demographic_parity("column")(data, …)` with the sensitive feature '
        "first. Here `y_true` is `truth=`."
    )
    for keyword in ("by", "sensitive_features"):
        assert 'first: `demographic_parity("sex")(data, …)`' in refusal(
            lambda keyword=keyword: odds(**{keyword: "sex"})
        )
    assert refusal(lambda: odds("sex", reference_group="f")).endswith("Here `reference_group` is `to=`.")
    assert 'demographic_parity(privileged(sex="male"))' in refusal(
        lambda: parity("sex", privileged_groups=[{"sex": 1}])
    )
    # an `alpha` of other formulas is no confidence level
    assert "conf_level" not in refusal(lambda: parity("sex", alpha=1))


@pytest.mark.parametrize("method", ["difference", "ratio", "group_minimum", "group_maximum"])
def test_comparisons_refuse_unknown_keywords_as_calls_do(method: str) -> None:
    for metric in (tf.accuracy, tf.metric_set(tf.accuracy)):
        compare: Any = getattr(metric, method)
        message = refusal(lambda compare=compare: compare(by="sex"))
        assert message.startswith(
            f"Unknown argument of {method}() 'by'. Give the columns whose groups are compared first"
        )
        assert refusal(lambda compare=compare: compare("sex", y_true="y")).endswith(
            "Here `y_true` is `truth=`, and is given with the data."
        )


@pytest.mark.parametrize(("option", "value"), [("min_n", 30), ("to", "f"), ("signed", True), ("aggregate", tf.ratio())])
def test_call_sends_options_of_a_comparison_to_the_feature(option: str, value: object) -> None:
    expected = (
        f"{option!r} is an option of a comparison; give it with the feature, `demographic_parity('sex', {option}=…)`."
    )
    assert refusal(lambda: PARITY(PEOPLE, estimate="pred", **{option: value})) == expected
    gap: Any = tf.accuracy.difference("sex")
    assert "`accuracy.difference('sex', min_n=…)`" in refusal(lambda: gap(PEOPLE, "y", "pred", min_n=30))


def test_options_of_a_metric_that_compares_itself_are_fixed_first() -> None:
    gap: Any = tf.f_meas.difference("sex")
    assert refusal(lambda: gap(PEOPLE, "y", "pred", beta=2)) == (
        "'beta' is an option of a metric; set it with `metric_tweak(f_meas, \"a name\", beta=…)`."
    )


TESTS: dict[str, Callable[..., Any]] = {
    "check": lambda **options: LOOSE.check(PARITY, below=0.1, **options),
    "four_fifths": lambda **options: LOOSE.four_fifths("sex", **options),
    "pairwise": lambda **options: LOOSE.inference.pairwise(PARITY, **options),
    "compare_models": lambda **options: LOOSE.compare_models(tf.accuracy, **options),
    "disparity_test": lambda **options: LOOSE.inference.disparity_test(PARITY, **options),
    "stratified": lambda **options: LOOSE.inference.stratified(PARITY, within="race", **options),
    "worst_groups": lambda **options: LOOSE.inference.worst_groups(PARITY, **options),
    "probability": lambda **options: LOOSE.inference.probability(PARITY, below=0.1, **options),
    "compare_periods": lambda **options: LOOSE.inference.compare_periods(PARITY, period="month", **options),
    "decompose": lambda **options: LOOSE.inference.decompose(tf.accuracy, between="sex", by="race", **options),
    "subgroup_search": lambda **options: LOOSE.inference.subgroup_search(tf.selection_rate, ["sex"], **options),
    "linear_subgroup": lambda **options: LOOSE.inference.linear_subgroup(tf.selection_rate, ["sex"], **options),
}


@pytest.mark.parametrize("function", TESTS)
def test_makers_of_tests_and_gates_name_the_keyword_to_write(function: str) -> None:
    assert refusal(lambda: TESTS[function](y_true="y")) == (
        f"Unknown argument of {function}() 'y_true'. Here `y_true` is `truth=`, and is given with the data."
    )
    assert refusal(lambda: TESTS[function](nonsense=1)).startswith(
        f"Unknown argument of {function}() 'nonsense'. Known:"
    )


@pytest.mark.parametrize(
    ("function", "keyword", "ours"),
    [
        ("check", "alpha", "`conf_level=`, which is 1 - alpha"), ("check", "confidence", "`conf_level=`"),
        ("check", "tolerance", "`below=`"),
        ("pairwise", "alpha", "`conf_level=`, which is 1 - alpha, and is given with the data"),
        ("disparity_test", "n_boot", "`times=`, and is given with the data"),
        ("disparity_test", "n_permutations", "`times=`, and is given with the data"),
        ("disparity_test", "random_state", "`seed=`, and is given with the data"),
        ("disparity_test", "strata", "`within=`"),
        ("pairwise", "correction", "`adjust=`"),
    ],
)  # fmt: skip
def test_tests_and_gates_name_their_own_keywords(function: str, keyword: str, ours: str) -> None:
    assert refusal(lambda: TESTS[function](**{keyword: 1})).endswith(f"Here `{keyword}` is {ours}.")


def test_calls_of_tests_gates_curves_and_tables_name_their_keywords() -> None:
    calls: list[Any] = [
        lambda **options: tf.check(PARITY, below=0.1)(PEOPLE, **options),
        lambda **options: tf.inference.disparity_test(PARITY)(PEOPLE, **options),
        lambda **options: tf.inference.pairwise(PARITY)(PEOPLE, **options),
        lambda **options: LOOSE.compare_models(tf.accuracy)(PEOPLE, "y", one="pred", other="pred", **options),
        lambda **options: LOOSE.assert_fair(PARITY, PEOPLE, below=0.1, **options),
        lambda **options: LOOSE.inference.subgroup_search(tf.selection_rate, ["sex"])(PEOPLE, **options),
        lambda **options: LOOSE.conf_mat(PEOPLE, **options),
        lambda **options: LOOSE.roc_curve(PEOPLE, "y", **options),
        lambda **options: LOOSE.default_metrics(PEOPLE, "y", **options),
        lambda **options: LOOSE.report(PEOPLE, **options),
        lambda **options: LOOSE.scorers.make_scorer(tf.accuracy, **options),
    ]
    for call in calls:
        assert refusal(lambda call=call: call(y_score="p")).startswith("Unknown argument")
        assert "Here `y_score` is `probs=`" in refusal(lambda call=call: call(y_score="p"))
    assert "`conf_level=`, which is 1 - alpha" in refusal(
        lambda: LOOSE.assert_fair(PARITY, PEOPLE, estimate="pred", below=0.1, alpha=0.05)
    )


def test_hints_name_keywords_that_exist() -> None:
    theirs = [keyword for name in OF_CALLS for keyword in OPTIONS[name].names_elsewhere.split()]
    assert len(theirs) == len(set(theirs))
    assert not OF_CALLS & set(theirs)


# Arrays


def test_arrays_without_a_compared_feature_show_how_to_give_it() -> None:
    truth, estimate, sexes = [1, 0], [1, 1], ["f", "m"]
    both, set_ = tf.equalized_odds("sex", "race"), tf.metric_set(tf.accuracy, PARITY)
    by_age = tf.demographic_parity((pl.col("age") >= 40).alias("over 40"))
    seen = tf.Accumulator(PARITY)
    missing: list[tuple[Callable[[], object], str]] = [
        (lambda: PARITY.arrays(estimate=estimate), "'sex' … `by={\"sex\": …}`."),
        (lambda: both.arrays(truth, estimate, by={"sex": sexes}), '\'race\' … `by={"sex": …, "race": …}`.'),
        (
            lambda: set_.arrays_by_group(truth, estimate, by={"Sex": sexes}),
            "'sex' … `by={\"sex\": …}`. Did you mean 'Sex'?",
        ),
        (lambda: by_age.arrays(estimate=estimate), "'age' … `by={\"age\": …}`."),
        (lambda: seen.update(truth, estimate), "'sex' … `by={\"sex\": …}`."),
    ]
    for call, ending in missing:
        with pytest.raises(tf.errors.ColumnError) as caught:
            call()
        message = str(caught.value).replace("is missing; add", "…")
        assert message == f"`by`: the array of {ending}"
    assert by_age.arrays(estimate=estimate, by={"age": [30, 50]})[".estimate"].to_list() == [0.0]


# Metrics, frames and names in each other's place


def test_tests_show_the_comparison_of_a_metric() -> None:
    for name in ("disparity_test", "pairwise", "worst_groups"):
        make: Any = getattr(tf.inference, name)
        assert refusal(lambda make=make: make(tf.accuracy)) == (
            f'{name}() takes comparisons of groups: write `accuracy.difference("column")`.'
        )


ENGINES: dict[str, Callable[[], object]] = {
    "polars.DataFrame": lambda: PEOPLE,
    "polars.LazyFrame": PEOPLE.lazy,
    "pandas.DataFrame": PEOPLE.to_pandas,
    "pyarrow.Table": PEOPLE.to_arrow,
    "polars.Series": lambda: PEOPLE["y"],
    "numpy.ndarray": PEOPLE["y"].to_numpy,
}


@pytest.mark.parametrize("kind", ENGINES)
def test_no_error_prints_a_frame_that_stands_for_a_metric_or_a_number(kind: str) -> None:
    frame = ENGINES[kind]()
    calls: list[Callable[[], object]] = [
        lambda: LOOSE.metric_set(tf.accuracy, frame),
        lambda: LOOSE.compare_models(frame),
        lambda: LOOSE.inference.pairwise(frame),
        lambda: LOOSE.inference.disparity_test(frame),
        lambda: LOOSE.inference.subgroup_search(frame, ["sex"]),
        lambda: LOOSE.threshold_curve(frame),
        lambda: LOOSE.new_groupwise_metric(frame, "gap", tf.difference()),
        lambda: LOOSE.metric_tweak(frame, "other"),
        lambda: LOOSE.new_class_metric(frame, "other"),
        lambda: LOOSE.Accumulator(frame),
        lambda: LOOSE.scorers.make_scorer(frame),
        lambda: LOOSE.check(PARITY, below=frame),
        lambda: LOOSE.accuracy(PEOPLE, "y", "pred", interval=frame),
        lambda: LOOSE.accuracy(PEOPLE, "y", "pred", conf_level=frame),
        lambda: LOOSE.demographic_parity("sex", aggregate=frame),
        lambda: LOOSE.report(PEOPLE, "y", "pred", by="sex", gate=frame),
    ]
    for call in calls:
        with pytest.raises(tf.errors.TidyfairError) as caught:
            call()
        assert f"a {kind}" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_gates_and_tests_say_that_data_come_after_metrics() -> None:
    with pytest.raises(
        tf.errors.ColumnError, match=r"Give metrics first and then data, as in `check\(.*\)\(data, …\)`"
    ):
        tf.check(PEOPLE, below=0.1)
    assert '`pairwise(accuracy.difference("column"))(data, …)`' in refusal(lambda: LOOSE.inference.pairwise(PEOPLE))
    assert '`assert_fair(demographic_parity("column"), data, …, below=0.1)`' in refusal(
        lambda: LOOSE.assert_fair(PEOPLE, PARITY, below=0.1)
    )


def test_names_in_place_of_metrics_are_told_from_files() -> None:
    for call in (lambda: LOOSE.check("accuracy", above=0.8), lambda: LOOSE.metric_set("accuracy")):
        assert refusal(call).endswith("not 'accuracy'. Write the metric itself, `tidyfair.accuracy`.")
    named = {"acc": tf.accuracy}
    assert refusal(lambda: LOOSE.metric_set(named)).endswith('`.alias("name")` gives a metric another name.')
    for several in ([PARITY], {"gap": PARITY}):
        message = refusal(lambda several=several: LOOSE.check(several, below=0.1))
        assert message.endswith("Combine several with `metric_set(…)`.")


# Thresholds and references


def test_two_thresholds_are_compared_as_two_models() -> None:
    compare: Any = tf.compare_models(tf.accuracy)
    words = refusal(lambda: compare(PEOPLE, "y", one="p", other="p", threshold=[0.35, 0.5]))
    assert words == (
        'compare_models() does not accept `threshold`: make labels of scores, such as `one=(pl.col("score") >= '
        '0.4).alias("at 0.4")` and `other=(pl.col("score") >= 0.6).alias("at 0.6")`.'
    )
    for test in (tf.inference.pairwise(PARITY), tf.inference.disparity_test(PARITY)):
        message = refusal(lambda test=test: test(PEOPLE, probs="p", threshold=[0.35, 0.5]))
        assert "To compare two selections, use `compare_models`" in message
    # what they say works: right are 5 and 5 of 6
    cuts = {name: (pl.col("p") >= limit).alias(f"at {limit}") for name, limit in (("one", 0.35), ("other", 0.7))}
    assert compare(PEOPLE, "y", **cuts).select(".one", ".other").row(0) == pytest.approx((5 / 6, 5 / 6))


def test_labels_of_two_kinds_are_made_alike_by_what_the_message_says() -> None:
    texts = PEOPLE.with_columns(y=pl.col("y").replace_strict({1: "yes", 0: "no"}))
    selected = (pl.col("p") >= 0.5).alias("selected")
    with pytest.raises(tf.errors.LabelError) as caught:
        tf.accuracy(texts, "y", selected, pos_label="yes")
    assert str(caught.value).endswith(
        "Convert one of them, for example with `(pl.col('y') == 'yes').alias('y is yes')`."
    )
    mended = tf.accuracy(texts, (pl.col("y") == "yes").alias("y is yes"), selected)
    assert mended[".estimate"].item() == pytest.approx(4 / 6)
    with pytest.raises(tf.errors.LabelError, match=r"Cast one of them\.$"):
        tf.accuracy.arrays(["yes", "no"], [1, 0])


def test_unknown_reference_names_groups_and_the_other_references() -> None:
    for method in (tf.accuracy.difference, tf.accuracy.ratio):
        with pytest.raises(tf.errors.AggregateError) as caught:
            method("sex", to="largest")(PEOPLE, "y", "pred")
        assert str(caught.value).endswith(
            "`to='largest'` is not a group. The groups: 'f', 'm'. Or 'majority' (the largest group), 'overall' (all "
            "rows), 'rest' (all others) or 'range' (the largest minus the smallest value)."
        )


# What newcomers write first


def test_gates_and_comparisons_show_what_is_given_by_keyword() -> None:
    assert refusal(lambda: LOOSE.check(PARITY, PEOPLE, "y", "pred", below=0.1)) == (
        "check() takes `given` by position and `below=`, `above=`, `conf_level=`, `outside=` by keyword. Pass "
        "the data to the object that it returns: `check(…)(data, …)`."
    )
    compare: Any = tf.compare_models(tf.accuracy)
    message = refusal(lambda: compare(PEOPLE, "y", "pred", "pred"))
    assert message.startswith("ModelComparison() takes `data`, `truth` by position and `one=`, `other=`, ")
    assert message.endswith(", … by keyword.")


def test_interval_is_no_switch() -> None:
    for switch in (True, False):
        assert "for the recommended one, or leave it out" in refusal(
            lambda switch=switch: LOOSE.accuracy(PEOPLE, "y", "pred", interval=switch)
        )


def test_several_predictions_in_a_call_point_to_comparisons() -> None:
    for columns in (["pred", "y"], ("pred", "y")):
        with pytest.raises(tf.errors.ColumnError, match="Compare two models with `compare_models`"):
            LOOSE.accuracy(PEOPLE, "y", columns)


def test_series_of_groups_are_to_become_a_column() -> None:
    for series in (PEOPLE["sex"], PEOPLE["sex"].to_pandas()):
        with pytest.raises(tf.errors.ColumnError, match="Add it to the data as a column and give its name"):
            LOOSE.demographic_parity(series)


def test_gates_of_metrics_with_limits_on_both_sides_are_two() -> None:
    both = tf.metric_set(tf.accuracy, PARITY)
    assert refusal(lambda: tf.check(both, above=0.7)).endswith(
        "check() takes metrics with a limit on the same side; call it once for each side."
    )
    assert "same side" not in refusal(lambda: tf.check(PARITY, above=0.7))


def test_tests_of_rates_name_the_test_of_everything_else() -> None:
    numbers = PEOPLE.with_columns(guess=pl.col("p") * 2)
    assert "Use `disparity_test` to test whether groups are equal" in refusal(
        lambda: tf.inference.worst_groups(tf.rmse.difference("sex"))(numbers, "p", "guess")
    )


def test_unknown_kind_of_metrics_says_what_kinds_read() -> None:
    assert refusal(lambda: LOOSE.get_metrics("regression")) == (
        "get_metrics(): `kind` is one of 'class' (labels), 'prob' (scores), 'numeric' (numbers), 'survival' "
        "(survival times), 'interval' (intervals and quantiles), not 'regression'."
    )


def test_traceback_of_an_assertion_ends_at_the_line_of_the_test() -> None:
    unfair = pl.DataFrame({"e": [1] * 50 + [0] * 50, "g": ["a"] * 50 + ["b"] * 50})
    with pytest.raises(tf.inference.UnfairError) as caught:
        tf.assert_fair(tf.demographic_parity("g"), unfair, estimate="e", below=0.1)
    shown = caught.traceback.filter(caught)
    assert [entry.name for entry in shown] == ["test_traceback_of_an_assertion_ends_at_the_line_of_the_test"]


PUBLIC = {name: getattr(module, name) for module in (LOOSE, LOOSE.inference) for name in module.__all__}
NO_KEYWORDS, OF_OTHERS = {"catalogue", "metric_set", "sigmoid"}, {"metric_tweak", "make_scorer", "privileged"}
"""Functions that take no keywords, and those whose further keywords are options of metrics, or columns."""


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isfunction(value)])
def test_functions_suggest_a_keyword_for_a_misspelt_one(name: str) -> None:
    if name in NO_KEYWORDS | OF_OTHERS:
        return
    parameters = inspect.signature(PUBLIC[name]).parameters.values()
    keyword = [item.name for item in parameters if item.kind not in {item.VAR_POSITIONAL, item.VAR_KEYWORD}][-1]
    with pytest.raises(tf.errors.TidyfairError, match=f"Did you mean '{keyword}'|needs `"):
        PUBLIC[name](**{f"{keyword}_": None})


COMPARE_GROUPS = (
    "check", "compare_periods", "disparity_test", "monitor", "pairwise", "probability", "stratified",
    "verdict_sensitivity", "worst_groups",
)  # fmt: skip
SEARCH_GROUPS = ("certify_subgroups", "linear_subgroup", "probabilistic_groups", "subgroup_search")
FIRST_METRICS_THEN_DATA: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("compare_groups", "compare_models", "threshold_curve"), (tf.accuracy,)),
    **dict.fromkeys(COMPARE_GROUPS, (tf.demographic_parity("g"),)),
    **dict.fromkeys(SEARCH_GROUPS, (tf.accuracy, ("g",))),
    "decompose": (tf.accuracy,),
}


@pytest.mark.parametrize("name", FIRST_METRICS_THEN_DATA)
def test_functions_that_return_a_callable_say_where_the_data_go(name: str) -> None:
    data = pl.DataFrame({"y": [1, 0], "g": ["a", "b"]})
    first = FIRST_METRICS_THEN_DATA[name]
    called = rf"`{name}\(…\)\(data, …\)`"
    for call in ([*first, data], [*first, data, "y", "y"]):
        with pytest.raises(tf.errors.ArgumentError, match=called):
            PUBLIC[name](*call)
    for keyword in ({"data": data}, {"truth": "y"}, {"probs": "y"}):
        with pytest.raises(tf.errors.ArgumentError, match=called):
            PUBLIC[name](*first, **keyword)


def test_functions_that_take_the_data_at_once_say_so() -> None:
    parity: Any = tf.demographic_parity("g")
    shrunken: Any = tf.inference.shrunken_rates
    asserted: Any = tf.assert_fair
    ratios: Any = tf.audits.quantile_ratios
    with pytest.raises(
        tf.errors.ArgumentError, match=r"write `shrunken_rates\(metric, data\)`. The data go into the same"
    ):
        shrunken(parity)(pl.DataFrame({"y": [1]}))
    with pytest.raises(
        tf.errors.ArgumentError, match=r"`shrunken_rates\(accuracy.difference\(\"column\"\), data, …\)`"
    ):
        shrunken(pl.DataFrame({"y": [1]}), parity)
    with pytest.raises(tf.errors.ArgumentError, match=r"`assert_fair\(metrics, data, …, below=0.1\)`"):
        asserted(parity, below=0.1)(pl.DataFrame({"y": [1]}))
    with pytest.raises(
        tf.errors.ArgumentError, match=r"needs `data`, `values`: write `quantile_ratios\(data, values, by=…"
    ):
        ratios(by="g", to="a")(pl.DataFrame({"y": [1]}))


# Messages that a newcomer meets


def test_switches_of_intervals_are_met_with_the_recommended_method() -> None:
    for keyword in ("ci", "confidence_interval"):
        message = refusal(lambda keyword=keyword: LOOSE.accuracy(PEOPLE, "y", "pred", **{keyword: True}))
        assert message.endswith(f'Here `{keyword}` is `interval="auto"`, and its level is `conf_level=`.')
    for word in ("yes", "true", "Yes"):
        message = refusal(lambda word=word: LOOSE.accuracy(PEOPLE, "y", "pred", interval=word))
        assert message.endswith('write `interval="auto"`.')
        assert "bayes" not in message
    assert "Did you mean 'bootstrap'?" in refusal(lambda: LOOSE.accuracy(PEOPLE, "y", "pred", interval="bootstap"))


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_confidence_level_without_intervals_is_refused(metric: Any) -> None:
    tally = metric.tally(PEOPLE, "y", "pred")
    calls: list[Callable[[], object]] = [
        lambda: metric(PEOPLE, "y", "pred", conf_level=0.9),
        lambda: metric.by_group(PEOPLE, "y", "pred", conf_level=0.9),
        lambda: metric.compute(tally, conf_level=0.9),
        lambda: metric.compute_by_group(tally, conf_level=0.9),
    ]
    for call in calls:
        assert refusal(call) == (
            '`conf_level` is the level of intervals, which this call does not ask for: add `interval="auto"`.'
        )
    # who asks for none has said so
    assert metric(PEOPLE, "y", "pred", conf_level=0.9, interval=None).columns == metric(PEOPLE, "y", "pred").columns


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (tf.rankings.exposure, 'exposure("query")(data, …)'),
        (tf.rankings.ndkl, 'ndkl("query", "group")(data, …)'),
        (tf.annotators.fleiss_kap, 'fleiss_kap("item")(data, …)'),
    ],
)
def test_makers_of_metrics_say_where_the_data_go(make: Any, call: str) -> None:
    for wrong in (lambda: make(PEOPLE), lambda: make(PEOPLE, estimate="p"), lambda: make("sex", estimate="p")):
        assert refusal(wrong).endswith(f"makes a metric, which then takes the data: write `{call}`.")


def test_functions_in_place_of_metrics_are_met_with_the_way_to_make_one() -> None:
    message = refusal(lambda: LOOSE.metric_set(max))
    assert "`new_class_metric(function, name)`" in message
    assert "docs/pages/how-to/own-metric.md" in message


@pytest.mark.parametrize(
    ("name", "method"), [("group_min", "group_minimum"), ("max", "group_maximum"), ("diff", "difference")]
)
def test_other_words_for_comparisons_of_a_metric_name_the_method(name: str, method: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(tf.accuracy, name)
    assert str(caught.value) == f"'Metric' object has no attribute {name!r}. Write `accuracy.{method}(\"column\")`."
    assert not hasattr(tf.accuracy, "_repr_nothing_")


def test_usual_metrics_without_predictions_name_the_arguments() -> None:
    with pytest.raises(
        tf.errors.ColumnError, match=r"^default_metrics\(\) needs predictions: labels or numbers as `estimate`"
    ):
        tf.default_metrics(PEOPLE, "y")


def test_comparisons_of_other_libraries_are_named() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r'Here `method` is `to=` \("overall" for "to_overall"'):
        LOOSE.demographic_parity("sex", method="to_overall")
    with pytest.raises(tf.errors.ArgumentError, match=r'write `accuracy.difference\("column", to=…\)`'):
        LOOSE.accuracy(PEOPLE, "y", "pred", to="overall")
    with pytest.raises(AttributeError, match=r'write accuracy\.difference\("column"\)'):
        _ = LOOSE.accuracy_diff


@pytest.mark.parametrize(
    ("family", "name", "meant"),
    [
        ("rankings", "ndgc", "ndcg"),
        ("survival", "concordence", "concordance"),
        ("audits", "quantile_ratio", "quantile_ratios"),
    ],
)
def test_families_say_what_was_meant(family: str, name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"Did you mean '{meant}'"):
        getattr(getattr(LOOSE, family), name)


def test_makers_of_metrics_say_how_they_are_written() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"write `@class_metric\(\)`, with parentheses"):
        LOOSE.class_metric(lambda tp, fn: (tp, tp + fn))
    with pytest.raises(tf.errors.ArgumentError, match="makes a metric of a function"):
        LOOSE.class_metric()("x")

    def share(tp: Any, fn: Any, *, factor: float) -> Any:
        return factor * tp, tp + fn

    with pytest.raises(tf.errors.ArgumentError, match="the option 'factor' has no default"):
        LOOSE.class_metric()(share)
    with pytest.raises(tf.errors.ArgumentError, match=r"Unknown number of sens\.formula\(\) 'zzz'"):
        tf.sens.formula(tp=1, fn=1, zzz=1)


def test_formulas_may_read_one_column_alone() -> None:
    @LOOSE.numeric_metric()
    def total(truth: Any) -> Any:
        return truth.sum()

    @LOOSE.numeric_metric()
    def weights(weight: Any) -> Any:
        return weight.sum()

    assert total(PEOPLE, "p")[".estimate"].item() == pytest.approx(3.1)
    assert total.difference("sex")(PEOPLE, "p")[".estimate"].item() == pytest.approx(0.3)
    assert weights(PEOPLE, "p", case_weights="p")[".estimate"].item() == pytest.approx(3.1)
    assert weights(PEOPLE, "p")[".estimate"].item() == 6


def test_audits_pickle_by_name() -> None:
    audits = tf.audits.NAMED_AUDITS
    assert pickle.loads(pickle.dumps(audits)) is audits  # noqa: S301 - its own
    assert list(audits) == [audit.name for audit in audits.values()]
