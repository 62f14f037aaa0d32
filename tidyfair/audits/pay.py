"""Audits of pay: the gaps that employers report under the European directive on pay transparency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import polars as pl

from tidyfair.audits.credit import reference_of
from tidyfair.audits.effect_sizes import relative_gaps
from tidyfair.audits.named_audits import NOTE, AuditCall, AuditTable, NamedAudit, note
from tidyfair.audits.published import PublishedColumn
from tidyfair.errors import ArgumentError, ColumnError, Status
from tidyfair.evaluation import texts_of
from tidyfair.specs import By, Column, Policy, is_list, key_columns, refuse_reserved
from tidyfair.specs.result_kinds import PAY_BANDS, PAY_GAPS
from tidyfair.tallies import open_frame

__all__ = ["PayBandsTable", "PayGapTable"]

Pay: TypeAlias = Literal["level", "basic", "complementary", "receiver"]
_NUMBERS = "\0pay"
_JOINT_ASSESSMENT = 0.05 - 1e-12
"""The gap of a category from which Article 10(1)(a) applies; equal numbers may differ in their last digit."""
_BANDS = 4


def pay_of_rows(call: AuditCall, pay: Pay) -> tuple[pl.DataFrame, list[Any]]:
    """The rows with a component of their pay, null for those who have none; and the columns of outer groups."""
    source = open_frame(call.data, call.counting.get("group_by"))
    refuse_reserved("group_by", source.outer)
    rows = source.to_polars()
    wanted = {"level": ("estimate", Column.of(call.estimate, "estimate"))}
    if call.complementary is not None:
        wanted["complementary"] = ("complementary", Column.of(call.complementary, "complementary"))
    numbers = open_frame(rows).read(wanted)
    for role, column in wanted.values():
        values = numbers["level" if role == "estimate" else role]
        if not values.dtype.is_numeric() or (values < 0).any():
            msg = f"`{role}`: the column {column.name!r} has to hold pay, numbers of at least 0; null is no pay."
            raise ColumnError(msg)
    numbers = numbers.with_columns(pl.all().cast(pl.Float64).fill_nan(None))
    level = pl.col("level")
    if pay != "level":
        received = pl.col("complementary").fill_null(0)
        if numbers.select((received > level).any()).item():
            msg = (
                "audit(): complementary components exceed pay in some rows; `estimate` is the whole of pay, and "
                "`complementary` the part of it that is not ordinary basic pay."
            )
            raise ArgumentError(msg)
        components = {
            "basic": level - received,
            "complementary": pl.when(level.is_not_null() & (received > 0)).then(received),
            "receiver": pl.when(level.is_not_null()).then((received > 0).cast(pl.Float64)),
        }
        level = components[pay]
    return rows.with_columns(numbers.select(level.alias(_NUMBERS)).to_series()), source.group_by


@dataclass(frozen=True, kw_only=True)
class PayGapTable(AuditTable):
    """A table of gaps of pay: how much less a group has than the reference, as a share of what that has.

    Args:
        name: The name of the table in `.tables`.
        heading: The heading of the published table.
        needs: The arguments without which there is no such table.
        pay: What is compared: the `"level"` of pay, its `"basic"` part, its `"complementary"` part among those who
            receive any, or 1 for each `"receiver"`; of several the first has the rows.
        statistic: `"mean"` or `"median"`.
        columns: The columns as they are published.
    """

    pay: tuple[Pay, ...] = ("level",)
    statistic: Literal["mean", "median"] = "mean"

    @property
    def takes_reference(self) -> bool:
        """True if the caller names the group that others are compared with."""
        return True

    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame; by categories of workers, if the table needs `within`."""
        call.refuse_weights(self.name, "estimate")
        categories: list[Any] = []
        if "within" in self.needs:
            categories = list(call.within) if is_list(call.within) else [call.within]
        policy = Policy.of("audit()", **audit.group_options)
        to = {By.of(feature, "audit", policy).text: reference_of(call, feature) for feature in call.features}
        frames: dict[str, pl.DataFrame] = {}
        for pay in self.pay:
            rows, outer = pay_of_rows(call, pay)
            frames[pay] = relative_gaps(
                PAY_GAPS, rows, Column(_NUMBERS), by=list(call.features), to=to, value=_VALUES[self.statistic],
                group_by=[*outer, *categories], policy=policy,
            )  # fmt: skip
        (_, frame), *others = frames.items()
        keys = [*key_columns(frame), ".by", ".group"]
        for pay, other in others:
            gaps = other.select(*keys, pl.col(".gap").alias(f".gap_{pay}"))
            frame = frame.join(gaps, on=keys, how="left", nulls_equal=True, maintain_order="left")
        if "within" in self.needs and self.pay[0] == "level":
            frame = frame.with_columns((pl.col(".gap").abs() >= _JOINT_ASSESSMENT).alias(".is_large_gap"))
        reasons = {status: Status.text_of(status) for status in frame[".status"].unique()}
        reason = pl.col(".status").replace_strict(reasons, return_dtype=pl.String)
        without = pl.when(pl.col(".gap").is_null() & (note() == "")).then("no gap: " + reason).otherwise(note())
        return PAY_GAPS.frame(frame.with_columns(without.alias(NOTE)))

    def specification(self) -> str:
        """The table in words."""
        by_category = ", by category of workers" if "within" in self.needs else ""
        return (
            f"{self.statistic} of pay ({', '.join(self.pay)}) by group{by_category}, and 1 less its ratio to that of "
            "a group that the caller names"
        )


@dataclass(frozen=True, kw_only=True)
class PayBandsTable(AuditTable):
    """A table of the groups of workers in each quartile band of pay: four equal groups, from lowest to highest pay.

    A remainder of workers goes to the bands as evenly as can be, the lowest first. Workers of the same pay at the
    border of two bands are divided in the same proportion whatever their group, so that their order does not matter.
    """

    def frame(self, call: AuditCall, audit: NamedAudit) -> pl.DataFrame:
        """The tidy frame."""
        call.refuse_weights(self.name, "estimate")
        rows, outer = pay_of_rows(call, "level")
        policy = Policy.of("audit()", **audit.group_options)
        parts: list[pl.DataFrame] = []
        for feature in call.features:
            by = By.of(feature, "audit", policy)
            columns = [*(Column.of(key, "group_by") for key in outer), *by.columns]
            read = open_frame(rows).read({
                "pay": ("estimate", Column(_NUMBERS)),
                **{f"key {index}": ("by", column) for index, column in enumerate(columns)},
            }).drop_nulls("pay")  # fmt: skip
            names = read.columns[1:]
            keys, groups = names[: len(outer)], names[len(outer) :]
            bands = _in_bands(read.filter(~policy.is_unknown(read.select(groups))), keys, groups)
            text = texts_of(bands.select(groups)).alias(".group")
            bands = bands.select(*keys, pl.lit(by.text).alias(".by"), text, ".bin", ".n", ".estimate")
            parts.append(bands.rename(dict(zip(keys, (column.name for column in columns), strict=False))))
        return PAY_BANDS.frame(pl.concat(parts))

    def specification(self) -> str:
        """The table in words."""
        return f"share of each group in {_BANDS} equal groups of workers by pay, ties divided in proportion"


def _in_bands(rows: pl.DataFrame, keys: list[str], groups: list[str]) -> pl.DataFrame:
    """The workers of each group in each band of each outer group, and their share of the band."""
    together = [pl.lit(0).alias("\0all"), *map(pl.col, keys)]
    alike = rows.group_by(*together, "pay").agg(pl.len().cast(pl.Int64).alias("size")).sort("pay")
    outer = alike.columns[:-2]
    last, total = pl.col("size").cum_sum().over(outer), pl.col("size").sum().over(outer)
    alike = alike.with_columns(last.alias("last"), total.alias("total"))
    bands = alike.join(pl.DataFrame({".bin": range(1, _BANDS + 1)}), how="cross")
    # the borders are rounded up
    low, high = ((pl.col("total") * (pl.col(".bin") - step) + _BANDS - 1) // _BANDS for step in (1, 0))
    inside = pl.min_horizontal("last", high) - pl.max_horizontal(pl.col("last") - pl.col("size"), low)
    bands = bands.with_columns((inside.clip(lower_bound=0) / pl.col("size")).alias("part"))
    counted = rows.group_by(*together, *groups, "pay").len("workers")
    counted = counted.join(bands, on=[*outer, "pay"], nulls_equal=True)
    of_groups = counted.group_by(*outer, ".bin", *groups).agg((pl.col("workers") * pl.col("part")).sum().alias(".n"))
    share = pl.col(".n") / pl.col(".n").sum().over(*outer, ".bin")
    return of_groups.with_columns(share.alias(".estimate")).sort(*outer, ".bin", *groups, nulls_last=True)


_VALUES: Mapping[str, pl.Expr] = {"mean": pl.col("value").mean(), "median": pl.col("value").median()}
_WORKERS, _RECEIVERS = (PublishedColumn(column=".n", heading=heading) for heading in ("Workers", "Receivers"))
_REFERENCE = PublishedColumn(column=".reference", heading="Compared with")
_NOTE = PublishedColumn(column=NOTE, heading="Note")


def _percent(column: str, heading: str) -> PublishedColumn:
    return PublishedColumn(column=column, heading=heading, digits=1, percent=True)


def _gap_table(letter: str, statistic: Literal["mean", "median"], pay: Pay) -> PayGapTable:
    """The table of a single gap of the whole of the workers."""
    is_level = pay == "level"
    number = "gap" if is_level else "gap in complementary or variable components"
    value = PublishedColumn(column=".estimate", heading=f"{statistic.capitalize()} pay", digits=2)
    return PayGapTable(
        name=f"{statistic}_gap" if is_level else f"{statistic}_gap_{pay}",
        heading=f"({letter}) {'Gender' if statistic == 'mean' else 'Median gender'} pay {number}",
        needs=("estimate",) if is_level else ("estimate", "complementary"), pay=(pay,), statistic=statistic,
        columns=(_WORKERS if is_level else _RECEIVERS, value, _REFERENCE, _percent(".gap", "Gap (%)"), _NOTE),
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
        "A gap is 1 less the ratio to the reference, as men are in the Directive; below 0, the group has more.",
        "Gaps in complementary components are of those who receive any, as in the method of gov.uk.",
        "Bands are four equal groups of the workers of known group; equal pay at a border is divided in proportion.",
        "Values are of all workers, not of a sample, and have no intervals.",
    ),
    tables=(
        _gap_table("a", "mean", "level"),
        _gap_table("b", "mean", "complementary"),
        _gap_table("c", "median", "level"),
        _gap_table("d", "median", "complementary"),
        PayGapTable(
            name="receivers", heading="(e) Workers receiving complementary or variable components",
            needs=("estimate", "complementary"), pay=("receiver",),
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
            columns=(
                _WORKERS, _percent(".gap", "Gap (%)"),
                PublishedColumn(column=".is_large_gap", heading="At least 5 %"), _NOTE,
            ),
        ),
        PayGapTable(
            name="category_components", heading="(g) The same by ordinary basic pay and complementary components",
            needs=("estimate", "complementary", "within"), pay=("basic", "complementary"),
            columns=(
                _WORKERS, _percent(".gap", "Gap in basic pay (%)"),
                _percent(".gap_complementary", "Gap in complementary components (%)"), _NOTE,
            ),
        ),
    ),
)  # fmt: skip
