"""What has to hold of a journal and its world after every crash, each a small check with a name.

`broken` runs them all and returns what was broken. The order is from the cause to its consequences, so that
the first violation names the fault. `SAME` compares with an uncrashed run; see `normal` for what is
compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shiftbook.entries import (
    ActionFinished,
    ActionStarted,
    Entry,
    ModelAnswered,
    ModelAsked,
    ModelInterrupted,
    PersonSaid,
    RunOpened,
    RunRested,
)
from shiftbook.messages import Call
from shiftbook.projections.view import fold_all, view_to_plain
from shiftbook.run.restore import restore
from shiftbook.run.summary import Summary
from shiftbook.verify import verify
from tests.crash.normal import normal, unknown_calls
from tests.crash.sweep import Ground
from tests.crash.virtual import at_once
from tests.crash.world import RUN, Violation

Found = Iterator[str]
Check = Callable[[Ground, Sequence[Entry]], Found]


def policies(ground: Ground) -> dict[str, str]:
    """What may be done with each tool after a cut."""
    return {tool.name: tool.repeat for tool in ground.scenario.tools}


def gapless(ground: Ground, entries: Sequence[Entry]) -> Found:
    """Positions are 1, 2, 3 ...; lease epochs never fall."""
    if [entry.position for entry in entries] != list(range(1, len(entries) + 1)):
        yield "positions have a gap"
    epochs = [entry.epoch for entry in entries]
    if epochs != sorted(epochs):
        yield f"lease epochs fall: {epochs}"


def intent_first(ground: Ground, entries: Sequence[Entry]) -> Found:
    """Every attempt that the world saw was announced before, and none was begun twice."""
    announced = {(e.what.call, e.what.attempt) for e in entries if isinstance(e.what, ActionStarted)}
    for once, count in Counter((each.call, each.attempt) for each in ground.world.begun).items():
        if once not in announced:
            yield f"call {once[0]} began attempt {once[1]}, which was never announced"
        if count > 1:
            yield f"attempt {once[1]} at call {once[0]} began {count} times"


def key_of_call(ground: Ground, entries: Sequence[Entry]) -> Found:
    """A call has one key, made from run and call, through all attempts; no two calls share one."""
    keys: dict[str, set[str]] = {}
    for entry in entries:
        if isinstance(entry.what, ActionStarted):
            keys.setdefault(entry.what.call, set()).add(entry.what.key)
    for call, found in keys.items():
        if found != {f"{RUN}-{call}"}:
            yield f"call {call} went out under {sorted(found)}"
    for each in ground.world.effects:
        if each.key != f"{RUN}-{each.call}":
            yield f"call {each.call} had its effect under {each.key}"


def attempts_count_up(ground: Ground, entries: Sequence[Entry]) -> Found:
    """Attempts at a call are 1, 2, 3 ... in the journal's order."""
    attempts: dict[str, list[int]] = {}
    for entry in entries:
        if isinstance(entry.what, ActionStarted):
            attempts.setdefault(entry.what.call, []).append(entry.what.attempt)
    for call, found in attempts.items():
        if found != list(range(1, len(found) + 1)):
            yield f"attempts at call {call} are {found}"


def one_answer(ground: Ground, entries: Sequence[Entry]) -> Found:
    """Each call of each reply is answered exactly once, before the next request and after its starts."""
    asked: dict[str, int] = {}
    answered: Counter[str] = Counter()
    for entry in entries:
        match entry.what:
            case ModelAnswered(parts=parts):
                asked.update({part.id: 0 for part in parts if isinstance(part, Call)})
            case ActionFinished(call=call):
                answered[call] += 1
                if answered[call] > 1:
                    yield f"call {call} has answer number {answered[call]} at entry {entry.position}"
                if call not in asked:
                    yield f"call {call} is answered and was never asked for"
            case ModelAsked(turn=turn):
                for call in asked:
                    if not answered[call]:
                        yield f"turn {turn} is asked while call {call} has no answer"
    for call in asked:
        if not answered[call]:
            yield f"call {call} has no answer in the end"


def finished_once(ground: Ground, entries: Sequence[Entry]) -> Found:
    """No action is started after its answer."""
    finished: set[str] = set()
    for entry in entries:
        if isinstance(entry.what, ActionFinished):
            finished.add(entry.what.call)
        elif isinstance(entry.what, ActionStarted) and entry.what.call in finished:
            yield f"call {entry.what.call} is started again at entry {entry.position}"


def repeat_allowed(ground: Ground, entries: Sequence[Entry]) -> Found:
    """A cut-off call is run again only as its author said; else the model is told what is not known."""
    starts: Counter[str] = Counter()
    tools: dict[str, str] = {}
    for each in ground.world.begun:
        starts[each.call] += 1
        tools[each.call] = each.tool
    questions = Counter(ground.world.questions)
    for call, count in starts.items():
        policy = policies(ground)[tools[call]]
        if policy == "ask" and count > 1:
            yield f"call {call} of {tools[call]!r} was run {count} times, a person was to decide"
        if policy == "reconcile" and count - 1 > questions[call]:
            yield f"call {call} was run {count} times after {questions[call]} questions"
    for entry in entries:
        what = entry.what
        if isinstance(what, ActionFinished) and what.outcome == "unknown":
            text = "".join(getattr(part, "text", "") for part in what.content)
            if "outcome of this call is unknown" not in text or "Do not assume" not in text:
                yield f"the model is told of call {what.call}: {text[:80]!r}"
            if "person" in text or "user" in text:
                yield f"a person is blamed for the crash: {text[:80]!r}"


def effects_as_promised(ground: Ground, entries: Sequence[Entry]) -> Found:
    """Per key one effect at the most for keyed, reconcile and ask; what is "done" had one at the least."""
    effects = Counter(each.call for each in ground.world.effects)
    tools = {each.call: each.tool for each in ground.world.begun}
    for call, count in effects.items():
        if count > 1 and policies(ground)[tools[call]] != "safe":
            yield f"call {call} of {tools[call]!r} had {count} effects"
    for entry in entries:
        what = entry.what
        if isinstance(what, ActionFinished) and what.outcome == "done" and not effects[what.call]:
            yield f"call {what.call} is done and had no effect"


def answer_once(ground: Ground, entries: Sequence[Entry]) -> Found:
    """A turn has one request entry and one reply; no reply is lost that the model gave for a recorded
    turn."""
    asked = Counter(e.what.turn for e in entries if isinstance(e.what, ModelAsked))
    closed = Counter(e.what.turn for e in entries if isinstance(e.what, ModelAnswered | ModelInterrupted))
    for turn in sorted(asked):
        if asked[turn] != 1 or closed[turn] != 1:
            yield f"turn {turn} has {asked[turn]} requests and {closed[turn]} replies"
    if sorted(asked) != list(range(1, len(asked) + 1)):
        yield f"turns are {sorted(asked)}"


def mail_once(ground: Ground, entries: Sequence[Entry]) -> Found:
    """Every message that was put in is in the journal once, in order, and none is left."""
    came = [e.what.item for e in entries if isinstance(e.what, PersonSaid) and e.what.item is not None]
    if came != ground.world.posted:
        yield f"messages {ground.world.posted} were put in, {came} came out"
    assert ground.world.peek is not None
    if entries and (left := at_once(ground.world.peek.inbox.waiting(RUN))):
        yield f"{len(left)} messages are left in the inbox"


def verifies(ground: Ground, entries: Sequence[Entry]) -> Found:
    """`verify` finds nothing."""
    assert ground.world.peek is not None
    verdict = at_once(verify(ground.world.peek, RUN))
    for fault in verdict.faults:
        yield f"entry {fault.position}: {fault.what}"


def one_standing(ground: Ground, entries: Sequence[Entry]) -> Found:
    """Folds at once, in pieces and from a snapshot agree; the catalogue says the same, kept or rebuilt."""
    store = ground.world.peek
    assert store is not None
    view = fold_all(entries)
    middle = len(entries) // 2
    if fold_all(entries[middle:], fold_all(entries[:middle])) != view:
        yield "folding in pieces gives another view"
    kept = at_once(restore(store, RUN))
    at_once(store.cache.drop(RUN))
    scratch = at_once(restore(store, RUN))
    if not view_to_plain(kept.view) == view_to_plain(scratch.view) == view_to_plain(view):
        yield "the view from the snapshot is not the view from scratch"
    for one, other in ((kept.prompts.prompt, scratch.prompts.prompt),):
        if one is not None and other is not None and (one.digest, one.blocks) != (other.digest, other.blocks):
            yield "the prompt from the snapshot is not the prompt from scratch"
    row = at_once(store.catalogue.runs())[0]
    at_once(store.catalogue.rebuild())
    if row != at_once(store.catalogue.runs())[0]:
        yield "the catalogue is another when it is rebuilt"
    if (row.state, row.position) != (view.state, view.position):
        yield f"the catalogue says {row.state} at {row.position}, the view {view.state} at {view.position}"


def at_rest(ground: Ground, entries: Sequence[Entry]) -> Found:
    """The run has one beginning, is finished, and nothing is open."""
    if sum(isinstance(entry.what, RunOpened) for entry in entries) != 1:
        yield "the run has not one beginning"
    view = fold_all(entries)
    if view.state != "finished" or view.calls or view.ask is not None or view.repeated:
        yield f"the run is {view.state} ({view.why}), open: {list(view.calls)}, {view.ask}"
    if not isinstance(entries[-1].what, RunRested):
        yield f"it ends with {entries[-1].kind}"


CHECKS: tuple[Check, ...] = (
    gapless,
    intent_first,
    key_of_call,
    attempts_count_up,
    finished_once,
    repeat_allowed,
    answer_once,
    one_answer,
    effects_as_promised,
    mail_once,
    verifies,
    one_standing,
    at_rest,
)


def broken(
    ground: Ground,
    *,
    summary: Summary | None,
    error: Exception | None = None,
    before: Sequence[Entry] = (),
    same_as: Ground | None = None,
) -> list[Violation]:
    """Every invariant that is broken, from cause to consequence.

    `before` are the entries at the crash, `same_as` an uncrashed run to compare with.
    """
    found = list(ground.world.violations)
    entries = ground.journal()
    if list(entries[: len(before)]) != list(before):
        found.append(Violation("append_only", "entries that were there at the crash are not there any more"))
    for check in CHECKS:
        found += [Violation(check.__name__, how) for how in check(ground, entries)]
    if error is not None:
        found.append(Violation("resumable", f"{type(error).__name__}: {error}"))
    view = fold_all(entries)
    if summary is not None:
        told: tuple[Any, ...] = (
            summary.state,
            summary.turns,
            summary.actions,
            summary.cut_off,
            summary.repeated,
        )
        if told != (view.state, view.answers, view.finished, view.cut_off, view.repeated):
            found.append(Violation("summary_true", f"{summary} against {view}"))
    if same_as is not None and error is None:
        found += difference(ground, entries, same_as)
    return found


def difference(ground: Ground, entries: Sequence[Entry], same_as: Ground) -> Iterator[Violation]:
    """The first thing in which the run differs from the uncrashed one."""
    other = same_as.journal()
    masked = unknown_calls(entries) | unknown_calls(other)
    if unknown_calls(entries) == unknown_calls(other):
        masked = frozenset()
    ours = normal(entries, ground.world.requests, masked)
    theirs = normal(other, same_as.world.requests, masked)
    for number, (one, two) in enumerate(zip(ours, theirs, strict=False)):
        if one != two:
            yield Violation(
                "same_as_uncrashed", f"item {number} is {str(one)[:600]}, uncrashed {str(two)[:600]}"
            )
            return
    if len(ours) != len(theirs):
        yield Violation("same_as_uncrashed", f"{len(ours)} items, uncrashed {len(theirs)}")
