"""Metrics in the words of the data: of which rows a rate is a share, by the columns and labels that were audited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidyfair.intervals import share_of
from tidyfair.metrics import in_prose, title_of

if TYPE_CHECKING:
    from tidyfair.audits import AuditResults
    from tidyfair.calling import Metric

_SELECTED, _EVENTS, _RIGHT = frozenset({"tp", "fp"}), frozenset({"tp", "fn"}), frozenset({"tp", "tn"})
_ROWS = frozenset({"tp", "fp", "fn", "tn"})
"""The rows with a truth and a prediction, as cells of their table."""
_IN_THE_UNIT_OF_THE_TRUTH = frozenset({"mae", "mean_prediction", "mean_truth", "residual_bias", "rmse"})


@dataclass(frozen=True)
class DataWords:
    """The columns and labels that metrics of an audit are about."""

    truth: str
    estimate: str
    """The column of predictions, or of the scores that decisions are made of."""
    scores: str
    labels: tuple[Any, ...]
    event: Any
    """The label that is read against the others; None without one."""
    cut: str = ""
    """The rule by which scores select the event, such as ` ≥ 0.5`."""

    @classmethod
    def of(cls, audit: AuditResults) -> DataWords:
        """The words for an audit."""
        tally = audit.tally
        labels = audit.metrics.labels(tally, audit.options)
        event = None if labels is None or labels.event is None else labels.values[labels.event]
        scores, cut = "" if tally.scores is None else tally.scores.columns[0].name, ""
        estimate = scores if tally.estimate is None else tally.estimate.name
        if tally.cut is not None:
            is_one = tally.cut.option == "threshold" and not tally.cut.groups and not tally.cut.several
            cut = f" \N{GREATER-THAN OR EQUAL TO} {tally.cut.values[0]:g}" if is_one else " high enough to be selected"
        truth = "" if tally.truth is None else tally.truth.name
        return cls(truth, estimate, scores, () if labels is None else labels.values, event, cut)

    def meaning(self, metric: Metric, level: Any = None) -> str:
        """A metric in the words of the data, such as `of rows with repaid = "yes", the share with approved = "yes"`.

        Other metrics are `the` with their name, and what its brackets say.
        `level` is the label that it is about, if it has a value for each.
        """
        # `.level` is the text of a label
        event = self.event if level is None else next((one for one in self.labels if str(one) == level), level)
        share = share_of(metric.definition)
        if metric.name == "roc_auc" and event is not None:
            return (
                f"of pairs of a row with {_equals(self.truth, event)} and one without, "
                f"the share in which {self.scores} is higher for the first"
            )
        if share is None or event is None:
            title, name = title_of(metric.name), in_prose(metric.name)
            _, bracket, rest = title.partition(" (")
            return f"the {name}{bracket}{rest}"
        among, holds = share.among & _ROWS, share.holds & _ROWS
        conditions = self._conditions(event)
        rows = "" if among == _ROWS else next((text for cells, text in conditions if cells == among), None)
        held = next((text for cells, text in conditions if cells & among == holds and cells != among), None)
        if rows is None or held is None:
            return f"the {in_prose(metric.name)}"
        return f"of rows with {rows}, the share with {held}" if rows else f"the share with {held}"

    def unit_of(self, metric: Metric) -> str:
        """The unit of the values of a metric of numbers, as the end of a sentence; empty for others."""
        return f", in the unit of {self.truth}" if metric.name in _IN_THE_UNIT_OF_THE_TRUTH else ""

    def _conditions(self, event: Any) -> list[tuple[frozenset[str], str]]:
        """The rows that have, or do not have, a truth, a prediction, or a prediction that is right."""
        others = [label for label in self.labels if label != event]
        decided = f"{self.estimate}{self.cut}" if self.cut else _equals(self.estimate, event)
        is_two = len(others) == 1
        otherwise = decided.replace(" = ", " other than ") if not is_two else _equals(self.estimate, others[0])
        if self.cut:
            otherwise = decided.replace("\N{GREATER-THAN OR EQUAL TO}", "<").replace(" high enough", " too low")
        truth = _equals(self.truth, event)
        not_truth = _equals(self.truth, others[0]) if is_two else truth.replace(" = ", " other than ")
        return [
            (_SELECTED, decided), (_ROWS - _SELECTED, otherwise), (_EVENTS, truth), (_ROWS - _EVENTS, not_truth),
            (_RIGHT, "a right prediction"), (_ROWS - _RIGHT, "a wrong prediction"),
        ]  # fmt: skip


def _equals(column: str, label: Any) -> str:
    """A column that has a label, such as `repaid = "yes"`."""
    return f'{column} = "{label}"' if isinstance(label, str) else f"{column} = {label}"
