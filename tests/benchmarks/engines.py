"""What the same call costs where the rows are elsewhere: `python tests/benchmarks/engines.py`.

Frames of pandas and pyarrow are compared with the one of polars; tables and files of DuckDB, where it is installed,
with SQL by hand, once both have found the same numbers. Options: `--rows`, `--runs`.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from counting import AUDIT, ONE
from measuring import Row, compared, run_alone
from ways import KEYS, LEVELS, dense, library, of_counts

from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WORKS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "one": ("5 rates, 3 disparities of one feature", lambda data: ONE(data, "repaid", "approved", pos_label="yes")),
    "audit": (
        "3 features and their intersection, 10 folds",
        lambda data: AUDIT(data, "repaid", "approved", pos_label="yes", group_by="fold"),
    ),
}


def of_duckdb(data: pl.DataFrame, rows: int, runs: int) -> Iterator[Row]:
    """A table with Enums, and a parquet file."""
    keys = [*LEVELS]
    enums = {key: dtype.categories.to_list() for key, dtype in data.schema.items() if isinstance(dtype, pl.Enum)}
    names: dict[str, list[Any]] = {"fold": [*range(1, LEVELS["fold"] + 1)], **enums}
    with tempfile.TemporaryDirectory() as folder, library("duckdb").connect() as database:
        file = Path(folder) / "people.parquet"
        data.select(keys).write_parquet(file)
        database.register("given", data.select(keys).to_arrow())
        database.execute("create table people as select * from given")
        for place, relation in (
            ("a table of DuckDB", database.table("people")),
            ("a parquet file in DuckDB", database.read_parquet(str(file))),
        ):  # fmt: skip
            for work, (what, ours) in _WORKS.items():
                asked = [*KEYS[work], "repaid", "approved"]

                def by_hand(relation: Any = relation, text: str = ", ".join(asked)) -> list[tuple[Any, ...]]:
                    return relation.aggregate(f"{text}, count(*)", text).fetchall()

                counted = [
                    (*(names[key].index(value) for key, value in zip(asked, row[:-1], strict=True)), row[-1])
                    for row in by_hand()
                ]
                np.testing.assert_allclose(
                    ours(relation)[".estimate"].to_numpy(), of_counts(dense(counted, work), work), rtol=1e-9, atol=1e-9
                )
                yield compared(
                    f"{what}, {place}", "SQL by hand", lambda ours=ours, relation=relation: ours(relation), by_hand,
                    rows=rows, runs=runs,
                )  # fmt: skip


def measure(rows: int, runs: int) -> Iterator[Row]:
    data = lending(rows)
    what, ours = _WORKS["audit"]
    others = {"pandas": data.to_pandas, "pyarrow": data.to_arrow}
    for kind, convert in others.items():
        frame: Any = convert()
        yield compared(
            f"{what}, {kind}", "the same call on polars", lambda frame=frame: ours(frame), lambda: ours(data),
            rows=rows, runs=runs,
        )  # fmt: skip
    if importlib.util.find_spec("duckdb"):
        yield from of_duckdb(data, rows, runs)


if __name__ == "__main__":
    run_alone(__doc__, measure, rows=10_000_000, runs=5)
