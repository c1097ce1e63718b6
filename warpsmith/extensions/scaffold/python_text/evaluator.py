"""Evaluates expressions and statements of a Python text from its syntax tree; nothing of the text is run.

The language is literals, arithmetic, comprehensions, functions such as `range` and `itertools.product`, and
functions of the text whose bodies are assignments, `if`, loops, changes of lists and mappings, and `return`.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from warpsmith.extensions.scaffold.python_text.operations import (
    COMPARISONS,
    FUNCTIONS,
    LAZY,
    METHODS,
    OPERATORS,
    UNARY,
)

Names = dict[str, Any]
"""Values of the names that a part of the text sees."""
_MOST_REPEATS = 8
_WIDE = re.compile(r"\d{3}|\*")
"""Width of a formatted text that may be too large."""
_TEXT_ITEM = 50
"""Characters of a text that count as one element of a list."""
_MOST_BITS = 64
_NO_VALUE = (TypeError, ValueError, KeyError, IndexError, ArithmeticError, AttributeError)


class NotLiteral(Exception):
    """A part of a text that is not evaluated, with its line and the reason."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(f"line {line}: {words}")


class TooManySteps(NotLiteral):
    """A part of a text that takes longer than an evaluation may."""


class Returned(Exception):
    """Ends the body of a function of the text, and holds its result."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _NextRound(Exception):
    """Ends one round of a loop of the text."""


class _LastRound(Exception):
    """Ends a loop of the text."""


class Evaluator:
    """Values of the expressions of a text. Methods `_of_NODE` evaluate expressions, `_do_NODE` statements.

    Args:
        functions: functions of the text that it may call, by name.
    """

    most_steps: ClassVar[int] = 200_000
    """Limit on the parts that one evaluation visits."""
    most_items: ClassVar[int] = 10_000
    """Limit on the elements of one list."""
    deepest: ClassVar[int] = 60
    """Limit on the depth of expressions."""
    call_depth: ClassVar[int] = 3
    """Depth that a call of a function of the text adds to that of its expression."""

    def __init__(self, functions: Mapping[str, ast.FunctionDef]) -> None:
        self.functions = functions
        self.steps = 0
        self.last_step = self.most_steps
        self.depth = 0

    def value(self, node: ast.expr, scope: Names) -> Any:
        """The value of an expression.

        Raises:
            NotLiteral: a part of it is outside of the language, has no value, or exceeds a limit.
        """
        self.depth += 1
        try:
            self.count(node)
            if self.depth > self.deepest:
                raise NotLiteral(node.lineno, "is nested too deeply")
            return self._reader("_of", node)(node, scope)
        except _NO_VALUE as exc:
            raise NotLiteral(node.lineno, f"{shown(node)} has no value") from exc
        finally:
            self.depth -= 1

    def count(self, node: ast.expr | ast.stmt) -> None:
        """Count a step.

        Raises:
            NotLiteral: there were too many.
        """
        self.steps += 1
        if self.steps > self.last_step:
            raise TooManySteps(node.lineno, "takes too many steps")

    def _reader(self, prefix: str, node: ast.stmt | ast.expr) -> Callable[[Any, Names], Any]:
        found: Callable[[Any, Names], Any] | None = getattr(self, f"{prefix}_{type(node).__name__}", None)
        return self.unread if found is None else found

    def unread(self, node: ast.stmt | ast.expr, scope: Names) -> Any:
        """Refuse a part outside of the language."""
        raise NotLiteral(node.lineno, f"{shown(node)} is not evaluated")

    # Expressions

    def _of_Constant(self, node: ast.Constant, scope: Names) -> Any:
        return node.value

    def _of_Name(self, node: ast.Name, scope: Names) -> Any:
        if node.id not in scope:
            raise NotLiteral(node.lineno, f"{node.id} is not known here")
        return scope[node.id]

    def _of_List(self, node: ast.List | ast.Tuple | ast.Set, scope: Names) -> Any:
        found = self.elements(node.elts, scope)
        if isinstance(node, ast.List):
            return found
        return tuple(found) if isinstance(node, ast.Tuple) else set(found)

    _of_Tuple = _of_Set = _of_List

    def _of_Dict(self, node: ast.Dict, scope: Names) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            given = self.value(value, scope)
            found |= self.mapping(given) if key is None else {self.value(key, scope): given}
        return found

    def _of_BinOp(self, node: ast.BinOp, scope: Names) -> Any:
        return self.binary(node.op, self.value(node.left, scope), self.value(node.right, scope), node)

    def _of_UnaryOp(self, node: ast.UnaryOp, scope: Names) -> Any:
        return UNARY.get(type(node.op), lambda a: a)(self.number(self.value(node.operand, scope)))

    def _of_BoolOp(self, node: ast.BoolOp, scope: Names) -> Any:
        found: Any = None
        for value in node.values:
            found = self.value(value, scope)
            if bool(self.number(found)) is isinstance(node.op, ast.Or):
                break
        return found

    def _of_Compare(self, node: ast.Compare, scope: Names) -> Any:
        left = self.number(self.value(node.left, scope))
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.number(self.value(other, scope))
            self._weigh([left, right], node)
            if not COMPARISONS[type(op)](left, right):
                return False
            left = right
        return True

    def _of_IfExp(self, node: ast.IfExp, scope: Names) -> Any:
        return self.value(node.body if self.test(node.test, scope) else node.orelse, scope)

    def _of_ListComp(self, node: ast.ListComp | ast.GeneratorExp, scope: Names) -> Any:
        return [self.value(node.elt, inner) for inner in self.rounds(node.generators, scope)]

    _of_GeneratorExp = _of_ListComp

    def _of_DictComp(self, node: ast.DictComp, scope: Names) -> Any:
        rounds = self.rounds(node.generators, scope)
        return {self.value(node.key, inner): self.value(node.value, inner) for inner in rounds}

    def _of_JoinedStr(self, node: ast.JoinedStr, scope: Names) -> Any:
        found = "".join(self.value(part, scope) for part in node.values)
        self._limited(found, node)
        return found

    def _of_FormattedValue(self, node: ast.FormattedValue, scope: Names) -> Any:
        found = self.number(self.value(node.value, scope))
        form = "" if node.format_spec is None else self.value(node.format_spec, scope)
        if not isinstance(found, int | float | str) or node.conversion > 0 or _WIDE.search(form):
            self.unread(node, scope)
        return format(found, form)

    def _of_Subscript(self, node: ast.Subscript, scope: Names) -> Any:
        return self.value(node.value, scope)[self.value(node.slice, scope)]

    def _of_Slice(self, node: ast.Slice, scope: Names) -> Any:
        bounds = (node.lower, node.upper, node.step)
        return slice(*(None if bound is None else self.value(bound, scope) for bound in bounds))

    def _of_Call(self, node: ast.Call, scope: Names) -> Any:
        name = called_name(node)
        arguments = self.elements(node.args, scope)
        keywords: Names = {}
        for keyword in node.keywords:
            given = self.value(keyword.value, scope)
            keywords |= self.mapping(given) if keyword.arg is None else {keyword.arg: given}
        if isinstance(node.func, ast.Name):
            local = scope.get(name)
            known = local if isinstance(local, ast.FunctionDef) else self.functions.get(name)
            if known is not None:
                return self.called(known, arguments, keywords, scope)
        owner = None
        if isinstance(node.func, ast.Attribute) and self.is_method(name):
            owner = self.value(node.func.value, scope)
        return self.function(node, owner, arguments, keywords)

    # Parts that texts of a kind may read in another way

    def test(self, node: ast.expr, scope: Names) -> bool:
        """The truth of a condition."""
        return bool(self.number(self.value(node, scope)))

    def spread(self, value: Any) -> Iterable[Any]:
        """The elements of a value behind `*`."""
        return list(value)

    def mapping(self, value: Any) -> Mapping[Any, Any]:
        """The items of a value behind `**`."""
        return dict(value)

    def number(self, value: Any) -> Any:
        """The number that a value holds; other values as they are."""
        return value

    def is_method(self, name: str) -> bool:
        """True if the value before the name of a function matters for its result."""
        return any(name in names for names in METHODS.values())

    def outer(self, scope: Names) -> Names:
        """The names that a function of the text sees beside its parameters, from those of its caller."""
        return {}

    def named(self, name: str, value: Any) -> Any:
        """The value that a name has after this one is assigned to it."""
        return value

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.expr) -> Any:
        """The value of an operation.

        Raises:
            NotLiteral: it has none, or one that exceeds a limit.
        """
        if (problem := self._oversized(op, left, right)) or type(op) not in OPERATORS:
            raise NotLiteral(node.lineno, problem or "has an operator that is not evaluated")
        try:
            found = OPERATORS[type(op)](left, right)
        except (TypeError, ValueError, ArithmeticError) as exc:
            raise NotLiteral(node.lineno, "has no value") from exc
        return self._bounded(found, node)

    def _bounded(self, found: Any, node: ast.expr) -> Any:
        if isinstance(found, int) and abs(found) > 2**_MOST_BITS:
            raise NotLiteral(node.lineno, "is too large a number")
        if isinstance(found, list | tuple | str | bytes):
            self._limited(found, node)
        return found

    def _weigh(self, values: Iterable[Any], node: ast.expr) -> None:
        """Count all elements of values, those of nested lists too, as steps."""
        waiting = list(values)
        while waiting:
            item = waiting.pop()
            if isinstance(item, list | tuple | set | dict):
                self.steps += len(item)
                self.count(node)
                waiting += item.values() if isinstance(item, dict) else item

    def function(self, node: ast.Call, owner: Any, arguments: Sequence[Any], keywords: Names) -> Any:
        """The value of a call of a function that the text does not define.

        Args:
            owner: value of the expression before the function's name; None without one.

        Raises:
            NotLiteral: the function is none of the language.
        """
        name = called_name(node)
        self._weigh([owner, *arguments], node)
        if name in METHODS.get(type(owner), ()):
            found = getattr(owner, name)(*arguments, **keywords)
            self._limited(owner, node)
            return found
        if name not in FUNCTIONS or not 0 <= keywords.get("repeat", 1) <= _MOST_REPEATS:
            return self.unread(node, {})
        found = FUNCTIONS[name](*arguments, **keywords)
        return list(self.items(found, node)) if isinstance(found, LAZY) else self._bounded(found, node)

    # Calls and statements

    def elements(self, nodes: Iterable[ast.expr], scope: Names) -> list[Any]:
        """The values of a list's elements."""
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += self.spread(self.value(node.value, scope))
                self._limited(found, node)
            else:
                found.append(self.value(node, scope))
        return found

    def called(
        self, function: ast.FunctionDef, arguments: Sequence[Any], keywords: Mapping[str, Any], scope: Names
    ) -> Any:
        """The result of a function of the text, called from a part that sees the names of a scope."""
        names = [a.arg for a in function.args.args]
        outer = self.outer(scope)
        given = {n: v for n, v in outer.items() if n not in names}
        defaults = function.args.defaults
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=False):
            given[name] = self.named(name, self.value(default, outer))
        given |= dict(zip(names, arguments, strict=False))
        return self.result(function, given | {k: v for k, v in keywords.items() if k in names})

    def result(self, function: ast.FunctionDef, scope: Names) -> Any:
        """The result of a function of the text whose parameters have their values in a scope."""
        self.depth += self.call_depth
        try:
            self.run(function.body, scope)
        except Returned as found:
            return found.value
        finally:
            self.depth -= self.call_depth
        return None

    def run(self, body: Iterable[ast.stmt], scope: Names) -> None:
        """Evaluate statements in their order.

        Raises:
            NotLiteral: a statement is outside of the language.
            Returned: a statement returns.
        """
        for statement in body:
            self.statement(statement, scope)

    def statement(self, node: ast.stmt, scope: Names) -> None:
        """Evaluate one statement."""
        self.count(node)
        try:
            self._reader("_do", node)(node, scope)
        except _NO_VALUE as exc:
            raise NotLiteral(node.lineno, f"{shown(node)} has no value") from exc

    def _do_Return(self, node: ast.Return, scope: Names) -> None:
        raise Returned(None if node.value is None else self.value(node.value, scope))

    def _do_Assign(self, node: ast.Assign, scope: Names) -> None:
        found = self.value(node.value, scope)
        for target in node.targets:
            self.assign(target, found, scope)

    def _do_AnnAssign(self, node: ast.AnnAssign, scope: Names) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, scope), scope)

    def _do_AugAssign(self, node: ast.AugAssign, scope: Names) -> None:
        left, right = self.value(node.target, scope), self.value(node.value, scope)
        self.assign(node.target, self.binary(node.op, left, right, node.value), scope)

    def _do_Delete(self, node: ast.Delete, scope: Names) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Subscript):
                self.unread(node, scope)
            else:
                del self.value(target.value, scope)[self.value(target.slice, scope)]

    def _do_If(self, node: ast.If, scope: Names) -> None:
        self.run(node.body if self.test(node.test, scope) else node.orelse, scope)

    def _do_For(self, node: ast.For, scope: Names) -> None:
        for item in self.items(self.value(node.iter, scope), node.iter):
            self.assign(node.target, item, scope)
            if not self._goes_on(node.body, scope):
                return
        self.run(node.orelse, scope)

    def _do_While(self, node: ast.While, scope: Names) -> None:
        while self.test(node.test, scope):
            if not self._goes_on(node.body, scope):
                return
        self.run(node.orelse, scope)

    def _goes_on(self, body: Iterable[ast.stmt], scope: Names) -> bool:
        """Evaluate one round of a loop; False if it ends the loop."""
        try:
            self.run(body, scope)
        except _NextRound:
            pass
        except _LastRound:
            return False
        return True

    def _do_Expr(self, node: ast.Expr, scope: Names) -> None:
        self.value(node.value, scope)

    def _do_Pass(self, node: ast.Pass, scope: Names) -> None:
        pass

    def _do_Continue(self, node: ast.Continue, scope: Names) -> None:
        raise _NextRound

    def _do_Break(self, node: ast.Break, scope: Names) -> None:
        raise _LastRound

    def assign(self, target: ast.expr, value: Any, scope: Names) -> None:
        """Give a value to a name, an element of a list or mapping, or its elements to several names.

        Raises:
            NotLiteral: the target is none of these.
        """
        if isinstance(target, ast.Subscript):
            self.value(target.value, scope)[self.value(target.slice, scope)] = value
        elif isinstance(target, ast.Tuple | ast.List):
            for part, item in zip(target.elts, value, strict=True):
                self.assign(part, item, scope)
        else:
            for name, item in self._bound(target, value):
                scope[name] = self.named(name, item)

    def items(self, found: Iterable[Any], node: ast.expr) -> Iterator[Any]:
        """The elements of a value that is counted through, up to the limit."""
        for count, item in enumerate(found):
            if count >= self.most_items:
                raise NotLiteral(node.lineno, f"has more than {self.most_items} elements")
            yield item

    def rounds(self, generators: Sequence[ast.comprehension], scope: Names) -> Iterator[Names]:
        """The names that each round of a comprehension sees."""
        if not generators:
            yield scope
            return
        first, *rest = generators
        for item in self.items(self.value(first.iter, scope), first.iter):
            self.count(first.iter)
            inner = scope | dict(self._bound(first.target, item))
            if all(self.number(self.value(test, inner)) for test in first.ifs):
                yield from self.rounds(rest, inner)

    def _bound(self, target: ast.expr, value: Any) -> Iterator[tuple[str, Any]]:
        match target:
            case ast.Name(id=name):
                yield name, value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part, item in zip(parts, value, strict=True):
                    yield from self._bound(part, item)
            case _:
                self.unread(target, {})

    def _oversized(self, op: ast.operator, left: Any, right: Any) -> str:
        """The reason for which an operation is not even tried; empty if there is none."""
        if isinstance(op, ast.Pow | ast.LShift):
            return "" if isinstance(right, int) and abs(right) <= _MOST_BITS else "has too large an exponent"
        if isinstance(op, ast.Mod) and isinstance(left, str):
            return "formats a wide text" if _WIDE.search(left) else ""
        if isinstance(op, ast.Mult):
            lengths = [len(x) for x in (left, right) if isinstance(x, str | bytes | list | tuple)]
            counts = [abs(x) for x in (left, right) if isinstance(x, int)]
            if any(length * count > self.most_items for length in lengths for count in counts):
                return f"has more than {self.most_items} elements"
        return ""

    def _limited(self, found: Any, node: ast.expr | ast.stmt) -> None:
        if len(found) > self.most_items * (_TEXT_ITEM if isinstance(found, str | bytes) else 1):
            raise NotLiteral(node.lineno, f"has more than {self.most_items} elements")


def called_name(node: ast.Call) -> str:
    """Last part of the name of a called function; empty if the function has none."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def shown(node: ast.AST) -> str:
    """A part of a text on one line, cut short for a message."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
