"""tau-bench runs: each a chat-completions message list under "traj", with a task, a trial and a reward.

A file holds many runs: a JSON list of them or one a line. Decisions: system messages at the start are
recorded instructions, a later one is a notice; user messages are the person's (a simulated one's) words,
end marker and all; an assistant message is one reply, a tool message the answer to the call that its
`tool_call_id` names. There are no stamps, no model name and no usage, so those stay None; "line" is the
number of the message within its run. The arguments' text is kept raw beside its parse.

It refuses the few-shot files of the same project: their one display text a run ("messages_display")
leaves out which tool was called with what, and that is never invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions.chat_steps import ChatSteps
from shiftbook.sessions.draft import Draft
from shiftbook.sessions.estimate import Estimate
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.loose import objects
from shiftbook.sessions.normal import Session
from shiftbook.sessions.requests import RecordedRequests
from shiftbook.sessions.rows import RowDraft, Seen
from shiftbook.sessions.source import Place, Record, Source
from shiftbook.sessions.streaming import Faults, records

NAME = "tau-bench"


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """A record with a list "traj" beside its task, or a few-shot record."""
    return any(
        (isinstance(record.get("traj"), list) and ("task_id" in record or "reward" in record))
        or isinstance(record.get("messages_display"), str)
        for record in sample
    )


def sessions(source: Source) -> Iterator[Unread]:
    """One session a record."""
    for number, record in enumerate(source.records(), start=1):
        if "messages_display" in record.value and "traj" not in record.value:
            raise record.place.unreadable(
                "is a tau-bench few-shot record, whose display text leaves out which tool was called with "
                "what; use a file of trajectories"
            )
        yield partial(read_run, record, number)


def read_run(record: Record, number: int) -> Session:
    """The session of one record, the `number`-th of its file."""
    place = Place(record.place.path, record.place.line, f"run {number}: ")
    if not isinstance(record.value.get("traj"), list):
        raise Fields(place, record.value).wrong("traj", "a list of messages")
    draft = Draft(NAME, place, number)
    steps = ChatSteps(draft)
    for line, message in enumerate(Fields(place, record.value).objects("traj"), start=1):
        steps.add(message, line)
    return draft.session(instructions=steps.instructions)


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """One session a record, every assistant message a request, estimated: the runs record no usage."""
    faults = Faults()
    told = False
    for number, record in enumerate(records(source, faults), start=1):
        if not isinstance(record.value.get("traj"), list):
            faults.add(record.place.line, 'is no trajectory: it has no list "traj"')
            continue
        draft = RowDraft(NAME, source.path, str(number), Faults() if told else faults)
        told = True
        estimate = Estimate(draft)
        for line, message in enumerate(objects(record.value, "traj"), start=1):
            estimate.message(message, line)
        yield draft.closed()
    if not told:
        raise SessionUnreadable(
            source.path,
            next((fault.line for fault in faults.all()), 0),
            "holds no tau-bench trajectories; the few-shot files leave out which tool was called with what",
        )


FORMAT = Format(
    name=NAME,
    title='tau-bench runs (records with "traj")',
    recognise=recognise,
    sessions=sessions,
    requests=requests,
)
