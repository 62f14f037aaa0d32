"""Named audits as data: how they print, compare and are replaced, and on which data they run."""

from __future__ import annotations

import copy
import difflib
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command_line import called, written
from conftest import CHROMIUM, in_a_browser
from polars.testing import assert_frame_equal
from report_data import Page

import tidyfair as tdf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("few_draws")

NAMES = list(tdf.audits.NAMED_AUDITS)
CALLS: dict[str, dict[str, Any]] = {
    "nyc_ll144": {"estimate": "approved", "probs": "score"},
    "eeoc_uniform_guidelines": {"estimate": "approved"},
    "lending_adverse_impact": {
        "truth": "repaid",
        "estimate": "approved",
        "probs": "score",
        "to": {"sex": "male", "race": "White"},
    },
    "clinical_tripod_ai": {"truth": "repaid", "probs": "score", "threshold": [0.4, 0.6]},
    "eu_ai_act_data": {"truth": "repaid", "estimate": "approved"},
    "model_card": {"truth": "repaid", "estimate": "approved", "probs": "score"},
    "eu_pay_transparency": {"estimate": "score", "to": {"sex": "male", "race": "White"}},
}


def filed(name: str, data: Any, **options: Any) -> tdf.types.FiledAudit:
    call: dict[str, Any] = {"pos_label": "yes", "by": ["sex", "race"], **CALLS[name], **options}
    return tdf.audit(name, data, **call)


@pytest.fixture(scope="module")
def loans() -> pl.DataFrame:
    """Plain columns that every engine has, with some of unknown sex."""
    data = lending(600).with_columns(pl.col("sex", "race", "repaid", "approved").cast(pl.String))
    return data.with_columns(sex=pl.when(pl.int_range(600) % 40 == 0).then(None).otherwise("sex"))


@pytest.fixture(scope="module")
def usual(loans: pl.DataFrame, few_draws: None) -> Callable[[str], tdf.types.FiledAudit]:  # noqa: ARG001 - fewer draws
    """The audits of the loans, each made once."""
    return cache(lambda name: filed(name, loans))


@pytest.fixture(scope="module")
def by_sex(loans: pl.DataFrame, few_draws: None) -> Callable[[str], tdf.types.FiledAudit]:  # noqa: ARG001 - fewer draws
    """The audits of the loans by one feature, each made once."""
    return cache(lambda name: filed(name, loans, by="sex", to="male" if "to" in CALLS[name] else None))


@pytest.mark.parametrize("name", NAMES)
def test_audits_print_their_source_version_and_what_they_are_not(name: str) -> None:
    audit = tdf.audits.NAMED_AUDITS[name]
    text = str(audit)
    assert audit.name == name
    assert f"version: {audit.version}" in text
    assert f"source: {audit.source}" in text
    assert text.count("It is not: ") == len(audit.is_not) >= 2
    for table in audit.tables:
        assert f'Table "{table.name}"' in text


@pytest.mark.parametrize("name", NAMES)
def test_audits_are_frozen_values(name: str) -> None:
    audit = tdf.audits.NAMED_AUDITS[name]
    assert pickle.loads(pickle.dumps(audit)) == audit  # noqa: S301 - our own
    assert copy.deepcopy(audit) == audit
    assert replace(audit, min_n=5) != audit
    with pytest.raises(FrozenInstanceError):
        audit.min_n = 5  # pyright: ignore[reportAttributeAccessIssue] - what must fail
    with pytest.raises(TypeError):
        tdf.audits.NAMED_AUDITS["other"] = audit  # pyright: ignore[reportIndexIssue] - as above


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_is_the_same_of_any_frame(
    name: str, loans: pl.DataFrame, usual: Callable[[str], tdf.types.FiledAudit]
) -> None:
    expected = usual(name)
    frames: list[Any] = [loans.to_pandas(), loans.lazy()]
    others = [filed(name, data) for data in frames]
    for other in others:
        for table, frame in expected.published_tables().items():
            assert_frame_equal(other.published_tables()[table].values, frame.values)
        assert other.statement == expected.statement
    assert type(others[0].tables["unknown"]) is type(frames[0])


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_is_the_same_from_a_database(
    name: str, loans: pl.DataFrame, usual: Callable[[str], tdf.types.FiledAudit]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(loans.to_arrow())
    expected, other = usual(name), filed(name, relation)
    for table, frame in expected.published_tables().items():
        own = other.published_tables()[table].values
        by = own.columns[:2] + [name for name in ("Threshold", "Band") if name in own.columns]
        # the groups of a database have the order of their texts
        assert_frame_equal(own.sort(by), frame.values.sort(by), rel_tol=1e-6)
    assert other.statement == expected.statement


@pytest.mark.parametrize("name", NAMES)
def test_outer_groups_have_the_audit_of_their_rows(name: str, loans: pl.DataFrame) -> None:
    halves = loans.with_columns(half=pl.int_range(600) % 2)
    grouped, alone = filed(name, halves, group_by="half"), filed(name, halves.filter(half=1))
    for table, frame in alone.published_tables().items():
        texts = [column for column in frame.values.columns if frame.values[column].dtype != pl.String]
        own = grouped.published_tables()[table].values.filter(half=1)
        assert_frame_equal(own.select(texts), frame.values.select(texts))
    by_frame = filed(name, halves.group_by("half"))
    assert_frame_equal(by_frame.published(), grouped.published())


@pytest.mark.parametrize("name", NAMES)
def test_unknown_rows_are_counted_in_the_statement(name: str, usual: Callable[[str], tdf.types.FiledAudit]) -> None:
    statement = " ".join(usual(name).statement)
    assert "Of 600 rows, 15 are of unknown sex." in statement
    assert "It is not " in statement


def test_statement_counts_unknown_rows_of_the_features_that_have_some(loans: pl.DataFrame) -> None:
    def counted(name: str, data: pl.DataFrame) -> list[str]:
        filed = tdf.audit(name, data, estimate="approved", pos_label="yes", by=["sex", "race"])
        return [sentence for sentence in filed.statement if sentence.startswith(("Of ", "No row "))]

    known = loans.with_columns(pl.col("sex").fill_null("female"))
    assert counted("eeoc_uniform_guidelines", loans) == ["Of 600 rows, 15 are of unknown sex."]
    assert counted("eeoc_uniform_guidelines", known) == ["No row is of an unknown group."]
    # the table has the crossing too
    crossed = ["Of 600 rows, 15 are of unknown sex.", "Of 600 rows, 15 are of unknown sex or race."]
    assert counted("nyc_ll144", loans) == crossed


@pytest.mark.parametrize("name", NAMES)
def test_names_of_groups_are_text_in_pages(name: str, loans: pl.DataFrame) -> None:
    bad = "<b>|`x`\x1b[31m"
    data = loans.with_columns(sex=pl.col("sex").replace("female", bad))
    audited = filed(name, data)
    for text in (audited.markdown(), audited.html(), audited.page()):
        assert "<b>" not in text
        assert "\x1b" not in text
    assert "\\|\\`x\\`" in audited.markdown()


@pytest.mark.parametrize("name", NAMES)
def test_empty_data_have_empty_tables_or_an_error_that_says_so(name: str, loans: pl.DataFrame) -> None:
    try:
        audited = filed(name, loans.clear())
    except tdf.errors.TidyfairError as error:
        assert str(error)  # noqa: PT017 - either is right
    else:
        for table in audited.published_tables().values():
            assert set(table.values["Group"]) <= {"all rows"}


def test_labels_have_rows_of_their_own(loans: pl.DataFrame) -> None:
    card = tdf.audit("model_card", loans, "race", "race", by="sex", estimator="one_vs_rest")
    published = card.published()
    assert published.columns[:3] == ["By", "Group", "Label"]
    assert published.filter(Group="male")["Label"].n_unique() == loans["race"].n_unique()


def test_audits_print_how_values_are_rounded() -> None:
    text = str(tdf.audits.NAMED_AUDITS["eeoc_uniform_guidelines"])
    assert "column Impact ratio: .disparity, 3 decimals\n" in text
    assert "column Shortfall: .shortfall, 0 decimals, up\n" in text
    assert "column p (Fisher): .p_fisher, 3 significant digits\n" in text
    assert "column Selection rate (%): .estimate, in percent, 1 decimals\n" in text


def test_results_of_audits_can_be_copied_and_pickled(loans: pl.DataFrame) -> None:
    audited = filed("model_card", loans)
    assert pickle.loads(pickle.dumps(audited)).markdown() == audited.markdown()  # noqa: S301 - our own


def test_headings_do_not_hide_outer_groups_of_their_name(loans: pl.DataFrame) -> None:
    data = loans.with_columns(Group=pl.int_range(600) % 2)
    published = filed("eeoc_uniform_guidelines", data, group_by="Group").published()
    assert published.columns[:3] == ["Group", "By", "Group [2]"]


def test_crossings_are_made_once(loans: pl.DataFrame) -> None:
    expected = filed("nyc_ll144", loans).published()
    with_crossing = filed("nyc_ll144", loans, by=["sex", "race", ("sex", "race")]).published()
    assert_frame_equal(with_crossing, expected)


def test_calls_that_do_not_fit_say_what_to_write(loans: pl.DataFrame) -> None:
    with pytest.raises(tdf.errors.ArgumentError, match=r"Unknown audit 'nyc_ll44'. Did you mean 'nyc_ll144'\?"):
        tdf.audit("nyc_ll44", loans, estimate="approved", by="sex")
    with pytest.raises(tdf.errors.ArgumentError, match="nyc_ll144 needs `estimate` or `probs`"):
        tdf.audit("nyc_ll144", loans, "repaid", by="sex")
    with pytest.raises(tdf.errors.ArgumentError, match="name at least one feature as `by`"):
        tdf.audit("nyc_ll144", loans, estimate="approved", by=[])
    with pytest.raises(tdf.errors.ArgumentError, match=r"audit\(\) does not accept `interval`"):
        tdf.audit("nyc_ll144", loans, estimate="approved", by="sex", interval="auto")
    with pytest.raises(tdf.errors.ArgumentError, match=r"takes the name of an audit first"):
        tdf.audit(loans, "nyc_ll144", by="sex")  # pyright: ignore[reportArgumentType] - a slip
    slip: dict[str, Any] = {"pos_lable": "yes"}
    with pytest.raises(tdf.errors.ArgumentError, match="'pos_lable'"):
        tdf.audit("nyc_ll144", loans, estimate="approved", by="sex", **slip)
    with pytest.raises(tdf.errors.ColumnError, match="holds no numbers, so that there is no median"):
        tdf.audit("nyc_ll144", loans, probs="race", by="sex")
    with pytest.raises(tdf.errors.ArgumentError, match="Unknown table of the audit 'score'"):
        filed("nyc_ll144", loans).published("score")


def test_command_line_files_the_same_tables(
    loans: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(loans, tmp_path)
    flags = ["--as", "nyc_ll144", "--estimate", "approved", "--pos-label", "yes", "--by", "sex", "--by", "race"]
    code, out, _ = called(capsys, "audit", file, *flags, "--min-share", "0.02")
    assert code == 0
    assert "Selection rates and impact ratios" in out
    assert "It is not legal advice." in out
    paths = [tmp_path / f"audit{suffix}" for suffix in (".md", ".html", ".parquet")]
    code, out, err = called(
        capsys, "audit", file, *flags, "--markdown", str(paths[0]), "--html", str(paths[1]), "--output", str(paths[2])
    )
    assert (code, out) == (0, "")
    assert "is written" in err
    expected = tdf.audit("nyc_ll144", loans, estimate="approved", pos_label="yes", by=["sex", "race"])
    assert paths[0].read_text("utf-8") == expected.markdown()
    assert paths[1].read_text("utf-8") == expected.page()
    table = pl.read_parquet(paths[2])
    assert table[".table"].unique(maintain_order=True).to_list() == ["selections", "unknown"]
    assert (
        table.drop_nulls(".disparity")[".disparity"].to_list() == expected.tables["selections"][".disparity"].to_list()
    )


def test_command_line_lists_audits_and_refuses_what_they_do_not_take(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "audit", "--as", "list")
    assert code == 0
    assert all(name in out for name in NAMES)
    code, _, err = called(capsys, "audit", "--as", "nyc_ll144", "--metric", "accuracy")
    assert (code, "does not accept `--metric`" in err) == (2, True)
    code, _, err = called(capsys, "audit", "--as", "lending_adverse_impact", "--to", "White")
    assert (code, "write `--to race=White`" in err) == (2, True)
    code, _, err = called(capsys, "audit", "--as", "nyc_ll44")
    assert (code, "Did you mean 'nyc_ll144'?" in err) == (2, True)
    code, out, _ = called(capsys, "audit", "--as", "lending_adverse_impact", "--to", "race=White", "--to", "sex=male")
    assert (code, "Adverse impact ratios" in out) == (0, True)


def test_command_line_refuses_a_reference_without_a_named_audit(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "audit", "--to", "race=White")
    assert (code, "`--to` goes with `--as`" in err) == (2, True)


def test_command_line_takes_the_groups_of_a_named_audit_from_it(
    loans: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(loans, tmp_path)
    flags = ["--as", "nyc_ll144", "--estimate", "approved", "--pos-label", "yes", "--by", "race"]
    _, out, _ = called(capsys, "audit", file, *flags)
    assert "not compared" not in out
    _, out, _ = called(capsys, "audit", file, *flags, "--min-n", "30")
    assert "few rows: not compared" in out


def test_medians_of_weighted_rows_are_refused() -> None:
    data = lending(200).with_columns(often=2)
    for option in ("case_weights", "frequency_weights"):
        weighted: dict[str, Any] = {option: "often"}
        with pytest.raises(tdf.errors.ArgumentError, match=f"does not accept `{option}`"):
            tdf.audit("nyc_ll144", data, probs="score", by="sex", **weighted)


def test_columns_of_a_test_are_empty_where_there_is_none() -> None:
    data = lending(500)
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes", "by": "sex", "to": "male"}
    plain = tdf.audit("lending_adverse_impact", data, **call).published()["p (Fisher)"]
    weighted = tdf.audit("lending_adverse_impact", data, **call, case_weights="weight").published()["p (Fisher)"]
    assert plain.null_count() == 1
    assert weighted.null_count() == len(weighted)


def test_scores_with_a_truth_have_the_same_table_from_pandas() -> None:
    data = lending(300).with_columns(pl.col(pl.Enum).cast(pl.String))
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "by": "sex"}
    expected, from_pandas = (tdf.audit("nyc_ll144", frame, **call).published() for frame in (data, data.to_pandas()))
    assert_frame_equal(pl.from_pandas(from_pandas), expected)


def test_published_tables_are_frames_of_the_kind_given() -> None:
    data = lending(300).with_columns(pl.col(pl.Enum).cast(pl.String))
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes", "by": "sex"}
    expected = tdf.audit("nyc_ll144", data, **call).published()
    for frame in (data.to_pandas(), data.to_arrow()):
        filed = tdf.audit("nyc_ll144", frame, **call)
        assert type(filed.published()) is type(filed.published("selections")) is type(frame)
        assert list(filed.published()["Selected"]) == list(filed.tables["selections"][".numerator"])
    assert isinstance(tdf.audit("nyc_ll144", data.lazy(), **call).published(), pl.DataFrame)
    assert isinstance(expected, pl.DataFrame)


def test_a_small_sample_of_two_has_no_correction() -> None:
    people = pl.DataFrame({"score": [1.0, 2.0, 30.0], "g": ["a", "a", "b"]})
    result = tdf.audits.standardized_differences(people, "score", by="g", to="a", corrected=True)
    assert result.filter(pl.col(".group") == "b")[".disparity"].item() is None


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        *((name, "accuracy") for name in NAMES),
        *(("model_card", name) for name in ("roc_auc", "net_benefit", "base_rate", ".n", ".note", "Group", "n")),
    ],
)
def test_features_called_like_metrics_or_columns_have_their_table(
    name: str, feature: str, loans: pl.DataFrame, by_sex: Callable[[str], tdf.types.FiledAudit]
) -> None:
    expected = by_sex(name)
    renamed = loans.rename({"sex": feature})
    own = filed(name, renamed, by=feature, to="male" if "to" in CALLS[name] else None)
    for table, frame in expected.published_tables().items():
        values = own.published_tables()[table].values
        # limits of shares of rows are drawn, and the draws are those of a name
        others = frame.values.columns[1:]
        others = [column for column in others if column != "Share of rows"]
        assert_frame_equal(values.select(others), frame.values.select(others))
        assert set(values["By"]) <= {feature, ""}


@pytest.mark.parametrize("name", NAMES)
def test_features_may_be_expressions_and_are_listed_once(
    name: str, loans: pl.DataFrame, by_sex: Callable[[str], tdf.types.FiledAudit]
) -> None:
    to: dict[str, Any] = {"to": "male"} if "to" in CALLS[name] else {}
    plain = by_sex(name)
    twice = filed(name, loans, by=["sex", pl.col("sex"), ("sex",)], **to)
    assert twice.markdown() == plain.markdown()
    is_old = (pl.col("score") > 0.5).alias("high")  # pyright: ignore[reportUnknownMemberType] - of polars
    to = {"to": True} if to else {}
    made = loans.with_columns(high=pl.col("score") > 0.5)
    assert filed(name, loans, by=is_old, **to).markdown() == filed(name, made, by="high", **to).markdown()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ()}, "name at least one feature as `by`"),
        ({"by": [()]}, "name at least one feature as `by`"),
        ({"by": ("sex", "sex")}, r"audit\(\): `by` crosses 'sex' with itself"),
        ({"min_n": -1}, r"audit\(\): `min_n` is a whole number, 0 or more"),
        ({"unknown_values": 5}, "`unknown_values` is a list of values of the feature, not 5"),
        ({"unknown_values": "male"}, "`unknown_values` is a list of values of the feature, not 'male'"),
        ({"to": "male"}, "does not accept `to`"),
        ({"within": "race"}, "does not accept `within`"),
    ],
)
def test_arguments_of_audits_are_checked(options: dict[str, Any], message: str, loans: pl.DataFrame) -> None:
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes", "by": "sex", **options}
    with pytest.raises(tdf.errors.ArgumentError, match=message):
        tdf.audit("eeoc_uniform_guidelines", loans, **call)


@pytest.mark.parametrize("name", ["clinical_tripod_ai", "eu_ai_act_data", "model_card"])
def test_events_that_do_not_occur_are_refused(name: str, loans: pl.DataFrame) -> None:
    with pytest.raises(tdf.errors.LabelError, match="'maybe' is not among the labels"):
        filed(name, loans, pos_label="maybe")


@pytest.mark.parametrize(
    ("option", "table", "columns"),
    [
        ("case_weights", "segments", {"within": "race"}),
        *(
            (option, table, columns)
            for option in ("frequency_weights", "cluster")
            for table, columns in (("scores", {"probs": "score"}), ("segments", {"within": "race"}))
        ),
    ],
)
def test_tables_refuse_options_that_they_would_not_heed(option: str, table: str, columns: dict[str, Any]) -> None:
    loans = lending(200).with_columns(often=2)
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes", "by": "sex", "to": "male", option: "often"}
    with pytest.raises(tdf.errors.ArgumentError, match=f"the table '{table}' does not accept `{option}`"):
        tdf.audit("lending_adverse_impact", loans, **call, **columns)


@pytest.mark.parametrize("column", ["repaid", "score"])
def test_residuals_without_rows_say_which_columns_lack_values(column: str, loans: pl.DataFrame) -> None:
    lacking = loans.with_columns(pl.lit(None, dtype=loans.schema[column]).alias(column))
    with pytest.raises(tdf.errors.ArgumentError, match=r"the table '(scores|residuals)' has no row with"):
        filed("lending_adverse_impact", lacking)


CHANGES: dict[str, Any] = {
    "name": "x", "title": "x", "version": "x", "source": "x", "purpose": "x", "is_not": ("x",), "readings": ("x",),
    "tables": (), "unknown": "drop", "unknown_values": ("x",), "complete_rows": False, "min_n": 5, "min_share": 0.5,
    "one_event": True,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_audits_that_differ_print_differently(change: str) -> None:
    audit = tdf.audits.NAMED_AUDITS["nyc_ll144"]
    assert set(CHANGES) == {item.name for item in fields(audit)}
    assert str(replace(audit, **{change: CHANGES[change]})) != str(audit)


def test_tables_that_differ_print_differently() -> None:
    audit = tdf.audits.NAMED_AUDITS["eeoc_uniform_guidelines"]
    (table,) = audit.tables
    assert isinstance(table, tdf.types.ComparisonTable)
    column = table.columns[2]
    changed: list[Any] = [
        replace(table, heading="x"), replace(table, metric=tdf.accuracy), replace(table, to="majority"),
        replace(table, scale="difference"), replace(table, test="mid_p"), replace(table, cut="median"),
        replace(table, crossed=True), replace(table, derived=()), replace(table, needs=("truth",)),
        replace(table, columns=(replace(column, percent=False),)), replace(table, columns=(column,)),
        replace(table, columns=(replace(column, column=".disparity"),)),
        replace(table, columns=(replace(column, digits=4),)),
    ]  # fmt: skip
    texts = {str(replace(audit, tables=(other,))) for other in [table, *changed]}
    assert len(texts) == 1 + len(changed)


def test_a_changed_column_is_one_line_of_the_difference_of_two_audits() -> None:
    audit = tdf.audits.NAMED_AUDITS["eeoc_uniform_guidelines"]
    (table,) = audit.tables
    columns = tuple(
        replace(column, digits=4) if column.heading == "Impact ratio" else column for column in table.columns
    )
    ours = replace(audit, version="ours", tables=(replace(table, columns=columns),))
    lines = list(difflib.unified_diff(str(audit).splitlines(), str(ours).splitlines(), n=0))[2:]
    changed = [line for line in lines if line[0] in "+-"]
    assert [line[0] for line in changed] == ["-", "+", "-", "+"]
    assert "version: ours" in changed[1]
    assert "Impact ratio" in changed[3]
    assert "4 decimals" in changed[3]


def own_table(**changes: Any) -> tdf.types.ComparisonTable:
    values: dict[str, Any] = {
        "name": "t", "heading": "T", "needs": ("truth", "estimate"), "metric": tdf.recall,
        "columns": (tdf.types.PublishedColumn(column=".n", heading="Rows"),), **changes,
    }  # fmt: skip
    return tdf.types.ComparisonTable(**values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"needs": "truth"}, "`needs` lists arguments"),
        ({"needs": ("truht",)}, r"Did you mean 'truth'\?"),
        ({"columns": ()}, "`columns` lists"),
    ],
)
def test_tables_of_ones_own_are_checked_when_they_are_made(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(tdf.errors.ArgumentError, match=message):
        own_table(**changes)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            tdf.types.PublishedColumn(column=".estimat", heading="x"),
            r"has no column '.estimat'. Did you mean '.estimate'\?",
        ),
        (tdf.types.PublishedColumn(column=".group", heading="x", digits=2), "'.group' holds no numbers"),
    ],
)
def test_columns_of_ones_own_that_cannot_be_published_are_refused(
    column: tdf.types.PublishedColumn, message: str, loans: pl.DataFrame
) -> None:
    ours = tdf.types.NamedAudit(
        name="ours",
        title="Ours",
        version="1",
        source="us",
        purpose="p",
        is_not=(),
        tables=(own_table(columns=(column,)),),
    )
    with pytest.raises(tdf.errors.ArgumentError, match=message):
        tdf.audit(ours, loans, "repaid", "approved", pos_label="yes", by="sex").published()


def test_columns_of_values_are_those_of_the_metrics_of_their_table() -> None:
    with pytest.raises(tdf.errors.ArgumentError, match=r"'recal'.* Did you mean 'recall'\?"):
        tdf.types.ValuesTable(
            name="t", heading="T", needs=("truth",), metrics=(tdf.recall,),
            columns=(tdf.types.PublishedColumn(column="recal", heading="x"),),
        )  # fmt: skip


def test_command_line_has_segments(loans: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(loans, tmp_path)
    flags = ["--as", "lending_adverse_impact", "--estimate", "approved", "--pos-label", "yes", "--by", "sex"]
    table = tmp_path / "tables.parquet"
    code, _, err = called(
        capsys,
        "audit",
        file,
        *flags,
        "--to",
        "sex=male",
        "--within",
        "age_band",
        "--within",
        "fold",
        "--output",
        str(table),
    )
    assert (code, "is written" in err or not err) == (0, True)
    expected = tdf.audit(
        "lending_adverse_impact", loans, estimate="approved", pos_label="yes", by="sex", to="male",
        within=["age_band", "fold"],
    ).tables["segments"]  # fmt: skip
    own = pl.read_parquet(table).filter(pl.col(".table") == "segments")
    assert own[".ratio"].to_list() == expected[".ratio"].to_list()
    code, _, err = called(capsys, "audit", file, "--within", "age_band")
    assert (code, "`--within` goes with `--as`" in err) == (2, True)


def test_significant_digits_are_written_out() -> None:
    column = tdf.types.PublishedColumn(column=".p_value", heading="p", significant=3)
    assert [column.text(value) for value in (0.39, 1.0, 0.001, 0.00099, 0.0)] == [
        "0.390",
        "1.00",
        "0.00100",
        "< 0.001",
        "< 0.001",
    ]
    other = tdf.types.PublishedColumn(column=".estimate", heading="Value", significant=3)
    assert [other.text(value) for value in (0.0, 8.27e-14, 123.0)] == ["0.00", "8.27e-14", "123"]


def test_filed_audits_say_who_audited_what_and_are_saved(loans: pl.DataFrame, tmp_path: Path) -> None:
    who: dict[str, Any] = {"auditor": "A <b>", "model": "Trees", "model_version": "2.1", "date": "2026-06-01"}
    made = tdf.audit("nyc_ll144", loans, estimate="approved", pos_label="yes", by=[("sex", "race")], **who)
    assert dict(made.facts) == {"Audited by": "A <b>", "Model": "Trees", "Version": "2.1", "Date": "2026-06-01"}
    page = made.save(tmp_path / "audit.html").read_text("utf-8")
    assert "<dt>Audited by</dt><dd>A &lt;b&gt;</dd>" in page
    lines = made.save(tmp_path / "audit.md").read_text("utf-8").splitlines()
    assert lines[2:6] == ["- Audited by: A &lt;b&gt;", "- Model: Trees", "- Version: 2.1", "- Date: 2026-06-01"]
    assert any(line.startswith("| sex, race | Female, White | ") for line in lines)
    assert "Note" not in "".join(lines[:12])
    with pytest.raises(tdf.errors.ArgumentError, match=r"\.docx"):
        made.save(tmp_path / "audit.docx")
    with pytest.raises(tdf.errors.ArgumentError, match="`auditor` is a text, not 3"):
        tdf.audit("nyc_ll144", loans, estimate="approved", pos_label="yes", by="sex", auditor=3)  # pyright: ignore[reportArgumentType] - bad input


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_opens_the_page_of_an_audit(width: int, loans: pl.DataFrame, tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>|{{x}}"
    audited = filed("model_card", loans.with_columns(sex=pl.col("sex").replace("female", bad)))
    page = tmp_path / "audit.html"
    page.write_text(audited.page(), "utf-8")
    read = Page(in_a_browser(page, tmp_path / "audit.png", width))
    assert bad in read.text
    assert not read.all("script")
    tables = read.all("table")
    assert len(tables) == 2


def test_numbers_stand_right_in_tables_of_pages(loans: pl.DataFrame) -> None:
    table = filed("eeoc_uniform_guidelines", loans).published_tables()["adverse_impact"]
    assert '<th class="number" scope="col">Applicants</th>' in table.html()
    assert '<th scope="col">Compared with</th>' in table.html()
    assert '<th scope="col">Below 4/5</th>' in table.html()
    rules = table.markdown().splitlines()[1].strip("| ").split(" | ")
    are_right = [column for column, rule in zip(table.values.columns, rules, strict=True) if rule == "---:"]
    numbers = [column for column, dtype in table.values.schema.items() if dtype.is_numeric()]
    assert are_right == numbers
    card = filed("model_card", loans).published_tables()["performance"].html()
    assert '<th class="number" scope="col">Sensitivity</th>' in card
    assert '<th scope="col">Note</th>' in card


def test_an_audit_without_a_feature_says_what_to_write(loans: pl.DataFrame) -> None:
    with pytest.raises(tdf.errors.TidyfairError, match=r"audit\(\) compares groups: name the feature, `by="):
        tdf.audit("nyc_ll144", loans, estimate="approved", pos_label="yes")
