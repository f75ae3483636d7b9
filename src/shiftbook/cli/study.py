"""`shiftbook study`: questions about prompts that labelled data can answer, without any model."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from shiftbook.cli.options import Json, Verbose
from shiftbook.cli.output import data as print_data
from shiftbook.cli.output import note, table
from shiftbook.errors import BadInput
from shiftbook.messages import Json as JsonValue
from shiftbook.studies.recall import Options, study_recall

STUDIES = ("recall",)


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help=f"Which study: {', '.join(STUDIES)}.")
    ],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="The folder of BEAM or LoCoMo as published, or one that holds both as `beam` and `locomo`.",
        ),
    ],
    cap: Annotated[
        list[int] | None,
        typer.Option(
            "--cap",
            metavar="TOKENS",
            show_default=False,
            help="A cap to study, more than once for several; BEAM 22000, LoCoMo 4000.",
        ),
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="NAME",
            show_default=False,
            help="A size, more than once for several: 100K, 500K, 1M of BEAM; locomo. All by default.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            show_default=False,
            help="A policy, or recall-only, more than once for several; all of them by default.",
        ),
    ] = None,
    meter: Annotated[
        str,
        typer.Option(
            "--meter", metavar="NAME", help="chars (a quarter of the characters and 3) or o200k (our own)."
        ),
    ] = "chars",
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure what a capped prompt holds. `recall`: of the messages that answer a question.

    Rule *whole*: the message's full text is in the prompt; *cut*: its first 400 characters. Of each question:
    any of its evidence, all of it, the mean share. `recall-only` is the ranking alone, packed into the cap.
    Constants were chosen on the half named `tuned`; the other is `untouched`.
    """
    if name not in STUDIES:
        raise BadInput(f"There is no study {name!r}; choose of: {', '.join(STUDIES)}.")
    options = Options(tuple(cap or ()), tuple(size or ()), tuple(policy or ()), meter)
    line = shlex.join(["shiftbook", *sys.argv[1:]])
    result = study_recall(data, options, line, note if verbose else lambda _line: None)
    if json:
        print_data(result)
        return
    asked = result["questions"]
    note(
        f"{result['chats']} chats, {asked['asked']} questions, {asked['skipped']} without usable labels, "
        f"{asked['mended']} with labels from the audit; tokens by {result['meter']}"
    )
    table(COLUMNS, list(_lines(result["table"])), right=COLUMNS[5:])


COLUMNS = (
    "source",
    "size",
    "policy",
    "cap",
    "questions",
    "n",
    "any",
    "all",
    "95%",
    "mean",
    "cut all",
    "mean ",
)


def _lines(figures: Mapping[str, JsonValue]) -> list[tuple[str, ...]]:
    """A line for all questions of a policy and cap, one for each part, one for each type."""
    lines: list[tuple[str, ...]] = []
    for source, sizes in figures.items():
        for size, policies in sizes.items():
            for policy, caps in policies.items():
                for cap, found in caps.items():
                    place = (source, size, policy, f"{int(cap):,}")
                    lines.append((*place, "all", *_cells(found)))
                    for part, inner in found["by_part"].items():
                        lines.append(("", "", "", "", part, *_cells(inner)))
                    for kind, inner in found["by_type"].items():
                        lines.append(("", "", "", "", kind.replace("_", " "), *_cells(inner)))
    return lines


def _cells(found: Mapping[str, JsonValue]) -> tuple[str, ...]:
    low, high = found["interval"]["all"]
    cut = found["cut"]
    shares = (found["any"], found["all"])
    return (
        str(found["n"]),
        *(f"{share:.3f}" for share in shares),
        f"{low:.2f}-{high:.2f}",
        f"{found['mean']:.3f}",
        f"{cut['all']:.3f}",
        f"{cut['mean']:.3f}",
    )
