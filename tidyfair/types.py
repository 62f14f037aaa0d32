"""Classes of metrics, results and settings, for annotations and `isinstance`."""

from tidyfair.audits.credit import SegmentedTable as SegmentedTable, StandardizedTable as StandardizedTable
from tidyfair.audits.filing import FiledAudit as FiledAudit
from tidyfair.audits.named_audits import (
    ComparisonTable as ComparisonTable, NamedAudit as NamedAudit, ValuesTable as ValuesTable,
)  # fmt: skip
from tidyfair.audits.published import PublishedColumn as PublishedColumn
from tidyfair.audits.reference_tables import GroupComparison as GroupComparison
from tidyfair.calling.metric_sets import (
    GroupwiseFactory as GroupwiseFactory, GroupwiseMetric as GroupwiseMetric, Metric as Metric, MetricSet as MetricSet,
)  # fmt: skip
from tidyfair.specs.formulas.rows import Sample as Sample
from tidyfair.integrations.scorers import (
    CorrelationScorer as CorrelationScorer, FairnessScorer as FairnessScorer, SubsetScorer as SubsetScorer,
)  # fmt: skip
from tidyfair.metrics.curves import Curve as Curve, ThresholdCurve as ThresholdCurve
from tidyfair.reports.page import Report as Report
from tidyfair.specs.aggregates import Aggregate as Aggregate
from tidyfair.specs.forecasts import (
    CensoringDistribution as CensoringDistribution, PredictionInterval as PredictionInterval, Survival as Survival,
)  # fmt: skip
from tidyfair.specs.groups import Privileged as Privileged
from tidyfair.specs.survey_designs import ReplicateWeights as ReplicateWeights, SurveyDesign as SurveyDesign
from tidyfair.tallies.tally import Tally as Tally
