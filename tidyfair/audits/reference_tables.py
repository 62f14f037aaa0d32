"""Reference tables: each group compared with a reference, one row for each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, Unpack, cast

import numpy as np
import polars as pl

from tidyfair.audits.effect_sizes import (
    SPREADS,
    Spread,
    Standardization,
    columns_of_features,
    groups_by_feature,
    two_sided,
    welch,
)
from tidyfair.audits.references import (
    BY_VALUE,
    IN_WORDS,
    against_rest,
    limits_to_overall,
    reference_index,
    share_of_group,
)
from tidyfair.audits.usual_metrics import Feature
from tidyfair.audits.variations import VARIATIONS, Variations, check_mean, with_variation
from tidyfair.calling import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, Run, comparison, metric_set
from tidyfair.errors import ArgumentError, Status, in_short, listed, nearest
from tidyfair.evaluation import GROUP_CELL, LEVEL, Evaluated
from tidyfair.inference.gates import GroupsCompared
from tidyfair.inference.testing import PairwiseTest, fisher, pairwise, with_adjusted_p_values
from tidyfair.intervals import (
    SCALES,
    ComparedGroups,
    Scale,
    Uncertainty,
    check_positive,
    check_scale,
    compare_values,
    families,
    method_of,
    p_values,
    scale_of,
    share_of,
    z_value,
)
from tidyfair.specs import (
    CONTEXTS,
    ONE_LABEL,
    RESERVED,
    By,
    ComputeOptions,
    Contrast,
    Options,
    Policy,
    SurveyCallOptions,
    Treatment,
    difference,
    flag,
    is_value,
    one_of,
    refuse_unknown_keywords,
    show_keywords,
)
from tidyfair.specs.result_kinds import COMPARISONS, ResultKind
from tidyfair.tallies import BLOCK, HIDDEN, Tally, check_tally

Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["GroupComparison", "compare_groups"]

Test: TypeAlias = Literal["interval", "fisher", "mid_p", "z", "welch"]
TableScale: TypeAlias = Literal["difference", "ratio", "odds_ratio", "standardized"]
_TESTS = ("interval", "fisher", "mid_p", "z", "welch")
_ADJUSTMENTS = ("holm", "bh", "by", "none")
_FAMILIES = ("all", "metric", "by")
_REFUSED: dict[str, str] = dict.fromkeys(("interval", "parts", "keep_rows"), "")
"""The options of metrics that it does not accept, and why."""
_NUMBERS = (
    ".estimate_lower", ".estimate_upper", ".estimate_reference", ".disparity", ".lower", ".upper", ".std_error",
    ".statistic", ".df", ".p_value", ".numerator_reference",
    ".denominator_reference", ".shortfall", ".shortfall_four_fifths", ".deviations", ".flip_flop", ".spread",
)  # fmt: skip
_TEXTS = (".reference", ".method", ".test")
_DETAILS = (
    ".numerator", ".denominator", ".numerator_reference", ".denominator_reference", ".shortfall",
    ".shortfall_four_fifths", ".deviations", ".flip_flop", ".spread",
)  # fmt: skip
"""The columns that are shown when asked for."""
_FOUR_FIFTHS = 0.8
_NUMBER = "\0number of the metric"


@dataclass(frozen=True, repr=False)
class GroupComparison(GroupsCompared):
    """Metrics whose groups are compared with a reference, as a callable on dataframes; made by `compare_groups`."""

    subject: ClassVar[str] = "compare_groups()"
    kind: ClassVar[ResultKind] = COMPARISONS
    follows: ClassVar[frozenset[str]] = frozenset({"unknown"})
    accepted: ClassVar[type[Any]] = SurveyCallOptions
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    _in_words: ClassVar[tuple[str, ...]] = ("metrics", "standardization")
    metrics: tuple[GroupwiseMetric, ...]
    to: tuple[object, ...]
    """The reference of each metric."""
    test: Test
    adjust: str
    family: str
    standardization: Standardization
    """The way in which differences are standardized, where they are."""

    @show_keywords(ComputeOptions, without=_REFUSED)
    def compute(self, tally: Tally, **options: Unpack[ComputeOptions]) -> pl.DataFrame:
        """Compare groups on a tally that holds what the metrics count: what a call gives on data."""
        check_tally(tally)
        called = self._reading(tally.given)
        read = called._options(called._run, options, ComputeOptions)  # noqa: SLF001 - of the same class
        return called._result_of_tally(tally, read, options)  # noqa: SLF001 - as above

    def reads_variation(self, number: int) -> bool:
        """True if a metric is compared by the variation of its groups: in standard deviations, or by Welch's test."""
        scale = self.scales[number]
        return scale == "standardized" or _has_welch(self.test, self.metrics[number], self.to[number], scale)

    @property
    def is_chosen_by_value(self) -> bool:
        """True if the values say which group is the reference of a metric."""
        return any(reference in BY_VALUE for reference in self.to)

    @property
    def _run(self) -> Run:
        """The run of all metrics, and of the variations of those whose differences are standardized."""
        counted: dict[str, GroupwiseMetric | Metric] = {}
        for number, metric in enumerate(self.metrics):
            if self.reads_variation(number):
                counted |= {variation.name: variation for variation in with_variation(metric)}
        return metric_set(*self.metrics, *counted.values()).run

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The tables of all metrics, with p-values adjusted for their number."""
        if HIDDEN in tally.cells.columns:
            msg = "compare_groups() cannot compare groups that are suppressed: take the data, or a tally of all cells."
            raise ArgumentError(msg)
        if tally.suppression is not None and any(reference in CONTEXTS for reference in self.to):
            msg = (
                'compare_groups() with `suppress_below` compares with a group, not with "overall" or "rest"; name one.'
            )
            raise ArgumentError(msg)
        options = replace(options, interval="auto", on_undefined="ignore")
        table = self._compared(tally, options)
        # those of overlapping groups are evaluated apart
        table = table.sort(_NUMBER, maintain_order=True).drop(_NUMBER)
        names = [name for metric in self.metrics for name in metric.by.names if name not in RESERVED]
        first = [*table.columns[: table.columns.index(".by") + 1], *(name for name in names if name in table.columns)]
        first = list(dict.fromkeys(first))
        table = table.select(*first, pl.exclude(first))
        table = with_adjusted_p_values(table, [] if self.family == "all" else [f".{self.family}"], self.adjust)
        return table if options.explain else table.drop(_DETAILS)

    def _compared(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The tables of all metrics, below each other."""
        independent = tally.design is None and all(key.column.name == BLOCK for key in tally.clusters)
        independent = independent and tally.judge is None
        if "standardized" in self.scales and not independent:
            msg = (
                'compare_groups(): `scale="standardized"` accepts neither clusters nor designs, because its intervals '
                'are of single rows; use `scale="difference"`, which accepts both.'
            )
            raise ArgumentError(msg)
        plain = independent and tally.weights is None
        evaluated = self._run.evaluate(tally, options, metric_set(*self.metrics).specs)
        called = self if independent or self.test != "welch" else replace(self, test="interval")
        tables = [_Table(called, own, options, plain=plain).frame() for own in evaluated]
        return pl.concat(tables, how="diagonal_relaxed")


@dataclass(frozen=True, eq=False)
class _Sides:
    """The groups of a family that are compared, and what they are compared with: arrays with a number for each."""

    group: Array
    """The indices of the groups in their family."""
    reference: str
    """The name of what they are compared with."""
    other: Array
    """The values of the references."""
    others: tuple[Array, Array]
    """The numerators and denominators of the rows of the reference that are not in the group."""
    limits: tuple[Array, Array]
    error: Array
    """The standard errors of the comparisons."""
    p_value: Array
    """The p-values that agree with the limits."""
    correlation: Array | Literal[0] = 0
    """The correlations by chance of the value of a group with that of its reference; 0 where they share no rows."""


class _Table:
    """The comparisons of all groups, filled family by family."""

    def __init__(self, settings: GroupComparison, evaluated: Evaluated, options: Options, *, plain: bool) -> None:
        self.settings, self.options, self.plain = settings, options, plain
        self.evaluated = evaluated.with_rows(evaluated.rows.with_row_index("row"))
        size = len(evaluated.rows)
        self.numbers = {name: np.full(size, np.nan) for name in _NUMBERS}
        self.texts = {name: np.full(size, None, dtype=object) for name in _TEXTS}
        self.texts[".status"] = np.array(evaluated.rows["status"], dtype=object)
        self.variations: dict[int, Variations] = {}
        # some metrics of the call may be evaluated apart
        members = {(metric.name, metric.by): number for number, metric in enumerate(settings.metrics)}
        self.metric_numbers = [members[spec.name, cast("By", spec.by)] for spec in evaluated.specs]
        self.metrics = [settings.metrics[number] for number in self.metric_numbers]
        self.to = [settings.to[number] for number in self.metric_numbers]
        self.scale: list[TableScale] = [cast("TableScale", settings.scales[number]) for number in self.metric_numbers]
        self.reads_variation = [settings.reads_variation(number) for number in self.metric_numbers]
        # a standardized difference is one first
        self.scale_of_values: list[Scale] = ["difference" if one == "standardized" else one for one in self.scale]

    def frame(self) -> pl.DataFrame:
        """The tidy frame."""
        compared = families(self.evaluated, self.options)
        with_context = [family for family in compared if self.to[family.spec] in CONTEXTS]
        for family in with_context:
            if len(family.rows) > 1:
                check_positive(family, self.scale_of_values[family.spec])
        scales: dict[int, Scale] = {family.spec: self.scale_of_values[family.spec] for family in with_context}
        by_judge = [family for family in with_context if family.estimates.sampling == "judged"]
        others = scales.copy()
        for family in by_judge:
            others.pop(family.spec, None)
        drawn = {family.spec for family in with_context if family.estimates.kind == "resampled"}
        beside = against_rest(self.evaluated, self.options, others, drawn)
        beside = pl.concat([beside, *map(self._rests_by_judge, by_judge)], how="diagonal_relaxed")
        for family in compared:
            if self.scale[family.spec] != "standardized":
                index = family.rows["row"].to_numpy()
                limits = family.estimates.limits(z_value(self.options.conf_level))
                self.numbers[".estimate_lower"][index], self.numbers[".estimate_upper"][index] = limits
            has_context = family.spec in scales
            sides = self._contexts(family, beside) if has_context else self._references(family)
            if sides is not None:
                self._compare(family, sides)
        return self._assembled()

    def _references(self, family: ComparedGroups) -> _Sides | None:
        """The group that all others of a family are compared with."""
        reference = reference_index(family, self.evaluated, self.to[family.spec])
        rows, quantities, scale = family.rows, family.estimates, self.scale_of_values[family.spec]
        index = rows["row"].to_numpy()
        if reference is None:
            self.texts[".status"][index] = Status.NO_REFERENCE.value
            return None
        # a reference equals itself
        name, value = rows["text"][reference], quantities.value[[reference]]
        itself = {".estimate_reference": value, ".disparity": compare_values(value, value, scale)}
        self._fill(index[[reference]], name, value, itself)
        group = np.delete(np.arange(len(rows)), reference)
        if not len(group):
            return None
        if self.reads_variation[family.spec]:
            self._compare_samples(family, group, reference)
            return None
        check_positive(family, scale)
        references = np.full(len(group), reference)
        hits, denominator = _counts(rows)
        return _Sides(
            group=group,
            reference=name,
            other=quantities.value[references],
            others=(hits[references], denominator[references]),
            limits=quantities.compared(group, references, z_value(self.options.conf_level), scale),
            error=quantities.error_compared(group, references, scale),
            p_value=p_values(quantities, group, references, scale),
            correlation=quantities.correlation_of(group, references),
        )

    def _contexts(self, family: ComparedGroups, beside: pl.DataFrame) -> _Sides | None:
        """All rows, or all other groups, that each group of a family is compared with."""
        to, rows, spec = str(self.to[family.spec]), family.rows, family.spec
        own = beside.filter(pl.col("spec") == spec, pl.col(LEVEL) == family.level)
        pairs = rows.select(GROUP_CELL).join(own, on=GROUP_CELL, how="left", maintain_order="left")
        is_compared = pairs["of_rest"].is_not_null()
        self.texts[".status"][rows["row"].filter(~is_compared).to_numpy()] = Status.NO_REFERENCE.value
        if not is_compared.any():
            return None
        group = is_compared.arg_true().to_numpy()
        names = ("hits", "rows", "of_rest", "share", "lower", "upper", "error", "p_value")
        hits, denominator, rest, share, lower, upper, error, p_value = (pairs[name].to_numpy()[group] for name in names)
        other, limits = rows[to].to_numpy()[group], (lower, upper)
        if to == "overall":
            value = family.estimates.value[group]
            share = share_of_group(value, rest, other, share)
            scale = self.scale_of_values[spec]
            limits = limits_to_overall(limits, value, rest, other, share, scale)
            error = (1 - share) * error if scale == "difference" else np.full(len(group), np.nan)
        return _Sides(group, to, other, (hits, denominator), limits, error, p_value)

    def _rests_by_judge(self, family: ComparedGroups) -> pl.DataFrame:
        """Each group of a family beside all others, where labels are of people and of a judge."""
        rows, scale = family.rows, self.scale_of_values[family.spec]
        uncertainty = Uncertainty(self.evaluated, self.options)
        values: Any = uncertainty.beside_rests(rows["requested"][0], rows["row"].to_numpy())
        group = np.flatnonzero(~np.isnan(values.value[len(rows) :]))
        rest = group + len(rows)
        lower, upper = values.compared(group, rest, z_value(self.options.conf_level), scale)
        return rows[group].select(
            pl.col("spec", LEVEL, GROUP_CELL), share=pl.col("size") / rows["size"].sum(), of_rest=values.value[rest],
            lower=lower, upper=upper, error=values.error_compared(group, rest, scale),
            p_value=p_values(values, group, rest, scale),
        )  # fmt: skip

    def _compare(self, family: ComparedGroups, sides: _Sides) -> None:
        """Fill the rows of the groups of a family."""
        scale, rows = self.scale_of_values[family.spec], family.rows
        value, (lower, upper) = family.estimates.value[sides.group], sides.limits
        columns: dict[str, Array] = {
            ".estimate_reference": sides.other, ".disparity": compare_values(value, sides.other, scale),
            ".lower": lower, ".upper": upper, ".std_error": sides.error, ".p_value": sides.p_value,
        }  # fmt: skip
        # values that are not shares of rows have no counts, and the test that agrees with the interval
        formula = dict(self.evaluated.specs[family.spec].formulas)[rows["name"][0]]
        is_share = share_of(formula) is not None and rows["estimator"][0] in ONE_LABEL
        if is_share:
            # in weights where there are some
            size = rows["weight"].to_numpy()[sides.group].astype(float)
            columns[".shortfall"] = (sides.other - value) * size
            columns[".shortfall_four_fifths"] = (_FOUR_FIFTHS * sides.other - value) * size
        is_rate = is_share and self.plain
        test = self.settings.test if is_rate and self.settings.test != "welch" else "interval"
        if test in {"fisher", "mid_p"} and np.any(sides.correlation):
            # tables of both groups would count the rows that they share twice
            test = "interval"
        if is_rate:
            hits, denominator = (counts[sides.group] for counts in _counts(rows))
            is_overall = self.to[family.spec] == "overall"
            columns |= _selections(value, (hits, denominator), sides, scale, is_overall=is_overall)
            if test in {"fisher", "mid_p"}:
                tables = np.broadcast_arrays(hits, denominator, *sides.others)
                columns[".p_value"] = fisher(*map(np.round, tables), mid_p=test == "mid_p")
            elif test == "z":
                columns[".statistic"] = columns[".deviations"]
                columns[".p_value"] = np.array([two_sided(own, 1.0) for own in columns[".deviations"]])
        method = method_of(family.estimates, scale)
        self._fill(rows["row"].to_numpy()[sides.group], sides.reference, value, columns, method, test)

    def _compare_samples(self, family: ComparedGroups, groups: Array, reference: int) -> None:
        """Fill the rows of the groups of a family whose means are compared by how far numbers vary."""
        spec, z = family.spec, z_value(self.options.conf_level)
        if spec not in self.variations:
            tally = self.evaluated.evaluator.base_tally
            self.variations[spec] = Variations.of(self.metrics[spec], tally, self.options)
        variations = self.variations[spec]
        samples = variations.samples(family, self.evaluated, cast("By", self.evaluated.specs[spec].by))
        overall, other = variations.deviation.get(family.outer), samples[reference]
        correlation = family.estimates.correlation_of(groups, np.full(len(groups), reference))
        mean = np.full(len(groups), other.mean)
        correlations = np.broadcast_to(correlation, len(groups))
        compared = [(samples[int(group)], other, float(own)) for group, own in zip(groups, correlations, strict=True)]
        if self.scale[spec] == "standardized":
            compare = self.settings.standardization.compared
            rows, method, test = [compare(*pair, overall, z) for pair in compared], "hedges_olkin", ""
        else:
            rows, method, test = [welch(*pair, z) for pair in compared], "welch", "welch"
        names = (".spread", ".disparity", ".lower", ".upper", ".std_error", ".statistic", ".df", ".p_value")
        columns = {name: np.array([row.get(name) for row in rows], dtype=float) for name in names}
        index, name = family.rows["row"].to_numpy()[groups], family.rows["text"][reference]
        self._fill(index, name, mean, {".estimate_reference": mean, **columns}, method, test or "interval")

    def _fill(
        self, index: Array, reference: str, value: Array, columns: Mapping[str, Array], method: str = "", test: str = ""
    ) -> None:
        """Fill the rows of some groups, with the reasons why disparities are no finite numbers."""
        for name, numbers in columns.items():
            self.numbers[name][index] = numbers
        self.texts[".reference"][index] = reference
        if test:
            self.texts[".test"][index] = test
            self.texts[".method"][index] = method
            self.texts[".method"][index[np.isnan(columns[".lower"])]] = None
        disparity, is_infinite = columns[".disparity"], np.isinf(value)
        is_undefined = np.isnan(disparity)
        self.texts[".status"][index[np.isinf(disparity)]] = Status.INFINITE.value
        self.texts[".status"][index[is_undefined & is_infinite]] = Status.INFINITE_LESS_INFINITE.value
        self.texts[".status"][index[is_undefined & ~is_infinite]] = Status.ZERO_DENOMINATOR.value

    def _assembled(self) -> pl.DataFrame:
        """The columns of the table."""
        evaluated = self.evaluated
        rows = evaluated.rows
        columns = evaluated.key_columns(rows) | {".metric": rows["name"]}
        last = {name: columns.pop(name) for name in (".estimator", evaluated.cut) if name}
        columns |= evaluated.group_cells.features_of(rows[GROUP_CELL]).to_dict()
        columns |= {".group": rows["text"], ".level": evaluated.level_text(rows["level"].to_numpy()), **last}
        columns |= {".n": rows["n"], ".share": rows["share"], ".estimate": rows["rate"]}
        shown = {name: pl.Series(values, nan_to_null=True) for name, values in self.numbers.items()}
        shown |= {name: pl.Series(values.tolist(), dtype=pl.String) for name, values in self.texts.items()}
        # the rows that rates are shares of, and how many of them count; null of other values, and with weights
        rates = [share_of(formula) is not None for spec in evaluated.specs for _, formula in spec.formulas]
        is_rate = pl.Series(rates)[rows["spec"]] & rows["estimator"].is_in(list(ONE_LABEL)) & self.plain
        denominator = pl.when(is_rate).then("counted_rows")
        numerator = (pl.col("rate") * denominator).round().cast(pl.Int64)
        shown |= rows.select(numerator.alias(".numerator"), denominator.alias(".denominator")).to_dict()
        shown[".scale"] = pl.Series(self.scale, dtype=pl.String)[rows["spec"]]
        # sizes and shares of suppressed groups would tell how many rows they have
        is_shown = rows["n"].is_not_null()
        columns[".share"] = pl.select(pl.when(is_shown).then(columns[".share"])).to_series()
        number = pl.Series(_NUMBER, self.metric_numbers)[rows["spec"]]
        return pl.DataFrame([*pl.DataFrame(columns | {name: shown[name] for name in _SHOWN}), number])


_SHOWN = (
    ".estimate_lower", ".estimate_upper", ".reference", ".estimate_reference", ".scale", ".disparity", ".lower",
    ".upper", ".std_error", ".method", ".statistic", ".df", ".p_value", ".test", ".status", *_DETAILS,
)  # fmt: skip


def _counts(rows: pl.DataFrame) -> tuple[Array, Array]:
    """The numerators and denominators of values, in rows."""
    denominator = rows["counted_rows"].to_numpy().astype(float)
    return np.round(rows["estimate"].to_numpy() * denominator), denominator


def _selections(
    value: Array, counts: tuple[Array, Array], sides: _Sides, scale: Scale, *, is_overall: bool
) -> dict[str, Array]:
    """The counts of the reference, the standard deviations between rates, and the disparity if one selection moved.

    Among all rows together a selection only moves. Groups that share rows have no counts that stand beside each other.
    """
    (hits, denominator), (other_hits, other_rows) = counts, sides.others
    apart = np.where(sides.correlation == 0, 1.0, np.nan)
    together = (hits + other_hits) / (denominator + other_rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = 2 * sides.correlation / np.sqrt(denominator * other_rows)
        error = np.sqrt(together * (1 - together) * (1 / denominator + 1 / other_rows - shared))
        reference = sides.other if is_overall else (other_hits - 1) / other_rows
        moved = compare_values((hits + 1) / denominator, reference, scale)
        return {
            ".numerator_reference": apart * (other_hits + hits if is_overall else other_hits),
            ".denominator_reference": apart * (other_rows + denominator if is_overall else other_rows),
            ".deviations": np.where(error > 0, (value - other_hits / other_rows) / error, 0.0),
            ".flip_flop": apart * np.where((hits < denominator) & (other_hits > 0), moved, np.nan),
        }


@refuse_unknown_keywords
def compare_groups(
    *metrics: Metric | MetricSet | GroupwiseMetric,
    by: Feature | list[Feature] | None = None,
    to: object = None,
    scale: TableScale | None = None,
    test: Test = "interval",
    spread: Spread = "pooled",
    corrected: bool = False,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Literal["all", "metric", "by"] = "all",
    min_n: int = 0,
    min_share: float = 0.0,
    unknown: Treatment = "apart",
    unknown_values: Iterable[object] | None = None,
) -> GroupComparison | PairwiseTest:
    """Compare each group with a reference: the table that many have to file, one row for each group.

    Args:
        metrics: Metrics and sets of them, whose groups `by` names; or groupwise metrics, each by its own feature, with
            the reference and the scale of its aggregate.
        by: The feature, or a list of them: columns, or tuples of columns whose combinations are the groups.
        to: The reference: `"best"`, the group with the best value; `"highest"` or `"lowest"`; `"majority"`, the largest
            group; `"overall"`, all rows; `"rest"`, all other groups; or a group. A mapping gives each feature its own,
            such as `{"race": "White", "sex": "male"}`. Left out, the best. `"each"` compares every pair of groups, as
            `inference.pairwise` does, whose result it returns.
        scale: `"difference"` (group minus reference), `"ratio"` (group over reference), of rates `"odds_ratio"`, or of
            `mean_prediction`, `mean_truth` and `mean_score` `"standardized"`, the difference in standard deviations, as
            `audits.standardized_differences` has it. Left out, that of groupwise metrics, and differences.
        test: The test of `.p_value`: `"interval"`, the level at which the interval just holds equality, so that both
            agree; or of rates of rows that count alike, `"fisher"`, the exact test, its `"mid_p"`, or `"z"`, of the
            standard deviations between two rates; or of differences of means from a group, `"welch"`, whose limits are
            Student's. `.test` says which it was.
        spread: The standard deviation of standardized differences: `"pooled"` of the two groups (Cohen's d),
            `"reference"` (Glass's delta), or `"all"` rows, those of unknown groups too.
        corrected: Correct the bias that standardized differences of few rows have, as Hedges does.
        adjust: The adjustment of p-values for their number.
        family: The comparisons that are adjusted together: `"all"`, those of one `"metric"`, or of one feature, `"by"`.
        min_n: Groups whose denominator has fewer rows are listed, but not compared, nor a reference.
        min_share: The same for groups with a smaller share of the rows: that of `.share`, among all rows, those of
            unknown groups included, whether they are listed or not.
        unknown: Rows whose group is missing or unknown are listed `"apart"`, never compared and part of no reference;
            or they are a `"group"` like all others; or they are not listed, `"drop"`.
        unknown_values: The values that mean unknown beside null; left out, texts such as "Unknown" do.

    Returns:
        A callable that takes what a metric takes: `conf_level=` is the level of each interval, which is not adjusted,
        and `times=` and `seed=` are those of replicates, for values whose interval has no closed form. It gives one row
        for each group: outer keys, `.metric`, `.by`, the features, `.group`, `.level`, `.estimator`, `.n`, `.share` (of
        the rows), `.estimate` with `.estimate_lower` and `.estimate_upper`, `.reference`, `.estimate_reference`,
        `.scale`, `.disparity` with `.lower`, `.upper`, `.std_error` (null where limits do not rest on one) and
        `.method`, `.statistic` and `.df` of the tests that have them, `.p_value`, `.p_adjusted`, `.test` and `.status`,
        which says why a group is not compared (`unknown`, `below_min_n`, `below_min_share`, `no_reference` …), or that
        a disparity is `infinite`. Intervals and tests are those of a reference that is named beforehand; that of the
        best of many groups looks better than it is. With `explain=True` there are, of rates: `.numerator` and
        `.denominator` (the rows that count, and of how many), those of the reference, `.shortfall` (how many more of
        the group would be selected at the rate of the reference; with weights, in weights), `.shortfall_four_fifths`
        (the same at four fifths of that rate), `.deviations` (the standard deviations between the two rates, pooled),
        and `.flip_flop` (the disparity if one selection moved from the reference to the group); and `.spread`, what
        standardized differences are divided by.

    Raises:
        ArgumentError: For metrics without a feature, an unknown reference, a ratio of values that are not positive, an
            odds ratio of what is no rate, or a standardized difference of what is no mean of numbers or scores.

    >>> from tidyfair import selection_rate
    >>> people = pl.DataFrame({"hired": [1, 1, 1, 0, 1, 0, 0, 0], "sex": list("ffffmmmm")})
    >>> table = compare_groups(selection_rate, by="sex", scale="ratio")(people, estimate="hired")
    >>> table.select(".group", ".n", ".estimate", ".reference", pl.col(".disparity").round(3)).rows()
    [('f', 4, 0.75, 'f', 1.0), ('m', 4, 0.25, 'f', 0.333)]
    """
    policy = Policy.of("compare_groups", min_n, min_share, unknown, unknown_values)
    members = _members(metrics, [] if by is None else columns_of_features(by), policy)
    standardization = Standardization(cast("Spread", one_of("spread", spread, SPREADS)), flag("corrected", corrected))
    if scale is not None:
        one_of("scale", scale, (*SCALES, "standardized"))
    scales: tuple[TableScale, ...] = tuple(scale or scale_of(metric.aggregate) for metric in members)
    if standardization != Standardization("pooled", corrected=False) and "standardized" not in scales:
        msg = 'compare_groups(): `spread` and `corrected` are about standardized differences, `scale="standardized"`.'
        raise ArgumentError(msg)
    if to == "each":
        if test in {"z", "welch"}:
            msg = f'compare_groups(): pairs have the test "interval", "fisher" or "mid_p", not {test!r}.'
            raise ArgumentError(msg)
        return pairwise(
            *members, scale=cast("Any", scale), test="interval" if test == "interval" else "fisher",
            mid_p=test == "mid_p", adjust=adjust, family=family,
        )  # fmt: skip
    references = _references(to, members)
    compared: list[GroupwiseMetric] = []
    for metric, reference, own_scale in zip(members, references, scales, strict=True):
        _check(metric, reference, own_scale)
        if test == "welch" and not any(map(partial(_has_welch, test), members, references, scales)):
            check_mean(metric.metrics[0], 'test="welch"')
            msg = 'compare_groups(): `test="welch"` is of the difference of a mean from a group, `to="a group"`.'
            raise ArgumentError(msg)
        aggregate = difference(reference if reference in CONTEXTS else None)
        compared.append(replace(metric, name=metric.metrics[0].name, aggregate=aggregate))
    metric_set(*compared)  # refuses a metric that is compared twice
    return GroupComparison(
        tuple(compared), scales, references, cast("Any", one_of("test", test, _TESTS)),
        one_of("adjust", adjust, _ADJUSTMENTS), one_of("family", family, _FAMILIES), standardization,
    )  # fmt: skip


def _members(given: Sequence[object], features: Sequence[tuple[Any, ...]], policy: Policy) -> list[GroupwiseMetric]:
    """The metrics by the features that are compared."""
    parts = [part for metric in given for part in (metric if isinstance(metric, MetricSet) else (metric,))]
    members: list[GroupwiseMetric] = []
    for part in parts:
        if isinstance(part, Metric):
            if not features:
                msg = f'compare_groups(): name the feature whose groups {part.name} compares: `by="column"`.'
                raise ArgumentError(msg)
            members += [comparison(part, "difference")(*feature).with_policy(policy) for feature in features]
        elif isinstance(part, GroupwiseMetric):
            limited = part.with_policy(policy.beside(part.policy))
            members += [replace(limited, metrics=(base,), less=(), otherwise=()) for base in part.metrics]
        else:
            msg = (
                'compare_groups() takes metrics, and then data, as in `compare_groups(selection_rate, by="sex")'
                f"(data, …)`; not {in_short(part)}."
            )
            if isinstance(part, GroupwiseFactory):
                msg = f'{part.name} compares the groups of a column: did you mean `{part.name}("col")`?'
            raise ArgumentError(msg)
    if not members:
        msg = 'compare_groups() needs a metric and a feature: `compare_groups(selection_rate, by="sex")`.'
        raise ArgumentError(msg)
    if features and not any(isinstance(metric, Metric | MetricSet) for metric in given):
        msg = f"compare_groups(): {members[0].name} has a feature of its own, {members[0].by.text!r}; leave out `by`."
        raise ArgumentError(msg)
    return members


def _references(to: object, metrics: Sequence[GroupwiseMetric]) -> tuple[object, ...]:
    """The reference of each metric."""
    if not isinstance(to, Mapping):
        return tuple(_reference_of(metric) if to is None else to for metric in metrics)
    named = groups_by_feature(cast("Mapping[Any, object]", to))
    texts = list(dict.fromkeys(metric.by.text for metric in metrics))
    for key in named:
        if key not in texts:
            msg = f"compare_groups(): `to` names the feature {key!r}, which is not compared.{nearest(key, texts)}"
            msg += f" The features: {listed(texts)}."
            raise ArgumentError(msg)
    return tuple(named.get(metric.by.text, _reference_of(metric)) for metric in metrics)


def _reference_of(metric: GroupwiseMetric) -> object:
    """The reference of the aggregate of a metric, or else the best group."""
    aggregate = metric.aggregate
    if isinstance(aggregate, Contrast) and aggregate.to not in (None, "range"):
        return aggregate.to
    return "best"


def _has_welch(test: str, metric: GroupwiseMetric, reference: object, scale: str) -> bool:
    """True if the groups of a metric are compared by Welch's test."""
    is_mean = metric.metrics[0].definition in VARIATIONS
    return test == "welch" and is_mean and reference not in CONTEXTS and scale == "difference"


def _check(metric: GroupwiseMetric, reference: object, scale: TableScale) -> None:
    """Refuse a reference that cannot be one, and a scale that the metric does not have."""
    (base,) = metric.metrics
    if not is_value(reference) or callable(reference):
        msg = f"compare_groups(): `to` is a group, or {IN_WORDS}, not {in_short(reference)}."
        raise ArgumentError(msg)
    if base.definition.compares:
        msg = f"{base.name} compares each group with others already; its values are those of `by_group`."
        raise ArgumentError(msg)
    if reference == "best" and base.direction == "zero" and not {"truth", "estimate"} <= base.definition.reads:
        msg = (
            f"{base.name} is neither good nor bad, so that no group is the best: say what others are compared with, "
            'as `to="highest"`, `to="lowest"`, `to="majority"` or a group.'
        )
        raise ArgumentError(msg)
    if scale == "standardized":
        check_mean(base, 'scale="standardized"')
        if reference in CONTEXTS:
            msg = (
                f'compare_groups(): `scale="standardized"` compares groups with a group, not with {reference!r}; name '
                'one, or take `to="majority"`.'
            )
            raise ArgumentError(msg)
    else:
        check_scale(base.name, base.definition, base.range, scale)
