"""An evaluator for MLflow, `evaluators="tidyfair"`; MLflow loads it, and neither MLflow nor polars is read here."""

from __future__ import annotations

from typing import Any


class TidyfairEvaluator:
    """Metrics by group, disparities, gates and a report as the results of an MLflow run."""

    # MLflow calls these two methods by name, and a base class of its own would have to be imported

    @classmethod
    def can_evaluate(cls, *, model_type: str | None, evaluator_config: dict[str, Any] | None, **_: Any) -> bool:  # noqa: ARG003 - MLflow's
        """Take part where the configuration is meant for it, and not in every evaluation by all evaluators."""
        return not _OWN.isdisjoint(evaluator_config or {})

    def evaluate(
        self,
        *,
        model_type: str | None,
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any] | None,
        model: Any = None,
        predictions: str | None = None,
        **_: Any,
    ) -> Any:
        """Log metrics, tables and the report to the run; returns MLflow's `EvaluationResult`."""
        from tidyfair.integrations.mlflow_evaluation import (  # noqa: PLC0415 - reads polars and MLflow
            Configuration,
            evaluation_of,
            log,
            predicted,
        )

        configuration = Configuration.of(evaluator_config or {})
        data = predicted(dataset, model, predictions, configuration)
        evaluation = evaluation_of(data, configuration, numeric=model_type == "regressor")
        return log(evaluation, run_id, configuration)


_OWN = frozenset({"by", "gate", "sensitive_features", "raise_on_fail"})
"""Settings that no evaluator of MLflow has."""
