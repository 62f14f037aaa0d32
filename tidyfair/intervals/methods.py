"""The table of methods: which one gives the limits of which values and comparisons, and its source.

It is read first, and only what its row names is computed. A method of rates or of comparisons is a row and a function;
a new kind of value is a row and its estimates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from tidyfair.errors import ArgumentError, listed
from tidyfair.intervals import proportions
from tidyfair.intervals.comparisons import bands, extreme, pair, range_of_pairs
from tidyfair.intervals.estimates import Estimates


@dataclass(frozen=True)
class Case:
    """The kind of values, comparison and sampling, by which a method is chosen before anything is computed."""

    value: str
    """`rate`, `function_of_rate`, `sum_of_rates`, `area`, `ranked`, `calibration_error`, `fit` or `smooth`; or
    `resampled` by replicates."""
    compared: str
    """`alone`; the `difference`, `ratio` or `odds_ratio` of two; `range`, `many`, `rest`, `extreme`,
    another `distance` of several, or what is `other` than that."""
    sampling: str
    """`rows` (weighted or in clusters, too), `shared` rows of groups that overlap, `strata`, `replicate_weights`, or
    `judged` where some labels are of a judge."""


@dataclass(frozen=True)
class Method:
    """A row of the table. Columns hold the words that are admitted; an empty one admits all."""

    name: str
    value: str
    compared: str
    sampling: str
    interval: str
    """The values of `interval=` that take it, besides its own name."""
    source: str
    limits: Callable[..., Any] | None = None
    """The function of limits. It takes the shares, rows and standard errors of single rates, or the families of groups
    that an aggregate compares. Other single values have none: their estimates know their limits (`estimates.py`), as
    `put_by_inversion` and `Draws` know those of distances and of replicates."""

    def applies(self, case: Case) -> bool:
        """Check whether the columns admit a case."""
        return (
            (not self.value or case.value in self.value.split())
            and (not self.compared or case.compared in self.compared.split())
            and (not self.sampling or case.sampling in self.sampling.split())
        )


_AUTO = "auto analytic"
_OF_TWO = "difference ratio odds_ratio"
_MADE_OF_COUNTS = "rate function_of_rate sum_of_rates smooth fit"
METHODS = (
    # name, kind of value, comparison, sampling, interval=, source, function
    Method("prediction_powered", "", "alone", "judged", _AUTO, "Angelopoulos, Duchi and Zrnic (2023)"),
    Method("prediction_powered", "", _OF_TWO, "judged", _AUTO, "Angelopoulos, Duchi and Zrnic (2023)", pair),
    Method("prediction_powered, pairwise", "", "range rest", "judged", _AUTO, "Tukey (1953); Prékopa (1973)",
           range_of_pairs),
    Method("wilson", "rate", "alone", "rows", "", "Wilson (1927)", proportions.wilson),
    Method("wilson", "rate", "alone", "rows", _AUTO, "Wilson (1927), with ends after Brown, Cai and DasGupta (2001)"),
    Method("clopper_pearson", "rate", "alone", "rows", "exact", "Clopper and Pearson (1934)", proportions.exact),
    Method("jeffreys", "rate", "alone", "rows", "", "Brown, Cai and DasGupta (2001)", proportions.jeffreys),
    Method("agresti_coull", "rate", "alone", "rows", "", "Agresti and Coull (1998)", proportions.agresti_coull),
    Method("wald", "rate", "alone", "rows", "", "Laplace (1812)", proportions.wald),
    Method("wilson", "function_of_rate", "alone", "rows", _AUTO, "its values at the limits of the rate"),
    Method("mover", "sum_of_rates", "alone", "rows", _AUTO, "Zou, Huang and Zhang (2009)"),
    Method("delong", "area", "alone", "rows", _AUTO, "DeLong et al. (1988); Obuchowski (1997)"),
    Method("influence", "ranked", "alone", "rows", _AUTO, "Jaeckel (1972); Boyd, Eng and Page (2013)"),
    Method("folded_normal", "calibration_error", "alone", "rows", _AUTO,
           "Leone et al. (1961); Bröcker (2012); Kumar et al. (2019)"),
    Method("information", "fit", "alone", "rows", _AUTO, "Fisher information of the fit"),
    Method("jackknife", _MADE_OF_COUNTS, "alone", "rows", _AUTO, "Quenouille (1956); Tukey (1958)"),
    Method("survey_linearized", "", f"alone {_OF_TWO}", "strata", _AUTO, "Woodruff (1971); Binder (1983)", pair),
    Method("survey_replicates", "", f"alone {_OF_TWO}", "replicate_weights", _AUTO, "Wolter (2007)", pair),
    Method("newcombe", "rate", "difference", "rows", "", "Newcombe (1998), method 10",
           partial(pair, form=proportions.newcombe)),
    Method("newcombe", "rate", "difference", "rows", _AUTO, "Newcombe (1998), method 10, of Wilson's limits", pair),
    Method("agresti_caffo", "rate", "difference", "rows", "", "Agresti and Caffo (2000)",
           partial(pair, form=proportions.agresti_caffo)),
    Method("miettinen_nurminen", "rate", "difference", "rows", "", "Miettinen and Nurminen (1985)",
           partial(pair, form=proportions.score_difference)),
    Method("wald", "rate", "difference", "rows", "", "Laplace (1812)", partial(pair, form=proportions.wald_difference)),
    Method("miettinen_nurminen", "rate", "ratio", "rows", _AUTO, "Miettinen and Nurminen (1985)", pair),
    Method("katz", "rate", "ratio", "rows", "", "Katz et al. (1978)", partial(pair, form=proportions.katz)),
    Method("bootstrap", "resampled", _OF_TWO, "rows shared", "auto", "Efron (1979); Zou and Donner (2008)", pair),
    Method("mover", "", _OF_TWO, "rows shared", _AUTO, "Zou and Donner (2008)", partial(pair, by_both=True)),
    Method("survey_linearized, pairwise", "", "range", "strata", _AUTO, "Tukey (1953); Prékopa (1973)", range_of_pairs),
    Method("survey_replicates, pairwise", "", "range", "replicate_weights", _AUTO, "Tukey (1953); Prékopa (1973)",
           range_of_pairs),
    Method("pairwise", "", "range", "rows shared", _AUTO, "Tukey (1953); Šidák (1967); Prékopa (1973); Read (2002)",
           range_of_pairs),
    Method("pairwise", "", "rest", "rows", _AUTO, "Newcombe (1998); Zou, Huang and Zhang (2009); Šidák (1967)",
           range_of_pairs),
    Method("simultaneous", "", "many", "", _AUTO, "Šidák (1967)", bands),
    Method("simultaneous", "", "extreme", "", _AUTO, "Berger (1982); Šidák (1967)", extreme),
    Method("test_inversion", "", "distance", "rows", _AUTO, "Garthwaite and Buckland (1992)"),
    Method("bootstrap", "", "", "rows shared", "auto bootstrap", "Efron (1979)"),
    Method("dirichlet", "", "", "rows", "bayes", "Jeffreys (1946)"),
)  # fmt: skip
"""The first row that applies and answers is taken."""


@cache
def choose(case: Case, interval: str) -> Method | None:
    """The method of a case; None if there is none."""
    for method in METHODS:
        if interval in {method.name, *method.interval.split()} and method.applies(case):
            return method
    return None


def required(case: Case, interval: str, who: str) -> Method:
    """The method of a case; an error that names those that apply if there is none."""
    method = choose(case, interval)
    if method is not None:
        return method
    applying = [method for method in METHODS if method.applies(case)]
    # a prior of labels is a choice of its own, and no way out
    names = dict.fromkeys(method.name for method in applying if method.name != "dirichlet")
    ways = ["auto", *(name for name in names if "," not in name)]
    what = {"alone": "this metric", "many": "more than 200 groups", "other": "results of this kind"}
    compared = what.get(case.compared, f"the {case.compared}").replace("_", " ")
    msg = f"{who}: `interval={interval!r}` is no interval of {compared}; take {listed(ways)}."
    raise ArgumentError(msg)


def method_of(values: Estimates, scale: str) -> str:
    """The name of the method of the limits of pairs."""
    return required(Case(values.kind, scale, values.sampling), "auto", "values").name
