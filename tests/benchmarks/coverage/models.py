"""Two models on the same rows, of which few change."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import rivals
from groups import BESIDE, beside
from rivals import Ends
from samples import RISKS, TIMES, grouped, in_parts, true_values, with_runs
from tables import LEVEL, Limits, Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable

_RIGHT = 0.8
"""The share of the rows that are right by one model, among those that do not change."""
_CELLS = pl.DataFrame(
    {"truth": [1, 1, 1, 1, 0, 0, 0, 0], "one": [1, 0, 1, 0, 0, 1, 0, 1], "other": [1, 0, 0, 1, 0, 1, 1, 0]}
)
"""Of each truth: both models right, both wrong, only one right, and only the other."""
_CHANGED = ((100, 2), (100, 5), (100, 20), (1_000, 2), (1_000, 5), (1_000, 20), (1_000, 100))
"""Rows, and how many of them change on average."""


def _shares(changed: float, gained: float) -> list[float]:
    """The shares of the cells; of the rows that change, the other model has this part right."""
    of_truth = [
        (1 - changed) * _RIGHT, (1 - changed) * (1 - _RIGHT), changed * (1 - gained), changed * gained,
    ]  # fmt: skip
    return [share / 2 for share in of_truth * 2]


def _changes(metrics: tdf.types.MetricSet, population: pl.DataFrame, *, scores: bool = False) -> dict[str, float]:
    """The true change of each metric from one model to the other."""
    sides = [
        true_values(metrics, population, "truth", probs=name)
        if scores
        else true_values(metrics, population, "truth", name)
        for name in ("one", "other")
    ]
    return {metric: sides[1][metric] - value for metric, value in sides[0].items()}


def _compared(metrics: tdf.types.MetricSet, data: pl.DataFrame, **options: Any) -> pl.DataFrame:
    compare = tdf.compare_models(metrics)
    return compare(
        data, "truth", one="one", other="other", group_by="run", conf_level=LEVEL, times=TIMES, on_undefined="ignore",
        **options,
    )  # fmt: skip


def _limits(result: pl.DataFrame, metric: str, runs: int) -> Limits:
    known = result.filter((pl.col(".metric") == metric) & pl.col(".lower").is_not_null())
    return Limits(known[".lower"].to_numpy(), known[".upper"].to_numpy(), 1 - len(known) / runs)


def of_labels(runs: int, random: np.random.Generator) -> Table:
    """Changes of labels; the rival of rates is Bonett and Price's interval."""
    columns = (*BESIDE, "p-value rejects, %")
    table = Table("Changes of labels", "metric | rows | that change | better by the other, of these", columns)
    plain = (tdf.accuracy, tdf.sens, tdf.f_meas, tdf.bal_accuracy, tdf.mcc)
    gap = tdf.new_groupwise_metric(tdf.accuracy, "gap of accuracy", tdf.difference(to=0, signed=True))("group")
    metrics = tdf.metric_set(*plain, gap)
    for (rows, changed), gained in itertools.product(_CHANGED, (0.5, 0.8)):
        shares = _shares(changed / rows, gained)
        counts = [random.multinomial(rows // 2, shares, runs) for _ in range(2)]
        cells = with_runs(pl.concat([_CELLS] * runs), runs)
        data = grouped([cells.with_columns(rows=counts_of_group.ravel()) for counts_of_group in counts])
        truths = _changes(metrics, grouped([_CELLS.with_columns(share=pl.Series(shares))] * 2))
        result = _compared(metrics, data, frequency_weights="rows")
        gains, losses = ((counts[0] + counts[1])[:, [cell, cell + 4]] for cell in (3, 2))
        events = (counts[0] + counts[1])[:, :4].sum(axis=1)
        of_rivals = {
            "accuracy": rivals.bonett_price(gains.sum(axis=1), losses.sum(axis=1), np.array(rows)),
            "sens": rivals.bonett_price(gains[:, 0], losses[:, 0], events),
        }
        for metric, truth in truths.items():
            p_values = result.filter(pl.col(".metric") == metric)[".p_value"].drop_nulls().to_numpy()
            rejected = float((p_values <= 1 - LEVEL).mean()) if len(p_values) else np.nan
            shown = beside(_limits(result, metric, runs), truth, of_rivals.get(metric))
            table.add(f"{metric} | {rows:,} | {changed} | {gained:g}", *shown, rejected)
    return table.close()


_SHIFT = 0.15
"""How far a score moves that changes."""


def of_scores(runs: int, random: np.random.Generator) -> Table:
    """Changes of scores, some of which move up or down; the rival of Brier scores is Student's. A tenth of the runs."""
    table = Table("Changes of scores", "metric | rows | that change | of which move up", BESIDE)
    metrics, risks = tdf.metric_set(tdf.brier_class, tdf.mn_log_loss, tdf.roc_auc), RISKS[0]
    fewer = max(1, runs // 10)
    for (rows, changed), up in itertools.product(_CHANGED, (0.5, 1.0)):
        population = risks.population()
        moves = {0.0: 1 - changed / rows, _SHIFT: up * changed / rows, -_SHIFT: (1 - up) * changed / rows}
        moved = [
            population.with_columns(one="score", other=_moved(move), share=pl.col("share") * share)
            for move, share in moves.items()
        ]
        truths = _changes(metrics, pl.concat(moved), scores=True)
        results, of_rival = list[pl.DataFrame](), list[Ends]()
        for part in in_parts(fewer, rows):
            data = with_runs(risks.drawn(part * rows, random), part)
            move = random.choice(list(moves), part * rows, p=list(moves.values()))
            data = data.with_columns(move=move).with_columns(one="score", other=_moved(pl.col("move")))
            results.append(_compared(metrics, data))
            change = (pl.col("other") - pl.col("truth")) ** 2 - (pl.col("one") - pl.col("truth")) ** 2
            of_rival.append(rivals.student(data.select(change).to_numpy().reshape(part, rows)))
        result = pl.concat(results)
        student = tuple(np.concatenate(ends) for ends in zip(*of_rival, strict=True))
        for metric, truth in truths.items():
            rival = (student[0], student[1]) if metric == "brier_class" else None
            shown = beside(_limits(result, metric, fewer), truth, rival)
            table.add(f"{metric} | {rows:,} | {changed} | {up:g}", *shown)
    return table.close()


def _moved(move: float | pl.Expr) -> pl.Expr:
    return (pl.col("score") + move).clip(0.001, 0.999)


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {"models": of_labels, "models_of_scores": of_scores}
