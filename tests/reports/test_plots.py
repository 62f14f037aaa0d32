"""Charts show what the frames of results say.

`PYTHONPATH=tests python tests/reports/test_plots.py` writes their specifications, `charts.json`, again.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import vl_convert
from conftest import CHROMIUM, in_a_browser

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

SPECIFICATIONS = Path(__file__).with_name("charts.json")
LOANS = lending(2_000)
DECIDED: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
LABELS: dict[str, Any] = {**DECIDED, "on_undefined": "ignore"}
SCORES: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
FAIR = tf.metric_set(tf.accuracy, tf.sens, tf.demographic_parity("race"), tf.equalized_odds("sex"))
APART = tf.metric_set(tf.demographic_parity("race"), tf.equalized_odds("sex"))
RATES = tf.new_groupwise_metric(tf.metric_set(tf.accuracy, tf.sens), "rates", tf.difference())
OTHER = (pl.col("score") > 0.4).replace_strict({True: "yes", False: "no"}, return_dtype=pl.String).alias("other")


def _models() -> Any:
    return tf.compare_models(FAIR)(LOANS, "repaid", one="approved", other=OTHER, pos_label="yes", times=20)


RESULTS: dict[str, Callable[[], Any]] = {
    "results": lambda: FAIR(LOANS, **LABELS),
    "intervals": lambda: FAIR(LOANS, **LABELS, interval="analytic"),
    "verdicts": lambda: tf.check(APART, below=0.1)(LOANS, **LABELS, times=50),
    "monitor": lambda: tf.inference.monitor(APART, below=0.1, groups=5)(LOANS, **DECIDED),
    "monitor by period": lambda: tf.inference.monitor(tf.demographic_parity("race"), below=0.1, period="fold")(
        LOANS, **DECIDED, group_by=["sex", "fold"]
    ),
    "tests": lambda: tf.inference.disparity_test(APART, times=50)(LOANS, **DECIDED),
    "groups": lambda: tf.metric_set(tf.accuracy, tf.sens, RATES("race")).by_group(LOANS, **LABELS, interval="exact"),
    "crossed groups": lambda: tf.demographic_parity("sex", "race").by_group(LOANS, **LABELS),
    "folds": lambda: FAIR(LOANS, **LABELS, group_by="fold"),
    "groups of folds": lambda: FAIR.by_group(LOANS, **LABELS, group_by="fold"),
    "means over folds": lambda: tf.inference.summarize(FAIR(LOANS, **LABELS, group_by="fold")),
    "thresholds": lambda: tf.threshold_curve(tf.metric_set(tf.sens, tf.roc_auc), [0.2, 0.5, 0.8])(LOANS, **SCORES),
    "groups over thresholds": lambda: tf.threshold_curve(tf.equalized_odds("race"), [0.2, 0.5]).by_group(
        LOANS, **SCORES
    ),
    "pairs": lambda: tf.pairwise(tf.demographic_parity("race"))(LOANS, **DECIDED),
    "strata": lambda: tf.inference.stratified(tf.demographic_parity("race"), within="age_band")(LOANS, **DECIDED),
    "worst groups": lambda: tf.inference.worst_groups(tf.demographic_parity("race"))(LOANS, **DECIDED),
    "models": _models,
    "subgroups": lambda: tf.inference.subgroup_search(tf.selection_rate, ["sex", "race"], times=20)(LOANS, **DECIDED),
    "probability": lambda: tf.inference.probability(tf.demographic_parity("race"), below=0.1)(LOANS, **DECIDED),
    "roc": lambda: tf.roc_curve(LOANS, **SCORES, group_by="race"),
    "precision and recall": lambda: tf.pr_curve(LOANS, **SCORES),
    "gain": lambda: tf.gain_curve(LOANS, **SCORES, group_by="sex"),
    "lift": lambda: tf.lift_curve(LOANS, **SCORES, group_by="sex"),
    "calibration": lambda: tf.calibration_curve(LOANS, **SCORES, group_by="race"),
}


def specification(chart: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What is drawn, without the numbers; and the numbers."""
    written = chart.to_dict()
    rows = [row for part in written.pop("datasets").values() for row in part]

    def without_data(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: without_data(item) for name, item in part.items() if name not in {"data", "$schema"}}
        return [without_data(item) for item in part] if isinstance(part, list) else part

    return without_data(written), rows


@pytest.mark.parametrize("name", RESULTS)
def test_chart_specifications_are_unchanged(name: str) -> None:
    result, _ = specification(tf.autoplot(RESULTS[name]()))
    assert result == json.loads(SPECIFICATIONS.read_text("utf-8"))[name], "look at it, then write it again"


VALUES = {
    "results": ".estimate", "intervals": ".estimate", "verdicts": ".estimate", "tests": ".estimate",
    "crossed groups": ".estimate", "folds": ".estimate", "means over folds": ".mean", "pairs": ".disparity",
    "worst groups": ".estimate", "probability": ".probability", "monitor": ".estimate",
    "monitor by period": ".estimate",
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_charts_draw_every_value(name: str) -> None:
    result = RESULTS[name]()
    _, rows = specification(tf.autoplot(result))
    assert sorted(row["estimate"] for row in rows) == sorted(result[VALUES[name]])
    wanted = ("lower", "upper", "expected_lower", *(["limit"] if ".verdict" in result.columns else []))
    ends = [end for end in wanted if f".{end}" in result.columns]
    for end in ends:
        assert sorted(row[end] for row in rows) == sorted(result[f".{end}"]), end


def test_thinned_curves_keep_their_area() -> None:
    curve = tf.roc_curve(lending(20_000), **SCORES)
    _, rows = specification(tf.autoplot(curve))
    assert len(rows) < 1_000 < len(curve)
    drawn = pl.DataFrame(rows).select(x=pl.col("x").cast(pl.Float64), y=pl.col("y").cast(pl.Float64)).sort("x", "y")
    area = drawn.select(((pl.col("x") - pl.col("x").shift(1)) * (pl.col("y") + pl.col("y").shift(1)) / 2).sum()).item()
    assert area == pytest.approx(tf.roc_auc(lending(20_000), **SCORES)[".estimate"].item(), abs=2e-3)


def test_beside_draws_the_expected_range() -> None:
    tested = tf.inference.disparity_test(APART, times=50)(LOANS, **DECIDED)
    for result in (RESULTS["verdicts"](), APART(LOANS, **LABELS)):
        _, rows = specification(tf.autoplot(result, beside=tested))
        assert [row["expected_lower"] for row in rows] == tested[".expected_lower"].to_list()


def test_group_chart_marks_the_overall_value() -> None:
    result = RESULTS["groups"]()
    _, rows = specification(tf.autoplot(result))
    overall = dict(result.filter(pl.col(".by").is_null()).select(".metric", ".estimate").rows())
    assert {row["limit"] for row in rows} == set(overall.values())
    alone, values = specification(tf.autoplot(tf.demographic_parity("race").by_group(LOANS, **LABELS)))
    assert "limit" not in values[0]
    assert alone["title"]["subtitle"] == ["in brackets: rows"]


def test_undefined_values_show_the_reason() -> None:
    people = pl.DataFrame({"y": [1, 0, 0, 0], "p": [1, 0, 1, 0], "g": list("aabb")})
    _, rows = specification(tf.autoplot(tf.equal_opportunity("g").by_group(people, "y", "p", on_undefined="ignore")))
    assert [(row["what"], row["why"]) for row in rows] == [("a (2)", ""), ("b (2)", "zero denominator")]
    assert rows[1]["estimate"] is None


def test_groups_of_equal_text_keep_their_rows() -> None:
    people = pl.DataFrame({"p": [1, 0, 1, 1], "g": ["null", "null", None, None]})
    _, rows = specification(tf.autoplot(tf.demographic_parity("g").by_group(people, estimate="p")))
    assert {(row["what"], row["estimate"]) for row in rows} == {("null (2)", 0.5), ("null (2) [2]", 1.0)}


def test_groups_of_equal_text_are_distinct_in_lines_and_heat_maps() -> None:
    people = LOANS.with_columns(pl.col("race").cast(pl.String)).with_columns(
        race=pl.when(pl.col("race") == "White").then(pl.lit("null")).when(pl.col("race") != "Black").then("race")
    )
    curves = tf.threshold_curve(tf.demographic_parity("race"), [0.2, 0.5]).by_group(people, **SCORES)
    _, rows = specification(tf.autoplot(curves))
    assert {row["series"] for row in rows} == {"Asian", "Hispanic", "Native", "null", "null [2]"}
    _, rows = specification(tf.autoplot(tf.demographic_parity("race", "sex").by_group(people, **LABELS)))
    assert len({(row["row"], row["column"]) for row in rows}) == len(rows) == 10
    _, rows = specification(tf.autoplot(tf.roc_curve(people, **SCORES, group_by="race")))
    assert {"null", '"null"'} <= {row["series"] for row in rows}


def test_infinite_values_leave_the_others_drawn() -> None:
    likelihood = tf.new_groupwise_metric(tf.positive_likelihood_ratio, "plr", tf.difference())("a", "b")
    people = pl.DataFrame({"y": [1, 1, 0, 0] * 4, "p": [1, 0, 1, 0] * 3 + [1, 1, 0, 0], "a": list("xxxxyyyy") * 2})
    people = people.with_columns(b=pl.Series(["u"] * 8 + ["v"] * 8))
    result, _ = specification(tf.autoplot(likelihood.by_group(people, "y", "p", on_undefined="ignore")))
    assert "datum.estimate > 1.0" in json.dumps(result)
    folds = tf.positive_likelihood_ratio(people, "y", "p", group_by=["a", "b"], on_undefined="ignore")
    _, rows = specification(tf.autoplot(folds))
    assert {row["mean"] for row in rows} == {None}


def test_outer_columns_may_be_named_like_curve_columns() -> None:
    people = LOANS.with_columns(sensitivity=pl.col("sex"), specificity=pl.col("fold"))
    _, rows = specification(tf.autoplot(tf.accuracy(people, **LABELS, group_by=["sensitivity", "specificity"])))
    assert len(rows) == 20


def test_many_threshold_curves_are_thinned() -> None:
    people = LOANS.with_columns(part=pl.int_range(pl.len()) % 28)
    curves = tf.threshold_curve(tf.demographic_parity("part"), [step / 250 for step in range(251)])
    _, rows = specification(tf.autoplot(curves.by_group(people, **SCORES)))
    assert len(rows) <= 5_000
    assert {row["panel"] for row in rows} == {str(index) for index in range(28)}


def test_subgroup_chart_keeps_order_of_searched_subgroups() -> None:
    result = RESULTS["subgroups"]()
    _, rows = specification(tf.autoplot(result))
    searched = result.filter(pl.col(".status") == "ok").drop_nulls(".difference")
    assert [row["estimate"] for row in rows] == searched[".difference"].to_list()[:30]


def test_fold_chart_draws_intervals() -> None:
    result = FAIR(LOANS, **LABELS, group_by="fold", interval="auto", times=50)
    _, rows = specification(tf.autoplot(result))
    assert [row["lower"] for row in rows] == result[".lower"].to_list()
    assert [row["what"] for row in rows[:2]] == ["fold 1", "fold 2"]
    assert {row["panel"] for row in rows} == {
        "accuracy", "sens", "demographic parity by race", "equalized odds by sex"
    }  # fmt: skip


def test_fold_chart_draws_means_of_metrics_only() -> None:
    result = RESULTS["folds"]()
    _, rows = specification(tf.autoplot(result))
    means = dict(result.filter(pl.col(".by").is_null()).group_by(".metric").agg(pl.col(".estimate").mean()).rows())
    drawn = {row["what"]: row["mean"] for row in rows}
    assert drawn == {
        **{name: pytest.approx(mean) for name, mean in means.items()},
        "demographic parity by race": None, "equalized odds by sex": None,
    }  # fmt: skip


def test_model_chart_draws_change_and_interval() -> None:
    result = RESULTS["models"]()
    _, rows = specification(tf.autoplot(result))
    drawn = [row for row in rows if "change" in row]
    for name in ("one", "other", "change", "lower", "upper"):
        assert [row[name] for row in drawn] == result[f".{name}"].to_list()
    assert {row["model"] for row in rows if "model" in row} == {"one", "other"}


def test_differences_ratios_and_metrics_have_separate_panels() -> None:
    mixed = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"), tf.demographic_parity_ratio("sex"))
    _, rows = specification(tf.autoplot(mixed(LOANS, **LABELS)))
    assert [row["panel"] for row in rows] == ["metrics", "differences", "ratios"]
    rents = pl.DataFrame({"rent": [500.0, 700, 900, 650], "guess": [520.0, 690, 930, 600]})
    _, rows = specification(tf.autoplot(tf.metric_set(tf.rmse, tf.rsq)(rents, "rent", "guess")))
    assert [row["panel"] for row in rows] == ["rmse", "rsq"]


def test_at_marks_a_threshold() -> None:
    curve = RESULTS["thresholds"]()
    plain, marked = (json.dumps(specification(tf.autoplot(curve, at=at))[0]) for at in (None, 0.6))
    assert '"datum": 0.6' in marked
    assert '"datum"' not in plain
    for at, result, expected in (
        (0.5, RESULTS["results"](), "no list of them"),
        ("x", curve, "`at` is a finite number"),
    ):
        with pytest.raises(tf.ArgumentError, match=expected):
            tf.autoplot(result, at=at)  # pyright: ignore[reportArgumentType] - bad input


def test_names_are_data_and_not_field_paths() -> None:
    odd = 'a.b[0] "<script>alert(1)</script>":c'
    people = LOANS.with_columns(pl.col("race").cast(pl.String).replace({"White": odd}).alias(odd))
    for result in (
        tf.demographic_parity(odd).by_group(people, **LABELS),
        tf.roc_curve(people, **SCORES, group_by=odd),
        tf.demographic_parity("sex")(people, **LABELS, group_by=odd),
    ):
        actual, rows = specification(tf.autoplot(result))
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
    result, rows = specification(tf.autoplot(tf.roc_curve(people, **SCORES, group_by="b")))
    assert len({row["series"] for row in rows}) == people["b"].n_unique()
    assert all(len(row["series"]) < 250 for row in rows)
    assert len(result["description"]) < 1_000


def test_many_lines_get_separate_panels() -> None:
    result, rows = specification(tf.autoplot(tf.roc_curve(LOANS, **SCORES, group_by="fold")))
    assert len({row["panel"] for row in rows}) == 10
    assert "legend" not in json.dumps(result)
    assert '"color": {' not in json.dumps(result["spec"])
    with pytest.raises(tf.ArgumentError, match="would draw 40 panels; filter the result"):
        tf.autoplot(tf.roc_curve(LOANS, **SCORES, group_by=["fold", "age_band"]))


def test_period_chart_draws_changes() -> None:
    months = LOANS.with_columns(month=pl.int_range(pl.len()) * 3 // pl.len())
    tested = tf.inference.compare_periods(tf.demographic_parity("sex"), period="month", times=50)
    result = tested(months, **DECIDED, group_by="month")
    _, rows = specification(tf.autoplot(result))
    assert [row["estimate"] for row in rows] == result[".change"].to_list()
    assert [row["what"] for row in rows] == ["demographic parity by sex, 0 to 1", "demographic parity by sex, 1 to 2"]


def test_lists_of_top_k_are_lines() -> None:
    call: dict[str, Any] = {**SCORES, "on_undefined": "ignore"}
    lists: list[dict[str, Any]] = [{"top_k": [50, 300]}, {"top_fraction": [0.1, 0.5]}]
    for ways in lists:
        for result in (tf.sens(LOANS, **call, **ways), tf.equal_opportunity("sex").by_group(LOANS, **call, **ways)):
            _, rows = specification(tf.autoplot(result))
            assert {row["x"] for row in rows} == set(next(iter(ways.values())))
            assert len(rows) == len(result)


@pytest.mark.parametrize("name", ["panel", "what", "outer", "estimate", "series", "recall", "a.b"])
def test_chart_takes_any_outer_column_name(name: str) -> None:
    people = LOANS.rename({"fold": name})
    _, rows = specification(tf.autoplot(tf.demographic_parity("sex")(people, **LABELS, group_by=name)))
    assert {row["outer"] for row in rows} == {str(fold) for fold in range(1, 11)}
    if name != "recall":
        _, rows = specification(tf.autoplot(tf.roc_curve(people.filter(pl.col(name) < 4), **SCORES, group_by=name)))
        assert {row["series"] for row in rows} == {"1", "2", "3"}
    days = LOANS.with_columns(days=pl.duration(days=pl.col("fold")))
    _, rows = specification(tf.autoplot(tf.accuracy(days, **LABELS, group_by="days")))
    assert "1d" in {row["outer"] for row in rows}


def test_many_curves_are_thinned() -> None:
    people = lending(20_000).with_columns(part=pl.int_range(pl.len()) % 12)
    result, rows = specification(tf.autoplot(tf.roc_curve(people, **SCORES, group_by="part")))
    assert len(rows) <= 5_000
    assert len({row["panel"] for row in rows}) == 12
    assert result["description"].startswith("sensitivity over 1 - specificity for each part.")


def test_infinite_values_are_described() -> None:
    people = pl.DataFrame({"p": [1, 0, 0, 0], "y": [1, 0, 1, 0], "g": list("aabb")})
    apart = tf.new_groupwise_metric(tf.selection_rate, "apart", tf.log_ratio())
    text = tf.autoplot(tf.metric_set(tf.selection_rate, apart("g"))(people, "y", "p")).to_dict()["description"]
    assert text.endswith("One value, 0.25 (metrics, selection rate). 1 is infinite, and not drawn.")


def test_crossed_groups_are_drawn_as_heat_map_or_dots() -> None:
    crossed = RESULTS["crossed groups"]()
    assert "rect" in json.dumps(specification(tf.autoplot(crossed))[0])
    assert "rect" not in json.dumps(specification(tf.autoplot(crossed, kind="dots"))[0])
    # a colon in a value could be the one between two
    people = LOANS.with_columns(pl.col("sex").cast(pl.String) + ":x")
    assert "rect" not in json.dumps(
        specification(tf.autoplot(tf.demographic_parity("sex", "race").by_group(people, **LABELS)))[0]
    )


def test_autoplot_takes_pandas_and_pipes() -> None:
    result = FAIR(LOANS, **LABELS)
    expected = tf.autoplot(result).to_dict()
    assert tf.autoplot(result.to_pandas()).to_dict() == expected
    assert result.pipe(tf.autoplot).to_dict() == expected
    assert tf.autoplot(result, title="Mine").to_dict()["title"]["text"] == "Mine"


def test_charts_have_text_descriptions() -> None:
    text = tf.autoplot(RESULTS["results"]()).to_dict()["description"]
    assert re.match(
        r"accuracy, sens and 2 more\. 4 values from 0\.\d+ \(differences, equalized odds by sex\) "
        r"to 0\.\d+ \(metrics, sens\)\.", text
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: tf.autoplot(pl.DataFrame({"a": [1]})), "draws results of tidyfair"),
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS).clear()), "has no rows"),
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS), kind="pie"), "Unknown kind 'pie'"),  # pyright: ignore[reportArgumentType] - bad input
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS), kind="heat map"), "two features that are crossed"),
        (lambda: tf.autoplot(RESULTS["pairs"](), beside=RESULTS["tests"]()), "drawn behind disparities"),
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS), beside=LOANS), "what `disparity_test"),
        (lambda: tf.autoplot(RESULTS["folds"](), beside=RESULTS["tests"]()), "not behind lines and strips"),
        (
            lambda: tf.autoplot(tf.demographic_parity("sex")(LOANS, **LABELS), beside=RESULTS["tests"]()),
            "none of the disparities of the result",
        ),
        (lambda: tf.autoplot(tf.conf_mat(LOANS, "repaid", "approved")), "no picture of the columns"),
        (lambda: tf.autoplot(tf.accuracy.by_group(LOANS, **LABELS)), "these are of all rows"),
        (lambda: tf.autoplot(FAIR(LOANS, **LABELS), title=3), "`title` is a text, not 3"),  # pyright: ignore[reportArgumentType] - bad input
        (lambda: tf.autoplot(3), "`data` is a int"),
    ],
)
def test_autoplot_rejects_other_frames(ask: Callable[[], Any], expected: str) -> None:
    with pytest.raises(tf.ArgumentError, match=expected):
        ask()


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_offline_browser_draws_every_chart(tmp_path: Path) -> None:
    charts = [tf.autoplot(made()).to_json() for made in RESULTS.values()]
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
    with pytest.raises(tf.ArgumentError, match=r"pip install 'tidyfair\[plot\]'"):
        tf.autoplot(FAIR(LOANS, **LABELS))


if __name__ == "__main__":
    written = {name: specification(tf.autoplot(made()))[0] for name, made in RESULTS.items()}
    SPECIFICATIONS.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", "utf-8")
