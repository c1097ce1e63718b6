"""Runs the code cells of a notebook in order in this process, and prints what each one shows, as JSON.

    python -m tests.e2e.notebook_cells NOTEBOOK

It stands for a notebook's own kernel, which would bring 27 packages into the environment. Cells share one
namespace, and the value of a last line is shown as HTML if it has that. Magics and `await` are not known.
"""

import ast
import contextlib
import io
import json
import linecache
import sys
from pathlib import Path
from typing import Any


def run_cell(source: str, names: dict[str, Any]) -> str:
    """Run one cell; what it printed, and then its last value."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body.pop()
    value, printed = None, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(_compiled(tree, source), names)
        if isinstance(last, ast.Expr):
            value = eval(_compiled(ast.Expression(last.value), source), names)
    return printed.getvalue() + _shown(value)


def _compiled(tree: ast.Module | ast.Expression, source: str) -> Any:
    # A function of a cell is sent as its source, which Python reads through this cache, as in a notebook.
    name = f"<cell {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return compile(tree, name, "eval" if isinstance(tree, ast.Expression) else "exec")


def _shown(value: object) -> str:
    if value is None:
        return ""
    html = getattr(value, "_repr_html_", None)
    return str(html()) if html else repr(value)


def main() -> int:
    """Run a notebook; a cell that fails ends it, as an exception."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = json.loads(Path(sys.argv[1]).read_text())["cells"]
    shown = {c["id"]: run_cell("".join(c["source"]), names) for c in cells if c["cell_type"] == "code"}
    print(json.dumps(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
