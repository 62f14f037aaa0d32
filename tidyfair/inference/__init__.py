"""Statistical inference for metrics: tests, gates, monitors, power, drift and comparisons of models.

The most common names (`check`, `assert_fair`, `pairwise`, `compare_models`) are also at the top level of the library.
All are listed here with their modules, which are imported when a name is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidyfair.inference.feature_curves import *
    from tidyfair.inference.gates.checks import *
    from tidyfair.inference.models.cross_validation import *
    from tidyfair.inference.models.matched_pairs import *
    from tidyfair.inference.models.model_comparison import *
    from tidyfair.inference.monitoring.change_points import *
    from tidyfair.inference.monitoring.drift import *
    from tidyfair.inference.monitoring.monitors import *
    from tidyfair.inference.partial_knowledge.partial_identification import *
    from tidyfair.inference.partial_knowledge.posterior import *
    from tidyfair.inference.partial_knowledge.sensitivity_analysis import *
    from tidyfair.inference.partial_knowledge.small_groups import *
    from tidyfair.inference.testing.decomposition import *
    from tidyfair.inference.testing.pairwise_tests import *
    from tidyfair.inference.testing.permutation_test import *
    from tidyfair.inference.testing.sample_size import *
    from tidyfair.inference.testing.subgroups import *

    __all__: list[str]

_NAMES = {
    "feature_curves": "feature_curve FeatureCurve",
    "gates.checks": "assert_fair check four_fifths Gate UnfairError",
    "models.cross_validation": "compare_resamples resamples summarize",
    "models.matched_pairs": "paired_groups PairedGroups",
    "models.model_comparison": "compare_models ModelComparison",
    "monitoring.change_points": "ChangeSearch",
    "monitoring.drift": "compare_periods PeriodTest",
    "monitoring.monitors": "monitor Monitor",
    "partial_knowledge.partial_identification": "probabilistic_groups ProbabilisticGroups",
    "partial_knowledge.posterior": "probability ProbabilityOf",
    "partial_knowledge.sensitivity_analysis": "verdict_sensitivity VerdictSensitivity",
    "partial_knowledge.small_groups": "lump_rare missing_truth shrunken_rates worst_groups WorstGroups",
    "testing.decomposition": "decompose Decomposition",
    "testing.pairwise_tests": "pairwise PairwiseTest stratified StratifiedTest",
    "testing.permutation_test": "disparity_test DisparityTest",
    "testing.sample_size": "labels_needed rows_needed smallest_difference",
    "testing.subgroups": (
        "certify_subgroups linear_subgroup LinearSubgroup multicalibration_test MulticalibrationTest subgroup_search "
        "SubgroupCertificate SubgroupSearch"
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
    way_out = "" if name.startswith("_") else other_names.way_out(name)
    raise other_names.missing(__name__, name, way_out)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
