"""Tests of differences between groups, and the sizes of samples that they need."""

# pyright: reportUnusedImport=false
from tidyfair.inference.contingency import fisher
from tidyfair.inference.rate_tests import compared_draws, drawn_together, with_adjusted_p_values
from tidyfair.inference.testing.pairwise_tests import PairwiseTest, pairwise, stratified
from tidyfair.inference.testing.permutation_test import by_chance, disparity_test
from tidyfair.inference.testing.studentized import farthest, slack
from tidyfair.inference.testing.subgroups import checked_rate
