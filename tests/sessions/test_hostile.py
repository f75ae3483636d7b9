"""Whatever the bytes, a file is a Session or a SessionUnreadable, and a Session keeps its own promises."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from shiftbook.errors import SessionUnreadable
from shiftbook.sessions import Reply, Session, open_session

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json*"))
LINES = {path.name: path.read_bytes().splitlines(keepends=True) for path in FIXTURES}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def swapped(value: object, way: list[int], new: object, remove: bool) -> object:
    """The value with one inner value, found by walking `way`, replaced or taken out."""
    if not way or not isinstance(value, (dict, list)) or not value:
        return new
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[way[0] % len(keys)]
    inner = swapped(value[key], way[1:], new, remove)
    drop = remove and len(way) == 1
    if isinstance(value, dict):
        return {at: inner if at == key else kept for at, kept in value.items() if not (drop and at == key)}
    return [inner if at == key else kept for at, kept in enumerate(value) if not (drop and at == key)]


def read(data: bytes) -> Session | None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            return open_session(file.name, only=1)
        except SessionUnreadable as refused:
            sentence = str(refused)
    assert "\n" not in sentence
    return None


def check(session: Session | None) -> None:
    if session is None:
        return
    assert session.steps
    assert len(session.replies) <= session.requests_in_file
    for step in session.steps:
        if isinstance(step, Reply):
            assert len(step.answers) == len(step.calls)
    given = [answer.line for reply in session.replies for answer in reply.answers if answer is not None]
    unanswered = sum(answer is None for reply in session.replies for answer in reply.answers)
    assert dict(session.named).get("call without an answer", 0) == unanswered
    assert all(line > 0 for line in given)


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from([name for name in sorted(LINES) if name.endswith("l")]),
    line=st.integers(0, 30),
    way=st.lists(st.integers(0, 9), max_size=6),
    new=values,
    remove=st.booleans(),
)
def test_any_field_may_be_anything(name: str, line: int, way: list[int], new: object, remove: bool) -> None:
    lines = list(LINES[name])
    at = line % len(lines)
    lines[at] = json.dumps(swapped(json.loads(lines[at]), way, new, remove)).encode() + b"\n"
    check(read(b"".join(lines)))


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(sorted(LINES)),
    edits=st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=3), st.integers(0, 40)), max_size=4),
)
def test_any_bytes_may_be_cut_or_put_in(name: str, edits: list[tuple[int, bytes, int]]) -> None:
    data = b"".join(LINES[name])
    for start, put, cut in edits:
        at = start % (len(data) + 1)
        data = data[:at] + put + data[at + cut :]
    check(read(data))


@settings(max_examples=100, deadline=None)
@given(name=st.sampled_from([name for name in sorted(LINES) if name.startswith("claude")]), data=st.data())
def test_lines_may_stand_in_any_order(name: str, data: st.DataObject) -> None:
    lines = data.draw(st.permutations(LINES[name]))
    session = read(b"".join(lines))
    assert session is not None
    check(session)
