"""Expressions of launches and constraints as C, in 64-bit integers."""

import ast
from collections.abc import Mapping

from warpsmith.domain.expressions import Expression, Value, dotted_name
from warpsmith.errors import ExpressionError

_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Not: "!",
}
_CALLS = {ast.FloorDiv: "ws_floor_div", ast.Mod: "ws_floor_mod"}
_WITH_STATUS = ("ceil_div", "round_up")
_TWO = ("min", "max", "gcd")
_ONE = ("abs", "next_pow2")


def c_text(expression: Expression, names: Mapping[str, Value]) -> str:
    """An expression as C; dimension `n` is the parameter `dim_n`, and `bad` is set where Python raises.

    Args:
        names: other names in the expression, with their values.

    Raises:
        ExpressionError: it has fractions, logarithms or texts that depend on a dimension.
    """
    return _Writer(expression, names).text(expression.tree)


class _Writer:
    def __init__(self, whole: Expression, names: Mapping[str, Value]) -> None:
        self._whole = whole
        self._names = names

    def text(self, node: ast.expr) -> str:
        part = Expression(ast.unparse(node))
        if not isinstance(node, ast.Tuple | ast.List) and part.names <= self._names.keys():
            return self._constant(part.evaluate(self._names))
        match node:
            case ast.Name() | ast.Attribute():
                return f"dim_{dotted_name(node)}"
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                return f"({_OPERATORS[type(node.op)]}{self.text(node.operand)})"
            case ast.BoolOp():
                return self._either(node)
            case ast.Compare():
                return self._compared(node)
            case ast.IfExp():
                return f"({self.text(node.test)} ? {self.text(node.body)} : {self.text(node.orelse)})"
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._called(name, [self.text(a) for a in arguments])
        raise self._refused()

    def _constant(self, value: Value) -> str:
        if not isinstance(value, int) or abs(value) >= 2**63:
            raise self._refused()
        return f"INT64_C({int(value)})" if value >= 0 else f"(-INT64_C({-value}))"

    def _binary(self, node: ast.BinOp) -> str:
        left, right = self.text(node.left), self.text(node.right)
        if type(node.op) in _CALLS:
            return f"{_CALLS[type(node.op)]}({left}, {right}, &bad)"
        if type(node.op) not in _OPERATORS:
            raise self._refused()
        return f"({left} {_OPERATORS[type(node.op)]} {right})"

    def _either(self, node: ast.BoolOp) -> str:
        """Python's `and` and `or` are one of their operands."""
        *before, text = [self.text(v) for v in node.values]
        for value in reversed(before):
            text = (
                f"({value} ? {text} : {value})"
                if isinstance(node.op, ast.And)
                else f"({value} ? {value} : {text})"
            )
        return text

    def _compared(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        parts = [self._pair(a, op, b) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        return f"({' && '.join(parts)})"

    def _pair(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List):
                raise self._refused()
            found = " || ".join(f"{self.text(left)} == {self.text(e)}" for e in right.elts) or "0"
            return f"({found})" if isinstance(op, ast.In) else f"(!({found}))"
        return f"({self.text(left)} {_OPERATORS[type(op)]} {self.text(right)})"

    def _called(self, name: str, arguments: list[str]) -> str:
        if name in _WITH_STATUS and len(arguments) == 2:
            return f"ws_{name}({', '.join(arguments)}, &bad)"
        if name in _ONE and len(arguments) == 1:
            return f"ws_{name}({arguments[0]})"
        if name in _TWO and len(arguments) >= 2:
            text = arguments[0]
            for other in arguments[1:]:
                text = f"ws_{name}({text}, {other})"
            return text
        raise self._refused()

    def _refused(self) -> ExpressionError:
        words = "C has no such whole-number form; write it with + - * // %, or use dispatch.py"
        return ExpressionError(self._whole.text, words)
