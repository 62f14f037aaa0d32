"""The formulas of metrics in mathematics, as MathML, read from the code that is executed.

A formula is arithmetic, so its syntax tree is one of a mathematical expression too. What is no arithmetic, such as a
sum over sorted scores, has none, and the page shows its code alone.
"""  # noqa: INP001 - read by catalogue.py

from __future__ import annotations

import ast
import inspect
from html import escape
from typing import TYPE_CHECKING

from tidyfair.metrics.catalog import source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidyfair.specs.formulas import Statistic

READING = """\
In formulas, TP, FP, FN and TN are the cells of the confusion matrix, *n* is the number of rows, *y* the truth, *ŷ* the
estimate and *p* the score. Sums run over rows, unless "labels" stands below them. With case weights all of these are
weighted. The code below a formula is what is executed."""
_SYMBOLS = {
    "tp": "<mi>TP</mi>", "fp": "<mi>FP</mi>", "fn": "<mi>FN</mi>", "tn": "<mi>TN</mi>", "instances": "<mi>n</mi>",
    "truth": "<mi>y</mi>", "estimate": '<mover accent="true"><mi>y</mi><mo>^</mo></mover>', "score": "<mi>p</mi>",
    "weight": "<mi>w</mi>", "alpha": "<mi>\N{GREEK SMALL LETTER ALPHA}</mi>", "beta": "<mi>β</mi>",
    "delta": "<mi>δ</mi>", "quantile": "<mi>τ</mi>",
    "time": "<mi>t</mi>", "eval_time": "<mi>s</mi>", "survival": "<mi>S</mi>", "censoring_weight": "<mi>c</mi>",
    "lower": "<mi>l</mi>", "upper": "<mi>u</mi>", "level": "<mi>λ</mi>",
}  # fmt: skip
_FUNCTIONS = {
    "log": "ln",
    "log2": "log₂",
    "exp": "exp",
    "maximum": "max",
    "minimum": "min",
    "fmax": "max",
    "fmin": "min",
}
_COMPARED = {ast.Eq: "=", ast.NotEq: "≠", ast.Lt: "&lt;", ast.LtE: "≤", ast.Gt: "&gt;", ast.GtE: "≥"}
_PASSED_ON = {"clip", "cast", "fill_null"}
"""Methods that guard the ends of a number, and are none of its meaning."""
_MINUS = "<mo>\N{MINUS SIGN}</mo>"
_LOWEST, _SUM, _PRODUCT, _POWER = range(4)


class NoMathematics(Exception):  # noqa: N818 - the way out of a tree
    """There is something in the code that is no arithmetic."""


def mathematics(function: Callable[..., object], terms: Mapping[str, Statistic]) -> str | None:
    """The formula of a function as a block of MathML; None where it is no plain arithmetic."""
    try:
        return f'<div class="formula">{_Formula(function, terms).block()}</div>'
    except NoMathematics:
        return None


class _Formula:
    """A function whose statements are arithmetic: names that it gives to parts, and what it returns."""

    def __init__(self, function: Callable[..., object], terms: Mapping[str, Statistic]) -> None:
        (definition,) = ast.parse(source_of(function)).body
        if not isinstance(definition, ast.FunctionDef):
            raise NoMathematics
        self.name, self.terms = definition.name, terms
        self.around: dict[str, object] = inspect.unwrap(function).__globals__
        self.quantities: dict[str, _Formula] = {}
        options = zip(definition.args.kwonlyargs, definition.args.kw_defaults, strict=True)
        self.defaults = {option.arg: default.value for option, default in options if isinstance(default, ast.Constant)}
        self.parts: dict[str, ast.expr] = {}
        self.result = self._result(definition.body)

    def _result(self, statements: list[ast.stmt]) -> ast.expr:
        if (found := self._read(statements)) is None:
            raise NoMathematics
        return found

    def _read(self, statements: list[ast.stmt]) -> ast.expr | None:
        """What the statements return; the parts that they name on the way are kept."""
        for statement in statements:
            match statement:
                case ast.Return(value=ast.expr() as value):
                    return _Defined().visit(value)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in self.parts:
                    self.parts[name] = value
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                    for each, value in zip(names, values, strict=True):
                        if not isinstance(each, ast.Name) or each.id in self.parts:
                            raise NoMathematics
                        self.parts[each.id] = value
                case ast.Expr():  # a check of an option
                    pass
                case ast.If(test=test, body=body, orelse=otherwise):
                    found = self._read(body if self._holds(test) else otherwise)
                    if found is not None:
                        return found
                case _:
                    raise NoMathematics
        return None

    def _holds(self, test: ast.expr) -> bool:
        """Whether a question about options is true of their defaults."""
        match test:
            case ast.Name(id=name) if name in self.defaults:
                return bool(self.defaults[name])
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant(value=value)]) if (
                name in self.defaults
            ):
                return self.defaults[name] == value
            case ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value="threshold")]):
                return False  # a formula is shown with a risk
            case _:
                raise NoMathematics

    def block(self) -> str:
        lines = [f'<mtext class="name">{self.name}</mtext><mo>=</mo>{self._whole(self.result)}', *self.explained()]
        for name, quantity in self.quantities.items():
            lines += [f"{_text(name)}<mo>=</mo>{quantity.of(quantity.result)}", *quantity.explained()]
        rows = "".join(f"<mtr><mtd>{line}</mtd></mtr>" for line in lines)
        content = f"<mtable columnalign='left'>{rows}</mtable>" if len(lines) > 1 else f"<mrow>{lines[0]}</mrow>"
        return f'<math display="block">{content}</math>'

    def explained(self) -> list[str]:
        """A line for each part, in the order in which they are met."""
        lines: dict[str, str] = {}
        waiting = self._names(self.result)
        while waiting:
            name = waiting.pop(0)
            if name in self.parts and name not in lines:
                lines[name] = f"{_text(name)}<mo>=</mo>{self._whole(self.parts[name])}"
                waiting += self._names(self.parts[name])
        return list(lines.values())

    def _names(self, node: ast.expr) -> list[str]:
        return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]

    def _whole(self, node: ast.expr) -> str:
        """A result; two values are numerator and denominator."""
        match node:
            case ast.Tuple(elts=[numerator, denominator]):
                return f"<mfrac><mrow>{self.of(numerator)}</mrow><mrow>{self.of(denominator)}</mrow></mfrac>"
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self._whole(body if self._holds(test) else otherwise)
            case _:
                return self.of(node)

    def of(self, node: ast.expr, around: int = _LOWEST) -> str:  # noqa: C901, PLR0911 - a kind of expression in each
        """An expression; `around` says how tightly what is around it binds."""
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Constant(value=int() | float() as value):
                return f"<mn>{value:g}</mn>"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _row(f"{_MINUS}{self.of(operand, _PRODUCT)}", bracketed=around > _SUM)
            case ast.BinOp():
                return self._of_operation(node, around)
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARED:
                return f"{self.of(left)}<mo>{_COMPARED[type(operator)]}</mo>{self.of(right)}"
            case ast.Subscript(value=value):  # all labels share what is read from the first
                return self.of(value, around)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self.of(body if self._holds(test) else otherwise, around)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.of(self._called(name, arguments), around)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=arguments):
                return self._of_numpy(name, arguments)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=arguments, keywords=keywords):
                return self._of_method(value, name, arguments, keywords, around)
            case _:
                raise NoMathematics

    def _of_operation(self, node: ast.BinOp, around: int) -> str:
        left, right = node.left, node.right
        match node.op:
            case ast.Div():
                return f"<mfrac><mrow>{self.of(left)}</mrow><mrow>{self.of(right)}</mrow></mfrac>"
            case ast.Pow():
                return f"<msup><mrow>{self.of(left, _POWER)}</mrow><mrow>{self.of(right)}</mrow></msup>"
            case ast.Mult():
                product = f"{self.of(left, _PRODUCT)}<mo>·</mo>{self.of(right, _PRODUCT)}"
                return _row(product, bracketed=around > _PRODUCT)
            case ast.Add():
                return _row(f"{self.of(left)}<mo>+</mo>{self.of(right)}", bracketed=around > _LOWEST)
            case ast.Sub():
                return _row(f"{self.of(left)}{_MINUS}{self.of(right, _SUM)}", bracketed=around > _LOWEST)
            case ast.BitAnd():
                return f"{self.of(left)}<mtext> and </mtext>{self.of(right)}"
            case _:
                raise NoMathematics

    def _called(self, name: str, arguments: list[ast.expr]) -> ast.expr:
        """What a helper returns, with its parameters as they are given."""
        helper = self.around.get(name)
        if not inspect.isfunction(helper):
            raise NoMathematics
        formula = _Formula(helper, {})
        given = dict(zip(inspect.signature(helper).parameters, arguments, strict=True))
        for part, value in formula.parts.items():
            given[part] = _Given(given).visit(value)
        return _Given(given).visit(formula.result)

    def _name(self, name: str) -> str:
        if name in self.terms:
            return self._sum_over_rows(name)
        for start, below in (("overall_", "all"), ("rest_", "others")):
            if name.startswith(start):
                return f"<msub><mrow>{self._name(name.removeprefix(start))}</mrow><mtext>{below}</mtext></msub>"
        return _SYMBOLS.get(name, _text(name))

    def _sum_over_rows(self, name: str) -> str:
        quantity = _Formula(self.terms[name].function, {})
        if quantity.parts or "otherwise" in ast.unparse(quantity.result):
            self.quantities[name] = quantity
            return f"<mo>∑</mo>{_text(name)}"
        return f"<mo>∑</mo>{quantity.of(quantity.result, _PRODUCT)}"

    def _of_numpy(self, name: str, arguments: list[ast.expr]) -> str:
        match name, arguments:
            case "sqrt", [value]:
                return f"<msqrt><mrow>{self.of(value)}</mrow></msqrt>"
            case "abs", [value]:
                return _size(self.of(value))
            case "where", [test, value, otherwise]:
                return _cases([(self.of(value), self.of(test)), (self.of(otherwise), "")])
            case _ if name in _FUNCTIONS:
                listed = "<mo>,</mo>".join(self.of(each) for each in arguments)
                return f"<mi>{_FUNCTIONS[name]}</mi><mo>(</mo>{listed}<mo>)</mo>"
            case _:
                raise NoMathematics

    def _of_method(
        self, value: ast.expr, name: str, arguments: list[ast.expr], keywords: list[ast.keyword], around: int
    ) -> str:
        if name == "otherwise":
            match value:
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Call(func=ast.Attribute(value=ast.Name(id="pl"), attr="when"), args=[test]),
                        attr="then",
                    ),
                    args=[then],
                ):
                    return _cases([(self.of(then), self.of(test)), (self.of(arguments[0]), "")])
                case _:
                    raise NoMathematics
        if name == "sum":
            over = any(keyword.arg == "axis" for keyword in keywords)
            sign = "<munder><mo>∑</mo><mtext>labels</mtext></munder>" if over else "<mo>∑</mo>"
            return f"{sign}{self.of(value, _PRODUCT)}"
        if name == "sqrt":
            return f"<msqrt><mrow>{self.of(value)}</mrow></msqrt>"
        if name == "abs":
            return _size(self.of(value))
        if name in ("log", "max") and not arguments:
            return f"<mi>{_FUNCTIONS.get(name, name)}</mi><mo>(</mo>{self.of(value)}<mo>)</mo>"
        if name in _PASSED_ON:
            return self.of(value, around)
        raise NoMathematics


class _Defined(ast.NodeTransformer):
    """Takes a value where it is defined, and leaves the question of where it is to the prose."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match self.generic_visit(node):
            case ast.Call(func=ast.Attribute(attr="where"), args=[_, value, ast.Attribute(attr="nan")]):
                return value
            case ast.expr() as changed:
                return changed
            case _:
                raise NoMathematics


class _Given(ast.NodeTransformer):
    """Puts what is given in the place of parameters."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)


def _text(name: str) -> str:
    return f"<mtext>{escape(name.strip('_').replace('_', ' '))}</mtext>"


def _row(markup: str, *, bracketed: bool) -> str:
    return f"<mrow><mo>(</mo>{markup}<mo>)</mo></mrow>" if bracketed else f"<mrow>{markup}</mrow>"


def _size(markup: str) -> str:
    bar = '<mo fence="true" stretchy="true">|</mo>'
    return f"<mrow>{bar}{markup}{bar}</mrow>"


def _cases(cases: list[tuple[str, str]]) -> str:
    rows = "".join(
        f"<mtr><mtd>{value}</mtd><mtd>{f'<mtext>if </mtext>{test}' if test else '<mtext>otherwise</mtext>'}</mtd></mtr>"
        for value, test in cases
    )
    return f"<mrow><mo>{{</mo><mtable columnalign='left'>{rows}</mtable></mrow>"
