"""The table of options, which typed keywords repeat for type checkers."""

import inspect
from dataclasses import fields
from typing import Any

import pytest

import tidyfair as tf
from tidyfair.specs.groups import Policy
from tidyfair.specs.option_table import OF_CALLS, OPTIONS
from tidyfair.specs.options import (
    ComputeOptions,
    CountOptions,
    GroupOptions,
    GroupReadOptions,
    JudgedCallOptions,
    Options,
    ReadOptions,
    SurveyCallOptions,
    SurveyCountOptions,
)

STEPS: list[tuple[type[Any], set[str]]] = [
    (CountOptions, {"count"}),
    (SurveyCountOptions, {"count", "design", "judged", "suppression"}),
    (ReadOptions, {"read"}),
    (ComputeOptions, {"read", "show"}),
    (JudgedCallOptions, {"count", "judged", "read", "show"}),
    (SurveyCallOptions, {"count", "design", "judged", "suppression", "read", "show"}),
    (GroupReadOptions, {"read", "group values"}),
]


@pytest.mark.parametrize(("keywords", "steps"), STEPS)
def test_typed_keywords_are_the_options_of_their_steps(keywords: type[Any], steps: set[str]) -> None:
    assert {*keywords.__annotations__} == {name for name in OF_CALLS if OPTIONS[name].step in steps}


def test_types_and_defaults_are_those_of_the_table() -> None:
    typed = {item.name: item for item in fields(Options) if item.name != "has_single_rows"}
    assert {*typed} == OF_CALLS - {"data"}
    for name, item in typed.items():
        assert (OPTIONS[name].type, OPTIONS[name].default) == (item.type, item.default)
    for keywords, _ in [*STEPS, (GroupOptions, set[str]())]:
        for name, hint in keywords.__annotations__.items():
            assert hint.__forward_arg__ == OPTIONS[name].type
    for name in GroupOptions.__annotations__:
        assert OPTIONS[name].default == getattr(Policy, name)


def test_help_of_a_call_has_the_sentence_of_each_option() -> None:
    shown = " ".join(str(inspect.getdoc(type(tf.accuracy).__call__)).split())
    for name in SurveyCallOptions.__annotations__:
        assert OPTIONS[name].sentence
        assert f" {name}: {OPTIONS[name].sentence} " in shown


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.check is not None])
def test_defaults_pass_their_own_check(name: str) -> None:
    option = OPTIONS[name]
    assert option.check is not None
    if option.default is not None:
        assert option.check(name, option.default) == option.default
