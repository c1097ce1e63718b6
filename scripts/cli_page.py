"""Write `docs/cli.md`, the page of every command and option: `python scripts/cli_page.py`."""

import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "cli.md"
WIDTH = 120
HEAD = """# The command line

Every command with its arguments and options, as `--help` shows them; `scripts/cli_page.py` writes this page.
`warpsmith --install-completion` makes bash, zsh or fish complete them; `--show-completion` prints it.

Exit codes: 0 well; 1 the job failed or was cancelled; 2 wrong input, or an unusable data folder; 3 no service
can be reached, or something is missing on this machine.

"""


def page() -> str:
    """The page as the program stands.

    Raises:
        subprocess.CalledProcessError: Typer cannot import the program.
    """
    command = ["-m", "typer", "warpsmith.cli.app", "utils", "docs", "--name", "warpsmith"]
    made = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = made.stdout.replace("&#x27;", "'").rstrip().splitlines()
    return HEAD + "\n".join("#" + line if line.startswith("#") else wrapped(line) for line in lines) + "\n"


def wrapped(line: str) -> str:
    """A line within the width of documents; an item of a list goes on under its text."""
    if len(line) <= WIDTH:
        return line
    under = "  " if line.startswith("* ") else ""
    return textwrap.fill(line, WIDTH, subsequent_indent=under, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
