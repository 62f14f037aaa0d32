"""The site's search leads from readers' words to the page that answers them.

The search of the site is imitated: a section is found if all words of a query begin words of its title, of the titles
above it or of its text; those with more words in their title are shown first, then those whose words stand closer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pytest
from conftest import DOCS

PAGES = DOCS / "pages"
SEARCHES = {
    # from readers
    "threshold per group": ("faq.md", "how-to/call.md", "how-to/call.md"),
    "missing race": ("faq.md", "how-to/small-groups.md"),
    "what does null mean": ("faq.md", "how-to/undefined-values.md"),
    "false positive rate": ("functions/fall_out.md", "glossary.md", "faq.md"),
    "min_n": ("faq.md", "how-to/small-groups.md"),
    "LLM": ("faq.md", "how-to/paired-prompts.md"),
    "intersectional": ("faq.md", "how-to/subgroups.md"),
    "cohort": ("faq.md", "glossary.md"),
    "pandas": ("how-to/pandas.md",),
    "exit code": ("command-line.md",),
    "pre-commit": ("command-line.md",),
    "pivot": ("how-to/wide-tables.md",),
    "sql": ("how-to/wide-tables.md", "engines.md"),
    "confusion matrix": ("how-to/confusion-matrix.md",),
    "sample size": ("how-to/sample-size.md",),
    "save state": ("batches.md",),
    "small groups": ("how-to/small-groups.md",),
    "equalized odds": ("functions/equalized_odds.md", "misleading-terms.md"),
    "confidence interval": ("how-sure/intervals.md", "glossary.md"),
    "gate": ("how-to/gates.md", "glossary.md"),
    # our own
    "holm": ("glossary.md",),
    "sensitivity": ("functions/sens.md", "glossary.md", "how-sure/guessed-groups.md"),
    "base rate": ("functions/base_rate.md", "glossary.md"),
    "permutation test": ("how-sure/tests.md", "glossary.md"),
    "recall": ("functions/sens.md",),
    "roc auc": ("functions/roc_auc.md",),
    "f1": ("functions/f_meas.md", "glossary.md", "metrics/names.md"),
    "four-fifths rule": ("how-to/gates.md", "functions/four_fifths.md", "gallery.md"),
    "disparate impact": ("functions/disparate_impact.md", "glossary.md", "misleading-terms.md"),
    "regression": ("how-to/numbers.md",),
    "survival": ("how-to/survival.md", "metrics/survival.md", "functions/survival.md"),
    "duckdb": ("engines.md",),
    "spark": ("engines.md",),
    "snowflake": ("engines.md",),
    "pytest": ("how-to/pytest.md",),
    "mlflow": ("how-to/mlflow.md",),
    "scikit-learn": ("how-to/scikit-learn.md",),
    "fairlearn": ("coming-from/fairlearn.md",),
    "yardstick": ("coming-from/yardstick.md",),
    "metric of your own": ("how-to/own-metric.md", "notebooks/your_own_metric.md"),
    "compare two models": ("how-to/compare-models.md",),
    "monitor": ("how-to/monitoring.md",),
    "reference group": ("how-to/aggregates.md", "how-to/aggregates.md"),
    "weights": ("how-to/weights.md",),
    "cross-validation": ("how-to/folds.md", "functions/scorers.md"),
    "decline to answer": ("reference/unknown-values.md",),
    "local law 144": ("tables-to-file.md",),
    "ai act": ("law.md", "tables-to-file.md"),
    "cite": ("install.md", "faq.md"),
    "pyodide": ("install.md",),
    "report": ("how-to/pictures-and-reports.md", "example-report.md"),
    "calibration": ("how-to/call.md", "gallery.md", "functions/calibration.md"),
    "simpson's paradox": ("glossary.md", "how-to/why-groups-differ.md"),
    "rankings": ("how-to/rankings.md", "functions/rankings.md"),
    # of groups, labels and publication
    "people with several races": ("faq.md", "how-to/overlapping-groups.md"),
    "memberships": ("functions/memberships.md",),
    "overlapping groups": ("how-to/overlapping-groups.md",),
    "age groups": ("how-to/numeric-features.md",),
    "bins": ("functions/bins.md", "how-to/numeric-features.md"),
    "quantile groups": ("functions/quantile_groups.md",),
    "continuous feature": ("functions/inference.feature_curve.md",),
    "abstain": ("how-to/abstention.md",),
    "refusal": ("how-to/abstention.md",),
    "operating point": ("functions/operating_point.md",),
    "few human labels": ("faq.md", "how-to/few-labels.md"),
    "judged": ("how-to/few-labels.md",),
    "suppress_below": ("faq.md", "how-to/publish.md"),
    "publish a table with small cells": ("faq.md",),
    "privacy": ("how-to/publish.md",),
    "required policy": ("how-to/publish.md",),
    "evidence file": ("how-to/publish.md",),
    "pay gap": ("faq.md", "tables-to-file.md"),
    "pay transparency": ("law.md", "faq.md"),
    "which interval is this": ("faq.md",),
    "how do i gate ci": ("faq.md",),
    "how do i compare two models": ("faq.md", "how-to/compare-models.md"),
    "which model": ("how-to/compare-models.md",),
    "multicalibration": ("functions/inference.multicalibration_test.md",),
}
_WORD = re.compile(r"[^\s\-_,:!=\[\]()\\\"`/.]+")


@dataclass(frozen=True)
class Section:
    """A heading of a page with what stands below it."""

    page: str
    title: tuple[str, ...]
    words: str
    """Each once, after a space."""


def words(text: str) -> tuple[str, ...]:
    return tuple(word.lower().strip("'?*.") for word in _WORD.findall(text))


@cache
def sections() -> list[Section]:
    """The sections of all pages, as the site lists them."""
    found: list[Section] = []
    for path in sorted(PAGES.rglob("*.md")):
        text = path.read_text("utf-8")
        page = str(path.relative_to(PAGES))
        head = re.match(r"---\ntitle: (.+)\n.*?\n---\n", text, re.DOTALL)
        text = re.sub(r"^::: .*\n    options:\n      heading: (.+)$", r"## \1", text, flags=re.MULTILINE)
        parts = re.split(
            r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), flags=re.MULTILINE
        )
        title = words(head[1] if head else parts[1])
        for heading, body in zip(parts[1::2], parts[2::2], strict=True):
            every = {*words(heading), *title, *words(body)}
            found.append(Section(page, words(heading), " " + " ".join(every)))
    return found


def found_pages(query: str) -> list[str]:
    """The pages that are shown, the best first."""
    asked = words(query)
    ranked: list[tuple[int, int, int, str]] = []
    for number, section in enumerate(sections()):
        in_title = [any(word.startswith(each) for word in section.title) for each in asked]
        if all(f" {each}" in section.words for each in asked):
            ranked.append((-sum(in_title), len(section.title), number, section.page))
    return list(dict.fromkeys(page for *_, page in sorted(ranked)))


@pytest.mark.parametrize("query", SEARCHES)
def test_a_search_shows_the_right_page_among_the_first_five(query: str) -> None:
    assert {*found_pages(query)[:5]} & {*SEARCHES[query]}, found_pages(query)[:5]
