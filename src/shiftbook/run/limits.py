"""Every limit of a run, by name. Reaching one is an ordinary entry and the run rests; nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass, fields

from shiftbook.errors import AgentMistake


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run. None means "without limit". All of them hold for the run's whole life.

    `turns` model requests answered; `tokens` prompt and output tokens as reported by the provider;
    `wall_ms` since the run was opened, by the writer's clock; `result_bytes` of one tool result, the rest
    is cut and a warning says so; `parallel` actions at one time; `retries` of one model request;
    `repairs` of a reply that is not the declared output, in a row;
    `interruptions` replies cut off one after another; `attempts` of one call over all resumes;
    `retry_ms_min` and `retry_ms_max` bound the wait between attempts at a request, which doubles;
    `wish_ms_max` the wait that a provider may ask for: with a longer wish it cannot be had, now;
    `snapshot_every` entries between two snapshots: a resume folds at most about this many beside the
    prompt's own.
    """

    turns: int | None = None
    tokens: int | None = None
    wall_ms: int | None = None
    result_bytes: int = 16_000_000
    parallel: int = 8
    retries: int = 5
    repairs: int = 2
    interruptions: int = 3
    attempts: int = 10
    request_ms: int | None = 600_000
    retry_ms_min: int = 1_000
    retry_ms_max: int = 60_000
    wish_ms_max: int = 3_600_000
    snapshot_every: int = 200

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None or each.name not in _WITHOUT:
                check_number(f"The limit {each.name}", value, least=_LEAST.get(each.name, 0))
        if self.retry_ms_min > self.retry_ms_max:
            raise AgentMistake(
                f"The limit retry_ms_min is {self.retry_ms_min}: it has to be at most retry_ms_max, "
                f"{self.retry_ms_max}."
            )


_WITHOUT = frozenset({"turns", "tokens", "wall_ms", "request_ms"})
_LEAST = {"parallel": 1, "attempts": 1, "snapshot_every": 1}


def check_number(told: str, value: object, *, least: int) -> None:
    """Refuse, by `AgentMistake`, what is no whole number or a smaller one than `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise AgentMistake(f"{told} is {value!r:.60}: it has to be a whole number of at least {least}.")
