"""The first sentences of an answer: verdicts, then the largest difference for each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidyfair.inference.gates import FAIL, PASS, UNSURE
from tidyfair.reports.tables import rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.metric_sets import GroupwiseMetric

__all__: list[str] = []

_EXIT_CODES = {PASS: 0, FAIL: 3, UNSURE: 4}


def exit_code_of(verdicts: pl.DataFrame | None) -> int:
    """The exit code of the worst verdict: 3 where one fails, 4 where there is not enough evidence for another."""
    if verdicts is None:
        return 0
    outcomes = set(verdicts[".verdict"])
    if FAIL in outcomes:
        return _EXIT_CODES[FAIL]
    # where nothing is judged nothing has passed
    return _EXIT_CODES[PASS if outcomes == {PASS} else UNSURE]


def verdicts_in_words(verdicts: pl.DataFrame | None) -> list[str]:
    """A sentence that counts verdicts, the worst first."""
    if verdicts is None:
        return []
    if verdicts.is_empty():
        return ["NOT ENOUGH EVIDENCE: there is nothing to judge."]
    counts = dict(verdicts[".verdict"].value_counts().rows())
    worst = next(outcome for outcome in (FAIL, UNSURE, PASS) if outcome in counts)
    parts: list[str] = []
    for outcome, words in ((FAIL, "failed"), (UNSURE, "undecided for lack of evidence"), (PASS, "passed")):
        if outcome in counts:
            parts.append(f"{counts[outcome]:,} {words}")
    conditions = "condition" if len(verdicts) == 1 else "conditions"
    return [f"{worst.upper()}: {len(verdicts):,} {conditions} checked, {', '.join(parts)}."]


def differences_in_words(parities: Sequence[GroupwiseMetric], results: pl.DataFrame) -> list[str]:
    """A sentence for each feature: its largest significant difference, or that there is none."""
    if ".lower" not in results.columns:
        return []
    differences: dict[str, list[GroupwiseMetric]] = {}
    for parity in parities:
        if parity.aggregate.is_difference:
            differences.setdefault(parity.by.text, []).append(parity)
    sentences: list[str] = []
    for by, compared in differences.items():
        sentences.append(_largest_difference(by, compared, results.filter(pl.col(".by") == by)))
    return sentences


def _largest_difference(by: str, parities: Sequence[GroupwiseMetric], results: pl.DataFrame) -> str:
    """The largest difference between the groups of a feature whose interval excludes 0, in words."""
    names: dict[str, str] = {}
    for parity in parities:
        names[parity.name] = " or ".join(rate.name for rate in parity.metrics)
    differences = results.filter(pl.col(".metric").is_in(list(names)) & pl.col(".estimate").is_not_null())
    if differences.is_empty():
        return f"{by}: groups cannot be compared; the notes say why."
    # a signed difference may be clear on either side of 0
    nearest_end = pl.max_horizontal(".lower", -pl.col(".upper"))
    clear = differences.filter((nearest_end > 0) & nearest_end.is_finite()).sort(nearest_end, descending=True)
    if clear.is_empty():
        if not differences[".lower"].count():
            return f"{by}: the differences have no confidence intervals, or there is only one group."
        return f"No clear difference between {by} groups."
    row = clear.row(0, named=True)
    low, high = sorted([abs(row[".lower"]), abs(row[".upper"])])
    value, low, high = rounded(pl.Series([abs(row[".estimate"]), low, high]))
    rate = row.get(".base_metric") or names[row[".metric"]]
    sentence = f"{by}: {rate} is lowest for {row['.group_min']} and highest for {row['.group_max']}, "
    sentence += f"a difference of {value} ({low} to {high})."
    if len(clear) > 1:
        others = len(differences) - 1
        sentence += f" {len(clear) - 1} of the other {others} disparities {'is' if len(clear) == 2 else 'are'} also "
        sentence += "significant."
    return sentence


def changes_in_words(result: pl.DataFrame, directions: dict[tuple[str, str | None], str], other: str) -> list[str]:
    """Sentences on which metrics are significantly better or worse with the other model."""
    better: dict[str, None] = {}
    worse: dict[str, None] = {}
    for name, by, lower, upper in result.select(".metric", ".by", ".lower", ".upper").rows():
        direction = directions.get((name, by))
        if lower is None or upper is None or lower <= 0 <= upper or direction not in {"maximize", "minimize"}:
            continue
        text = name if by is None else f"{name}({by})"
        is_better = (lower > 0) == (direction == "maximize")
        (better if is_better else worse)[text] = None
    if not better and not worse:
        return ["No significant change."]
    sentences: list[str] = []
    for names, word in ((better, "better"), (worse, "worse")):
        if names:
            sentences.append(f"{other} is significantly {word} in: {', '.join(names)}.")
    return sentences
