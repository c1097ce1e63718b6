"""Commands on exports; what they need is imported when they run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from warpsmith.cli.shared_options import DEFAULT_URL, SERVICE, AsJson, Url


def export(
    jobs: Annotated[
        list[str],
        typer.Argument(help="Result folder, or id of a job; several for one table.", metavar="JOB..."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the export.")],
    form: Annotated[
        str,
        typer.Option(
            "--as",
            help="Format: c, cpp, torch, tvm-ffi, hf-kernel, sglang, flashinfer-bench, t4, or a table for an "
            "engine: vllm-config, sglang-config, hf-config.",
        ),
    ] = "c",
    name: Annotated[str, typer.Option(help="Name of the function; by default that of the entry.")] = "",
    other_device: Annotated[
        Literal["fallback", "error"],
        typer.Option(help="What another device than the tuned one gets: your own kernel, or an error."),
    ] = "fallback",
    table: Annotated[
        list[str] | None,
        typer.Option(help="`KEY=VALUE` of an engine's table, such as E=8; may be given again."),
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """A result in a form that a program uses, with dispatch over shapes and its evidence."""
    from warpsmith.extensions.exports.commands.command import export as run

    run(jobs, form, out, url, name, other_device, table)


def prove(
    command: Annotated[list[str], typer.Argument(help="Your own command, after `--`.")],
    export_: Annotated[Path, typer.Option("--export", help="Folder that `export` wrote.")],
    pairs: Annotated[int, typer.Option(help="Runs without and with it, at least 5.")] = 8,
    metric: Annotated[
        str, typer.Option(help="Expression with one group: a number in the output, instead of its seconds.")
    ] = "",
    more_is_better: Annotated[bool, typer.Option("--more-is-better", help="Of that number.")] = False,
    outputs: Annotated[
        Path | None, typer.Option(help="File that the command writes, to be compared.")
    ] = None,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of a .npy file.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Your own command with and without an export, in turns: the gain, its interval, equal outputs."""
    from warpsmith.extensions.exports.commands.prove import ProofSettings
    from warpsmith.extensions.exports.commands.prove_command import prove as run

    wanted = ProofSettings(export_, command, pairs, metric, more_is_better, outputs, rtol)
    raise typer.Exit(run(wanted, as_json))


def tables(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(help="Logs of vLLM, SGLang or AITER (`-`: stdin), or a model's config.json."),
    ] = None,
    tp: Annotated[int, typer.Option(min=1, help="Of a config.json: devices of a tensor-parallel group.")] = 1,
    ep: Annotated[int, typer.Option(min=1, help="Of these, devices that share the experts out.")] = 1,
    device: Annotated[str, typer.Option(help="Device of a config.json; by default this machine's.")] = "",
    engine: Annotated[Literal["any", "vllm", "sglang"], typer.Option(help="Whose tables.")] = "any",
    tune: Annotated[Path | None, typer.Option(help="Tune the tables, and write them to a folder.")] = None,
    check: Annotated[
        Path | None,
        typer.Option(help="Folder with tables: measure the rows; of a missing one, what others' rows gain."),
    ] = None,
    url: Annotated[
        str, typer.Option(envvar="WARPSMITH_URL", help="Service that runs it; else this machine.")
    ] = "",
    again: Annotated[bool, typer.Option("--again", help="Tune anew what was tuned before.")] = False,
    write: Annotated[Path | None, typer.Option(help="Folder for jobs that tune the tables.")] = None,
    kernel: Annotated[Path | None, typer.Option(help="The engine's file; else an installed one's.")] = None,
    hidden: Annotated[int, typer.Option(min=0, help="With a log: the model's hidden size.")] = 0,
    top_k: Annotated[int, typer.Option(min=0, help="With a log: experts of a token.")] = 0,
    known: Annotated[Path | None, typer.Option(help="An engine's tables, as hints.")] = None,
    skew: Annotated[float, typer.Option(min=0, max=4, help="Uneven routing; 0: all experts alike.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Tuning tables that an engine misses, by its log, or asks for, by a model's config.json: named, tuned,
    checked.

    Exit code 1 if there is none, or a job did not end well.
    """
    from warpsmith.extensions.exports.commands.table_runs import TableRun
    from warpsmith.extensions.exports.commands.tables_command import Asked
    from warpsmith.extensions.exports.commands.tables_command import tables as run

    wanted = TableRun(url, tune, again) if tune or check else None
    asked = Asked(tp, ep, device, write, kernel, engine, hidden, top_k, skew, known, check, wanted)
    raise typer.Exit(run(inputs or (), asked, as_json))


def add(app: typer.Typer) -> None:
    """Add the commands on exports."""
    for command in (export, prove, tables):
        app.command(rich_help_panel=SERVICE)(command)
