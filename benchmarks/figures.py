"""The measures of `make bench`, each a function that returns plain figures.

Our blocks and the yardstick's bursts alternate in one process, so that a disk that changes its mind does so
to both. Process figures (start, memory, fsyncs) come from child processes, because a process keeps its
peak memory and its imports.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.workload import TURNS_PER_BLOCK, message, workload_agent
from benchmarks.yardstick import Yardstick
from shiftbook import open_store, resume, start

Figures = dict[str, Any]
LOCAL_BLOCKS = 20
"""Blocks that a local cost is the median of."""


def turns(long: bool) -> Figures:
    """Cost of a turn after 100, 1,000, 10,000 (and 100,000) turns, in x of bare-3, window policy."""
    stops = [100, 1_000, 10_000] + ([100_000] if long else [])
    return {
        commits: asyncio.run(_turns(stops, commits, "window", 40_000)) for commits in ("in-loop", "writer")
    }


def history(long: bool) -> Figures:
    """Cost of a turn when the whole history is handed over: transcript policy without a real cap."""
    return asyncio.run(_turns([100, 1_000, 10_000], "in-loop", "transcript", 1_000_000_000))


async def _turns(stops: list[int], commits: Any, policy: str, cap: int) -> Figures:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        yard = Yardstick(Path(folder) / "yard.db")
        path = Path(folder) / "ours.db"
        store = await open_store(str(path), commits=commits)
        run = await start(store, workload_agent(policy, cap))
        rows: Figures = {}
        block = 0
        ours: list[tuple[float, float]] = []
        bare: list[tuple[float, float]] = []
        for stop in stops:
            while block * TURNS_PER_BLOCK < stop:
                wall, cpu = time.perf_counter(), time.process_time()
                await run.say(message(block))
                await run.finish()
                ours.append((time.perf_counter() - wall, time.process_time() - cpu))
                block += 1
                if stop - block * TURNS_PER_BLOCK < LOCAL_BLOCKS * TURNS_PER_BLOCK:
                    bare.append(yard.burst(TURNS_PER_BLOCK))
            rows[str(stop)] = _local(ours[-LOCAL_BLOCKS:], bare[-LOCAL_BLOCKS:])
        await run.close()
        await store.close()
        yard.close()
        rows["bytes_per_turn"] = round(path.stat().st_size / stops[-1])
        last, first = rows[str(stops[-1])], rows["1000"]
        rows["cpu_of_last_in_x_of_1000"] = round(last["cpu_ms"] / first["cpu_ms"], 2)
        return rows


def _local(ours: list[tuple[float, float]], bare: list[tuple[float, float]]) -> Figures:
    wall, cpu = (statistics.median(item[i] for item in ours) / TURNS_PER_BLOCK * 1e3 for i in (0, 1))
    bare_wall, bare_cpu = (
        statistics.median(item[i] for item in bare) / TURNS_PER_BLOCK * 1e3 for i in (0, 1)
    )
    return {
        "wall_ms": round(wall, 3),
        "cpu_ms": round(cpu, 3),
        "bare3_wall_ms": round(bare_wall, 3),
        "bare3_cpu_ms": round(bare_cpu, 3),
        "wall_x": round(wall / bare_wall, 2),
        "cpu_x": round(cpu / bare_cpu, 2),
    }


def many(long: bool) -> Figures:
    """Turns a second of 50 runs in one process with group commit."""

    async def go() -> Figures:
        runs, blocks = 50, 10
        with tempfile.TemporaryDirectory(dir=".") as folder:
            store = await open_store(str(Path(folder) / "ours.db"), commits="writer")
            handles = [await start(store, workload_agent("window", 40_000)) for _ in range(runs)]

            async def work(number: int) -> None:
                for block in range(blocks):
                    await handles[number].say(message(block))
                    await handles[number].finish()

            wall, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*(work(number) for number in range(runs)))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            for handle in handles:
                await handle.close()
            await store.close()
        count = runs * blocks * TURNS_PER_BLOCK
        return {
            "runs": runs,
            "turns": count,
            "turns_per_s": round(count / wall),
            "cpu_us": round(cpu / count * 1e6),
        }

    return asyncio.run(go())


def fsyncs(long: bool) -> Figures:
    """fsync and fdatasync calls a turn, by strace: 1,200 turns less 200 turns."""
    if shutil.which("strace") is None:
        return {"not_measured": "strace is not installed"}
    counts = {turns: _syncs(turns) for turns in (200, 1_200)}
    return {"per_turn": round((counts[1_200] - counts[200]) / 1_000, 3), "counts": counts}


def _syncs(turns: int) -> int:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        log = Path(folder) / "strace.txt"
        subprocess.run(
            ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(log), sys.executable, "-m",
             "benchmarks.child", "grow", str(Path(folder) / "ours.db"), str(turns)],
            check=True, capture_output=True,
        )  # fmt: skip
        return len(re.findall(r"\b(?:fsync|fdatasync)\(", log.read_text()))


def resumes(long: bool) -> Figures:
    """Seconds from spawning a process to its first model request, by turns in the journal; five repeats."""
    rows: Figures = {}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for policy, cap in (("window", 40_000), ("transcript", 1_000_000_000)):
            paths = {}
            for count in (100, 10_000):
                path = str(Path(folder) / f"{policy}{count}.db")
                asyncio.run(grow(path, count, policy, cap))
                paths[count] = path
            times: dict[int, list[float]] = {count: [] for count in paths}
            for _ in range(5):
                for count, path in paths.items():
                    times[count].append(_spawn(path, policy, cap))
            medians = {count: statistics.median(values) for count, values in times.items()}
            rows[policy] = {
                **{f"{count}_s": round(value, 3) for count, value in medians.items()},
                "x": round(medians[10_000] / medians[100], 2),
            }
    return rows


def _spawn(path: str, policy: str, cap: int) -> float:
    began = time.time()
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", "resume", path, policy, str(cap)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(child.stdout) - began


async def grow(path: str, count: int, policy: str, cap: int) -> None:
    """A journal of `count` turns in a new database."""
    store = await open_store(path)
    async with await start(store, workload_agent(policy, cap), run="bench") as run:
        for block in range(count // TURNS_PER_BLOCK):
            await run.say(message(block))
            await run.finish()
    await store.close()


async def ask_once(path: str, policy: str, cap: int) -> float:
    """Resume the journal with a message; the wall clock when the model is asked."""
    agent = workload_agent(policy, cap)
    asked: list[float] = []

    class Stops:
        name = "workload"

        async def reply(self, request: Any, emit: Any) -> Any:
            asked.append(time.time())
            return await agent.model.reply(request, emit)

    store = await open_store(path)
    stops = replace(agent, model=Stops())
    async with await resume(store, "bench", stops, message(0)) as run:
        await run.finish()
    await store.close()
    return asked[0]


def imports(long: bool) -> Figures:
    """Start of `import shiftbook` over bare Python, and the memory it takes; medians of nine."""
    bare = [_child_cost("pass") for _ in range(9)]
    ours = [_child_cost("import shiftbook") for _ in range(9)]
    return {
        "import_s": round(statistics.median(o[0] for o in ours) - statistics.median(b[0] for b in bare), 3),
        "memory_mb": round(statistics.median(o[1] for o in ours), 1),
        "bare_memory_mb": round(statistics.median(b[1] for b in bare), 1),
    }


def _child_cost(code: str) -> tuple[float, float]:
    tell = f"{code}\nimport re;print(re.search('VmHWM:\\\\s+(\\\\d+)',open('/proc/self/status').read())[1])"
    began = time.perf_counter()
    child = subprocess.run([sys.executable, "-c", tell], check=True, capture_output=True, text=True)
    return time.perf_counter() - began, int(child.stdout) / 1024


MEASURES: dict[str, Callable[[bool], Figures]] = {
    "turns": turns,
    "history": history,
    "fsyncs": fsyncs,
    "resumes": resumes,
    "imports": imports,
    "many": many,
}
