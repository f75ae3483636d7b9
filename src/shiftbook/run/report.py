"""Writing the report that a policy wants before it opens a new epoch: by rule, or by a model.

By rule it costs nothing and never fails. A model is asked through the prompt that its provider has in the
cache anyway, or, where the agent names another for it, with the entries quoted. That is announced, sent and
recorded like a turn's request, so that a reply which is in the journal is never paid for again. Whatever
comes of it, an epoch opens: what a model has not told is told by rule, and a warning says why. People's words
are told by rule in every case.

The report itself is only staged, so that it is committed with the epoch that shows it; where mail keeps that
back, the report stands in the journal first, and the policy finds it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shiftbook.entries import (
    Entry,
    PersonSaid,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportLine,
    ReportWritten,
    Warned,
)
from shiftbook.errors import Damaged, ProviderFault
from shiftbook.messages import First, Reply, ReplyEvent, Request, TextDelta
from shiftbook.policies.cold import TTL_MS
from shiftbook.prompt.digest import start
from shiftbook.prompt.epoch import WantReport
from shiftbook.prompt.render import render_entry
from shiftbook.prompt.report import CHARS_PER_TOKEN, MECHANICAL, composed, lines_by_rule
from shiftbook.prompt.report_reply import Unreadable, read_lines
from shiftbook.prompt.report_request import (
    digested_request,
    empty_request,
    grouped,
    list_room,
    listing,
    quoting,
    request_blocks,
)
from shiftbook.providers.promise import Provider
from shiftbook.run.agent import BY_MODEL
from shiftbook.run.book import read_entries
from shiftbook.run.desk import Desk
from shiftbook.run.sending import Part, attempt, failure, media_of, recorded, send
from shiftbook.run.step import AskReport

PARTS_MAX = 8
"""So many requests are made for one report at the most; what is left then is told by rule."""

WRITTEN_SHARE = 0.6
"""What the model may fill of a report's room: the rest is for older lines and people's words."""

REWRITTEN_SHARE = 0.8
"""The same where it writes the report before anew: then only people's words stand beside its own."""

FELL_BACK = "report by rule"
"""The name of the warning that a model has not told what it was to tell."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A request for a report, and its reply: None where none came."""

    asked: ReportAsked
    answer: ReportAnswered | None
    error: str = ""


async def write_report(desk: Desk, want: WantReport) -> ReportAsked | None:
    """Stage the report and what was struck from it; or, first, the request that it takes.

    A request is given back unannounced. It is for the caller to commit it.
    """
    told = await _told(desk)
    asked, why = _next(desk, want, told)
    if asked is None:
        _write(desk, want, told, why, await _cited(desk, want, told))
    return asked


async def _cited(desk: Desk, want: WantReport, told: Sequence[_Told]) -> list[Entry]:
    """What the report before was made from, where it was to be written anew; what is gone is left out."""
    before = _rewritten(desk, want)
    if (
        before is None
        or want.before is None
        or not any(before.position in each.asked.entries for each in told)
    ):
        return []
    found: list[Entry] = []
    for position in sorted({position for line in want.before.lines for position in line.cites}):
        try:
            found += await read_entries(desk.book.store, desk.book.run, position - 1, position)
        except Damaged:
            continue
    return found


async def _told(desk: Desk) -> list[_Told]:
    """What was asked and answered for this report already."""
    report = desk.view.report
    found: list[_Told] = []
    for asked_at, answered_at in [] if report is None else report.done:
        entries = await read_entries(desk.book.store, desk.book.run, asked_at - 1, answered_at or None)
        asked = entries[0].what
        assert isinstance(asked, ReportAsked)
        last = entries[-1].what
        answer = last if answered_at and isinstance(last, ReportAnswered) else None
        failed = [e.what.error for e in entries if isinstance(e.what, ReportFailed)]
        found.append(_Told(asked, answer, failed[0] if failed else ""))
    return found


# --- asking --------------------------------------------------------------------------------------------


def _next(desk: Desk, want: WantReport, told: Sequence[_Told]) -> tuple[ReportAsked | None, str]:
    """The request to be made next; or why none is made where one might have been expected."""
    agent = desk.agent
    if agent.writer is None or any(each.answer is None for each in told):
        return None, ""
    covered = {position for each in told for position in each.asked.entries}
    rest = [entry for entry in want.entries if entry.position not in covered]
    if agent.report == BY_MODEL:
        rest = [entry for entry in rest if entry.position in desk.prompt.shown]
    if not _is_worth_it(desk, want, rest):
        return None, ""
    if desk.prompt.epoch > 1 and desk.prompt.first_end == len(desk.prompt.blocks) and not told:
        return None, "the last epoch held one request alone, and a model is not paid for a report a turn"
    if len(told) >= PARTS_MAX:
        return None, f"{PARTS_MAX} requests did not hold all that leaves the prompt"
    before = _rewritten(desk, want)
    if before is not None and before.position not in covered:
        rest = sorted([*rest, before], key=lambda entry: entry.position)
    chars = int(want.room * CHARS_PER_TOKEN * (WRITTEN_SHARE if before is None else REWRITTEN_SHARE))
    draft = ReportAsked((), agent.writer.name, chars, "", 0, desk.gauge.meter_in_use)
    return _through_prompt(desk, want, rest, draft) if agent.report == BY_MODEL else _alone(desk, rest, draft)


def _rewritten(desk: Desk, want: WantReport) -> Entry | None:
    """The report in the prompt that is to be written anew, if there is one."""
    if not want.rewrite:
        return None
    return next((entry for entry in desk.prompt.shown.values() if entry.what == want.before), None)


def _is_worth_it(desk: Desk, want: WantReport, rest: Sequence[Entry]) -> bool:
    """Whether there is more to tell than a report takes: less is told as well by rule, and for nothing."""
    turns = [entry for entry in rest if not isinstance(entry.what, PersonSaid)]
    tokens = sum(desk.gauge.measure(block) for entry in turns for block in render_entry(entry, "kept"))
    return tokens > want.room


def _through_prompt(
    desk: Desk, want: WantReport, rest: Sequence[Entry], draft: ReportAsked
) -> tuple[ReportAsked | None, str]:
    """The request that extends the prompt as it was last sent."""
    prompt, gauge = desk.prompt, desk.gauge
    if prompt.declaration != desk.view.declaration:
        return None, "the agent has changed, so that its provider's cache holds nothing of the prompt"
    if desk.gap_ms is not None and desk.gap_ms > TTL_MS:
        return None, "the provider's cache has gone cold, so that the whole prompt would be paid for anew"
    is_anew = _rewritten(desk, want) in rest
    room = list_room(desk.agent.cap) + empty_request(gauge.measure, extends=True, is_anew=is_anew)
    room = min(room, desk.agent.cap - prompt.tokens - want.room)
    made = listing(draft, grouped(rest), gauge.measure, room)
    if made is None:
        return None, "the request for it would pass the cap"
    known = {entry.position: entry for entry in rest}
    digest = digested_request(made, known, prompt.digest)
    return replace(made, digest=digest, tokens=prompt.tokens + made.tokens), ""


def _alone(desk: Desk, rest: Sequence[Entry], draft: ReportAsked) -> tuple[ReportAsked | None, str]:
    """The request that quotes what it is about."""
    answer = draft.chars // CHARS_PER_TOKEN
    made = quoting(draft, grouped(rest), desk.gauge.measure, desk.agent.report_window - answer)
    if made is None:
        return None, f"a window of {desk.agent.report_window} tokens is too small for its request"
    known = {entry.position: entry for entry in rest}
    return replace(
        made, digest=digested_request(made, known, start(desk.view.declaration, made.renderer))
    ), ""


async def ask_report(desk: Desk, act: AskReport) -> None:
    """Send the announced request for a report once, and record what came of it."""
    await desk.book.commit()
    report = desk.view.report
    assert report is not None
    (entry,) = await read_entries(desk.book.store, desk.book.run, report.asked - 1, report.asked)
    asked, writer = entry.what, desk.agent.writer
    assert isinstance(asked, ReportAsked)
    if writer is None or writer.name != asked.model:
        desk.note(ReportFailed(act.attempt, f"the agent has no model {asked.model} for reports any more"))
        await desk.book.commit()
        return
    part: Part[ReportAnswered] = Part()

    def emit(event: ReplyEvent) -> None:
        if isinstance(event, TextDelta):
            part.text += event.text

    async def receive() -> None:
        reply = await send(desk, writer, asked.tokens, act, request, emit)
        part.whole = _entry_of(desk, act, asked, reply)

    async def request() -> Request:
        return await _request_of(desk, act, asked, writer)

    fault = await attempt(desk, receive(), part)
    if part.whole is not None and fault is None:
        desk.note(part.whole)
    elif fault is not None or part.text:
        _failed(desk, act, part, fault)
    await desk.book.commit()


async def _request_of(desk: Desk, act: AskReport, asked: ReportAsked, writer: Provider) -> Request:
    """The request as the journal has it."""
    known = {entry.position: entry for entry in (*desk.prompt.shown.values(), *desk.fresh)}
    blocks = request_blocks(asked, known)
    alone = Request(
        run=desk.book.run,
        turn=desk.view.turn + 1,
        attempt=act.attempt,
        model=writer.name,
        instructions="",
        tools=(),
        blocks=tuple(blocks),
        purpose="report",
    )
    if not asked.extends:
        return alone
    media = await media_of(desk)
    return replace(
        alone,
        instructions=desk.agent.told,
        tools=desk.schemas,
        blocks=(*First(desk.prompt.blocks), *blocks),
        parameters=desk.agent.parameters,
        marks=(desk.prompt.first_end, len(desk.prompt.blocks)),
        blob=media.__getitem__,
    )


def _entry_of(desk: Desk, act: AskReport, asked: ReportAsked, reply: Reply) -> ReportAnswered:
    model = reply.model if reply.model != asked.model else None
    return recorded(
        reply,
        f"report {desk.view.turn + 1}",
        lambda parts: ReportAnswered(parts, reply.stop, reply.usage, model, act.attempt),
    )


def _failed(desk: Desk, act: AskReport, part: Part[ReportAnswered], fault: ProviderFault | None) -> None:
    """Stage what went wrong; no fault means that a person's wish cut it short."""
    report = desk.view.report
    tried = 0 if report is None else report.tried
    # Who goes on after a stop asks again at once; a cancelled run's request is closed by `step`.
    retry_at: int | None = desk.clock.now_ms()
    error, status = desk.why or "stopped by a person", None
    if fault is not None:
        (error, retry_at), status = failure(desk, fault, tried), fault.status
    desk.note(ReportFailed(act.attempt, error, retry_at, status, part.text or None))


# --- writing -------------------------------------------------------------------------------------------


def _write(desk: Desk, want: WantReport, told: Sequence[_Told], why: str, cited: Sequence[Entry]) -> None:
    """Stage the report of what the model has told, and of the rest by rule; `cited` is by the one before."""
    written: list[ReportLine] = []
    covered: set[int] = set()
    reasons = [why] if why else []
    for each in told:
        try:
            written += _lines(each)
        except Unreadable as fault:
            reasons.append(str(fault))
        else:
            covered.update(each.asked.entries)
    is_left = [e.position not in covered or isinstance(e.what, PersonSaid) for e in want.entries]
    rest = [entry for entry, left in zip(want.entries, is_left, strict=True) if left]
    before = _rewritten(desk, want)
    is_anew = before is not None and before.position in covered
    shown = [entry for position, entry in desk.prompt.shown.items() if position in covered]
    report, *struck = composed(
        want,
        lines_by_rule(rest),
        desk.gauge.measure,
        sorted({key for key, _ in desk.knowledge.tallies}),
        written=written,
        # An account is no source: what was written anew cites what the report before was made from.
        known=[*(cited if is_anew else ()), *(e for e in shown if not isinstance(e.what, ReportWritten))],
        writer=told[0].asked.model if told else MECHANICAL,
        is_anew=is_anew,
    )
    assert isinstance(report, ReportWritten)
    for what in (report, *struck):
        desk.note(what)
    for reason in dict.fromkeys(reasons):
        desk.note(Warned(FELL_BACK, f"What leaves the prompt is told by rule: {reason}."))
    seen = {*report.lines, *(getattr(each, "line", None) for each in struck)}
    if missing := len(set(written) - seen):
        detail = f"{missing} of {len(set(written))} lines of the report had no room in it."
        desk.note(Warned("report cut", detail))


def _lines(told: _Told) -> tuple[ReportLine, ...]:
    if told.answer is None:
        raise Unreadable(f"the model could not be asked ({told.error})")
    return read_lines(told.answer.parts, told.answer.stop)
