"""One call: metrics, groupwise metrics and metric sets come in, and what a call gives, or adds up, goes out."""

# pyright: reportUnusedImport=false
from tidyfair.calling.calls import Evaluable
from tidyfair.calling.comparisons import COMPARISONS
from tidyfair.calling.metric_sets import (
    CALL, GroupwiseFactory, GroupwiseMetric, KINDS, Metric, MetricSet, PYTHON_ONLY, columns_of, comparison, metric_set,
    metric_tweak, way_to_metrics,
)  # fmt: skip
from tidyfair.calling.runner import Run
