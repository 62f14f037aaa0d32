"""Files that the command line reads and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import ARGUMENTS, called, written

from tidyfair.cli.main import main
from tidyfair.datasets import lending
from tidyfair.tallies.files import write

pytestmark = pytest.mark.usefixtures("few_draws")


def test_bad_output_paths_and_conditions_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "people.CSV"
    lending(300).rename({"sex": "a:b"}).write_csv(data)
    call = ["audit", str(data), *ARGUMENTS[:-4], "--by", "a:b"]
    assert main([*call, "--fail-if", "demographic_parity(a:b) > 9e-1"]) == 0
    capsys.readouterr()
    odd = {
        ("--output", str(tmp_path / "nowhere" / "x.csv")): "there is no folder",
        ("--html", str(tmp_path / "x.md")): "is written to a file whose name ends in .html",
        ("--fail-if", "demographic_parity(race) >= 1"): "with < or > and a number",
    }
    for arguments, expected in odd.items():
        assert main([*call, *arguments]) == 2
        assert expected in capsys.readouterr().err
    same = tmp_path / "same.csv"
    same.write_bytes(data.read_bytes())
    assert main(["audit", str(same), *call[2:], "--output", str(same)]) == 2
    assert "is the file of the data" in capsys.readouterr().err
    assert same.read_bytes() == data.read_bytes()


@pytest.mark.parametrize(
    ("data", "flag", "place"),
    [
        ("pa[r]t*.parquet", "--output", "part.parquet"),
        ("*/pa?t.parquet", "--output", "keys.parquet/part.parquet"),
        ("**/part.parquet", "--output-groups", "keys.parquet/half=1/part.parquet"),
        ("part.parquet", "--output", "folder/../part.parquet"),
        ("part.parquet", "--output", "link.parquet"),
        ("link.parquet", "--output", "part.parquet"),
        ("part.parquet", "--output-groups", "hard.parquet"),
        ("part.parquet", "--html", "link.html"),
        ("part.parquet", "--markdown", "hard.md"),
        ("keys.parquet", "--output", "keys.parquet/half=1/part.parquet"),
        ("keys.parquet", "--output", "keys.parquet/new.csv"),
        ("keys.parquet", "--output", "hard.parquet"),
    ],
)
def test_outputs_never_overwrite_the_data(
    data: str,
    flag: str,
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    part, inner = Path("part.parquet"), Path("keys.parquet/half=1/part.parquet")
    Path("folder").mkdir()
    inner.parent.mkdir(parents=True)
    for path in (inner, part, inner.parent.with_name("part.parquet")):
        lending(60).write_parquet(path)
    for link in ("link.parquet", "link.html"):
        Path(link).symlink_to(part)
    for link in ("hard.parquet", "hard.md"):
        Path(link).hardlink_to(inner if data == "keys.parquet" else part)
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    code, out, err = called(capsys, "audit", data, *ARGUMENTS[:-4], "--by", "race", flag, place)
    assert (code, out) == (2, "")
    assert "is the file of the data" in err or "is in the folder of the data" in err
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_two_outputs_to_one_file_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("before")
    other.hardlink_to(one)
    file = written(lending(60), tmp_path)
    code, _, err = called(capsys, "audit", file, *ARGUMENTS, "--output", str(one), "--output-groups", str(other))
    assert code == 2
    assert "files of their own" in err
    assert one.read_text() == "before"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "ndjson"])
def test_existing_file_name_is_literal_and_otherwise_a_pattern(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = lending(300)
    literal, other = tmp_path / f"data[1].{suffix}", tmp_path / f"data1.{suffix}"
    for path, rows in ((literal, data.head(100)), (other, data.tail(200)), (tmp_path / f".data9.{suffix}", data)):
        {"csv": rows.write_csv, "parquet": rows.write_parquet, "ndjson": rows.write_ndjson}[suffix](path)
    output = tmp_path / "result.parquet"

    def read(name: str) -> int:
        assert called(capsys, "audit", str(tmp_path / name), *ARGUMENTS, "--output", str(output))[0] == 0
        return pl.read_parquet(output).filter(pl.col(".metric") == "accuracy")[".n"].item()

    assert read(literal.name) == 100
    literal.unlink()
    # as a pattern it names the other
    assert read(literal.name) == 200
    literal.write_bytes(other.read_bytes())
    assert read(f"data*.{suffix}") == 400
    code, _, err = called(capsys, "audit", str(tmp_path / f"nothing*.{suffix}"), *ARGUMENTS)
    assert code == 2
    assert "No file matches the pattern" in err


def test_hive_folders_keep_their_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "rows[1].parquet"
    for path, half in enumerate((lending(300).head(150), lending(300).tail(150))):
        (folder / f"half={path}").mkdir(parents=True)
        half.write_parquet(folder / f"half={path}" / "part.parquet")
    code, out, _ = called(capsys, "audit", str(folder), *ARGUMENTS[:-4], "--by", "half")
    assert code == 0
    assert "half" in out


def test_temporary_file_does_not_follow_links(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("before")
    (tmp_path / ".part-of-result.csv").symlink_to(precious)
    write(pl.DataFrame({"a": [1]}), tmp_path / "result.csv")
    assert precious.read_text() == "before"
    assert (tmp_path / "result.csv").read_text() == "a\n1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".part-of-result.csv", "precious", "result.csv"]


FORMULAS = [
    "=1+1",
    "+a",
    "-a",
    "@a",
    "\ta",
    "\ra",
    "\na",
    " =1",
    "\ufeff=1",
    "\uff1da",
    "\uff0ba",
    "\uff0da",
    "\uff20a",
    "-1+2",
]
PLAIN = ["a=1", "a", "", "-1", "+1.5", "-.5e-3", "1", "'a", "\u22121"]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.List(pl.String)])
def test_csv_texts_are_escaped_from_formulas(dtype: Any, tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    texts = pl.Series("=texts", [*FORMULAS, *PLAIN])
    column = texts.reshape((-1, 1)).cast(pl.List(pl.String)) if dtype == pl.List else texts.cast(dtype)
    write(pl.DataFrame([column, pl.Series("number", [-1.5] * len(texts)), pl.Series("'=texts", texts)]), path)
    result = pl.read_csv(path, infer_schema=False, empty_string_is_null=False)
    assert result.columns == ["'=texts", "number", "'=texts [2]"]
    for name in (result.columns[0], result.columns[2]):
        assert result[name].to_list() == [*(f"'{text}" for text in FORMULAS), *PLAIN]
    assert set(result["number"]) == {"-1.5"}


def test_csv_lists_are_escaped_from_formulas(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    write(pl.DataFrame({"left": [["a", "=1+1"], [], ["-1"]]}), path)
    assert path.read_text() == 'left\na;\'=1+1\n""\n-1\n'


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_parquet_and_json_keep_texts(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"result{suffix}"
    table = pl.DataFrame({"=a": FORMULAS})
    write(table, path)
    result = pl.read_parquet(path) if suffix == ".parquet" else pl.read_json(path)
    assert result.equals(table)
