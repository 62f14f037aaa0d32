"""Arrays in place of the columns of a frame, in calls and in accumulators, and logits."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import reference_data
from polars.testing import assert_frame_equal

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FRAME = reference_data("a400_weighted")
PARITY = tf.demographic_parity_ratio("sex")


class Tensor:
    """What a tensor on the CPU looks like from here: no sequence, no buffer, only `__array__`."""

    def __init__(self, values: pl.Series) -> None:
        self._values = values.to_numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:  # noqa: FBT001 - numpy's
        return self._values.astype(dtype or self._values.dtype, copy=bool(copy))


def series(values: pl.Series) -> pl.Series:
    return values.alias("a name of its own")


class Exchanged:
    """A tensor that is handed on by DLPack only."""

    def __init__(self, values: pl.Series) -> None:
        self._values = values.to_numpy(writable=True)

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


KINDS: dict[str, Callable[[pl.Series], object]] = {
    "list": pl.Series.to_list,
    "tuple": tuple,
    "numpy": pl.Series.to_numpy,
    "polars": series,
    "pandas": pl.Series.to_pandas,
    "tensor": Tensor,
}
CLASS = tf.metric_set(tf.accuracy, tf.sens, tf.equalized_odds("sex"), tf.demographic_parity("sex", "race"))
PROB = tf.metric_set(tf.roc_auc, tf.brier_class, tf.auc_parity("race"))
BOTH = tf.metric_set(tf.accuracy, tf.roc_auc, tf.equal_opportunity_ratio("race"))
NUMERIC = tf.metric_set(tf.rmse, tf.rsq, tf.mae.difference("race"))
CALLS: dict[str, tuple[Any, dict[str, str], dict[str, Any]]] = {
    "one metric": (tf.accuracy, {"truth": "y_true", "estimate": "y_pred"}, {}),
    "one comparison": (tf.equal_opportunity_ratio("sex"), {"truth": "y_true", "estimate": "y_pred"}, {}),
    "labels": (CLASS, {"truth": "y_true", "estimate": "y_pred"}, {}),
    "labels, weighted": (CLASS, {"truth": "y_true", "estimate": "y_pred", "case_weights": "weight"}, {}),
    "several labels": (CLASS, {"truth": "y_multi", "estimate": "pred_multi"}, {"estimator": "macro"}),
    "words": (tf.accuracy, {"truth": "race", "estimate": "race"}, {}),
    "scores": (PROB, {"truth": "y_true", "probs": "score"}, {}),
    "scores, weighted": (PROB, {"truth": "y_true", "probs": "score", "case_weights": "weight"}, {}),
    "a threshold": (BOTH, {"truth": "y_true", "probs": "score"}, {"threshold": 0.4}),
    "thresholds": (BOTH, {"truth": "y_true", "probs": "score"}, {"threshold": [0.3, 0.5, 0.7]}),
    "thresholds of groups": (
        BOTH, {"truth": "y_true", "probs": "score"},
        {"threshold": {"race": {"alpha": 0.4, "beta": 0.5, "gamma": 0.6, "rare": 0.3}}},
    ),
    "the best": (BOTH, {"truth": "y_true", "probs": "score"}, {"top_k": 100}),
    "numbers": (NUMERIC, {"truth": "y_reg", "estimate": "pred_reg"}, {}),
    "explained": (CLASS, {"truth": "y_true", "estimate": "y_pred"}, {"explain": True, "pos_label": 0}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_arrays_equal_columns_of_a_frame(name: str, kind: str) -> None:
    metric, columns, options = CALLS[name]
    arrays: dict[str, Any] = {role: KINDS[kind](FRAME[column]) for role, column in columns.items()}
    by = {feature: KINDS[kind](FRAME[feature]) for feature in ("sex", "race")}
    result = metric.arrays(**arrays, by=by, **options, on_undefined="ignore")
    asked: dict[str, Any] = {**columns, **options}
    assert_frame_equal(result, metric(FRAME, **asked, on_undefined="ignore"))


@pytest.mark.parametrize("kind", KINDS)
def test_group_by_takes_arrays(kind: str) -> None:
    arrays: list[Any] = [KINDS[kind](FRAME[column]) for column in ("y_true", "y_pred")]
    bands = {"age_band": KINDS[kind](FRAME["age_band"])}
    sexes = {"sex": KINDS[kind](FRAME["sex"]), "race": KINDS[kind](FRAME["race"])}
    result = CLASS.arrays(*arrays, by=sexes, group_by=bands, on_undefined="ignore")
    expected = CLASS(FRAME, "y_true", "y_pred", group_by="age_band", on_undefined="ignore")
    assert_frame_equal(result, expected)
    two = tf.accuracy.arrays(*arrays, group_by=bands | sexes)
    assert_frame_equal(two, tf.accuracy(FRAME, "y_true", "y_pred", group_by=["age_band", "sex", "race"]))


def test_kinds_of_arrays_may_be_mixed() -> None:
    result = BOTH.arrays(
        FRAME["y_true"].to_list(), probs=FRAME["score"].to_numpy(), by={"race": FRAME["race"]},
        case_weights=Tensor(FRAME["weight"]), threshold=0.5,
    )  # fmt: skip
    assert_frame_equal(result, BOTH(FRAME, "y_true", probs="score", case_weights="weight", threshold=0.5))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.uint64, np.float32, np.float64])
def test_numbers_may_have_any_width(dtype: Any) -> None:
    arrays = [FRAME[column].to_numpy().astype(dtype) for column in ("y_true", "y_pred")]
    result = tf.sens.arrays(*arrays)
    assert result[".estimate"].item() == tf.sens(FRAME, "y_true", "y_pred")[".estimate"].item()
    assert tf.sens.arrays(*(item[::-1] for item in arrays)).equals(result)  # a view with steps of its own


@pytest.mark.parametrize("kind", ["list", "polars", "numpy", "pandas"])
@pytest.mark.parametrize("ignored", [-1, 0, 1, 7])
def test_ignore_index_equals_filtered_rows(ignored: int, kind: str) -> None:
    marked = FRAME.with_row_index("row").with_columns(
        y_true=pl.when(pl.col("row") % 7 == 3).then(-1).otherwise("y_true")
    )
    marked = marked if ignored == -1 else FRAME
    truth, estimate, weights = (KINDS[kind](marked[name]) for name in ("y_true", "y_pred", "weight"))
    by = {name: KINDS[kind](FRAME[name]) for name in ("sex", "race")}
    result = CLASS.arrays(
        truth, estimate, case_weights=weights, by=by, ignore_index=ignored, pos_label=1, labels=[0, 1],
        on_undefined="ignore", explain=True,
    )  # fmt: skip
    expected = CLASS(
        marked.filter(pl.col("y_true") != ignored), "y_true", "y_pred", case_weights="weight", pos_label=1,
        labels=[0, 1], on_undefined="ignore", explain=True,
    )  # fmt: skip
    assert_frame_equal(result, expected)


@pytest.mark.parametrize("na_rm", [True, False])
def test_ignore_index_keeps_missing_truths(*, na_rm: bool) -> None:
    truth, estimate = [1, None, 0, -1, 1, 0], [1, 1, 0, 0, 0, 0]
    result = tf.accuracy.arrays(truth, estimate, ignore_index=-1, na_rm=na_rm, explain=True)
    rows = pl.DataFrame({"truth": truth, "estimate": estimate}).filter(
        pl.col("truth").is_null() | (pl.col("truth") >= 0)
    )
    assert_frame_equal(result, tf.accuracy(rows, "truth", "estimate", na_rm=na_rm, explain=True))
    assert result[".estimate"].to_list() == [0.75 if na_rm else None]


def test_ignore_index_may_be_text_or_float() -> None:
    words = tf.accuracy.arrays(["a", "pad", "b", "a"], ["a", "a", "b", "b"], ignore_index="pad", pos_label="a")
    assert words[".estimate"].item() == 2 / 3
    numbers = tf.rmse.arrays([1.0, -100.0, 3.0], [1.0, 2.0, 4.0], ignore_index=-100)
    assert numbers[".estimate"].item() == pytest.approx(math.sqrt(1 / 2))


def test_ignore_index_without_truth_raises() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="no truth was given"):
        PARITY.arrays(estimate=[1, 0, 1, 1], by={"sex": ["f", "f", "m", "m"]}, ignore_index=0)


def test_ignoring_all_rows_gives_null() -> None:
    result = PARITY.arrays([0, 0], [1, 0], by={"sex": ["f", "m"]}, ignore_index=0, explain=True)
    assert result.select(".estimate", ".group_min", ".n").row(0) == (None, None, 0)


def test_feature_may_be_named_truth() -> None:
    # truth, estimate and scores go by their roles, so that features may have any plain name
    by = {"truth": ["f", "f", "m", "m"]}
    result = tf.demographic_parity_ratio("truth").arrays([1, 0, 1, 0], [1, 0, 1, 1], by=by)
    assert result.select(".by", ".estimate").row(0) == ("truth", 0.5)


def of_parity(estimate: object, sex: object = (0, 1)) -> pl.DataFrame:
    return PARITY.arrays(estimate=estimate, by={"sex": sex})


PAIRS = pl.Series([[1, 0], [0, 1]], dtype=pl.Array(pl.Int64, 2))
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "another length": (lambda: of_parity([1, 0, 1]), "`sex` has 2 values, but `array of estimate` has 3"),
    "no dimension": (lambda: of_parity(np.array(1)), "one plain value per row, but has 0 dimensions"),
    "lists": (lambda: of_parity([[1, 0], [0, 1]]), "an array of one plain value per row"),
    "two dimensions": (lambda: of_parity(np.eye(2)), "an array of one plain value per row"),
    "a tensor of two dimensions": (lambda: of_parity(Tensor(PAIRS)), "an array of one plain value per row"),
    "objects as groups": (lambda: of_parity([1, 0], np.array([object(), object()])), (
        "an array of one plain value per row"
    )),
    "a number": (lambda: of_parity(1), "`array of estimate` must be an array of one plain value"),
    "a mapping": (lambda: of_parity({"a": 1}), "must be an array of one plain value"),
    "an object": (lambda: of_parity(object()), "cannot be read as an array of plain values"),
    "a set": (lambda: of_parity({0, 1}), "must be an array of one plain value"),
    "an expression": (lambda: tf.roc_auc.arrays([0, 1], probs=tf.calibration.sigmoid("logit")), (
        "cannot be read as an array of plain values"
    )),
    "scores of all labels": (lambda: tf.roc_auc.arrays([0, 1, 2], probs=np.eye(3)), (
        "an array of one plain value per row"
    )),
    "nothing": (PARITY.arrays, "No arrays were given"),
    "no features": (lambda: PARITY.arrays(estimate=[0, 1]), "is missing; add `by="),
    "another feature": (lambda: PARITY.arrays(estimate=[0, 1], by={"gender": [0, 1]}), "the array of 'sex' is missing"),
    "no estimate": (lambda: PARITY.arrays([0, 1], by={"sex": [0, 1]}), "needs the column of predicted labels"),
    "no truth": (lambda: tf.accuracy.arrays(estimate=[0, 1]), "needs the column of true labels: `truth=`"),
    "no scores": (lambda: tf.roc_auc.arrays([0, 1]), "needs the column of scores: `probs=`"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_non_arrays_raise(name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(tf.errors.ColumnError, match=message):
        call()


def test_arrays_in_place_of_a_frame_raise() -> None:
    arrays: Any = [0, 1, 1], [0, 1, 0]
    with pytest.raises(tf.errors.ArgumentError, match=r"`data` is a list, not a frame; pass arrays to `\.arrays"):
        tf.accuracy(*arrays)
    factory: Any = tf.demographic_parity_ratio
    with pytest.raises(tf.errors.TidyfairError):
        factory(*arrays)
    with pytest.raises(tf.errors.TidyfairError):
        factory(*map(np.array, arrays))
    with pytest.raises(AttributeError):  # it has no features to name yet
        factory.arrays(*arrays)
    with pytest.raises(tf.errors.ArgumentError, match="Did you mean 'threshold'"):
        tf.accuracy.arrays(*arrays, thresold=0.5)
    with pytest.raises(tf.errors.ColumnError, match="the data are grouped by 'sex'"):
        PARITY.arrays(estimate=[0, 1], by={"sex": [0, 1]}, group_by={"sex": [0, 1]})


def test_labels_of_mixed_types_raise() -> None:
    with pytest.raises(tf.errors.ColumnError, match="holds values of several types: int, str"):
        tf.accuracy.arrays([0, 1, "x"], [0, 1, 1])
    with pytest.raises(tf.errors.LabelError, match="different kinds of labels"):
        tf.accuracy.arrays(["0", "1", "x"], [0, 1, 1])


def test_arrays_of_pandas_pyarrow_and_polars() -> None:
    truth, guess = ["a", None, "b", "a"], ["a", "b", "a", "a"]
    kinds: list[Any] = [
        list, pa.array, pd.array, pd.Categorical, pd.Index, pl.Series, lambda values: pa.chunked_array([values]),
        lambda values: pd.Series(values, dtype=object),
    ]  # fmt: skip
    for kind in kinds:
        result = tf.accuracy.arrays(kind(truth), kind(guess), pos_label="a")
        assert result[".estimate"].item() == pytest.approx(2 / 3)
    flags = pd.Series([True, None, False, True], dtype="boolean")
    assert tf.accuracy.arrays(flags, [True, True, True, True])[".estimate"].item() == pytest.approx(2 / 3)


def test_multiclass_scores_are_given_by_label() -> None:
    truth, scores = [0, 1, 2, 0], np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    by_label = {label: scores[:, label] for label in range(3)}
    frame = pl.DataFrame({"y": truth, **{f"p{label}": item for label, item in by_label.items()}})
    result = tf.mn_log_loss.arrays(truth, probs=by_label)
    assert_frame_equal(result, tf.mn_log_loss(frame, "y", probs={label: f"p{label}" for label in range(3)}))
    with pytest.raises(tf.errors.ColumnError, match=r"as `probs=\{label: array\}`, but has 2 dimensions"):
        tf.mn_log_loss.arrays(truth, probs=scores)


def test_same_name_with_different_arrays_raises() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="give 'sex' different arrays"):
        PARITY.arrays(estimate=[0, 1], by={"sex": [0, 1]}, group_by={"sex": [1, 1]})


# Values of arrays that are easily misread


@pytest.mark.parametrize("values", [[np.int64(1), 2.5], [np.int64(1), np.float64(2.5)]])
def test_integers_and_floats_in_one_list_keep_fractions(values: list[Any]) -> None:
    result = tf.mae.arrays(values, [1.0, 2.5])
    assert result[".estimate"].item() == 0


@pytest.mark.parametrize("values", ["01", b"\x00\x01"])
def test_text_in_place_of_an_array_raises(values: object) -> None:
    with pytest.raises(tf.errors.ColumnError):
        of_parity([0, 1], values)


def test_masked_values_are_not_counted() -> None:
    masked = np.ma.array([1, 0, 0], mask=[False, False, True])
    try:
        result = tf.accuracy.arrays(masked, [1, 0, 1])
    except tf.errors.ColumnError:
        return
    assert result[".estimate"].item() == 1


@pytest.mark.parametrize("dtype", ["str", "string", "category", "boolean"])
def test_pandas_columns_with_missing_values(dtype: Any) -> None:
    values = [True, None, False, True] if dtype == "boolean" else ["f", None, "m", "m"]
    estimate = [1, 1, 0, 1]
    result = of_parity(estimate, pd.Series(values, dtype=dtype))
    assert_frame_equal(result, of_parity(estimate, pl.Series(values)))


def test_ignore_index_of_another_type_raises() -> None:
    with pytest.raises(tf.errors.TidyfairError):
        tf.accuracy.arrays(["a", "b"], ["a", "a"], ignore_index=-1)


def test_features_without_names_raise() -> None:
    by: Any = [0, 1]
    with pytest.raises(tf.errors.TidyfairError):
        PARITY.arrays(estimate=[0, 1], by=by)


def test_tensors_are_read_by_dlpack() -> None:
    given = [Exchanged(FRAME[column].cast(pl.Int64)) for column in ("y_true", "y_pred")]
    result = tf.accuracy.arrays(*given, by={"sex": Exchanged(FRAME["sex"].cast(pl.Int64))})
    assert_frame_equal(result, tf.accuracy(FRAME, "y_true", "y_pred"))
    with pytest.raises(tf.errors.ColumnError, match="has 2 dimensions"):
        of_parity([1, 0], Exchanged(PAIRS))


# Batches of arrays


CUTS: dict[str, Any] = {"threshold": {"race": {"alpha": 0.4, "beta": 0.5, "gamma": 0.6, "rare": 0.3}}}
BATCHES: dict[str, tuple[Any, dict[str, str], dict[str, Any]]] = {
    "labels": (CLASS, {"truth": "y_true", "estimate": "y_pred"}, {}),
    "labels, weighted": (CLASS, {"truth": "y_true", "estimate": "y_pred", "case_weights": "weight"}, {}),
    "predictions alone": (PARITY, {"estimate": "y_pred"}, {}),
    "words": (tf.accuracy, {"truth": "race", "estimate": "race"}, {}),
    "scores, weighted": (PROB, {"truth": "y_true", "probs": "score", "case_weights": "weight"}, {}),
    "scores in bins": (tf.roc_auc, {"truth": "y_true", "probs": "score"}, {"score_bins": 64}),
    "a threshold": (BOTH, {"truth": "y_true", "probs": "score"}, {"threshold": 0.4}),
    "thresholds of groups": (BOTH, {"truth": "y_true", "probs": "score"}, CUTS),
    "numbers": (NUMERIC, {"truth": "y_reg", "estimate": "pred_reg"}, {}),
}  # fmt: skip


def arrays_of(frame: pl.DataFrame, kind: str, columns: dict[str, str]) -> dict[str, Any]:
    return {role: KINDS[kind](frame[column]) for role, column in columns.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BATCHES)
def test_accumulator_takes_arrays(name: str, kind: str) -> None:
    metric, columns, counting = BATCHES[name]
    seen = tf.Accumulator(metric, **counting)
    for start in (0, 150, 300):
        part = FRAME[start : start + 150]
        seen.update(
            **arrays_of(part, kind, columns), by={item: KINDS[kind](part[item]) for item in ("sex", "race")},
            group_by={"age_band": KINDS[kind](part["age_band"])},
        )  # fmt: skip
    asked: dict[str, Any] = {**columns, **counting, "group_by": "age_band", "on_undefined": "ignore"}
    assert_same(seen.compute(on_undefined="ignore"), metric(FRAME, **asked))
    groups = metric.by_group(FRAME, **asked)
    keys = [name for name in KEYS if name in groups.columns]
    assert_same(seen.compute_by_group().sort(keys), groups.sort(keys))


def test_accumulator_takes_truth_and_estimate_by_position() -> None:
    seen = tf.Accumulator(tf.sens).update([1, 0, 1], [1, 0, 0]).update(np.array([1, 1]), np.array([1, 1]))
    assert seen.compute()[".estimate"].item() == 0.75


def test_accumulator_applies_ignore_index() -> None:
    truth, guess, sex = [1, 0, -1, 1, 1, -1], [1, 1, 0, 0, 1, 1], list("ffmmmm")
    seen = tf.Accumulator(tf.metric_set(tf.accuracy, tf.equal_opportunity("sex")))
    for start in (0, 2, 4):
        part = slice(start, start + 2)
        seen.update(Tensor(pl.Series(truth[part])), guess[part], by={"sex": sex[part]}, ignore_index=-1)
    kept = pl.DataFrame({"y": truth, "p": guess, "sex": sex}).filter(pl.col("y") != -1)
    assert_same(seen.compute(), tf.metric_set(tf.accuracy, tf.equal_opportunity("sex"))(kept, "y", "p"))
    assert seen.state.cells["n"].sum() == 4


def test_accumulator_takes_scores_and_frequency_weights() -> None:
    scores = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    truth, often = np.array([0, 1, 2, 0]), np.array([2, 1, 3, 1])
    seen = tf.Accumulator(tf.mn_log_loss)
    for part in (slice(0, 3), slice(3, 4)):
        by_label = {label: scores[part, label] for label in range(3)}
        seen.update(truth[part], probs=by_label, frequency_weights=often[part])
    expected = -np.average(np.log(scores[np.arange(4), truth]), weights=often)
    assert seen.compute()[".estimate"].item() == pytest.approx(expected, rel=1e-12)


def test_accumulators_of_arrays_merge(tmp_path: Path) -> None:
    workers = [tf.Accumulator(CLASS) for _ in range(2)]
    for worker, part in zip(workers, (FRAME[:150], FRAME[150:]), strict=True):
        worker.update(part["y_true"], part["y_pred"], by={"sex": part["sex"], "race": part["race"]})
    expected = CLASS(FRAME, "y_true", "y_pred")
    day = tf.Accumulator(CLASS)
    for worker in workers:
        day.merge(pickle.loads(pickle.dumps(worker)))  # noqa: S301 - our own bytes
    assert_same(day.compute(), expected)
    tf.save_state(day.state, tmp_path / "day.parquet")
    loaded = tf.load_state(tmp_path / "day.parquet", workers[0].state)
    assert_same(tf.Accumulator(CLASS).merge(loaded).compute(), expected)


def test_accumulator_rejects_incompatible_arrays() -> None:
    truth, guess, by = [1, 0], [1, 1], {"sex": ["f", "m"]}
    named = tf.Accumulator(tf.accuracy, "y", "p")
    with pytest.raises(
        tf.errors.ArgumentError, match=r"created for frames, with `truth='y'`.* `Accumulator\(metrics\)`"
    ):
        named.update(truth, guess)
    with pytest.raises(tf.errors.ArgumentError, match="created for frames, with `case_weights='w'`"):
        tf.Accumulator(tf.accuracy, case_weights="w").update(truth, guess)
    seen = tf.Accumulator(tf.accuracy).update(truth, guess)
    with pytest.raises(tf.errors.ArgumentError, match="Only tallies of the same columns"):
        seen.update(truth, guess, case_weights=[1, 2])
    with pytest.raises(tf.errors.ArgumentError, match="counted with different 'truth', 'estimate'"):
        named.merge(seen)
    with pytest.raises(tf.errors.ArgumentError, match="Only tallies of the same columns"):
        seen.merge(named.update(pl.DataFrame({"y": truth, "p": guess})))
    with pytest.raises(tf.errors.ArgumentError, match="the truth is given twice"):
        seen.update(truth, guess, truth=truth)
    for frame in (pl.DataFrame({"y": truth, "p": guess}), pd.DataFrame({"y": truth, "p": guess})):
        with pytest.raises(tf.errors.ArgumentError, match="a frame must be the only argument"):
            tf.Accumulator(tf.accuracy, "y", "p").update(frame, ignore_index=0)
    with pytest.raises(tf.errors.ColumnError, match="the array of 'sex' is missing"):
        tf.Accumulator(PARITY).update(truth, guess)
    with pytest.raises(tf.errors.ArgumentError, match="no truth was given"):
        tf.Accumulator(PARITY).update(estimate=guess, by=by, ignore_index=0)
    assert seen.state.cells["n"].sum() == 2


# Logits


def test_sigmoid_equals_the_logistic_function() -> None:
    logits = [-30.0, -5.0, -1.5, -1e-3, -0.0, 0.0, 1e-9, 0.25, 1.0, 17.0]
    result = pl.DataFrame({"logit": logits}).select(tf.calibration.sigmoid("logit")).to_series()
    for probability, logit in zip(result, logits, strict=True):
        assert probability == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-15)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64, pl.Float32, pl.Float64])
def test_sigmoid_of_any_numeric_dtype(dtype: Any) -> None:
    result = (
        pl.DataFrame({"logit": [0, 2, 90]}, schema={"logit": dtype}).select(tf.calibration.sigmoid("logit")).to_series()
    )
    assert result.dtype == pl.Float64
    assert result.to_list() == pytest.approx([0.5, 1 / (1 + math.exp(-2)), 1.0], rel=1e-15)


def test_sigmoid_of_infinite_and_missing_values() -> None:
    logits = [-math.inf, -1e300, -1000.0, 1000.0, 1e300, math.inf, None]
    result = pl.DataFrame({"logit": logits}).select(tf.calibration.sigmoid("logit")).to_series().to_list()
    assert result == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, None]
    undefined = pl.DataFrame({"logit": [math.nan]}).select(tf.calibration.sigmoid(pl.col("logit"))).item()
    assert math.isnan(undefined)


def test_sigmoid_of_logits_equals_probabilities() -> None:
    frame = FRAME.with_columns(logit=(pl.col("score") / (1 - pl.col("score"))).log())
    calls: list[tuple[tf.types.MetricSet, dict[str, Any]]] = [(PROB, {}), (BOTH, {"threshold": 0.4})]
    for metric, options in calls:
        expected = metric(frame, "y_true", probs="score", **options)
        for scores in (tf.calibration.sigmoid("logit"), tf.calibration.sigmoid(pl.col("logit"))):
            result = metric(frame, "y_true", probs=scores, **options)
            assert_frame_equal(result, expected, rel_tol=1e-12)
    # of logits as they are only the order is read
    with pytest.raises(tf.errors.ColumnError, match="needs probabilities between 0 and 1"):
        tf.brier_class(frame, "y_true", probs="logit")
    auc = tf.roc_auc(frame, "y_true", probs="logit")
    assert auc[".estimate"].item() == tf.roc_auc(frame, "y_true", probs="score")[".estimate"].item()


KEYS = (".metric", ".by", ".group", ".level", ".threshold", "age_band")


def assert_same(result: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert_frame_equal(result, expected, rel_tol=1e-9, abs_tol=1e-12)
