"""What AllenNLP's fairness metrics are called here: each row is code, shown on its page and run on AllenNLP's numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tdf

TITLE = "Coming from AllenNLP"
INTRODUCTION = """\
AllenNLP's fairness metrics take tensors of class numbers, batch by batch. Here labels and groups stay in your frame, as
text or numbers, of any number of classes and groups, and the distances come beside everything else in one call:

```python
>>> import tidyfair as tdf
>>> from tidyfair.datasets import lending
>>> loans = lending()
>>> depend = tdf.metric_set(tdf.independence("race"), tdf.separation("race"), tdf.sufficiency("race"))
>>> depend(loans, "repaid", "approved", pos_label="yes", explain=True).select(".metric", ".group_max", ".level").rows()
[('independence', 'Black', None), ('separation', 'Black', 'yes'), ('sufficiency', 'Asian', 'no')]

```

In the rows below `by` is the column of the protected variable. The number is that of the farthest group (and label);
`.by_group(…)` gives the value of each group, and `.level` the true or predicted label that it is given. A mask is
a filter; rows with `case_weights=` of 0 would still count in `.n`, and their labels would stay labels.

- **An empty cell has no value**: null, with a reason, in `.by_group(…)`, and the others still have theirs; AllenNLP
  gives NaN, or raises. A class that a group never gets contributes 0.
- **Which distance**: `"kl"` gives AllenNLP's number and the G test, and weighs what is rare heavily.
  `"total_variation"` is the share of predictions that would have to be others, for classes without an order.
  `"wasserstein"` is for classes in an order, where far errors are worse: it counts steps between them, so text needs
  `labels=[…]`. `"jensen_shannon"` is bounded and symmetric. All compare a group with everybody, itself included.
- **The farthest** of many small cells is far by chance too: look at `.n` and `.denominator` in `.by_group(…)`.
- **Digits**: AllenNLP computes in single precision.
- The mean of the divergences, weighted by group, is the mutual information of label and group
  (`tdf.distributions.mutual_information(by)`), and 2 n times that is the statistic of the G test."""

ROWS = {
    "fairness_metrics": {
        'Independence(…, "kl_divergence")': lambda by: tdf.independence(by),
        'Independence(…, "wasserstein")': lambda by: tdf.independence(by, distance="wasserstein"),
        'Separation(…, "kl_divergence")': lambda by: tdf.separation(by),
        'Separation(…, "wasserstein")': lambda by: tdf.separation(by, distance="wasserstein"),
        'Sufficiency(…, "kl_divergence")': lambda by: tdf.sufficiency(by),
        'Sufficiency(…, "wasserstein")': lambda by: tdf.sufficiency(by, distance="wasserstein"),
    },
}
