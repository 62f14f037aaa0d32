"""What scikit-lego's fairness scorers are called here: each row is code, shown on its page and run on its numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tf

TITLE = "Coming from scikit-lego"
INTRODUCTION = """\
scikit-lego's scorers have the same names here, and take any number of groups of any kind, in pandas or polars frames or
in arrays (then the column is its place). They go into `cross_validate` and `GridSearchCV` as they are:

```python
>>> import polars as pl
>>> import tidyfair as tf
>>> class Everybody:
...     def predict(self, people):
...         return [1] * len(people)
>>> people = pl.DataFrame({"sex": ["f", "m", "f"], "age": [30, 40, 50]})
>>> tf.p_percent_score("sex")(Everybody(), people)
1.0

```

Any metric becomes a scorer by `tf.make_scorer(metric, by="sex")`, of which more is better: a difference counts as minus
its distance from 0, a signed ratio as the smaller of q and 1/q. Where a pipeline does not see the sensitive column,
`tf.make_scorer(…).routed` is a metric function with `sensitive_features=`, for scikit-learn's own `make_scorer` and its
metadata routing.

- **No value** is NaN: where one of two rates has no denominator scikit-lego gives 0 or 1.
- **One group** in the data differs from nobody: 1.
- **Codes** of groups have no order: `correlation_score` of a column of whole numbers is minus the correlation ratio. Of
  floats it is minus |Pearson's r|, as there."""

ROWS = {
    "metrics": {
        "p_percent_score": lambda column, positive_target: tf.p_percent_score(column, positive_target),
        "equal_opportunity_score": lambda column, positive_target: tf.equal_opportunity_score(column, positive_target),
        "correlation_score": lambda column: tf.correlation_score(column),
        # or a metric of ours in place of the function
        "subset_score": lambda subset, score, kwargs: tf.subset_score(subset, score, **kwargs),
    },
}
