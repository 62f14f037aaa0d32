"""Every number that torchmetrics computed on our data, by the calls on the page "Coming from torchmetrics".

Where we differ by design, torchmetrics' number follows from our values of the groups by one of `RULES`, which
`references/deviations.md` explains.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
import pytest
from conftest import check_every, deviations, records, reference_data, script

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

page = script("coming_from/torchmetrics.py")
FUNCTIONS = page.ROWS["functional.classification"]
CLASSES = page.ROWS["classification"]
CODES = {
    "race": {"alpha": 0, "beta": 1, "gamma": 2, "rare": 3},
    "age_band": {"18-34": 0, "35-54": 1, "55+": 2},
}
ROWS = 1000
"""No data have more."""
SHARES = ("true_positive_share", "false_positive_share", "true_negative_share", "false_negative_share")
"""In the order of its statistics."""
RATES = {"DP": "selection_rate", "EO": "sens"}
RATIOS = {"DP": "demographic_parity_ratio", "EO": "equal_opportunity_ratio"}
HOLES = "y_true, -1 where row % 7 == 3"
OWN = {
    "demographic_parity with a target": "the truth is not read",
    "task='all' without target": "an error that says what is missing",
    "unknown task": "an argument of its own",
    "int32 groups": "groups of any kind",
    "groups are {0, 2}: identifiers are positions, not labels": "groups of any values",
    "groups are {0, 5}": "groups of any values",
    "groups are {5, 6}": "groups of any values",
    "num_groups=1 with two groups (max == num_groups passes)": "an argument of its own",
    "target has -1 and ignore_index=None": "an error that names the labels",
    "preds int with value 2": "three labels, compared as such",
    "threshold = 1.5": "a cut that no score reaches",
    "score equal to the threshold counts as not selected": "selected here",
    "one logit outside [0,1] turns the whole tensor into logits": "an error that offers sigmoid",
    "nobody selected": "0/0 is null",
    "one group only": "as here",
    "second batch lacks group 1: its group 2 rows are booked on group 1": "merged by value",
    "num_groups larger than the groups seen": "groups are those seen",
    "batch with more groups than num_groups": "groups are those seen",
    "compute before update": "there is nothing to compute",
}
"""Cases about torchmetrics' own arguments, and what becomes of them here; tests are below."""
EVERY = records("torchmetrics")
RECORDS = [record for record in EVERY if "case" not in record["params"]]
CASES = {(record["function"], record["params"]["case"]): record for record in EVERY if "case" in record["params"]}

Ratio: TypeAlias = "tuple[float | None, str | None, str | None]"
"""The value, and the groups with the smallest and the largest rate."""
Values: TypeAlias = "dict[str, Ratio | list[float | None]]"
"""The ratios by their kind, or the shares by group."""


@dataclass(frozen=True)
class Call:
    """One call of ours for all features."""

    data: str
    preds: str
    threshold: float | None
    target: str | None
    ignore_index: int | None
    batch_size: int | None


@cache
def data(name: str) -> pl.DataFrame:
    codes = {column: pl.col(column).replace_strict(levels, return_dtype=pl.Int64) for column, levels in CODES.items()}
    frame = reference_data(name).with_row_index("row").with_columns(race_code=codes["race"], age_code=codes["age_band"])
    return frame.with_columns(
        race_code_rev=3 - pl.col("race_code"),
        logit=(pl.col("score") / (1 - pl.col("score"))).log(),
        holes=pl.when(pl.col("row") % 7 == 3).then(-1).otherwise("y_true"),
        zeros=0,
    )


def call_of(record: dict[str, Any]) -> Call:
    params = record["params"]
    threshold = None if params["preds"] == "int y_pred" else params["threshold"]
    # its demographic parity reads a target of zeros
    return Call(
        record["data"], params["preds"], threshold, params.get("target"), params["ignore_index"],
        params.get("batch_size"),
    )  # fmt: skip


def kinds_of(record: dict[str, Any]) -> list[str]:
    """Its ratios: DP, EO or both; none for shares."""
    function, task = record["function"].removeprefix("functional."), record["params"].get("task", "")
    if function in {"BinaryGroupStatRates", "binary_groups_stat_rates"}:
        return []
    return ["DP", "EO"] if task == "all" else ["DP"] if "demographic_parity" in {function, task} else ["EO"]


def truth_of(call: Call) -> str | None:
    if call.target is None:
        return None if call.ignore_index is None else "zeros"
    return {"y_true": "y_true", HOLES: "holes"}[call.target]


def predicted(call: Call) -> dict[str, Any]:
    """The predictions of a call on a frame."""
    if call.preds == "int y_pred":
        return {"estimate": "y_pred"}
    return {
        "probs": "score" if call.preds == "float score" else tf.calibration.sigmoid("logit"),
        "threshold": call.threshold,
    }


def kept(call: Call) -> pl.DataFrame:
    """The rows that are not ignored."""
    frame, truth = data(call.data), truth_of(call)
    return frame if call.ignore_index is None or truth is None else frame.filter(pl.col(truth) != call.ignore_index)


def metrics(call: Call, *, shares: bool = False) -> tf.types.MetricSet:
    """The page's row for all features at once: that of both ratios where there is a truth, or that of the shares."""
    rows = CLASSES if call.batch_size else FUNCTIONS
    named = (rows[name] for name in rows if name.replace("_", "").lower().endswith("rates" if shares else "fairness"))
    row = next(named) if call.target else FUNCTIONS["demographic_parity"]
    return tf.metric_set(*(row(feature) for feature in features(call)))


def features(call: Call) -> list[str]:
    return ["sex", "race_code", "age_code", *(["race_code_rev"] if call.preds == "int y_pred" else [])]


def tally(call: Call, metric: tf.types.MetricSet) -> Any:
    """The tallies of the batches added up."""
    batches = kept(call).group_by(pl.col("row") // call.batch_size, maintain_order=True)
    return sum(metric.tally(batch, truth_of(call), **predicted(call)) for _, batch in batches)


@cache
def ratios(call: Call) -> dict[tuple[str, str], Ratio]:
    """Ratios by metric and feature: of batches, of a frame where there are logits, of arrays where not."""
    metric, frame, truth, given = metrics(call), data(call.data), truth_of(call), predicted(call)
    quiet: dict[str, Any] = {"on_undefined": "ignore", "explain": True}
    if call.batch_size:
        result = metric.compute(tally(call, metric), **quiet)
    elif call.preds == "logit(score)":
        result = metric(kept(call), truth, **given, **quiet)
    else:
        arrays = {role: frame[what].to_numpy() if isinstance(what, str) else what for role, what in given.items()}
        by = {feature: frame[feature].to_numpy() for feature in features(call)}
        known = None if truth is None else frame[truth].to_numpy()
        result = metric.arrays(known, by=by, ignore_index=call.ignore_index, **arrays, **quiet)
    rows = result.select(".metric", ".by", ".estimate", ".group_min", ".group_max").rows()
    return {(metric, by): (value, low, high) for metric, by, value, low, high in rows}


Groups: TypeAlias = "dict[tuple[str, str], dict[str, tuple[float | None, int]]]"
"""By metric and feature: the value and the denominator of each group."""


@cache
def shares(call: Call) -> Groups:
    metric = metrics(call, shares=True)
    if call.batch_size:
        return by_metric(metric.compute_by_group(tally(call, metric), on_undefined="ignore"))
    return by_metric(metric.by_group(kept(call), truth_of(call), **predicted(call), on_undefined="ignore"))


def by_metric(result: pl.DataFrame) -> Groups:
    groups: Groups = {}
    for metric, by, group, value, size in result.select(".metric", ".by", ".group", ".estimate", ".denominator").rows():
        groups.setdefault((metric, by), {})[group] = (value, size)
    return groups


def ours(record: dict[str, Any]) -> Values:
    call, kinds, feature = call_of(record), kinds_of(record), record["params"]["groups"]
    if not kinds:
        result = [shares(call).get((share, feature), {}) for share in SHARES]
        return {group: [item[group][0] for item in result] for group in result[0]}
    return {kind: ratios(call)[RATIOS[kind], feature] for kind in kinds}


def theirs(record: dict[str, Any]) -> Values:
    value: dict[str, Any] = record["value"]
    if not kinds_of(record):
        return {
            group.removeprefix("group_"): [None if item == "NaN" else item for item in shares]
            for group, shares in value.items()
        }
    return {(named := key.split("_"))[0]: (item, named[1], named[2]) for key, item in value.items()}


def same(one: Values, other: Values) -> bool:
    return one.keys() == other.keys() and all(
        len(one[name]) == len(other[name]) and all(map(equal, one[name], other[name])) for name in one
    )


def equal(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)  # single precision
    return one == other


# torchmetrics' rules, applied to our values


@cache
def by_batch(call: Call, *, shares: bool) -> list[Groups]:
    """The rates, or the shares, of the groups in each batch; without batches, in the one that all rows are."""
    frame = kept(call).with_columns(batch=pl.col("row") // (call.batch_size or ROWS))
    result = metrics(call, shares=shares).by_group(
        frame, truth_of(call), **predicted(call), group_by="batch", on_undefined="ignore"
    )
    return [by_metric(part) for _, part in result.group_by("batch", maintain_order=True)]


def groups_in_batches(call: Call, feature: str) -> list[list[str]]:
    """The groups that each batch has, counted with the rows that are ignored."""
    batches = data(call.data).group_by(pl.col("row") // (call.batch_size or ROWS), maintain_order=True)
    return [[str(group) for group in batch[feature].unique().sort()] for _, batch in batches]


def ratio(slots: Sequence[float]) -> Ratio:
    """Its ratio of rates: the first on ties, and 0 for 0/0."""
    low, high = min(slots), max(slots)
    return (low / high if high else 0.0, str(slots.index(low)), str(slots.index(high)))


def all_ignored(record: dict[str, Any]) -> Values:
    return dict.fromkeys(kinds_of(record), (0.0, "0", "0"))


def by_position(record: dict[str, Any]) -> Values:
    """In a batch that lacks a group the following ones are booked one slot lower."""
    call, kinds, feature = call_of(record), kinds_of(record), record["params"]["groups"]
    slots = range(record["params"]["num_groups"])
    result: dict[str, list[float]] = {}
    for metric in [RATES[kind] for kind in kinds] or SHARES:
        sums = [[0.0, 0] for _ in slots]
        for batch, groups in zip(by_batch(call, shares=not kinds), groups_in_batches(call, feature), strict=True):
            for slot, group in enumerate(groups):
                value, denominator = batch[metric, feature].get(group, (None, 0))
                sums[slot][0] += (value or 0) * denominator
                sums[slot][1] += denominator
        result[metric] = [part / whole if whole else 0.0 for part, whole in sums]
    if kinds:
        return {kind: ratio(result[RATES[kind]]) for kind in kinds}
    return {str(slot): [result[share][slot] for share in SHARES] for slot in slots}


def zero_for_undefined(record: dict[str, Any]) -> Values:
    (whole,) = by_batch(replace(call_of(record), batch_size=None), shares=False)
    slots, feature = range(record["params"]["num_groups"]), record["params"]["groups"]
    rates = {kind: whole[RATES[kind], feature] for kind in kinds_of(record)}
    return {kind: ratio([item.get(str(slot), (None, 0))[0] or 0.0 for slot in slots]) for kind, item in rates.items()}


def nan_for_absent(record: dict[str, Any]) -> Values:
    absent: list[float | None] = [None] * len(SHARES)
    slots = map(str, range(record["params"]["num_groups"]))
    return {slot: ours(record).get(slot, absent) for slot in slots}


RULES: dict[str, Callable[[dict[str, Any]], Values]] = {
    "all_ignored": all_ignored,
    "nothing_defined": zero_for_undefined,
    "zero_for_undefined": zero_for_undefined,
    "nan_for_absent": nan_for_absent,
    "by_position": by_position,
}


@cache
def rules(function: str, data: str) -> dict[str, str]:
    """The rules by which torchmetrics has other values than we, by record."""
    asked = [record for record in RECORDS if (record["function"], record["data"]) == (function, data)]
    return {record["id"]: rule(record) for record in asked if not same(ours(record), theirs(record))}


def rule(record: dict[str, Any]) -> str:
    call, kinds = call_of(record), kinds_of(record)
    batches = groups_in_batches(call, record["params"]["groups"])
    if kept(call).is_empty():
        return "all_ignored"
    if any(groups != [str(slot) for slot in range(len(groups))] for groups in batches):
        return "by_position"
    if not kinds:
        return "nan_for_absent"
    return "nothing_defined" if ours(record)[kinds[-1]][0] is None else "zero_for_undefined"


@pytest.mark.parametrize("name", sorted({record["data"] for record in RECORDS}))
@pytest.mark.parametrize("function", sorted({record["function"] for record in RECORDS}))
def test_records_are_reproduced(function: str, name: str) -> None:
    result = rules(function, name)

    def check_record(record: dict[str, Any]) -> None:
        of_ours = RULES[result[record["id"]]](record) if record["id"] in result else ours(record)
        assert same(of_ours, theirs(record))

    asked = [record for record in RECORDS if (record["function"], record["data"]) == (function, name)]
    check_every({record["id"]: record for record in asked}, check_record)


def test_deviations_match_the_table() -> None:
    pairs = {(record["function"], record["data"]) for record in RECORDS}
    result = Counter(rule for function, name in pairs for rule in rules(function, name).values())
    assert result == deviations("torchmetrics")


def test_no_score_equals_a_threshold() -> None:
    # there the two libraries would select others: at least the threshold here, more than it there
    for name in {record["data"] for record in RECORDS}:
        scores = data(name).select(pl.col("score").cast(pl.Float32)).to_series()
        assert not scores.is_in(pl.Series([0.3, 0.5, 0.7], dtype=pl.Float32)).any()


def case(name: str) -> Any:
    """The value of the one record of a case, or the type of its error."""
    (record,) = (record for (_, case), record in CASES.items() if case == name)
    return record["value"] or record["error"]["type"]


def test_every_case_has_a_test() -> None:
    assert {name for _, name in CASES} == set(OWN)
    assert len(CASES) + len(RECORDS) == len(EVERY)


PARITY, OPPORTUNITY = FUNCTIONS["demographic_parity"]("group"), FUNCTIONS["equal_opportunity"]("group")
QUIET: dict[str, Any] = {"explain": True, "on_undefined": "ignore"}


def parity(groups: object, *, truth: object = None, **predictions: Any) -> dict[str, Ratio]:
    return pair(PARITY.arrays(truth, **predictions, by={"group": groups}, **QUIET), "DP")


def pair(result: pl.DataFrame, kind: str) -> dict[str, Ratio]:
    """The shape of its values."""
    ((value, low, high),) = result.select(".estimate", ".group_min", ".group_max").rows()
    return {kind: (value, low, high)}


@pytest.mark.parametrize(
    ("name", "times", "dtype", "pair"),
    [
        ("demographic_parity with a target", 1, pl.Int64, ("0", "1")),
        ("int32 groups", 1, pl.Int32, ("0", "1")),
        ("groups are {0, 2}: identifiers are positions, not labels", 2, pl.Int64, ("0", "2")),
        ("groups are {0, 5}", 5, pl.Int64, ("0", "5")),
    ],
)
def test_group_values_may_be_of_any_dtype(name: str, times: int, dtype: Any, pair: tuple[str, str]) -> None:
    frame = data("a400_weighted")
    groups = (frame["sex"] * times).cast(dtype)
    result = parity(groups.to_numpy(), truth=frame["y_true"], estimate=frame["y_pred"])
    one_of_two = case("demographic_parity with a target")["DP_0_1"]
    assert same(dict(result), {"DP": (one_of_two, *pair)})
    assert case(name) in ({"DP_0_1": one_of_two}, "ValueError")


def test_groups_are_those_in_the_data() -> None:
    frame = data("a400_weighted")
    row = CLASSES["BinaryGroupStatRates"]("sex")
    result = by_metric(row.by_group(frame, "y_true", "y_pred"))
    mine = [[result[share, "sex"][group][0] for share in SHARES] for group in ("0", "1")]
    one = CASES["functional.binary_groups_stat_rates", "num_groups=1 with two groups (max == num_groups passes)"][
        "value"
    ]
    more = CASES["BinaryGroupStatRates", "num_groups larger than the groups seen"]["value"]
    for theirs in (one, more):
        assert all(map(equal, mine[0] + mine[1], theirs["group_0"] + theirs["group_1"]))
    assert set(more) - set(one) == {"group_2", "group_3"}  # NaN there, nothing here
    assert set(map(str, more["group_2"] + more["group_3"])) == {"NaN"}
    # rates of 0 for groups that nobody is in
    both = CLASSES["BinaryFairness"]("sex")(frame, "y_true", "y_pred", explain=True)
    larger = CASES["BinaryFairness", "num_groups larger than the groups seen"]["value"]
    assert larger == {"DP_2_1": 0.0, "EO_2_1": 0.0}
    assert set(both.select(".group_min", ".group_max").rows()) == {("0", "1")}
    assert both[".estimate"].min() > 0


def test_later_batches_may_bring_new_groups() -> None:
    assert case("batch with more groups than num_groups") == "ValueError"
    frame, row = data("a400_weighted"), CLASSES["BinaryFairness"]("race_code")
    parts = [frame.filter(pl.col("race_code") < 2), frame.filter(pl.col("race_code") >= 2)]
    total: Any = sum(row.tally(part, "y_true", "y_pred") for part in parts)
    assert row.compute(total, explain=True).equals(row(frame, "y_true", "y_pred", explain=True))


def test_batches_merge_by_group_value() -> None:
    record = CASES["BinaryGroupStatRates", "second batch lacks group 1: its group 2 rows are booked on group 1"]
    params, row = record["params"], CLASSES["BinaryGroupStatRates"]("group")
    batches = zip(params["target"], params["preds"], params["groups"], strict=True)
    tallies = [
        row.tally(pl.DataFrame({"truth": truth, "estimate": estimate, "group": group}), "truth", "estimate")
        for truth, estimate, group in batches
    ]
    total: Any = sum(tallies)
    result = by_metric(row.compute_by_group(total))
    mine = {group: [result[share, "group"][group][0] for share in SHARES] for group in ("0", "1", "2")}
    assert mine == {"0": [0.5, 0.0, 0.0, 0.5], "1": [1.0, 0.0, 0.0, 0.0], "2": [0.0, 0.0, 0.0, 1.0]}
    assert record["value"]["group_1"] == [0.5, 0.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("name", "mine", "theirs"),
    [
        ("score equal to the threshold counts as not selected", (1.0, "0", "0"), {"DP_0_1": 0.0}),
        ("nobody selected", (None, None, None), {"DP_0_0": 0.0}),
        ("one group only", (1.0, "0", "0"), {"DP_0_0": 1.0}),
    ],
)
def test_small_cases_are_reproduced(name: str, mine: Ratio, theirs: dict[str, float]) -> None:
    params = CASES["functional.demographic_parity", name]["params"]
    scored = isinstance(params["preds"][0], float)
    predictions = (
        {"probs": params["preds"], "threshold": params["threshold"]} if scored else {"estimate": params["preds"]}
    )
    assert parity(params["groups"], **predictions) == {"DP": mine}
    assert case(name) == theirs


def test_cases_where_torchmetrics_raises() -> None:
    frame = data("a400_weighted")
    with pytest.raises(tf.errors.ColumnError, match="sens needs the column of true labels"):
        FUNCTIONS["binary_fairness"]("sex")(frame, estimate="y_pred")
    # a third label that nobody predicts usually marks what has no truth; who knows better says so
    with pytest.raises(tf.errors.LabelError, match=r"holds -1 in 57 rows.*`ignore_index=-1`"):
        OPPORTUNITY.arrays(frame["holes"], frame["y_pred"], by={"group": frame["sex"]})
    three = OPPORTUNITY.arrays(frame["holes"], frame["y_pred"], by={"group": frame["sex"]}, labels=[-1, 0, 1])
    assert three[".estimator"].to_list() == ["macro"]
    logit = CASES["functional.demographic_parity", "one logit outside [0,1] turns the whole tensor into logits"]
    params = logit["params"]
    with pytest.raises(tf.errors.ColumnError, match="Convert logits with `probs=sigmoid"):
        parity(params["groups"], probs=params["preds"], threshold=params["threshold"])
    with pytest.raises(tf.errors.LabelError, match="Which label"):
        PARITY.arrays(estimate=frame["y_pred"] + 1, by={"group": frame["sex"]})
    # nobody has a score of 1.5
    result = OPPORTUNITY.arrays(
        frame["y_true"], probs=frame["score"], threshold=1.5, by={"group": frame["sex"]}, **QUIET
    )
    assert pair(result, "EO") == {"EO": (None, None, None)}
    nothing: Any = sum([])
    with pytest.raises(tf.errors.ArgumentError, match="needs the result of `tally`"):
        PARITY.compute(nothing)
    names = (
        "task='all' without target", "target has -1 and ignore_index=None", "preds int with value 2", "threshold = 1.5",
    )  # fmt: skip
    assert [case(name) for name in names] == ["AttributeError", "RuntimeError", "RuntimeError", "ValueError"]


def test_every_function_has_a_row_on_the_page() -> None:
    functions = {record["function"] for record in EVERY}
    assert functions == {f"functional.{name}" for name in FUNCTIONS} | set(CLASSES)
    # what is asked for both ratios at once is what is asked for each
    assert list(FUNCTIONS["binary_fairness"]("sex")) == list(CLASSES["BinaryFairness"]("sex"))
    assert list(FUNCTIONS["binary_fairness"]("sex")) == [
        FUNCTIONS[name]("sex") for name in ("demographic_parity", "equal_opportunity")
    ]
