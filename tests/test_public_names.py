"""Public names, lazy imports, help and signatures."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from public_names import public

import tidyfair as tf
from tidyfair.metrics import classification, dependence, fairness, inequality, probability, regression
from tidyfair.metrics.other_names import OTHER_NAMES, places

if TYPE_CHECKING:
    from collections.abc import Callable


def test_metric_names_are_public() -> None:
    for name in (*classification.__all__, *fairness.__all__, "metric_set", "difference", "conf_mat", "TidyfairError"):
        assert public(name)


def test_the_door_is_short() -> None:
    assert len(dir(tf)) <= 140
    assert not set(dir(tf)) & set(vars(tf)["_MODULE_OF_ALIAS"])
    shown = re.sub(".\x08", "", pydoc.render_doc(tf))
    assert len(shown.splitlines()) <= 120
    assert all(re.search(rf"\b{name}\b", shown) for name in dir(tf))


def test_type_checkers_know_all_names_with_their_modules() -> None:
    tree = ast.parse(Path(str(tf.__file__)).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    known: dict[str, str] = {}
    for statement in (node for node in block.body if isinstance(node, ast.ImportFrom)):
        known |= {str(name.asname): str(statement.module) for name in statement.names}
    modules = vars(tf)["_MODULE_OF"] | vars(tf)["_MODULE_OF_ALIAS"]
    of_families = dict.fromkeys(vars(tf)["_FAMILIES"], "tidyfair")
    assert known == {name: f"tidyfair.{module}" for name, module in modules.items()} | of_families


def test_names_of_families_are_modules_of_public_names() -> None:
    for family in vars(tf)["_FAMILIES"]:
        module = getattr(tf, family)
        assert isinstance(module, ModuleType)
        assert str(module.__doc__).partition("\n")[0].endswith(".")
        names = [name for name in dir(module) if name[0].isalpha()]
        assert names
        assert all(getattr(module, name) is not None for name in names)
        # a name at the top is no name of a family as well, but for the tests and gates that are used most
        twice = {name for name in names if getattr(module, name) is vars(tf).get(name)}
        assert not twice - {"assert_fair", "check", "compare_models", "four_fifths", "pairwise"}


def test_an_old_name_says_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r": write tidyfair\.survival\.concordance$"):
        getattr(tf, "concordance_survival")  # noqa: B009 - it is not there, as type checkers would say
    with pytest.raises(AttributeError, match=r": write tidyfair\.errors\.TidyfairError$"):
        getattr(tf, "TidyfairError")  # noqa: B009 - as above
    with pytest.raises(tf.errors.ArgumentError, match=r'write `survival\.outcome\("time", "event"\)`'):
        getattr(tf, "survival")("time", "event")  # noqa: B009 - as type checkers would say


def test_import_is_lazy_and_public_names_match_their_modules() -> None:
    code = """
import sys, tidyfair
engines = {"polars", "narwhals", "numpy", "scipy", "pandas"}
read = {name for name in sys.modules if name.split(".")[0] in {"tidyfair"} | engines}
assert read == {"tidyfair"}, read
from importlib import import_module
every = {**tidyfair._MODULE_OF, **tidyfair._MODULE_OF_ALIAS}
for name, module in every.items():
    assert name in import_module(f"tidyfair.{module}").__all__, name
of_inference = {module: names.split() for module, names in tidyfair.inference._NAMES.items()}
for module, names in of_inference.items():
    assert sorted(names) == sorted(import_module(f"tidyfair.inference.{module}").__all__), module
    assert all(getattr(tidyfair.inference, name).__name__ == name for name in names)
assert sorted(tidyfair._MODULE_OF) == tidyfair.__all__
from tidyfair import *
assert all(globals()[name] is getattr(tidyfair, name) for name in tidyfair.__all__)
assert set(tidyfair.__all__) <= set(dir(tidyfair))
"""
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own
    with pytest.raises(AttributeError, match="no attribute 'accurracy'"):
        getattr(tf, "accurracy")  # noqa: B009 - it is not there, as type checkers would say


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("r2_score", "rsq_trad"),
        ("accuracy_difference", 'accuracy.difference("column")'),
        ("recall_score_group_min", 'recall.group_minimum("column")'),
        ("disparity_test", "tidyfair.inference.disparity_test"),
        ("demographic_parity_difference", "demographic_parity"),
        ("predictive_parity_ratio", 'predictive_parity("column", aggregate=ratio())'),
        ("permutation_test", "inference.disparity_test"),
        ("tpr", "true_positive_rate"),
    ],
)
def test_names_of_other_libraries_and_rooms_say_what_to_write(name: str, expression: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(tf, name)
    assert str(caught.value).endswith(f": write {expression}")
    with pytest.raises(ImportError) as not_imported:
        exec(f"from tidyfair import accuracy, {name}")  # noqa: S102 - our own
    assert str(not_imported.value) == f"cannot import name {name!r} from 'tidyfair': write {expression}"


def test_imports_of_misspelled_names_offer_the_nearest() -> None:
    with pytest.raises(
        ImportError, match=r"cannot import name 'accurracy' from 'tidyfair'\. Did you mean 'accuracy'\?"
    ):
        exec("from tidyfair import accurracy")  # noqa: S102 - our own
    with pytest.raises(ImportError, match=r"'pairwize' from 'tidyfair\.inference'\. Did you mean 'pairwise'\?"):
        exec("from tidyfair.inference import pairwize")  # noqa: S102 - our own
    with pytest.raises(ImportError, match=r"'accuracy' from 'tidyfair\.inference': write tidyfair\.accuracy"):
        exec("from tidyfair.inference import accuracy")  # noqa: S102 - our own


def test_names_that_do_not_exist_are_none_for_hasattr_and_modules_are_imported() -> None:
    assert not hasattr(tf, "r2_score")
    assert getattr(tf, "r2_score", None) is None
    assert not hasattr(tf.inference, "accuracy")
    code = """
from tidyfair import specs, escapes
from tidyfair.inference.monitoring import drift
assert specs.__name__ == "tidyfair.specs" and drift.__name__ == "tidyfair.inference.monitoring.drift"
"""
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own


def test_other_names_point_to_public_names() -> None:
    assert set(OTHER_NAMES.values()) <= set(places())
    assert not set(OTHER_NAMES) & set(places())


def test_every_module_with_public_names_is_listed() -> None:
    root = Path(tf.__file__).parent
    with_names = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("[!_]*.py")
        if re.search(r"^__all__ = \[", path.read_text("utf-8"), re.MULTILINE)
    }
    places_of_names = {public(name).__module__ for name in places() if hasattr(public(name), "__module__")}
    # names of the command line, and of metrics that `fairness` compares between groups
    elsewhere = {"cli.main", "metrics.distances"}
    families = {family for family in vars(tf)["_FAMILIES"] if family in with_names}
    of_modules = {module.removeprefix("tidyfair.") for module in places_of_names}
    assert with_names - elsewhere - families <= of_modules | set(vars(tf)["_MODULE_OF"].values())


def test_every_metric_of_a_module_is_listed_there() -> None:
    for module in (classification, probability, regression, inequality, dependence, fairness):
        for name, value in vars(module).items():
            is_own = isinstance(value, tf.types.Metric) and value.name == name and value.__module__ == module.__name__
            # a private one is a reading of another
            if is_own and not name.startswith("_"):
                assert name in module.__all__, f"{name} is not in __all__ of {module.__name__}"


def test_version_equals_package_metadata() -> None:
    code = """
import sys, tidyfair
assert "__version__" not in vars(tidyfair)
from importlib.metadata import version
from pathlib import Path
assert tidyfair.__version__ == version("tidyfair")
assert "__version__" not in tidyfair.__all__
"""
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own
    assert tf.__version__ == version("tidyfair")


def test_help_of_a_factory_describes_its_metrics() -> None:
    shown = re.sub(".\x08", "", pydoc.render_doc(tf.demographic_parity))  # without what printers print twice
    assert (
        "demographic_parity: Difference in selection_rate between the groups: largest value minus smallest value."
        in shown
    )
    assert "selection_rate: Share of rows that were predicted positive" in shown
    assert "Source: Calders et al. (2009)" in shown
    odds = str(tf.equalized_odds.__doc__)
    assert "sens: Share of actual positives" in odds
    assert "spec: Share of actual negatives" in odds
    factories = [
        item for name in fairness.__all__ if isinstance(item := getattr(fairness, name), tf.types.GroupwiseFactory)
    ]
    assert len(factories) > 40
    for factory in factories:
        assert str(factory.__doc__).startswith(f"{factory.name}: "), factory.name
    # the class still says what factories are
    assert str(tf.types.GroupwiseFactory.__doc__).startswith("A factory of groupwise metrics")


@pytest.mark.parametrize(
    "metric",
    [
        tf.accuracy,
        tf.roc_auc,
        tf.rmse,
        tf.accuracy.alias("hits"),
        tf.equalized_odds("sex"),
        tf.metric_set(tf.accuracy, tf.sens),
    ],
    ids=repr,
)
def test_help_of_a_metric_shows_its_meaning_and_then_its_call(metric: Any) -> None:
    shown = re.sub(".\x08", "", pydoc.render_doc(metric))  # without what printers print twice
    # the class would be described by the methods of its base, and by how it is made
    assert "Method resolution order" not in shown
    # the call comes without types, which are longer than it
    call = " ".join(shown.partition("(data, truth=None")[2].partition("Evaluate on")[0].split())
    names = re.findall(r"(\w+)=", "truth=" + call)
    assert ["data", *names] == list(inspect.signature(metric).parameters)
    assert "case_weights: Column of weights" in shown
    assert ".by_group(data, …)" in shown


def test_help_of_a_metric_shows_its_formula_last() -> None:
    shown = str(tf.accuracy.__doc__)
    assert shown.startswith("Share of rows whose prediction is correct")
    parts = (
        'accuracy(data, "truth", "estimate")',
        "(data, truth=None",
        "Args:",
        ".difference(",
        ">>> accuracy.formula",
    )
    indices = [shown.index(part) for part in parts]
    assert indices == sorted(indices)
    assert 'roc_auc(data, "truth", probs="score")' in str(tf.roc_auc.__doc__)
    assert "beta=1" in str(tf.f_meas.__doc__)
    # the classes still say what they are
    assert str(tf.types.Metric.__doc__).startswith("A named formula")
    assert str(tf.types.MetricSet.__doc__).startswith("Several metrics in one call")


def test_help_of_a_factory_shows_both_calls() -> None:
    shown = str(tf.equalized_odds.__doc__)
    assert '`equalized_odds("column")(data, …)`' in shown
    assert "equalized_odds(*by, aggregate=" in shown


def test_help_of_the_library_says_what_it_does_and_where_to_look() -> None:
    shown = str(tf.__doc__)
    assert "How good is a model, for whom, how much do groups differ" in shown
    named = re.findall(r"tdf\.(\w+)", shown)
    assert {"metric_set", "accuracy", "catalogue"} <= set(named)
    assert all(hasattr(tf, name) for name in named)


def test_signature_shows_that_data_are_required() -> None:
    parameters = inspect.signature(tf.accuracy).parameters
    assert parameters["data"].default is inspect.Parameter.empty
    assert parameters["truth"].default is None


def test_signature_of_a_factory_shows_its_options() -> None:
    plain = inspect.signature(tf.demographic_parity)
    assert list(plain.parameters) == [
        "by",
        "aggregate",
        "name",
        "min_n",
        "min_share",
        "unknown",
        "unknown_values",
        "to",
        "signed",
    ]
    assert plain.parameters["aggregate"].default == tf.difference()
    options = inspect.signature(tf.differential_fairness).parameters
    assert options["concentration"].default == 1
    for factory in (tf.differential_fairness, tf.equalized_odds_ratio, tf.distributions.mutual_information):
        given = {
            name: item.default for name, item in inspect.signature(factory).parameters.items()
            if item.kind is item.KEYWORD_ONLY
        }  # fmt: skip
        assert factory("sex", **given) == factory("sex")
    assert "metrics" in inspect.signature(tf.types.GroupwiseFactory).parameters


def test_event_level_argument_points_to_pos_label(loans: pl.DataFrame) -> None:
    calls: list[Any] = [tf.sens, tf.metric_set(tf.sens, tf.spec), tf.conf_mat, tf.demographic_parity("sex")]
    for call in calls:
        with pytest.raises(tf.errors.ArgumentError, match='write `pos_label="yes"` in the call') as caught:
            call(loans, "truth", "estimate", event_level="second")
        assert "conf_level'?" not in str(caught.value)
    tweak: Any = tf.metric_tweak
    with pytest.raises(tf.errors.ArgumentError, match="pos_label"):
        tweak(tf.sens, "second", event_level="second")
    factory: Any = tf.demographic_parity
    with pytest.raises(tf.errors.ArgumentError, match="pos_label"):
        factory("sex", event_level="second")
    curve: Any = tf.roc_curve
    with pytest.raises(tf.errors.ArgumentError, match="pos_label"):
        curve(loans, "truth", probs="score", event_level="second")


WRITTEN = {
    "alias", "arrays", "arrays_by_group", "by_group", "compute", "compute_by_group", "difference", "direction",
    "formula", "group_maximum", "group_minimum", "kind", "meaning", "name", "range", "ratio", "tally",
}  # fmt: skip
READ_BY_EVALUATION = {"specs", "run", "formulas", "of_distances", "label_by_label", "several", "subtracted"}


def test_completion_of_a_metric_offers_what_users_write() -> None:
    offered = {name for name in dir(tf.accuracy) if not name.startswith("_")}
    assert offered >= WRITTEN
    assert not offered & {*READ_BY_EVALUATION, "definition", "tweaked", "constant_average", "aggregate", "by", "policy"}
    # what is not offered is there
    assert all(hasattr(tf.accuracy, name) for name in READ_BY_EVALUATION)
    assert "__call__" in dir(tf.accuracy)


def test_completion_of_comparisons_sets_factories_and_tests_offers_what_users_write() -> None:
    parity = tf.demographic_parity("sex")
    offered = set(dir(parity))
    assert offered >= {
        "by",
        "by_group",
        "metrics",
        "aggregate",
        "policy",
        "meaning",
        "direction",
        "range",
        "name",
        "arrays",
    }
    assert not offered & {*READ_BY_EVALUATION, "own_direction"}
    assert set(dir(tf.metric_set(parity))) >= {"metrics", "difference", "by_group", "tally", "compute"}
    assert not set(dir(tf.metric_set(parity))) & READ_BY_EVALUATION
    assert set(dir(tf.demographic_parity)) >= {"name", "metrics", "aggregate", "options", "source"}
    assert not set(dir(tf.demographic_parity)) & {"signature", "explained", "fixed"}
    assert "compute" in dir(tf.check(parity, below=0.1))
    assert not {"refused", "subject"} & set(dir(tf.check(parity, below=0.1)))


def test_representations_of_gates_and_tests_show_their_metrics_and_the_call() -> None:
    parity, odds = tf.demographic_parity("sex"), tf.equalized_odds("sex", "race")
    call = "; call it with (data, truth, estimate, …)>"
    shown = {
        tf.check(tf.metric_set(parity, odds), below=0.1): (
            "<Gate of demographic_parity('sex') below 0.1, equalized_odds('sex', 'race') below 0.1; conf_level=0.95"
        ),
        tf.four_fifths("sex", pos_label="yes"): (
            "<Gate of four_fifths('sex') above 0.8; conf_level=0.95, pos_label='yes'"
        ),
        tf.inference.disparity_test(parity, within="race"): (
            "<DisparityTest of demographic_parity('sex'); within=['race'], adjust='holm', family='all', "
            "studentized=True"
        ),
        tf.inference.subgroup_search(tf.selection_rate, ["sex", "race"]): (
            "<SubgroupSearch of selection_rate; features=['sex', 'race'], depth=2, min_n=1"
        ),
        tf.inference.subgroup_search(tf.selection_rate, ["sex"], unknown="drop", unknown_values=["?"]): (
            "<SubgroupSearch of selection_rate; features=['sex'], depth=2, min_n=1, unknown='drop', "
            "unknown_values=['?']"
        ),
    }
    for made, text in shown.items():
        assert repr(made) == text + call
    tests = (
        tf.inference.pairwise(parity),
        tf.inference.worst_groups(parity),
        tf.inference.probability(parity, below=0.1),
    )
    for made in tests:
        assert repr(made).startswith(f"<{type(made).__name__} of demographic_parity('sex'); ")
        assert repr(made).endswith(call)
    assert repr(tf.compare_models(tf.accuracy, parity)) == (
        "<ModelComparison of accuracy, demographic_parity('sex'); call it with (data, truth, one=…, other=…)>"
    )
    assert repr(tf.demographic_parity).endswith('; call demographic_parity("column")(data, …)>')


def objects_that_are_called() -> list[tuple[str, Any]]:
    """Public functions and curves, objects of every class that is called with data, and the methods of these."""
    functions = [
        (name, made)
        for module in (tf, tf.inference)
        for name in module.__all__
        if inspect.isfunction(made := getattr(module, name)) or isinstance(made, tf.types.Curve)
    ]
    gap = tf.accuracy.difference("sex")
    made = [
        tf.accuracy, tf.roc_auc, tf.calibration.slope, tf.survival.concordance, gap,
        tf.metric_set(gap), tf.demographic_parity, tf.threshold_curve(tf.accuracy),
        tf.check(gap, below=0.1), tf.inference.pairwise(gap), tf.compare_models(tf.accuracy),
        tf.inference.disparity_test(gap), tf.inference.worst_groups(gap),
    ]  # fmt: skip
    methods = [
        (name, method)
        for one in made
        for name in dir(one)
        if not name.startswith("_") and inspect.ismethod(method := getattr(one, name))
    ]
    return [*functions, *((getattr(one, "name", type(one).__name__), one) for one in made), *methods]


def test_calls_without_arguments_or_with_wrong_ones_are_explained() -> None:
    people = pl.DataFrame({"y": [1, 0, 1, 0] * 3, "p": [1, 0, 0, 1] * 3, "sex": ["f", "m"] * 6})
    unexplained: list[str] = []
    for name, called in objects_that_are_called():
        for given, keywords in (((), {}), ((), {"nonsense": 1}), ((people,), {})):
            try:
                called(*given, **keywords)
            except tf.errors.TidyfairError:
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it has to be explained
                unexplained.append(f"{name}: {error!r}")
    assert unexplained == []


def test_errors_of_incomplete_calls_name_what_was_called() -> None:
    def message(called: Callable[..., Any], **keywords: object) -> str:
        with pytest.raises(tf.errors.ArgumentError) as error:
            called(**keywords)
        return str(error.value)

    assert message(tf.roc_curve) == (
        "roc_curve() needs `data`, `truth`: write `roc_curve(data, truth)`. The data go into the same call."
    )
    assert message(tf.accuracy.by_group).startswith("by_group() needs `data`")
    assert message(tf.accuracy.compute) == "compute() needs `tally`: write `compute(tally)`."
    gate = tf.check(tf.accuracy.difference("sex"), below=0.1)
    assert message(gate) == "This Gate needs `data`: call it with `(data)`."
    comparison = tf.compare_models(tf.accuracy)
    assert message(comparison, data=None) == ("This ModelComparison needs `one`: call it with `(data, one=…)`.")
    assert message(tf.catalogue, kind="class").startswith("Unknown argument of catalogue() 'kind'.")
    assert message(tf.calibration.slope.formula, truth=[1, 0]) == "calibration_slope needs the list 'score'."
    assert message(tf.calibration.slope.formula, truth=1, score=0.5) == (
        "calibration_slope: 'truth' is a list of numbers, not 1."
    )
