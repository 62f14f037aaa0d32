"""Tidy metric sets and fairness metrics on dataframes."""

from typing import TYPE_CHECKING

from tidyfair.aggregates import *
from tidyfair.catalogue import *
from tidyfair.contrasts import *
from tidyfair.definitions import *
from tidyfair.errors import *
from tidyfair.fairness import *
from tidyfair.formulas import *
from tidyfair.groups import *
from tidyfair.metric_sets import *
from tidyfair.metrics.classification import *
from tidyfair.metrics.dependence import *
from tidyfair.metrics.individual import *
from tidyfair.metrics.inequality import *
from tidyfair.metrics.probability import *
from tidyfair.metrics.regression import *
from tidyfair.spreads import *

if TYPE_CHECKING:
    from tidyfair import datasets as datasets
    from tidyfair.changes import *
    from tidyfair.cuts import *
    from tidyfair.defaults import *
    from tidyfair.exhibits import *
    from tidyfair.folds import *
    from tidyfair.functions import *
    from tidyfair.gates import *
    from tidyfair.hypotheses import *
    from tidyfair.metrics.curves import *
    from tidyfair.pairs import *
    from tidyfair.periods import *
    from tidyfair.plots import *
    from tidyfair.posteriors import *
    from tidyfair.reports import *
    from tidyfair.scorers import *
    from tidyfair.sizes import *
    from tidyfair.small_groups import *
    from tidyfair.streaming import *
    from tidyfair.subgroups import *
    from tidyfair.tables import *
    from tidyfair.tallies import *

    __version__: str

_LATER = (
    "cuts", "tallies", "functions", "folds", "gates", "hypotheses", "tables", "streaming", "defaults",
    "metrics.curves", "changes", "pairs", "periods", "posteriors", "scorers", "sizes", "small_groups", "subgroups",
    "plots", "exhibits", "reports",
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
        return [each for each in globals() if not each.startswith("_") and each != "TYPE_CHECKING"]
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return __getattr__("__all__")  # pyright: ignore[reportReturnType] - `__all__` is a list
