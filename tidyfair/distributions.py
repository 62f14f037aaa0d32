"""Distances between the distributions of labels, scores and numbers of groups."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.dependence import (
    distance_given_estimate as distance_given_estimate, distance_given_truth as distance_given_truth,
    distance_to_all as distance_to_all,
)  # fmt: skip
from tidyfair.metrics.fairness import (
    abroca_debiased as abroca_debiased, abroca_if_equal as abroca_if_equal, bias_amplification as bias_amplification,
    bnsp_auc as bnsp_auc, bpsn_auc as bpsn_auc, kl_divergence as kl_divergence,
    kolmogorov_smirnov as kolmogorov_smirnov, kolmogorov_smirnov_debiased as kolmogorov_smirnov_debiased,
    kolmogorov_smirnov_if_equal as kolmogorov_smirnov_if_equal, mutual_information as mutual_information,
    new_between_group_metric as new_between_group_metric, wasserstein_distance as wasserstein_distance,
    wasserstein_distance_debiased as wasserstein_distance_debiased,
    wasserstein_distance_if_equal as wasserstein_distance_if_equal,
)  # fmt: skip

__getattr__ = _suggestions(__name__)
