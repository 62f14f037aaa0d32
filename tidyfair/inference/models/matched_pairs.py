"""Comparison of groups on paired rows: the same text, or the same person, under several groups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np
import polars as pl

from tidyfair.calling import CALL, GroupwiseMetric, Metric, MetricSet, columns_of, metric_set
from tidyfair.errors import (
    ArgumentError,
    ColumnError,
    SelectionWarning,
    UnknownGroupWarning,
    in_short,
    listed,
    nearest,
    warn,
)
from tidyfair.escapes import display, visible
from tidyfair.evaluation import named_groups, texts_of
from tidyfair.inference.contingency import cochrans_q
from tidyfair.inference.models.model_comparison import compare_models, share_of_same_rows
from tidyfair.inference.on_data import refuse_given
from tidyfair.inference.rate_tests import ADJUSTMENTS, with_adjusted_p_values
from tidyfair.intervals import generator, student
from tidyfair.metrics.regression import mean_prediction
from tidyfair.specs import (
    CUT_OPTIONS,
    Array,
    CallOptions,
    Column,
    ColumnLike,
    Frame,
    Options,
    Policy,
    Treatment,
    flag,
    names_of,
    one_of,
    refuse_reserved,
    refuse_unknown_keywords,
    show_keywords,
)
from tidyfair.specs.formulas import CONTENT, SEVERAL_COLUMNS
from tidyfair.specs.result_kinds import COCHRANS_Q, PAIRED, with_level
from tidyfair.tallies import Source, open_frame

__all__ = ["PairedGroups", "paired_groups"]

_SUBJECT = "paired_groups()"
_REFUSED = {
    **dict.fromkeys(("interval", "explain", "on_undefined", "score_bins", "parts", "keep_rows"), ""),
    **dict.fromkeys(("case_weights", "frequency_weights"), ": pairs count alike"),
    **dict.fromkeys(
        CUT_OPTIONS,
        ': make labels of scores, such as `estimate=(pl.col("score") >= 0.5).alias("at 0.5")`',
    ),
}
"""The options of metrics that are not accepted, and why."""
_PAIR, _GROUP, _COMPARISON = "\0pair", "\0group", "\0comparison"
_TRUTH, _ESTIMATE, _CLUSTER = "\0truth", "\0estimate", "\0cluster"
_ONE, _OTHER = "\0one", "\0other"
"""Columns of rows and of pairs, under names that no column of the user has."""
_OF_PAIRS = {"truth": _TRUTH, "cluster": _CLUSTER}
"""Columns that are the same for all groups of a pair, by their arguments."""
_MOST_EXACT = 14
"""With more differences their signs are drawn."""
_MOST_NUMBERS = 2**22
_ROUNDED = 1e-9
"""Sums with a smaller relative difference are the same."""
_RENAMED = {".other": ".estimate", ".one": ".estimate_other", ".change": ".disparity"}


@dataclass(frozen=True, repr=False)
class PairedGroups:
    """Metrics compared between groups whose rows are paired, as a callable on dataframes; made by `paired_groups`."""

    metrics: MetricSet
    by: Column
    pair: Column
    to: object = None
    adjust: str = "holm"
    mid_p: bool = True
    policy: Policy = field(default_factory=Policy)

    @refuse_unknown_keywords
    @show_keywords(CallOptions, without=_REFUSED)
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Frame:  # fmt: skip
        """Compare the groups of a dataframe, pair by pair; it takes what a metric takes.

        Returns:
            One row for each metric, outer group and two groups: `.group` and `.other`, the values `.estimate` and
            `.estimate_other`, their difference `.disparity` with `.lower`, `.upper` and `.std_error`; the `.flip_rate`,
            the share of pairs with different labels (null for numbers); the number of `.pairs`, and of those that are
            `.unmatched` because they lack one of the two groups or its prediction; `.p_value` and `.p_adjusted`.
        """
        rows = self._rows(data, truth, estimate, options)
        return rows.source.restore(with_level(PAIRED.frame(rows.compared()), rows.options.conf_level))

    @refuse_unknown_keywords
    @show_keywords(CallOptions, without=_REFUSED)
    def cochrans_q(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Frame:  # fmt: skip
        """Test whether a rate is the same in all groups, on the pairs that have all of them (Cochran, 1950).

        Returns:
            One row for each metric and outer group: the `.statistic`, its `.df` (groups minus one), the `.p_value` of
            its chi-squared approximation, the number of `.pairs`, and of those `.unmatched`.

        Raises:
            ArgumentError: For metrics other than rates of rows that do not depend on the prediction, such as
                `selection_rate`, `accuracy` and `sens`; and for `cluster`.
        """
        rows = self._rows(data, truth, estimate, options)
        return rows.source.restore(COCHRANS_Q.frame(rows.tested()))

    def __repr__(self) -> str:
        names = ", ".join(metric.name for metric in self.metrics)
        return visible(f"<PairedGroups of {names} {self._pairing}; call it with {CALL}>")

    def _repr_html_(self) -> str:
        return display(self._pairing, columns_of(self.metrics), name="PairedGroups", call=CALL)

    @property
    def _pairing(self) -> str:
        """The groups and the pairs, in words."""
        return f"by {self.by.name} in each {self.pair.name}"

    def _rows(self, data: object, truth: Any, estimate: Any, keywords: Any) -> _PairedRows:
        """The checked rows, one for each pair and group."""
        refuse_given(_SUBJECT, keywords, _REFUSED)
        options = self.metrics.run.options(keywords, truth=truth, estimate=estimate)
        options = replace(options, on_undefined="ignore")
        source = open_frame(data, options.group_by)
        refuse_reserved("group_by", source.outer)
        if source.sides is not None:
            msg = f"{_SUBJECT} does not accept `group_by=privileged(…)`; group by a column instead."
            raise ArgumentError(msg)
        return _PairedRows(self, source, options)


class _PairedRows:
    """Rows with one prediction for each pair and group."""

    def __init__(self, comparison: PairedGroups, source: Source, options: Options) -> None:
        """Read the columns, and refuse pairs with several rows of a group."""
        self.comparison, self.source, self.options = comparison, source, options
        for column in (comparison.by, comparison.pair):
            if column in source.outer:
                msg = f"{_SUBJECT}: the data are grouped by {column.name!r}; group by another column."
                raise ColumnError(msg)
        wanted = {_PAIR: ("pair", comparison.pair), _GROUP: ("by", comparison.by), **_columns_of_call(options)}
        outer_columns = {f"o{index}": ("group_by", column) for index, column in enumerate(source.outer)}
        self.outer = list(outer_columns)
        """The internal names of the outer groups."""
        self.names = {name: wanted[name][1].name for name in (_TRUTH, _ESTIMATE) if name in wanted}
        """The user's columns of truth and predictions, by their names in the rows."""
        wanted |= outer_columns
        rows = (source if source.kind == "polars" else source.here(wanted)).read(wanted)
        if missing := rows[_PAIR].null_count():
            msg = f"`pair`: the column {comparison.pair.name!r} is null in {missing} rows; fill or filter them first."
            raise ColumnError(msg)
        every = rows.select(pl.col(_GROUP).unique()).sort(_GROUP, nulls_last=True)
        unknown, is_unknown = (comparison.policy.is_unknown(groups.select(_GROUP)) for groups in (every, rows))
        every = every.with_columns(texts_of(every).alias(".group"))
        if unknown.any() and comparison.policy.unknown == "apart":
            rows_in_words = f"{is_unknown.sum():,} of {len(rows):,} rows ({listed(every.filter(unknown)['.group'])})"
            warn(
                f"{_SUBJECT}: {comparison.by.name} is unknown in {rows_in_words}, which are not compared. "
                '`unknown="group"` compares them, and `unknown="drop"` leaves them out without notice.',
                UnknownGroupWarning,
            )
        self.levels = every.filter(~unknown)
        """The groups in order: their values, and their texts as `.group`."""
        self.groups: list[str] = self.levels[".group"].to_list()
        numbers = self.levels.select(_GROUP).with_row_index("number")
        rows = rows.filter(~is_unknown).join(numbers, on=_GROUP, how="left", nulls_equal=True, maintain_order="left")
        self.rows = rows.drop(_GROUP).rename({"number": _GROUP})
        """The pair, the number of its group, the estimate, outer groups, and perhaps the truth and the cluster."""
        self._check()

    def _check(self) -> None:
        """Refuse a single group, several rows of a group in a pair, and truths or clusters that differ in a pair."""
        by, pair = self.comparison.by.name, self.comparison.pair.name
        if len(self.groups) < 2:
            msg = f"{_SUBJECT} needs two groups or more of {by!r}, not {listed(self.groups)}."
            raise ColumnError(msg)
        keys = [*self.outer, _PAIR]
        several = self.rows.group_by(*keys, _GROUP).len().filter(pl.col("len") > 1).sort(*keys, _GROUP)
        if len(several):
            first = several.row(0, named=True)
            msg = (
                f"{_SUBJECT}: {pair!r} {first[_PAIR]!r} has {first['len']} rows of the group "
                f"{self.groups[first[_GROUP]]!r}. Give one row for each pair and group: name repetitions in "
                "`group_by=`, or make them part of the pair."
            )
            raise ColumnError(msg)
        for role, name in _OF_PAIRS.items():
            if name in self.rows.columns:
                distinct = self.rows.drop_nulls(name).group_by(keys).agg(pl.col(name).n_unique())
                differing = distinct.filter(pl.col(name) > 1).sort(keys)
                if len(differing):
                    msg = (
                        f"`{role}`: rows with the same {pair!r} have different values, such as those with "
                        f"{differing[_PAIR][0]!r}; it must be the same for all groups of a pair."
                    )
                    raise ColumnError(msg)

    @property
    def comparisons(self) -> list[tuple[int, int]]:
        """The numbers of two groups, for each comparison."""
        to = self.comparison.to
        if to is None:
            return list(itertools.combinations(range(len(self.groups)), 2))
        named = named_groups(self.levels, to)
        if not named:
            hint = nearest(to, self.groups) if isinstance(to, str) else ""
            msg = f"{_SUBJECT}: `to` is one of the groups {listed(self.groups)}, not {in_short(to)}.{hint}"
            raise ArgumentError(msg)
        reference = self.levels.drop(".group").rows().index(named[0])
        return [(group, reference) for group in range(len(self.groups)) if group != reference]

    def compared(self) -> pl.DataFrame:
        """The table of all comparisons."""
        comparisons = self.comparisons
        wide = pl.concat(self._side_by_side(number, *groups) for number, groups in enumerate(comparisons))
        keys = [*self.outer, _COMPARISON]
        both = pl.all_horizontal(pl.col(_ONE, _OTHER).is_not_null())
        has_labels = self.comparison.metrics.metrics[0].kind == "class"
        flip_rate = (pl.col(_ONE) != pl.col(_OTHER)).filter(both).mean() if has_labels else pl.lit(None, pl.Float64)
        counts = wide.group_by(keys).agg(
            both.sum().cast(pl.Int64).alias(".pairs"),
            (~both).sum().cast(pl.Int64).alias(".unmatched"),
            flip_rate.alias(".flip_rate"),
        )
        self._check_pairs(counts)
        # outer groups without pairs have no value
        metrics = pl.DataFrame({".metric": [metric.name for metric in self.comparison.metrics]})
        rows = metrics.join(counts.sort(keys, nulls_last=True), how="cross")
        estimator = pl.col(".estimator")
        table = rows.join(
            self._changes(wide), on=[*keys, ".metric"], how="left", nulls_equal=True, maintain_order="left"
        ).with_columns(estimator.fill_null(estimator.drop_nulls().first().over(".metric")))
        table = self._with_tests_of_means(table)
        most = counts.sort(".unmatched", ".pairs").select(".pairs", ".unmatched").rows()
        if most and (unmatched := most[-1][1]):
            warn(
                f"{_SUBJECT} compares rows with the same {self.comparison.pair.name!r}: {unmatched} of "
                f"{most[-1][0] + unmatched} lack one of two groups, or its prediction, and are left out.",
                SelectionWarning,
            )
        table = table.with_columns(
            # without a difference, because rows without a prediction are not left out, there is no test of it
            pl.when(pl.col(".change").is_not_null()).then(".p_value"),
            pl.Series([self.groups[group] for group, _ in comparisons])[table[_COMPARISON]].alias(".group"),
            pl.Series([self.groups[other] for _, other in comparisons])[table[_COMPARISON]].alias(".other_group"),
            pl.lit(self.comparison.by.name).alias(".by"),
        )
        columns = [
            *self.outer, ".metric", ".by", ".group", ".other_group", ".estimator", *_RENAMED,
            ".lower", ".upper", ".std_error", ".flip_rate", ".pairs", ".unmatched", ".p_value",
        ]  # fmt: skip
        table = with_adjusted_p_values(table.select(columns), [*self.outer, ".metric"], self.comparison.adjust)
        table = table.rename(_RENAMED).rename({".other_group": ".other"})
        return table.rename(dict(zip(self.outer, names_of(self.source.outer), strict=True)))

    def _check_pairs(self, counts: pl.DataFrame) -> None:
        """Refuse two groups that have no pair in common."""
        pairs = counts.group_by(_COMPARISON).agg(pl.col(".pairs").sum()).filter(pl.col(".pairs") == 0)
        if len(pairs):
            number: int = pairs.sort(_COMPARISON).item(0, _COMPARISON)
            group, other = (self.groups[index] for index in self.comparisons[number])
            msg = (
                f"{_SUBJECT}: no {self.comparison.pair.name!r} has a prediction for both {group!r} and {other!r}; "
                "`pair` is the column whose values are the same in the rows that belong together."
            )
            raise ColumnError(msg)

    def _side_by_side(self, number: int, group: int, other: int) -> pl.DataFrame:
        """The pairs of two groups, with the prediction of either, null where a group has no row."""
        keys = [*self.outer, _PAIR]
        shared = [name for name in _OF_PAIRS.values() if name in self.rows.columns]
        first = self.rows.filter(pl.col(_GROUP) == group).drop(_GROUP).rename({_ESTIMATE: _OTHER})
        second = self.rows.filter(pl.col(_GROUP) == other).drop(_GROUP).rename({_ESTIMATE: _ONE})
        pairs = first.join(second, on=keys, how="full", coalesce=True, nulls_equal=True)
        values = [pl.coalesce(name, f"{name}_right") for name in shared]
        index = pl.lit(number, pl.Int64).alias(_COMPARISON)
        return pairs.select(*keys, index, *values, _ONE, _OTHER)

    def _changes(self, wide: pl.DataFrame) -> pl.DataFrame:
        """The values of both groups, and their differences with intervals, by two models on the same rows."""
        metrics, options = self.comparison.metrics, self.options
        keywords: dict[str, Any] = {
            name: getattr(options, name)
            for name in ("pos_label", "labels", "estimator", "na_rm", "conf_level", "times", "seed")
        }
        if options.cluster is not None:
            keywords["cluster"] = Column(_CLUSTER)
        # messages name the columns of the user
        truth: Any = Column(pl.col(_TRUTH).alias(self.names[_TRUTH])) if _TRUTH in self.names else None
        one, other = (Column(pl.col(name).alias(self.names[_ESTIMATE])) for name in (_ONE, _OTHER))
        keywords |= {"one": one, "other": other, "group_by": [*self.outer, Column(_COMPARISON)]}
        compare = compare_models(metrics, mid_p=self.comparison.mid_p)
        return compare(wide, truth, **keywords)

    def _values_of_rows(self) -> Any:
        """The value of each metric in each row: a hit is 1, and rows that do not count have none."""
        options = self.options
        columns: dict[str, Any] = {name: Column(pl.col(name).alias(shown)) for name, shown in self.names.items()}
        keys: Any = [*self.outer, Column(_PAIR), Column(_GROUP)]
        columns["probs" if options.probs is not None else "estimate"] = columns.pop(_ESTIMATE)
        return self.comparison.metrics(
            self.rows, columns.pop(_TRUTH, None), group_by=keys, **columns,
            pos_label=options.pos_label, labels=options.labels, on_undefined="ignore",
        )  # fmt: skip

    def _with_tests_of_means(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with intervals and p-values of differences of means, of pairs that are independent."""
        means = [metric.name for metric in self.comparison.metrics if _is_mean(metric)]
        if self.options.cluster is not None or not means:
            return table
        keys = [*self.outer, ".metric"]
        values: pl.DataFrame = self._values_of_rows().drop_nulls(".estimate")
        of_keys = values.select(*keys, _PAIR, _GROUP, ".estimate").partition_by(keys, as_dict=True)
        rows: list[dict[str, Any]] = []
        for row in table.iter_rows(named=True):
            of_metric = of_keys.get(tuple(row[name] for name in keys))
            if row[".metric"] in means and of_metric is not None:
                group, other = self.comparisons[int(row[_COMPARISON])]
                one, two = (of_metric.filter(pl.col(_GROUP) == number) for number in (group, other))
                pairs = one.join(two, on=_PAIR, maintain_order="left")
                differences = pairs.select(pl.col(".estimate") - pl.col(".estimate_right")).to_series().to_numpy()
                random, count = generator(self.options.seed, "flipped signs"), len(differences)
                row[".p_value"] = _sign_flip_test(differences, self.options.replicates, random)
                row.update(dict.fromkeys((".lower", ".upper", ".std_error")))
                error = float(differences.std(ddof=1)) / math.sqrt(count) if count > 1 else 0.0
                if error:
                    mean, reach = float(differences.mean()), student(self.options.conf_level, count - 1) * error
                    row.update({".lower": mean - reach, ".upper": mean + reach, ".std_error": error})
            rows.append(row)
        return pl.DataFrame(rows, schema=table.schema)

    def tested(self) -> pl.DataFrame:
        """Cochran's test of all groups together."""
        if self.options.cluster is not None:
            msg = "cochrans_q() counts pairs, which are independent; leave out `cluster`."
            raise ArgumentError(msg)
        for metric in self.comparison.metrics:
            if share_of_same_rows(metric) is None:
                msg = (
                    "cochrans_q() tests rates among rows that do not depend on the prediction, such as selection_rate, "
                    f"accuracy and sens, not {metric.name}."
                )
                raise ArgumentError(msg)
        values: pl.DataFrame = self._values_of_rows()
        if set(values[".estimator"]) - {"binary"}:
            msg = "cochrans_q() tests the rate of one label; give `pos_label=`."
            raise ArgumentError(msg)
        keys, groups = [*self.outer, ".metric"], len(self.groups)
        rows = [*self.outer, _PAIR, _GROUP]
        values = values.join(self.rows.select(*rows, _ESTIMATE), on=rows, nulls_equal=True)
        # rows without a prediction might count
        counted = values.filter(pl.col(".estimate").is_not_null() | pl.col(_ESTIMATE).is_null())
        has_all = (pl.col(".estimate").count() == groups).alias("has all groups")
        of_pairs = counted.group_by(*keys, _PAIR).agg(pl.col(".estimate").sort_by(_GROUP), has_all)
        results: list[dict[str, Any]] = []
        numbers = {metric.name: number for number, metric in enumerate(self.comparison.metrics)}
        every = values.select(keys).unique().rows()
        for key in sorted(every, key=lambda key: (numbers[key[-1]], *map(str, key[:-1]))):
            of_key = dict(zip(keys, key, strict=True))
            pairs = of_pairs.filter(pl.col(name).eq_missing(pl.lit(value)) for name, value in of_key.items())
            complete = pairs.filter("has all groups")
            statistic, p_value = cochrans_q(complete[".estimate"].explode().to_numpy().reshape(-1, groups))
            results.append({
                **of_key, ".by": self.comparison.by.name, ".statistic": statistic, ".df": groups - 1,
                ".p_value": p_value, ".pairs": len(complete), ".unmatched": len(pairs) - len(complete),
            })  # fmt: skip
        return pl.DataFrame(results).rename(dict(zip(self.outer, names_of(self.source.outer), strict=True)))


def _columns_of_call(options: Options) -> dict[str, tuple[str, Column]]:
    """The columns of predictions, of the truth and of clusters, with their arguments, by their names in the rows."""
    if options.estimate is not None and options.probs is not None:
        msg = f"{_SUBJECT} compares labels or scores; give either `estimate` or `probs`."
        raise ArgumentError(msg)
    role, prediction = ("estimate", options.estimate) if options.probs is None else ("probs", options.probs)
    if prediction is None:
        msg = f"{_SUBJECT} needs the column of predictions: `estimate=`, or `probs=` for metrics of scores."
        raise ColumnError(msg)
    columns = {_ESTIMATE: (role, Column.of(prediction, role))}
    if options.truth is not None:
        columns[_TRUTH] = ("truth", Column.of(options.truth, "truth"))
    if options.cluster is not None:
        columns[_CLUSTER] = ("cluster", Column.of(options.cluster, "cluster"))
    return columns


def _is_mean(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether a metric is the mean of a number of each row."""
    if isinstance(metric, GroupwiseMetric) or metric.kind != "numeric":
        return False
    definition = metric.definition
    if definition.function is mean_prediction.definition.function:
        return True
    has_one_sum = len(definition.terms) == 1 and definition.needs == (definition.terms[0][0], "instances")
    return has_one_sum and not definition.terms[0][1].compares_rows


def _sign_flip_test(differences: Array, times: int, random: np.random.Generator) -> float | None:
    """P-value of a mean difference: how often it is as far from 0 if signs are flipped at random (Fisher, 1935).

    Exact for few differences other than 0. Of many, signs are drawn `times` times, and those observed count as well.
    """
    if not len(differences):
        return None
    sizes = np.abs(differences[differences != 0])
    observed = abs(differences.sum()) * (1 - _ROUNDED)
    if len(sizes) <= _MOST_EXACT:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums - size, sums + size])
        return float((np.abs(sums) >= observed).mean())
    as_far, drawn = 1, 1
    step = max(1, _MOST_NUMBERS // len(sizes))
    for start in range(0, times, step):
        count = min(step, times - start)
        signs = random.integers(0, 2, (count, len(sizes)), dtype=np.int8)
        sums = 2 * (signs @ sizes) - sizes.sum()
        as_far += int((np.abs(sums) >= observed).sum())
        drawn += count
    return as_far / drawn


@refuse_unknown_keywords
def paired_groups(
    *metrics: Metric | MetricSet, by: ColumnLike, pair: ColumnLike, to: object = None,
    adjust: Literal["holm", "bh", "by", "none"] = "holm", mid_p: bool = True,
    unknown: Treatment = "apart", unknown_values: Iterable[object] | None = None,
) -> PairedGroups:  # fmt: skip
    """Compare groups on paired rows, such as the same prompt under several names: one row for each pair and group.

    The difference of a metric between two groups is that of two models on the same rows, with the same intervals and
    tests as `compare_models`: for rates among rows that do not depend on the prediction, such as `selection_rate` and
    `accuracy`, Bonett and Price's (2012) interval and McNemar's test; for means of numbers, the interval
    of a paired t-test and a test that flips the signs of differences, which is exact for few pairs and draws `times`
    signs of many. Other metrics have intervals only. Pairs that lack a group are counted and left out.

    Args:
        metrics: Metrics of labels, of scores, or of numbers (`mean_prediction` for the mean score).
        by: The column of groups.
        pair: The column whose values are the same in the rows that belong together.
        to: The group with which all others are compared, by its value or its text in results (the null group by
            `(None,)`); by default all are compared with each other.
        adjust: The adjustment of p-values for the number of comparisons of a metric: `"holm"`, `"bh"`, `"by"` or
            `"none"`.
        mid_p: Use mid-p-values in McNemar's test, as `compare_models` does; `False` gives the exact test.
        unknown: Rows whose group is missing or unknown are not compared, with a notice (`"apart"`) or without
            (`"drop"`); or they are a `"group"` like all others.
        unknown_values: The values that mean unknown beside null; by default texts such as "Unknown".

    Raises:
        ArgumentError: If a metric compares groups itself, or an argument is invalid.
        ColumnError: At the call, for a pair with several rows of a group, or with different truths.

    >>> from tidyfair import selection_rate
    >>> answers = pl.DataFrame({
    ...     "prompt": [1, 1, 2, 2, 3, 3], "name": ["Anna", "Omar"] * 3, "invited": [1, 0, 1, 1, 1, 0],
    ... })
    >>> paired = paired_groups(selection_rate, by="name", pair="prompt")
    >>> paired(answers, estimate="invited").select(".group", ".other", ".disparity").row(0)
    ('Anna', 'Omar', 0.6666666666666667)
    """
    compared = metric_set(*metrics)
    for metric in compared:
        if isinstance(metric, GroupwiseMetric) or metric.definition.compares:
            msg = f"{_SUBJECT} compares groups itself; give a metric such as selection_rate instead of {metric.name}."
            raise ArgumentError(msg)
        if metric.kind in SEVERAL_COLUMNS:
            msg = f"{_SUBJECT} compares labels, scores or numbers, and {metric.name} reads {CONTENT[metric.kind]}."
            raise ArgumentError(msg)
    if len({metric.kind for metric in compared}) > 1:
        msg = f"{_SUBJECT} compares labels or scores; call it for each."
        raise ArgumentError(msg)
    for spec in compared.specs:
        for name, formula in spec.formulas:
            if any(term.compares_rows for term in formula.all_terms):
                msg = f"{_SUBJECT} cannot compare {name}, in which rows depend on each other."
                raise ArgumentError(msg)
    one_of("adjust", adjust, ADJUSTMENTS)
    return PairedGroups(
        compared, Column.of(by, "by"), Column.of(pair, "pair"), to, adjust, flag("mid_p", mid_p),
        Policy.of(_SUBJECT, unknown=unknown, unknown_values=unknown_values),
    )  # fmt: skip
