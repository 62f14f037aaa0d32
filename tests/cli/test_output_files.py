"""Files that the command line reads and writes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command_line import ARGUMENTS, called, written
from conftest import read_csv

import tidyfair as tf
from tidyfair.cli.main import main
from tidyfair.datasets import lending
from tidyfair.errors import ArgumentError
from tidyfair.tallies.files import scan, write

pytestmark = pytest.mark.usefixtures("few_draws")


def test_bad_output_paths_and_conditions_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "people.CSV"
    lending(300).rename({"sex": "a:b"}).write_csv(data)
    call = ["audit", str(data), *ARGUMENTS[:-4], "--by", "a:b"]
    assert main([*call, "--fail-if", "demographic_parity(a:b) > 9e-1"]) == 0
    capsys.readouterr()
    odd = {
        ("--output", str(tmp_path / "nowhere" / "x.csv")): "does not exist",
        ("--html", str(tmp_path / "x.md")): "its name must end in .html",
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
    assert "different files" in err
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


def _partitioned(folder: Path, suffix: str) -> pl.DataFrame:
    """Rows in folders such as `half=a%20b/part=2`, and as they are."""
    data = lending(300).with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    parts: list[pl.DataFrame] = []
    for half in ("a b", "c"):
        for number in (1, 2):
            rows = data[len(parts) :: 4]
            place = folder / f"half={half.replace(' ', '%20')}" / f"part={number}"
            place.mkdir(parents=True)
            file = place / f"rows.{suffix}"
            {"csv": rows.write_csv, "parquet": rows.write_parquet, "ndjson": rows.write_ndjson}[suffix](file)
            parts.append(rows.with_columns(half=pl.lit(half), part=pl.lit(number, pl.Int64)))
    (folder / "_SUCCESS").touch()
    (folder / "half=c" / "part=1" / ".hidden.csv").write_text("no,rows")
    return pl.concat(parts)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "ndjson"])
@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("", pl.lit(value=True)),
        ("/**/*.{suffix}", pl.lit(value=True)),
        ("/half=c", pl.col("half") == "c"),
        ("/half=*/part=2/rows.{suffix}", pl.col("part") == 2),
        ("/half=c/part=1/rows.{suffix}", (pl.col("half") == "c") & (pl.col("part") == 1)),
    ],
)
def test_folders_of_partitions_are_columns(suffix: str, pattern: str, wanted: pl.Expr, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    expected = _partitioned(folder, suffix).filter(wanted).select("row", "half", "part").sort("row")
    rows = scan(Path(f"{folder}{pattern.format(suffix=suffix)}")).select("row", "half", "part").collect()
    assert rows.sort("row").equals(expected)


def test_partition_columns_are_features_and_outer_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _partitioned(tmp_path / "data", "parquet")
    output = tmp_path / "result.parquet"
    call = ["audit", str(tmp_path / "data"), *ARGUMENTS[:-4], "--by", "half", "--group-by", "part"]
    assert called(capsys, *call, "--output", str(output))[0] == 0
    result = pl.read_parquet(output).filter(pl.col(".metric") == "demographic_parity")
    expected = tf.demographic_parity("half", min_n=30)(data, estimate="approved", pos_label="yes", group_by="part")
    assert result.select("part", ".estimate").sort("part").equals(expected.select("part", ".estimate").sort("part"))
    # a result is no file of the data, also where a pattern names these
    code, _, err = called(capsys, *call, "--output", str(tmp_path / "data" / "result.parquet"))
    assert code == 2
    assert "is in the folder of the data" in err


def test_partitions_have_the_types_of_their_values(tmp_path: Path) -> None:
    for day, code, size in (
        ("2024-01-31", "007", "1.5"),
        ("2024-02-01", "8", "2"),
        ("__HIVE_DEFAULT_PARTITION__", "9", "3"),
    ):
        place = tmp_path / "data" / f"day={day}" / f"code={code}" / f"size={size}"
        place.mkdir(parents=True)
        pl.DataFrame({"x": [1]}).write_csv(place / "rows.csv")
    rows = scan(tmp_path / "data").collect()
    assert rows.schema == {"x": pl.Int64, "day": pl.Date, "code": pl.String, "size": pl.Float64}
    assert rows["day"].null_count() == 1


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["12345678901234567890", "12345678901234567891"], ["12345678901234567890", "12345678901234567891"]),
        (["12345678901234567890"], ["12345678901234567890"]),
        (["1234567890123456789", "-5"], [1234567890123456789, -5]),
        (["1234567890123456", "1.5"], ["1234567890123456", "1.5"]),
        (["0.1234567890123456", "2"], [0.1234567890123456, 2.0]),
        (["1", "1.0"], ["1", "1.0"]),
        (["1", "+1"], ["1", "+1"]),
        (["100000", "1e5"], ["100000", "1e5"]),
        (["nan", "1.5"], ["nan", "1.5"]),
        (["inf", "1.5"], ["inf", "1.5"]),
        (["1e400", "1.5"], ["1e400", "1.5"]),
        (["2024-01-31", "2024-1-31"], ["2024-01-31", "2024-1-31"]),
        (["2", "__HIVE_DEFAULT_PARTITION__"], [2, None]),
    ],
)
def test_different_partitions_stay_different(names: list[str], expected: list[object], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / f"id={name}").mkdir()
        pl.DataFrame({"folder": [name]}).write_parquet(tmp_path / f"id={name}" / "rows.parquet")
    rows = scan(tmp_path).collect()
    assert dict(zip(rows["folder"], rows["id"], strict=True)) == dict(zip(names, expected, strict=True))


@pytest.mark.parametrize(
    ("folder", "values", "contradicting"),
    [
        ("x=1", [1, 1], "nothing"),
        ("x=01", [1, 1], "nothing"),
        ("x=1.0", [1, 1], "nothing"),
        ("x=true", [True, True], "nothing"),
        ("x=2024-01-31", [date(2024, 1, 31)], "nothing"),
        ("x=__HIVE_DEFAULT_PARTITION__", [None], "nothing"),
        ("x=12345678901234567", [12345678901234567], "nothing"),
        ("x=nan", ["nan"], "nothing"),
        ("x=12345678901234568", [12345678901234567], "'12345678901234567'"),
        ("x=9", [1, 1], "'1'"),
        ("x=1", [1, 2], "'2'"),
        ("x=zz", ["White"], "'White'"),
        ("x=zz", [None, "zz"], "null"),
        ("x=__HIVE_DEFAULT_PARTITION__", ["a"], "'a'"),
    ],
)
def test_folders_that_contradict_a_column_of_their_files_are_refused(
    folder: str, values: list[object], contradicting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / folder / "rows.parquet"
    file.parent.mkdir()
    data = pl.DataFrame({"x": values, "y": ["a"] * len(values)})
    data.write_parquet(file)
    if contradicting == "nothing":
        assert scan(tmp_path).collect().equals(data)
        return
    code, out, err = called(capsys, "audit", str(tmp_path), "--estimate", "y", "--by", "x")
    assert (code, out) == (2, "")
    assert f"the folder {folder!r} contradicts the column 'x' of the file in it, {str(file)!r}" in err
    assert f"which holds {contradicting}" in err


@pytest.mark.parametrize(
    ("flag", "name", "expected"),
    [
        ("--output", "g.txt", "'g.txt' is not a valid output file: its name must end in .csv, .parquet or .json"),
        ("--output-groups", "g.txt", "its name must end in .csv, .parquet or .json"),
        ("--output-groups", "g", "its name must end in .csv, .parquet or .json"),
        ("--html", "g.txt", "its name must end in .html"),
        ("--markdown", "g.txt", "its name must end in .md"),
        ("--json", "g.csv", "its name must end in .json"),
        *((flag, "nowhere/g.csv", "the folder 'nowhere' does not exist") for flag in ("--output", "--output-groups")),
        ("--json", "folder.json", "is a folder: name a file in it, such as 'folder.json/audit.json'"),
        ("--output", "folder.csv", "is a folder: name a file in it, such as 'folder.csv/audit.csv'"),
        ("--output", "locked/g.csv", "the folder 'locked' cannot be written to"),
    ],
)
def test_messages_on_output_files_name_their_option(
    flag: str, name: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for folder in ("folder.json", "folder.csv", "locked"):
        Path(folder).mkdir()
    monkeypatch.setattr("os.access", lambda folder, _: str(folder) != "locked")
    code, out, err = called(capsys, "audit", flag, name)
    assert (code, out) == (2, "")
    assert err.startswith(f"tidyfair: `{flag}`: ")
    assert expected in err


def test_list_of_named_audits_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "audit", "--as", "list", "--json", "-")
    names = [row["name"] for row in json.loads(out)["audits"]]
    assert (code, names[:2]) == (0, ["nyc_ll144", "eeoc_uniform_guidelines"])
    file = tmp_path / "audits.csv"
    assert called(capsys, "audit", "--as", "list", "--output", str(file))[:2] == (0, "")
    assert pl.read_csv(file)["name"].to_list() == names
    assert "| nyc\\_ll144 |" in called(capsys, "audit", "--as", "list", "--markdown", "-")[1]
    code, out, err = called(capsys, "audit", "--as", "list", "--html", str(tmp_path / "audits.html"))
    assert (code, out) == (2, "")
    assert "the list of named audits cannot be a page; write it with `--output`, `--json` or `--markdown`" in err
    code, out, err = called(capsys, "datasets", "--output", str(file))
    assert (code, out) == (2, "")
    assert "`--output` needs the name of a data set: `tidyfair datasets lending --output FILE`" in err


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,x\n1,x,3\n", "line 3 of {file} has 3 fields, and its header has 2"),
        (b'a,b\n1,"x\ny"\n1,x,3\n', "line 4 of {file} has 3 fields, and its header has 2"),
        (b"a,name,b\n1,Jo,x\n1,Smith, John,x\n", "line 3 of {file} has 4 fields, and its header has 3: put text that"),
        (
            b"a,b,name\n1,x,Jo\n1,x\n",
            "line 3 of {file} has 2 fields, and its header has 3: leave a missing value empty",
        ),
        (b'a,b,name\n"1,x,Jo"\n', "line 2 of {file} has 1 field, and its header has 3"),
        (b'a,name,b\n1,"Jo\n1,x"\n', "line 3 of {file} has 2 fields, and its header has 3"),
        (b'a,name,b\n1,say "a, b",x\n', "line 2 of {file} has 4 fields, and its header has 3"),
        (b"a;b\n1;x\n", "{file} has one column, 'a;b': if ';' separates its fields, write `--separator ';'`"),
        (b"a\tb\n1\tx\n", "if a tab separates its fields, write `--separator tab`"),
        (b"a,b\n" + b"1,x\n" * 20_000 + b"one,x\n", "line 20002 of {file}: column 'a' holds numbers, and here 'one'"),
        (b"", "{file} is empty"),
        (b"\n\n", "{file} is empty"),
        (b"a,b\n", "{file} has a header and no rows"),
        (b"a,b\n\xff,x\n", "line 2 of {file} is not UTF-8: save the file in that encoding"),
        ("a,b\n1,x\n".encode("utf-16"), "{file} is encoded as UTF-16: save it as UTF-8"),
        (b'a,b\n1,"x\n', "line 2 of {file} opens a quotation mark that is never closed"),
        (b"a,a\n1,x\n", "{file} has two columns called 'a': rename one of them"),
        (b"a,b,,\n1,x,,\n", "{file} has two columns without a name: name them, or remove separators from the ends"),
        (b'a,b\n1,"x"y\n', "line 2 of {file} has text after the quotation mark that closes a field: write two marks"),
        (b"a,b\r1,x\r2,y\r", "line 1 of {file} ends in a carriage return alone: save the file with line feeds"),
        ("a,b\n1,x\n".encode("utf-16-le"), "{file} is encoded as UTF-16: save it as UTF-8"),
        (gzip.compress(b"a,b\n1,x\n", mtime=0), "{file} is compressed: let its name end in .csv.gz"),
        (b"sep=;\na;b\n1;x\n", "{file} starts with a line for Excel, which names the separator: remove that line"),
        (
            b'a,b\n1,"' + b"x" * 200_000 + b'"\n1,x,3\n',
            "line 3 of {file} has 3 fields, and its header has 2",
        ),
    ],
)
def test_faults_of_csv_files_are_told_with_their_line(
    content: bytes, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(content)
    code, out, err = called(capsys, "audit", str(file), "--estimate", "b", "--pos-label", "x", "--by", "a")
    assert (code, out) == (2, "")
    assert expected.format(file=repr(str(file))) in err
    assert not re.search("schema|infer|polars|ragged", err)


TEXTS = ["a", "", " ", "x y", 'q"t', '"', '""', "a,b", "a;b", "a$b", "l\nm", "\u00e9", "$1"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "$"])
@pytest.mark.parametrize("compressed", [False, True])
def test_lines_are_refused_whose_number_of_fields_differs_from_the_header(
    separator: str,
    compressed: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
) -> None:
    chance = random.Random(ord(separator))  # noqa: S311 - texts of a test
    file = tmp_path / ("data.csv.gz" if compressed else "data.csv")
    outcomes: list[bool] = []
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL) * 40:
        content = io.StringIO()
        writer = csv.writer(content, delimiter=separator, lineterminator=chance.choice(["\n", "\r\n"]), quoting=quoting)
        rows = [chance.choices(TEXTS, k=3 if chance.random() < 0.9 else chance.randint(1, 5)) for _ in range(5)]
        writer.writerows([["x", "y", "z"], *rows])
        text = content.getvalue().encode()
        file.write_bytes(gzip.compress(text) if compressed else text)
        has_other_fields = any(len(row) != 3 for row in rows)
        outcomes.append(has_other_fields)
        if has_other_fields:
            with pytest.raises(ArgumentError, match="and its header has 3"):
                scan(file, separator)
        else:
            assert scan(file, separator).select("z").collect().height == len(rows)
    assert 10 < sum(outcomes) < 70


def test_columns_of_ndjson_hold_fractions_that_come_late(tmp_path: Path) -> None:
    file = tmp_path / "data.ndjson"
    file.write_text('{"a": 1}\n' * 500 + '{"a": 1.5}\n')
    assert scan(file).collect()["a"].sum() == 501.5


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("NA", "'a' is text because of 'NA'. If that means missing, leave it empty.\n"),
        ("yes,1\nno", "Write the labels of both in the same way."),
    ],
)
def test_advice_on_kinds_of_labels_is_about_the_file(
    label: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "data.csv"
    file.write_text("a,b\n1,1\n0,0\n" + f"{label},1\n")
    code, out, err = called(capsys, "audit", str(file), "--truth", "a", "--estimate", "b", "--by", "b")
    assert (code, out) == (2, "")
    assert expected in err
    assert "pl." not in err


def test_advice_on_labels_that_differ_by_blanks_is_about_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "data.csv"
    file.write_text("a,b\nyes,yes \nno,no\n")
    code, out, err = called(capsys, "audit", str(file), "--truth", "a", "--estimate", "b", "--by", "b")
    assert (code, out) == (2, "")
    assert "'yes', 'yes ' ('a' holds" in err
    assert "write it in one way in the file" in err
    assert "list all of them: `--label no --label yes --label 'yes '`" in err


def test_long_fields_of_csv_files_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "data.csv"
    limit = csv.field_size_limit()
    pl.DataFrame({"note": "x, y" * 50_000, "a": ["f", "m"] * 30, "b": [1, 0, 0, 1] * 15}).write_csv(file)
    code, out, _ = called(capsys, "audit", str(file), "--estimate", "b", "--by", "a", "--interval", "none")
    assert code == 0
    assert "60 rows" in out
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(("separator", "written"), [(";", ";"), ("tab", "\t"), ("|", "|")])
def test_separators_of_csv_files(
    separator: str, written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = lending(300)
    rows.write_csv(tmp_path / "comma.csv")
    rows.write_csv(tmp_path / "other.csv", separator=written)
    rows.write_csv(tmp_path / "tabs.tsv", separator="\t")
    texts = []
    for file, more in (("comma.csv", []), ("other.csv", ["--separator", separator]), ("tabs.tsv", [])):
        code, out, _ = called(capsys, "audit", str(tmp_path / file), *ARGUMENTS[:-2], *more)
        assert code == 0
        texts.append(out.partition("\n")[2])
    assert texts[0] == texts[1] == texts[2]
    code, _, err = called(capsys, "audit", str(tmp_path / "comma.csv"), *ARGUMENTS, "--separator", "::")
    assert code == 2
    assert "`--separator`: one character, or tab, separates fields, and not '::'" in err


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a.csv", "b.parquet"], "Files of different types cannot be read together: '.csv', '.parquet'"),
        (["year=1/a.csv", "b.csv"], "All files need the same partition columns"),
        (["notes.txt"], "has no readable files"),
    ],
)
def test_folders_that_are_no_table_are_refused(
    files: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in files:
        file = tmp_path / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x\n1\n")
    code, _, err = called(capsys, "audit", str(tmp_path / "data"), "--by", "x")
    assert code == 2
    assert expected in err


@pytest.mark.parametrize(
    ("command", "flag", "place"),
    [
        ("audit", "--json", "link.json"),
        ("audit", "--as", "link.md"),
        ("audit", "--as", "link.json"),
        ("compare", "--output", "folder/../part.parquet"),
        ("compare", "--markdown", "link.md"),
        ("compare", "--json", "link.json"),
        ("report", "--html", "link.html"),
        ("summary", "--markdown", "part.parquet"),
    ],
)
def test_documents_of_every_command_never_overwrite_the_data(
    command: str,
    flag: str,
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    part = Path("part.parquet")
    Path("folder").mkdir()
    lending(60).write_parquet(part)
    for link in ("link.json", "link.md", "link.html"):
        Path(link).symlink_to(part)
    if command == "summary":
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(part))
        command = "audit"
    before = part.read_bytes()
    call = [command, "part.parq*", "--truth", "repaid", "--by", "race", "--pos-label", "yes"]
    if command == "compare":
        call += ["--one", "approved", "--other", "repaid_again"]
    else:
        call += ["--estimate", "approved"]
    if flag == "--as":
        call += ["--as", "nyc_ll144"]
        flag = "--markdown" if place.endswith(".md") else "--json"
    code, out, err = called(capsys, *call, flag, place)
    assert (code, out) == (2, "")
    assert "is the file of the data" in err
    assert part.read_bytes() == before


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
    result = read_csv(path, infer_schema=False)
    assert result.columns == ["'=texts", "number", "'=texts [2]"]
    for name in (result.columns[0], result.columns[2]):
        assert result[name].to_list() == [*(f"'{text}" for text in FORMULAS), *PLAIN]
    assert set(result["number"]) == {"-1.5"}


def test_csv_lists_are_escaped_from_formulas(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    write(pl.DataFrame({"left": [["a", "=1+1"], [], ["-1"]]}), path)
    assert path.read_text() == 'left\na;\'=1+1\n""\n-1\n'


def test_csv_lists_of_several_fields_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    left_out = [[{"group": "=a", "metric": "sens", "n": 6}, {"group": "b", "metric": None, "n": 7}], []]
    write(pl.DataFrame({".left_out": left_out}), path)
    assert path.read_text() == '.left_out\n\'=a sens 6;b 7\n""\n'


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_parquet_and_json_keep_texts(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"result{suffix}"
    table = pl.DataFrame({"=a": FORMULAS})
    write(table, path)
    result = pl.read_parquet(path) if suffix == ".parquet" else pl.read_json(path)
    assert result.equals(table)
