"""Classes of metrics, results and settings, for annotations and `isinstance`."""

from tidyfair.audits import SegmentedTable as SegmentedTable, StandardizedTable as StandardizedTable
from tidyfair.audits import FiledAudit as FiledAudit
from tidyfair.audits import (
    ComparisonTable as ComparisonTable, NamedAudit as NamedAudit, ValuesTable as ValuesTable,
)  # fmt: skip
from tidyfair.audits import PublishedColumn as PublishedColumn
from tidyfair.audits import GroupComparison as GroupComparison
from tidyfair.calling import (
    GroupwiseFactory as GroupwiseFactory, GroupwiseMetric as GroupwiseMetric, Metric as Metric, MetricSet as MetricSet,
)  # fmt: skip
from tidyfair.specs.formulas import Sample as Sample
from tidyfair.integrations.scorers import (
    CorrelationScorer as CorrelationScorer, FairnessScorer as FairnessScorer, SubsetScorer as SubsetScorer,
)  # fmt: skip
from tidyfair.metrics.curves import Curve as Curve, ThresholdCurve as ThresholdCurve
from tidyfair.reports import Report as Report
from tidyfair.specs import Aggregate as Aggregate
from tidyfair.specs import (
    CensoringDistribution as CensoringDistribution, PredictionInterval as PredictionInterval, Survival as Survival,
)  # fmt: skip
from tidyfair.specs import Privileged as Privileged
from tidyfair.specs import ReplicateWeights as ReplicateWeights, SurveyDesign as SurveyDesign
from tidyfair.tallies import Tally as Tally
