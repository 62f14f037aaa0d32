"""Tables in SQLite and PostgreSQL, opened by Ibis; tests that need what is not installed are skipped."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import ibis
import polars as pl
import pytest

_NAMES: dict[type[pl.DataType], str] = {pl.Boolean: "BOOLEAN", pl.Date: "DATE", pl.Time: "TIME"}
_USERS = ("postgres", "nobody")


def sqlite(frame: pl.DataFrame) -> Any:
    """A table in the memory of SQLite."""
    pytest.importorskip("regex", reason="Ibis on SQLite needs ibis-framework[sqlite]")
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    atexit.register(connection.close)
    _fill(connection, "people", frame, "?")
    return ibis.sqlite.from_connection(connection).table("people")


def postgres(frame: pl.DataFrame) -> Any:
    """A table in a schema of its own on a PostgreSQL server of the tests."""
    pytest.importorskip("psycopg", reason="Ibis on PostgreSQL needs ibis-framework[postgres]")
    backend = _backend()
    schema = f"s{next(_numbers)}"
    with backend.con.cursor() as cursor:
        cursor.execute(f"create schema {schema}")
        _fill(cursor, f"{schema}.people", frame, "%s")
    backend.con.commit()
    return backend.table("people", database=schema)


@functools.cache
def _backend() -> Any:
    """One connection for all tests."""
    backend = ibis.postgres.connect(**_server())
    atexit.register(backend.disconnect)
    return backend


def _fill(connection: Any, table: str, frame: pl.DataFrame, mark: str) -> None:
    """Create the table, and insert the rows as text where the database has no such type in Python."""
    columns = [f"{_quoted(name)} {_type_of(dtype)}" for name, dtype in frame.schema.items()]
    connection.execute(f"create table {table} ({', '.join(columns)})")
    marks = ", ".join([mark] * frame.width)
    rows = list(zip(*map(_values, frame), strict=True))
    connection.executemany(f"insert into {table} values ({marks})", rows)  # noqa: S608 - our own


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _type_of(dtype: pl.DataType) -> str:
    """The name of a type in SQL."""
    if isinstance(dtype, pl.Datetime):
        return "TIMESTAMPTZ" if dtype.time_zone else "TIMESTAMP"
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if dtype.is_integer():
        return "BIGINT"
    return "DOUBLE PRECISION" if dtype.is_float() else _NAMES.get(type(dtype), "TEXT")


def _values(column: pl.Series) -> list[Any]:
    """The values of a column, in a form that every database takes."""
    dtype = column.dtype
    if isinstance(dtype, pl.Datetime):
        offset = "+00:00" if dtype.time_zone else ""
        at = column.dt.convert_time_zone("UTC") if dtype.time_zone else column
        return at.dt.to_string(f"%Y-%m-%d %H:%M:%S%.f{offset}").to_list()
    if (dtype.is_numeric() and not dtype.is_decimal()) or dtype == pl.Boolean:
        return column.to_list()
    return column.cast(pl.String).to_list()


_numbers = iter(range(10**6))


@functools.cache
def _server() -> dict[str, Any]:
    """A server on the loopback address, without a password, that ends with the tests."""
    programs = shutil.which("initdb"), shutil.which("pg_ctl")
    if not all(programs):
        pytest.skip("PostgreSQL is not installed")
    # a server refuses to be run by root
    user = next((name for name in _USERS if _exists(name)), None) if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="postgres"))
    if user is not None:
        shutil.chown(home, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    initdb, pg_ctl = map(str, programs)
    run = functools.partial(subprocess.run, check=True, cwd="/", user=user, stdout=subprocess.DEVNULL, timeout=60)
    run([initdb, "-D", home / "data", "-A", "trust", "-U", "tests", "-E", "UTF8", "--no-sync"])
    options = f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories={home} -c fsync=off -c timezone=UTC"
    run([pg_ctl, "-D", home / "data", "-l", home / "log", "-o", options, "-w", "start"])
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    atexit.register(run, [pg_ctl, "-D", home / "data", "-m", "immediate", "stop"])
    return {"host": "127.0.0.1", "port": port, "user": "tests", "database": "postgres"}


def _exists(user: str) -> bool:
    return subprocess.run(["id", user], check=False, capture_output=True).returncode == 0  # noqa: S603, S607 - a name of ours
