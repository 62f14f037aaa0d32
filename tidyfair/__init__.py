"""Tidy metric sets and fairness metrics on dataframes."""

from typing import TYPE_CHECKING

from tidyfair.errors import *
from tidyfair.metric_sets import *
from tidyfair.metrics.catalog import *
from tidyfair.metrics.classification import *
from tidyfair.metrics.define import *
from tidyfair.metrics.dependence import *
from tidyfair.metrics.fairness import *
from tidyfair.metrics.individual import *
from tidyfair.metrics.inequality import *
from tidyfair.metrics.probability import *
from tidyfair.metrics.regression import *
from tidyfair.specs.aggregates import *
from tidyfair.specs.contrasts import *
from tidyfair.specs.formulas import *
from tidyfair.specs.groups import *
from tidyfair.specs.spreads import *

if TYPE_CHECKING:
    from tidyfair import datasets as datasets
    from tidyfair.evaluation.array_metrics import *
    from tidyfair.inference.cross_validation import *
    from tidyfair.inference.drift import *
    from tidyfair.inference.gates import *
    from tidyfair.inference.model_comparison import *
    from tidyfair.inference.pairwise_tests import *
    from tidyfair.inference.permutation_test import *
    from tidyfair.inference.posterior import *
    from tidyfair.inference.sample_size import *
    from tidyfair.inference.small_groups import *
    from tidyfair.inference.subgroups import *
    from tidyfair.integrations.scorers import *
    from tidyfair.metrics.confusion import *
    from tidyfair.metrics.curves import *
    from tidyfair.metrics.defaults import *
    from tidyfair.reports.page import *
    from tidyfair.reports.plots import *
    from tidyfair.reports.tables import *
    from tidyfair.streaming import *
    from tidyfair.tallies.tally import *
    from tidyfair.tallies.thresholds import *

    __version__: str

_LATER = (
    "tallies.thresholds", "tallies.tally", "evaluation.array_metrics", "inference.cross_validation",
    "inference.gates", "inference.permutation_test", "metrics.confusion", "streaming", "metrics.defaults",
    "metrics.curves", "inference.model_comparison", "inference.pairwise_tests", "inference.drift",
    "inference.posterior", "integrations.scorers", "inference.sample_size", "inference.small_groups",
    "inference.subgroups", "reports.plots", "reports.tables", "reports.page",
)  # fmt: skip
"""Modules that are read when one of their names is first asked for, so that the import stays short; none is called as
one of its names is, which it would hide."""


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - as short as can be

    if name == "datasets":
        return import_module("tidyfair.datasets")
    if name == "__version__":
        # as installed; looked up when asked for, because that reads a file
        return import_module("importlib.metadata").version("tidyfair")
    for place in () if name.startswith("__") and name != "__all__" else _LATER:
        module = import_module(f"tidyfair.{place}")
        globals().update({each: getattr(module, each) for each in module.__all__})
        if name in module.__all__:
            return globals()[name]
    if name == "__all__":
        return [name for name, value in globals().items() if not name.startswith("_") and _is_public(value)]
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def _is_public(value: object) -> bool:
    """Whether a name is one of the library's, and no room of it."""
    return value is not TYPE_CHECKING and type(value).__name__ != "module"


def __dir__() -> list[str]:
    return __getattr__("__all__")  # pyright: ignore[reportReturnType] - `__all__` is a list
