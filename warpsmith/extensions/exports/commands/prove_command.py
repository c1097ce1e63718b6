"""`prove`: the user's own command with and without an export."""

import json
from pathlib import Path

from warpsmith.cli.output import echo
from warpsmith.domain.templates.outcome import Verdict
from warpsmith.extensions.exports.commands.prove import Proof, ProofSettings
from warpsmith.extensions.exports.commands.prove import prove as run


def prove(wanted: ProofSettings, as_json: bool) -> int:
    """Run, say what came of it, and write `prove.json` into the export.

    Returns:
        1 if it is slower with the export, or outputs differ; else 0.

    Raises:
        InvalidInput: the command failed, or an option is of no use.
    """
    found = run(wanted, lambda line: echo(line, err=True))
    path = Path(wanted.export) / "prove.json"
    shown = found.model_dump(mode="json")
    path.write_text(json.dumps(shown, indent=1) + "\n", encoding="utf-8")
    echo(json.dumps(shown) if as_json else _words(found))
    echo(f"wrote {path}", err=True)
    return int(found.verdict is Verdict.SLOWER or found.outputs not in ("equal", "not compared"))


def _words(found: Proof) -> str:
    s = found.speedup
    return (
        f"{s.estimate:.3f}x [{s.low:.3f}, {s.high:.3f}] with the export, by {found.metric}, over "
        f"{len(found.without)} pairs, noise {found.aa_width:.1%}: {found.verdict.value}; "
        f"outputs: {found.outputs}"
    )
