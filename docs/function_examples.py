"""Examples of names whose docstrings have none, for their pages; `function_pages.py` runs them and adds the results."""  # noqa: INP001 - read by function_pages.py

LOANS = """\
import tidyfair as tdf
from tidyfair.datasets import lending
loans = lending()
"""
EXAMPLES = {
    "class_metric": """\
import tidyfair as tdf
@tdf.class_metric()
def share_found(tp: float, fn: float) -> tuple[float, float]:
    '''Share of the events that were found.'''
    return tp, tp + fn

share_found.formula(tp=3, fn=1)
""",
    "prob_metric": LOANS + """\
@tdf.statistic
def scores_of_events(truth, score):
    return truth * score

@tdf.prob_metric()
def mean_hit(scores_of_events: float, positives: float) -> tuple[float, float]:
    '''Mean score of the rows with the event.'''
    return scores_of_events, positives

mean_hit(loans, "repaid", probs="score", pos_label="yes")
""",
    "numeric_metric": """\
import polars as pl
import tidyfair as tdf
@tdf.statistic
def gap(truth, estimate):
    return truth - estimate

@tdf.numeric_metric()
def mean_gap(gap: float, instances: float) -> tuple[float, float]:
    '''Mean of the truth minus the estimate.'''
    return gap, instances

mean_gap(pl.DataFrame({"rent": [500, 700], "guess": [520, 640]}), "rent", "guess")
""",
    "save_state": LOANS + """\
from pathlib import Path
from tempfile import TemporaryDirectory
counts = tdf.sens.tally(loans, "repaid", "approved")
with TemporaryDirectory() as folder:
    tdf.save_state(counts, Path(folder) / "day.parquet")
    loaded = tdf.load_state(Path(folder) / "day.parquet", like=tdf.sens.tally(loans.head(0), "repaid", "approved"))

tdf.sens.compute(loaded, pos_label="yes")
""",
    "surveys.replicate_weights": """\
import tidyfair as tdf
acs = tdf.surveys.replicate_weights(
    weights="PWGTP", replicates=[f"PWGTP{i}" for i in range(1, 81)], method="successive_difference"
)
acs.scale
""",
    "audits.NAMED_AUDITS": """\
import tidyfair as tdf
list(tdf.audits.NAMED_AUDITS)
""",
    "errors.TidyfairError": LOANS + """\
try:
    tdf.sens(loans, "repaid", "approved")
except tdf.errors.TidyfairError as error:
    print(error)

""",
    "errors.ArgumentError": LOANS + """\
try:
    tdf.sens(loans, "repaid", "approved", pos_label="yes", intervall="auto")
except tdf.errors.ArgumentError as error:
    print(error)

""",
    "errors.ColumnError": LOANS + """\
try:
    tdf.sens(loans, "repayed", "approved", pos_label="yes")
except tdf.errors.ColumnError as error:
    print(error)

""",
    "errors.LabelError": LOANS + """\
try:
    tdf.sens(loans, "repaid", "approved")
except tdf.errors.LabelError as error:
    print(error)

""",
    "errors.WeightError": LOANS + """\
try:
    tdf.sens(loans.with_columns(weight=-1.0), "repaid", "approved", pos_label="yes", case_weights="weight")
except tdf.errors.WeightError as error:
    print(error)

""",
    "errors.AggregateError": LOANS + """\
try:
    worst = tdf.new_groupwise_metric(tdf.sens, "worst", lambda groups: None)
    worst("sex")(loans, "repaid", "approved", pos_label="yes")
except tdf.errors.AggregateError as error:
    print(error)

""",
    "errors.UndefinedError": LOANS + """\
nobody = loans.filter(approved="no")
try:
    tdf.precision(nobody, "repaid", "approved", pos_label="yes", on_undefined="raise")
except tdf.errors.UndefinedError as error:
    print(error)

""",
    "errors.UndefinedWarning": LOANS + """\
import warnings
nobody = loans.filter(approved="no")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    _ = tdf.precision(nobody, "repaid", "approved", pos_label="yes")

print(caught[0].message)
""",
    "errors.UnknownGroupWarning": LOANS + """\
import warnings
import polars as pl
blanks = loans.with_columns(sex=pl.when(pl.int_range(pl.len()) > 9).then(pl.col("sex")))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    _ = tdf.demographic_parity("sex")(blanks, estimate="approved", pos_label="yes")

print(caught[0].message)
""",
}  # fmt: skip
EXAMPLES |= {
    "types.Metric": LOANS + """\
tdf.accuracy(loans, "repaid", "approved", pos_label="yes", interval="auto")
tdf.accuracy.better, tdf.accuracy.range
tdf.accuracy.formula(tp=3, fp=1, fn=1, tn=5)
gaps = tdf.accuracy.difference("race", to="White")
gaps(loans, "repaid", "approved", pos_label="yes")[".estimate"].round(3).item()
""",
    "types.GroupwiseMetric": LOANS + """\
parity = tdf.demographic_parity("sex")
parity
parity(loans, estimate="approved", pos_label="yes", explain=True).select(".estimate", ".group_min", ".group_max")
parity.by_group(loans, estimate="approved", pos_label="yes").select(".group", ".estimate", ".n")
""",
    "types.GroupwiseFactory": LOANS + """\
tdf.demographic_parity
tdf.demographic_parity("sex", "race")
tdf.demographic_parity.ratio("race", to="White")
tdf.demographic_parity.source
""",
    "types.MetricSet": LOANS + """\
both = tdf.metric_set(tdf.accuracy, tdf.demographic_parity("sex"))
both(loans, "repaid", "approved", pos_label="yes").select(".metric", ".by", ".estimate")
""",
    "types.Tally": LOANS + """\
monday = tdf.sens.tally(loans.head(2_000), "repaid", "approved")
tuesday = tdf.sens.tally(loans.tail(3_000), "repaid", "approved")
tdf.sens.compute(monday + tuesday, pos_label="yes")
""",
    "types.Curve": LOANS + """\
tdf.roc_curve(loans, "repaid", probs="score", pos_label="yes", thresholds=[0.4, 0.6])
""",
    "types.Sample": """\
import tidyfair as tdf
import numpy as np
def gap_of_medians(left: tdf.types.Sample, right: tdf.types.Sample) -> float:
    return float(abs(np.median(left.score) - np.median(right.score)))

median_gap = tdf.distributions.new_between_group_metric(gap_of_medians, "median_gap", range=(0, 1))
median_gap("sex")
""",
}  # fmt: skip
_AN_AUDIT = """\
audit = tdf.types.NamedAudit(
    name="ours", title="Our audit", version="1", source="our policy", purpose="an example", is_not=(), tables=(table,)
)
"""
EXAMPLES |= {
    "inference.UnfairError": LOANS + """\
try:
    tdf.assert_fair(tdf.equal_opportunity("race"), loans, "repaid", "approved", pos_label="yes", below=0.02)
except tdf.inference.UnfairError as error:
    print(str(error).splitlines()[0])

""",
    "types.ComparisonTable": LOANS + """\
table = tdf.types.ComparisonTable(
    name="found", heading="Found", needs=("truth", "estimate"), metric=tdf.sens, to="majority", scale="difference",
    columns=(tdf.types.PublishedColumn(column=".disparity", heading="Gap (points)", digits=1, percent=True),),
)
""" + _AN_AUDIT + """\
tdf.audit(audit, loans, "repaid", "approved", pos_label="yes", by="race").published()
""",
    "types.SegmentedTable": LOANS + """\
table = tdf.types.SegmentedTable(
    name="segments", heading="Within folds", needs=("estimate", "within"), metric=tdf.selection_rate,
    columns=(tdf.types.PublishedColumn(column=".ratio", heading="Ratio within folds", digits=2),),
)
""" + _AN_AUDIT + """\
tdf.audit(audit, loans, estimate="approved", pos_label="yes", by="sex", to="male", within="fold").published()
""",
    "types.StandardizedTable": LOANS + """\
table = tdf.types.StandardizedTable(
    name="scores", heading="Scores", needs=("probs",),
    columns=(tdf.types.PublishedColumn(column=".disparity", heading="Standardized difference", digits=2),),
)
""" + _AN_AUDIT + """\
tdf.audit(audit, loans, probs="score", pos_label="yes", by="sex", to="male").published()
""",
    "types.ValuesTable": LOANS + """\
table = tdf.types.ValuesTable(
    name="rates", heading="Rates", needs=("truth", "estimate"), metrics=(tdf.sens, tdf.spec),
    columns=(tdf.types.PublishedColumn(column="sens", heading="Sensitivity (%)", digits=1, percent=True),),
)
""" + _AN_AUDIT + """\
tdf.audit(audit, loans, "repaid", "approved", pos_label="yes", by="sex").published()
""",
}  # fmt: skip
EXAMPLES["audits.read_policy"] = (
    LOANS
    + """\
import tempfile
from pathlib import Path
folder = Path(tempfile.mkdtemp())
_ = (folder / "policy.toml").write_text("features = ['sex']\\nmetrics = ['selection_rate']\\nleast_n = 30\\n")
policy = tdf.audits.read_policy(folder / "policy.toml")
policy(loans, "repaid", "approved", pos_label="yes").select(".requirement", ".by", ".verdict")
"""
)
EXAMPLES["audits.write_evidence"] = (
    EXAMPLES["audits.read_policy"]
    + """\
verdicts = tdf.audits.write_evidence(
    folder / "evidence.json", policy, loans, "repaid", "approved", pos_label="yes"
)
tdf.audits.verify_evidence(folder / "evidence.json")
"""
)
EXAMPLES["audits.verify_evidence"] = EXAMPLES["audits.write_evidence"]
EXAMPLES["statistic"] = EXAMPLES["numeric_metric"]
EXAMPLES["load_state"] = EXAMPLES["save_state"]
