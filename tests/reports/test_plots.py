"""Charts show what the frames of results say."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from itertools import combinations, cycle, pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
import vl_convert
from conftest import CHROMIUM, in_a_browser

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.reports.charts import Picture, lines
from tidyfair.reports.svg import themed_svg
from tidyfair.reports.theme import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

LOANS = lending(2_000)
DECIDED: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
LABELS: dict[str, Any] = {**DECIDED, "on_undefined": "ignore"}
SCORES: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
FAIR = tf.metric_set(tf.accuracy, tf.sens, tf.demographic_parity("race"), tf.equalized_odds("sex"))
APART = tf.metric_set(tf.demographic_parity("race"), tf.equalized_odds("sex"))
RATES = tf.new_groupwise_metric(tf.metric_set(tf.accuracy, tf.sens), "rates", tf.difference())
PROMPTS = pl.DataFrame({
    "prompt": [item for item in range(60) for _ in range(3)], "name": ["Anna", "Ben", "Cem"] * 60,
    "invited": [(item + name) % (2 + name) == 0 for item in range(60) for name in range(3)],
})  # fmt: skip
OTHER = (pl.col("score") > 0.4).replace_strict({True: "yes", False: "no"}, return_dtype=pl.String).alias("other")

STRICT = (pl.col("score") > 0.7).replace_strict({True: "yes", False: "no"}, return_dtype=pl.String).alias("strict")


def _models() -> Any:
    return tf.compare_models(FAIR)(LOANS, "repaid", one="approved", other=OTHER, pos_label="yes", times=20)


def _known_by_probability() -> Any:
    people = LOANS.with_columns(a=pl.col("score").round(1), b=1 - pl.col("score").round(1))
    with pytest.warns(tf.errors.ProxyWarning):
        return tf.inference.probabilistic_groups(tf.selection_rate, {"a": "a", "b": "b"})(
            people, estimate="approved", pos_label="yes"
        )


MADE: dict[str, Callable[[], Any]] = {
    "results": lambda: FAIR(LOANS, **LABELS),
    "intervals": lambda: FAIR(LOANS, **LABELS, interval="analytic"),
    "verdicts": lambda: tf.check(APART, below=0.1)(LOANS, **LABELS, times=50),
    "monitor": lambda: tf.inference.monitor(APART, below=0.1, groups=5)(LOANS, **DECIDED),
    "monitor by period": lambda: tf.inference.monitor(tf.demographic_parity("race"), below=0.1, period="fold")(
        LOANS, **DECIDED, group_by=["sex", "fold"]
    ),
    "tests": lambda: tf.inference.disparity_test(APART)(LOANS, **DECIDED, times=200),
    "groups": lambda: tf.metric_set(tf.accuracy, tf.sens, RATES("race")).by_group(LOANS, **LABELS, interval="exact"),
    "crossed groups": lambda: tf.demographic_parity("sex", "race").by_group(LOANS, **LABELS),
    "folds": lambda: FAIR(LOANS, **LABELS, group_by="fold"),
    "groups of folds": lambda: FAIR.by_group(LOANS, **LABELS, group_by="fold"),
    "means over folds": lambda: tf.inference.summarize(FAIR(LOANS, **LABELS, group_by="fold")),
    "thresholds": lambda: tf.threshold_curve(tf.metric_set(tf.sens, tf.roc_auc), [0.2, 0.5, 0.8])(LOANS, **SCORES),
    "groups over thresholds": lambda: tf.threshold_curve(tf.equalized_odds("race"), [0.2, 0.5]).by_group(
        LOANS, **SCORES
    ),
    "pairs": lambda: tf.inference.pairwise(tf.demographic_parity("race"))(LOANS, **DECIDED),
    "paired groups": lambda: tf.inference.paired_groups(tf.selection_rate, by="name", pair="prompt")(
        PROMPTS, estimate="invited"
    ),
    "strata": lambda: tf.inference.stratified(tf.demographic_parity("race"), within="age_band")(LOANS, **DECIDED),
    "worst groups": lambda: tf.inference.worst_groups(tf.demographic_parity("race"))(LOANS, **DECIDED),
    "models": _models,
    "several models": lambda: tf.compare_models(FAIR, margin=0.01)(
        LOANS, "repaid", one="approved", others={"late": OTHER, "strict": STRICT}, pos_label="yes", times=20
    ),
    "subgroups": lambda: tf.inference.subgroup_search(tf.selection_rate, ["sex", "race"])(LOANS, **DECIDED, times=20),
    "probability": lambda: tf.inference.probability(tf.demographic_parity("race"), below=0.1)(LOANS, **DECIDED),
    "roc": lambda: tf.roc_curve(LOANS, **SCORES, group_by="race"),
    "precision and recall": lambda: tf.pr_curve(LOANS, **SCORES),
    "gain": lambda: tf.gain_curve(LOANS, **SCORES, group_by="sex"),
    "lift": lambda: tf.lift_curve(LOANS, **SCORES, group_by="sex"),
    "risk and coverage": lambda: tf.abstention.risk_coverage_curve(LOANS, **SCORES, group_by="sex"),
    "feature": lambda: tf.inference.feature_curve(tf.sens, "score")(LOANS, **DECIDED, group_by="sex"),
    "calibration": lambda: tf.calibration.curve(LOANS, **SCORES, group_by="race"),
    "confusion matrix": lambda: tf.conf_mat(LOANS, "repaid", "approved"),
    "confusion matrices": lambda: tf.conf_mat(LOANS, "repaid", "approved", group_by="sex"),
    "comparison": lambda: tf.compare_groups(tf.selection_rate, by=["sex", "race"], scale="ratio")(
        LOANS, estimate="approved", pos_label="yes"
    ),
    "four fifths": lambda: tf.audit("eeoc_uniform_guidelines", LOANS, **DECIDED, by="race").tables["adverse_impact"],
    "standardized": lambda: tf.audits.standardized_differences(LOANS, "score", by="race", to="White"),
    "quantiles": lambda: tf.audits.quantile_ratios(
        LOANS, "weight", by=["sex", "race"], to={"sex": "male", "race": "White"}
    ),
    "ratios of pairs": lambda: tf.inference.pairwise(tf.selection_rate.ratio("race"))(LOANS, **DECIDED),
    "resamples of models": lambda: tf.inference.compare_resamples(
        tf.accuracy(LOANS, **LABELS, group_by="fold"),
        tf.accuracy(LOANS, "repaid", OTHER, pos_label="yes", group_by="fold"),
    ),
    "many models": lambda: tf.compare_models(tf.accuracy, tf.demographic_parity("race"), adjust="max_t")(
        LOANS.with_columns(OTHER), "repaid", one="approved", others=["other"], pos_label="yes"
    ),
    "known by probability": _known_by_probability,
    "certificate": lambda: tf.inference.certify_subgroups(tf.selection_rate, ["sex", "race"])(LOANS, **DECIDED),
    "halves": lambda: tf.inference.linear_subgroup(tf.selection_rate, ["score", "weight"])(LOANS, **DECIDED),
    "missing truths": lambda: tf.inference.missing_truth(LOANS, "repaid", "approved", by="sex", positive="yes"),
    "shrunken": lambda: tf.inference.shrunken_rates(tf.demographic_parity("race"), LOANS, **DECIDED),
    "smallest difference": lambda: tf.inference.smallest_difference({"a": 800, "b": 200}, 0.5, times=100),
    "periods": lambda: tf.inference.compare_periods(tf.demographic_parity("sex"), period="fold")(
        LOANS, **DECIDED, group_by="fold", times=20
    ),
    "change": lambda: tf.inference.compare_periods(tf.demographic_parity("sex"), period="late", search="change")(
        LOANS.with_columns(late=pl.col("approved") != "yes"),
        estimate="approved",
        pos_label="yes",
        group_by="late",
        times=20,
    ),
    "components": lambda: tf.inference.decompose(tf.sens, between="race", by=["sex", "age_band"])(
        LOANS, "repaid", "approved", pos_label="yes"
    ),
    "sensitivity of verdicts": lambda: tf.inference.verdict_sensitivity(tf.demographic_parity("race"), below=0.1)(
        LOANS, **DECIDED
    ),
    "decision curve": lambda: tf.audit(
        "clinical_tripod_ai", LOANS, **SCORES, by="sex", threshold=[0.1, 0.3, 0.5]
    ).tables["net_benefit"],
}


RESULTS: dict[str, Callable[[], Any]] = {name: cache(make) for name, make in MADE.items()}
"""Results, each made once."""


@cache
def _drawn_as(name: str, width: int) -> dict[str, Any]:
    chart = tf.autoplot(RESULTS[name](), width=width)
    # one width of each is checked by the schema of Vega-Lite, which takes longer than all else
    return chart.to_dict(validate=width == 896)


def specification(name: str, width: int = 896) -> dict[str, Any]:
    """The chart of a result as it is written, each made once."""
    return _drawn_as(name, width)


def layers_of(chart: Any) -> list[dict[str, Any]]:
    """Each layer of a chart with the rows that it draws, as `rows`, and the size of its panel."""
    written = chart if isinstance(chart, dict) else chart.to_dict()
    layers: list[dict[str, Any]] = []
    for panel in written["concat"]:
        for layer in panel["layer"]:
            data = layer.get("data", panel.get("data", written.get("data")))
            rows = written["datasets"][data["name"]]
            layers.append({**layer, "rows": rows, "width": panel["width"], "height": panel["height"]})
    return layers


def drawn(chart: Any) -> list[dict[str, Any]]:
    """The rows of the marks that a reader can point at."""
    return [row for layer in layers_of(chart) if "tooltip" in layer["encoding"] for row in layer["rows"]]


def texts_in(chart: Any) -> list[str]:
    """The texts within panels, each once."""
    texts: dict[str, None] = {}
    for layer in layers_of(chart):
        if layer["mark"]["type"] == "text":
            field = layer["encoding"]["text"]["field"]
            texts |= dict.fromkeys(row[field] for row in layer["rows"])
    return list(texts)


def keys_in(chart: Any) -> list[str]:
    """The entries of the legend."""
    scales = [layer["encoding"].get("color", {}) for layer in layers_of(chart)]
    return [key for colour in scales if colour.get("legend") for key in colour["scale"]["domain"]]


def domains(chart: Any, channel: str = "x") -> list[list[float]]:
    """The ends of the axes of panels, each once."""
    ends: dict[tuple[float, ...], None] = {}
    for layer in layers_of(chart):
        if "tooltip" in layer["encoding"]:
            ends[tuple(layer["encoding"][channel]["scale"]["domain"])] = None
    return [list(pair) for pair in ends]


_DRAWN_ACROSS = ("estimate", "lower", "upper", "limit", "expected_lower", "expected_upper", "hollow", "mean")
_DRAWN_DOWN = ("estimate", "lower", "upper", "limit", "expected_lower", "expected_upper")


@pytest.mark.parametrize("width", [240, 896])
@pytest.mark.parametrize("name", RESULTS)
def test_axes_hold_all_values_and_limits(name: str, width: int) -> None:
    for layer in layers_of(specification(name, width)):
        for channel, columns in (("x", _DRAWN_ACROSS), ("y", _DRAWN_DOWN)):
            encoded = layer["encoding"].get(channel, {})
            if "tooltip" not in layer["encoding"] or encoded.get("type") != "quantitative":
                continue
            low, high = encoded["scale"]["domain"]
            # of lines, intervals go up and down
            drawn = ("x",) if encoded["field"] == "x" else columns
            values = [row[column] for row in layer["rows"] for column in drawn if column in row]
            assert all(low <= float(value) <= high for value in values if value is not None), columns


WIDE = ("verdicts", "groups", "models", "groups over thresholds", "roc", "crossed groups", "monitor by period")
"""One of each shape of picture."""


@pytest.mark.parametrize(("name", "width"), [*((name, 240) for name in RESULTS), *((name, 896) for name in WIDE)])
def test_labels_of_axes_have_room(name: str, width: int) -> None:
    root = ET.fromstring(vl_convert.vegalite_to_svg(specification(name, width)))  # noqa: S314 - drawn here
    anchors = {"start": 0, "middle": 0.5, "end": 1}
    for group in root.iter():
        if "role-axis-label" not in group.get("class", ""):
            continue
        spans: list[tuple[float, float, float]] = []
        for text in group:
            if text.text and text.get("opacity") != "0":
                x, y = map(float, re.findall(r"-?[\d.]+", text.get("transform", ""))[:2])
                start = x - anchors[text.get("text-anchor", "middle")] * 6 * len(text.text)
                spans.append((y, start, start + 6 * len(text.text)))
        of_numbers = all(re.fullmatch(r"[\N{MINUS SIGN}\d.,]+", text.text or "") for text in group)
        assert len(spans) >= (2 if of_numbers else 1), name
        for (y, _, end), (other_y, start, _) in pairwise(spans):
            assert abs(y - other_y) >= 12 or end < start, name


def test_pictures_are_as_wide_as_asked() -> None:
    for name, width in zip(WIDE, cycle((350, 640, 896)), strict=False):
        written = themed_svg(tf.autoplot(RESULTS[name](), width=width), "a")
        assert float(re.findall(r'width="([\d.]+)"', written)[0]) == width, name
    with pytest.raises(tf.errors.ArgumentError, match="`width` is"):
        tf.autoplot(RESULTS["verdicts"](), width=100)


def test_titles_of_a_frontier_name_models_that_are_less_discriminatory_and_not_worse() -> None:
    choice = tf.compare_models(tf.accuracy, tf.demographic_parity("race"), adjust="max_t")
    models = [pl.col("approved").alias(name) for name in ("two", "three", "four")]
    found = choice(LOANS, "repaid", one=OTHER, others=models, pos_label="yes")

    def title(*verdicts: str) -> str:
        shown = found.with_columns(pl.Series(".verdict", verdicts))
        return str(tf.autoplot(shown, kind="frontier", width=800).to_dict()["title"]["text"])

    assert (
        title("worse", "not shown", "better", "better", "better", "better") == "three and four are less discriminatory"
    )
    assert title("worse", "equivalent", "better", "better", "better", "worse") == "three is less discriminatory"
    assert title("better", "better", "better", "worse", "worse", "not shown") == "Accuracy and disparities of models"


def test_wide_titles_are_one_line() -> None:
    for name in RESULTS:
        title = specification(name)["title"]["text"]
        assert isinstance(title, str), name
        assert title[0].isupper() or title[0].isdigit(), name


VALUES = {
    "results": ".estimate", "intervals": ".estimate", "verdicts": ".estimate", "tests": ".estimate",
    "crossed groups": ".estimate", "folds": ".estimate", "means over folds": ".mean", "pairs": ".disparity",
    "paired groups": ".disparity",
    "worst groups": ".estimate", "probability": ".probability", "monitor": ".estimate",
    "monitor by period": ".estimate",
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_charts_draw_every_value(name: str) -> None:
    result = RESULTS[name]()
    rows = drawn(tf.autoplot(result))
    assert sorted(row["estimate"] for row in rows) == sorted(result[VALUES[name]])
    wanted = ("lower", "upper", "expected_lower", *(["limit"] if ".verdict" in result.columns else []))
    ends = [end for end in wanted if f".{end}" in result.columns]
    for end in ends:
        assert sorted(row[end] for row in rows) == sorted(result[f".{end}"]), end


def test_thinned_curves_keep_their_area() -> None:
    curve = tf.roc_curve(lending(20_000), **SCORES)
    rows = drawn(tf.autoplot(curve))
    assert len(rows) < 1_000 < len(curve)
    points = (
        pl.DataFrame(rows).select(x=pl.col("x").cast(pl.Float64), y=pl.col("estimate").cast(pl.Float64)).sort("x", "y")
    )
    area = points.select(((pl.col("x") - pl.col("x").shift(1)) * (pl.col("y") + pl.col("y").shift(1)) / 2).sum()).item()
    assert area == pytest.approx(tf.roc_auc(lending(20_000), **SCORES)[".estimate"].item(), abs=2e-3)


def test_beside_draws_the_expected_range() -> None:
    tested = tf.inference.disparity_test(APART)(LOANS, **DECIDED, times=50)
    for result in (RESULTS["verdicts"](), APART(LOANS, **LABELS)):
        rows = drawn(tf.autoplot(result, beside=tested))
        assert [row["expected_lower"] for row in rows] == tested[".expected_lower"].to_list()


def test_group_chart_marks_the_overall_value() -> None:
    result = RESULTS["groups"]()
    rows = drawn(tf.autoplot(result))
    overall = dict(result.filter(pl.col(".by").is_null()).select(".metric", ".estimate").rows())
    assert {row["limit"] for row in rows} == set(overall.values())
    names = [text for text in texts_in(tf.autoplot(result)) if text.startswith("all rows")]
    assert names == [f"all rows {value:.3g}" for value in overall.values()]
    alone = tf.autoplot(tf.demographic_parity("race").by_group(LOANS, **LABELS))
    assert "limit" not in drawn(alone)[0]
    assert alone.to_dict()["title"]["subtitle"] == ["n in parentheses"]


def labels_of_groups(*metrics: Any) -> tuple[set[str], str]:
    """The labels of rows in a picture of groups, and its subtitle."""
    people = pl.DataFrame({"y": [1, 0, 0, 0, 1, 1], "p": [1, 0, 1, 0, 0, 1], "g": list("aaaabb")})
    chart = tf.autoplot(tf.metric_set(*metrics).difference("g").by_group(people, "y", "p"))
    return {row["what"] for row in drawn(chart)}, chart.to_dict()["title"].get("subtitle", [""])[0]


def test_labels_of_groups_count_the_rows_that_the_metric_is_a_share_of() -> None:
    assert labels_of_groups(tf.sens) == ({"a (1)", "b (2)"}, "n in parentheses")
    assert labels_of_groups(tf.accuracy, tf.selection_rate) == ({"a (4)", "b (2)"}, "n in parentheses")


def test_labels_of_comparisons_count_rows_only_where_all_of_them_count() -> None:
    def labels(metric: Any, **options: Any) -> set[str]:
        compared = tf.compare_groups(metric, by="sex", to="male")(LOANS, **DECIDED, **options)
        return {row["what"] for row in drawn(tf.autoplot(compared))}

    rows = dict(LOANS.group_by("sex").len().rows())
    events = dict(LOANS.filter(repaid="yes").group_by("sex").len().rows())
    assert labels(tf.selection_rate) == {f"{sex} ({count})" for sex, count in rows.items()}
    assert labels(tf.sens, explain=True) == {f"{sex} ({count})" for sex, count in events.items()}
    assert labels(tf.sens) == {"female", "male"}


def test_labels_shared_by_metrics_of_different_rows_have_no_count() -> None:
    labels, subtitle = labels_of_groups(tf.accuracy, tf.sens)
    assert labels == {"a", "b"}
    assert "parentheses" not in subtitle


def test_panels_of_a_metric_have_the_same_axis() -> None:
    apart = tf.metric_set(tf.sens.difference("sex"), tf.sens.difference("race"), tf.spec.difference("sex"))
    assert len(domains(tf.autoplot(apart.by_group(LOANS, **LABELS)))) == 2
    assert len(domains(specification("comparison"))) == 1
    assert len(domains(specification("quantiles"))) == 1
    over_cuts = tf.threshold_curve(tf.metric_set(tf.sens.difference("sex"), tf.sens.difference("race")), [0.3, 0.7])
    assert len(domains(tf.autoplot(over_cuts.by_group(LOANS, **SCORES)), "y")) == 1


def test_undefined_values_show_the_reason() -> None:
    people = pl.DataFrame({"y": [1, 0, 0, 0], "p": [1, 0, 1, 0], "g": list("aabb")})
    rows = drawn(tf.autoplot(tf.equal_opportunity("g").by_group(people, "y", "p", on_undefined="ignore")))
    assert [(row["what"], row["why"]) for row in rows] == [("a (1)", ""), ("b (0)", "zero denominator")]
    assert rows[1]["estimate"] is None


def test_groups_of_equal_text_keep_their_rows() -> None:
    people = pl.DataFrame({"p": [1, 0, 1, 1], "g": ["null", "null", None, None]})
    rows = drawn(tf.autoplot(tf.demographic_parity("g", unknown="group").by_group(people, estimate="p")))
    assert {(row["what"], row["estimate"]) for row in rows} == {('"null" (2)', 0.5), ("null (2)", 1.0)}


def test_groups_of_equal_text_are_distinct_in_lines_and_heat_maps() -> None:
    people = LOANS.with_columns(pl.col("race").cast(pl.String)).with_columns(
        race=pl.when(pl.col("race") == "White").then(pl.lit("null")).when(pl.col("race") != "Black").then("race")
    )
    curves = tf.threshold_curve(tf.demographic_parity("race"), [0.2, 0.5]).by_group(people, **SCORES)
    rows = drawn(tf.autoplot(curves))
    assert {row["series"] for row in rows} == {"Asian", "Hispanic", "Native", "null", '"null"'}
    assert len(rows) == 2 * 5
    rows = drawn(tf.autoplot(tf.demographic_parity("race", "sex").by_group(people, **LABELS)))
    assert len({(row["row"], row["column"]) for row in rows}) == len(rows) == 10
    assert {"null", '"null"'} <= {row["row"] for row in rows}
    rows = drawn(tf.autoplot(tf.roc_curve(people, **SCORES, group_by="race")))
    assert {"null", '"null"'} <= {row["series"] for row in rows}


def test_infinite_values_leave_the_others_drawn() -> None:
    likelihood = tf.new_groupwise_metric(tf.positive_likelihood_ratio, "plr", tf.difference())("a", "b")
    people = pl.DataFrame({"y": [1, 1, 0, 0] * 4, "p": [1, 0, 1, 0] * 3 + [1, 1, 0, 0], "a": list("xxxxyyyy") * 2})
    people = people.with_columns(b=pl.Series(["u"] * 8 + ["v"] * 8))
    rows = drawn(tf.autoplot(likelihood.by_group(people, "y", "p", on_undefined="ignore")))
    assert sorted(row["text"] for row in rows) == ["1.000", "1.000", "1.000", "\N{INFINITY}"]
    assert all(0 <= row["strength"] <= 1 for row in rows)
    folds = tf.positive_likelihood_ratio(people, "y", "p", group_by=["a", "b"], on_undefined="ignore")
    rows = drawn(tf.autoplot(folds))
    assert {row["mean"] for row in rows} == {None}


def test_outer_columns_may_be_named_like_curve_columns() -> None:
    people = LOANS.with_columns(sensitivity=pl.col("sex"), specificity=pl.col("fold"))
    rows = drawn(tf.autoplot(tf.accuracy(people, **LABELS, group_by=["sensitivity", "specificity"])))
    assert len(rows) == 20


def test_many_threshold_curves_are_thinned() -> None:
    people = LOANS.with_columns(part=pl.int_range(pl.len()) % 28)
    curves = tf.threshold_curve(tf.demographic_parity("part"), [step / 250 for step in range(251)])
    rows = drawn(tf.autoplot(curves.by_group(people, **SCORES)))
    assert len(rows) <= 5_000
    assert {row["panel"] for row in rows} == {"Selection rate"}


def test_subgroup_chart_keeps_order_of_searched_subgroups() -> None:
    result = RESULTS["subgroups"]()
    rows = drawn(tf.autoplot(result))
    searched = result.filter(pl.col(".status") == "ok").drop_nulls(".difference")
    assert [row["estimate"] for row in rows] == searched[".difference"].to_list()[:30]


def test_fold_chart_draws_intervals() -> None:
    result = FAIR(LOANS, **LABELS, group_by="fold", interval="auto", times=50)
    rows = drawn(tf.autoplot(result))
    assert [row["lower"] for row in rows] == result[".lower"].to_list()
    assert [row["what"] for row in rows[:2]] == ["fold 1", "fold 2"]
    assert {row["panel"] for row in rows} == {
        "Accuracy", "Sensitivity", "Demographic parity by race", "Equalized odds by sex"
    }  # fmt: skip


def test_fold_chart_draws_means_of_metrics_only() -> None:
    result = RESULTS["folds"]()
    rows = drawn(tf.autoplot(result))
    means = dict(result.filter(pl.col(".by").is_null()).group_by(".metric").agg(pl.col(".estimate").mean()).rows())
    assert {row["what"]: row["mean"] for row in rows} == {
        "Accuracy": pytest.approx(means["accuracy"]), "Sensitivity": pytest.approx(means["sens"]),
        "Demographic parity by race": None, "Equalized odds by sex": None,
    }  # fmt: skip


def test_model_chart_draws_change_and_interval() -> None:
    result = RESULTS["models"]()
    chart = tf.autoplot(result, models=("today", "challenger"))
    rows = drawn(chart)
    changes = [row for row in rows if "model" not in row]
    for name in ("one", "other", "lower", "upper"):
        assert [row[name] for row in changes] == result[f".{name}"].to_list()
    assert [row["estimate"] for row in changes] == result[".change"].to_list()
    assert {row["model"] for row in rows if "model" in row} == {"today", "challenger"}
    assert {"today", "challenger"} <= set(keys_in(chart))
    assert {"approved", "other"} <= set(keys_in(tf.autoplot(result)))
    unnamed = result.drop(".model_one", ".model_other")
    assert {"Model 1", "Model 2"} <= set(keys_in(tf.autoplot(unnamed)))
    one, other, change, low, high = result.select(".one", ".other", ".change", ".lower", ".upper").row(0)
    minus = str.maketrans("-", "\N{MINUS SIGN}")
    written = [
        f"{one:.3f} \N{RIGHTWARDS ARROW} {other:.3f}",
        f"{change:.3f}  ({low:.3f} to {high:.3f})".translate(minus),
    ]
    assert set(written) <= set(texts_in(tf.autoplot(result, width=896)))
    assert written[0] not in texts_in(tf.autoplot(result, width=560))
    assert written[1] not in texts_in(tf.autoplot(result, width=350))
    for models in ("ab", ("a",), ("a", "a"), ("a", 3)):
        with pytest.raises(tf.errors.ArgumentError, match="`models` are the names of two models"):
            tf.autoplot(result, models=models)  # pyright: ignore[reportArgumentType] - bad input


def test_differences_ratios_and_metrics_have_separate_panels() -> None:
    mixed = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"), tf.demographic_parity_ratio("sex"))
    rows = drawn(tf.autoplot(mixed(LOANS, **LABELS)))
    assert [row["panel"] for row in rows] == ["Metrics", "Differences", "Ratios"]
    rents = pl.DataFrame({"rent": [500.0, 700, 900, 650], "guess": [520.0, 690, 930, 600]})
    rows = drawn(tf.autoplot(tf.metric_set(tf.rmse, tf.rsq)(rents, "rent", "guess")))
    assert [row["panel"] for row in rows] == ["Root mean squared error", "R squared"]


def test_at_marks_a_threshold() -> None:
    curve = RESULTS["thresholds"]()
    marks = [
        [
            row["at"]
            for layer in layers_of(tf.autoplot(curve, at=at))
            if layer["mark"]["type"] == "rule"
            for row in layer["rows"]
        ]
        for at in (None, 0.6, 0.9)
    ]
    assert marks == [[], [0.6], [0.9]]
    titles = [layer["encoding"]["x"]["axis"]["title"] for layer in layers_of(tf.autoplot(curve, at=0.6))[:-2]]
    assert set(titles) == {"Threshold"}
    # a threshold beyond those of the result is in the picture too
    assert domains(tf.autoplot(curve, at=0.9))[0][1] >= 0.9
    for at, result, expected in (
        (0.5, RESULTS["results"](), "no list of them"),
        ("x", curve, "`at` is a finite number"),
    ):
        with pytest.raises(tf.errors.ArgumentError, match=expected):
            tf.autoplot(result, at=at)  # pyright: ignore[reportArgumentType] - bad input


def test_names_are_data_and_not_field_paths() -> None:
    odd = 'a.b[0] "<script>alert(1)</script>":c'
    people = LOANS.with_columns(pl.col("race").cast(pl.String).replace({"White": odd}).alias(odd))
    for result in (
        tf.demographic_parity(odd).by_group(people, **LABELS),
        tf.roc_curve(people, **SCORES, group_by=odd),
        tf.demographic_parity("sex")(people, **LABELS, group_by=odd),
    ):
        rows = drawn(tf.autoplot(result))
        actual = tf.autoplot(result).to_dict()
        fields = set(json.dumps(actual).split('"field": "')[1:])
        assert all(field.partition('"')[0].isidentifier() for field in fields)
        # a notebook gets them as part of a script, where they may not end it
        shown = odd.replace("<script", "\\x3cscript").replace("</", "\\x3c/")
        assert any(shown in str(value) for row in rows for value in row.values())


def test_long_names_are_shortened() -> None:
    long = "x" * 3_000
    people = LOANS.with_columns(
        pl.col("race").cast(pl.String) + long, b=f"{long}" + pl.col("sex").cast(pl.String) + long
    )
    chart = tf.autoplot(tf.roc_curve(people, **SCORES, group_by="b"))
    rows = drawn(chart)
    assert len({row["series"] for row in rows}) == people["b"].n_unique()
    assert all(len(row["series"]) < 250 for row in rows)
    assert len(chart.to_dict()["description"]) < 1_000
    # what is written is no wider than the picture
    for result in (tf.demographic_parity("b").by_group(people, **LABELS), tf.demographic_parity("b")(people, **LABELS)):
        assert 'width="350"' in themed_svg(tf.autoplot(result, width=350), "a")


def test_of_many_lines_the_lowest_and_the_highest_have_colours() -> None:
    curves = tf.threshold_curve(tf.demographic_parity("fold"), [0.2, 0.4, 0.6]).by_group(LOANS, **SCORES)
    means = curves.group_by(".group").agg(pl.col(".estimate").mean()).sort(".estimate")[".group"]
    chart = tf.autoplot(curves)
    assert {f"lowest: {means[0]}", f"highest: {means[-1]}", "8 others"} <= set(keys_in(chart))
    assert {row["series"] for row in drawn(chart)} == {means[0], means[-1]}
    lines = {row["series"] for layer in layers_of(chart) for row in layer["rows"] if "front" in row}
    assert len(lines) == 10
    with pytest.raises(tf.errors.ArgumentError, match=r"would draw 4\d panels; filter the result"):
        tf.autoplot(tf.calibration.curve(LOANS, **SCORES, group_by=["fold", "race"]))


def test_groups_over_thresholds_have_a_panel_for_each_metric() -> None:
    chart = tf.autoplot(RESULTS["groups over thresholds"]())
    rows = drawn(chart)
    assert {row["panel"] for row in rows} == {"Sensitivity", "Specificity"}
    assert {row["key"] for row in rows} == {row["series"] for row in rows} == set(LOANS["race"])
    for layer in layers_of(chart):
        scale = layer["encoding"]["color"]["scale"]
        assert len(set(scale["range"])) == len(scale["domain"]) == LOANS["race"].n_unique()


def test_decision_curves_have_treat_all_and_treat_none_as_lines_of_each_panel() -> None:
    chart = tf.autoplot(RESULTS["decision curve"]())
    rows = drawn(chart)
    assert {row["panel"] for row in rows} == {"Net benefit", "Standardized net benefit"}
    women = LOANS.filter(pl.col("sex") == "female")
    events = women["repaid"].eq("yes").mean()
    assert isinstance(events, float)
    for at in (0.1, 0.3, 0.5):
        treat_all = events - (1 - events) * at / (1 - at)
        (net,) = [row["dashed"] for row in rows if (row["panel"], row["series"], row["x"]) == (
            "Net benefit", "female", at)]  # fmt: skip
        (standardized,) = [row["dashed"] for row in rows if (row["panel"], row["series"], row["x"]) == (
            "Standardized net benefit", "female", at)]  # fmt: skip
        assert net == pytest.approx(treat_all, abs=1e-9)
        assert standardized == pytest.approx(treat_all / events, abs=1e-9)
    none = [layer for layer in layers_of(chart) if layer["mark"]["type"] == "rule" and layer["rows"] == [{"at": 0}]]
    assert len(none) == 2


def test_wide_bands_do_not_flatten_lines() -> None:
    points = [
        {"panel": "", "series": "a", "x": x, "estimate": 0.5 + x / 10, "lower": -40.0, "upper": 40.0}
        for x in (0.0, 1.0)
    ]
    picture = Picture(lines, pl.DataFrame(points), ["Lines"], x="x")
    low, high = sorted(domains(picture.finished(None, 640), "y")[0])
    assert 0.4 < low < 0.5
    assert 0.6 < high < 0.7


def test_bands_of_many_lines_are_left_out_and_the_picture_says_so() -> None:
    curves = tf.threshold_curve(tf.demographic_parity("race"), [0.2, 0.5, 0.8])
    chart = tf.autoplot(curves.by_group(LOANS, **SCORES, interval="exact"))
    assert not [layer for layer in layers_of(chart) if layer["mark"]["type"] == "area"]
    assert "more than 3 lines are drawn without" in str(chart.to_dict()["title"]["subtitle"])


def test_period_chart_draws_changes() -> None:
    months = LOANS.with_columns(month=pl.int_range(pl.len()) * 3 // pl.len())
    tested = tf.inference.compare_periods(tf.demographic_parity("sex"), period="month")
    result = tested(months, **DECIDED, group_by="month", times=50)
    rows = drawn(tf.autoplot(result))
    assert [row["estimate"] for row in rows] == result[".change"].to_list()
    assert [row["what"] for row in rows] == ["0 to 1", "1 to 2"]
    low, high = sorted(domains(tf.autoplot(result), "y")[0])
    assert low <= 0 <= high


def test_period_chart_tells_changes_beyond_chance_from_others() -> None:
    refused = (pl.col("sex") == "female") & (pl.int_range(pl.len()) >= 1_000)
    changed = LOANS.with_columns(
        month=pl.int_range(pl.len()) // 500,
        approved=pl.when(refused).then(pl.lit("no")).otherwise(pl.col("approved").cast(pl.String)),
    )
    tested = tf.inference.compare_periods(tf.demographic_parity("sex"), period="month")
    result = tested(changed, **DECIDED, group_by="month", times=200)
    is_sure = result.select(pl.coalesce(".p_adjusted", ".p_value") < 0.05).to_series().to_list()
    assert is_sure == [False, True, False]
    chart = tf.autoplot(result)
    assert [row["verdict"] == "beyond chance" for row in drawn(chart)] == is_sure
    assert set(keys_in(chart)) == {"beyond chance", "not beyond chance"}


def test_lists_of_top_k_are_lines() -> None:
    call: dict[str, Any] = {**SCORES, "on_undefined": "ignore"}
    lists: list[dict[str, Any]] = [{"top_k": [50, 300]}, {"top_fraction": [0.1, 0.5]}]
    for ways in lists:
        for result in (tf.sens(LOANS, **call, **ways), tf.equal_opportunity("sex").by_group(LOANS, **call, **ways)):
            rows = drawn(tf.autoplot(result))
            assert {row["x"] for row in rows} == set(next(iter(ways.values())))
            assert len(rows) == len(result)


@pytest.mark.parametrize("name", ["panel", "what", "outer", "estimate", "series", "recall", "a.b"])
def test_chart_takes_any_outer_column_name(name: str) -> None:
    people = LOANS.rename({"fold": name})
    rows = drawn(tf.autoplot(tf.demographic_parity("sex")(people, **LABELS, group_by=name)))
    assert {row["outer"] for row in rows} == {str(fold) for fold in range(1, 11)}
    if name != "recall":
        rows = drawn(tf.autoplot(tf.roc_curve(people.filter(pl.col(name) < 4), **SCORES, group_by=name)))
        assert {row["series"] for row in rows} == {"1", "2", "3"}
    days = LOANS.with_columns(days=pl.duration(days=pl.col("fold")))
    rows = drawn(tf.autoplot(tf.accuracy(days, **LABELS, group_by="days")))
    assert "1d" in {row["outer"] for row in rows}


def test_many_curves_are_thinned() -> None:
    people = lending(20_000).with_columns(part=pl.int_range(pl.len()) % 12)
    chart = tf.autoplot(tf.roc_curve(people, **SCORES, group_by="part"))
    lines = [row for layer in layers_of(chart) for row in layer["rows"] if "order" in row]
    assert len(lines) <= 5_000
    assert len({row["series"] for row in lines}) == 12
    assert chart.to_dict()["description"].startswith("ROC curves by part.")


def test_infinite_values_are_described() -> None:
    people = pl.DataFrame({"p": [1, 0, 0, 0], "y": [1, 0, 1, 0], "g": list("aabb")})
    apart = tf.new_groupwise_metric(tf.selection_rate, "apart", tf.aggregates.log_ratio())
    text = tf.autoplot(tf.metric_set(tf.selection_rate, apart("g"))(people, "y", "p")).to_dict()["description"]
    assert text.endswith("One value, 0.25 (Metrics, Selection rate). 1 is infinite, and not drawn.")


def test_crossed_groups_are_drawn_as_heat_map_or_dots() -> None:
    crossed = RESULTS["crossed groups"]()
    kinds = [{layer["mark"]["type"] for layer in layers_of(tf.autoplot(crossed, kind=kind))} for kind in (None, "dots")]
    assert ["rect" in types for types in kinds] == [True, False]
    # rows and columns come from the features, so that a colon in a value parts nothing
    people = LOANS.with_columns(pl.col("sex").cast(pl.String) + ":x")
    rows = drawn(tf.autoplot(tf.demographic_parity("sex", "race").by_group(people, **LABELS)))
    assert {row["column"] for row in rows} == {"female:x", "male:x"}
    assert {row["row"] for row in rows} == set(LOANS["race"])


def test_crossed_groups_with_intervals_have_a_panel_for_each_value() -> None:
    crossed = tf.demographic_parity("sex", "race").by_group(LOANS, **LABELS, interval="exact")
    chart = tf.autoplot(crossed)
    rows = drawn(chart)
    assert {row["panel"] for row in rows} == {"female", "male"}
    assert sorted(row["lower"] for row in rows) == sorted(crossed[".lower"])
    # they are compared on one scale
    assert len(domains(chart)) == 1


def test_autoplot_takes_pandas_and_pipes() -> None:
    result = FAIR(LOANS, **LABELS)
    expected = tf.autoplot(result).to_dict()
    assert tf.autoplot(result.to_pandas()).to_dict() == expected
    assert result.pipe(tf.autoplot).to_dict() == expected
    assert tf.autoplot(result, title="Mine").to_dict()["title"]["text"] == "Mine"


def test_charts_have_text_descriptions() -> None:
    text = tf.autoplot(RESULTS["results"]()).to_dict()["description"]
    assert re.match(
        r"Accuracy, sensitivity and 2 more\. 4 values from 0\.\d+ \(Differences, Equalized odds by sex\) "
        r"to 0\.\d+ \(Metrics, Sensitivity\)\.", text
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: tf.autoplot(pl.DataFrame({"a": [1]})), "draws results of tidyfair"),
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS).clear()), "has no rows"),
        (
            lambda: tf.autoplot(FAIR(LOANS, **LABELS), kind="pie"),  # pyright: ignore[reportArgumentType] - bad input
            "`kind=` must be 'dots', 'heat map' or 'frontier', not 'pie'",
        ),
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS), kind="heat map"), "two features that are crossed"),
        (lambda: tf.autoplot(RESULTS["pairs"](), beside=RESULTS["tests"]()), "drawn behind disparities"),
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS), beside=LOANS), "what `disparity_test"),
        (lambda: tf.autoplot(RESULTS["folds"](), beside=RESULTS["tests"]()), "not behind lines and strips"),
        (
            lambda: tf.autoplot(tf.demographic_parity("sex")(LOANS, **LABELS), beside=RESULTS["tests"]()),
            "none of the disparities of the result",
        ),
        (lambda: tf.autoplot(tf.catalogue()), "no picture of the columns"),
        (lambda: tf.autoplot(tf.accuracy.by_group(LOANS, **LABELS)), "these are of all rows"),
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS), title=3), "`title` is a text, not 3"),  # pyright: ignore[reportArgumentType] - bad input
        (lambda: tf.autoplot(3), "`data` is an int"),
    ],
)
def test_autoplot_rejects_other_frames(ask: Callable[[], Any], expected: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=expected):
        ask()


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_offline_browser_draws_every_chart(tmp_path: Path) -> None:
    charts = [json.dumps(specification(name)) for name in RESULTS]
    places = "".join(f'<div id="c{index}"></div>' for index in range(len(charts)))
    calls = "".join(f"vegaEmbed('#c{index}', {chart}, {{actions: false}});" for index, chart in enumerate(charts))
    bundle: str = vl_convert.javascript_bundle()  # pyright: ignore[reportCallIssue] - all of it, without a snippet
    script = bundle.replace("</script", "<\\/script")
    page = tmp_path / "charts.html"
    text = f"<!doctype html><meta charset=utf-8>{places}<script>{script}</script><script>{calls}</script>"
    page.write_text(text, "utf-8")
    drawn = in_a_browser(page, tmp_path / "charts.png")
    assert len(re.findall(r'<svg[^>]* class="marks"', drawn)) == len(charts)
    assert drawn.count(">Hispanic (") >= 2


def test_missing_altair_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(tf.errors.ArgumentError, match=r"pip install 'tidyfair\[plot\]'"):
        tf.autoplot(FAIR(LOANS, **LABELS))


def test_curves_and_changes_have_their_lines_of_reference() -> None:
    for name, title in (("roc", "chance"), ("gain", "chance"), ("calibration", "perfect calibration")):
        chart = tf.autoplot(RESULTS[name]())
        assert f"dashed: {title}" in " ".join(chart.to_dict()["title"]["subtitle"])
        for layer in layers_of(chart):
            assert layer["width"] == layer["height"]
        diagonals = [layer["rows"] for layer in layers_of(chart) if layer["mark"].get("strokeDash")]
        assert diagonals
        assert all(rows == [{"x": 0, "estimate": 0}, {"x": 1, "estimate": 1}] for rows in diagonals)
    at = {
        "pairs": 0,
        "paired groups": 0,
        "strata": 0,
        "models": 0,
        "results": 0,
        "comparison": 1,
        "standardized": 0,
        "quantiles": 1,
        "ratios of pairs": 1,
    }
    for name, value in at.items():
        layers = layers_of(specification(name))
        lines = [layer for layer in layers if layer["mark"]["type"] == "rule" and layer["rows"] == [{"at": value}]]
        assert lines, name
    scores = tf.metric_set(tf.calibration.in_the_large, tf.calibration.slope)(LOANS, **SCORES)
    layers = layers_of(tf.autoplot(scores))
    assert [layer["rows"] for layer in layers if layer["rows"] in ([{"at": 0}], [{"at": 1}])] == [
        [{"at": 0}],
        [{"at": 1}],
    ]


def test_calibration_has_intervals_where_rows_count_alike() -> None:
    rows = drawn(tf.autoplot(tf.calibration.curve(LOANS, **SCORES)))
    for row in rows:
        # Wilson's interval, from its quadratic equation
        for end in (row["lower"], row["upper"]):
            if 0 < end < 1:
                z = (row["estimate"] - end) / (end * (1 - end) / row["rows"]) ** 0.5
                assert abs(z) == pytest.approx(1.959964, abs=1e-4)
        assert row["lower"] <= row["estimate"] <= row["upper"]
    weighted = drawn(tf.autoplot(tf.calibration.curve(LOANS, **SCORES, case_weights="weight")))
    assert all("lower" not in row for row in weighted)


def test_missing_ends_of_intervals_are_arrows() -> None:
    values = tf.demographic_parity("race").by_group(LOANS, **LABELS, interval="exact")
    is_first = pl.int_range(pl.len()) == 0
    for end, shape in ((".lower", "triangle-left"), (".upper", "triangle-right")):
        chart = tf.autoplot(values.with_columns(pl.when(~is_first).then(end).alias(end)))
        arrows = [layer for layer in layers_of(chart) if layer["mark"].get("shape") == shape]
        assert [row["what"] for layer in arrows for row in layer["rows"]] == [drawn(chart)[0]["what"]]
        assert "arrows: intervals that go on" in str(chart.to_dict()["title"]["subtitle"])
        assert not [layer for layer in layers_of(tf.autoplot(values)) if layer["mark"].get("shape") == shape]


@pytest.mark.parametrize("name", ["intervals", "groups", "folds with intervals", "pairs", "thresholds with intervals"])
def test_intervals_without_any_upper_end_are_drawn(name: str) -> None:
    made: dict[str, Callable[[], Any]] = {
        **RESULTS,
        "folds with intervals": lambda: tf.accuracy(LOANS, **LABELS, group_by="fold", interval="analytic"),
        "thresholds with intervals": lambda: tf.sens(LOANS, **SCORES, threshold=[0.2, 0.5], interval="analytic"),
    }
    result = made[name]()
    open_above = tf.autoplot(result.with_columns(pl.lit(None, pl.Float64).alias(".upper")))
    assert "arrows: intervals that go on" in str(open_above.to_dict()["title"]["subtitle"])
    without = tf.autoplot(result.drop(".lower", ".upper"))
    assert "arrows" not in str(without.to_dict()["title"])


def test_models_without_a_value_are_drawn() -> None:
    result = RESULTS["models"]().with_columns(pl.col(".one", ".change", ".lower", ".upper") * None)
    assert tf.autoplot(result).to_dict()["concat"]


def test_confusion_matrix_shows_counts_and_shares_of_the_truth() -> None:
    counts = RESULTS["confusion matrix"]()
    chart = tf.autoplot(counts)
    rows = drawn(chart)
    assert [row["rows"] for row in rows] == counts[".n"].to_list()
    of_truth = dict(counts.group_by(".truth").agg(pl.col(".n").sum()).rows())
    assert [row["estimate"] for row in rows] == [row["rows"] / of_truth[row["row"]] for row in rows]
    right = tf.accuracy(LOANS, **LABELS)[".estimate"].item()
    assert chart.to_dict()["title"]["text"] == f"{right * 100:.1f}% of 2,000 predictions are right"


def test_titles_tell_what_is_seen() -> None:
    title = {name: specification(name)["title"]["text"] for name in RESULTS}
    rates = RESULTS["worst groups"]().sort(".estimate")
    low, high = rates.row(0, named=True), rates.row(-1, named=True)
    ends = [f"{end['.estimate']:.3f} for {end['.group']}" for end in (low, high)]
    assert title["worst groups"] == f"Selection rate by race is {' and '.join(ends)}"
    beyond = int((RESULTS["tests"]()[".p_adjusted"] < 0.05).sum())
    assert title["tests"].startswith(f"{beyond} of 2 disparities")
    assert title["groups over thresholds"] == "Sensitivity and specificity by race over the threshold"


def test_themed_svg_takes_its_colours_from_the_page() -> None:
    for name in ("verdicts", "groups", "roc", "crossed groups"):
        written = themed_svg(tf.autoplot(RESULTS[name]()), "fig-1")
        root = ET.fromstring(written)  # noqa: S314 - drawn here
        assert root.get("role") == "img"
        assert root.get("aria-label")
        colours = {item.get(key) for item in root.iter() for key in ("fill", "stroke")} - {None, "none", "transparent"}
        assert colours <= {f"var(--{key}, {value})" for key, value in LIGHT.items()}
        assert all(str(item.get("id")).startswith("fig-1-") for item in root.iter() if item.get("id"))
        # text stays text
        assert "Sensitivity" in written or "Selection rate" in written or "pass" in written


def test_both_themes_have_the_same_colors() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)


def test_curves_without_a_point_are_refused() -> None:
    data = pl.DataFrame({"y": [0, 0], "p": [0.1, 0.2]})
    with pytest.warns(tf.errors.UndefinedWarning, match="one class only"):
        nothing = tf.roc_curve(data, "y", probs="p", pos_label=1, labels=[0, 1])
    with pytest.raises(tf.errors.ArgumentError, match="has nothing to draw"):
        tf.autoplot(nothing)


def over_times(**values: Sequence[float | None]) -> pl.DataFrame:
    """Values of one group at three times, as `by_group` gives them."""
    return pl.DataFrame(
        {
            ".metric": "brier_survival", ".by": "g", "g": "a", ".group": "a", ".eval_time": [1.0, 2.0, 3.0],
            ".estimate": [0.1, 0.2, 0.3], ".n": 50, ".status": "ok", **values,
        },
        schema_overrides={".lower": pl.Float64, ".upper": pl.Float64},
    )  # fmt: skip


def arrows_of(chart: Any) -> dict[str, list[float]]:
    """The times of the arrows of a chart, by their direction."""
    arrows: dict[str, list[float]] = {}
    for layer in layers_of(chart):
        shape = layer["mark"].get("shape", "")
        if shape.startswith("triangle"):
            arrows[shape] = [row["point"] for row in layer["rows"]]
    return arrows


def test_intervals_over_times_that_leave_the_axis_or_lack_an_end_have_arrows() -> None:
    chart = tf.autoplot(over_times(**{".lower": [0.05, None, 0.25], ".upper": [0.2, 0.3, 40.0]}))
    assert arrows_of(chart) == {"triangle-down": [2.0], "triangle-up": [3.0]}
    assert "arrows: intervals that go on" in str(chart.to_dict()["title"]["subtitle"])
    _, high = sorted(domains(chart, "y")[0])
    assert 0.3 < high < 0.5
    whole = tf.autoplot(over_times(**{".lower": [0.05, 0.1, 0.25], ".upper": [0.2, 0.3, 0.4]}))
    assert arrows_of(whole) == {}
    assert "arrows" not in str(whole.to_dict()["title"]["subtitle"])


def test_bands_that_leave_the_axis_have_arrows() -> None:
    x = [float(step) for step in range(30)]
    points = pl.DataFrame(
        {"panel": "", "series": "a", "x": x, "estimate": x, "lower": x, "upper": [99.0] * 10 + x[10:]}
    )
    layers = layers_of(Picture(lines, points, ["Lines"], x="x").finished(None, 640))
    (arrows,) = [layer["rows"] for layer in layers if layer["mark"].get("shape") == "triangle-up"]
    # arrows have room beside each other
    assert 2 < len(arrows) < 10
    assert max(row["x"] for row in arrows) < 10


def test_intervals_of_groups_at_the_same_time_stand_beside_each_other() -> None:
    one = over_times(**{".lower": [0.0, 0.1, 0.2], ".upper": [0.2, 0.3, 0.4]})
    chart = tf.autoplot(pl.concat([one, one.with_columns(g=pl.lit("b"), **{".group": pl.lit("b")})]))
    rows = drawn(chart)
    for point in (1.0, 2.0, 3.0):
        left, right = sorted({row["x"] for row in rows if row["point"] == point})
        assert left < point < right


def test_verdicts_have_one_colour_in_all_panels() -> None:
    chart = tf.autoplot(RESULTS["monitor by period"]())
    scales = {
        json.dumps(layer["encoding"]["shape"]["scale"]) for layer in layers_of(chart) if "shape" in layer["encoding"]
    }
    assert len(scales) == 1
    assert set(keys_in(chart)) == set(RESULTS["monitor by period"]()[".verdict"])


def test_verdicts_at_several_times_are_drawn_with_their_limit() -> None:
    verdicts = over_times(**{".lower": [0.05, 0.1, 0.25], ".upper": [0.2, 0.3, 0.4]}).drop("g", ".group")
    verdicts = verdicts.with_columns(
        pl.Series(".verdict", ["pass", "not enough evidence", "fail"]), pl.lit(0.25).alias(".limit")
    )
    chart = tf.autoplot(verdicts)
    rows = drawn(chart)
    assert [(row["what"], row["limit"], row["verdict"]) for row in rows] == [
        ("Time 1", 0.25, "pass"), ("Time 2", 0.25, "not enough evidence"), ("Time 3", 0.25, "fail")
    ]  # fmt: skip
    assert "Brier score of survival at a time by g" in str(chart.to_dict()["title"]["subtitle"])


def test_a_single_time_is_part_of_the_title() -> None:
    one = over_times().head(1).drop("g", ".group")
    assert "Brier score of survival at time 1 by g" in str(tf.autoplot(one).to_dict()["title"])


def test_metrics_of_the_same_title_are_told_apart_by_their_names() -> None:
    rates = tf.metric_set(tf.fall_out, tf.false_positive_rate)
    rows = drawn(tf.autoplot(rates(LOANS, **LABELS)))
    assert [row["what"] for row in rows] == [
        "False positive rate (fall_out)", "False positive rate (false_positive_rate)"
    ]  # fmt: skip


# For print


@pytest.mark.parametrize(
    ("name", "width", "millimeters"),
    [
        ("groups", "column", 88), ("verdicts", "two columns", 180), ("crossed groups", "120 mm", 120),
        ("thresholds", "column", 88), ("models", "two columns", 180), ("calibration", "120 mm", 120),
    ],
)  # fmt: skip
def test_letters_of_printed_pictures_have_7_to_9_points(name: str, width: str, millimeters: int) -> None:
    root = ET.fromstring(themed_svg(tf.autoplot(RESULTS[name](), width=width), "a"))  # noqa: S314 - drawn here
    assert float(root.get("width", "0")) == pytest.approx(millimeters / 25.4 * 96, rel=0.06)
    sizes = {float(size.removesuffix("px")) for text in root.iter() if (size := text.get("font-size"))}
    assert sizes
    assert all(7 <= size * 0.75 <= 9 for size in sizes), sizes


@pytest.mark.parametrize("width", ["poster", "9 cm", "20 mm", ""])
def test_other_widths_are_refused(width: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match='a length of at least "64 mm"'):
        tf.autoplot(RESULTS["groups"](), width=width)


def test_lines_and_models_can_be_told_apart_without_colours() -> None:
    def scales(name: str, channel: str) -> set[tuple[str, ...]]:
        encodings = [layer["encoding"] for layer in layers_of(specification(name))]
        return {tuple(map(str, own[channel]["scale"]["range"])) for own in encodings if channel in own}

    (dashes,) = scales("groups over thresholds", "strokeDash")
    assert len(set(dashes)) == len(dashes) == 5
    assert ("diamond", "circle") in scales("models", "shape")


def axis_titles(chart: Any, channel: str = "x") -> set[str]:
    """The titles of axes."""
    channels = [layer["encoding"].get(channel, {}) for layer in layers_of(chart)]
    return {own["axis"]["title"] for own in channels if own.get("axis") and own["axis"].get("title")}


def test_pictures_say_what_is_on_their_axis_and_the_level_of_intervals() -> None:
    expected = {
        "groups": (set[str](), "95% CI"), "worst groups": ({"Selection rate"}, "95% simultaneous CI"),
        "comparison": ({"Ratio"}, "95% CI"), "four fifths": ({"Ratio to Asian"}, "95% CI"),
        "pairs": ({"Difference"}, "95% simultaneous CI"), "verdicts": ({"Difference"}, "95% one-sided limits"),
        "several models": ({"Change from approved"}, "95% simultaneous CI"),
        "monitor": ({"Difference"}, "95% confidence sequence"),
    }  # fmt: skip
    for name, (titles, limits) in expected.items():
        assert axis_titles(specification(name)) == titles, name
        assert f"lines: {limits}" in " ".join(specification(name)["title"]["subtitle"]), name
    narrower = tf.accuracy.difference("sex").by_group(LOANS, **LABELS, interval="auto", conf_level=0.8)
    assert "lines: 80% CI" in " ".join(tf.autoplot(narrower).to_dict()["title"]["subtitle"])


def test_several_models_are_drawn_by_their_changes_and_verdicts() -> None:
    result = RESULTS["several models"]()
    rows = drawn(tf.autoplot(result))
    assert [(row["what"], row["estimate"], row["verdict"]) for row in rows] == result.select(
        ".model_other", ".change", ".verdict"
    ).rows()
    assert {(row["expected_lower"], row["expected_upper"]) for row in rows} == {(-0.01, 0.01)}


def test_the_frontier_of_a_comparison_has_models_that_no_other_is_better_than() -> None:
    result = RESULTS["several models"]()
    rows = drawn(tf.autoplot(result, kind="frontier"))
    assert {row["panel"] for row in rows} == {"Demographic parity by race", "Equalized odds by sex"}
    values = {(row[".metric"], row[".model_other"]): row[".other"] for row in result.to_dicts()}
    values |= {(row[".metric"], "approved"): row[".one"] for row in result.to_dicts()}
    metrics = {"Demographic parity by race": "demographic_parity", "Equalized odds by sex": "equalized_odds"}
    for row in rows:
        own = (values["accuracy", row["series"]], values[metrics[row["panel"]], row["series"]])
        assert (row["x"], row["estimate"]) == own
        others = [
            (values["accuracy", name], values[metrics[row["panel"]], name]) for name in ("approved", "late", "strict")
        ]
        dominated = any(x >= own[0] and y <= own[1] and (x, y) != own for x, y in others)
        assert row["front"] is not dominated
        assert row["base"] is (row["series"] == "approved")
    for name in ("pairs", "resamples of models"):
        with pytest.raises(tf.errors.ArgumentError, match="A frontier is drawn of `compare_models`"):
            tf.autoplot(RESULTS[name](), kind="frontier")
    with pytest.raises(tf.errors.ArgumentError, match="a metric of all rows and a disparity"):
        tf.autoplot(
            tf.compare_models(tf.accuracy)(LOANS, "repaid", one="approved", other=OTHER, pos_label="yes"),
            kind="frontier",
        )


def test_metrics_that_should_be_small_are_better_when_they_are() -> None:
    data = pl.DataFrame(
        {"y": [1.0, 2.0, 3.0, 4.0], "a": [1.0, 2.0, 3.0, 5.0], "b": [1.1, 2.1, 3.1, 4.1], "g": list("xyxy")}
    )
    compared = tf.compare_models(tf.mae, tf.mae.difference("g"))(data, "y", one="a", other="b", times=20)
    rows = drawn(tf.autoplot(compared, kind="frontier"))
    assert {row["series"]: row["front"] for row in rows} == {"a": False, "b": True}


def test_a_frontier_says_which_side_of_its_axes_is_good() -> None:
    chart = tf.autoplot(RESULTS["several models"](), kind="frontier").to_dict()
    assert {panel["title"]["subtitle"] for panel in chart["concat"]} == {"\N{DOWNWARDS ARROW} lower is fairer"}
    assert axis_titles(chart) == {"Accuracy (higher is better)"}
    assert "model compared with" in keys_in(chart)


@pytest.mark.parametrize("width", [300, 640])
def test_names_of_models_that_are_close_do_not_cover_each_other(width: int) -> None:
    models = ["first", "second", "third"]
    rows = [
        {".metric": metric, ".by": by, ".model_one": "base", ".model_other": name, ".one": 0.7 if by is None else 0.1}
        | {".other": value + 0.0005 * place, ".change": 0.0, ".lower": -0.1, ".upper": 0.1, ".verdict": "not shown"}
        for metric, by, value in (("accuracy", None, 0.7), ("demographic_parity", "sex", 0.1))
        for place, name in enumerate(models, 1)
    ]
    far = [row | {".model_other": "far", ".other": 0.5} for row in rows if row[".model_other"] == "first"]
    chart = tf.autoplot(pl.DataFrame(rows + far), kind="frontier", width=width)
    root = ET.fromstring(vl_convert.vegalite_to_svg(chart.to_dict()))  # noqa: S314 - drawn here
    names = {"base", *models, "far"}
    boxes: dict[str, tuple[float, float, float]] = {}
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        if text.text in names:
            x, y = map(float, re.findall(r"-?[\d.]+", text.get("transform", ""))[:2])
            size = 6 * len(text.text)
            start = x - size if text.get("text-anchor") == "end" else x
            boxes[text.text] = (start, start + size, y)
    assert set(boxes) == names
    for one, other in combinations(boxes.values(), 2):
        assert one[1] <= other[0] or other[1] <= one[0] or abs(one[2] - other[2]) >= 10


def test_titles_of_axes_leave_out_brackets_where_there_is_no_room() -> None:
    curve = RESULTS["risk and coverage"]()
    alone = tf.abstention.risk_coverage_curve(LOANS, **SCORES)
    assert axis_titles(tf.autoplot(alone, width=640)) == {"Coverage (share of rows decided about)"}
    assert axis_titles(tf.autoplot(alone, width=240)) == {"Coverage"}
    assert axis_titles(tf.autoplot(curve, width=240)) == {"Coverage of all groups together"}


def test_pictures_of_judged_models_say_who_is_left_out() -> None:
    parity = tf.demographic_parity("race", min_n=100)
    gate = tf.check(tf.compare_models(parity), below=0.05)
    judged = gate(LOANS, "repaid", one="approved", other=OTHER, pos_label="yes", times=20)
    notes = " ".join(tf.autoplot(judged).to_dict()["title"]["subtitle"])
    assert "left out: Native (selection rate: too few rows)" in notes
