"""ATIF trajectories (Harbor): one JSON document with "schema_version" and "steps".

`prompt_tokens` includes the cached ones. There is no field for cache writes; an exporter may put it into
`extra`. An agent's step without metrics is "missing" where another step has some, else estimated. Steps of
copied context were billed in the trajectory that they came from: they are counted as copies. A step may sum
several requests and then says how many. Embedded sub-agents are branches; so are steps that `extra` calls a
sidechain, which is how Harbor writes those of Claude Code. A step of the model "<synthetic>" was no request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shiftbook.economics.usage_forms import openai_chat
from shiftbook.sessions.draft import Draft
from shiftbook.sessions.estimate import Estimate, told
from shiftbook.sessions.fields import Fields
from shiftbook.sessions.format import Format, Unread
from shiftbook.sessions.loose import inner, objects, stamp_ms, text, whole
from shiftbook.sessions.normal import Answer, CallPart, MissingPart, RecordedUsage, Session, TextPart
from shiftbook.sessions.requests import Kind, RecordedRequests
from shiftbook.sessions.rows import MISSING, RowDraft, Seen, recorded
from shiftbook.sessions.source import Place, Record, Source, label
from shiftbook.sessions.streaming import Faults, records

NAME = "atif"

_WRITES = (
    "cache_creation_input_tokens",
    "cache_write_input_tokens",
    "cache_write_tokens",
    "cache_creation_tokens",
)
_REASONING = ("reasoning_tokens", "reasoning_output_tokens")
_DEPTH_MAX = 8


def recognise(sample: Sequence[Mapping[str, object]]) -> bool:
    """The schema's name."""
    return any(
        (text(record, "schema_version") or "").startswith("ATIF-") and isinstance(record.get("steps"), list)
        for record in sample
    )


def usage_of(metrics: Mapping[str, object]) -> RecordedUsage:
    """The metrics of a step in normal form."""
    extra = inner(metrics, "extra")
    written = next((extra[key] for key in _WRITES if whole(extra, key) is not None), None)
    payload = {
        "prompt_tokens": metrics.get("prompt_tokens"),
        "completion_tokens": metrics.get("completion_tokens"),
        "prompt_tokens_details": {
            "cached_tokens": metrics.get("cached_tokens"),
            "cache_write_tokens": written,
        },
        "completion_tokens_details": {
            "reasoning_tokens": next((extra[key] for key in _REASONING if key in extra), None)
        },
    }
    return recorded(openai_chat(payload), undivided=whole(metrics, "prompt_tokens"))


def requests(source: Source, seen: Seen) -> Iterator[RecordedRequests]:
    """A record is one session, its embedded sub-agents with it."""
    faults = Faults()
    for record in records(source, faults):
        draft = RowDraft(NAME, source.path, text(record.value, "session_id") or "", faults)
        _trajectory(draft, record.value, "", 0)
        yield draft.closed()
        faults = Faults()


def _trajectory(draft: RowDraft, value: Mapping[str, object], branch: str, depth: int) -> None:
    model = text(inner(value, "agent"), "model_name")
    steps = list(objects(value, "steps"))
    measured = any(step.get("metrics") for step in steps)
    estimate = Estimate(draft)
    for number, step in enumerate(steps, start=1):
        line = whole(step, "step_id") or number
        said = "\n".join(filter(None, (told(step.get("message")), told(list(objects(step, "tool_calls"))))))
        at_ms, its_model = stamp_ms(step, "timestamp"), text(step, "model_name") or model
        its_branch = branch or _side(inner(step, "extra"))
        kind: Kind = "subagent" if its_branch else "main"
        if step.get("source") != "agent" or step.get("is_copied_context") is True:
            if step.get("source") == "agent":
                draft.copy()
            estimate.heard("" if measured else said)
        elif whole(step, "llm_call_count") == 0 or its_model == "<synthetic>":
            estimate.heard("" if measured else said)
        elif measured:
            metrics = inner(step, "metrics")
            draft.row(
                usage_of(metrics) if metrics else MISSING,
                line,
                at_ms=at_ms,
                model=its_model,
                branch=its_branch,
                kind=kind,
                requests=whole(step, "llm_call_count") or 1,
            )
        else:
            estimate.replied(said, line, at_ms=at_ms, model=its_model, branch=its_branch, kind=kind)
        if not measured:
            estimate.heard(told(list(objects(inner(step, "observation"), "results"))))
    if depth < _DEPTH_MAX:
        for number, sub in enumerate(objects(value, "subagent_trajectories"), start=1):
            name = text(sub, "trajectory_id") or text(sub, "session_id") or str(number)
            _trajectory(draft, sub, f"{branch}/{name}" if branch else name, depth + 1)


def _side(extra: Mapping[str, object]) -> str:
    """The name of the sub-agent whose step it is, "" for the trajectory's own agent."""
    return (text(extra, "agent_id") or "sidechain") if extra.get("is_sidechain") is True else ""


def sessions(source: Source) -> Iterator[Unread]:
    """A record is one session; embedded sub-agents are not driven."""
    for number, record in enumerate(source.records(), start=1):
        yield partial(_read, record, number)


def _read(record: Record, number: int) -> Session:
    draft = Draft(NAME, record.place, number)
    place = Place(record.place.path, record.place.line)
    instructions: list[str] = []
    begun = False
    model = text(inner(record.value, "agent"), "model_name")
    draft.name("sub-agent trajectory", sum(1 for _ in objects(record.value, "subagent_trajectories")))
    for line, step in enumerate(Fields(place, record.value).objects("steps"), start=1):
        source, at_ms = step.need_text("source"), step.stamp_ms("timestamp")
        texts = list(_texts(step, "message"))
        if source == "system" and not begun:
            instructions.extend(part.text for part in texts if isinstance(part, TextPart))
        elif source == "system":
            draft.notice("system message", at_ms, line)
        elif source == "user":
            begun = True
            for part in texts:
                if isinstance(part, TextPart):
                    draft.person(part.text, at_ms, line)
                else:
                    draft.notice(part.what, at_ms, line)
        elif source == "agent":
            begun = True
            _reply(draft, step, line, at_ms, step.text("model_name") or model, texts)
        else:
            raise place.unreadable(f'step {line} has the source "{label(source)}", which is unknown')
    return draft.session(instructions="\n\n".join(instructions) if instructions else None)


def _reply(
    draft: Draft,
    step: Fields,
    line: int,
    at_ms: int | None,
    model: str | None,
    texts: Sequence[TextPart | MissingPart],
) -> None:
    reply = draft.reply(line, at_ms, model, None, line)
    if step.text("reasoning_content"):
        draft.part(reply, MissingPart("reasoning"))
    for part in texts:
        draft.part(reply, part)
    for call in step.objects("tool_calls"):
        arguments = call.need_inner("arguments").value
        draft.part(
            reply, CallPart(call.need_text("tool_call_id"), call.need_text("function_name"), arguments)
        )
    metrics = step.inner("metrics")
    reply.usage = None if metrics is None else usage_of(metrics.value)
    observation = step.inner("observation")
    for result in observation.objects("results") if observation is not None else ():
        answer = Answer(at_ms, tuple(_texts(result, "content")), None, line)
        call_id = result.text("source_call_id")
        if call_id is None:
            draft.name("result without a call")
        else:
            draft.answer(call_id, answer)


def _texts(fields: Fields, key: str) -> Iterator[TextPart | MissingPart]:
    found = fields.value.get(key)
    if found is None or isinstance(found, str):
        if found:
            yield TextPart(found)
        return
    if not isinstance(found, list):
        raise fields.wrong(key, "text or a list of parts")
    for part in fields.objects(key):
        kind = part.need_text("type")
        yield TextPart(part.need_text("text")) if kind == "text" else MissingPart(label(kind))


FORMAT = Format(
    name=NAME,
    title="an ATIF trajectory",
    recognise=recognise,
    sessions=sessions,
    requests=requests,
)
