"""The first sentences of an answer: verdicts, then the finding on each feature or the changes of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidyfair.inference.gates import FAIL, PASS, UNSURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from tidyfair.reports.findings import Finding

__all__: list[str] = []

_EXIT_CODES = {PASS: 0, FAIL: 3, UNSURE: 4}
_OUTCOMES = {
    FAIL: ("failed", "failed"),
    UNSURE: ("is undecided", "undecided"),
    PASS: ("passed", "passed"),
}
"""Sentences about one condition with a verdict, and about several, the worst first."""


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
    worst = next(outcome for outcome in _OUTCOMES if outcome in counts)
    if len(verdicts) == 1:
        return [f"{worst.upper()}: the condition {_OUTCOMES[worst][0]}."]
    parts = [f"{counts[outcome]:,} {words}" for outcome, (_, words) in _OUTCOMES.items() if outcome in counts]
    return [f"{worst.upper()}: of {len(verdicts):,} conditions, {' and '.join(parts)}."]


def findings_in_words(findings: Sequence[Finding]) -> list[str]:
    """The finding on each feature, as a page shows it."""
    return [f"{finding.lead} {finding.text}" for finding in findings]


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
