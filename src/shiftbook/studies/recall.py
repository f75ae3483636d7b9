"""Does a capped prompt hold the labelled evidence? By source, size, policy, cap and type of question.

Deterministic and without any model: the same data, constants and version give the same bytes. Questions whose
labels do not resolve are not asked and are counted. Refused: judging an answer; a prompt that holds the
evidence is necessary for one and not enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftbook._version import VERSION
from shiftbook.errors import BadInput
from shiftbook.messages import Json
from shiftbook.policies import POLICIES
from shiftbook.studies.asking import RECALL_ONLY, CharsMeter, outcomes
from shiftbook.studies.beam import INDEX, is_beam, read_beam
from shiftbook.studies.chats import Chat
from shiftbook.studies.holding import RULES, Outcome, grouped, table_of
from shiftbook.studies.locomo import is_locomo, read_locomo
from shiftbook.tokens import BpeMeter, Meter
from shiftbook.vectors.static import static_vectors

CAPS: Mapping[str, tuple[int, ...]] = {"beam": (22_000,), "locomo": (4_000,)}
"""The caps of a source unless others are named: where the published figures that we compare with stand."""

METERS: Mapping[str, Callable[[], Meter]] = {"chars": CharsMeter, "o200k": BpeMeter}

Told = Callable[[str], None]
"""Takes a line on what is being done, for people."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to study. Empty: all sizes, each source's own caps, every policy and `recall-only`.

    `vectors` is a folder of static vectors, by which recall ranks too.
    """

    caps: tuple[int, ...] = ()
    sizes: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    meter: str = "chars"
    vectors: Path | None = None

    def checked(self) -> Options:
        """The same, or `BadInput` with one sentence."""
        known = (*POLICIES, RECALL_ONLY)
        for name in self.policies:
            if name not in known:
                raise BadInput(f"There is no policy {name!r} to study; choose of: {', '.join(known)}.")
        if self.meter not in METERS:
            raise BadInput(f"There is no meter {self.meter!r}; choose of: {', '.join(METERS)}.")
        if any(cap < 1 for cap in self.caps):
            raise BadInput("A cap is a number of tokens, at least 1.")
        return self


def study_recall(data: Path, options: Options, command: str, told: Told) -> dict[str, Json]:
    """The whole study as one value: the rows, and the table of their figures."""
    options.checked()
    meter = METERS[options.meter]()
    vectors = None if options.vectors is None else static_vectors(options.vectors)
    found: list[Outcome] = []
    asked = skipped = mended = chats = 0
    for chat in read(data, options.sizes):
        chats += 1
        asked += len(chat.asked)
        skipped += chat.skipped
        mended += chat.mended
        told(f"{chat.source} {chat.size}, chat {chat.name}: {len(chat.asked)} questions")
        for policy in options.policies or (*POLICIES, RECALL_ONLY):
            for cap in options.caps or CAPS[chat.source]:
                found.extend(outcomes(chat, policy, cap, meter, vectors))
    if not found:
        raise BadInput(f"There is nothing to ask in {data} of size {', '.join(options.sizes) or 'any'}.")
    return {
        "study": "recall",
        "command": command,
        "version": VERSION,
        "meter": meter.name,
        "vectors": None if vectors is None else vectors.name,
        "rules": {"headline": RULES[0], "beside": RULES[1]},
        "chats": chats,
        "questions": {"asked": asked, "skipped": skipped, "mended": mended},
        "rows": rows(found),
        "table": dict(table_of(found)),
    }


def read(data: Path, sizes: Sequence[str] = ()) -> Iterator[Chat]:
    """The chats in a folder of one source, or in one that holds several. A size is its folder's name;
    LoCoMo's is `all`, and asked for by `locomo` too."""
    wanted = frozenset(sizes) or None
    folders = [data, data / "beam", data / "locomo"]
    if not data.is_dir() or not any(is_beam(each) or is_locomo(each) for each in folders):
        raise BadInput(
            f"{data} is no folder of BEAM or LoCoMo, nor of both as `beam` and `locomo`: LoCoMo is a file "
            f"*locomo*.json, BEAM needs {INDEX} beside its chats (docs/guides/studies.md)."
        )
    for folder in folders:
        if is_beam(folder):
            yield from read_beam(folder, wanted)
        if is_locomo(folder) and (wanted is None or wanted & {"all", "locomo"}):
            yield from read_locomo(folder)


def rows(found: Sequence[Outcome]) -> list[Json]:
    """One row a question, policy and cap: what was wanted and what was held."""
    return [
        {
            "source": each.chat.source,
            "size": each.chat.size,
            "chat": each.chat.name,
            "part": each.chat.part,
            "type": each.asked.type,
            "question": number,
            "policy": policy_cap[0],
            "cap": int(policy_cap[1]),
            "labels": len(each.asked.evidence),
            "whole": each.whole,
            "cut": each.cut,
            "tokens": each.tokens,
        }
        for key, chosen in grouped(found, _of_chat).items()
        for policy_cap in [key.split("\n")[3:]]
        for number, each in enumerate(chosen, 1)
    ]


def _of_chat(each: Outcome) -> str:
    chat = each.chat
    return f"{chat.source}\n{chat.size}\n{chat.name}\n{each.policy}\n{each.cap}"
