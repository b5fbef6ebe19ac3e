"""Looks back at a whole run of this folder: every operator of the library was called and gave a result that was compared.

untested.tsv names the exceptions, each with its reason; an entry that is no longer needed fails. Operators with tests written by
hand get their refusals checked here, with the arguments of a call that succeeded there.
"""
from __future__ import annotations

import copy
import csv
import pathlib

import pytest

import driver
import generated
import rules_families

HERE = pathlib.Path(__file__).parent
BY_HAND = {name: file for name, op in generated.OPERATORS.items() if (file := rules_families.elsewhere(op))}
FILES = {"generated.py", "test_siblings.py", *BY_HAND.values()}


def untested() -> dict[str, str]:
    with open(HERE / "untested.tsv", newline="", encoding="utf-8") as file:
        return {row["operator"]: row["reason"] for row in csv.DictReader(file, delimiter="\t")}


def test_every_operator_was_called(request) -> None:
    ran = {item.path.name for item in request.session.items}
    if not FILES <= ran or request.config.option.keyword:
        pytest.skip("a part of the folder was asked for")
    missing = set(generated.OPERATORS) - set(driver.EXECUTED)
    listed = untested()
    assert missing <= set(listed), f"no test calls {sorted(missing - set(listed))}"
    assert set(listed) <= missing, f"untested.tsv names what is tested or does not exist: {sorted(set(listed) - missing)}"
    assert all(reason.strip() for reason in listed.values()), "untested.tsv has an entry without a reason"


def recorded(name: str) -> generated.Case:
    case = generated.Case(generated.OPERATORS[name], 0)
    case.values = {param["name"]: copy.copy(value) for param, value in driver.EXECUTED[name]}
    return case


def was_called(name: str) -> None:
    if name not in driver.EXECUTED:
        pytest.skip(f"{BY_HAND[name]} or test_siblings.py did not run")


@pytest.mark.parametrize("name", [n for n in BY_HAND if generated.can_be_null(generated.OPERATORS[n])])
def test_refuses_null(name: str) -> None:
    was_called(name)
    generated.break_nulls(generated.OPERATORS[name], lambda: recorded(name))


@pytest.mark.parametrize("name", [n for n in BY_HAND if generated.breakable(generated.OPERATORS[n])])
def test_refuses_broken_rules(name: str) -> None:
    was_called(name)
    generated.break_rules(generated.OPERATORS[name], lambda: recorded(name))
