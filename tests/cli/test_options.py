"""Options of the command line: what a call in Python takes, and the same numbers."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest
from command_line import called, written

import tidyfair as tf
from tidyfair.cli.fail_if import as_value
from tidyfair.cli.parser import parser
from tidyfair.datasets import lending
from tidyfair.specs.options import CallOptions, GroupCallOptions, GroupOptions

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("few_draws")
DECIDED = {
    "design": "designs of surveys are made of many columns, in Python",
    "judged": "labels of a judge are for metrics, gates and comparisons, in Python",
    "label_probability": "as above",
    "parts": "intervals are computed by parts wherever they need to be",
    "keep_rows": "a tally is not kept",
    "on_undefined": "values are undefined in tables, and a note says which",
    "explain": "tables always say where disparities are",
}
"""Options of calls that the command line decides for itself, and why."""


def _commands() -> dict[str, argparse.ArgumentParser]:
    every = parser()._actions  # noqa: SLF001 - argparse has no public list of its commands
    (commands,) = [action.choices for action in every if action.dest == "command"]
    return dict(cast("Any", commands))


def test_audit_has_every_option_of_a_call() -> None:
    options = {action.dest for action in _commands()["audit"]._actions}  # noqa: SLF001 - as above
    in_python = {*GroupCallOptions.__annotations__, *GroupOptions.__annotations__, "truth", "estimate", "by"}
    assert in_python - options == set(DECIDED)


def test_report_and_compare_have_the_options_of_a_call_that_they_accept() -> None:
    common = {*CallOptions.__annotations__, *GroupOptions.__annotations__, "truth", "by"} - set(DECIDED)
    for command, without in {
        "report": {"group_by"},
        "compare": {"probs", "interval", "score_bins", "top_k", "top_fraction"},
    }.items():
        options = {action.dest for action in _commands()[command]._actions}  # noqa: SLF001 - as above
        assert common - options == without


@pytest.mark.parametrize("columns", [80, 100])
def test_help_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in _commands().values():
        shown = command.format_help()
        assert max(map(len, shown.splitlines())) <= columns
        examples = shown.partition("examples:")[2]
        # a command that goes on in the next line can be copied
        assert "\\\n\n" not in examples
        for line in examples.replace("\\\n", " ").splitlines():
            if line.startswith("  tidyfair "):
                shlex.split(line)


def test_every_option_has_help_and_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in _commands().items():
        for action in command._actions:  # noqa: SLF001 - as above
            assert action.help
            if action.option_strings and action.dest not in {"labels", "unknown_values", "na_rm", "help"}:
                assert action.option_strings[0] == f"--{action.dest.replace('_', '-')}"
        with pytest.raises(SystemExit):
            command.parse_args(["--help"])
        shown = capsys.readouterr().out
        assert ("exit codes:" in shown) == (name in {"audit", "report", "compare", "check", "verify"})


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (["--top-k", "150"], {"top_k": 150}),
        (["--top-fraction", "0.3"], {"top_fraction": 0.3}),
        (["--threshold", "0.5", "--score-bins", "100"], {"threshold": 0.5, "score_bins": 100}),
        (["--threshold", "0.5", "--case-weights", "weight"], {"threshold": 0.5, "case_weights": "weight"}),
        (["--threshold", "0.5", "--frequency-weights", "often"], {"threshold": 0.5, "frequency_weights": "often"}),
        (["--threshold", "0.5", "--cluster", "office"], {"threshold": 0.5, "cluster": "office"}),
        (["--threshold", "0.5", "--conf-level", "0.8"], {"threshold": 0.5, "conf_level": 0.8}),
        (
            ["--threshold", "0.5", "--interval", "bootstrap", "--times", "50", "--seed", "3"],
            {"threshold": 0.5, "interval": "bootstrap", "times": 50, "seed": 3},
        ),
        (["--threshold", "0.5", "--interval", "none"], {"threshold": 0.5, "interval": None}),
        (["--threshold", "fall_out<=0.1"], {"threshold": tf.operating_point(tf.fall_out, at_most=0.1)}),
        (["--threshold", "sens >= 0.9"], {"threshold": tf.operating_point(tf.sens, at_least=0.9)}),
        (["--threshold", "0.5", "--no-na-rm"], {"threshold": 0.5, "na_rm": False}),
        (
            ["--threshold", "0.5", "--label", "yes", "--label", "no"],
            {"threshold": 0.5, "labels": ["yes", "no"]},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.filterwarnings("ignore::tidyfair.errors.SelectionWarning")
def test_options_give_the_numbers_of_the_library(
    flags: list[str], options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = lending(400).with_columns(
        often=pl.int_range(400) % 3, office=pl.int_range(400) % 40, repaid=pl.col("repaid").cast(pl.String)
    )
    output = tmp_path / "result.parquet"
    call = ["audit", written(data, tmp_path), "--truth", "repaid", "--probs", "score", "--pos-label", "yes"]
    assert called(capsys, *call, "--by", "sex", *flags, "--output", str(output))[:2] == (0, "")
    if "times" not in options:
        # the terminal has the same in words
        assert called(capsys, *call, "--by", "sex", *flags)[0] == 0
    result = pl.read_parquet(output)
    metrics = tf.metric_set(tf.accuracy, tf.sens, tf.roc_auc, tf.demographic_parity("sex", min_n=30, unknown="apart"))
    given: dict[str, Any] = {"interval": "auto", "pos_label": "yes", **options}
    expected = metrics(data, "repaid", probs="score", **given)
    wanted = [name for name in (".estimate", ".lower", ".upper") if name in expected.columns]
    assert ".lower" in wanted or options["interval"] is None
    assert {*wanted} == {".estimate", ".lower", ".upper"} & {*result.columns}
    by_key = {row[:2]: row[2:] for row in result.select(".metric", ".by", *wanted).rows()}
    for row in expected.select(".metric", ".by", *wanted).rows():
        if options.get("interval") != "bootstrap" or row[1] is None:
            assert by_key[row[:2]] == pytest.approx(row[2:], nan_ok=True)


def test_several_columns_of_scores_are_those_of_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = lending(300)["score"]
    data = pl.DataFrame({
        "y": ["a", "b", "c"] * 100, "p": ["a", "c", "c"] * 100, "g": ["u", "v"] * 150,
        "sa": scores * 0.5, "sb": scores * 0.3, "sc": 1 - scores * 0.8,
    })  # fmt: skip
    output = tmp_path / "result.parquet"
    call = ["audit", written(data, tmp_path), "--truth", "y", "--estimate", "p", "--by", "g", "--output", str(output)]
    call += ["--interval", "none"]
    unordered = called(capsys, *call, "--probs", "sa", "--probs", "sb", "--probs", "sc")
    assert unordered[0] == 2
    assert "write `--probs LABEL=COLUMN` for each label" in unordered[2]
    assert called(capsys, *call, "--probs", "a=sa", "--probs", "c=sc", "--probs", "b=sb")[0] == 0
    result = pl.read_parquet(output)
    expected = tf.roc_auc(data, "y", probs={"a": "sa", "b": "sb", "c": "sc"}, estimator="one_vs_rest")[
        ".estimate"
    ].item()
    assert result.filter(pl.col(".metric") == "roc_auc", pl.col(".by").is_null())[".estimate"].item() == expected


def test_metric_flag_adds_an_ordinary_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(500)
    call = [written(data, tmp_path), "--truth", "repaid", "--pos-label", "yes", "--by", "sex", "--metric", "mcc"]
    output, groups = tmp_path / "result.parquet", tmp_path / "groups.parquet"
    files = ["--output", str(output), "--output-groups", str(groups)]
    assert called(capsys, "audit", *call, "--estimate", "approved", *files)[0] == 0
    value = tf.mcc(data, "repaid", "approved", pos_label="yes")[".estimate"].item()
    assert pl.read_parquet(output).filter(pl.col(".metric") == "mcc")[".estimate"].to_list() == [value]
    of_groups = tf.mcc.difference("sex").by_group(data, "repaid", "approved", pos_label="yes")
    shown = pl.read_parquet(groups).filter(pl.col(".metric") == "mcc", pl.col(".by") == "sex")
    assert shown[".estimate"].to_list() == of_groups[".estimate"].to_list()


def test_several_rules_for_decisions_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["audit", written(lending(60), tmp_path), "--truth", "repaid", "--probs", "score", "--by", "sex"]
    code, _, err = called(capsys, *call, "--threshold", "0.5", "--top-k", "9")
    assert code == 2
    assert "`--threshold` and `--top-k` each make decisions of scores: give one of them." in err
    for wrong, expected in {("--conf-level", "95"): "`--conf-level`", ("--times", "0"): "`--times`"}.items():
        code, _, err = called(capsys, *call, "--threshold", "0.5", *wrong)
        assert code == 2
        assert expected in err


def test_abbreviations_of_options_are_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        called(capsys, "audit", "--trut", "repaid")
    assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "usage", "expected"),
    [
        (["audit", "--estimat", "p"], "audit", "Unknown option --estimat. Did you mean '--estimate'?"),
        (["audit", "--y_true", "y"], "audit", "Unknown option --y_true. Did you mean '--truth'?"),
        (["report", "--sensitive-features=g"], "report", "Here `sensitive_features` is `--by`."),
        (["compare", "f.csv", "--one", "a", "--other", "b", "--zzz"], "compare", "Unknown option --zzz. `tidyfair com"),
        (["audit", "a.csv", "b.csv"], "audit", "Unexpected argument 'b.csv': quote a pattern of several files"),
        (["metrics", "--jsn", "-"], "metrics", "Unknown option --jsn. Did you mean '--json'?"),
        (
            ["audti"],
            "command",
            "'audti' is not one of audit, report, compare, check, verify, metrics, datasets. Did you mean 'audit'?",
        ),
        (["audit", "--interval", "bootstra"], "audit", "--interval: 'bootstra' is not one of auto, analytic, exact, "),
        (["audit", "--interval", "bootstra"], "audit", "Did you mean 'bootstrap'?"),
        (["audit", "--conf-level", "high"], "audit", "--conf-level: 'high' is not a number"),
        (["audit", "--min-n", "1.5"], "audit", "--min-n: '1.5' is not a whole number"),
        (["audit", "--threshold", "accuracy<=0.1"], "audit", "accuracy does not rise or fall with the threshold"),
        (["audit", "--by"], "audit", "--by needs a value; one that begins with - is written --by=VALUE"),
    ],
)
def test_wrong_options_show_the_usage_of_their_command_and_the_nearest_option(
    arguments: list[str], usage: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        parser().parse_args(arguments)
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert f"usage: tidyfair {usage}" in shown.replace("[-h] [--version] ", "")
    assert expected in " ".join(shown.split())


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("2024-01-02", pl.Date(), date(2024, 1, 2)),
        ("2024-01-02", pl.Datetime("us"), datetime(2024, 1, 2)),  # noqa: DTZ001 - the column has no time zone
        ("2024-01-02 10:30", pl.Datetime("us"), datetime(2024, 1, 2, 10, 30)),  # noqa: DTZ001 - as above
        ("2024-01-02T10:30", pl.Datetime("us", "UTC"), datetime(2024, 1, 2, 10, 30, tzinfo=UTC)),
        ("2024-01-02T10:30+01:00", pl.Datetime("us", "UTC"), datetime(2024, 1, 2, 9, 30, tzinfo=UTC)),
        ("10:30", pl.Time(), time(10, 30)),
        ("1.5", pl.Decimal(10, 2), Decimal("1.50")),
        ("9", pl.Int64(), 9),
        ("TRUE", pl.Boolean(), True),
        ("9", pl.String(), "9"),
        ("soon", pl.Date(), "soon"),
        ("much", pl.Decimal(10, 2), "much"),
    ],
)
def test_values_are_read_as_the_type_of_their_column(text: str, dtype: pl.DataType, value: object) -> None:
    read = as_value(text, dtype)
    assert (read, type(read)) == (value, type(value))


def test_dates_are_labels_and_numbers_unknown_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = date(2024, 1, 1), date(2024, 1, 2)
    data = pl.DataFrame(
        {"truth": [first, second, second] * 40, "pred": [first, second, first] * 40, "code": [1, 9, 2, 2] * 30}
    )
    call = ["audit", written(data, tmp_path), "--truth", "truth", "--estimate", "pred", "--by", "code", "--min-n", "0"]
    call += ["--unknown-value", "9", "--pos-label"]
    _, out, err = called(capsys, *call, "2024-01-02", "--json", "-")
    assert err == ""
    groups = [row for row in json.loads(out)["groups"] if row["metric"] == "sens"]
    assert {row["group"]: row["estimate"] for row in groups}[None] == 0.5
    (rows,) = [row for row in json.loads(out)["results"] if row["metric"] == "demographic_parity"]
    compared = data.filter(pl.col("code") != 9)
    expected = tf.demographic_parity("code")(compared, estimate="pred", pos_label=second)[".estimate"].item()
    assert rows["estimate"] == expected
    code, _, err = called(capsys, *call, "2024-01-03")
    assert code == 2
    assert "2024-01-03" in err


def test_several_thresholds_have_the_values_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(600)
    call = ["audit", written(data, tmp_path), "--truth", "repaid", "--pos-label", "yes", "--probs", "score"]
    call += ["--by", "sex", "--metric", "net_benefit", "--metric", "net_benefit_difference", "--min-n", "0"]
    code, out, _ = called(capsys, *call, "--threshold", "0.2,0.5", "--threshold", "0.7:0.8:0.1", "--json", "-")
    document = json.loads(out)
    assert code == 0
    thresholds = [0.2, 0.5, 0.7, 0.8]
    assert document["data"]["threshold"] == thresholds
    rates = {row["threshold"]: row["estimate"] for row in document["results"] if row["metric"] == "sens"}
    benefits = {(row["threshold"], row["group"]): row for row in document["groups"] if row["metric"] == "net_benefit"}
    differences = {row["threshold"]: row for row in document["results"] if row["metric"] == "net_benefit_difference"}
    assert list(rates) == list(differences) == thresholds
    for threshold in thresholds:
        decided = data.select(truth=pl.col("repaid") == "yes", selected=pl.col("score") >= threshold, sex="sex")
        odds = threshold / (1 - threshold)
        gain = pl.col("selected") & pl.col("truth")
        loss = pl.col("selected") & ~pl.col("truth")
        assert rates[threshold] == pytest.approx(decided.filter("truth")["selected"].mean())
        benefit = gain.mean() - odds * loss.mean()
        assert benefits[threshold, None]["estimate"] == pytest.approx(decided.select(benefit).item())
        of_groups = dict(decided.group_by(pl.col("sex").cast(pl.String)).agg(benefit).rows())
        for group, value in of_groups.items():
            assert benefits[threshold, group]["estimate"] == pytest.approx(value)
        assert differences[threshold]["estimate"] == pytest.approx(max(of_groups.values()) - min(of_groups.values()))
    # what reads no decision is shown beside those of each threshold
    areas = [row["estimate"] for row in document["results"] if row["metric"] == "roc_auc"]
    assert len(areas) == 4
    assert len(set(areas)) == 1


def test_several_thresholds_in_tables_gates_and_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["audit", written(lending(600), tmp_path), "--truth", "repaid", "--pos-label", "yes", "--probs", "score"]
    call += ["--by", "sex", "--threshold"]
    code, out, _ = called(capsys, *call, "0.0001,0.5", "--group-by", "fold", "--fail-if", "accuracy < 0.1")
    assert code == 0
    assert out.count(" 0.0001 ") > 10
    one = ["0.4", "--metric", "net_benefit", "--fail-if"]
    assert called(capsys, *call, *one, "net_benefit < 0.01")[0] == 0
    assert called(capsys, *call, *one, "net_benefit_difference(sex) > 0.0001")[0] in {3, 4}
    assert called(capsys, *call, "0.1,0.2", "--fail-if", "net_benefit < 0")[0] == 0
    assert called(capsys, *call, "0.2,0.9", "--fail-if", "net_benefit < 0")[0] == 3
    for arguments, expected in {
        ("0.1,0.2", "--html", "x.html"): "A page is about one set of decisions: give one number as `--threshold`",
        ("0.1", "--threshold", "0.1"): "`--threshold` must not repeat a value",
    }.items():
        code, out, err = called(capsys, *call, *arguments)
        assert (code, out) == (2, "")
        assert expected in err
    for wrong in ("0.1:0.3:0", "0.3:0.1:0.1", "a", "0.1,", "0.1:0.2", "nan:1:1", "0:1:1e-9"):
        with pytest.raises(SystemExit):
            called(capsys, *call, wrong)
        assert "--threshold: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["audit", "compare"])
def test_help_says_what_files_leave_to_the_terminal_and_what_needs_python(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([command, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "of which the terminal then shows only the verdicts of --fail-if" in shown
    assert "Survival times, prediction intervals, rankings and pairs are evaluated in Python only." in shown
