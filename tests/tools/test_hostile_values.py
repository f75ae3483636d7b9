"""Hostile values are recorded too: nothing raises, nothing is without bound."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbook.messages import Text
from shiftbook.tools.contract import Output
from shiftbook.tools.plain import DEPTH_MAX, REPR_CHARS_MAX
from shiftbook.tools.results import from_error, to_output, traceback_text
from tests.tools.recorded_values import read_back, text_of


def hostile(**methods: object) -> object:
    return type("Hostile", (), methods)()


def fails(*_: object, **__: object) -> None:
    raise RuntimeError("hostile")


def quits(*_: object) -> None:
    raise SystemExit(1)


class Recursive:
    def __repr__(self) -> str:
        return f"<{self!r}>"


class Nameless(type):
    """A type that does not tell its name."""

    def __getattribute__(cls, name: str) -> object:
        raise RuntimeError("hostile")


_METHODS = ("items", "keys", "values", "__iter__", "__len__", "__repr__")
HostileDict: type[dict[str, int]] = type("HostileDict", (dict,), dict.fromkeys(_METHODS, fails))
HostileError: type[Exception] = type("HostileError", (Exception,), {"__str__": fails, "__repr__": fails})


def a_generator():
    yield 1


HOSTILE: dict[str, Callable[[], object]] = {
    "repr raises": lambda: hostile(__repr__=fails),
    "repr quits": lambda: hostile(__repr__=quits),
    "repr is a number": lambda: hostile(__repr__=lambda _: 3),
    "repr is odd text": lambda: hostile(__repr__=lambda _: "\udc88\x00"),
    "class raises": lambda: hostile(__class__=property(fails)),
    "attributes raise": lambda: hostile(__getattr__=fails, __getattribute__=fails),
    "array raises": lambda: hostile(tolist=fails, nbytes=1),
    "array of itself": lambda: hostile(tolist=lambda own: own, nbytes=1),
    "path raises": lambda: hostile(__fspath__=fails),
    "not hashable": lambda: hostile(__hash__=fails, __eq__=fails),
    "repr without end": Recursive,
    "type without name": lambda: type.__call__(Nameless("Named", (), {"__repr__": fails})),
    "error without words": HostileError,
    "generator": a_generator,
    "function": lambda: fails,
    "code": lambda: fails.__code__,
    "type": lambda: type,
    "object": object,
    "lock": threading.Lock,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_value_is_recorded_and_raises_nothing(name):
    assert text_of(HOSTILE[name]())
    inside = text_of([1, HOSTILE[name](), 2])
    assert inside.startswith("[1,")
    assert inside.endswith(",2]")
    assert text_of({"key": HOSTILE[name]()}).startswith('{"key":')


def test_a_subclass_cannot_hide_what_its_base_holds():
    assert text_of(HostileDict(a=1)) == '{"a":1}'


def test_a_repr_of_any_length_is_cut():
    text = text_of(hostile(__repr__=lambda _: "S" * 100_000_000))
    assert len(text) < REPR_CHARS_MAX + 200
    assert "100,000,000 characters" in text


def test_circles_end():
    own: list[object] = [1]
    own.append(own)
    assert text_of(own) == '[1,{"type":"list","cut":"it holds itself"}]'
    first: dict[str, object] = {}
    first["second"] = {"first": first}
    assert text_of(first) == '{"second":{"first":{"type":"dict","cut":"it holds itself"}}}'
    shared = [1]
    assert text_of([shared, shared]) == "[[1],[1]]", "held twice is no circle"


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"k": v}, lambda v: {(1,): v}, lambda v: {1: v}])
def test_deep_nests_end(wrap):
    value: object = "the bottom"
    for _ in range(5_000):
        value = wrap(value)
    text = text_of(value)
    assert f"more than {DEPTH_MAX} deep" in text
    shallow: object = "the bottom"
    for _ in range(DEPTH_MAX):
        shallow = wrap(shallow)
    assert "the bottom" in text_of(shallow)


def test_errors_tell_the_model_what_and_the_entry_where():
    with pytest.raises(RuntimeError) as caught:
        fails()
    output, traceback = from_error(caught.value), traceback_text(caught.value)
    assert output == Output((Text("RuntimeError: hostile"),), is_error=True)
    assert "in fails" in traceback
    assert traceback.endswith("RuntimeError: hostile\n")
    assert from_error(HostileError()).content == (Text("HostileError"),)
    assert from_error(KeyError()).content == (Text("KeyError"),)


def test_a_traceback_is_cut_at_its_beginning_and_survives_a_hostile_error():
    with pytest.raises(ValueError, match="the end") as caught:
        raise ValueError("S" * 50_000 + "the end")
    traceback = traceback_text(caught.value, chars_max=1_000)
    assert traceback.endswith("the end\n")
    assert len(traceback) < 1_100
    assert "HostileError" in traceback_text(HostileError())


texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.binary(max_size=8),
    st.decimals(allow_nan=False),
    st.dates(),
)
keys = st.one_of(
    texts, st.integers(), st.none(), st.tuples(st.integers(), texts), st.frozensets(st.integers())
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.tuples(inner, inner),
        st.sets(leaves, max_size=3),
        st.builds(lambda item: hostile(__repr__=lambda _: item), inner),
    ),
    max_leaves=12,
)


@given(values, st.integers(0, 200))
def test_any_value_becomes_an_entry_within_its_limit(value, limit):
    output = to_output(value, payload_bytes_max=limit)
    assert output.content
    read_back(output)
    texts = [part.text for part in output.content if isinstance(part, Text)]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    assert size + sum(map(len, output.blobs.values())) <= limit
