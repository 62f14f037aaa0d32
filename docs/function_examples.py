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
