"""The options of calls, comparisons and tests in one table: what their documentation, checks and flags say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, cast, get_args

from tidyfair.errors import ArgumentError, in_short
from tidyfair.specs.arguments import LEAST_TIMES, MOST_TIMES, flag, one_of, proper_share, whole

Estimator: TypeAlias = Literal["binary", "macro", "macro_weighted", "micro", "hand_till", "one_vs_rest"]
OnUndefined: TypeAlias = Literal["warn", "ignore", "null", "raise"]
Interval: TypeAlias = Literal[
    "auto", "analytic", "bootstrap", "bayes", "exact", "wilson", "clopper_pearson", "jeffreys", "agresti_coull", "wald",
    "newcombe", "agresti_caffo", "miettinen_nurminen", "katz", "mover", "delong", "influence", "folded_normal",
    "jackknife", "information", "pairwise", "simultaneous", "test_inversion", "prediction_powered",
]  # fmt: skip
INTERVALS: tuple[Interval, ...] = get_args(Interval)
Step: TypeAlias = Literal[
    "rows", "count", "design", "judged", "suppression", "read", "show", "group values", "comparison", "test"
]
"""What takes an option: data (`rows`), their count, survey designs, judges and suppression, which some counts support,
reading of counts, presentation, the values of groups, a comparison (with its feature), or a test or gate itself."""

ELSEWHERE: dict[Step, str] = {
    "design": (
        "is an option of values, disparities, and comparisons of groups or models; give it to these, or to `tally`"
    ),
    "judged": (
        "is an option of values, disparities, gates, `compare_groups`, `compare_models` and `inference.pairwise`, "
        "which know by influences how far values vary; what shuffles or counts rows with labels reads those of people"
    ),
    "suppression": "is an option of values, disparities, reports and audits; give it to these, or to `tally`",
    "count": "is an option of counting; give it to `tally`",
    "read": "is an option of computing; give it to `compute`",
    "show": "is an option of computing; give it to `compute`",
    "group values": "applies to the values of groups; give it to `by_group`",
}
"""What the refusal of an option says, by its step."""


EXACT_SCORES = "exact"
"""In place of a number of bins: the scores themselves, from any engine."""
_MOST_BINS = 2**16


@dataclass(frozen=True)
class Flag:
    """How the command line takes an option."""

    sentence: str
    """The help of the command line, whose users have files and no Python code."""
    metavar: str | None = "COLUMN"
    reads: Literal["text", "number", "whole", "numbers", "wholes", "thresholds", "path"] = "text"
    """What a text is read as; lists of numbers are written with commas."""
    action: Literal["append", "extend", "store_true", "store_false"] | None = None
    """What argparse does with it, if it is no single value."""
    choices: tuple[str, ...] | None = None
    texts: tuple[str, ...] = ()
    """The ways to write it, if they are not the name of the option with two dashes."""


@dataclass(frozen=True)
class Option:
    """A keyword: its type and default, what takes and checks it, and what is said about it."""

    name: str
    step: Step
    type: str = ""
    """The type as code; that of keywords which several functions have with types of their own is empty."""
    default: Any = None
    check: Callable[[str, Any], Any] | None = None
    """Takes the name and a value that is not None, refuses what is invalid, and returns the value to use."""
    sentence: str = ""
    """Its documentation."""
    flag: Flag | None = None
    names_elsewhere: str = ""
    """Its names in other libraries."""


def _interval(name: str, value: object) -> str:
    """The name of a method of intervals."""
    if isinstance(value, bool):
        msg = '`interval` is the name of a method: write `interval="auto"` for the recommended one, or leave it out.'
        raise ArgumentError(msg)
    if str(value).casefold() in {"1", "95%", "ci", "default", "on", "t", "true", "y", "yes"}:
        msg = f'`interval=` is the name of a method, not {in_short(value)}: write `interval="auto"`.'
        raise ArgumentError(msg)
    return one_of(name, value, INTERVALS)


def _score_bins(name: str, value: object) -> int | str:
    """A number of bins, or the scores themselves, from any engine."""
    return EXACT_SCORES if isinstance(value, str) and value == EXACT_SCORES else whole(name, value, 2, _MOST_BINS)


def _read_again(name: str, value: Any) -> Any:  # noqa: ARG001 - as the other checks
    """A value that may be an iterator, and is read more than once."""
    return tuple(cast("Iterator[Any]", value)) if isinstance(value, Iterator) else value


_TABLE = (
    Option("data", "rows", names_elsewhere="X df frame"),
    Option(
        "truth", "rows", "TruthLike | None",
        flag=Flag("true labels or numbers"),
        names_elsewhere="actual actuals ground_truth labels_true observed target targets true y y_true",
    ),
    Option(
        "estimate", "rows", "Prediction | None",
        flag=Flag("predicted labels or numbers"),
        names_elsewhere="decision pred predicted prediction predictions preds y_hat y_pred yhat",
    ),
    Option(
        "group_by", "count", "OuterGroups | None", check=_read_again,
        sentence="Columns whose groups (folds, models, months) get separate rows; or `privileged(…)`, for separate "
        "rows of the two sides, named in a column `side`.",
        flag=Flag(
            "column, such as the fold, month or model, whose values each get their own results", action="append"
        ),
        names_elsewhere="control_features groupby",
    ),
    Option(
        "case_weights", "count", "ColumnLike | None",
        sentence="Column of weights, finite and not negative. Intervals and tests treat them as sampling weights, "
        "whose scale does not matter.",
        flag=Flag("case weights, such as sampling weights", texts=("--case-weights", "--weights")),
        names_elsewhere="sample_weight sample_weights w weight weights",
    ),
    Option(
        "frequency_weights", "count", "ColumnLike | None",
        sentence="Column of the number of equal rows that a row stands for, whole numbers from 0 on.",
        flag=Flag("number of identical rows that a row stands for"),
        names_elsewhere="freq freq_weights frequencies",
    ),
    Option(
        "probs", "count", "Scores | None",
        sentence="Column of scores (probabilities of the event); with more than two labels a list of columns in the "
        "order of the labels, or a mapping from label to column. For survival times, a mapping from evaluation time to "
        "the column of survival probabilities, which adds `.eval_time`.",
        flag=Flag(
            "scores, such as probabilities of the event; with more than two labels, LABEL=COLUMN for each",
            action="append",
        ),
        names_elsewhere="prob proba probabilities probability probas probas_pred score scores y_prob y_proba y_score "
        "y_scores",
    ),
    Option(
        "threshold", "count", "Threshold | None",
        sentence='Scores at or above it select the event, instead of `estimate`. A list adds `.threshold`, and `{"sex":'
        ' {"female": 0.4, "male": 0.5}}` is a threshold for each group; `operating_point(…)` chooses one from the '
        "data.",
        flag=Flag(
            "select scores at or above this number; several as 0.3,0.5 or 0.1:0.9:0.1; or from where a rate keeps to a "
            "limit, as 'fall_out<=0.05' or 'sens>=0.9'",
            "NUMBERS", "thresholds", "extend",
        ),
        names_elsewhere="cut_off cutoff decision_threshold thresholds",
    ),
    Option(
        "top_k", "count", "int | Sequence[int] | None",
        sentence="Number of rows with the highest scores to select in each outer group. Rows tied with the last one "
        "are selected too, with a `SelectionWarning`.",
        flag=Flag(
            "select this many rows, those with the highest scores; several as 100,200", "ROWS", "wholes", "extend"
        ),
    ),
    Option(
        "top_fraction", "count", "float | Sequence[float] | None",
        sentence="The same as a share of the rows, or of their weight.",
        flag=Flag(
            "select this share of the rows, those with the highest scores; several as 0.1,0.2",
            "SHARES", "numbers", "extend",
        ),
    ),
    Option(
        "score_bins", "count", "int | Literal['exact'] | None", check=_score_bins,
        sentence="Number of bins (at most 65,536) of equal width between 0 and 1, from whose counts ranking metrics "
        "such as roc_auc are computed; a tally then keeps no scores. `.error_bound` is the largest possible error of a "
        "value, null if unknown. Without it more than 100,000 distinct rows of another engine are counted in 4,096 "
        'bins, with an `EngineWarning`; `"exact"` transfers them.',
        flag=Flag(
            "compute areas under curves from scores counted in this many bins, for millions of rows", "BINS", "whole"
        ),
    ),
    Option(
        "cluster", "count", "ColumnLike | None",
        sentence="Column that identifies dependent rows, such as those of one patient, for intervals that allow for "
        "it.",
        flag=Flag("rows that belong together, such as those of one patient; intervals allow for it"),
        names_elsewhere="cluster_id clusters",
    ),
    Option(
        "design", "design", "Design | None",
        sentence="The design of a complex survey, made by `surveys.design` or `surveys.replicate_weights`, with its "
        'weights; for `interval="auto"` of rates, means and areas, and their differences and ratios.',
    ),
    Option(
        "suppress_below", "suppression", "int | None", check=partial(whole, least=1),
        sentence="Counts from 1 to below this number are not shown, nor what would give one away, as groups subtracted "
        "from a total do. Values of these groups are null (`suppressed`), and disparities leave them out.",
        flag=Flag(
            "show no count from 1 to below this number, nor what would give one away by subtraction", "ROWS", "whole"
        ),
    ),
    Option(
        "parts", "count", "int | None", check=partial(whole, least=0),
        sentence="A seed, needed for a tally of scores or numbers if intervals are to be computed: rows are assigned "
        "to 400 random parts. A call with `interval=` leaves out up to 20,000 rows one by one, and does this itself "
        "with more.",
    ),
    Option(
        "keep_rows", "count", "bool", default=False, check=flag,
        sentence="Whether a tally keeps its rows even if counts suffice, for tests that permute them.",
    ),
    Option(
        "judged", "judged", "ColumnLike | None",
        sentence="Column of the labels of a judge, such as another model, for all rows, where `truth` holds labels of "
        "people for few of them and is null elsewhere; or of its scores of the event between 0 and 1, read to three "
        "decimals. Metrics of labels are estimated from both, by prediction-powered inference with power tuning "
        "(Angelopoulos, Duchi and Zrnic, 2023).",
    ),
    Option(
        "label_probability", "judged", "ColumnLike | None",
        sentence="Column of the probability, by design, with which a row was drawn to be labeled by people, such as "
        "that of its stratum; left out if rows of a group have the same.",
    ),
    Option(
        "pos_label", "read", "object",
        sentence="The label that is the event; needed unless labels are Boolean, 0/1 or -1/1. Where it does not occur "
        "among several labels, everything is null (`unseen_event`).",
        flag=Flag("label that counts as the event", "LABEL"),
        names_elsewhere="favorable_label favourable pos_class positive positive_class positive_label",
    ),
    Option(
        "labels", "read", "Sequence[object] | None",
        sentence="All labels in order, if the data do not declare them. Text of engines without levels (Spark, Ibis, "
        "files in Dask, Arrow in DuckDB) does not, so labels that do not occur are unknown.",
        flag=Flag(
            "labels in their order, if the data do not show all labels or their order", "LABEL", action="append",
            texts=("--label",),
        ),
    ),
    Option(
        "estimator", "read", "Estimator | None",
        sentence='Treatment of more than two labels: "macro" (the default), "macro_weighted" or "micro" averages, '
        '"hand_till" (the default of roc_auc), or "one_vs_rest", which compares groups label by label; "binary" '
        "requires one label against the rest.",
        flag=Flag(
            f"how more than two labels are handled: NAME is {', '.join(get_args(Estimator))} (default: one_vs_rest)",
            "NAME", choices=get_args(Estimator),
        ),
        names_elsewhere="average averaging multi_class",
    ),
    Option(
        "na_rm", "read", "bool", default=True, check=flag,
        sentence="Whether rows without a truth, estimate or score are left out (True), or make the metric null.",
        flag=Flag(
            "leave metrics undefined if values are missing, instead of dropping the rows", None, action="store_false",
            texts=("--no-na-rm",),
        ),
        names_elsewhere="drop_na dropna ignore_na skipna",
    ),
    Option(
        "on_undefined", "read", "OnUndefined", "warn", partial(one_of, known=get_args(OnUndefined)),
        sentence='Groups without a value are left out with a warning ("warn") or silently ("ignore"), make disparities '
        'null ("null"), or raise an error ("raise").',
        names_elsewhere="zero_division",
    ),
    Option(
        "interval", "read", "Interval | None", check=_interval,
        sentence='`"auto"` adds `.lower`, `.upper`, `.std_error` and `.method` by the best method for each value; '
        '`"analytic"` and `"exact"` (Clopper and Pearson, of rates) are in closed form, `"bootstrap"` and `"bayes"` by '
        'replicates; the name of a method, such as `"jeffreys"` or `"agresti_caffo"`, asks for that one (an error '
        "lists those that apply).",
        flag=Flag("method: {} (default: auto, the best method for each value)", "METHOD"),
    ),
    Option(
        "conf_level", "read", "float", 0.95, proper_share,
        sentence="Confidence level of intervals (0.95); needs `interval=`.",
        flag=Flag("confidence level of the intervals (default: 0.95)", "NUMBER", "number"),
        names_elsewhere="ci ci_level confidence confidence_interval confidence_level level",
    ),
    Option(
        "times", "read", "int | None", check=partial(whole, least=LEAST_TIMES, most=MOST_TIMES),
        sentence="Number of replicates (10,000 of counts and sums, 1,000 of rows, or as many as `conf_level` needs).",
        flag=Flag("number of replicates, of methods that draw them (default: 10000)", "NUMBER", "whole"),
        names_elsewhere="n_boot n_boots n_bootstrap n_bootstraps n_draws n_perm n_permutations n_resamples",
    ),
    Option(
        "seed", "read", "int", 0, partial(whole, least=0),
        sentence="Random seed of the replicates; the same seed gives the same result.",
        flag=Flag("random seed of the replicates (default: 0)", "NUMBER", "whole"),
        names_elsewhere="random_seed random_state rng",
    ),
    Option(
        "explain", "show", "bool", default=False, check=flag,
        sentence="Whether to add `.n`, `.status`, `.group_min`, `.group_max`, `.level`, `.base_metric` (which of "
        "several metrics it is the worst of), `.metrics_left_out`, `.groups_left_out`, `.groups_outside` (those that "
        "are unknown, or too small) and `.left_out` (the metrics that these groups were left out of, and why); and "
        "with `interval=` `.replicates_lost`, in how many replicates some group has no value.",
    ),
    Option(
        "simultaneous", "group values", "bool", default=False, check=flag,
        flag=Flag("widen the intervals of groups so that all of them hold at once", None, action="store_true"),
    ),
    Option("to", "comparison", names_elsewhere="method ref ref_group reference reference_group"),
    Option("signed", "comparison"),
    Option("aggregate", "comparison", names_elsewhere="agg aggregation"),
    Option(
        "min_n", "comparison", "int", 0,
        flag=Flag("hide groups with fewer rows, and leave them out of disparities (default: {})", "ROWS", "whole"),
        names_elsewhere="min_group_size min_rows min_size",
    ),
    Option(
        "min_share", "comparison", "float", 0.0,
        flag=Flag(
            "leave groups with a smaller share of the rows, such as 0.02, out of disparities", "SHARE", "number"
        ),
    ),
    Option(
        "unknown", "comparison", "Treatment", "apart",
        flag=Flag(
            "rows whose group is missing or unknown: counted, but not compared (apart), compared like any other group, "
            "or dropped (default: apart)",
            None, choices=("apart", "group", "drop"),
        ),
    ),
    Option(
        "unknown_values", "comparison", "Iterable[object] | None",
        flag=Flag(
            "value that means unknown, besides missing values", "VALUE", action="append", texts=("--unknown-value",)
        ),
    ),
    Option("name", "comparison"),
    Option("adjust", "test", names_elsewhere="correction p_adjust"),
    Option("within", "test", names_elsewhere="strata stratify"),
    Option("below", "test", names_elsewhere="limit max_difference tolerance"),
    Option("above", "test", names_elsewhere="limit min_ratio"),
)  # fmt: skip
OPTIONS = {option.name: option for option in _TABLE}
"""All keywords by name, in the order of documentation."""


OF_CALLS = frozenset(option.name for option in _TABLE if option.step not in ("comparison", "test"))
"""The keywords of a call on data."""


# Keywords that do not exist

_FEATURES = (
    "attribute", "by", "group", "groups", "prot_attr", "protected", "protected_attribute", "protected_attributes",
    "sensitive", "sensitive_attribute", "sensitive_feature", "sensitive_features",
)  # fmt: skip
"""Keywords of the columns whose groups are compared."""
_EVENT = 'The event does not follow from the order of levels: write `pos_label="yes"` in the call.'
_OF_SIDES = 'Give the sides instead of the feature: `demographic_parity(privileged(sex="male"))(data, …)`.'
_SENTENCES = {
    "event_level": _EVENT,
    **dict.fromkeys(
        ("privileged", "privileged_group", "privileged_groups", "unprivileged", "unprivileged_groups"), _OF_SIDES
    ),
}
"""Keywords without a counterpart, and what to write instead."""
_SWITCHES = ("ci", "confidence_interval", "confidence_intervals", "intervals")
"""Keywords that ask for intervals, and may have their level."""
_REMARKS = {
    "alpha": ", which is 1 - alpha",
    "average": ', such as "macro"',
    "method": ' ("overall" for "to_overall"; groups are compared with each other where it is left out)',
    "zero_division": "; without a denominator values are null",
}


def hint(name: str, known: Collection[object]) -> str:
    """The sentence on what to write instead of a keyword; empty if no other library has it.

    >>> hint("y_true", ["data", "truth", "estimate"])
    'Here `y_true` is `truth=`.'
    >>> hint("alpha", ["below", "above", "conf_level"])
    'Here `alpha` is `conf_level=`, which is 1 - alpha.'
    """
    if name in _FEATURES:
        return _hint_of_features(name, known)
    if name in _SENTENCES:
        return _SENTENCES[name]
    if name in _SWITCHES and "interval" in known:
        return f'Here `{name}` is `interval="auto"`, and its level is `conf_level=`.'
    named = [option for option in _TABLE if name in option.names_elsewhere.split()]
    ours = [f"`{option.name}=`" for option in named if option.name in known]
    remark = _REMARKS.get(name, "")
    if name == "alpha":
        # it is also an option of formulas; functions with adjusted p-values have the level of a call
        ours = ["`conf_level=`"] if {"conf_level", "adjust"} & set(known) else []
        remark += "" if "conf_level" in known else ", and is given with the data"
    if ours:
        return f"Here `{name}` is {' or '.join(ours)}{remark}."
    for option in named:
        if option.step != "test":
            where = "feature" if option.step == "comparison" else "data"
            return f"Here `{name}` is `{option.name}=`{remark}, and is given with the {where}."
    return ""


def _hint_of_features(name: str, known: Collection[object]) -> str:
    """The sentence on where to give the columns whose groups are compared."""
    if "by" in known:
        return f'Here `{name}` is `by=`, such as `by={{"sex": …}}`.'
    sentence = (
        'Give the columns whose groups are compared first: `demographic_parity("sex")(data, …)` or '
        '`accuracy.difference("sex")(data, …)`.'
    )
    return sentence + " `group_by=` gives each group a separate row." * ("group_by" in known)


def unknown_keyword(kind: str, name: str, known: Iterable[str]) -> ArgumentError:
    """The error for a keyword that does not exist, or has another name in this library."""
    known = list(known)
    sentence = hint(name, known)
    return (
        ArgumentError(f"Unknown {kind} {name!r}. {sentence}") if sentence else ArgumentError.unknown(kind, name, known)
    )


def refuse_unknown(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords, of some kind for the message, that are not among the known ones."""
    known = list(known)
    for name in given:
        if name not in known:
            raise unknown_keyword(kind, name, known)
