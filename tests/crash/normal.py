"""A journal without what a crash may change, so that a crashed run can be held against an uncrashed one.

Left out: positions, stamps and lease epochs; `ActionStarted` (the attempts); every rest but the last (a rest
is the wish of a person who may have died with the process); what reports say, since their lines cite by
position, and whether one is written before or after a message that comes meanwhile; whether a result was
learnt by asking the tool; the frames of tracebacks. Positions in recipes become names ("call 1.2's answer").
Answers of one batch, which come in the order in which they happen to be known, are sorted by call. Counts of
tokens are compared until the first rebuild: from then on the prompt names entries by number, and numbers
have lengths.

Requests are compared as they reached the model, entry numbers made equal, answers of a batch sorted.

Where the outcome of some calls was left unknown, `masked` names them: their answers, and what follows from
their length (recipes, counts, rebuilds, warnings, requests) are left out, everything else is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from shiftbook.entries import (
    MODEL_VISIBLE,
    ActionFinished,
    ActionStarted,
    Entry,
    EpochOpened,
    LineStruck,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    PersonSaid,
    Pick,
    Recalled,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportWritten,
    RunRested,
    Warned,
)
from shiftbook.messages import Block, Request, Result

_ENTRY_NUMBERS = re.compile(
    r"\b([Ee]ntr(?:y|ies)) \d+(?: to \d+)?|\d+(?= characters left out)"
    r"|\[\d+, \d{4}-\d\d-\d\d[,:]|\d{4}-\d\d-\d\d \d\d:\d\d UTC|\[\d+(?:, \d+)*\]"
    r"|- \d+(?=: )"  # The names that an entry was the last to use.
)
_REPORTS = (ReportAsked, ReportAnswered, ReportFailed, ReportWritten, LineStruck)
Item = tuple[str, dict[str, Any]]


def unknown_calls(entries: Iterable[Entry]) -> frozenset[str]:
    """The calls whose outcome nobody knows or that were cut short, and the replies of which nothing is
    left."""
    found = set()
    for entry in entries:
        match entry.what:
            case ActionFinished(call=call, outcome="unknown" | "cancelled"):
                found.add(call)
            case ModelInterrupted(turn=turn, parts=()):
                found.add(f"reply {turn}")
    return frozenset(found)


def normal(entries: Sequence[Entry], requests: Mapping[int, Request], masked: frozenset[str]) -> list[Item]:
    """See the module."""
    # Where mail kept an epoch back, its report and its recall stand in the ranges of the next.
    visible = MODEL_VISIBLE - {Recalled, ReportWritten}
    names = {entry.position: _name(entry) for entry in entries if type(entry.what) in visible}
    items: list[Item] = []
    epochs = 0
    for number, entry in enumerate(entries):
        what = entry.what
        if isinstance(what, ActionStarted | ReportWritten | LineStruck):
            continue
        if isinstance(what, RunRested) and number + 1 < len(entries):
            continue
        if masked and isinstance(what, (EpochOpened, Warned, Recalled, *_REPORTS)):
            continue
        if isinstance(what, Recalled) and _is_kept_back(entries[number + 1 :]):
            continue
        epochs += isinstance(what, EpochOpened)
        plain = {item.name: getattr(what, item.name) for item in fields(what)}
        if isinstance(what, ModelAsked):
            plain = _asked(what, names, counts=epochs <= 1 and not masked)
            if masked:
                plain = {"turn": what.turn}
            else:
                plain["request"] = _request(requests[what.turn]) if what.turn in requests else None
        elif isinstance(what, EpochOpened):
            plain = {"reason": what.reason, "blocks": _picks(what.blocks, names)}
        elif isinstance(what, Recalled):
            found = sorted(names[position] for position in what.found)
            plain = {"query": what.query, "asked_by": what.asked_by, "found": found}
        elif isinstance(what, ActionFinished):
            plain = _finished(what, is_masked=what.call in masked)
        elif isinstance(what, ModelAnswered) and (masked or epochs > 1):
            plain.pop("usage")
        elif isinstance(what, ModelInterrupted) and f"reply {what.turn}" in masked:
            plain.pop("parts")
        elif isinstance(what, ModelFailed):
            plain.pop("retry_at_ms")
        elif isinstance(what, ReportAsked | ReportAnswered):
            plain = {}
        elif isinstance(what, ReportFailed):
            plain.pop("retry_at_ms")
        elif isinstance(what, Warned):
            plain["detail"] = _ENTRY_NUMBERS.sub(r"\1 #", what.detail)
        items.append((entry.kind, plain))
    return _sorted_batches(items)


def _is_kept_back(later: Sequence[Entry]) -> bool:
    """Whether mail came before the request that a recall was for, so that another was made for both."""
    kinds = (entry.what for entry in later if isinstance(entry.what, Recalled | ModelAsked))
    return isinstance(next(kinds, None), Recalled)


def _name(entry: Entry) -> str:
    match entry.what:
        case PersonSaid(item=item):
            return f"message {item}"
        case ModelAnswered(turn=turn):
            return f"reply {turn}"
        case ModelInterrupted(turn=turn):
            return f"broken reply {turn}"
        case ActionFinished(call=call):
            return f"answer to {call}"
    return entry.kind


def _asked(what: ModelAsked, names: Mapping[int, str], *, counts: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "turn": what.turn,
        "blocks": _picks(what.blocks, names),
        "renderer": what.renderer,
    }
    if counts:
        plain |= {"tokens": what.tokens, "meter": what.meter}
    return plain


def _picks(picks: Sequence[Pick], names: Mapping[int, str]) -> list[tuple[str, str]]:
    return sorted(
        (names[position], pick.form)
        for pick in picks
        for position in range(pick.first, pick.last + 1)
        if position in names
    )


def _finished(what: ActionFinished, *, is_masked: bool) -> dict[str, Any]:
    if is_masked:
        return {"call": what.call}
    last_line = (what.traceback or "").strip().rpartition("\n")[2]
    return {"call": what.call, "outcome": what.outcome, "content": what.content, "error": last_line}


def _sorted_batches(items: list[Item]) -> list[Item]:
    result: list[Item] = []
    batch: list[Item] = []
    for item in items:
        if item[0] == "ActionFinished":
            batch.append(item)
            continue
        result += sorted(batch, key=lambda each: _order(each[1]["call"]))
        batch = []
        result.append(item)
    return result + batch


def _order(call: str) -> tuple[int, ...]:
    return tuple(int(part) for part in call.split("."))


def _request(request: Request) -> list[Any]:
    """What was said to the model, answers between two replies sorted by call."""
    said: list[Any] = [request.instructions, [tool.name for tool in request.tools], dict(request.parameters)]
    answers: list[Block] = []
    for block in request.blocks:
        if block.kind == "ReportWritten":
            continue  # How many of its lines fit hangs on the lengths of the numbers that they cite.
        if block.parts and isinstance(block.parts[0], Result):
            answers.append(block)
            continue
        said += _sorted_answers(answers)
        answers = []
        said.append((block.side, _ENTRY_NUMBERS.sub("#", str(block.parts))))
    return said + _sorted_answers(answers)


def _sorted_answers(blocks: list[Block]) -> list[Any]:
    return sorted((block.side, _ENTRY_NUMBERS.sub("#", str(block.parts))) for block in blocks)
