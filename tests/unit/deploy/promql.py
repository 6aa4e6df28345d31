"""Holds PromQL against what workers expose: grammar, names of metrics and labels, values of labels."""

import re
from collections.abc import Iterator
from typing import Any

import promql_parser

from tests.unit.telemetry.exposed import VALUES, codes, exposed

#: what Prometheus itself puts on every series it scrapes
TARGET = {"job", "instance"}
KNOWN = {series: set(each.labels) | TARGET for each in exposed().values() for series in each.series} | {
    f"{each.name}_bucket": {*each.labels, *TARGET, "le"} for each in exposed().values() if each.type == "histogram"
}
COUNTERS = {series for each in exposed().values() if each.type in {"counter", "histogram"} for series in each.series}


def judge(expression: str, *, recorded: dict[str, set[str]] | None = None) -> set[str]:
    """The metrics it names; AssertionError if one is unknown, or has not the label that is asked for."""
    known = KNOWN | (recorded or {})
    tree = promql_parser.parse(expression)
    found = {selector.name for selector in selectors(tree)}
    for selector in selectors(tree):
        assert selector.name in known, f"{selector.name} in {expression}"
        for matcher in selector.matchers.matchers:
            assert matcher.name in known[selector.name], f"{selector.name} has no label {matcher.name}"
            _judge_value(matcher)
    for grouped, labels in groupings(tree):
        assert set(labels) <= _labels(grouped, known), f"{labels} in {expression}"
    for call, rated in calls(tree):
        is_counter = rated in COUNTERS
        assert is_counter == (call in {"rate", "irate", "increase"}), f"{call}({rated}) in {expression}"
    return found


def labels_of(expression: str, recorded: dict[str, set[str]]) -> set[str]:
    """Labels of the result."""
    return _labels(promql_parser.parse(expression), KNOWN | recorded)


def _labels(tree: Any, known: dict[str, set[str]]) -> set[str]:
    match tree:
        case promql_parser.VectorSelector():
            return known[tree.name]
        case promql_parser.MatrixSelector():
            return known[tree.vector_selector.name]
        case promql_parser.AggregateExpr():
            return set(tree.modifier.labels) if tree.modifier else set()
        case promql_parser.ParenExpr():
            return _labels(tree.expr, known)
        case promql_parser.BinaryExpr():
            # of a comparison with a number, or of one vector with another: what the left side has
            return _labels(tree.lhs, known)
        case promql_parser.Call() if tree.func.name == "absent":
            return set()
        case promql_parser.Call():
            return _labels(tree.args[-1], known)
    raise AssertionError(f"nobody has thought of {type(tree).__name__}")


def nodes(tree: Any) -> Iterator[Any]:
    yield tree
    children: list[Any] = []
    match tree:
        case promql_parser.BinaryExpr():
            children = [tree.lhs, tree.rhs]
        case promql_parser.Call():
            children = list(tree.args)
        case promql_parser.AggregateExpr() | promql_parser.ParenExpr() | promql_parser.UnaryExpr():
            children = [tree.expr]
        case promql_parser.MatrixSelector():
            children = [tree.vector_selector]
    for child in children:
        yield from nodes(child)


def selectors(tree: Any) -> list[Any]:
    return [node for node in nodes(tree) if isinstance(node, promql_parser.VectorSelector)]


def groupings(tree: Any) -> Iterator[tuple[Any, list[str]]]:
    """What is grouped or matched by labels, with these."""
    for node in nodes(tree):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            yield node.expr, list(node.modifier.labels)
        elif isinstance(node, promql_parser.BinaryExpr) and node.modifier and node.modifier.matching:
            yield node.lhs, list(node.modifier.matching.labels)
            yield node.rhs, list(node.modifier.matching.labels)


def calls(tree: Any) -> Iterator[tuple[str, str]]:
    """Each metric that is named, with the function that is applied to it, or an empty name."""
    ranged = set()
    for node in nodes(tree):
        if isinstance(node, promql_parser.Call):
            for argument in node.args:
                if isinstance(argument, promql_parser.MatrixSelector):
                    ranged.add(argument.vector_selector.name)
                    yield node.func.name, argument.vector_selector.name
    for selector in selectors(tree):
        if selector.name not in ranged:
            yield "", selector.name


def _judge_value(matcher: Any) -> None:
    wanted = {*VALUES, "code"} & {matcher.name}
    allowed = codes() if matcher.name == "code" else VALUES.get(matcher.name)
    if not wanted or allowed is None:
        return
    for value in re.split(r"\|", matcher.value):
        assert value in allowed, f"{matcher.name}={value}"
