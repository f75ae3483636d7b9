"""`shiftbook study`: questions about prompts that recorded data can answer, without any model."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from shiftbook.cli.options import Json, Verbose
from shiftbook.cli.output import data as print_data
from shiftbook.cli.output import note, table, write_page
from shiftbook.cli.words import count
from shiftbook.errors import BadInput
from shiftbook.messages import Json as JsonValue
from shiftbook.studies import boundary, recall
from shiftbook.studies.told import BOUNDARY_COLUMNS, boundary_rows, page_of

STUDIES = ("recall", "boundary")


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help=f"Which study: {', '.join(STUDIES)}.")
    ],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="recall: the folder of LoCoMo or of BEAM with its index, or one that holds both as `beam` "
            "and `locomo`. boundary: a recorded session, or a folder of them.",
        ),
    ],
    cap: Annotated[
        list[int] | None,
        typer.Option(
            "--cap",
            metavar="TOKENS",
            show_default=False,
            help="A cap to study, more than once for several; BEAM 22000, LoCoMo 4000, boundary 3000 and "
            "20000.",
        ),
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            "--size",
            metavar="NAME",
            show_default=False,
            help="recall: 100K, 500K, 1M of BEAM, or locomo; more than once for several. All by default.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            show_default=False,
            help="A policy, recall-only or summary; more than once for several. All of the study by default.",
        ),
    ] = None,
    meter: Annotated[
        str | None,
        typer.Option(
            "--meter",
            metavar="NAME",
            show_default=False,
            help="recall: chars (a quarter of the characters and 3), the default, or o200k (our own).",
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors",
            metavar="FOLDER",
            show_default=False,
            help="recall: rank by the static vectors in this folder too (docs/guides/prompt.md).",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", show_default=False, help="Write the figures as one page as well."
        ),
    ] = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure what a capped prompt holds. `recall`: of the messages that answer a question.

    Rule *whole*: the message's full text is in the prompt; *cut*: its first 400 characters. Of each question:
    any of its evidence, all of it, the mean share. `recall-only` is the ranking alone, packed into the cap.
    `boundary`: of the identifiers that were needed after each recorded compaction, beside the account that
    was really written (`summary`), at equal size. The parts of `recall`: constants were chosen on the
    half named `tuned`, the other is `untouched`. Those of `boundary`: every other file.
    """
    if name not in STUDIES:
        raise BadInput(f"There is no study {name!r}; choose of: {', '.join(STUDIES)}.")
    if name == "boundary" and (size or meter or vectors):
        raise BadInput("The study boundary has no --size, --meter and --vectors; leave them out.")
    line = shlex.join(["shiftbook", *sys.argv[1:]])
    tell = note if verbose else lambda _line: None
    caps, policies = tuple(cap or ()), tuple(policy or ())
    if name == "boundary":
        result = asyncio.run(boundary.study_boundary(data, boundary.Options(caps, policies), line, tell))
    else:
        options = recall.Options(caps, tuple(size or ()), policies, meter or "chars", vectors)
        result = recall.study_recall(data, options, line, tell)
    if html is not None:
        write_page(html, page_of(result))
    if json:
        print_data(result)
    else:
        _PRINTS[name](result)


def _print_recall(result: Mapping[str, JsonValue]) -> None:
    asked = result["questions"]
    note(
        f"{result['chats']} chats, {asked['asked']} questions, {asked['skipped']} without usable labels, "
        f"{asked['mended']} with labels from the audit; tokens by {result['meter']}"
        + (f"; recall ranks by {result['vectors']} too" if result["vectors"] else "")
    )
    table(COLUMNS, list(_lines(result["table"])), right=COLUMNS[5:])


def _print_boundary(result: Mapping[str, JsonValue]) -> None:
    note(
        f"{count(result['sessions'], 'session')}, {count(result['boundaries'], 'compaction')}; "
        f"tokens by {result['meter']}; "
        "the account of notes is by rule"
    )
    rows = [tuple(map(_cell, row)) for row in boundary_rows(result["table"])]
    table(BOUNDARY_COLUMNS, rows, right=BOUNDARY_COLUMNS[3:])


def _cell(value: str | float | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


_PRINTS = {"recall": _print_recall, "boundary": _print_boundary}


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
