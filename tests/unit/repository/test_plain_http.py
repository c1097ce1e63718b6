"""Clients of servers on this machine do not read whom to trust, which is most of what a request costs."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MAKING = {"get", "post", "put", "patch", "delete", "request", "stream", "Client", "AsyncClient"}


def clients(path: Path) -> list[tuple[str, bool]]:
    """Calls that make a client, and whether the call says whom it trusts or has another transport."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"httpx2.{name}" for name in MAKING}:
            cheap = bool({"verify", "transport"} & {k.arg for k in node.keywords})
            found.append((f"{path.relative_to(ROOT)}:{node.lineno}", cheap))
    return found


def test_no_client_of_a_test_reads_whom_to_trust() -> None:
    files = [p for folder in ("tests", "testbed") for p in (ROOT / folder).rglob("*.py")]
    found = [client for path in files if "import httpx2" in path.read_text() for client in clients(path)]
    assert len(found) > 10
    assert [where for where, cheap in found if not cheap] == []
