"""Clauses of the promises Catalogue and Cache: derived, droppable, and never stale for a commit."""

from __future__ import annotations

from shiftbook.entries import RunEnded, RunRested, State, Warned
from shiftbook.errors import RunExists, UnknownRun
from shiftbook.journal.promises import RunRow, Snapshot, Store
from shiftbook.testing.ground import Ground, require, require_equal, require_raises, said


async def _line(store: Store, run: str) -> RunRow:
    after: str | None = None
    while page := await store.catalogue.runs(after=after):
        for line in page:
            if line.run == run:
                return line
        after = page[-1].run
    raise UnknownRun(run)


async def j1_the_catalogue_follows_each_commit(ground: Ground) -> None:
    """Fails a store that serves a stale catalogue: the state, the position or a stamp of an older commit."""
    store, other = await ground.open(), await ground.open()
    writer = await ground.begin(store, tags=("blue", "a tag"))
    opened_ms = ground.clock.now_ms()
    steps: tuple[tuple[object, State], ...] = (
        (said("one"), "running"),
        (RunRested("waiting", "for a person"), "waiting"),
        (Warned("noted", "while it rests"), "running"),
        (RunRested("finished"), "finished"),
        (said("another task"), "running"),
        (RunRested("paused"), "paused"),
        (RunRested("limited"), "limited"),
        (RunEnded("cancelled"), "cancelled"),
        (Warned("noted", "after the end"), "cancelled"),
    )
    wanted: RunRow | None = None
    for place, (what, state) in enumerate(steps):
        # Two openings take turns, so that what one remembers of the run is out of date.
        writer.store = (store, other)[place % 2]
        ground.clock.advance(1000)
        await writer.append(what)  # type: ignore[arg-type]
        wanted = RunRow(
            writer.run,
            "clause.py:agent",
            state,
            ("blue", "a tag"),
            writer.position,
            opened_ms,
            ground.clock.now_ms(),
        )
        for reader in (store, other):
            require_equal(await _line(reader, writer.run), wanted, f"the line after {type(what).__name__}")
    await writer.store.catalogue.rebuild()
    require_equal(await _line(other, writer.run), wanted, "the line after a rebuild")


async def j1_the_catalogue_can_be_rebuilt(ground: Ground) -> None:
    """Fails a store whose catalogue is not what its rows say."""
    store = await ground.open()
    writers = [await ground.begin(store, tags=(f"tag{n}",)) for n in range(4)]
    await writers[0].append(said("x"), RunRested("waiting"))
    await writers[1].append(RunRested("waiting"), said("x"))
    await writers[2].append(RunEnded("failed", "why"), Warned("x", "y"))
    before = [await _line(store, writer.run) for writer in writers]
    require_equal([line.state for line in before], ["waiting", "running", "failed", "running"], "states")
    await store.catalogue.rebuild()
    store = await ground.reopen(store)
    after = [await _line(store, writer.run) for writer in writers]
    require_equal(after, before, "the catalogue after a rebuild")


async def j1_the_catalogue_is_asked_by_state_and_tag(ground: Ground) -> None:
    """Fails a store whose filters or pages leave a run out, repeat one or put an older one first."""
    store = await ground.open()
    tag = ground.clock.new_run_id()
    writers = [await ground.begin(store, tags=(tag, "also")) for _ in range(7)]
    await ground.begin(store, tags=("other",))
    for writer in writers[::2]:
        await writer.append(RunRested("paused"))
    newest = [writer.run for writer in reversed(writers)]
    require_equal([line.run for line in await store.catalogue.runs(tag=tag)], newest, "runs of a tag")
    paused = [line.run for line in await store.catalogue.runs(tag=tag, state="paused")]
    require_equal(paused, newest[::2], "paused runs of a tag")
    paged: list[str] = []
    while page := await store.catalogue.runs(tag=tag, after=paged[-1] if paged else None, limit=3):
        paged += [line.run for line in page]
    require_equal(paged, newest, "pages of three")
    await ground.begin(store, opened=False)
    require_equal((await store.catalogue.runs(limit=1))[0].tags, ("other",), "the newest run with an entry")


async def j1_a_prefix_finds_one_run(ground: Ground) -> None:
    """Fails a store that guesses between two runs, or takes a wildcard for a prefix."""
    store = await ground.open()
    writer = await ground.begin(store)
    require_equal(await store.catalogue.find(writer.run), writer.run, "found by the whole id")
    length = 1
    while not await _fits_one(store, writer.run[:length]):
        length += 1
    require_equal(await store.catalogue.find(writer.run[:length]), writer.run, "found by a prefix")
    for _ in range(40):
        await ground.begin(store)
    shared = [line.run[0] for line in await store.catalogue.runs()]
    twice = next(first for first in shared if shared.count(first) > 1)
    await require_raises(RunExists, store.catalogue.find(twice), "a prefix of several runs")
    for prefix in ("%", "_", "*", "", "zzzzzzzzzzzz", writer.run + "x", "\x00"):
        await require_raises(UnknownRun, store.catalogue.find(prefix), f"the prefix {prefix!r}")


async def _fits_one(store: Store, prefix: str) -> bool:
    try:
        await store.catalogue.find(prefix)
    except RunExists:
        return False
    return True


async def j1_a_snapshot_comes_back_as_kept(ground: Ground) -> None:
    """Fails a store that serves a snapshot of another version, name or run, or an older one."""
    store = await ground.open()
    writer, other = await ground.begin(store), await ground.begin(store)
    first, second = Snapshot("view", 3, 1, '{"n":1}'), Snapshot("view", 3, 2, '{"n":2}')
    await store.cache.save(writer.run, first)
    require_equal(await store.cache.load(writer.run, "view", 3), first, "a snapshot")
    await writer.append(said("x"), snapshot=second)
    await store.cache.save(writer.run, Snapshot("plan", 1, 1, "[]"))
    store = await ground.reopen(store)
    require_equal(await store.cache.load(writer.run, "view", 3), second, "the snapshot that a commit carried")
    for run, name, version in (
        (writer.run, "view", 2),
        (writer.run, "view", 4),
        (writer.run, "tallies", 3),
        (other.run, "view", 3),
    ):
        require(await store.cache.load(run, name, version) is None, f"a snapshot of {name} {version}")


async def j1_a_snapshot_may_be_dropped(ground: Ground) -> None:
    """Fails a store that keeps what was dropped, drops what was not, or believes one of no entry."""
    store = await ground.open()
    writer, other = await ground.begin(store), await ground.begin(store)
    snapshot = Snapshot("view", 1, 1, "{}")
    for run in (writer.run, other.run):
        await store.cache.save(run, snapshot)
    await store.cache.drop(writer.run)
    require(await store.cache.load(writer.run, "view", 1) is None, "a snapshot that was dropped")
    require_equal(await store.cache.load(other.run, "view", 1), snapshot, "another run's snapshot")
    await store.cache.save(writer.run, Snapshot("view", 1, 99, "{}"))
    require(await store.cache.load(writer.run, "view", 1) is None, "a snapshot of an entry that is not there")
    await store.cache.drop()
    require(await store.cache.load(other.run, "view", 1) is None, "a snapshot after all were dropped")
    await require_raises(
        UnknownRun, store.cache.save(ground.clock.new_run_id(), snapshot), "a snapshot of an unknown run"
    )


CATALOGUE_CLAUSES = (
    j1_the_catalogue_follows_each_commit,
    j1_the_catalogue_can_be_rebuilt,
    j1_the_catalogue_is_asked_by_state_and_tag,
    j1_a_prefix_finds_one_run,
)
CACHE_CLAUSES = (
    j1_a_snapshot_comes_back_as_kept,
    j1_a_snapshot_may_be_dropped,
)
