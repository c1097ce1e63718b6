"""The command line."""


def main(arguments: list[str] | None = None) -> None:
    """Entry point, see `warpsmith.cli.app`; imported late, since its commands import this room."""
    from warpsmith.cli.app import main as run

    run(arguments)
