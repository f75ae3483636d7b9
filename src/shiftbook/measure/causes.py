"""Why a predicted cache and a recorded one differ at a request, as far as the file tells.

A miss that was not foreseen is laid to the first of these that holds: the vendor's own diagnosis where the
client kept it, a mark of the file, a prompt that became smaller, and at last what the request answered. A
false alarm is laid to what had foretold it. Nothing here predicts anything, and `unknown` is said where the
file says nothing: a format whose reader tells neither marks nor answers has no other cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from shiftbook.measure.growth import has_fallen
from shiftbook.measure.series import Point, Series
from shiftbook.measure.warmth import LIFE_MS, pause_ms
from shiftbook.messages import Json

Diagnosis = Literal["model_changed", "system_changed", "tools_changed", "messages_changed"]
"""The vendor's words (platform.claude.com, cache diagnostics); its others say that it does not know."""

MissCause = Literal["life", "reasoning", "restart", "plan", "shortened", "person", "result", "unknown"]
AlarmCause = Literal["life", "reasoning", "restart", "fall", "model", "unknown"]

MISS_WORDS: Mapping[str, str] = {
    "model_changed": "where the vendor says that the model had changed",
    "system_changed": "where the vendor says that the instructions had changed",
    "tools_changed": "where the vendor says that the tools had changed",
    "messages_changed": "where the vendor says that earlier messages had changed",
    "life": "after its life had ended",
    "reasoning": "where reasoning was switched",
    "restart": "where the program had begun anew",
    "plan": "after an accepted plan",
    "shortened": "where the prompt had become smaller",
    "person": "at a person's message",
    "result": "at the result of a tool or a task",
    "unknown": "of which the file tells nothing",
}
ALARM_WORDS: Mapping[str, str] = {
    "life": "still held after its life had ended",
    "reasoning": "still held where reasoning was switched",
    "restart": "still held where the program had begun anew",
    "fall": "still held where the prompt had fallen",
    "model": "still held by another model",
    "unknown": "of which the file tells nothing",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A prediction that failed at request number `at` (from 1, in its branch).

    `before` and `prompt` are the prompts of the request before it and of itself in tokens; `read` of it came
    from the cache and `predicted` should have. `cause` is a word of MISS_WORDS or ALARM_WORDS.
    """

    branch: str
    at: int
    line: int
    at_ms: int | None
    pause_ms: int | None
    before: int
    prompt: int
    read: int
    predicted: int
    cause: str


def cause_of_miss(series: Series, number: int, life: str) -> MissCause | Diagnosis:
    """Why request `number` (from 0) of a branch missed though it was predicted as held."""
    before, after = series.points[number - 1 : number + 1]
    for diagnosis in get_args(Diagnosis):
        if after.row.diagnosis == diagnosis:
            return diagnosis  # type: ignore[no-any-return]
    if _is_over(before, after, life):
        return "life"
    marked = _marked(series, before, after)
    for mark in ("reasoning", "restart", "plan"):
        if mark in marked:
            return mark
    if after.prompt < before.prompt:
        return "shortened"
    return after.row.answers or "unknown"


def cause_of_alarm(series: Series, number: int, life: str) -> AlarmCause:
    """Why request `number` (from 0) of a branch was predicted as a miss though it was none."""
    before, after = series.points[number - 1 : number + 1]
    if _is_over(before, after, life):
        return "life"
    marked = _marked(series, before, after)
    for mark in ("reasoning", "restart"):
        if mark in marked:
            return mark
    if before.row.model != after.row.model:
        return "model"
    return "fall" if has_fallen(before.prompt, after.prompt) else "unknown"


def told_of_misses(failures: Sequence[Failure]) -> str:
    """ "3 misses not foreseen: 2 at a person's message, 1 after an accepted plan"."""
    opening = "1 miss" if len(failures) == 1 else f"{len(failures):,} misses"
    return f"{opening} not foreseen: {_causes(failures, MISS_WORDS)}"


def told_of_alarms(failures: Sequence[Failure]) -> str:
    """ "2 false alarms: 2 still held after its life had ended"."""
    opening = "1 false alarm" if len(failures) == 1 else f"{len(failures):,} false alarms"
    return f"{opening}: {_causes(failures, ALARM_WORDS)}"


def counted(failures: Iterable[Failure]) -> dict[str, int]:
    """How many failures each cause has, the most frequent first, of equals the one that came first."""
    return dict(Counter(each.cause for each in failures).most_common())


def _causes(failures: Sequence[Failure], words: Mapping[str, str]) -> str:
    if len(failures) == 1:
        return words[failures[0].cause]
    return ", ".join(f"{times:,} {words[cause]}" for cause, times in counted(failures).items())


def failure_rows(failures: Sequence[Failure]) -> list[Json]:
    """The failures one by one, for `--json`."""
    return [
        {
            "branch": each.branch,
            "request": each.at,
            "line": each.line,
            "at_ms": each.at_ms,
            "pause_ms": each.pause_ms,
            "prompt_before": each.before,
            "prompt": each.prompt,
            "read": each.read,
            "predicted_read": each.predicted,
            "cause": each.cause,
        }
        for each in failures
    ]


def _is_over(before: Point, after: Point, life: str) -> bool:
    pause = pause_ms(before, after)
    return pause is not None and pause >= LIFE_MS[life]


def _marked(series: Series, before: Point, after: Point) -> set[str]:
    """The marks that hold from `after` on and did not at `before`."""
    return {mark.what for mark in series.marks if before.row.line <= mark.line < after.row.line}
