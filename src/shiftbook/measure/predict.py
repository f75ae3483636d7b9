"""What a prompt cache would have served of a session, by prompt sizes and stamps alone, against the truth.

Each branch is played through the vendor's rule as a prompt that grows at its end: a fixed part, one block a
request. A fall of less than a fifth takes from the end what no marker had kept (reasoning that is not sent
again); a greater one keeps the fixed part alone (a compaction). Another model shares nothing. Where the
reader of a format marks that reasoning was switched or that the program began anew, the messages are lost.
Tools and instructions stay then, but sizes do not tell how large they are: the fixed part holds the first
message as well, into which clients put what they know of the project (anthropics/claude-code#47098). So
nothing is counted as read. The blocks of a reply count for how far the vendor looks back. What was read from
the cache is never looked at: of usage only the size of each prompt and, once a session, how long writes were
to live.

The truth, by recorded usage alone, is `warmth.is_missed`; why a prediction fails is told by `causes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shiftbook.economics.cache import Serving
from shiftbook.economics.cache_request import CacheBlock, CacheRequest, Ttl, four_markers
from shiftbook.economics.cache_rules import MarkerRule
from shiftbook.economics.cache_vendors import CLAUDE_LARGEST_MINIMUM, cache_rule
from shiftbook.measure.causes import (
    Failure,
    cause_of_alarm,
    cause_of_miss,
    counted,
    failure_rows,
    told_of_alarms,
    told_of_misses,
)
from shiftbook.measure.growth import COLLAPSED, growth_of
from shiftbook.measure.series import Series, recorded_life
from shiftbook.measure.warmth import LIFE_DEFAULT, is_missed, pause_ms
from shiftbook.messages import Json
from shiftbook.sessions.requests import RecordedRequests

NEAR = 3.0
"""Percentage points: a predicted share within these of the recorded one is near."""


@dataclass(frozen=True, slots=True)
class Held:
    """Prediction against recording, over the requests whose reads are recorded.

    `hits`: misses that were predicted; `unseen`: there and not predicted; `false`: predicted and not there.
    """

    requests: int
    recorded: float | None
    predicted: float | None
    hits: int
    unseen: tuple[Failure, ...]
    false: tuple[Failure, ...]
    life: str

    @property
    def off(self) -> float | None:
        """Predicted less recorded share, in percentage points."""
        if self.recorded is None or self.predicted is None:
            return None
        return 100 * (self.predicted - self.recorded)


def predicted_reads(branches: Sequence[Series], life: str) -> dict[tuple[str, int], int]:
    """Tokens that each request (branch, its number from 0) would have read from the cache."""
    prompts = {each.branch: _prompts(each) for each in branches}
    settings = {each.branch: _settings(each) for each in branches}
    order = sorted(
        (point.at_ms or 0, at, number)
        for at, each in enumerate(branches)
        for number, point in enumerate(each.points)
    )
    rules: dict[str, Serving] = {}
    reads: dict[tuple[str, int], int] = {}
    ttl: Ttl = "1h" if life == "1h" else "5m"
    for at_ms, at, number in order:
        series = branches[at]
        model = series.points[number].row.model or ""
        rule = cache_rule(model)
        if model not in rules:
            rules[model] = Serving(rule if rule is not None else MarkerRule(CLAUDE_LARGEST_MINIMUM), ttl)
        blocks = prompts[series.branch][number]
        before = len(prompts[series.branch][number - 1]) - 1 if number else None
        previous = before if before is not None and before < len(blocks) else None
        setting = settings[series.branch][number]
        markers = four_markers(fixed_end=0, brief_end=None, previous_end=previous, end=len(blocks) - 1)
        count = rules[model].take(CacheRequest(at_ms / 1000, blocks, markers, scope=model, settings=setting))
        reads[series.branch, number] = count.read
    return reads


def held_against(branches: Sequence[Series]) -> Held:
    """Predict a session's cache and compare it with what was recorded."""
    life = recorded_life(point.row for each in branches for point in each.points) or LIFE_DEFAULT
    reads = predicted_reads(branches, life)
    hits = requests = recorded = predicted = prompt = 0
    unseen: list[Failure] = []
    false: list[Failure] = []
    for series in branches:
        for number, point in enumerate(series.points):
            if point.read is None:
                continue
            guess = reads[series.branch, number]
            requests, prompt = requests + 1, prompt + point.prompt
            recorded, predicted = recorded + point.read, predicted + guess
            if not number:
                continue
            before = series.points[number - 1].prompt
            was, said = is_missed(before, point.read), is_missed(before, guess)
            hits += was and said
            if was and not said:
                unseen.append(_failure(series, number, guess, cause_of_miss(series, number, life)))
            if said and not was:
                false.append(_failure(series, number, guess, cause_of_alarm(series, number, life)))
    return Held(
        requests=requests,
        recorded=recorded / prompt if prompt else None,
        predicted=predicted / prompt if prompt else None,
        hits=hits,
        unseen=tuple(unseen),
        false=tuple(false),
        life=life,
    )


def _failure(series: Series, number: int, guess: int, cause: str) -> Failure:
    before, after = series.points[number - 1 : number + 1]
    return Failure(
        branch=series.branch,
        at=number + 1,
        line=after.row.line,
        at_ms=after.at_ms,
        pause_ms=pause_ms(before, after),
        before=before.prompt,
        prompt=after.prompt,
        read=after.read or 0,
        predicted=guess,
        cause=cause,
    )


def _prompts(series: Series) -> list[tuple[CacheBlock, ...]]:
    """Each request of a branch as blocks: the fixed part, then what every request added."""
    sizes = [point.prompt for point in series.points]
    fixed = round(growth_of(series).fixed or 0) if sizes else 0
    start = CacheBlock(f"{series.branch} fixed", min([fixed, *sizes]))
    blocks: list[CacheBlock] = [start]
    told: list[tuple[CacheBlock, ...]] = []
    for number, size in enumerate(sizes):
        held = sum(each.tokens for each in blocks)
        if size < held:
            blocks = [start] if size < COLLAPSED * held else _shrunk(blocks, size)
            held = sum(each.tokens for each in blocks)
        small = (series.points[number - 1].row.blocks or 1) - 1 if number else 0
        blocks += [CacheBlock(f"{series.branch} {number} {each}", 0) for each in range(small)]
        blocks = [*blocks, CacheBlock(f"{series.branch} {number}", size - held, anchor=True)]
        told.append(tuple(blocks))
    return told


def _settings(series: Series) -> list[str]:
    """What a file's marks say of the settings behind each request; a change of them loses the messages."""
    told: list[str] = []
    for point in series.points:
        before = [mark for mark in series.marks if mark.line < point.row.line]
        reasoning = [mark.by or "" for mark in before if mark.what == "reasoning"]
        starts = sum(mark.what == "restart" for mark in before)
        told.append(f"{starts} {reasoning[-1] if reasoning else 'on'}")
    return told


def _shrunk(blocks: list[CacheBlock], size: int) -> list[CacheBlock]:
    """The same blocks with the last of them smaller, none at the front, so that they take `size` tokens."""
    rest = size
    told: list[CacheBlock] = []
    for block in blocks:
        told.append(replace(block, tokens=min(block.tokens, rest)))
        rest -= told[-1].tokens
    return told


def check_row(session: RecordedRequests, held: Held) -> dict[str, Json]:
    """One session's comparison as a plain row; `reasons` says why it fails where it does."""
    return {
        "path": session.path,
        "name": session.name,
        "requests": held.requests,
        "cache_life": held.life,
        "recorded_share": held.recorded,
        "predicted_share": held.predicted,
        "off_points": held.off,
        "hits": held.hits,
        "false": len(held.false),
        "unseen": len(held.unseen),
        "not_foreseen": failure_rows(held.unseen),
        "false_alarms": failure_rows(held.false),
        "reasons": list(reasons(held)),
    }


def check_sums(all_held: Sequence[Held]) -> dict[str, Json]:
    """Over all sessions: how many lie within NEAR points, precision and recall of the misses, every cause."""
    hits = sum(each.hits for each in all_held)
    unseen = [failure for each in all_held for failure in each.unseen]
    false = [failure for each in all_held for failure in each.false]
    return {
        "sessions": sum(each.off is not None for each in all_held),
        "near": sum(each.off is not None and abs(each.off) <= NEAR for each in all_held),
        "misses": hits + len(unseen),
        "precision": hits / (hits + len(false)) if hits or false else None,
        "recall": hits / (hits + len(unseen)) if hits or unseen else None,
        "not_foreseen": dict(counted(unseen)),
        "false_alarms": dict(counted(false)),
    }


def reasons(held: Held) -> list[str]:
    """Why the prediction fails for a session, in sentences; none when it does not."""
    told: list[str] = []
    if held.unseen:
        told.append(told_of_misses(held.unseen))
    if held.false:
        told.append(told_of_alarms(held.false))
    if held.off is not None and abs(held.off) > NEAR and not told:
        told.append(f"{held.off:+.2f} points off, though no request was foreseen wrongly")
    return told
