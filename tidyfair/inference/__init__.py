"""Statistical inference for metrics: tests, gates, monitors, power, drift and comparisons of models.

The most common names (`check`, `assert_fair`, `pairwise`, `compare_models`) are also at the top level of the library.
All are listed here with their modules, which are imported when a name is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidyfair.inference.cross_validation import *
    from tidyfair.inference.drift import *
    from tidyfair.inference.frontier import *
    from tidyfair.inference.gates import *
    from tidyfair.inference.matched_pairs import *
    from tidyfair.inference.model_comparison import *
    from tidyfair.inference.monitoring import *
    from tidyfair.inference.pairwise_tests import *
    from tidyfair.inference.partial_identification import *
    from tidyfair.inference.permutation_test import *
    from tidyfair.inference.posterior import *
    from tidyfair.inference.sample_size import *
    from tidyfair.inference.sensitivity_analysis import *
    from tidyfair.inference.small_groups import *
    from tidyfair.inference.subgroups import *

    __all__: list[str]

_NAMES = {
    "cross_validation": "compare_resamples resamples summarize",
    "drift": "compare_periods PeriodTest",
    "frontier": "model_frontier ModelFrontier",
    "gates": "assert_fair check four_fifths Gate UnfairError",
    "matched_pairs": "paired_groups PairedGroups",
    "model_comparison": "compare_models ModelComparison",
    "monitoring": "monitor Monitor",
    "pairwise_tests": "pairwise PairwiseTest stratified StratifiedTest",
    "partial_identification": "probabilistic_groups ProbabilisticGroups",
    "permutation_test": "disparity_test DisparityTest",
    "posterior": "probability ProbabilityOf",
    "sample_size": "rows_needed smallest_difference",
    "sensitivity_analysis": "verdict_sensitivity VerdictSensitivity",
    "small_groups": "lump_rare missing_truth shrunken_rates worst_groups WorstGroups",
    "subgroups": (
        "certify_subgroups linear_subgroup LinearSubgroup subgroup_search SubgroupCertificate SubgroupSearch"
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:
    __all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - names of the list above


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - as short as can be

    if name in _MODULE_OF:
        value = getattr(import_module(f"tidyfair.inference.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    other_names = import_module("tidyfair.metrics.other_names")
    way_out = ""
    if name in import_module("tidyfair").__all__:
        way_out = f": write tidyfair.{name}"
    elif not name.startswith("_"):
        way_out = other_names.way_out(name, (), _MODULE_OF)
    raise other_names.missing(__name__, name, way_out)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
