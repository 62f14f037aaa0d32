"""Tests of differences between groups, and the sizes of samples that they need."""

# pyright: reportUnusedImport=false
from tidyfair.inference.contingency import fisher
from tidyfair.inference.rate_tests import with_adjusted_p_values
from tidyfair.inference.testing.pairwise_tests import PairwiseTest, pairwise, stratified
from tidyfair.inference.testing.permutation_test import by_chance, compared_draws, disparity_test, drawn_together
from tidyfair.inference.testing.studentized import farthest, slack
from tidyfair.inference.testing.subgroups import checked_rate
