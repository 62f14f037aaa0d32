"""The options of everything in `tidyfair.inference` that is called on data."""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.inference import (
    SubgroupSearch,
    compare_models,
    compare_periods,
    disparity_test,
    four_fifths,
    linear_subgroup,
    pairwise,
    probability,
    stratified,
    subgroup_search,
    worst_groups,
)
from tidyfair.specs.options import CallOptions, ReadOptions

parity = tf.demographic_parity("sex")
of_rates = {"worst_groups()": worst_groups(parity), "stratified()": stratified(parity, within="race")}
of_rates |= {"compare_periods()": compare_periods(parity, period="month")}
callables: dict[str, Any] = {"A gate": four_fifths("sex"), "A probability": probability(parity, below=0.1)}
callables |= of_rates | {"disparity_test()": disparity_test(parity), "pairwise()": pairwise(parity)}
people = pl.DataFrame({"hired": [1, 0, 1, 0], "sex": list("ffmm"), "race": list("abab"), "month": [1, 2, 1, 2]})


def _keywords(function: Any) -> Mapping[str, Any]:
    parameters = inspect.signature(function).parameters
    return {name: item.default for name, item in parameters.items() if item.kind is item.KEYWORD_ONLY}


@pytest.mark.parametrize("subject", callables)
def test_every_option_of_a_call_is_shown_or_refused(subject: str) -> None:
    shown = _keywords(callables[subject])
    for option in CallOptions.__annotations__:
        if option in shown:
            continue
        with pytest.raises(tf.errors.ArgumentError) as error:
            callables[subject](people, estimate="hired", **{option: "race"})
        assert str(error.value).startswith(f"{subject} does not accept `{option}`")


@pytest.mark.parametrize("subject", callables)
def test_shown_options_have_the_defaults_of_a_metric(subject: str) -> None:
    shown, of_metric = _keywords(callables[subject]), _keywords(parity)
    assert shown
    assert shown == {option: of_metric[option] for option in shown}


@pytest.mark.parametrize("subject", [subject for subject in callables if hasattr(callables[subject], "compute")])
def test_compute_shows_the_reading_options_that_a_call_shows(subject: str) -> None:
    shown = _keywords(callables[subject])
    expected = [option for option in ReadOptions.__annotations__ if option in shown]
    assert list(_keywords(callables[subject].compute)) == expected


@pytest.mark.parametrize("option", ["case_weights", "cluster"])
def test_only_tests_of_counts_refuse_weights_and_clusters(option: str) -> None:
    assert option in _keywords(disparity_test(parity))
    assert option in _keywords(pairwise(parity))
    for test in of_rates.values():
        assert option not in _keywords(test)


def test_comparison_of_models_shows_its_predictions_and_the_options_of_a_call() -> None:
    shown = _keywords(compare_models(tf.accuracy))
    assert list(shown)[:2] == ["one", "other"]
    assert {"group_by", "times", "conf_level"} <= set(shown)
    assert not {"probs", "estimate", "interval"} & set(shown)


@pytest.mark.parametrize(
    "search", [subgroup_search(tf.selection_rate, ["sex"]), linear_subgroup(tf.selection_rate, ["sex"])]
)
def test_searches_show_the_options_they_take(search: Any) -> None:
    drawn = ["times", "seed"] if isinstance(search, SubgroupSearch) else []
    assert list(_keywords(search)) == ["probs", "threshold", "group_by", "pos_label", "labels", *drawn]


def test_functions_that_hand_options_on_show_them() -> None:
    assert "frequency_weights" in _keywords(tf.assert_fair)
    assert "frequency_weights" in _keywords(tf.inference.shrunken_rates)
    # the level of verdicts, and not of the intervals of a call
    assert _keywords(tf.assert_fair)["conf_level"] is None


_PEOPLE = pl.DataFrame({"y": [1, 0] * 4, "p": [1, 1, 0, 0] * 2, "sex": list("aabb") * 2})
_GIVEN: dict[str, Any] = {
    **{
        name: partial(test, _PEOPLE, estimate="p")
        for name, test in {
            "disparity_test": disparity_test(parity),
            "pairwise": pairwise(parity),
            "worst_groups": worst_groups(parity),
            "compare_periods": compare_periods(parity, period="day"),
            "probability": probability(parity, below=0.1),
            "subgroup_search": subgroup_search(tf.selection_rate, ["sex"]),
            "compare_groups": tf.compare_groups(tf.selection_rate, by="sex"),
        }.items()
    },
    "rows_needed": lambda times: tf.inference.rows_needed(0.1, 0.5, times=times),
    "smallest_difference": lambda times: tf.inference.smallest_difference({"a": 9, "b": 9}, 0.5, times=times),
    "shrunken_rates": lambda times: tf.inference.shrunken_rates(parity, _PEOPLE, estimate="p", times=times),
    "compare_models": lambda times: compare_models(tf.accuracy)(_PEOPLE, "y", one="p", other="y", times=times),
    "a metric": lambda times: tf.accuracy(_PEOPLE, "y", "p", interval="bootstrap", times=times),
    "check": lambda times: tf.check(parity, below=0.1)(_PEOPLE, estimate="p", times=times),
}


@pytest.mark.parametrize("name", _GIVEN)
def test_too_few_draws_to_show_anything_are_refused(name: str) -> None:
    for times in (1, 19):
        with pytest.raises(tf.errors.ArgumentError, match=f"`times` is a whole number, 20 to 10000000, not {times}"):
            _GIVEN[name](times=times)


PAIRS = (".disparity", ".lower", ".upper", ".p_adjusted")
PRINTED: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "compare_groups": (tf.compare_groups(tf.selection_rate, by="sex"), {}, PAIRS),
    "pairwise": (tf.inference.pairwise(tf.demographic_parity("sex")), {}, PAIRS),
    "stratified": (
        tf.inference.stratified(tf.demographic_parity("sex"), within="age_band"), {},
        (".adjusted", ".lower", ".upper", ".p_adjusted"),
    ),
    "worst_groups": (
        tf.inference.worst_groups(tf.demographic_parity("sex")), {},
        (".lower", ".upper", ".worst", ".p_worst"),
    ),
    "disparity_test": (
        tf.inference.disparity_test(tf.demographic_parity("sex")), {},
        (".estimate", ".expected", ".p_value", ".p_adjusted"),
    ),
    "compare_periods": (
        tf.inference.compare_periods(tf.demographic_parity("sex"), period="fold"), {"group_by": "fold"},
        (".estimate_before", ".estimate", ".change", ".p_adjusted"),
    ),
    "search for a change": (
        tf.inference.compare_periods(tf.demographic_parity("sex"), period="fold", search="change"),
        {"group_by": "fold"}, (".period", ".estimate_before", ".estimate", ".p_adjusted"),
    ),
    "decompose": (
        tf.inference.decompose(tf.selection_rate, between="sex", by="race"), {},
        (".component", ".estimate", ".lower", ".upper"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_printed_results_show_their_findings(name: str) -> None:
    test, options, findings = PRINTED[name]
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes", **options}
    if "times" in _keywords(test):
        call["times"] = 20
    result = test(lending(), **call)
    with pl.Config(tbl_cols=8, tbl_width_chars=120, fmt_str_lengths=20):
        printed = str(result)
    assert ".by" in printed
    assert all(column in printed for column in findings), printed


_of_random_numbers: dict[str, Any] = {
    "disparity_test": disparity_test,
    "pairwise": lambda metric: pairwise(metric, adjust="max_t"),
    "compare_periods": lambda metric: compare_periods(metric, period="fold"),
    "search of periods": lambda metric: compare_periods(metric, period="fold", search="change"),
    "probability": lambda metric: probability(metric, below=0.1, pooling="beta_binomial"),
    "worst_groups": worst_groups,
}


@pytest.mark.parametrize("name", _of_random_numbers)
def test_random_numbers_do_not_depend_on_names(name: str) -> None:
    call: Any = {"estimate": "approved", "pos_label": "yes", "times": 200} | (
        {"group_by": "fold"} if "periods" in name else {}
    )
    test = _of_random_numbers[name]
    result = test(tf.demographic_parity("race"))(lending(), **call)
    renamed = test(tf.selection_rate.difference("origin"))(lending().rename({"race": "origin"}), **call)
    assert_frame_equal(renamed.select(pl.selectors.float()), result.select(pl.selectors.float()))


OF_DATA = {"times", "seed", "conf_level", "interval", "case_weights", "on_undefined", "na_rm", "pos_label"}
RULES = {"check", "four_fifths", "monitor", "verdict_sensitivity"}
"""Rules, with a limit and its level, which reports, tests and evaluators are given as a whole."""


def test_what_is_asked_of_data_goes_into_the_call() -> None:
    makers = {name: getattr(tf.inference, name) for name in tf.inference.__all__} | {
        "compare_groups": tf.compare_groups
    }
    for name, maker in makers.items():
        shown = set() if inspect.isclass(maker) else set(_keywords(maker))
        takes_data = {"data", "groups", "difference", "result"} & set(inspect.signature(maker).parameters)
        assert name in RULES or takes_data or not shown & OF_DATA, name


@pytest.mark.parametrize("option", ["times", "seed", "conf_level", "interval"])
def test_what_is_asked_of_data_is_refused_in_the_maker(option: str) -> None:
    makers: list[Any] = [disparity_test, pairwise, worst_groups, tf.compare_groups]
    for make in makers:
        name = make.__name__
        with pytest.raises(tf.errors.ArgumentError) as refused:
            make(parity, **{option: 0.9})
        assert str(refused.value) == (
            f"{name}() takes no `{option}`; pass it to the object that it returns: `{name}(…)(data, …)`."
        )


def test_makers_do_not_send_options_to_objects_that_do_not_know_them() -> None:
    makers: list[tuple[Any, str]] = [
        (tf.inference.certify_subgroups, "times"),
        (tf.inference.subgroup_search, "conf_level"),
    ]
    for make, option in makers:
        with pytest.raises(tf.errors.ArgumentError, match=f"Unknown argument of .* '{option}'"):
            make(parity, **{option: 0.9})


def test_tests_that_draw_nothing_refuse_draws() -> None:
    odd: list[dict[str, Any]] = [{"times": 100}, {"seed": 1}]
    for options in odd:
        with pytest.raises(tf.errors.ArgumentError, match=r"stratified\(\) does not accept `.*`: it draws nothing"):
            stratified(parity, within="race")(lending(), estimate="approved", pos_label="yes", **options)


def test_range_expected_by_chance_follows_the_level() -> None:
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes", "times": 200}
    test = disparity_test(tf.demographic_parity("race"))
    usual, wider = test(lending(), **call), test(lending(), **call, conf_level=0.99)
    assert wider[".expected_upper"].item() > usual[".expected_upper"].item()
    assert wider[".conf_level"].item() == 0.99
    assert ".conf_level" not in usual.columns
