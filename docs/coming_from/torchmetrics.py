"""What torchmetrics' group fairness is called here: each row is code, shown on its page and run on its numbers."""  # noqa: INP001 - rows

from __future__ import annotations

import tidyfair as tdf

TITLE = "Coming from torchmetrics"
INTRODUCTION = """\
torchmetrics takes tensors of predictions, targets and group numbers. Here they are columns of a frame, or arrays and
tensors on the CPU given to `.arrays(…)`; groups may be text, and the two groups that make the ratio are named in columns
instead of in a key:

```python
>>> import tidyfair as tdf
>>> parity = tdf.demographic_parity_ratio("sex")
>>> found = parity.arrays(estimate=[1, 0, 0, 1, 1, 1], by={"sex": ["f", "f", "f", "m", "m", "m"]}, explain=True)
>>> found.select(".estimate", ".group_min", ".group_max").row(0)
(0.3333333333333333, 'f', 'm')

```

In the rows below `by` is the column of groups.

- **Scores** are `probs=` with `threshold=`; selected is who has the threshold or more (torchmetrics: more than it). Logits
  are turned into probabilities by `probs=tdf.calibration.sigmoid("logit")`, of arrays `probs=tdf.calibration.sigmoid(preds)`, never by a guess.
- **`ignore_index`** is an argument of `.arrays(…)`, and of `update` of an accumulator; in a frame, filter those rows.
- **The values of the groups** come by `.by_group(…)` instead of a call, or `.arrays_by_group(…)`:

```python
>>> rates = tdf.metric_set(tdf.demographic_parity_ratio("sex"), tdf.equal_opportunity_ratio("sex"))
>>> target, logits, sex = [1, 0, -1, 1, 1], [0.3, -0.2, 2.0, -1.0, 0.9], ["f", "f", "f", "m", "m"]
>>> groups = rates.arrays_by_group(target, probs=tdf.calibration.sigmoid(logits), threshold=0.5, by={"sex": sex}, ignore_index=-1)
>>> groups.select(".metric", ".group", ".estimate").rows()[:2]
[('selection_rate', 'f', 0.5), ('selection_rate', 'm', 0.5)]

```

- **Batches**: an `Accumulator` counts them, tensors or frames, and computes when asked, as a metric object does there. It
  takes the target first. Groups are merged by their value, so that a group may be absent from a batch, or new in the
  tenth one; accumulators of processes `merge`:

```python
>>> seen = tdf.Accumulator(rates, threshold=0.5)
>>> for batch in (slice(0, 3), slice(3, 5)):
...     _ = seen.update(target[batch], probs=tdf.calibration.sigmoid(logits[batch]), by={"sex": sex[batch]}, ignore_index=-1)
>>> seen.compute().equals(rates.arrays(target, probs=tdf.calibration.sigmoid(logits), threshold=0.5, by={"sex": sex}, ignore_index=-1))
True

```

- **A rate without denominator** has no value, and the ratio is that of the groups that have one, with a warning that names
  the others; torchmetrics takes 0 for it."""

ROWS = {
    "functional.classification": {
        "demographic_parity": lambda by: tdf.demographic_parity_ratio(by),
        "equal_opportunity": lambda by: tdf.equal_opportunity_ratio(by),
        "binary_fairness": lambda by: tdf.metric_set(tdf.demographic_parity_ratio(by), tdf.equal_opportunity_ratio(by)),
        # `.by_group(…)`, or `.arrays_by_group(…)`
        "binary_groups_stat_rates": lambda by: tdf.new_groupwise_metric(
            tdf.metric_set(
                tdf.counts.true_positive_share,
                tdf.counts.false_positive_share,
                tdf.counts.true_negative_share,
                tdf.counts.false_negative_share,
            ),
            "stat_rates",
            tdf.difference(),
        )(by),
    },
    "classification": {
        "BinaryFairness": lambda by: tdf.metric_set(tdf.demographic_parity_ratio(by), tdf.equal_opportunity_ratio(by)),
        # the values of the groups: `.by_group(…)` or `.compute_by_group(tally)`
        "BinaryGroupStatRates": lambda by: tdf.new_groupwise_metric(
            tdf.metric_set(
                tdf.counts.true_positive_share,
                tdf.counts.false_positive_share,
                tdf.counts.true_negative_share,
                tdf.counts.false_negative_share,
            ),
            "stat_rates",
            tdf.difference(),
        )(by),
    },
}
