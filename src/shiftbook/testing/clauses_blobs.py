"""Clauses of the promise Blobs: bytes by their hash, within one run, written by the commit naming them."""

from __future__ import annotations

from shiftbook.codec import INLINE_BYTES_MAX, blob_hash, open_row, payload_blob
from shiftbook.errors import BadInput, Conflict, Damaged, UnknownRun
from shiftbook.testing.ground import Ground, require, require_equal, require_raises, said


def _named(*contents: bytes) -> dict[str, bytes]:
    return {blob_hash(content): content for content in contents}


async def j3_blobs_come_back_as_written(ground: Ground) -> None:
    """Fails a store that returns other bytes, also after reopening, or mixes up pages of names."""
    store = await ground.open()
    writer = await ground.begin(store)
    blobs = _named(b"", b"\x00\xff" * 5, b"text", bytes(300_000), *(bytes([n]) for n in range(20)))
    await writer.append(said("one"), blobs=dict(list(blobs.items())[:3]))
    await writer.append(said("two"), blobs=blobs)
    store = await ground.reopen(store)
    for name, content in blobs.items():
        require_equal(await store.blobs.get(writer.run, name), content, "a blob's bytes")
    names = await store.blobs.names(writer.run)
    require_equal(names, sorted(blobs), "the names of all blobs")
    require_equal(await store.blobs.names(writer.run, names[3], 4), names[4:8], "a page of four names")


async def j3_blobs_belong_to_one_run(ground: Ground) -> None:
    """Fails a store that shares blobs across runs, or answers for what is not there."""
    store = await ground.open()
    writer, other = await ground.begin(store), await ground.begin(store)
    (name,) = _named(b"mine")
    await writer.append(said("one"), blobs=_named(b"mine"))
    await require_raises(Damaged, store.blobs.get(other.run, name), "another run's blob")
    await require_raises(Damaged, store.blobs.get(writer.run, blob_hash(b"none")), "a blob that is not there")
    require_equal(await store.blobs.names(other.run), [], "the names of another run's blobs")
    await require_raises(UnknownRun, store.blobs.get(ground.clock.new_run_id(), name), "an unknown run")


async def j3_a_blob_is_part_of_its_commit(ground: Ground) -> None:
    """Fails a store that keeps blobs of a refused commit, or under a name that is not their hash."""
    store = await ground.open()
    writer = await ground.begin(store)
    stale = await writer.commit(said("late"), expected=0, blobs=_named(b"late"))
    await require_raises(Conflict, store.entries.append(stale), "a stale commit")
    liar = await writer.commit(said("liar"), blobs={blob_hash(b"one"): b"two"})
    await require_raises(BadInput, store.entries.append(liar), "a blob under a false name")
    require_equal(await store.blobs.names(writer.run), [], "blobs after refused commits")
    require_equal((await store.entries.head(writer.run)).position, 1, "rows after refused commits")


async def j3_large_payloads_are_blobs(ground: Ground) -> None:
    """Fails a store that cuts or changes a payload that the codec has put out into a blob."""
    store = await ground.open()
    writer = await ground.begin(store)
    text = "\u00e9" * INLINE_BYTES_MAX
    (row,) = await writer.append(said(text))
    name = payload_blob(row)
    require(name is not None, "the codec kept a large payload in its row")
    content = await store.blobs.get(writer.run, name or "")
    (read,) = await store.entries.read(writer.run, 1)
    require_equal(open_row(read, lambda _name: content).what, said(text), "a large entry")


CLAUSES = (
    j3_blobs_come_back_as_written,
    j3_blobs_belong_to_one_run,
    j3_a_blob_is_part_of_its_commit,
    j3_large_payloads_are_blobs,
)
