"""The peer that benches of the search run in an environment of its own."""

from tests.benchmarks.test_smoke import IN_ITS_OWN_ENVIRONMENT, ROOT


def test_the_peer_is_a_program_of_plain_python() -> None:
    path = ROOT / "benchmarks" / f"{IN_ITS_OWN_ENVIRONMENT.replace('.', '/')}.py"
    assert compile(path.read_text(), path.name, "exec")
