"""Names of a job's dimensions: what host code and kernel call the extents of their tensors."""

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from warpsmith.domain.reserved_words import reserved
from warpsmith.extensions.triton.jobs.arithmetic import expression_text, names_of, with_names
from warpsmith.extensions.triton.jobs.host_launch import TritonLaunch
from warpsmith.extensions.triton.jobs.host_values import MULTIPROCESSORS
from warpsmith.extensions.triton.jobs.pruning import replaced

_META = "META."
_DEEPEST = 12


@dataclass
class Dimensions:
    """Expressions of a job, over its dimensions and parameters."""

    launch: TritonLaunch | None
    taken: Collection[str]
    """Names that no dimension may have: the kernel's `tl.constexpr` parameters and launch options."""
    tunables: Collection[str] = ()
    names: list[str] = field(default_factory=list)
    """The dimensions so far."""
    scalars: dict[str, ast.expr] = field(default_factory=dict)
    """Values of the kernel's scalars, over dimensions."""
    constexprs: dict[str, ast.expr] = field(default_factory=dict)
    """Values of the kernel's `tl.constexpr` parameters that are arithmetic."""
    pointers: Collection[str] = ()
    _atoms: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, free: bool = True) -> str:
        """A dimension of this name, or one like it if the name cannot be had.

        The same name again is the same dimension.

        Args:
            free: False if one of that name that exists is another dimension.
        """
        word = re.sub(r"\W+", "_", name).strip("_") or "size"
        word = word if word[0].isalpha() else f"size_{word}"
        found = word
        for trial in (word, word.lower(), f"{word}_size", *(f"{word}_{n}" for n in range(2, 100))):
            found = trial
            if trial not in self.taken and not reserved(trial) and (free or trial not in self.names):
                break
        if found not in self.names:
            self.names.append(found)
        return found

    def claim(self, name: str, value: ast.expr) -> None:
        """Call the extent that is passed for a scalar by the scalar's name."""
        found = self._expanded(value)
        if (
            isinstance(found, ast.Name)
            and not found.id.startswith((_META, "device."))
            and found.id not in self._atoms
        ):
            self._atoms[found.id] = self.add(name, free=False)

    def of_host(self, value: ast.expr | None) -> str | None:
        """The text of a value of host code; None if a part of it has no place in a job."""
        found = None if value is None else self.tree_of_host(value)
        if found is None or any(isinstance(node, ast.Tuple) for node in ast.walk(found)):
            return None
        return expression_text(found)

    def tree_of_host(self, value: ast.expr) -> ast.expr | None:
        """A value of host code over dimensions and parameters; None if a part of it has no place in a job."""
        found = self._expanded(value)
        values: dict[str, ast.expr] = {}
        for name in dict.fromkeys(names_of(found)):
            if name.startswith(_META):
                part = self._of_parameter(name.removeprefix(_META))
                if part is None:
                    return None
                values[name] = part
            elif name not in _functions(found) and name != MULTIPROCESSORS:
                values[name] = ast.Name(self._dimension(name), ast.Load())
        return with_names(found, values)

    def of_kernel(self, tree: ast.expr | None) -> ast.expr | None:
        """An expression over the kernel's parameters as one over dimensions; None if it is none."""
        if tree is None:
            return None
        values: dict[str, ast.expr] = {}
        for name in dict.fromkeys(names_of(tree)):
            part = self._of_parameter(name)
            if part is not None:
                values[name] = part
            elif name not in _functions(tree) and name not in self.pointers:
                return None
        found = replaced(tree, values)
        return None if set(names_of(found)) & set(self.pointers) - set(self.names) else found

    def constant(self, value: object) -> ast.Constant | None:
        """The constant that a value of host code is; None for others."""
        found = self._expanded(value) if isinstance(value, ast.expr) else None
        return found if isinstance(found, ast.Constant) else None

    def _of_parameter(self, name: str) -> ast.expr | None:
        if name in self.tunables:
            return ast.Name(name, ast.Load())
        return self.constexprs.get(name, self.scalars.get(name))

    def _dimension(self, atom: str) -> str:
        if atom not in self._atoms:
            called = self.launch.scope.called.get(atom, "") if self.launch else ""
            text = (
                atom.replace(".shape[-1]", "_last").replace(".shape", "_size").replace(".numel()", "_numel")
            )
            self._atoms[atom] = self.add(called or text, free=False)
        return self._atoms[atom]

    def _expanded(self, value: ast.expr) -> ast.expr:
        """The value with local names followed, up to those that the launch passes to the kernel."""
        if self.launch is None:
            return value
        scope = self.launch.scope
        passed = {
            v.id: n for n, v in self.launch.given.items() if isinstance(v, ast.Name) and n in self.taken
        }
        for depth in range(_DEEPEST):
            values: dict[str, ast.expr] = {}
            for name in names_of(value):
                word = scope.equal(name)
                # A value that is passed is not followed to itself.
                whole = depth == 0 and isinstance(value, ast.Name)
                if word in passed and not whole and passed[word] in self._known():
                    values[name] = ast.Name(f"{_META}{passed[word]}", ast.Load())
                elif word in scope.locals:
                    values[name] = scope.locals[word]
                elif word != name:
                    values[name] = ast.Name(word, ast.Load())
            if not values:
                break
            value = with_names(value, values)
        return value

    def _known(self) -> Collection[str]:
        return {*self.tunables, *self.constexprs}


def _functions(tree: ast.expr) -> set[str]:
    return {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
