"""What scikit-lego's fairness scorers are called here: each row is code, shown on its page and run on its numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tdf

TITLE = "Coming from scikit-lego"
INTRODUCTION = """\
scikit-lego's scorers have the same names here, and take any number of groups of any kind, in pandas or polars frames or
in arrays. A number is the place of a column in an array, and a label in a pandas frame. They go into `cross_validate`
and `GridSearchCV` as they are:

```python
>>> import polars as pl
>>> import tidyfair as tdf
>>> class Everybody:
...     def predict(self, people):
...         return [1] * len(people)
>>> people = pl.DataFrame({"sex": ["f", "m", "f"], "age": [30, 40, 50]})
>>> tdf.scorers.p_percent_score("sex")(Everybody(), people)
1.0

```

Any metric becomes a scorer by `tdf.scorers.make_scorer(metric, by="sex")`, of which more is better: a difference counts as minus
its distance from 0, a signed ratio as the smaller of q and 1/q. `by=("sex", "race")` compares intersections. Labels that
are text need `pos_label="yes"`; metrics of scores, such as `auc_parity`, are given those of `predict_proba`.

Scorers ask for `sample_weight` as those of scikit-learn do, and for `sensitive_features` where a pipeline does not see
the sensitive column; `by=` then names what is routed:

```python
>>> import sklearn
>>> from sklearn.dummy import DummyClassifier
>>> from sklearn.model_selection import cross_validate
>>> with sklearn.config_context(enable_metadata_routing=True):
...     scorer = tdf.scorers.make_scorer(tdf.demographic_parity_ratio, by="sex").set_score_request(sensitive_features=True)
...     scores = cross_validate(
...         DummyClassifier(), [[1], [2], [3], [4]], [1, 1, 0, 0], cv=2, scoring=scorer,
...         params={"sensitive_features": ["f", "m", "f", "m"]},
...     )
>>> scores["test_score"].tolist()
[1.0, 1.0]

```

`scorer.routed` is a function of truth and prediction, in which more is better already, for scikit-learn's own
`make_scorer`.

- **No value** is NaN, with a warning: where one of two rates has no denominator scikit-lego gives 0 or 1.
- **One group** in the data differs from nobody: 1.
- **Codes** of groups have no order: `correlation_score` of few whole numbers is minus the correlation ratio. Of
  floats it is minus |Pearson's r|, as there; of ages or counts too with `as_numbers=True`."""

ROWS = {
    "metrics": {
        "p_percent_score": lambda column, positive_target: tdf.scorers.p_percent_score(column, positive_target),
        "equal_opportunity_score": lambda column, positive_target: tdf.scorers.equal_opportunity_score(
            column, positive_target
        ),
        "correlation_score": lambda column: tdf.scorers.correlation_score(column),
        # or a metric of ours in place of the function
        "subset_score": lambda subset, score, kwargs: tdf.scorers.subset_score(subset, score, **kwargs),
    },
}
