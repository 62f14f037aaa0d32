"""Every verb that answers the same question gives the same number, whichever groups the policy compares."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import tidyfair as tf
from tidyfair import inference
from tidyfair.calling.streaming import Accumulator
from tidyfair.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("few_draws")

LEVELS = ["White", "Black", "Asian", "Tiny", "Unknown", "Absent"]


def people(rows: int = 2_000) -> pl.DataFrame:
    """Groups of different rates; one is tiny, one unknown, one empty, and some people have none."""
    random = np.random.default_rng(20)
    race = random.choice(LEVELS[:5], rows, p=[0.5, 0.29, 0.18, 0.005, 0.025])
    rate = {"White": 0.6, "Black": 0.5, "Asian": 0.55, "Tiny": 0.2, "Unknown": 0.85}
    truth = random.random(rows) < 0.5
    chosen = random.random(rows) < np.array([rate[group] for group in race]) + 0.1 * truth
    other = np.where(random.random(rows) < 0.8, chosen, random.random(rows) < 0.5)
    data = pl.DataFrame({"race": race, "truth": truth, "chosen": chosen, "other": other})
    is_missing = pl.int_range(pl.len()) % 61 == 0
    race_or_null = pl.when(~is_missing).then("race").cast(pl.Enum(LEVELS)).alias("race")
    return data.with_columns(race_or_null, sex=pl.Series(random.choice(["f", "m"], rows)), day=pl.lit(1))


PEOPLE = people()
POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "large groups": {"min_n": 30},
    "frequent groups": {"min_share": 0.02},
    "unknown as a group": {"unknown": "group"},
    "unknown dropped": {"unknown": "drop", "min_n": 30},
    "other words": {"unknown_values": ["Tiny", "Asian"]},
}


def rates(policy: dict[str, Any], data: pl.DataFrame = PEOPLE) -> dict[str | None, float]:
    """The selection rates of the groups that a policy compares, by plain arithmetic."""
    treatment, values = policy.get("unknown", "apart"), policy.get("unknown_values", ["Unknown"])
    compared: dict[str | None, float] = {}
    for (group,), rows in data.group_by("race"):
        if treatment != "group" and (group is None or group in values):
            continue
        if len(rows) >= policy.get("min_n", 0) and len(rows) >= policy.get("min_share", 0) * len(data):
            compared[group] = float(rows["chosen"].mean())  # pyright: ignore[reportArgumentType] - a column of Booleans
    return compared


def one(frame: pl.DataFrame, column: str = ".estimate") -> float:
    return frame[column].item()


def command_line(path: Path, policy: dict[str, Any], *metrics: str) -> dict[str, float]:
    """The disparities of `tidyfair audit`, by metric."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in policy.items() if name != "unknown_values"]
    flags += [f"--unknown-value={value}" for value in policy.get("unknown_values", [])]
    flags += [] if "min_n" in policy else ["--min-n=0"]
    output = path.with_suffix(".json")
    arguments = ["audit", str(path), "--truth=truth", "--estimate=chosen", "--by=race", "--pos-label=true"]
    main([*arguments, *(f"--metric={metric}" for metric in metrics), *flags, "--interval=none", f"--json={output}"])
    results = json.loads(output.read_text())["results"]
    return {row["metric"]: row["estimate"] for row in results if row.get("by") == "race"}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_verbs_agree_on_the_largest_difference(policy: dict[str, Any]) -> None:
    parity = tf.demographic_parity("race", **policy)
    compared = rates(policy)
    expected = max(compared.values()) - min(compared.values())
    call: dict[str, Any] = {"estimate": "chosen"}
    gate = tf.check(parity, below=0.9)
    accumulator = Accumulator(tf.metric_set(parity), **call)
    for part in PEOPLE.iter_slices(700):
        accumulator.update(part)
    pairs = tf.inference.pairwise(parity)(PEOPLE, **call)
    against = tf.compare_groups(tf.selection_rate, by="race", to="lowest", **policy)(PEOPLE, **call)
    models = tf.compare_models(parity)(PEOPLE, one="chosen", other="other")
    at_once = tf.compare_models(parity, adjust="max_t")(PEOPLE, "truth", one="chosen", others=["other"])
    sensitivity = inference.verdict_sensitivity(gate)(PEOPLE, **call)
    periods = inference.compare_periods(parity, period="day")
    later = pl.concat([PEOPLE.with_columns(day=0), PEOPLE])
    answers = {
        "metric": one(parity(PEOPLE, **call)),
        "tally": one(parity.compute(parity.tally(PEOPLE, **call))),
        "comparison of a metric": one(tf.selection_rate.difference("race", **policy)(PEOPLE, **call)),
        "gate": one(gate(PEOPLE, **call)),
        "accumulator": one(accumulator.compute()),
        "pairs": float(pairs[".disparity"].abs().max()),  # pyright: ignore[reportArgumentType] - a column of numbers
        "groups beside the lowest": float(against[".disparity"].max()),  # pyright: ignore[reportArgumentType] - as above
        "models": one(models, ".one"),
        "many models": one(at_once, ".one"),
        "sensitivity": sensitivity[".estimate"][0],
        "monitor": one(inference.monitor(parity, below=0.9)(PEOPLE, **call)),
        "permutation test": one(inference.disparity_test(parity)(PEOPLE, **call, times=20)),
        "posterior": one(inference.probability(parity, below=0.9)(PEOPLE, **call)),
        "periods": one(periods(later, group_by="day", **call, times=20)),
        "values of groups": spread(parity.by_group(PEOPLE, **call)),
    }
    assert answers == pytest.approx(dict.fromkeys(answers, expected), abs=1e-12)


def spread(groups: pl.DataFrame) -> float:
    """The largest difference of the values of groups that are compared."""
    values = groups.filter(pl.col(".status") == "ok")[".estimate"]
    return float(values.max()) - float(values.min())  # pyright: ignore[reportArgumentType] - a column of numbers


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_verbs_agree_on_the_smallest_ratio(policy: dict[str, Any], tmp_path: Path) -> None:
    ratio = tf.demographic_parity_ratio("race", **policy)
    compared = rates(policy)
    expected = min(compared.values()) / max(compared.values())
    call: dict[str, Any] = {"estimate": "chosen"}
    table = tf.compare_groups(tf.selection_rate, by="race", to="highest", scale="ratio", **policy)(PEOPLE, **call)
    pairs = tf.inference.pairwise(ratio)(PEOPLE, **call)[".disparity"].to_list()
    filed = [tf.audit(name, PEOPLE, by="race", **call, **policy) for name in ("nyc_ll144", "eeoc_uniform_guidelines")]
    path = tmp_path / "people.parquet"
    PEOPLE.write_parquet(path)
    of_report: dict[str, Any] = {"by": "race", "metrics": ratio, "min_n": 0} | policy
    report = tf.report(PEOPLE, **call, **of_report).markdown()
    answers = {
        "metric": one(ratio(PEOPLE, **call)),
        "four fifths": one(tf.four_fifths("race", **policy)(PEOPLE, **call)),
        "comparison of a metric": one(tf.selection_rate.ratio("race", **policy)(PEOPLE, **call)),
        "groups beside the highest": float(table[".disparity"].min()),  # pyright: ignore[reportArgumentType] - a column of numbers
        "pairs": min(min(value, 1 / value) for value in pairs),
        "Local Law 144": smallest(filed[0]),
        "Uniform Guidelines": smallest(filed[1]),
        "monitor": one(inference.monitor(ratio, above=0.1)(PEOPLE, **call)),
        "command line": command_line(path, policy, "demographic_parity_ratio")["demographic_parity_ratio"],
    }
    assert answers == pytest.approx(dict.fromkeys(answers, expected), abs=1e-12)
    assert f"{expected:.3f}" in report


def smallest(filed: Any) -> float:
    """The smallest ratio of the first table of a named audit."""
    table = next(iter(filed.tables.values()))
    return float(table[".disparity"].min())


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_verdicts_agree(policy: dict[str, Any]) -> None:
    # a gate on the range of groups, and one on each pair of them
    call: dict[str, Any] = {"estimate": "chosen"}
    compared = rates(policy)
    widest = max(compared.values()) - min(compared.values())
    for limit in (widest / 3, widest * 3):
        for outside in ("hold", "state"):
            parity = tf.demographic_parity("race", **policy)
            verdict = one(tf.check(parity, below=min(limit, 0.99), outside=outside)(PEOPLE, **call), ".verdict")
            pairs = tf.check(tf.inference.pairwise(parity), below=min(limit, 0.99), outside=outside)(PEOPLE, **call)
            verdicts = set(pairs[".verdict"].drop_nulls())
            worst = next(text for text in ("fail", "not enough evidence", "pass") if text in verdicts)
            assert worst == verdict, (limit, outside)


def test_an_audit_shows_the_policy_of_its_call() -> None:
    filed = tf.audit("nyc_ll144", PEOPLE, estimate="chosen", by="race", min_share=0.02)
    (table, *_) = filed.tables.values()
    # the share of all rows, with those of people whose race is unknown
    assert table.select("race", ".share").rows_by_key("race")["White"] == [(PEOPLE["race"].eq("White").sum() / 2_000,)]
    assert not math.isnan(smallest(filed))


GROUPS: dict[str, list[object]] = {
    "null beside a text": [None, "null", "other"],
    "text with quotes": ['"null"', "null", None],
    "Boolean": [True, False, None],
    "duration": [timedelta(hours=1), timedelta(days=2, minutes=3), timedelta(0)],
    "date": [date(2024, 1, 1), date(2024, 2, 1), None],
    "datetime": [datetime(2024, 1, 1, 8), datetime(2024, 1, 1, 8, 0, 1, 500_000), None],  # noqa: DTZ001 - of no zone
    "time": [time(8), time(8, 30), None],
    "integer": [1, 2, 10],
    "Enum": ["low", "high", None],
    "text with a colon": ["a:b", "a", "b:a"],
}


def of_groups(values: list[object]) -> pl.DataFrame:
    """Rows of these groups, crossed with others of which some read alike."""
    random = np.random.default_rng(4)
    group = pl.Series([values[index] for index in random.integers(0, len(values), 600)])
    if values[0] == "low":
        group = group.cast(pl.Enum(["low", "middle", "high"]))
    chosen, other, truth = random.random((3, 600)) < 0.5
    crossed = pl.Series(random.choice(["c", "b:c"], 600))
    return pl.DataFrame({"group": group, "crossed": crossed, "truth": truth, "chosen": chosen, "other": other})


@pytest.mark.parametrize("by", [("group",), ("group", "crossed")], ids=["one feature", "two features"])
@pytest.mark.parametrize("values", GROUPS.values(), ids=GROUPS)
def test_verbs_write_the_same_groups(values: list[object], by: tuple[str, ...]) -> None:
    data = of_groups(values)
    call: dict[str, Any] = {"truth": "truth", "estimate": "chosen"}
    gap = tf.new_groupwise_metric(tf.accuracy, "gap", tf.difference())(*by, unknown="group")
    nearest = tf.new_groupwise_metric(tf.accuracy, "nearest", tf.difference(to="majority"))(*by, unknown="group")
    listed = gap.by_group(data, **call)
    expected = set(listed[".group"])
    assert len(expected) == data.n_unique(by)
    against = tf.compare_groups(tf.accuracy, by=[by], to="lowest", unknown="group")
    pairs = tf.inference.pairwise(gap)(data, **call)
    strata = inference.stratified(nearest, within="other")(data, **call)
    none_is_large = tf.equal_opportunity(*by, unknown="group", min_n=1_000)
    models = tf.compare_models(none_is_large, adjust="max_t")(data, "truth", one="chosen", others=["other"])
    groups = {
        "comparison": against(data, **call)[".group"],
        "pairs": [*pairs[".group"], *pairs[".other"]],
        "strata": [*strata[".group"], *strata[".other"]],
        "shrunken rates": inference.shrunken_rates(gap, data, **call)[".group"],
        "many models": models[".groups_left_out"][0],
    }
    if len(by) == 1:
        sensitivity = inference.verdict_sensitivity(tf.check(gap, below=0.9))(data, **call)
        assert set(sensitivity[".to"].drop_nulls()) <= expected
        groups["sensitivity"] = sensitivity[".group"].drop_nulls()
        search = inference.subgroup_search(tf.accuracy, by, unknown="group")(data, **call, times=20)
        certificate = inference.certify_subgroups(tf.accuracy, by, unknown="group").by_subgroup(data, **call)
        for name, table in {"search": search, "certificate": certificate}.items():
            groups[name] = [text.removeprefix("group=") for text in table[".subgroup"]]
        numbered = data.with_columns(pl.int_range(pl.len()).over("group").alias("pair")).filter(pl.col("pair") < 100)
        pairs = tf.inference.paired_groups(tf.accuracy, by=by[0], pair="pair", unknown="group")
        table = pairs(numbered.with_columns(truth=True), **call)
        groups["matched pairs"] = [*table[".group"], *table[".other"]]
    assert {name: set(texts) for name, texts in groups.items()} == dict.fromkeys(groups, expected)


def test_groups_keep_their_names_where_others_are_left_out() -> None:
    # the text "null" is compared, and missing values are not; in the second fold nothing is missing
    policy: dict[str, Any] = {"unknown_values": ["other"]}
    group = pl.Series(["null", None, "other", "x"] * 100 + ["null", "x"] * 200)
    random = np.random.default_rng(1)
    chosen, other = random.random((2, 800)) < 0.5
    data = pl.DataFrame({"group": group, "truth": True, "chosen": chosen, "other": other})
    data = data.with_columns(fold=pl.int_range(pl.len()) // 400, pair=pl.int_range(pl.len()).over("group"))
    call: dict[str, Any] = {"truth": "truth", "estimate": "chosen"}
    gap = tf.new_groupwise_metric(tf.accuracy, "gap", tf.difference())("group", **policy)
    expected = {'"null"', "x"}
    listed = gap.by_group(data, **call).filter(pl.col(".status") == "ok")
    sensitivity = inference.verdict_sensitivity(tf.check(gap, below=0.9))(data, **call, group_by="fold")
    search = inference.subgroup_search(tf.accuracy, ["group"], **policy)(data, **call, group_by="fold", times=20)
    pairs = inference.paired_groups(tf.accuracy, by="group", pair="pair", **policy)(data, **call)
    groups = {
        "values of groups": listed[".group"],
        "sensitivity": sensitivity.filter(pl.col("fold") == 1)[".group"].drop_nulls(),
        "search": search.filter(pl.col("fold") == 1)[".subgroup"].str.strip_prefix("group="),
        "pairs": [*pairs[".group"], *pairs[".other"]],
    }
    assert {name: set(texts) for name, texts in groups.items()} == dict.fromkeys(groups, expected)


def measured() -> pl.DataFrame:
    """Measurements by two models in three groups, and weights."""
    random = np.random.default_rng(6)
    group = random.choice(["a", "b", "c"], 300, p=[0.5, 0.3, 0.2])
    truth = random.integers(1, 9, 300) + 0.5
    one, other = (truth + random.normal(0, spread, 300) + (group == "b") for spread in (2.0, 2.2))
    weight = random.integers(1, 5, 300) / 2
    yes, no = random.random((2, 300)) < 0.5
    unit = random.integers(0, 40, 300)
    return pl.DataFrame(
        {
            "group": group,
            "truth": truth,
            "one": one,
            "other": other,
            "weight": weight,
            "yes": yes,
            "no": no,
            "unit": unit,
        }
    )


MEASURED = measured()
GAPS: dict[str, Any] = {"truth": "truth", "estimate": "one"}
OF_NUMBERS: dict[str, tuple[int, Any]] = {
    # the power of the unit that results have, and the results
    "values": (1, lambda rows: tf.mae(rows, **GAPS, interval="auto", group_by="group")),
    "differences": (1, lambda rows: tf.mae.difference("group")(rows, **GAPS, interval="auto")),
    "differences of squares": (2, lambda rows: tf.mse.difference("group")(rows, **GAPS, interval="auto")),
    "differences to all": (2, lambda rows: tf.mse.difference("group", to="overall")(rows, **GAPS, interval="auto")),
    "groups beside all": (1, lambda rows: tf.compare_groups(tf.mae, by="group", to="overall")(rows, **GAPS)),
    "ratios to all": (0, lambda rows: ratios_to_all(rows, tf.mae)),
    "models": (1, lambda rows: models_of_numbers(rows, tf.mae)),
    "models of squares": (2, lambda rows: models_of_numbers(rows, tf.mse)),
    "pairs": (2, lambda rows: tf.inference.pairwise(tf.mse.difference("group"))(rows, **GAPS)),
    "test": (2, lambda rows: inference.disparity_test(tf.mse.difference("group"))(rows, **GAPS, times=99)),
}
OF_WEIGHTS: dict[str, Any] = {
    "values": lambda rows, **call: tf.mae(rows, **GAPS, interval="auto", **call),
    "differences": lambda rows, **call: tf.mae.difference("group")(rows, **GAPS, interval="auto", **call),
    "rates": lambda rows, **call: tf.sens.difference("group")(rows, "yes", "no", interval="auto", **call),
    "clusters": lambda rows, **call: tf.kap.difference("group")(
        rows, "yes", "no", interval="auto", cluster="unit", **call
    ),
    "groups beside all": lambda rows, **call: tf.compare_groups(tf.sens, by="group", to="overall", scale="ratio")(
        rows, "yes", "no", **call
    ),
    "models": lambda rows, **call: tf.compare_models(tf.mae, tf.mae.difference("group"))(
        rows, "truth", one="one", other="other", **call
    ),
    "test": lambda rows, **call: inference.disparity_test(tf.sens.difference("group"))(
        rows, "yes", "no", **call, times=99
    ),
}


def ratios_to_all(rows: pl.DataFrame, metric: tf.types.Metric) -> pl.DataFrame:
    table = tf.compare_groups(metric, by="group", to="overall", scale="ratio")(rows, **GAPS)
    return table.select(".disparity", ".lower", ".upper", ".p_value", ".p_adjusted")


def models_of_numbers(rows: pl.DataFrame, metric: tf.types.Metric) -> pl.DataFrame:
    return tf.compare_models(metric, metric.difference("group"))(rows, "truth", one="one", other="other")


def assert_same_but_for_the_unit(result: pl.DataFrame, other: pl.DataFrame, unit: float) -> None:
    for name in result.columns:
        if result[name].dtype.is_float():
            factor = 1 if name.startswith((".p_", ".n", ".effective", ".share")) else unit
            assert (result[name].is_null() == other[name].is_null()).all(), name
            in_unit = (other[name] / factor).drop_nulls().to_list()
            assert in_unit == pytest.approx(result[name].drop_nulls().to_list(), rel=1e-6, nan_ok=True), name
        else:
            assert result[name].equals(other[name]), name


@pytest.mark.parametrize("unit", [1e-12, 1e-30, 1e12])
@pytest.mark.parametrize("verb", OF_NUMBERS)
def test_numbers_in_any_unit_have_the_same_results(verb: str, unit: float) -> None:
    power, call = OF_NUMBERS[verb]
    scaled = MEASURED.with_columns(pl.col("truth", "one", "other") * unit)
    assert_same_but_for_the_unit(call(MEASURED), call(scaled), unit**power)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
@pytest.mark.parametrize("verb", OF_WEIGHTS)
def test_weights_in_any_unit_have_the_same_results(verb: str, unit: float) -> None:
    call = OF_WEIGHTS[verb]
    scaled = MEASURED.with_columns(pl.col("weight") * unit)
    result, other = (call(rows, case_weights="weight") for rows in (MEASURED, scaled))
    assert_same_but_for_the_unit(result, other, 1)
