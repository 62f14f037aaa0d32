"""Example data: a simulation of any size and seed, without a download."""

from __future__ import annotations

import numpy as np
import polars as pl

from tidyfair.specs import whole

__all__ = ["lending"]

_MOST_ROWS = 10**8
_RACES = {"White": 0.62, "Black": 0.17, "Hispanic": 0.14, "Asian": 0.055, "Native": 0.015}
_AGE_BANDS = {"18-29": 0.22, "30-44": 0.33, "45-59": 0.27, "60+": 0.18}


def lending(rows: int = 5_000, seed: int = 1) -> pl.DataFrame:
    """Simulated decisions on loans, with a score that is slightly unfair to some groups.

    A latent ability to repay drives both the truth and the score. It is lower on average for the young; in addition the
    score is biased against Black applicants and noisier for women. One race is rare. The data contain no real persons.

    Args:
        rows: The number of applications.
        seed: Random seed; the same seed and number of rows give the same data.

    Returns:
        A frame with `repaid` and `approved` (Enum `no`, `yes`; approved where the score is at least 0.5), `score` (0 to
        1, the predicted probability of repayment), `sex`, `race` and `age_band` (Enums), `fold` (1 to 10) and `weight`
        (survey weight, mean about 1).

    Raises:
        ArgumentError: If `rows` is negative, or more than a hundred million.

    >>> lending(1_000)["race"].value_counts(sort=True)["race"].to_list()
    ['White', 'Black', 'Hispanic', 'Asian', 'Native']
    """
    rows, seed = whole("rows", rows, 0, _MOST_ROWS), whole("seed", seed, 0)
    generator = np.random.default_rng(seed)

    def uniform() -> np.ndarray:
        # the only source of randomness: generators promise to keep this stream
        return generator.random(rows)

    def logistic() -> np.ndarray:
        share = np.clip(uniform(), 1e-12, 1 - 1e-12)
        return np.log(share / (1 - share))

    def drawn(shares: dict[str, float]) -> np.ndarray:
        return np.searchsorted(np.cumsum(list(shares.values()))[:-1], uniform(), side="right").astype(np.uint8)

    sex, race, age = drawn({"female": 0.5, "male": 0.5}), drawn(_RACES), drawn(_AGE_BANDS)
    ability = logistic() + np.array([-0.5, 0.0, 0.2, 0.1])[age] + 0.3
    repaid = ability + logistic() > 0
    bias = np.array([0.1, -0.6, -0.2, 0.1, -0.3])[race]
    noise = np.where(sex == 0, 0.9, 0.6) * logistic()
    score = 1 / (1 + np.exp(-(0.9 * ability + bias + noise)))
    answers = ["no", "yes"]

    def labelled(codes: np.ndarray, levels: list[str]) -> pl.Series:
        return pl.Series(levels, dtype=pl.Enum(levels)).gather(pl.Series(codes))

    return pl.DataFrame(
        {
            "repaid": labelled(repaid.astype(np.uint8), answers),
            "approved": labelled((score >= 0.5).astype(np.uint8), answers),
            "score": score,
            "sex": labelled(sex, ["female", "male"]),
            "race": labelled(race, list(_RACES)),
            "age_band": labelled(age, list(_AGE_BANDS)),
            "fold": (np.floor(uniform() * 10) + 1).astype(np.int8),
            "weight": -np.log(1 - 0.98 * uniform()) * 0.5 + 0.5,
        }
    )


def __dir__() -> list[str]:
    return __all__
