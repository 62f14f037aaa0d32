"""Gates of comparisons: their verdicts equal plain arithmetic on one-sided limits, in Python and elsewhere."""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from command_line import called, written
from conftest import as_polars
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

import tidyfair as tf
from tidyfair.inference.gates.checks import judged_changes

pytest_plugins = ["pytester"]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Limits = dict[Any, tuple[float, float]]

PASS, FAIL, UNSURE = "pass", "fail", "not enough evidence"
COUNTS = {"a": (500, 1000), "b": (480, 1000), "c": (360, 1000), "d": (300, 1000)}
"""How many of a group are selected, of how many: alone, `c` fails beside `a` at the limits below."""


def people(counts: Mapping[Any, tuple[int, int]]) -> pl.DataFrame:
    """A row for each person, with the decision `e` and the group `g`."""
    parts = [
        pl.DataFrame({"e": [1] * hits + [0] * (size - hits), "g": [group] * size}, {"e": pl.Int64, "g": pl.String})
        for group, (hits, size) in counts.items()
    ]
    return pl.concat(parts)


PEOPLE = people(COUNTS)
SELECTED = tf.selection_rate
PAIRS = tf.inference.pairwise(SELECTED.difference("g"))


def by_hand(
    limits_at: Callable[[float], Limits], low: float, high: float, error: float = 0.05, families: float = 1.0
) -> dict[Any, str]:
    """Passes at the error rate; failures after Holm (1979), at the error rate divided by the number of families."""
    passed = {key for key, (lower, upper) in limits_at(error).items() if low < lower and upper < high}
    waiting, failed = set(limits_at(error)), set[Any]()
    while waiting:
        strict = limits_at(error / families / len(waiting))
        beyond = {key for key in waiting if strict[key][0] > high or strict[key][1] < low}
        if not beyond:
            break
        failed, waiting = failed | beyond, waiting - beyond
    return {key: FAIL if key in failed else PASS if key in passed else UNSURE for key in limits_at(error)}


def alone(limits_at: Callable[[float], Limits], low: float, high: float, error: float = 0.05) -> dict[Any, str]:
    """The verdicts on comparisons each of which is the only one."""
    verdicts: dict[Any, str] = {}
    for key in limits_at(error):
        verdicts |= by_hand(lambda rate, key=key: {key: limits_at(rate)[key]}, low, high, error)
    return verdicts


def differences_of(pairs: list[tuple[str, str]]) -> Callable[[float], Limits]:
    """Newcombe's one-sided limits of the difference of the rates of pairs, from statsmodels."""
    return lambda error: {
        (one, other): confint_proportions_2indep(*COUNTS[one], *COUNTS[other], method="newcomb", alpha=2 * error)
        for one, other in pairs
    }


def ratios_beside(reference: str) -> Callable[[float], Limits]:
    """One-sided limits of Miettinen and Nurminen of the rates of other groups over that of a reference."""
    return lambda error: {
        group: confint_proportions_2indep(
            *COUNTS[group], *COUNTS[reference], method="score", compare="ratio", alpha=2 * error
        )
        for group in COUNTS
        if group != reference
    }


# Groups


@pytest.mark.parametrize("conf_level", [0.9, 0.95])
def test_verdicts_on_pairs_equal_limits_of_statsmodels_after_holm(conf_level: float) -> None:
    result = tf.check(PAIRS, below=0.1, conf_level=conf_level)(PEOPLE, estimate="e")
    limits_at = differences_of(list(itertools.combinations(COUNTS, 2)))
    expected = by_hand(limits_at, -0.1, 0.1, 1 - conf_level)
    rows = {(row[".group"], row[".other"]): row for row in result.to_dicts()}
    assert {pair: row[".verdict"] for pair, row in rows.items()} == expected
    assert set(expected.values()) == {PASS, FAIL, UNSURE}
    for pair, ends in limits_at(1 - conf_level).items():
        assert (rows[pair][".lower"], rows[pair][".upper"]) == pytest.approx(ends, abs=1e-9)
    assert set(result[".limit"]) == {0.1}


def test_holm_keeps_a_pair_from_failing_that_would_fail_alone() -> None:
    limits_at = differences_of(list(itertools.combinations(COUNTS, 2)))
    assert (alone(limits_at, -0.1, 0.1)["a", "c"], by_hand(limits_at, -0.1, 0.1)["a", "c"]) == (FAIL, UNSURE)
    gate = tf.check(PAIRS, below=0.1)
    of_two = gate(PEOPLE.filter(pl.col("g").is_in(["a", "c"])), estimate="e")
    of_all = gate(PEOPLE, estimate="e").filter((pl.col(".group") == "a") & (pl.col(".other") == "c"))
    assert [of_two[".verdict"].item(), of_all[".verdict"].item()] == [FAIL, UNSURE]


def test_verdicts_beside_a_named_group_are_adjusted_for_the_other_groups() -> None:
    comparison = tf.compare_groups(SELECTED, by="g", to="a", scale="ratio")
    result = tf.check(comparison, above=0.8)(PEOPLE, estimate="e")
    limits_at = ratios_beside("a")
    rows = {row[".group"]: row for row in result.to_dicts()}
    # a reference equals itself, and has no verdict
    assert rows.pop("a")[".verdict"] is None
    assert {group: row[".verdict"] for group, row in rows.items()} == by_hand(limits_at, 0.8, 1 / 0.8)
    for group, ends in limits_at(0.05).items():
        assert (rows[group][".lower"], rows[group][".upper"]) == pytest.approx(ends, abs=1e-6)


def test_verdicts_beside_the_best_group_are_adjusted_for_all_pairs() -> None:
    limits_at = ratios_beside("a")
    # any of the four may have been the best, so that there are six pairs for three comparisons
    expected = by_hand(limits_at, 0.8, 1 / 0.8, families=2)
    result = tf.check(tf.compare_groups(SELECTED, by="g", scale="ratio"), above=0.8)(PEOPLE, estimate="e")
    assert dict(result.drop_nulls(".verdict").select(".group", ".verdict").rows()) == expected
    assert set(result[".reference"]) == {"a"}
    assert expected != by_hand(limits_at, 0.8, 1 / 0.8)


def test_ratios_far_above_those_of_a_reference_fail() -> None:
    comparison = tf.compare_groups(SELECTED, by="g", to="d", scale="ratio")
    result = tf.check(comparison, above=0.8)(PEOPLE, estimate="e").drop_nulls(".verdict")
    expected = by_hand(ratios_beside("d"), 0.8, 1 / 0.8)
    assert dict(result.select(".group", ".verdict").rows()) == expected
    assert expected["a"] == FAIL


def test_differences_beside_a_group_have_a_limit_on_both_sides() -> None:
    comparison = tf.compare_groups(SELECTED, by="g", to="b")
    result = tf.check(comparison, below=0.1)(PEOPLE, estimate="e").drop_nulls(".verdict")
    expected = by_hand(differences_of([(group, "b") for group in "acd"]), -0.1, 0.1)
    assert {(group, "b"): verdict for group, verdict in result.select(".group", ".verdict").rows()} == expected


def test_gates_of_groups_judge_tallies_and_every_kind_of_frame(engine: Callable[[pl.DataFrame], Any]) -> None:
    gate = tf.check(PAIRS, below=0.1)
    columns = [".group", ".other", ".verdict"]
    expected = sorted(gate(PEOPLE, estimate="e").select(columns).rows())
    assert sorted(as_polars(gate(engine(PEOPLE), estimate="e")).select(columns).rows()) == expected
    tally = tf.metric_set(*PAIRS.metrics).tally(PEOPLE, estimate="e")
    assert sorted(gate.compute(tally).select(columns).rows()) == expected


def test_outer_groups_have_verdicts_that_are_adjusted_together() -> None:
    folds = pl.concat([PEOPLE.with_columns(fold=pl.lit(fold)) for fold in (1, 2)])
    result = tf.check(tf.compare_groups(SELECTED, by="g", to="a"), below=0.1)(folds, estimate="e", group_by="fold")
    of_one = differences_of([(group, "a") for group in "bcd"])

    def both(error: float) -> Limits:
        return {
            (fold, *pair): ends for fold in (1, 2) for pair, ends in of_one(error).items() if isinstance(pair, tuple)
        }

    found = {(row["fold"], row[".group"], "a"): row[".verdict"] for row in result.drop_nulls(".verdict").to_dicts()}
    assert found == by_hand(both, -0.1, 0.1)


# Groups outside the policy


ALIKE = {"a": (500, 1000), "b": (505, 1000)}
COMPARISONS: dict[str, Any] = {
    "pairwise": PAIRS,
    "compare_groups": tf.compare_groups(SELECTED, by="g", to="a"),
    "small, pairwise": tf.inference.pairwise(SELECTED.difference("g", min_n=100)),
    "small, compare_groups": tf.compare_groups(SELECTED, by="g", to="a", min_n=100),
}


def with_others(name: str) -> pl.DataFrame:
    """Two groups that are alike, and others of a small or of an unknown group."""
    return people({**ALIKE, **({"c": (20, 20)} if name.startswith("small") else {None: (220, 220)})})


def outside(result: pl.DataFrame) -> Any:
    """The verdict on the group outside the policy."""
    return result.filter(pl.col(".status").is_in(["unknown", "below_min_n"]))[".verdict"].item()


@pytest.mark.parametrize("name", ["pairwise", "compare_groups"])
def test_unknown_groups_hold_a_pass_back_unless_it_also_holds_with_them(name: str) -> None:
    gate = tf.check(COMPARISONS[name], below=0.1)
    far, near = (people({**ALIKE, None: counts}) for counts in ((220, 220), (500, 1000)))
    assert outside(gate(far, estimate="e")) == UNSURE
    assert outside(gate(near, estimate="e")) is None
    known = gate(far, estimate="e").filter(pl.col(".status") == "ok").drop_nulls(".verdict")
    assert set(known[".verdict"]) == {PASS}


@pytest.mark.parametrize("name", ["pairwise", "compare_groups"])
def test_few_rows_of_unknown_groups_pass_if_no_known_group_is_turned_by_them(name: str) -> None:
    # four rows move the rate of 1,000 by less than half a point; alone they show nothing
    gate = tf.check(COMPARISONS[name], below=0.1)
    assert outside(gate(people({**ALIKE, None: (4, 4)}), estimate="e")) is None
    # eighty move that of a group of 100 by some 20 points
    turned = people({"a": (500, 1000), "b": (500, 1000), "c": (2000, 4000), None: (80, 80)})
    assert outside(tf.check(COMPARISONS[name], below=0.06)(turned, estimate="e")) == UNSURE


@pytest.mark.parametrize("name", COMPARISONS)
def test_groups_outside_the_policy_may_be_stated(name: str) -> None:
    data = with_others(name)
    held, stated = (
        tf.check(COMPARISONS[name], below=0.1, outside=how)(data, estimate="e") for how in ("hold", "state")
    )
    assert (outside(held), outside(stated)) == (UNSURE, None)
    assert set(stated.filter(pl.col(".status") == "ok").drop_nulls(".verdict")[".verdict"]) == {PASS}
    call: dict[str, Any] = {"estimate": "e", "below": 0.1, "strict": True}
    with pytest.raises(tf.inference.UnfairError, match="Groups that are left out hold a pass back"):
        tf.assert_fair(COMPARISONS[name], data, **call)
    tf.assert_fair(COMPARISONS[name], data, **call, outside="state")


def test_gates_of_metrics_state_the_groups_that_they_are_not_about() -> None:
    data = people({**ALIKE, "c": (20, 20), None: (220, 220)})
    parity = tf.demographic_parity("g", min_n=100)
    held, stated = (
        tf.check(parity, below=0.1, outside=how)(data, estimate="e").row(0, named=True) for how in ("hold", "state")
    )
    assert (held[".verdict"], stated[".verdict"]) == (UNSURE, PASS)
    assert held[".groups_outside"] == stated[".groups_outside"] == ["c", "null"]
    assert stated[".unknown"] == 220
    # what is not compared for another reason holds a pass back all the same
    undefined = tf.check(tf.equal_opportunity("g"), below=0.2, outside="state")
    truths = pl.concat([people(ALIKE).with_columns(t=pl.lit(1)), people({"c": (50, 100)}).with_columns(t=pl.lit(0))])
    with pytest.warns(tf.errors.UndefinedWarning):
        assert undefined(truths, "t", "e", pos_label=1)[".verdict"].item() == UNSURE


# Changes


def changed(lost: int, gained: int, rows: int = 2000) -> pl.DataFrame:
    """Two models: the second is wrong in `lost` rows where the first is right, and right in `gained` others."""
    right = rows // 2
    one = [1] * right + [0] * right
    other = [0] * lost + [1] * (right - lost) + [1] * gained + [0] * (right - gained)
    return pl.DataFrame({"y": [1] * rows, "one": one, "other": other})


def bonett_price(lost: int, gained: int, rows: int) -> Callable[[float], tuple[float, float]]:
    """One-sided limits of the change of a share of the same rows, with a row more of either change (2012)."""
    up, down = (gained + 1) / (rows + 2), (lost + 1) / (rows + 2)
    error_of_change = math.sqrt((up + down - (up - down) ** 2) / (rows + 2))

    def limits_at(error: float) -> tuple[float, float]:
        reach = float(stats.norm.ppf(1 - error)) * error_of_change
        return up - down - reach, up - down + reach

    return limits_at


@pytest.mark.parametrize("limit", [-0.1, -0.06, -0.05, -0.04, -0.02, 0.0])
@pytest.mark.parametrize("conf_level", [0.8, 0.95])
def test_verdict_on_a_change_equals_a_one_sided_limit(limit: float, conf_level: float) -> None:
    gate = tf.check(tf.compare_models(tf.accuracy), above=limit, conf_level=conf_level)
    (row,) = gate(changed(150, 50), "y", one="one", other="other", labels=[0, 1], pos_label=1).to_dicts()
    lower, upper = bonett_price(150, 50, 2000)(1 - conf_level)
    assert row[".change"] == pytest.approx(-0.05)
    assert (row[".lower"], row[".upper"]) == pytest.approx((lower, upper))
    assert row[".verdict"] == (PASS if lower >= limit else FAIL if upper < limit else UNSURE)
    assert (row[".limit"], row[".model_one"], row[".model_other"]) == (limit, "one", "other")


def test_failures_of_changes_are_adjusted_by_holm() -> None:
    # in each fold the share of right predictions falls, by less in each
    losses = {1: 300, 2: 152, 3: 150, 4: 40}
    data = pl.concat([changed(lost, 20).with_columns(fold=pl.lit(fold)) for fold, lost in losses.items()])
    call: dict[str, Any] = {"one": "one", "other": "other", "labels": [0, 1], "pos_label": 1}
    result = tf.check(tf.compare_models(tf.accuracy), above=-0.055)(data, "y", group_by="fold", **call)

    def limits_at(error: float) -> Limits:
        return {fold: bonett_price(lost, 20, 2000)(error) for fold, lost in losses.items()}

    expected = by_hand(limits_at, -0.055, math.inf)
    assert dict(result.select("fold", ".verdict").rows()) == expected
    assert set(expected.values()) == {PASS, FAIL, UNSURE}
    assert expected != alone(limits_at, -0.055, math.inf)


def test_a_change_whose_bound_is_the_limit_itself_is_within_it() -> None:
    data, comparison = changed(150, 50), tf.compare_models(tf.accuracy)
    call: dict[str, Any] = {"one": "one", "other": "other", "labels": [0, 1], "pos_label": 1}
    bound = comparison(data, "y", **call, conf_level=0.9)[".lower"].item()
    beyond = math.nextafter(bound, 0)
    verdicts = [tf.check(comparison, above=limit)(data, "y", **call)[".verdict"].item() for limit in (bound, beyond)]
    assert verdicts == [PASS, UNSURE]


def models(share_of_unknown: float = 1 / 3) -> pl.DataFrame:
    """Two races that both models select alike, and a tenth of the rows without a race, of whom the second takes all."""
    known = pl.DataFrame({"one": ["yes", "no", "no"] * 1200, "race": ["White"] * 1800 + ["Black"] * 1800})
    count = round(400 * share_of_unknown)
    nobody = pl.DataFrame({"one": ["yes"] * count + ["no"] * (400 - count), "race": [None] * 400}, known.schema)
    both = pl.concat([known, nobody]).with_columns(y="one")
    return both.with_columns(other=pl.when(pl.col("race").is_null()).then(pl.lit("yes")).otherwise("one"))


CALL: dict[str, Any] = {"truth": "y", "one": "one", "other": "other", "pos_label": "yes"}
PARITY_CHANGES = tf.compare_models(tf.demographic_parity("race"))


def test_changes_that_only_known_groups_show_are_held_back_or_stated() -> None:
    held, stated = (
        tf.check(PARITY_CHANGES, below=0.1, outside=how)(models(), **CALL).row(0, named=True)
        for how in ("hold", "state")
    )
    assert (held[".verdict"], held[".with_unknown"]) == (UNSURE, UNSURE)
    assert stated[".verdict"] == PASS
    for row in (held, stated):
        assert (row[".unknown"], row[".unknown_share"], row[".groups_outside"]) == (400, 0.1, ["null"])
    # compared as a group, those without a race are a third before and all after
    compared = tf.compare_models(tf.demographic_parity("race", unknown="group"))
    (row,) = tf.check(compared, below=0.1)(models(), **CALL).to_dicts()
    assert (row[".change"], row[".verdict"]) == (pytest.approx(2 / 3, abs=0.01), FAIL)


# Stored results


def test_stored_results_are_judged_by_the_intervals_that_they_have() -> None:
    pairs = PAIRS(PEOPLE, estimate="e")
    judged = tf.check(pairs, below=0.1, outside="state")
    assert judged[".conf_level"].unique().to_list() == [0.975]  # of each end
    assert judged.drop(".limit", ".verdict", ".conf_level").equals(pairs)
    expected = [
        FAIL if row[".lower"] > 0.1 or row[".upper"] < -0.1
        else PASS if row[".lower"] > -0.1 and row[".upper"] < 0.1
        else UNSURE
        for row in pairs.to_dicts()
    ]  # fmt: skip
    assert judged[".verdict"].to_list() == expected
    assert len(set(expected)) == 3


def test_stored_ratios_beside_a_group_have_a_limit_on_both_sides() -> None:
    ratios = tf.compare_groups(SELECTED, by="g", to="b", scale="ratio", adjust="none")(
        PEOPLE, estimate="e", conf_level=0.9
    )
    expected = alone(ratios_beside("b"), 0.8, 1 / 0.8)
    assert dict(tf.check(ratios, above=0.8).drop_nulls(".verdict").select(".group", ".verdict").rows()) == expected


def test_stored_changes_are_judged_on_one_side_at_their_limit() -> None:
    data = changed(150, 50)
    call: dict[str, Any] = {"one": "one", "other": "other", "labels": [0, 1], "pos_label": 1, "conf_level": 0.9}
    stored = tf.compare_models(tf.accuracy)(data, "y", **call)
    lower, upper = stored.select(".lower", ".upper").row(0)
    cases = {lower - 0.001: PASS, lower: PASS, lower + 0.001: UNSURE, upper: UNSURE, upper + 0.001: FAIL}
    for limit, expected in cases.items():
        assert tf.check(stored, above=limit)[".verdict"].item() == expected


@pytest.mark.parametrize("name", ["compare_groups", "small, compare_groups"])
def test_stored_results_hold_or_state_the_groups_outside_the_policy_that_they_list(name: str) -> None:
    stored = COMPARISONS[name](with_others(name), estimate="e")
    assert outside(tf.check(stored, below=0.2)) == UNSURE
    stated = tf.check(stored, below=0.2, outside="state")
    assert dict(stated.select(".group", ".verdict").drop_nulls().rows()) == {"b": PASS}


def test_stored_results_that_name_no_groups_outside_pass_only_for_the_groups_in_them() -> None:
    people = with_others("small, pairwise")
    pairs = COMPARISONS["small, pairwise"](people, estimate="e")
    parity = tf.demographic_parity("g", min_n=100)
    changes = tf.compare_models(parity)(people, one="e", other=pl.col("e").alias("same"))
    for stored, verb in ((pairs, "pairwise"), (changes, "compare_models")):
        message = rf"does not say which groups it leaves out.* `check\({verb}\(…\), below=0.1\)"
        with pytest.raises(tf.errors.ArgumentError, match=message):
            tf.check(stored, below=0.2)
        assert set(tf.check(stored, below=0.2, outside="state")[".verdict"]) == {PASS}


@pytest.mark.parametrize("kind", [pl.DataFrame.lazy, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_stored_results_are_judged_in_every_kind_of_frame(kind: Callable[[pl.DataFrame], Any]) -> None:
    stored = PAIRS(PEOPLE, estimate="e").select(".metric", ".disparity", ".lower", ".upper")
    stated: dict[str, Any] = {"below": 0.1, "outside": "state"}
    judged = as_polars(tf.check(kind(stored), **stated))
    assert judged[".verdict"].to_list() == tf.check(stored, **stated)[".verdict"].to_list()
    call: dict[str, Any] = {"one": "one", "other": "other", "labels": [0, 1], "pos_label": 1}
    changes = tf.compare_models(tf.accuracy)(changed(150, 50), "y", **call)
    assert as_polars(tf.check(kind(changes), above=-0.1))[".verdict"].to_list() == [PASS]


# Assertions


def failure(*arguments: Any, **options: Any) -> str:
    with pytest.raises(tf.inference.UnfairError) as caught:
        tf.assert_fair(*arguments, **options)
    return str(caught.value)


def test_failed_assertions_of_pairs_name_both_groups() -> None:
    expected = by_hand(differences_of(list(itertools.combinations(COUNTS, 2))), -0.1, 0.1)
    failed = [pair for pair, verdict in expected.items() if verdict == FAIL]
    text = failure(PAIRS, PEOPLE, estimate="e", below=0.1)
    assert text.startswith(f"{len(failed)} of 6 limits are not met:")
    for row in (line for line in text.splitlines() if line.startswith("│ selection_rate")):
        cells = [cell.strip() for cell in re.split("[│┆]", row)[1:-1]]
        assert tuple(cells[2:4]) in failed
    assert text == failure(tf.check(PAIRS, below=0.1), PEOPLE, estimate="e")
    stored = tf.inference.pairwise(SELECTED.difference("g"), adjust="none")(PEOPLE, estimate="e", conf_level=0.9)
    assert "limits are not met" in failure(stored, below=0.1, outside="state")


def test_assertions_of_groups_beside_a_reference_have_no_verdict_on_the_reference() -> None:
    comparison = tf.compare_groups(SELECTED, by="g", to="a", scale="ratio")
    text = failure(comparison, PEOPLE, estimate="e", above=0.8)
    expected = by_hand(ratios_beside("a"), 0.8, 1 / 0.8)
    failed = list(expected.values()).count(FAIL)
    assert text.startswith(f"{failed} of 3 limits {'is' if failed == 1 else 'are'} not met:")
    tf.assert_fair(comparison, people(ALIKE), estimate="e", above=0.8)


def test_assertions_of_changes_take_both_models() -> None:
    data = changed(150, 50)
    call: dict[str, Any] = {"truth": "y", "one": "one", "other": "other", "labels": [0, 1], "pos_label": 1}
    comparison = tf.compare_models(tf.accuracy)
    tf.assert_fair(comparison, data, **call, above=-0.1)
    text = failure(comparison, data, **call, above=-0.02)
    assert text.startswith("The limit is not met:")
    assert "-0.05" in text
    assert text == failure(tf.check(comparison, above=-0.02), data, **call)
    with pytest.warns(tf.errors.EvidenceWarning, match="More rows make intervals narrower"):
        tf.assert_fair(comparison, data, **call, above=-0.05)
    assert failure(comparison(data, **call), above=-0.02).startswith("The limit is not met:")


def test_assertions_of_four_fifths_show_the_groups_behind() -> None:
    text = failure(tf.four_fifths("g"), PEOPLE, estimate="e")
    assert text.startswith("The limit is not met:")
    assert "four_fifths of g passes if `.lower` is above 0.8" in text
    tf.assert_fair(tf.four_fifths("g"), people(ALIKE), estimate="e")
    small = people({**ALIKE, "c": (20, 20)})
    assert "hold a pass back: 'c'" in failure(tf.four_fifths("g", min_n=100), small, estimate="e", strict=True)
    tf.assert_fair(tf.four_fifths("g", min_n=100, outside="state"), small, estimate="e", strict=True)


def test_predictions_that_a_gate_does_not_read_are_refused() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="give the predictions as `one=` and `other=`"):
        tf.assert_fair(PARITY_CHANGES, models(), **CALL, estimate="one", below=0.1)
    with pytest.raises(tf.errors.ArgumentError, match="one"):
        tf.assert_fair(PAIRS, PEOPLE, estimate="e", one="e", below=0.1)


# Bad input


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a limit on the side of better changes": (
        lambda: tf.check(tf.compare_models(tf.accuracy), below=0.02),
        "accuracy should rise, so give the limit of its change as `above=`, such as `above=-0.02`",
    ),
    "a limit on the side of smaller disparities": (
        lambda: tf.check(PARITY_CHANGES, above=-0.02),
        "demographic_parity should fall, so give the limit of its change as `below=`, such as `below=0.02`",
    ),
    "changes of signed differences": (
        lambda: tf.check(tf.compare_models(SELECTED.difference("g", to="a", signed=True)), below=0.02),
        "is best at 0, so that no change of it is better or worse by itself",
    ),
    "differences above a limit": (lambda: tf.check(PAIRS, above=0.1), "compared by differences, .* `below=`"),
    "ratios below a limit": (
        lambda: tf.check(tf.compare_groups(SELECTED, by="g", scale="ratio"), below=0.8),
        "compared by ratios, .* `above=`",
    ),
    "ratios above more than 1": (
        lambda: tf.check(tf.compare_groups(SELECTED, by="g", scale="ratio"), above=1.25),
        "the limit of a ratio lies between 0 and 1, such as `above=0.8`, not 1.25",
    ),
    "no limit": (lambda: tf.check(PAIRS), "needs one limit"),
    "two limits": (lambda: tf.check(PAIRS, below=0.1, above=0.8), "needs one limit"),
    "a negative limit of differences": (lambda: tf.check(PAIRS, below=-0.1), "below"),
    "a limit that is no number": (lambda: tf.check(tf.compare_models(tf.accuracy), above=math.nan), "above"),
    "another effect of groups outside": (lambda: tf.check(PAIRS, below=0.1, outside="ignore"), "outside"),  # pyright: ignore[reportArgumentType] - a slip
    "a stored result with a confidence": (
        lambda: tf.check(PAIRS(PEOPLE, estimate="e"), below=0.1, conf_level=0.9), "does not accept `conf_level`",
    ),
    "a stored result without limits": (
        lambda: tf.check(PAIRS(PEOPLE, estimate="e").drop(".lower"), below=0.1), "the result has no .*lower",
    ),
    "a confidence level of calls": (
        lambda: tf.check(PAIRS, below=0.1)(PEOPLE, estimate="e", conf_level=0.9), "conf_level",
    ),
    "one model": (lambda: tf.assert_fair(PARITY_CHANGES, models(), truth="y", one="one", below=0.1), "other"),
    "no data": (lambda: tf.assert_fair(PAIRS, below=0.1), "takes the data in the same call"),
    "a limit beside a gate": (
        lambda: tf.assert_fair(tf.check(PAIRS, below=0.1), PEOPLE, estimate="e", below=0.2), "takes a gate as it is",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_gates_of_comparisons_are_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(tf.errors.TidyfairError, match=message):
        call()


# The command line


COMMAND = ["--truth", "y", "--pos-label", "yes", "--by", "race", "--one", "one", "--other", "other"]


@pytest.mark.parametrize("limit", [-0.05, -0.03, 0.0])
def test_command_and_python_give_the_same_verdicts_on_changes(
    limit: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = pl.Series("u", range(4000)).hash(7) % 100
    data = models(0.5).with_columns(other=pl.when(random < 6).then(pl.lit("no")).otherwise("one"))
    metrics = (tf.accuracy, tf.sens, tf.demographic_parity_ratio("race", min_n=30))
    conditions = [f"change in {name} < {limit}" for name in ("accuracy", "sens", "demographic_parity_ratio(race)")]
    flags = [part for condition in conditions for part in ("--fail-if", condition)]
    code, out, _ = called(capsys, "compare", written(data, tmp_path), *COMMAND, *flags, "--json", "-")
    verdicts = {row["metric"]: row for row in json.loads(out)["verdicts"]}
    gate = tf.check(tf.compare_models(*metrics), above=limit)
    expected = gate(data, **CALL).to_dicts()
    assert len(verdicts) == len(expected) == 3
    for row in expected:
        of_command = verdicts[row[".metric"]]
        assert of_command["verdict"] == row[".verdict"]
        assert (of_command["lower"], of_command["upper"]) == pytest.approx((row[".lower"], row[".upper"]))
    found = {row[".verdict"] for row in expected}
    assert code == (3 if FAIL in found else 4 if UNSURE in found else 0)


def test_command_states_groups_outside_as_python_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["compare", written(models(), tmp_path), *COMMAND, "--fail-if", "change in demographic_parity(race) > 0.1"]
    assert called(capsys, *call)[0] == 4
    code, out, _ = called(capsys, *call, "--outside", "state", "--json", "-")
    assert code == 0
    (row,) = json.loads(out)["verdicts"]
    assert (row["verdict"], row["groups_outside"]) == (PASS, ["null"])


def test_audits_of_the_command_line_hold_or_state_groups_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["audit", written(people({**ALIKE, "c": (20, 20)}), tmp_path), "--estimate", "e", "--pos-label", "1"]
    call += ["--by", "g", "--fail-if", "demographic_parity(g) > 0.1"]
    assert called(capsys, *call)[0] == 4
    code, out, _ = called(capsys, *call, "--outside", "state")
    assert code == 0
    assert "demographic_parity(g) is not about c (" in " ".join(out.split())
    # of a gate that fails, nothing is held back by groups that are stated
    call[-1] = "demographic_parity(g) > 0.001"
    assert "cannot pass without c (" in called(capsys, *call)[1]
    code, out, _ = called(capsys, *call, "--outside", "state")
    assert (code, "cannot pass without" in out) == (4, False)


@pytest.mark.parametrize(("condition", "expected"), [("four_fifths(g)", 3), ("selection_rate_ratio(g, to=a) < 0.8", 3)])
def test_conditions_of_rules_and_references_judge_as_gates_do(
    condition: str, expected: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--estimate", "e", "--pos-label", "1", "--by", "g", "--fail-if", condition, "--json", "-"]
    code, out, _ = called(capsys, "audit", written(PEOPLE, tmp_path), *call)
    assert code == expected
    (row,) = json.loads(out)["verdicts"]
    gate = tf.four_fifths("g") if condition.startswith("four") else tf.check(SELECTED.ratio("g", to="a"), above=0.8)
    (of_python,) = gate(PEOPLE, estimate="e").to_dicts()
    assert (row["lower"], row["upper"]) == pytest.approx((of_python[".lower"], of_python[".upper"]))
    assert (row["estimate"], row["limit"], row["verdict"]) == (pytest.approx(0.6), 0.8, FAIL)


# pytest


def test_fixture_judges_comparisons_and_junit_has_their_verdicts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "160")
    PEOPLE.write_parquet(pytester.path / "people.parquet")
    people({**ALIKE, None: (220, 220)}).write_parquet(pytester.path / "alike.parquet")
    changed(150, 50).write_parquet(pytester.path / "models.parquet")
    pytester.makepyfile(
        test_of_comparisons="""
import polars as pl
import tidyfair as tf

def test_pairs(fairness):
    pairs = tf.inference.pairwise(tf.selection_rate.difference("g"))
    fairness(pairs, pl.read_parquet("people.parquet"), estimate="e", below=0.1)

def test_reference(fairness):
    beside = tf.compare_groups(tf.selection_rate, by="g", to="a")
    fairness(beside, pl.read_parquet("alike.parquet"), estimate="e", below=0.1, strict=True, outside="state")

def test_metric(fairness):
    data = pl.read_parquet("alike.parquet")
    fairness(tf.demographic_parity("g"), data, estimate="e", below=0.1, strict=True, outside="state")

def test_held(fairness):
    data = pl.read_parquet("alike.parquet")
    fairness(tf.demographic_parity("g"), data, estimate="e", below=0.1, strict=True)

def test_change(fairness):
    models = pl.read_parquet("models.parquet")
    call = {"one": "one", "other": "other", "labels": [0, 1], "pos_label": 1}
    fairness(tf.compare_models(tf.accuracy), models, "y", **call, above=-0.1)
"""
    )
    plugin = ("-p", "tidyfair.integrations.pytest_plugin", "-W", "ignore::tidyfair.errors.UnknownGroupWarning")
    result = pytester.runpytest_inprocess(*plugin, "--junitxml=junit.xml")
    result.assert_outcomes(passed=3, failed=2)
    text = (pytester.path / "junit.xml").read_text("utf-8")
    found = dict(re.findall(r'<property name="([^"]+)" value="([^"]+)"', text))
    pairs = by_hand(differences_of(list(itertools.combinations(COUNTS, 2))), -0.1, 0.1)
    for (one, other), verdict in pairs.items():
        assert found[f"selection_rate(g) group={one} other={other} verdict"] == verdict
    assert found["selection_rate(g) group=b verdict"] == PASS
    assert not any("group=a verdict" in name or "group=null" in name for name in found)
    of_metric = [name for name in found if name.startswith("demographic_parity(g)") and name.endswith("verdict")]
    assert {name: found[name] for name in of_metric} == {
        "demographic_parity(g) (not about 'null') unknown=220 (9.91 %) verdict": PASS,
        "demographic_parity(g) unknown=220 (9.91 %) verdict": UNSURE,
    }
    change = {key: found[f"accuracy {key}"] for key in ("value", "limit", "verdict")}
    assert change == {"value": "-0.05", "limit": "above -0.1", "verdict": PASS}
    result.stdout.fnmatch_lines(["test_of_comparisons.py::test_change * accuracy * -0.05 * above -0.1 * pass"])


def test_unknown_people_hold_changes_of_labels_and_of_scores_back_alike_together_and_alone() -> None:
    random = np.random.default_rng(0)
    score = random.random(400)
    event = random.random(400) < score
    other = np.clip(score + random.normal(0, 0.05, 400), 0, 1)
    # the models differ most on the people of unknown sex
    other[:12] = 1 - other[:12]
    sexes = [None] * 12 + random.choice(["f", "m"], 388).tolist()
    rows = pl.DataFrame(
        {
            "sex": sexes,
            "y": event.astype(int),
            "s": score,
            "t": other,
            "p": (score > 0.5).astype(int),
            "q": (other > 0.5).astype(int),
        }
    )
    labels = tf.compare_models(tf.accuracy.difference("sex")).paired(rows, "y", one="p", other="q")
    scores = tf.compare_models(tf.roc_auc.difference("sex")).paired(rows, "y", one="s", other="t")
    limits: Any = {("accuracy_difference", "sex"): ("below", 0.2), ("roc_auc_difference", "sex"): ("below", 0.05)}
    both = judged_changes([labels, scores], limits, 0.95)
    assert both[".verdict"].to_list() == [PASS, UNSURE]
    alone = judged_changes([scores], limits, 0.95)
    assert alone[".verdict"].to_list() == [UNSURE]
