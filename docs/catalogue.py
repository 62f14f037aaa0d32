"""Writes the pages made from code: a page for each kind of metric, and those for people who come from elsewhere.

`--check` says which pages are stale, and exits 1.
"""  # noqa: INP001 - a script

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
import tomllib
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from function_pages import FOLDER, MADE, everything, in_a_line, link, pages as function_pages, range_of

from tidyfair.audits import law
from tidyfair.calling.metric_sets import GroupwiseFactory, Metric
from tidyfair.intervals.methods import METHODS
from tidyfair.metrics import (
    annotators,
    classification,
    curves,
    dependence,
    distances,
    fairness,
    individual,
    inequality,
    prediction_intervals,
    probability,
    ranking,
    regression,
    survival,
)  # fmt: skip
from tidyfair.metrics.curves import Curve
from tidyfair.metrics.other_names import OTHER_NAMES
from tidyfair.specs.formulas import GroupPairs
from tidyfair.specs.groups import WORDS_FOR_UNKNOWN
from tidyfair.specs.option_table import INTERVALS
from tidyfair.specs.result_columns import COLUMNS
from tidyfair.specs.result_kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

COMING_FROM = Path(__file__).parent / "coming_from"
_DEFINED = re.compile(
    r"^# (?P<section>.+)\n\n|(?P<note>(?:^# .+\n)*)^(?:def )?(?P<name>\w+)(?:, (?P<other>\w+))?(?: = |\()", re.MULTILINE
)
_LOANS = """\
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()"""

NAMES = """\
# Names in other libraries

Looking for `f1_score`, `balanced_accuracy` or `MetricFrame`? The first table has the names that scikit-learn,
fairlearn, AIF360, torchmetrics, aequitas and others use, and what to write here. `tdf.r2_score` is an error that says
the same, and so does `tidyfair metrics r2_score` on the command line. The second table lists every metric of this
library with its aliases."""

INTRODUCTIONS: dict[str, tuple[ModuleType, str]] = {
    "labels.md": (classification, f"""\
# Metrics of labels

A metric of labels compares a column of true labels with a column of predicted labels. `pos_label` names the label that
is the event, unless the labels are 0 and 1, -1 and 1, or Boolean. Null means that there is no value, as for a rate
without a denominator; `explain=True` gives the reason.

```pycon
{_LOANS}
>>> tdf.sens(loans, "repaid", "approved", pos_label="yes")[".estimate"].round(4).item()
0.7154
>>> nobody = loans.filter(approved="no")
>>> tdf.precision(nobody, "repaid", "approved", pos_label="yes", on_undefined="ignore", explain=True)[".status"].item()
'zero_denominator'

```"""),
    "scores.md": (probability, f"""\
# Metrics of scores

A metric of scores compares a column of true labels with a column of scores, given as `probs=`. With more than two
labels, `probs` is a list of columns in the order of the labels, or a mapping. Null means that there is no value, as for
the area under the curve if every row has the event; `explain=True` gives the reason.

```pycon
{_LOANS}
>>> tdf.roc_auc(loans, "repaid", probs="score", pos_label="yes")[".estimate"].round(4).item()
0.7629

```"""),
    "numbers.md": (regression, """\
# Metrics of numbers

A numeric metric compares a column of true numbers with a column of predicted numbers. Rows that lack
either are left out. Null means that there is no value, as for a correlation with a constant; `explain=True` gives the
reason.

```pycon
>>> import polars as pl
>>> import tidyfair as tdf
>>> houses = pl.DataFrame({"price": [200, 300, 400, 500], "guess": [210, 280, 430, 500]})
>>> tdf.mae(houses, "price", "guess").rows()
[('mae', None, 'standard', 15.0)]

```"""),
    "survival.md": (survival, """\
# Metrics of survival

A metric of survival compares times until an event, some of which are censored, with predicted times, risks or survival
probabilities. [The guide](../how-to/survival.md) shows the call, and how censoring is dealt with. Null means that there
is no value, as where everybody is censored before the time; `explain=True` gives the reason.

```pycon
>>> import polars as pl
>>> import tidyfair as tdf
>>> patients = pl.DataFrame({"days": [90, 120, 400, 700], "died": [1, 1, 0, 1], "alive": [0.3, 0.6, 0.7, 0.9]})
>>> died = tdf.survival.outcome("days", "died")
>>> tdf.survival.brier(patients, died, probs={365: "alive"})[".estimate"].round(4).item()
0.1375

```"""),
    "intervals.md": (prediction_intervals, """\
# Metrics of intervals and quantiles

A metric of prediction intervals compares a column of true numbers with the two ends of an interval; one of quantiles
compares it with columns of quantiles, named by their levels. [The
guide](../how-to/numbers.md#evaluate-prediction-intervals-and-quantiles) shows both.
Rows that lack any of them are left out.

```pycon
>>> import polars as pl
>>> import tidyfair as tdf
>>> rents = pl.DataFrame({"rent": [500, 700, 900, 650], "low": [450, 600, 850, 560], "high": [600, 780, 1000, 640]})
>>> interval = tdf.prediction_intervals.interval("low", "high", level=0.9)
>>> tdf.prediction_intervals.coverage(rents, "rent", interval)[".estimate"].item()
0.75

```"""),
    "fairness.md": (fairness, f"""\
# Fairness metrics

A fairness metric compares a metric between the groups of a column. Call it with the column, and call the result with
data. It reads the columns that the compared metrics read. The result is null when fewer than two groups have a
value, or when the reference has none. Ranges assume a column of groups; with `privileged(…)` the result has a sign.

Any metric can be compared between groups: `tdf.accuracy.difference("sex")`, `tdf.roc_auc.ratio("race", to="White")`,
`tdf.sens.group_minimum("race", "sex")` and `tdf.rmse.group_maximum("city")` give `accuracy_difference`,
`roc_auc_ratio`, `sens_group_minimum` and `rmse_group_maximum`; a set does so for each of its metrics. The metrics below
have established names. `new_groupwise_metric` and `new_between_group_metric` make more.

```pycon
{_LOANS}
>>> from tidyfair.metrics import distances
>>> tdf.demographic_parity("race")(loans, estimate="approved", pos_label="yes")[".estimate"].round(4).item()
0.1521
>>> tdf.sens.group_minimum("race")(loans, "repaid", "approved", pos_label="yes")[".estimate"].round(4).item()
0.6065
>>> distance = tdf.distributions.kolmogorov_smirnov("sex")
>>> distance(loans, "repaid", probs="score", pos_label="yes")[".estimate"].round(4).item()
0.06

```"""),
    "inequality.md": (inequality, f"""\
# Inequality

A metric of inequality measures how unequally benefits are spread over people, within groups and between them. It reads
the same columns as a metric of labels, of scores or of numbers. Null means that nobody gets anything, or that somebody
gets less than nothing. With `alpha` of 0 or less, the index is infinite as soon as somebody gets nothing.

```pycon
{_LOANS}
>>> tdf.inequality.theil_index(loans, "repaid", "approved", pos_label="yes")[".estimate"].round(4).item()
0.2111
>>> parts = tdf.metric_set(
...     tdf.inequality.within_group_generalized_entropy_index("race"),
...     tdf.inequality.between_group_generalized_entropy_index("race"),
...     tdf.inequality.generalized_entropy_index,
... )
>>> parts(loans, "repaid", "approved", pos_label="yes")[".estimate"].round(4).to_list()
[0.1512, 0.0013, 0.1525]

```"""),
    "dependence.md": (dependence, f"""\
# Dependence on groups

How far the distribution of labels in a group is from that of everyone: 0 everywhere is independence (of the
prediction), separation (of the prediction, given the truth) or sufficiency (of the truth, given the prediction), for
any number of labels and groups. Each value belongs to a group and to a given label; `independence`, `separation` and
`sufficiency` take the largest. Null means that there are no such rows.

```pycon
{_LOANS}
>>> criteria = tdf.metric_set(
...     tdf.independence("race"), tdf.separation("race"), tdf.sufficiency("race"),
...     tdf.distributions.mutual_information("race"),
... )
>>> criteria(loans, "repaid", "approved", pos_label="yes")[".estimate"].round(4).to_list()
[0.0232, 0.0274, 0.0124, 0.0063]

```"""),
    "individuals.md": (individual, """\
# Individual fairness

Are people who are alike in some features treated alike? Distances are Euclidean: bring the features to one scale.

```pycon
>>> import polars as pl
>>> import tidyfair as tdf
>>> people = pl.DataFrame({"age": [20, 21, 60, 61], "hired": [1, 1, 1, 0], "town": ["a", "a", "b", "b"]})
>>> alike = tdf.inequality.consistency(["age"], n_neighbors=2)
>>> gap = tdf.new_groupwise_metric(alike, "gap", tdf.difference())
>>> tdf.metric_set(alike, gap("town"))(people, estimate="hired")[".estimate"].to_list()
[0.75, 0.5]

```"""),
    "rankings.md": (ranking, """\
# Rankings

How much attention do the items of each group get, and who is at the top? A row is an item in a list, and most metrics
are made with the column of lists. [Measure rankings](../how-to/rankings.md) leads from questions to them.

```pycon
>>> import polars as pl
>>> import tidyfair as tdf
>>> answers = pl.DataFrame({
...     "query": [1, 1, 1, 2, 2], "score": [3, 2, 1, 2, 1], "relevance": [1, 0, 1, 1, 1],
...     "group": ["a", "b", "b", "a", "b"],
... })
>>> lists = tdf.metric_set(tdf.rankings.ndcg("query"), tdf.rankings.exposure("query").ratio("group"))
>>> lists(answers, "relevance", "score").select(".metric", pl.col(".estimate").round(3)).rows()
[('ndcg', 0.96), ('exposure_ratio', 0.587)]

```"""),
    "annotators.md": (annotators, """\
# Agreement of annotators

How far do those who label agree, and is it the same for all groups of items, or of annotators? A row is a label of an
item by an annotator. [Take truths from several annotators](../how-to/annotators.md) has the columns that make one truth
of several.

```pycon
>>> import polars as pl
>>> import tidyfair as tdf
>>> votes = pl.DataFrame({
...     "item": [1, 1, 2, 2, 3, 3, 4, 4], "dialect": ["x"] * 4 + ["y"] * 4, "toxic": [1, 1, 0, 0, 1, 0, 1, 1],
... })
>>> agreement = tdf.annotators.fleiss_kap("item").difference("dialect")
>>> agreement.by_group(votes, estimate="toxic").select(".group", pl.col(".estimate").round(3)).rows()
[('x', 1.0), ('y', -0.333)]

```"""),
    "curves.md": (curves, f"""\
# Curves

A curve reads a column of true labels and a column of scores, and returns a tidy frame with one row for each point. Call
it like a metric of scores. Null means that a point has no value, as for a rate of events where there are none.

```pycon
{_LOANS}
>>> tdf.pr_curve(loans, "repaid", probs="score", pos_label="yes", thresholds=[0.5, 0.7])[".threshold"].to_list()
[inf, 0.7, 0.5]

```"""),
}  # fmt: skip


RESULTS = """\
# Columns of results

Names of columns that results add start with a dot. Columns before `.metric` are your own: the outer groups of
`group_by=`. A result has only the columns that its call asks for:

- **a call** has `.metric`, `.by`, `.estimator`, `.estimate`; with `interval=` also `.lower`, `.upper`, `.std_error` and
  `.method`; with `explain=True` also `.n`, `.status`, `.group_min`, `.group_max`, `.level`, `.base_metric`,
  `.metrics_left_out`, `.groups_left_out` and `.left_out`;
- **`by_group`** has a row for each group: `.metric`, `.by`, the features, `.group`, `.level`, `.estimator`,
  `.estimate`, the interval, `.n`, `.denominator` and `.status`;
- **a gate** has the columns of an explained call, and at the end `.lower`, `.upper`, `.limit` and `.verdict`.

Printed frames leave out the columns in the middle. This shows those that are read first:

```python
>>> import polars as pl
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> gap = tdf.equalized_odds("race")
>>> result = gap(lending(), "repaid", "approved", pos_label="yes", interval="auto", explain=True)
>>> result.select(".metric", ".by", pl.col(".estimate", ".lower", ".upper").round(1), ".group_min", ".group_max").row(0)
('equalized_odds', 'race', 0.2, 0.1, 0.3, 'Black', 'Asian')

```

`result.pipe(tdf.as_table)` makes a table of it for people, with each value beside its interval."""


KINDS_OF_RESULTS = """\
## Kinds of results

A result is of one kind, which `autoplot` and `as_table` know by the columns in bold. The other columns are those that
options of the call add, and you may drop them; columns of your own make no difference."""


LAW = f"""\
# What the law says, and when this was checked

Last checked in {law.CHECKED}. Every sentence about the law that an audit prints or a page quotes is one of these; they
stand in one file, `tidyfair/audits/law.py`. They are no legal advice: look the source up before you rely on one.
[Named audits](tables-to-file.md) compute the tables that some of these rules ask for, and [gates](how-to/gates.md) have
the four-fifths rule."""
RECIPES = """\
# Index of recipes

Every task that these pages show, with the sections of each page. Looking for a function? [All functions, metrics and
classes](../reference/index.md). For a question? [Questions that are asked often](../faq.md)."""
RECIPES_FROM = ("How-to", "In your tools", "Tables you have to file", "How sure", "Engines")
"""The parts of the navigation whose pages are recipes."""
COMMON = ("What it assumes", "Where it fails", "Rules", "Limits", "Sources", "What to know")
"""Headings that many pages have."""


UNKNOWN_VALUES = """\
# Values that mean unknown

People whose group is missing (null, NaN) or one of the texts below are counted apart: listed, and not compared. Upper
and lower case, and spaces around a text, make no difference. `unknown_values=` of a fairness metric replaces the list,
`unknown_values=[]` makes only missing values unknown, and `unknown="group"` compares such people like any other group
([small and unknown groups](../how-to/small-groups.md)).

```pycon
>>> import polars as pl
>>> import tidyfair as tdf
>>> people = pl.DataFrame(
...     {"race": ["A", "A", "B", "B", "prefer not to say"], "hired": [1, 1, 1, 0, 1]}
... )
>>> parity = tdf.demographic_parity("race")
>>> parity.by_group(people, estimate="hired").select(".group", ".estimate", ".status").rows()
[('A', 1.0, 'ok'), ('B', 0.5, 'ok'), ('prefer not to say', None, 'unknown')]

```"""


METHODS_OF_INTERVALS = """# Methods of intervals

The table that `interval=` is looked up in, as the library reads it: the first row that admits the kind of value, what
is compared and how the rows were sampled, and that answers to the name that is asked for. `"auto"` is the recommended
method, `"analytic"` the same where it needs no replicates, `"exact"` that of exact tests for rates (their comparisons
keep the recommended one), and any other name asks for that method alone. A name that does not apply is an error that
lists those that do:

```pycon
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> sens = tdf.sens(loans, "repaid", "approved", pos_label="yes", interval="jeffreys")
>>> sens[".method"].item()
'jeffreys'
>>> try:
...     tdf.mcc(loans, "repaid", "approved", pos_label="yes", interval="jeffreys")
... except tdf.errors.TidyfairError as error:
...     print(error)
mcc: `interval='jeffreys'` is no interval of this metric; take 'auto', 'jackknife', 'bootstrap'.

```

Values are *rates* (shares of rows), *functions* and *sums of rates* (F1, balanced accuracy), *areas* under a ROC curve,
*ranked* ones (areas under a precision-recall curve), *calibration errors*, *fits* of calibration lines, and *smooth*
functions of sums; *resampled* ones have errors from replicates. Compared are the values of two groups (*difference*,
*ratio*, *odds ratio*); the *range* of several groups or from a named one; the range of *many*, more than 200 groups;
groups with the *rest* or with all rows; the *extreme*, which is the smallest or largest value; and other *distances*.
Samples are *rows* (with weights or in clusters, too), *strata* of a survey, or *replicate weights*.

In results, `.method` may say more: `cluster bootstrap` draws whole clusters; `…, empty cells` is widened by cells that
no row is in; `…, upper end` has no other end; `…, simultaneous` holds for all groups at once, and `…, lower end of each
group` is the limit of each group by itself. The [sources](#sources) are at the end.
[How intervals are computed](../how-sure/intervals.md#how-intervals-are-computed) says which method a metric
has, and how well it holds."""

SOURCES = """## Sources

- Agresti, A. and Caffo, B. (2000). Simple and effective confidence intervals for proportions and differences of
  proportions result from adding two successes and two failures. *The American Statistician* 54, 280-288.
- Agresti, A. and Coull, B. A. (1998). Approximate is better than "exact" for interval estimation of binomial
  proportions. *The American Statistician* 52, 119-126.
- Angelopoulos, A. N., Duchi, J. C. and Zrnic, T. (2023). PPI++: Efficient prediction-powered inference.
  arXiv:2311.01453.
- Berger, R. L. (1982). Multiparameter hypothesis testing and acceptance sampling. *Technometrics* 24, 295-300.
- Binder, D. A. (1983). On the variances of asymptotically normal estimators from complex surveys. *International
  Statistical Review* 51, 279-292.
- Boyd, K., Eng, K. H. and Page, C. D. (2013). Area under the precision-recall curve: point estimates and confidence
  intervals. *Machine Learning and Knowledge Discovery in Databases*, 451-466.
- Bröcker, J. (2012). Estimating reliability and resolution of probability forecasts through decomposition of the
  empirical score. *Climate Dynamics* 39, 655-667.
- Brown, L. D., Cai, T. T. and DasGupta, A. (2001). Interval estimation for a binomial proportion. *Statistical
  Science* 16, 101-133.
- Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case of the
  binomial. *Biometrika* 26, 404-413.
- DeLong, E. R., DeLong, D. M. and Clarke-Pearson, D. L. (1988). Comparing the areas under two or more correlated
  receiver operating characteristic curves: a nonparametric approach. *Biometrics* 44, 837-845.
- Efron, B. (1979). Bootstrap methods: another look at the jackknife. *The Annals of Statistics* 7, 1-26.
- Garthwaite, P. H. and Buckland, S. T. (1992). Generating Monte Carlo confidence intervals by the Robbins-Monro
  process. *Applied Statistics* 41, 159-171.
- Jaeckel, L. A. (1972). The infinitesimal jackknife. Memorandum, Bell Laboratories.
- Jeffreys, H. (1946). An invariant form for the prior probability in estimation problems. *Proceedings of the Royal
  Society A* 186, 453-461.
- Katz, D., Baptista, J., Azen, S. P. and Pike, M. C. (1978). Obtaining confidence intervals for the risk ratio in
  cohort studies. *Biometrics* 34, 469-474.
- Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. *Advances in Neural Information Processing
  Systems* 32.
- Laplace, P.-S. (1812). *Théorie analytique des probabilités*.
- Leone, F. C., Nelson, L. S. and Nottingham, R. B. (1961). The folded normal distribution. *Technometrics* 3,
  543-550.
- Miettinen, O. and Nurminen, M. (1985). Comparative analysis of two rates. *Statistics in Medicine* 4, 213-226.
- Newcombe, R. G. (1998). Interval estimation for the difference between independent proportions: comparison of eleven
  methods. *Statistics in Medicine* 17, 873-890.
- Obuchowski, N. A. (1997). Nonparametric analysis of clustered ROC curve data. *Biometrics* 53, 567-578.
- Prékopa, A. (1973). On logarithmic concave measures and functions. *Acta Scientiarum Mathematicarum* 34, 335-343.
- Quenouille, M. H. (1956). Notes on bias in estimation. *Biometrika* 43, 353-360.
- Read, A. L. (2002). Presentation of search results: the CLs technique. *Journal of Physics G* 28, 2693-2704.
- Šidák, Z. (1967). Rectangular confidence regions for the means of multivariate normal distributions. *Journal of the
  American Statistical Association* 62, 626-633.
- Tukey, J. W. (1953). The problem of multiple comparisons. Manuscript, Princeton University.
- Tukey, J. W. (1958). Bias and confidence in not-quite large samples (abstract). *The Annals of Mathematical
  Statistics* 29, 614.
- Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. *Journal of the American
  Statistical Association* 22, 209-212.
- Wolter, K. M. (2007). *Introduction to Variance Estimation*, second edition. Springer.
- Woodruff, R. S. (1971). A simple method for approximating the variance of a complicated estimate. *Journal of the
  American Statistical Association* 66, 411-414.
- Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general approach.
  *Statistics in Medicine* 27, 1693-1702.
- Zou, G. Y., Huang, W. and Zhang, X. (2009). A note on confidence interval estimation for a linear function of
  binomial proportions. *Computational Statistics & Data Analysis* 53, 1080-1085."""

COMPARED = {
    "Values by themselves": {"alone"},
    "Two groups": {"difference", "ratio", "odds_ratio"},
    "Several groups": {"range", "many", "rest", "extreme", "distance"},
}
"""What is compared, by the heading of its rows."""


def pages() -> dict[str, str]:
    """The text of every page by its path."""
    found = {f"metrics/{name}": _parts(name) for name in INTRODUCTIONS}
    found["metrics/names.md"] = _index_of_names()
    found |= {name: iter([text.rstrip("\n")]) for name, text in function_pages().items()}
    found["reference/columns.md"] = _columns_of_results()
    found["reference/interval-methods.md"] = _methods_of_intervals()
    found["reference/unknown-values.md"] = _unknown_values()
    found["how-to/index.md"] = _recipes()
    found["law.md"] = _law()
    found |= {f"coming-from/{path.stem}.md": _rows(path) for path in sorted(COMING_FROM.glob("*.py"))}
    return {name: "\n\n".join(_without_empty_sections(parts)) + "\n" for name, parts in found.items()}


def _index_of_names() -> Iterator[str]:
    """The names that other libraries have for what is here, then every metric with its aliases."""
    yield NAMES
    yield "## What to write here"
    rows = ["| there | here |", "|---|---|"]
    rows += [f"| `{name}` | {_link(OTHER_NAMES[name])} |" for name in sorted(OTHER_NAMES, key=str.casefold)]
    yield "\n".join(rows)
    yield "## All metrics and their aliases"
    rows = ["| name | aliases | kind | direction |", "|---|---|---|---|"]
    for row in everything().sort("name").iter_rows(named=True):
        aliases = ", ".join(f"`{alias}`" for alias in row["aliases"])
        rows.append(f"| {_link(row['name'])} | {aliases} | {row['kind']} | {row['direction']} |")
    yield "\n".join(rows)


def _columns_of_results() -> Iterator[str]:
    """What each column of a result holds."""
    yield RESULTS
    for heading, columns in COLUMNS.items():
        yield f"## {heading}"
        rows = ["| column | holds |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in columns.items())]
        yield "\n".join(rows)
    yield KINDS_OF_RESULTS
    rows = ["| rows | columns, in order |", "|---|---|"]
    for kind in KINDS:
        names = [f"**`{name}`**" if name in kind.known_by else f"`{name}`" for name in kind.columns]
        rows.append(f"| {kind.title} | {', '.join(names)} |")
    yield "\n".join(rows)


def _recipes() -> Iterator[str]:
    """The pages of the guide with their sections, in the order of the navigation."""
    yield RECIPES
    site = tomllib.loads((FOLDER.parent / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    for title, entries in ((title, entry) for part in site for title, entry in part.items()):
        if title in RECIPES_FROM:
            yield f"## {title}"
            yield "\n".join(_lines_of_recipes(entries))


def _lines_of_recipes(entries: list[Any]) -> Iterator[str]:
    """A line for each page with its title, and the sections that answer a question of their own."""
    for name, inside in ((name, inside) for entry in entries for name, inside in entry.items()):
        if isinstance(inside, list):
            yield f"\n### {name}\n"
            yield from _lines_of_recipes(inside)
        elif inside != "how-to/index.md":
            text = re.sub(r"^```.*?^```", "", (FOLDER / inside).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
            sections = [each for each in re.findall(r"^## (.+)$", text, re.MULTILINE) if each not in COMMON]
            more = f": {'; '.join(sections)}" if sections else ""
            yield f"- [{re.findall(r'^# (.+)$', text, re.MULTILINE)[0]}](../{inside}){more}"


def _law() -> Iterator[str]:
    """What rules say, as the audits quote it."""
    yield LAW
    for rule in law.RULES:
        yield f"## {rule.title}"
        yield f"{rule.version[0].upper()}{rule.version[1:]}. Source: {rule.source}."
        yield rule.footnote if rule.status else ""


def _unknown_values() -> Iterator[str]:
    """The texts that mean an unknown group."""
    yield UNKNOWN_VALUES
    yield "## All texts, from missing to decline to answer"
    yield "\n".join(f"- `{word}`" if word else "- a text that is empty" for word in WORDS_FOR_UNKNOWN)


def _methods_of_intervals() -> Iterator[str]:
    """The table of methods as calls read it."""
    yield METHODS_OF_INTERVALS
    for heading, compared in COMPARED.items():
        yield f"## {heading}"
        rows = [
            "| `.method` | values | compared | samples | taken by `interval=` | source |",
            "|---|---|---|---|---|---|",
        ]
        taken: set[tuple[str, ...]] = set()
        for method in METHODS:
            own = compared & set(method.compared.split()) or (set() if method.compared else compared)
            if not own:
                continue
            # of two rows of the same values the first one answers to their name
            place = (method.value, " ".join(sorted(own)), method.sampling)
            names = [*method.interval.split(), *({method.name} & {*INTERVALS} - {method.interval})]
            asked = [name for name in dict.fromkeys(names) if (name, *place) not in taken]
            taken |= {(name, *place) for name in asked}
            columns = [f"`{method.name}`", _words(method.value), _words(" ".join(sorted(own))), _words(method.sampling)]
            rows.append(f"| {' | '.join([*columns, ', '.join(f'`{name}`' for name in asked), method.source])} |")
        yield "\n".join(rows)
    yield SOURCES


def _words(words: str) -> str:
    """The words of a column of the table of methods; an empty one admits all."""
    return ", ".join(word.replace("_", " ") for word in words.split()) or "all"


def _without_empty_sections(parts: Iterator[str]) -> Iterator[str]:
    """Parts but for headings with nothing below, as of sections that hold helpers only."""
    texts = [part.strip("\n") for part in parts if part]
    for text, after in pairwise([*texts, "## "]):
        if not (text.startswith("## ") and "\n" not in text and after.startswith("## ")):
            yield text


def _rows(path: Path) -> Iterator[str]:
    """What stands on a page for people who come from another library: a row for each of its functions."""
    source, module = path.read_text("utf-8"), load(path)
    yield f"# {module.TITLE}"
    yield module.INTRODUCTION
    tables: Any = next(
        each.value
        for each in ast.parse(source).body
        if isinstance(each, ast.Assign) and "ROWS" in ast.dump(each.targets[0])
    )
    lines = source.splitlines()
    for heading, table in zip(tables.keys, tables.values, strict=True):
        yield f"## {heading.value}"
        above = lines[heading.lineno - 2].strip()
        yield above[2:3].upper() + above[3:] + "." if above.startswith("# ") else ""
        rows = ["| there | here |", "|---|---|"]
        for name, row in zip(table.keys, table.values, strict=True):
            above = lines[name.lineno - 2].strip()
            note = f" ({above[2:]})" if above.startswith("# ") else ""
            code = re.sub(r"\s+", " ", str(ast.get_source_segment(source, row.body))).strip()
            code = code.replace("( ", "(").replace(" )", ")").replace(",)", ")")
            rows.append(f"| `{name.value}` | `{code}`{note} |")
        yield "\n".join(rows)


def load(path: Path) -> Any:
    """A module from its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _parts(page: str) -> Iterator[str]:
    """What stands on a page, in the order of its module."""
    module, introduction = INTRODUCTIONS[page]
    yield introduction
    yield str(module.__doc__).partition("\n\n")[2]
    yield from _sections(module)
    if module is fairness:
        yield str(distances.__doc__).partition("\n\n")[2]


def _sections(module: ModuleType) -> Iterator[str]:
    """A table for each section of a module, in its order."""
    table: list[Any] = []
    notes: list[str] = []
    entered: set[str] = set()
    for found in chain(_DEFINED.finditer(inspect.getsource(module)), [None]):
        if found is None or found["section"]:
            yield from [_table(table), *notes]
            notes, table = [], []
        if found and found["section"]:
            yield f"## {found['section']}"
        elif found and found["name"] in module.__all__ and found["name"] not in entered:
            entered.add(found["name"])
            value = getattr(module, found["name"])
            if isinstance(value, GroupwiseFactory):
                table += [getattr(module, found[each]) for each in ("name", "other") if found[each]]
                notes += [f"`{value.name}` is {found['note'][2:].strip()}."] if found["note"] else []
            elif _has_page(value):
                table.append(value)


def _has_page(value: object) -> bool:
    """True for metrics that are no alias, and for what makes metrics and curves."""
    name = getattr(value, "name", None) or getattr(value, "__name__", "")
    if isinstance(value, Metric):
        return value.name in _names_of_metrics()
    return isinstance(value, Curve) or name in MADE or (isinstance(value, FunctionType) and name.endswith("_curve"))


@cache
def _names_of_metrics() -> frozenset[str]:
    return frozenset(everything()["name"])


def _table(values: list[Any]) -> str:
    """A row for each metric, or for each fairness metric of a section."""
    if not values:
        return ""
    if isinstance(values[0], GroupwiseFactory):
        rows = [["name", "compares", "by", "better, range"], ["---"] * 4]
        for factory in values:
            paired = isinstance(factory.metrics[0].definition, GroupPairs)
            compared = "the scores of groups" if paired else ", ".join(_link(metric.name) for metric in factory.metrics)
            made = factory.typical
            facts = f"{made.better}, {range_of(made)}"
            # the family stands in the first column
            compared = re.sub(r"\[`\w+\.(\w+)`\]", r"[`\1`]", compared)
            rows.append([_link(factory.name), compared, f"`{factory.aggregate!r}`", facts])
    else:
        rows = [["name", "meaning", "better", "range"], ["---"] * 4]
        for value in values:
            name = getattr(value, "name", None) or value.__name__
            made = MADE.get(name, value)
            known = isinstance(made, Metric)
            facts = [made.better if known else "", range_of(made) if known else ""]
            rows.append([_link(name), _beside(in_a_line(value)), *facts])
        if not any(row[2] for row in rows[2:]):
            rows = [row[:2] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _link(name: str) -> str:
    """A link to the page of a name, from the pages of metrics."""
    return link(name, "../functions/")


def _beside(text: str) -> str:
    """A text of a page of a name with its links from another folder."""
    return re.sub(r"\]\((?=[\w.]+\.md)", "](../functions/", text)


def main() -> int:
    """Write the pages, and delete those of names that are gone; or say which are stale."""
    paths = {FOLDER / name: text for name, text in pages().items()}
    stale = [path for path, text in paths.items() if not path.is_file() or path.read_text("utf-8") != text]
    gone = [path for path in (FOLDER / "functions").glob("*.md") if path not in paths]
    if "--check" in sys.argv[1:]:
        sys.stdout.writelines(f"{path.name} is stale: run `python docs/catalogue.py`.\n" for path in [*stale, *gone])
        return int(bool(stale or gone))
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(paths[path], "utf-8")
    for path in gone:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
