"""Evaluation of a tally: values of groups, disparities and tidy frames."""
