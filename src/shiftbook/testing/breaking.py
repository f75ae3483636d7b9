"""How a good store is broken: a part of it, or its opening, with a few functions replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from shiftbook.clock import Clock
from shiftbook.journal.promises import Store
from shiftbook.testing.ground import OpenStore

Wrap = Callable[[OpenStore], OpenStore]


@dataclass(frozen=True, slots=True)
class Break:
    """The clauses that a broken store must fail, and how to break a good one."""

    clauses: tuple[str, ...]
    wrap: Wrap


REGISTER: dict[str, Break] = {}
"""Every broken store by its name; filled when the modules that break stores are imported."""


class Changed:
    """Something with a few attributes replaced; all others are the inner's."""

    def __init__(self, inner: Any, **replaced: Any) -> None:
        self._inner = inner
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def changed(store: Store, part: str, **methods: Any) -> Store:
    """A store one of whose promises has other methods."""
    return cast(Store, Changed(store, **{part: Changed(getattr(store, part), **methods)}))


def breaks_opening(*clauses: str) -> Callable[[Wrap], Wrap]:
    """Register a wrapping of `open_store`."""

    def register(wrap: Wrap) -> Wrap:
        REGISTER[getattr(wrap, "__name__", "")] = Break(clauses, wrap)
        return wrap

    return register


def breaks(*clauses: str) -> Callable[[Callable[[Store], Store]], Callable[[Store], Store]]:
    """Register a wrapping of each opened store."""

    def register(wrap_store: Callable[[Store], Store]) -> Callable[[Store], Store]:
        def wrap(open_store: OpenStore) -> OpenStore:
            async def open_broken(clock: Clock) -> Store:
                return wrap_store(await open_store(clock))

            return open_broken

        REGISTER[getattr(wrap_store, "__name__", "")] = Break(clauses, wrap)
        return wrap_store

    return register
