"""Several processes on one SQLite file: no lock error, no gap, one winner, and nothing torn by a kill."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from shiftbook.clock import this_process
from shiftbook.codec import genesis, link
from shiftbook.errors import Conflict
from shiftbook.journal.open import open_store
from shiftbook.testing.ground import read_all, said
from tests.journal.places import holding, make, quick_folder, raw

ROOT = Path(__file__).parents[2]
PROCESSES, APPENDS = 8, 200
HANG_S = 60
"""When a follower that saw nothing is given up: not a time that anything is expected to take."""

pytestmark = pytest.mark.slow


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.journal.children", *map(str, arguments)]


def in_parallel(commands: list[list[str]]) -> list[str]:
    """Run processes at once; each must succeed. Their outputs."""
    children = [
        subprocess.Popen(each, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for each in commands
    ]
    ends = [child.communicate() for child in children]
    told = [errors for child, (_, errors) in zip(children, ends, strict=True) if child.returncode]
    assert not told, "\n".join(told)
    return [output for output, _ in ends]


def positions(path: Path, run: str) -> list[int]:
    return [
        position for (position,) in raw(path, f"SELECT position FROM book WHERE run = '{run}' ORDER BY 1")
    ]


def test_c5_many_processes_make_one_new_file_and_append(tmp_path: Path) -> None:
    # On a busy disk the last in the queue would wait for longer than the limit that the program sets it.
    with quick_folder(tmp_path) as folder:
        path = folder / "new.db"
        in_parallel([command("own", path, f"run{number}", APPENDS) for number in range(PROCESSES)])
        for number in range(PROCESSES):
            assert positions(path, f"run{number}") == list(range(1, APPENDS + 1))
        assert raw(path, "PRAGMA integrity_check") == [("ok",)]


def test_c5_many_processes_race_for_one_run(tmp_path: Path) -> None:
    with quick_folder(tmp_path) as folder:
        path = folder / "new.db"
        in_parallel([command("shared", path, "run", f"p{number}", APPENDS) for number in range(PROCESSES)])
        assert positions(path, "run") == list(range(1, PROCESSES * APPENDS + 1))
        # Every taking has an epoch of its own, and no two entries share one.
        epochs = [epoch for (epoch,) in raw(path, "SELECT epoch FROM entries ORDER BY id")]
        assert all(before < after for before, after in pairwise(epochs))
        words = [payload for (payload,) in raw(path, "SELECT payload FROM book ORDER BY position")]
        for number in range(PROCESSES):
            own = [word for word in words if f'"p{number} ' in word]
            assert len(own) == APPENDS
            assert [f'"p{number} {turn}"' in word for turn, word in enumerate(own)] == [True] * APPENDS


def test_c3_other_processes_put_mail_while_the_holder_appends(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))
    children = [
        subprocess.Popen(command("mail", path, run, f"p{n}", 20), cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for n in range(3)
    ]

    async def hold() -> list[str]:
        store = await open_store(str(path))
        writer = await holding(store, run)
        ids: list[str] = []
        while len(ids) < 60:
            mail = await store.inbox.waiting(run, 7)
            first = writer.position + 1
            if mail:
                await writer.append(
                    *(said("taken", item.id) for item in mail),
                    taken={item.id: first + place for place, item in enumerate(mail)},
                )
                ids += [item.id for item in mail]
        await store.close()
        return ids

    ids = asyncio.run(hold())
    for child in children:
        output, _ = child.communicate()
        assert child.returncode == 0
        assert output.splitlines() == ["True False"] * 20
    for n in range(3):
        assert [each for each in ids if each.startswith(f"p{n}-")] == [f"p{n}-{turn}" for turn in range(20)]
    moved = raw(path, "SELECT id, moved_to FROM inbox ORDER BY moved_to")
    assert moved == list(zip(ids, range(2, 62), strict=True))


@pytest.mark.parametrize("commits", ["in-loop", "writer"])
def test_a_kill_tears_no_commit(commits: str, tmp_path: Path) -> None:
    """A child commits three rows at a time to six runs and is killed amid it, thrice over."""
    for death in range(3):
        path = tmp_path / f"book{death}.db"
        child = subprocess.Popen(
            command("endless", path, commits, 6), cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        told: dict[str, int] = {}
        for _ in range(60 + 17 * death):
            run, position = child.stdout.readline().split()
            told[run] = int(position)
        child.send_signal(signal.SIGKILL)
        for line in child.stdout.read().splitlines():
            # The last line may be torn: that is the pipe, not the book.
            if len(line.split()) == 2 and line.split()[0] in told:
                told[line.split()[0]] = max(told[line.split()[0]], int(line.split()[1]))
        child.stdout.close()
        assert child.wait() == -signal.SIGKILL
        asyncio.run(_check_whole(path, told))


async def _check_whole(path: Path, told: dict[str, int]) -> None:
    store = await open_store(str(path))
    for run, position in told.items():
        rows = await read_all(store, run)
        assert len(rows) >= position, "an acknowledged commit is gone"
        assert len(rows) % 3 == 0, "half a commit is there"
        head = genesis(run)
        for row in rows:
            head = link(head, row)
            assert row.head in (None, head)
        assert (await store.entries.head(run)).head == head
        # The holder is dead, so nobody has to wait for its lease.
        lease = await store.leases.take(run, this_process(), 1000)
        assert lease.epoch == 2
    await store.close()


@pytest.mark.parametrize("commits", ["in-loop", "writer"])
def test_a_follower_sees_another_process_and_a_reopening(commits: str, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))

    async def main() -> list[int]:
        seen: list[int] = []
        for wanted in (21, 41):
            store = await open_store(str(path), commits=commits)  # type: ignore[arg-type]
            await store.leases.give_back((await holding(store, run)).lease)
            child = await asyncio.create_subprocess_exec(*command("continued", path, run, 20), cwd=ROOT)
            async for page in store.entries.follow(run, len(seen)):
                seen += [row.position for row in page]
                if len(seen) >= wanted:
                    break
            assert await child.wait() == 0
            await store.close()
        return seen

    async def bounded() -> list[int]:
        async with asyncio.timeout(HANG_S):
            return await main()

    assert asyncio.run(bounded()) == list(range(1, 42))


def test_b16_the_loser_of_a_race_is_told_the_numbers_and_reads_the_winner(tmp_path: Path) -> None:
    """Two stores, one lease, one position: no driver's error for the loser, and what won can be read."""
    path = tmp_path / "book.db"
    run = asyncio.run(make(path))

    async def main() -> None:
        left, right = await open_store(str(path)), await open_store(str(path), commits="writer")
        for turn in range(20):
            commits = [await (await holding(store, run)).commit(said("x")) for store in (left, right)]
            ends = await asyncio.gather(
                left.entries.append(commits[0]), right.entries.append(commits[1]), return_exceptions=True
            )
            (loser,) = [end for end in ends if end is not None]
            assert isinstance(loser, Conflict)
            assert (loser.run, loser.expected, loser.found) == (run, turn + 1, turn + 2)
            winner = commits[ends.index(None)]
            for store in (left, right):
                assert await store.entries.read(run, turn + 1) == [*winner.rows]
        await left.close()
        await right.close()

    asyncio.run(main())
