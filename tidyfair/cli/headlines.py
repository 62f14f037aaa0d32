"""The first sentences of an answer: verdicts, then the finding on each feature or the changes of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidyfair.cli.fail_if import SIDES
from tidyfair.inference.verdicts import FAIL, PASS, UNSURE
from tidyfair.reports.verdicts import headline, value_and_limit
from tidyfair.specs.result_columns import key_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tidyfair.cli.fail_if import Key

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


def verdicts_in_words(verdicts: pl.DataFrame | None, directions: Mapping[Key, str], *, change: str = "") -> list[str]:
    """The sentence on all verdicts, as a page shows it; `change` precedes a metric whose change is judged."""
    if verdicts is None:
        return []
    if verdicts.is_empty():
        return [f"{UNSURE.upper()}: there is nothing to judge."]
    clauses: list[str] = []
    outer = key_columns(verdicts)
    for row in verdicts.iter_rows(named=True):
        name, by = row[".metric"], row[".by"]
        where = f" ({', '.join(f'{key} {row[key]}' for key in outer)})" if outer else ""
        subject = f"{change}{name if by is None else f'{name}({by})'}{where}"
        side = "above" if SIDES[directions[name, by]] == "<" else "below"
        clauses.append(value_and_limit(subject, row, side))
    sentence = headline(verdicts[".verdict"].to_list(), clauses)
    (verdict,) = (outcome for outcome in _EXIT_CODES if sentence.lower().startswith(outcome))
    return [verdict.upper() + sentence[len(verdict) :]]


def changes_in_words(result: pl.DataFrame, directions: Mapping[Key, str], other: str) -> list[str]:
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
