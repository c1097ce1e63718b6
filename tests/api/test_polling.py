"""What clients ask for again and again stays cheap."""

from sqlalchemy import event

from testbed.api_service import Service
from tests.api.jobs import body


def test_a_poll_is_one_statement(service: Service) -> None:
    path = f"/v1/jobs/{service.http.post('/v1/jobs', json=body()).json()['id']}"
    assert service.http.get(path).json()["state"] == "queued"  # and the key is known now
    statements: list[str] = []
    engine = service.database.engine

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        assert service.http.get(path).status_code == 200
    finally:
        event.remove(engine, "before_cursor_execute", note)
    # On SQLite a transaction is begun by a statement of ours.
    assert len([s for s in statements if not s.startswith("BEGIN")]) == 1, statements
