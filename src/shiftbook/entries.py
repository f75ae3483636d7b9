"""The closed vocabulary of what can happen in a run.

Every entry is a frozen value in the past tense. Entries neither render nor stamp themselves; position,
stamp and lease epoch stand in the `Entry` around them. The vocabulary grows only by a decision record:
`What` is matched exhaustively wherever it is folded, so that a new kind cannot be overlooked.

Only the kinds in `MODEL_VISIBLE` may enter a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from shiftbook.messages import AssistantPart, Json, Media, Missing, StopReason, Text, Usage

FORMAT = 1
"""Version of the entry format that this release writes; newer ones are refused on reading."""

Outcome = Literal["done", "failed", "cancelled", "unknown"]
State = Literal["running", "waiting", "paused", "limited", "finished", "failed", "cancelled"]
Author = Literal["person", "author", "recording"]
Origin = Literal["model", "tool", "observer", "report", "person", "author"]
Sort = Literal["fact", "decision"]
PlanState = Literal["open", "doing", "done", "dropped"]
TallyOperation = Literal["set", "add"]
UserContent = tuple[Text | Media | Missing, ...]


@dataclass(frozen=True, slots=True)
class Pick:
    """One piece of a recipe: the model-visible entries from `first` to `last`, each in `form`.

    `keep` is what the form needs to know, for "cut" the characters kept; `of` are those it is made of alone.
    """

    first: int
    last: int
    form: str = "whole"
    keep: int | None = None
    of: tuple[int, ...] = ()


Recipe = tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class RunOpened:
    """A run began; `agent` is the reference it was started with ("agent.py:shop")."""

    run: str
    agent: str
    engine: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentDeclared:
    """What the agent is from here on. `declaration` is the blob of its canonical declaration.

    `contracts` maps each tool to the digest of what its author promised, so that a call left open by one
    version of an agent is never handed to another.
    """

    agent: str
    declaration: str
    model: str
    policy: str
    cap: int
    contracts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PersonSaid:
    """Somebody outside spoke to the run; `item` is the inbox item that it came in."""

    content: UserContent
    author: Author = "person"
    item: str | None = None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A standing instruction by the agent's author or by a person; never by a model or a tool."""

    key: str
    text: str
    author: Author
    withdrawn: bool = False
    item: str | None = None


@dataclass(frozen=True, slots=True)
class EpochOpened:
    """The prompt was rebuilt: `blocks` is its new head; `numbers` are the figures behind `reason`."""

    epoch: int
    reason: str
    blocks: Recipe = ()
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """A turn began: `blocks` were added to the prompt of the epoch, whose chained digest is `digest`.

    `tokens` is the prompt by the meter named in `meter`; a bound when that already fitted the cap.
    """

    turn: int
    blocks: Recipe
    digest: str
    tokens: int
    meter: str
    renderer: int = 1


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """An attempt at a turn's request failed; `retry_at_ms` is None when it is not tried again."""

    turn: int
    attempt: int
    error: str
    retry_at_ms: int | None = None
    status: int | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The reply to a turn's request, whole."""

    turn: int
    parts: tuple[AssistantPart, ...]
    stop: StopReason
    usage: Usage = Usage()
    model: str | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ModelInterrupted:
    """A reply was cut half-way: the part that came, and why no more did. Calls in it were never run."""

    turn: int
    parts: tuple[AssistantPart, ...]
    reason: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ActionStarted:
    """A call is dispatched now, under `key`: whatever comes later, it may have had its effect."""

    call: str
    tool: str
    key: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ActionFinished:
    """The one answer to a call. `reconciled`: the tool was asked afterwards whether it had happened."""

    call: str
    outcome: Outcome
    content: UserContent
    traceback: str | None = None
    reconciled: bool = False


@dataclass(frozen=True, slots=True)
class StatementMade:
    """A fact or a decision, standing under its key until superseded; `sources` are its entries."""

    key: str
    value: Json
    sort: Sort
    origin: Origin
    sources: tuple[int, ...] = ()
    about: str | None = None
    supersedes: int | None = None


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One item of a plan."""

    id: str
    text: str
    state: PlanState


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The plan as it stands now, whole."""

    items: tuple[PlanItem, ...]
    origin: Origin
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TallyChanged:
    """An exact running number was set or added to; `amount` is an int or a Decimal, never a float."""

    key: str
    operation: TallyOperation
    amount: Json
    origin: Origin
    place: str = ""
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One line of a report and the entries that it cites."""

    text: str
    cites: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReportWritten:
    """An account of the entries `first` to `last`, by a model or by rule."""

    first: int
    last: int
    lines: tuple[ReportLine, ...]
    writer: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class LineStruck:
    """A report's line was not carried: what it said is not in the entries that it cites."""

    line: ReportLine
    why: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """Older entries were brought back: for the `model`, a `message` or a `rebuild`. By code, `cut` are those
    shown within `keep` characters, `room` the tokens all might take, and the query is only its beginning."""

    query: str
    found: tuple[int, ...]
    asked_by: str
    cut: tuple[int, ...] = ()
    keep: int = 0
    room: int = 0


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A named limit was reached: `value` against `allowed`."""

    limit: str
    value: int
    allowed: int


@dataclass(frozen=True, slots=True)
class Warned:
    """Something was not done as it would be expected; `what` is a stable name, `detail` a sentence."""

    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class RunRested:
    """Nothing is left to do for now; a message, an answer or a raised limit takes the run up again."""

    state: State
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over for good."""

    state: State
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReportAsked:
    """A model was asked for an account of `entries`, before they leave the prompt.

    With `extends` the request was the epoch's prompt as it was last sent, and one block more in which each
    entry is named with `keep` characters of it; else it stood alone, with `keep` characters quoted of each.
    `chars` is what the account might take, `tokens` the whole request by the meter named in `meter`, and
    `digest` the chain over it: from the prompt's digest on, or from the declaration on.
    """

    entries: tuple[int, ...]
    model: str
    chars: int
    digest: str
    tokens: int
    meter: str
    extends: bool = True
    keep: int = 0
    renderer: int = 1


@dataclass(frozen=True, slots=True)
class ReportFailed:
    """An attempt at a report's request failed; `retry_at_ms` is None when it is not tried again.

    `part` is what had come of the reply by then.
    """

    attempt: int
    error: str
    retry_at_ms: int | None = None
    status: int | None = None
    part: str | None = None


@dataclass(frozen=True, slots=True)
class ReportAnswered:
    """The reply to a report's request, whole and as it came; what stands of it is in `ReportWritten`."""

    parts: tuple[AssistantPart, ...]
    stop: StopReason
    usage: Usage = Usage()
    model: str | None = None
    attempt: int = 1


What = (
    RunOpened
    | AgentDeclared
    | PersonSaid
    | RuleSet
    | EpochOpened
    | ModelAsked
    | ModelFailed
    | ModelAnswered
    | ModelInterrupted
    | ActionStarted
    | ActionFinished
    | StatementMade
    | PlanChanged
    | TallyChanged
    | ReportWritten
    | LineStruck
    | Recalled
    | LimitReached
    | Warned
    | RunRested
    | RunEnded
    | ReportAsked
    | ReportFailed
    | ReportAnswered
)

KINDS: Mapping[str, type[What]] = {kind.__name__: kind for kind in get_args(What)}
"""Every kind by its name; the order is the order of the numbers that a store keeps for them, from 1."""

KIND_NUMBERS: Mapping[str, int] = {name: number for number, name in enumerate(KINDS, start=1)}
"""The number of each kind: part of the format, never reused, only added to."""

MODEL_VISIBLE: frozenset[type[What]] = frozenset(
    {
        PersonSaid,
        RuleSet,
        ModelAnswered,
        ModelInterrupted,
        ActionFinished,
        StatementMade,
        PlanChanged,
        TallyChanged,
        ReportWritten,
        Recalled,
    }
)
"""The only kinds that may enter a prompt."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened, at its position in the run, which is its order; `at_ms` is the writer's clock,
    for people. `redacted` counts what was taken out before writing, by pattern name."""

    position: int
    at_ms: int
    epoch: int
    what: What
    redacted: Mapping[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The name of what happened."""
        return type(self.what).__name__
