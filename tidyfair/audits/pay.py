"""Audits of pay: the gaps that employers report under the European directive on pay transparency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import polars as pl

from tidyfair.audits.credit import reference_of
from tidyfair.audits.effect_sizes import relative_gaps, with_numbers
from tidyfair.audits.named_audits import NOTE, AuditCall, AuditTable, NamedAudit, note, read_feature
from tidyfair.audits.published import PublishedColumn
from tidyfair.errors import ArgumentError, ColumnError, Status, listed
from tidyfair.evaluation import UNGROUPED
from tidyfair.specs import By, Column, Policy, is_list, refuse_reserved
from tidyfair.specs.result_kinds import PAY_BANDS, PAY_GAPS
from tidyfair.tallies import open_frame

Pay: TypeAlias = Literal["level", "basic", "complementary", "receiver"]
"""All pay; its ordinary basic part; its complementary part, of those who receive any; or 1 for these, else 0."""
_PAY = "\0pay"
_LARGE_GAP = 0.05 - 1e-12
"""The gap of a category to which Article 10(1)(a) applies; equal numbers may differ in their last digits."""
_BANDS = 4


def _refuse_unread(call: AuditCall, table: str) -> None:
    """Refuse what a table of pay does not read."""
    for option, value in {"truth": call.truth, **call.counting}.items():
        if option != "group_by" and value is not None:
            msg = f"audit(): the table {table!r} does not accept `{option}`; leave out `{option}` or `estimate`."
            raise ArgumentError(msg)


def _with_pay(call: AuditCall, table: str, pay: Pay, within: Sequence[Any] = ()) -> tuple[pl.DataFrame, list[Any]]:
    """The rows with their pay, null for those without any, and the columns of outer groups and categories."""
    _refuse_unread(call, table)
    source = open_frame(call.data, call.counting.get("group_by"))
    refuse_reserved("group_by", source.outer)
    rows = source.to_polars()
    given = {"estimate": call.estimate, "complementary": call.complementary}
    columns = {role: Column.of(column, role) for role, column in given.items() if column is not None}
    read = open_frame(rows).read({role: (role, column) for role, column in columns.items()})
    for role, column in columns.items():
        if not read[role].dtype.is_numeric() or (read[role] < 0).any() or read[role].is_infinite().any():
            msg = f"`{role}`: the column {column.name!r} has to hold pay, finite numbers of at least 0; null is no pay."
            raise ColumnError(msg)
    level, received = pl.col("estimate"), pl.col("complementary").fill_null(0)
    read = read.select(pl.all().cast(pl.Float64).fill_nan(None))
    if pay != "level" and read.select((received > level).any()).item():
        msg = (
            "audit(): complementary components exceed pay in some rows; `estimate` is the whole of pay, and "
            "`complementary` the part of it that is not ordinary basic pay."
        )
        raise ArgumentError(msg)
    parts: dict[Pay, pl.Expr] = {
        "level": level,
        "basic": level - received,
        "complementary": pl.when(level.is_not_null() & (received > 0)).then(received),
        "receiver": pl.when(level.is_not_null()).then((received > 0).cast(pl.Float64)),
    }
    paid = read.select(parts[pay].alias(_PAY)).to_series()
    if 0 < len(paid) == paid.null_count():
        name = columns["complementary" if pay == "complementary" else "estimate"].name
        way_out = "; leave `complementary` out" if pay == "complementary" else ""
        msg = f"audit(): the table {table!r} has no rows: nobody has pay in {name!r}{way_out}."
        raise ArgumentError(msg)
    for category in (column for column in within if isinstance(column, str) and column not in rows.columns):
        msg = f"`within`: there is no column {category!r}. Columns: {listed(rows.columns)}."
        raise ColumnError(msg)
    rows = call.rows(rows.with_columns(paid), _PAY, *within)
    return rows, [*source.group_by, *within]


@dataclass(frozen=True, kw_only=True)
class PayGapTable(AuditTable):
    """A table of how much less pay groups have than the reference; by categories of workers, if it needs `within`."""

    takes_reference: ClassVar[bool] = True
    pay: Pay = "level"
    statistic: Literal["mean", "median"] = "mean"

    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame."""
        policy = Policy.of("audit()", **audit.group_options)
        to = {read_feature(feature).text: reference_of(call, feature) for feature in call.features}
        value = pl.col("value").median() if self.statistic == "median" else pl.col("value").mean()
        categories: Any = call.within if is_list(call.within) else [call.within]
        rows, group_by = _with_pay(call, self.name, self.pay, categories if "within" in self.needs else ())
        frame = relative_gaps(
            PAY_GAPS, rows, Column(_PAY), by=list(call.features), to=to, value=value, group_by=group_by, policy=policy
        )
        if "within" in self.needs and self.pay == "level":
            frame = frame.with_columns((pl.col(".gap").abs() >= _LARGE_GAP).alias(".is_large_gap"))
        reasons = {status: f"no gap: {Status.text_of(status)}" for status in frame[".status"].unique()}
        reason = pl.col(".status").replace_strict(reasons, return_dtype=pl.String)
        is_undefined = pl.col(".gap").is_null() & (note() == "")
        return PAY_GAPS.frame(frame.with_columns(pl.when(is_undefined).then(reason).otherwise(note()).alias(NOTE)))

    def specification(self) -> str:
        """The table in words."""
        by_category = ", by category of workers" if "within" in self.needs else ""
        return f"{self.statistic} of {self.pay} pay by group{by_category}, and its gap to a group that is named"


@dataclass(frozen=True, kw_only=True)
class PayBandsTable(AuditTable):
    """A table of the groups of workers in four equal bands of pay, from lowest to highest.

    What is left over goes to the bands as evenly as can be, the lowest first. Workers of the same pay at the border of
    two bands are divided in the same proportion whatever their group, so that their order does not matter.
    """

    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame."""
        rows, outer = _with_pay(call, self.name, "level")
        policy = Policy.of("audit()", **audit.group_options)
        bys = [By.of(feature, "audit", policy) for feature in call.features]
        parts: list[pl.DataFrame] = []
        for by, (cells, paid) in with_numbers("audit", rows, Column(_PAY), bys, outer or None).items():
            bands = _in_bands(paid.filter(pl.col("status").ne_missing(Status.UNKNOWN.value)))
            names = pl.lit(by.text).alias(".by"), cells.text[bands["cell"]].alias(".group")
            keys = cells.outer_keys[bands["outer"]].drop(UNGROUPED, strict=False)
            parts.append(pl.concat([keys, bands.select(*names, ".bin", ".n", ".estimate")], how="horizontal"))
        return PAY_BANDS.frame(pl.concat(parts))

    def specification(self) -> str:
        """The table in words."""
        return f"share of each group in {_BANDS} equal bands of workers by pay, ties divided in proportion"


def _in_bands(rows: pl.DataFrame) -> pl.DataFrame:
    """The workers of each group cell in each band of its outer group, and their share of the band."""
    alike = rows.unique("row").group_by("outer", "value").agg(pl.len().cast(pl.Int64).alias("size")).sort("value")
    last, total = pl.col("size").cum_sum().over("outer"), pl.col("size").sum().over("outer")
    bands = alike.with_columns(last.alias("last"), total.alias("total"))
    bands = bands.join(pl.DataFrame({".bin": range(1, _BANDS + 1)}), how="cross")
    # the borders are rounded up
    low, high = ((pl.col("total") * (pl.col(".bin") - step) + _BANDS - 1) // _BANDS for step in (1, 0))
    inside = pl.min_horizontal("last", high) - pl.max_horizontal(pl.col("last") - pl.col("size"), low)
    bands = bands.with_columns(inside.clip(lower_bound=0).alias("inside"))
    part, every = pl.col("inside") / pl.col("size"), pl.col("inside").sum().over("outer", ".bin")
    bands = bands.with_columns(part.alias("part"), every.alias("all"))
    counted = rows.group_by("outer", "cell", "value").len().join(bands, on=["outer", "value"])
    workers = (pl.col("len") * pl.col("part")).sum().alias(".n")
    of_groups = counted.group_by("outer", ".bin", "cell").agg(workers, pl.col("all").first())
    share = (pl.col(".n") / pl.col("all")).alias(".estimate")
    return of_groups.with_columns(share).sort("outer", ".bin", "cell")


def _percent(column: str, heading: str) -> PublishedColumn:
    return PublishedColumn(column=column, heading=heading, digits=1, percent=True)


_WORKERS, _RECEIVERS = (PublishedColumn(column=".n", heading=heading) for heading in ("Workers", "Receivers"))
_GAP = _percent(".gap", "Gap (%)")
_REFERENCE = PublishedColumn(column=".reference", heading="Compared with")
_NOTE = PublishedColumn(column=NOTE, heading="Note")


def _gap_table(letter: str, statistic: Literal["mean", "median"], *needs: str) -> PayGapTable:
    """The table of a gap of all workers, or of complementary components if it needs these."""
    name, heading = f"{statistic}_gap", f"({letter}) {'Median gender' if statistic == 'median' else 'Gender'} pay gap"
    value = PublishedColumn(column=".estimate", heading=f"{statistic.capitalize()} pay", digits=2)
    columns = (_WORKERS, value, _REFERENCE, _GAP, _NOTE)
    if not needs:
        return PayGapTable(name=name, heading=heading, needs=("estimate",), statistic=statistic, columns=columns)
    return PayGapTable(
        name=f"{name}_complementary", heading=f"{heading} in complementary or variable components",
        needs=("estimate", *needs), pay="complementary", statistic=statistic, columns=(_RECEIVERS, *columns[1:]),
    )  # fmt: skip


eu_pay_transparency = NamedAudit(
    name="eu_pay_transparency",
    title="Gender pay gaps that employers report under the EU Pay Transparency Directive",
    version=(
        "Directive (EU) 2023/970 of 2023-05-10, to be transposed by 2026-06-07; first reports by 2027-06-07 (150 "
        "workers and more) or 2031-06-07 (100 and more); laws of member states were not read"
    ),
    source="OJ L 132 of 2023-05-17, Articles 3(1), 9(1)(a) to (g), 9(2) to 9(4) and 10(1)(a)",
    purpose=(
        "mean and median gaps of pay and of its complementary or variable components, receivers of these, quartile "
        "bands, and gaps by category of workers with those of at least 5 percent"
    ),
    is_not=(
        "the report in the form of a member state, whose law may define pay, hours and dates more closely",
        "a finding of unequal pay: gaps of all workers compare different work, and justification is for people to show",
        "a joint pay assessment under Article 10, which a gap of 5 percent alone does not require",
        "legal advice",
    ),
    readings=(
        "Pay is what the caller passes, gross and per hour or year, with its complementary or variable components.",
        "A gap is 1 minus the ratio to the reference, as men are in the Directive; below 0, the group has more.",
        "Gaps in complementary components are of those who receive any, as in the method of gov.uk.",
        "Bands are four equal groups of the workers of known group; equal pay at a border is divided in proportion.",
        "Values are of all workers, not of a sample, and have no intervals.",
    ),
    tables=(
        _gap_table("a", "mean"),
        _gap_table("b", "mean", "complementary"),
        _gap_table("c", "median"),
        _gap_table("d", "median", "complementary"),
        PayGapTable(
            name="receivers", heading="(e) Workers receiving complementary or variable components",
            needs=("estimate", "complementary"), pay="receiver",
            columns=(_WORKERS, _percent(".estimate", "Receiving (%)"), _NOTE),
        ),
        PayBandsTable(
            name="quartile_bands", heading="(f) Workers in each quartile pay band", needs=("estimate",),
            columns=(
                PublishedColumn(column=".n", heading="Workers", digits=1), _percent(".estimate", "Share of band (%)"),
            ),
        ),
        PayGapTable(
            name="categories", heading="(g) Gender pay gap by category of workers", needs=("estimate", "within"),
            columns=(_WORKERS, _GAP, PublishedColumn(column=".is_large_gap", heading="At least 5%"), _NOTE),
        ),
        PayGapTable(
            name="categories_basic", heading="(g) Ordinary basic pay by category of workers",
            needs=("estimate", "complementary", "within"), pay="basic", columns=(_WORKERS, _GAP, _NOTE),
        ),
        PayGapTable(
            name="categories_complementary", heading="(g) Complementary or variable components by category of workers",
            needs=("estimate", "complementary", "within"), pay="complementary", columns=(_RECEIVERS, _GAP, _NOTE),
        ),
    ),
)  # fmt: skip
