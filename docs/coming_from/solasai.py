"""What SolasAI's disparity metrics are called here: each row is code, shown on its page and run on its own numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tdf

TITLE = "Coming from SolasAI"
INTRODUCTION = """\
`solas-ai` takes a column of memberships for each group, and lists of protected and reference groups. Here a column holds
the groups, and `to` names the reference, for one feature or for each:

```python
>>> import polars as pl
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> impact = tdf.compare_groups(
...     tdf.selection_rate, by=["sex", "race"], to={"sex": "male", "race": "White"}, scale="ratio", test="fisher"
... )
>>> table = impact(loans, estimate="approved", pos_label="yes", explain=True)
>>> shown = pl.col(".disparity", ".p_value", ".shortfall").round_sig_figs(4)
>>> table.filter(pl.col("race") == "Black").select(shown).row(0)
(0.7502, 8.272e-14, 126.2)

```

The whole filing is [one audit](../tables-to-file.md), `tdf.audit("lending_adverse_impact", …)`: adverse impact ratio, odds
ratio, relative rate and marginal effect, standardized mean differences of scores and residuals, and tests by segment.

In the rows below `by` is a feature or a list of features, `to` a reference group or a mapping by feature, `data` a frame,
and `score` and `segment` are names of columns.

- **Practical significance** is for you to state: filter by `.disparity`, `.p_adjusted` and `.shortfall`, or make a gate with
  `tdf.check`. `.p_adjusted` is adjusted for the number of groups.
- **P-values** of rates are exact with `test="fisher"`, for any size; without it they are those of the interval. `solas-ai`
  takes Fisher's test up to a number of rows, and a chi-squared test above it.
- **Standardized mean differences** are in standard deviations, not percent; `spread="all"` is its standard deviation of
  all rows, `"pooled"` that of the two groups.
- **Ratios of errors** (`false_positive_rate`, `false_negative_rate`, `false_discovery_rate`) are those of the reference over
  the group there; here a ratio is always that of the group over the reference.
- **Shortfalls** are columns of the result with `explain=True`.
- **Weights** are `case_weights=`; they do not stand for rows, so that p-values are those of the rows.
- **Segments.** The ratio over segments is that of Mantel and Haenszel; `solas-ai` reallocates the reference group."""

ROWS = {
    "Selections": {
        "adverse_impact_ratio": lambda by, to: tdf.compare_groups(
            tdf.selection_rate, by=by, to=to, scale="ratio", test="fisher"
        ),
        # called with the unfavorable outcome as `pos_label`
        "relative_rate": lambda by, to: tdf.compare_groups(
            tdf.selection_rate, by=by, to=to, scale="ratio", test="fisher"
        ),
        # called with `probs=score, top_fraction=[0.1, 0.2]`
        "adverse_impact_ratio_by_quantile": lambda by, to: tdf.compare_groups(
            tdf.selection_rate, by=by, to=to, scale="ratio", test="fisher"
        ),
        # called with `group_by=segment`; the table of each segment
        "segmented_adverse_impact_ratio": lambda by, to: tdf.compare_groups(
            tdf.selection_rate, by=by, to=to, scale="ratio", test="fisher"
        ),
    },
    "Errors": {
        "true_positive_rate": lambda by, to: tdf.compare_groups(tdf.sens, by=by, to=to, scale="ratio"),
        "true_negative_rate": lambda by, to: tdf.compare_groups(tdf.spec, by=by, to=to, scale="ratio"),
        "false_positive_rate": lambda by, to: tdf.compare_groups(tdf.fall_out, by=by, to=to, scale="ratio"),
        "false_negative_rate": lambda by, to: tdf.compare_groups(tdf.miss_rate, by=by, to=to, scale="ratio"),
        "precision": lambda by, to: tdf.compare_groups(tdf.precision, by=by, to=to, scale="ratio"),
        "false_discovery_rate": lambda by, to: tdf.compare_groups(
            tdf.false_discovery_rate, by=by, to=to, scale="ratio"
        ),
    },
    "Scores": {
        "standardized_mean_difference": lambda data, score, by, to: tdf.audits.standardized_differences(
            data, score, by=by, to=to, spread="all"
        ),
    },
}
