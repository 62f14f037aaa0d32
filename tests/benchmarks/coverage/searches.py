"""Many groups and many models at once: certificates, partial pooling, the worst group, and frontiers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl
import scipy.special
from samples import RISKS, Setting, counted, with_runs
from tables import Table

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable

    Array: TypeAlias = np.ndarray[Any, Any]

_SHAPE = (2, 3)
"""The numbers of values of two features whose conjunctions are certified."""
_EVEN, _UNEVEN = (40,) * 6, (10, 20, 40, 30, 50, 90)


def _conjunctions() -> list[Array]:
    """The cells of each conjunction of the two features, as masks."""
    cells = list(itertools.product(*map(range, _SHAPE)))
    chosen = [pair for pair in itertools.product((None, 0, 1), (None, 0, 1, 2)) if pair != (None, None)]
    return [
        np.array([all(want in {None, has} for want, has in zip(pair, cell, strict=True)) for cell in cells])
        for pair in chosen
    ]


def _in_cells(sizes: tuple[int, ...], runs: int) -> pl.DataFrame:
    """The rows of all cells, in each run."""
    cell = np.tile(np.repeat(np.arange(len(sizes)), sizes), runs)
    frame = pl.DataFrame({"cell": cell, "first": cell // _SHAPE[1], "second": cell % _SHAPE[1]})
    return with_runs(frame, runs)


def certificates(runs: int, random: np.random.Generator) -> Table:
    """How often some conjunction of features is worse than everybody else by more than is certified."""
    columns = ("epsilon is exceeded, %", "mean epsilon", "true excess")
    table = Table("Certificates of subgroups", "metric | rates or risks of the cells | rows of the cells", columns)
    fewer = max(1, runs // 4)
    features = ["first", "second"]
    of_rates: list[tuple[float, ...]] = [(0.2,) * 6, (0.02,) * 6, (0.2,) * 5 + (0.4,), (0.1, 0.1, 0.3, 0.2, 0.4, 0.2)]
    certificate = tdf.inference.certify_subgroups(tdf.fall_out, features, min_n=10)
    for rates, sizes in itertools.product(of_rates, (_EVEN, _UNEVEN)):
        rows = np.array(sizes)
        excess = [
            float(np.average(rates, weights=rows * mask) - np.average(rates, weights=rows * ~mask))
            for mask in _conjunctions()
        ]
        data = _in_cells(sizes, fewer)
        called = random.random(len(data)) < np.array(rates)[data["cell"].to_numpy()]
        data = data.with_columns(truth=pl.lit(0), estimate=called.astype(int))
        epsilon = certificate(data, "truth", "estimate", group_by="run", labels=[0, 1])[".epsilon"].to_numpy()
        table.add(
            f"fall_out | {counted(rates)} | {counted(sizes)}", float((epsilon < max(excess)).mean()),
            float(epsilon.mean()), max(excess),
        )  # fmt: skip
    certificate = tdf.inference.certify_subgroups(tdf.calibration.in_the_large, features, min_n=10)
    for risks, sizes in itertools.product((RISKS[0], RISKS[1], RISKS[3]), (_EVEN, _UNEVEN)):
        data = _in_cells(sizes, fewer)
        data = pl.concat([data, risks.drawn(len(data), random)], how="horizontal")
        score = data["score"].to_numpy()
        risk = scipy.special.expit(scipy.special.logit(score) - risks.shift)
        result = certificate(data, "truth", probs="score", group_by="run", labels=[False, True], pos_label=True)
        epsilon = result.sort("run")[".epsilon"].to_numpy()
        excess = _largest_distance((risk - score).reshape(fewer, -1), sizes)
        table.add(
            f"calibration_in_the_large | {risks.name} | {counted(sizes)}", float((epsilon < excess).mean()),
            float(epsilon.mean()), float(excess.mean()),
        )  # fmt: skip
    return table.close()


def _largest_distance(excess: Array, sizes: tuple[int, ...]) -> Array:
    """How far the mean risk of any conjunction, or of all rows, is from its mean score in each run."""
    cell = np.repeat(np.arange(len(sizes)), sizes)
    distances = [np.abs(excess[:, mask[cell]].mean(axis=1)) for mask in _conjunctions()]
    return np.max([*distances, np.abs(excess.mean(axis=1))], axis=0)


_FEATURES = (2, 3, 4)
"""The numbers of values of three features, whose 24 crossed groups are shrunk."""
_MAIN_EFFECTS = 0.5


def pooling(runs: int, random: np.random.Generator) -> Table:
    """The errors of shrunken rates of crossed groups, and how often their limits hold; a quarter of the runs."""
    names = ("beta_binomial", "additive")
    columns = (
        "raw error",
        *(f"{name} error" for name in names),
        *(f"{name} covers, %" for name in names),
        "interaction share",
    )
    note = (
        "Errors are roots of mean squared errors of the rates of 24 groups; interactions are given by their standard "
        "deviation, and the interaction share is the mean of its estimates by the additive model."
    )
    table = Table("Partial pooling", "rows of a group | interactions", columns, note)
    fewer = max(1, runs // 4)
    spread_out = np.random.default_rng(0).permutation(np.geomspace(1, 200, 24).round().astype(int))
    sizes: dict[str, Array] = {str(rows): np.full(24, rows) for rows in (5, 15, 200)} | {"1 to 200": spread_out}
    metric = tdf.demographic_parity("a", "b", "c")
    for (name, rows), interactions in itertools.product(sizes.items(), (0.0, 0.15, 0.5)):
        rates = _crossed_rates(fewer, interactions, random)
        hits = random.binomial(rows, rates)
        data = _crossed(hits, rows)
        squares = [float(((hits / rows - rates) ** 2).mean())]
        covered: list[float] = []
        share = np.nan
        for model in names:
            shown = tdf.inference.shrunken_rates(
                metric, data, estimate="hired", pooling=model, group_by="run", times=1_000,
            ).sort("run", ".group")  # fmt: skip
            estimate, low, high = (
                shown[column].to_numpy().reshape(rates.shape) for column in (".estimate", ".lower", ".upper")
            )
            squares.append(float(((estimate - rates) ** 2).mean()))
            covered.append(float(((low <= rates) & (rates <= high)).mean()))
            if model == "additive":
                share = float(shown[".interaction_share"].to_numpy().mean())
        table.add(f"{name} | {interactions:g}", *np.sqrt(squares), *covered, share)
    return table.close()


def _crossed_rates(runs: int, interactions: float, random: np.random.Generator) -> Array:
    """Rates of crossed groups, whose logits are sums of main effects and interactions: runs by groups."""
    logit = np.full((runs, *_FEATURES), -0.4)
    for axis, values in enumerate(_FEATURES):
        shape = [runs, 1, 1, 1]
        shape[axis + 1] = values
        logit = logit + _MAIN_EFFECTS * random.standard_normal(shape)
    logit = logit + interactions * random.standard_normal(logit.shape)
    return scipy.special.expit(logit).reshape(runs, -1)


def _crossed(hits: Array, rows: Array) -> pl.DataFrame:
    """The people of all runs, a row for each."""
    runs = len(hits)
    cells = pl.DataFrame(list(itertools.product(*map(range, _FEATURES))), schema=["a", "b", "c"], orient="row")
    both = pl.concat([cells.with_columns(hired=pl.lit(1)), cells.with_columns(hired=pl.lit(0))])
    counts = np.concatenate([hits, rows - hits], axis=1).ravel()
    data = with_runs(pl.concat([both] * runs), runs).with_columns(rows=counts)
    return data.filter(pl.col("rows") > 0).select(pl.exclude("rows").repeat_by("rows").list.explode())


def worst_groups(runs: int, random: np.random.Generator) -> Table:
    """How often the limits of any group are wrong, how sure `worst_groups` is of the group it names, and how right."""
    columns = (
        "limits of all groups cover, %", "certainty of the group named, %", "it is the worst, %",
        "wrong group is worst with 95%, %",
    )  # fmt: skip
    table = Table("Worst groups", "pooling | rates | rows", columns)
    fewer = max(1, runs // 2)
    settings = [
        Setting((0.4,) * 5, (100,) * 5), Setting((0.4,) * 5, (500, 300, 100, 40, 15)), Setting((0.1,) * 20, (50,) * 20),
        Setting((0.5, 0.5, 0.5, 0.4, 0.38), (200,) * 5), Setting((0.7, 0.6, 0.65), (400, 30, 8)),
        Setting((0.6,) * 9 + (0.55,), (6, 8, 10, 12, 15, 15, 20, 30, 60, 400)),
        Setting((0.4, 0.45, 0.5, 0.55, 0.6) * 2, (15,) * 10),
    ]  # fmt: skip
    poolings: tuple[Literal["beta_binomial"] | None, ...] = ("beta_binomial", None)
    for setting in settings:
        data = setting.decisions(setting.hits(fewer, random)).filter(pl.col("rows") > 0)
        data = data.select(pl.exclude("rows").repeat_by("rows").list.explode())
        for pooling in poolings:
            test = tdf.inference.worst_groups(tdf.recall.difference("group"), pooling=pooling)
            result = test(
                data.with_columns(truth=1), "truth", "hired", group_by="run", labels=[0, 1], pos_label=1, times=1_000
            )
            result = result.sort("run", pl.col(".group").cast(pl.Int64))
            groups, rates = len(setting.rates), np.array(setting.rates)
            shape = fewer, groups
            low, high, worst = (result[name].to_numpy().reshape(shape) for name in (".lower", ".upper", ".p_worst"))
            covered = ((low <= rates) & (rates <= high)).all(axis=1)
            not_worst = rates > rates.min()
            named = rates[worst.argmax(axis=1)] == rates.min()
            sure = (worst[:, not_worst] >= 0.95).any(axis=1) if not_worst.any() else np.zeros(fewer, dtype=bool)
            shares = covered, worst.max(axis=1), named, sure
            table.add(f"{pooling} | {setting}", *(float(share.mean()) for share in shares))
    return table.close()


_SEEN_ALIKE = 0.7
"""The share of rows that two models see alike."""


def _of_models(rates: Array, rows: int, random: np.random.Generator) -> pl.DataFrame:
    """Predictions of models with some rates of selection in groups (models by groups), which see most rows alike."""
    models, groups = rates.shape
    group, shared = random.integers(0, groups, rows), random.random(rows)
    seen = np.where(random.random((models, rows)) < _SEEN_ALIKE, shared, random.random((models, rows)))
    selected = seen < rates[:, group]
    columns = {f"m{index}": row for index, row in enumerate(selected)}
    return pl.DataFrame({"group": group, "truth": shared < 0.5, **columns})


def frontiers(runs: int, random: np.random.Generator) -> Table:
    """How often the limits of any of 12 models are wrong; half of the runs."""
    names = ("performance", "change of performance", "disparity", "change of disparity")
    columns = tuple(f"{name} of all covered, %" for name in names)
    table = Table("Limits of many models", "models | rows", columns)
    choice = tdf.compare_models(tdf.accuracy, tdf.demographic_parity("group"), adjust="max_t")
    models = [f"m{index}" for index in range(1, 12)]
    fewer = max(1, runs // 2)
    for rows in (300, 900, 3_000):
        covered = np.zeros((fewer, len(names)), dtype=bool)
        for run in range(fewer):
            rates = random.uniform(0.35, 0.65, (12, 3))
            # half of the models are nearly those of the other half, as in a search
            rates[6:] = rates[:6] + 0.01
            accuracy = (_SEEN_ALIKE * (1 - np.abs(rates - 0.5)) + (1 - _SEEN_ALIKE) * 0.5).mean(axis=1)
            result = choice(_of_models(rates, rows, random), "truth", one="m0", others=models)
            parts = (result[: len(models)], accuracy), (result[len(models) :], np.ptp(rates, axis=1))
            for index, (part, truth) in enumerate(parts):
                limits = part.select(".one_lower", ".one_upper").rows()[:1]
                limits += part.select(".other_lower", ".other_upper").rows()
                changes = part.select(".lower", ".upper").rows()
                covered[run, 2 * index] = _hold(limits, truth)
                covered[run, 2 * index + 1] = _hold(changes, (truth - truth[0])[1:])
        table.add(f"12 | {rows:,}", *covered.mean(axis=0).tolist())
    return table.close()


def _hold(limits: Sequence[tuple[float, float]], truths: np.ndarray) -> bool:
    """Check whether all limits hold."""
    return all(low <= truth <= high for (low, high), truth in zip(limits, truths, strict=True))


def alternatives(runs: int, random: np.random.Generator) -> Table:
    """Forty models as discriminatory as the baseline, and forty of which one is not; an eighth of the runs."""
    columns = ("some looks fairer by 0.03, %", "some is called less discriminatory, %")
    table = Table("Less discriminatory alternatives", "models | rows", columns)
    choice = tdf.compare_models(tdf.demographic_parity("group"), adjust="max_t")
    fewer = max(1, runs // 8)
    models = [f"m{index}" for index in range(1, 40)]
    for name, rows in itertools.product(("all alike", "one has no disparity"), (500, 3_000)):
        rates = np.full((40, 3), 0.4)
        rates[:, 1] = 0.5
        if name != "all alike":
            rates[7] = 0.45
        looks, called = 0, 0
        for _ in range(fewer):
            result = choice(_of_models(rates, rows, random), "truth", one="m0", others=models)
            looks += bool((result[".change"] < -0.03).any())
            called += "better" in set(result[".verdict"])
        table.add(f"{name} | {rows:,}", looks / fewer, called / fewer)
    return table.close()


TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "certificates": certificates, "pooling": pooling, "worst_groups": worst_groups, "frontiers": frontiers,
    "alternatives": alternatives,
}  # fmt: skip
