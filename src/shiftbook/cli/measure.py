"""`shiftbook measure`: where recorded sessions stand, from the files that other tools already wrote."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from shiftbook._version import VERSION
from shiftbook.cli.left_out import left_out_rows, tell_left_out
from shiftbook.cli.measured import tell_checks, tell_one, tell_table
from shiftbook.cli.options import Json, Verbose
from shiftbook.cli.output import data, note, write_page
from shiftbook.cli.survival import tell_survival
from shiftbook.cli.words import count
from shiftbook.clock import SystemClock
from shiftbook.economics.price_book import context_window, price_source, prices_at
from shiftbook.errors import BadInput
from shiftbook.measure.advice import REBUILT_DEFAULT
from shiftbook.measure.money import Prices
from shiftbook.measure.page import measure_page
from shiftbook.measure.predict import Held, check_row, check_sums, held_against
from shiftbook.measure.series import series_of
from shiftbook.measure.session import Choices, Measured, measured, usage_share
from shiftbook.measure.told import all_row, session_row
from shiftbook.sessions import RecordedRequests, Unmeasured, walk_requests
from shiftbook.sessions.walk import left_beside
from shiftbook.views.recorded import MEASURED


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            show_default=False,
            help="Session files, .gz or not, journals, or folders that are walked.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="NAME", show_default=False, help="Price by this model, not by the recorded."
        ),
    ] = None,
    rebuilt: Annotated[
        int,
        typer.Option("--r", metavar="TOKENS", help="What a rebuilt prompt would hold beside its fixed part."),
    ] = REBUILT_DEFAULT,
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            metavar="TOKENS",
            show_default=False,
            help="The longest prompt there is; else the largest before a compaction, else the model's.",
        ),
    ] = None,
    ttl: Annotated[
        str | None,
        typer.Option(
            "--ttl",
            metavar="LIFE",
            show_default=False,
            help="How long the cache keeps what was written, 5m or 1h; else as recorded, else 5m.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", show_default=False, help="Write a page with charts to this file."
        ),
    ] = None,
    check_cache: Annotated[
        bool,
        typer.Option(
            "--check-cache",
            help="Predict each cache from sizes, stamps and marks alone and compare with what was recorded.",
        ),
    ] = False,
    survival: Annotated[
        bool,
        typer.Option(
            "--survival",
            help="Tell what each recorded compaction kept of what stood before it and was needed after it.",
        ),
    ] = False,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Tell how the prompts of recorded sessions grew, what they cost, and if a rebuilt prompt pays.

    Nothing is sent anywhere and nothing is written but the page. Prices are those of `genai-prices` on the
    day of each request; a price or a count that is not known makes a sum unknown, never smaller.
    """
    if check_cache and (survival or html is not None):
        raise BadInput("--check-cache answers a question of its own: leave out --survival and --html.")
    if survival:
        tell_survival(paths, json, html, _command_line())
        return
    if ttl not in (None, "5m", "1h"):
        raise BadInput(f"--ttl {ttl} is no life of a cache that is priced: give 5m or 1h.")
    if rebuilt < 1 or (window is not None and window < 1):
        raise BadInput("--r and --window are tokens: give at least 1.")
    now_ms = SystemClock().now_ms()
    if model is not None and prices_at(model, now_ms) is None:
        raise BadInput(f"No price is known for the model {model!r} ({price_source() or 'no price table'}).")
    choices = Choices(model, ttl, window, rebuilt)
    found: list[RecordedRequests] = []
    faults: list[Unmeasured] = []
    for each in _read(paths):
        if isinstance(each, Unmeasured):
            faults.append(each)
        else:
            found.append(each)
    tell_left_out(faults, "measure", any_found=bool(found))
    _tell_broken(found)
    beside = list(left_beside(paths))
    for path, folder, files in beside:
        note(f"{path}: {count(files, 'sub-agent file')} in {folder} not counted: name that folder too")
    empty = sum(not each.rows for each in found)
    found = [each for each in found if each.rows]
    if empty and found:
        note(f"{count(empty, 'session')} without a request of a model: not counted")
    if not found:
        raise BadInput(
            "There is no model request in what was named: name files of sessions that a model answered."
        )
    if check_cache:
        _check(found, faults, json)
        return
    sessions = [measured(each, _prices(now_ms), context_window, choices) for each in found]
    if html is not None:
        write_page(html, measure_page(sessions, command=_command_line(), version=VERSION))
    if json:
        data(_told(sessions, faults, beside))
    elif len(sessions) == 1:
        tell_one(sessions[0])
    else:
        tell_table(sessions)


def _prices(now_ms: int) -> Prices:
    """The prices of the day of a request, or of `now_ms` for one without a stamp."""
    return lambda model, at_ms: prices_at(model, now_ms if at_ms is None else at_ms)


def _read(paths: Sequence[Path]) -> Iterator[RecordedRequests | Unmeasured]:
    """Every session that holds a request, and on a terminal's stderr how many there were so far."""
    shown = sys.stderr.isatty()
    for number, each in enumerate(walk_requests(paths, MEASURED), start=1):
        if shown:
            sys.stderr.write(f"\r{number:,} read")
            sys.stderr.flush()
        yield each
    if shown:
        sys.stderr.write("\r" + " " * 20 + "\r")


def _tell_broken(found: Sequence[RecordedRequests]) -> None:
    """The parts of sessions that do not count, and the requests that are told twice."""
    for session in found:
        for broken in session.broken:
            where = f", line {broken.line}" if broken.line else ""
            note(f"left out: {session.path}{where}: {broken.what}")
        if session.copies:
            note(
                f"{session.path}: {count(session.copies, 'request')} told before, there or here: counted once"
            )


def _told(
    sessions: Sequence[Measured], faults: Sequence[Unmeasured], beside: Sequence[tuple[Path, Path, int]]
) -> Mapping[str, object]:
    return {
        "sessions": [session_row(each) for each in sessions],
        "all": all_row(sessions),
        "usage_share": usage_share(sessions),
        "beside": [
            {"path": str(path), "folder": str(folder), "files": files} for path, folder, files in beside
        ],
        "unreadable": left_out_rows(faults),
        "prices": price_source(),
    }


def _check(found: Sequence[RecordedRequests], faults: Sequence[Unmeasured], json: bool) -> None:
    held: list[tuple[RecordedRequests, Held]] = [(each, held_against(series_of(each))) for each in found]
    if json:
        data(
            {
                "sessions": [check_row(*each) for each in held],
                "all": check_sums([each for _, each in held]),
                "unreadable": left_out_rows(faults),
            }
        )
    else:
        tell_checks(held)


def _command_line() -> str:
    return shlex.join(["shiftbook", *sys.argv[1:]])
