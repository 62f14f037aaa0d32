"""The same work done in other ways, each in a process of its own: `python ways.py WAY WORK FILE`.

The file holds the columns as codes. A way makes of them what it likes best, before the clock runs; it works once and
prints what it found as JSON; then, for each line that it is given, it works again and prints its seconds. It runs in
any interpreter that has its library and numpy, with or without tidyfair.
"""

from __future__ import annotations

import importlib
import itertools
import json
import logging
import sys
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from measuring import clock, forget_peak, peak_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Array: TypeAlias = np.ndarray[Any, Any]
    Columns: TypeAlias = dict[str, Array]

LEVELS = {"fold": 10, "sex": 2, "race": 5, "age_band": 4, "repaid": 2, "approved": 2}
FEATURES = ("sex", "race", "age_band")
KEYS = {"one": ["race"], "audit": ["fold", *FEATURES]}
"""What each work groups by: the race alone; or ten folds and three features, alone and together."""
RACES, GROUPS = 5, 50
REPLICATES = 20
BATCH = 1_000


@dataclass(frozen=True)
class Way:
    """What is timed, and the numbers of what it gives; these are worked out after the clock has stopped."""

    call: Callable[[], Any]
    numbers: Callable[[Any], Any]


def library(name: str) -> Any:
    """A library that has no types, and may not be there."""
    return importlib.import_module(name)


# Counts, and what they say


def rates(cells: Array) -> list[Array]:
    """Accuracy, sensitivity, specificity, precision and selection rate of cells (…, truth, estimate)."""
    (tn, fp), (fn, tp) = (np.moveaxis(side, -1, 0) for side in np.moveaxis(cells.astype(float), -2, 0))
    every = tn + fp + fn + tp
    with np.errstate(invalid="ignore"):
        return [(tp + tn) / every, tp / (tp + fn), tn / (tn + fp), tp / (tp + fp), (tp + fp) / every]


def findings(families: Sequence[Array]) -> Array:
    """The rates of everybody, then the disparities of each family of cells (outer, group, truth, estimate)."""
    found = rates(families[0].sum(axis=1))
    for cells in families:
        _, sens, spec, _, selected = (np.nanmax(rate, axis=1) - np.nanmin(rate, axis=1) for rate in rates(cells))
        found += [selected, sens, np.maximum(sens, spec)]
    return np.concatenate(found)


def of_counts(cells: Array, work: str) -> Array:
    if work == "one":
        return findings([cells[None]])
    folds = LEVELS["fold"]
    pairs = [tuple(axis for axis in (1, 2, 3) if axis != kept) for kept in (1, 2, 3)]
    return findings([*(cells.sum(axis=others) for others in pairs), cells.reshape(folds, -1, 2, 2)])


def dense(counted: Sequence[tuple[int, ...]], work: str) -> Array:
    """Cells of an array, from rows of keys and a count."""
    cells = np.zeros([LEVELS[key] for key in [*KEYS[work], "repaid", "approved"]])
    for *keys, count in counted:
        cells[tuple(keys)] = count
    return cells


def people(columns: Columns, keys: Sequence[str]) -> Any:
    """The codes as a frame of polars, Enums but for the fold."""
    pl = library("polars")
    levels = {key: [str(code) for code in range(LEVELS[key])] for key in keys if key != "fold"}
    enums = {
        key: pl.Series(names, dtype=pl.Enum(names)).gather(pl.Series(columns[key])) for key, names in levels.items()
    }
    return pl.DataFrame({key: enums.get(key, columns[key]) for key in keys})


# Ways by hand: the count is timed, and the arithmetic after it costs them nothing


def by_polars(columns: Columns, work: str) -> Way:
    pl = library("polars")
    keys = [*KEYS[work], "repaid", "approved"]
    data = people(columns, keys)
    query = data.lazy().group_by(keys).len()
    return Way(
        lambda: query.collect(engine="streaming"),
        lambda counted: of_counts(dense(counted.with_columns(pl.col(keys).to_physical()).rows(), work), work),
    )


def by_numpy(columns: Columns, work: str) -> Way:
    keys = [*KEYS[work], "repaid", "approved"]
    shape = [LEVELS[key] for key in keys]
    kind = np.min_scalar_type(int(np.prod(shape)) - 1)
    codes = [columns[key].astype(np.uint8) for key in keys]

    def call() -> Array:
        cell = codes[0].astype(kind)
        for code, levels in zip(codes[1:], shape[1:], strict=True):
            cell *= kind.type(levels)
            cell += code
        return np.bincount(cell, minlength=int(np.prod(shape)))

    return Way(call, lambda counted: of_counts(counted.reshape(shape), work))


def by_duckdb(columns: Columns, work: str) -> Way:
    keys = [*KEYS[work], "repaid", "approved"]
    database = library("duckdb").connect()
    names = ", ".join(keys)
    database.register("given", {key: columns[key].astype(np.uint8) for key in keys})
    database.execute("create table people as select * from given")
    database.unregister("given")
    query = f"select {names}, count(*) from people group by {names}"  # noqa: S608 - names of our own
    return Way(lambda: database.execute(query).fetchall(), lambda counted: of_counts(dense(counted, work), work))


# Libraries


def by_tidyfair(columns: Columns, work: str) -> Way:
    """The library itself, where its memory is asked for."""
    counting = library("counting")
    keys = [*KEYS[work], "repaid", "approved"]
    data = people(columns, keys)
    metrics, asked = (counting.ONE, {}) if work == "one" else (counting.AUDIT, {"group_by": "fold"})
    return Way(
        lambda: metrics(data, "repaid", "approved", pos_label="1", **asked),
        lambda result: result[".estimate"].to_numpy(),
    )


def by_sklearn(columns: Columns, work: str) -> Way:
    metrics = library("sklearn.metrics")
    group, groups = (columns["group"], GROUPS) if work == "areas" else (columns["race"], RACES)
    truth = columns["repaid"] == 1

    def places() -> list[Array]:
        return np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=groups))[:-1])

    if work == "areas":
        score = columns["score"]
        return Way(lambda: [metrics.roc_auc_score(truth[at], score[at]) for at in places()], np.array)
    estimate = columns["approved"] == 1
    return Way(
        lambda: [metrics.confusion_matrix(truth[at], estimate[at]) for at in places()],
        lambda found: of_counts(np.array(found), work),
    )


def by_fairlearn(columns: Columns, work: str) -> Way:
    fairlearn, sklearn = library("fairlearn.metrics"), library("sklearn.metrics")
    truth, estimate = columns["repaid"] == 1, columns["approved"] == 1
    sens, spec = fairlearn.true_positive_rate, fairlearn.true_negative_rate
    compared = {"selected": fairlearn.selection_rate, "sens": sens, "spec": spec}
    every = {
        "accuracy": sklearn.accuracy_score, "sens": sens, "spec": spec, "precision": sklearn.precision_score,
        "selected": fairlearn.selection_rate,
    }  # fmt: skip

    def frame(metrics: dict[str, Any], by: Any, **asked: Any) -> Any:
        return fairlearn.MetricFrame(metrics=metrics, y_true=truth, y_pred=estimate, sensitive_features=by, **asked)

    if work == "replicates":
        rates_apart = {"selected": fairlearn.selection_rate, "sens": sens, "fall_out": fairlearn.false_positive_rate}

        def call() -> Any:
            made = frame(rates_apart, columns["group"], n_boot=REPLICATES, ci_quantiles=[0.025, 0.975], random_state=0)
            return made.difference(), made.difference_ci()

        return Way(call, lambda result: result[0].to_numpy())

    given = {feature: columns[feature] for feature in FEATURES}
    features = [columns["race"]] if work == "one" else [*given.values(), given]
    asked = {} if work == "one" else {"control_features": columns["fold"]}

    def compare() -> list[tuple[Any, Any]]:
        # each family needs a frame of its own, and what is of everybody is wanted once
        frames = [frame(compared if place else every, by, **asked) for place, by in enumerate(features)]
        return [(each.overall, each.difference()) for each in frames]

    def numbers(result: list[tuple[Any, Any]]) -> Array:
        found = [np.atleast_1d(result[0][0][name]) for name in every]
        for _, apart in result:
            one, other = (np.atleast_1d(apart[name]) for name in ("sens", "spec"))
            found += [np.atleast_1d(apart["selected"]), one, np.maximum(one, other)]
        return np.concatenate(found).astype(float)

    return Way(compare, numbers)


def by_torchmetrics(columns: Columns, work: str) -> Way:
    torch, classification = library("torch"), library("torchmetrics.classification")
    whole = [torch.from_numpy(columns[name].astype(np.int64)) for name in ("approved", "repaid", "race")]
    size = BATCH if work == "batches" else len(whole[0])
    batches = list(zip(*(tensor.split(size) for tensor in whole), strict=True))

    def call() -> Any:
        metric = classification.BinaryFairness(RACES, task="all", validate_args=False)
        for batch in batches:
            metric.update(*batch)
        return metric.compute()

    return Way(call, lambda found: [value.item() for _, value in sorted(found.items())])


def by_aif360(columns: Columns, work: str) -> Way:
    del work
    pandas, datasets = library("pandas"), library("aif360.datasets")
    metric = library("aif360.metrics").ClassificationMetric
    frame = pandas.DataFrame({name: columns[name].astype(float) for name in ("repaid", "race")})
    truth = datasets.BinaryLabelDataset(df=frame, label_names=["repaid"], protected_attribute_names=["race"])
    estimate = truth.copy()
    estimate.labels = columns["approved"].astype(float)[:, None]
    others = [{"race": code} for code in range(1, RACES)]

    def call() -> list[float]:
        made = metric(truth, estimate, unprivileged_groups=others, privileged_groups=[{"race": 0}])
        return [
            made.accuracy(), made.true_positive_rate(), made.true_negative_rate(), made.positive_predictive_value(),
            made.selection_rate(), made.statistical_parity_difference(), made.equal_opportunity_difference(),
            made.average_abs_odds_difference(),
        ]  # fmt: skip

    return Way(call, np.array)


def by_aequitas(columns: Columns, work: str) -> Way:
    del work
    pandas, group = library("pandas"), library("aequitas.group").Group
    names = np.array([str(code) for code in range(RACES)], dtype=object)
    frame = pandas.DataFrame(
        {"score": columns["approved"], "label_value": columns["repaid"], "race": names[columns["race"]]}
    )
    wanted = ["accuracy", "tpr", "tnr", "precision", "pprev"]
    return Way(
        lambda: group().get_crosstabs(frame, attr_cols=["race"])[0],
        lambda table: table.sort_values("attribute_value")[wanted].to_numpy(float).T.ravel(),
    )


WAYS: dict[str, Callable[[Columns, str], Way]] = {
    "tidyfair": by_tidyfair, "polars": by_polars, "numpy": by_numpy, "duckdb": by_duckdb, "scikit-learn": by_sklearn,
    "fairlearn": by_fairlearn, "torchmetrics": by_torchmetrics, "aif360": by_aif360, "aequitas": by_aequitas,
}  # fmt: skip


def main(name: str, work: str, file: str) -> None:
    # the libraries' own advice about versions and extras is not of these figures
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with np.load(file) as kept:
        columns = {column: kept[column] for column in kept.files}
    try:
        way = WAYS[name](columns, work)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    forget_peak()
    before = peak_memory()
    found = way.call()
    grown = peak_memory() - before
    numbers = [float(number) for number in itertools.chain(way.numbers(found))]
    print(json.dumps({"version": version(name), "numbers": numbers, "grown": grown}), flush=True)
    seconds = clock(way.call)
    for _ in sys.stdin:
        print(seconds(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
