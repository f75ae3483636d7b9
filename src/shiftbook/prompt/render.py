"""Entries and a recipe to blocks: pure, versioned, the same bytes on every machine for ever.

A pick says which entries are shown and in which form:

    whole    live, as it happened: reasoning and the provider's own ids verbatim
    paused   live, a reply that paused and is the last thing said: as whole, with the vendor's blocks at its
             end and no notice behind it, so that the vendor goes on where it stopped
    kept     after a rebuild: no reasoning, nothing of the provider's, calls and answers paired by our ids
    cut      as kept, with `keep` characters of each entry, and a line that says what is not shown and where
             it is; one entry's text and arguments share `keep`, the big ones cut to an equal height
    quoted   told as a record in plain text, where a call cannot be sent as one (its tool is gone); within
             `keep` characters where that is given
    recalled told as a record with its day, word for word, within `keep` characters
    dropped  one block for the range, which says that it is not shown
    rules, statements, plan, tallies
             one block for what stands of that kind by the range's entries (`prompt.brief`)
    working  one block for the names in the range's calls (`prompt.brief`)
    pending  one block for what is open by the entries that the pick names (`prompt.pending`)

Only kinds in `MODEL_VISIBLE` enter a prompt; others in a range are passed over. No block is ever empty: what
holds nothing that can be sent is told in words, on the user's side. Refused, by an error that says so: a form
or a kind that renderer 1 has no words for, and a pick of entries that are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shiftbook import canonical
from shiftbook.entries import (
    MODEL_VISIBLE,
    ActionFinished,
    Entry,
    ModelAnswered,
    ModelInterrupted,
    PersonSaid,
    Pick,
)
from shiftbook.errors import Damaged, NewerFormat
from shiftbook.messages import AssistantPart, Block, Call, Missing, Part, Reasoning, Result, Side, Text
from shiftbook.prompt import wording
from shiftbook.prompt.brief import BRIEF_FORMS, PENDING, render_brief
from shiftbook.prompt.cut import (
    Content,
    arguments_text,
    content_chars,
    content_parts,
    cut_arguments,
    cut_content,
    cut_text,
    is_blank,
    level,
    plain_arguments,
    plain_text,
)
from shiftbook.prompt.pending import render_pending
from shiftbook.prompt.told import recalled_text, told

RENDERER = 1
"""The renderer that new prompts are made with. A prompt's renderer never changes within its epoch."""

LIVE = frozenset({"whole", "paused"})
"""Forms that show an entry as it happened, with what is the provider's own."""

FORMS = frozenset({*LIVE, "kept", "cut", "quoted", "recalled", "dropped", *BRIEF_FORMS})

Render = Callable[[Pick, Mapping[int, Entry]], list[Block]]


def render_pick(pick: Pick, entries: Mapping[int, Entry]) -> list[Block]:
    """The blocks of one pick. `entries` holds at least the model-visible entries from its first to its last.

    Raises `Damaged` when an end of the range is not there or is no entry that a model may see, `NewerFormat`
    for a form or a kind that renderer 1 does not know.
    """
    if pick.form not in FORMS:
        raise NewerFormat(f"Renderer 1 has no form {pick.form!r}. Update Shiftbook to read this run.")
    if pick.form == "dropped":
        text = Text(wording.dropped(pick.first, pick.last))
        return [Block("user", (text,), "dropped", (pick.first, pick.last))]
    if pick.form == PENDING:
        return render_pending(pick, entries)
    if pick.form in BRIEF_FORMS:
        return render_brief(pick, entries)
    for end in (pick.first, pick.last):
        if end not in entries or type(entries[end].what) not in MODEL_VISIBLE:
            raise Damaged(f"The recipe picks entry {end}, which is not there or not for a model to see.")
    blocks: list[Block] = []
    for position in range(pick.first, pick.last + 1):
        entry = entries.get(position)
        if entry is not None and type(entry.what) in MODEL_VISIBLE:
            blocks.extend(render_entry(entry, pick.form, pick.keep))
    return blocks


def render_entry(entry: Entry, form: str = "whole", keep: int | None = None) -> list[Block]:
    """The blocks of one entry in any form that shows it. `NewerFormat` for a kind without words here."""
    what = entry.what
    if form == "recalled":
        return [Block("user", (Text(recalled_text(entry, keep)),), form, (entry.position,))]
    match what:
        case PersonSaid():
            return [_said(entry, what, keep)]
        case ModelAnswered():
            return _answered(entry, what, form, keep)
        case ModelInterrupted():
            return _interrupted(entry, what, keep)
        case ActionFinished():
            return [_finished(entry, what, form, keep)]
    text = told(entry)
    if text is not None:
        shown = text if keep is None else cut_text(text, keep, entry.position)
        return [_block("user", (Text(shown),), entry)]
    raise NewerFormat(
        f"Renderer 1 has no words for entry {entry.position} ({entry.kind}): update Shiftbook to read it."
    )


def chars(entry: Entry) -> int:
    """The length of an entry as `keep` is counted: an entry no longer than `keep` is not cut."""
    match entry.what:
        case PersonSaid(content=content) | ActionFinished(content=content):
            return content_chars(content_parts(content))
        case ModelAnswered(parts=parts):
            return len(_words(parts)) + sum(len(arguments_text(plain_arguments(c))) for c in calls_of(entry))
        case ModelInterrupted(parts=parts):
            return len(_words(parts))
    return len(told(entry) or "")


def calls_of(entry: Entry) -> tuple[Call, ...]:
    """The calls of a reply; none for anything else, a reply that was cut off included."""
    if not isinstance(entry.what, ModelAnswered):
        return ()
    return tuple([part for part in entry.what.parts if type(part) is Call])


def _block(side: Side, parts: tuple[Part, ...], entry: Entry) -> Block:
    return Block(side, parts, entry.kind, (entry.position,))


def _said(entry: Entry, what: PersonSaid, keep: int | None) -> Block:
    parts = _shown(what.content, keep, entry.position) or (Text(wording.NO_MESSAGE),)
    label = wording.LABELS.get(what.author)
    return _block("user", parts if label is None else (Text(label), *parts), entry)


def _shown(content: tuple[Content, ...], keep: int | None, position: int) -> tuple[Content, ...]:
    return cut_content(content_parts(content), keep, position)


def _words(parts: tuple[AssistantPart, ...]) -> str:
    """The text of a reply as one."""
    return "\n".join(part.text for part in _texts(parts))


def _texts(parts: tuple[AssistantPart, ...]) -> list[Text]:
    shown = content_parts([part for part in parts if isinstance(part, Text | Missing)])
    return [part for part in shown if isinstance(part, Text)]


def _answered(entry: Entry, what: ModelAnswered, form: str, keep: int | None) -> list[Block]:
    calls = calls_of(entry)
    if form == "quoted":
        return _quoted(entry, what, keep)
    if form == "cut" and keep is not None and chars(entry) > keep:
        parts = _cut_reply(entry, what, keep)
    else:
        parts = tuple(_reply_parts(what.parts, live=form in LIVE))
    while parts and type(parts[-1]) is Reasoning and form != "paused":
        parts = parts[:-1]
    if not parts:
        return [_block("user", (Text(wording.NO_REPLY),), entry)]
    blocks = [_block("assistant", parts, entry)]
    if form != "paused" and not calls and what.stop in ("length", "pause"):
        notice = wording.LENGTH_REACHED if what.stop == "length" else wording.PAUSED
        blocks.append(_block("user", (Text(notice),), entry))
    return blocks


def _reply_parts(parts: tuple[AssistantPart, ...], *, live: bool) -> list[Part]:
    shown: list[Part] = []
    called: list[Part] = []
    for part in parts:
        match part:
            case Call():
                called.append(_call(part, plain_arguments(part), live=live))
            case Reasoning():
                if live:
                    (called or shown).append(part)
            case _:
                # Anthropic refuses text behind a call: it wants the answers there.
                shown += content_parts((part,))
    return shown + called


def _call(call: Call, arguments: Mapping[str, object], *, live: bool) -> Call:
    raw = call.raw if live and call.arguments is not None else None
    return Call(call.id, plain_text(call.tool), arguments, raw, call.vendor if live else None)


def _cut_reply(entry: Entry, what: ModelAnswered, keep: int) -> tuple[Part, ...]:
    words = _words(what.parts)
    asked = [(call, plain_arguments(call)) for call in calls_of(entry)]
    height = level([len(words), *(len(arguments_text(arguments)) for _, arguments in asked)], keep)
    parts: list[Part] = [Text(cut_text(words, height, entry.position))] if words else []
    for call, arguments in asked:
        parts.append(_call(call, cut_arguments(arguments, height, entry.position), live=False))
    return tuple(parts)


def _quoted(entry: Entry, what: ModelAnswered, keep: int | None) -> list[Block]:
    """A reply told as a record: its text as the assistant's, its calls as the user's side tells them."""
    words = _words(what.parts)
    told = "\n".join(
        wording.quoted_call(
            entry.position, call.id, canonical.encode(call.tool), arguments_text(plain_arguments(call))
        )
        for call in calls_of(entry)
    )
    if keep is not None:
        height = level([len(words), len(told)], keep)
        words, told = (cut_text(text, height, entry.position) for text in (words, told))
    blocks = [] if is_blank(words) else [_block("assistant", (Text(words),), entry)]
    if told or not blocks:
        blocks.append(_block("user", (Text(told or wording.NO_REPLY),), entry))
    return blocks


def _interrupted(entry: Entry, what: ModelInterrupted, keep: int | None) -> list[Block]:
    """The text that came, and that no more did. Calls in it were never run and are not shown as calls."""
    words: list[Part] = list(_texts(what.parts))
    if keep is not None and chars(entry) > keep:
        words = [Text(cut_text(_words(what.parts), keep, entry.position))]
    notice = Text(wording.broken_off(plain_text(what.reason), had_text=bool(words)))
    blocks = [_block("assistant", tuple(words), entry)] if words else []
    return [*blocks, _block("user", (notice,), entry)]


def _finished(entry: Entry, what: ActionFinished, form: str, keep: int | None) -> Block:
    content = _shown(what.content, keep, entry.position)
    first = content[0] if content else None
    if what.outcome == "unknown":
        if not (isinstance(first, Text) and first.text.startswith(wording.UNKNOWN_OPENING)):
            content = (Text(wording.UNKNOWN), *content)
    elif not content:
        content = (Text(wording.CANCELLED if what.outcome == "cancelled" else wording.NO_OUTPUT),)
    if form == "quoted":
        head = Text(wording.quoted_answer(entry.position, what.call, what.outcome))
        return _block("user", (head, *content), entry)
    return _block("user", (Result(what.call, content, is_error=what.outcome != "done"),), entry)


RENDERERS: Mapping[int, Render] = {1: render_pick}
"""Every renderer that a journal may have been made with; one stays as long as golden journals of it."""


def renderer(version: int) -> Render:
    """The renderer of that version; `NewerFormat` when this release has none."""
    if version not in RENDERERS:
        raise NewerFormat(f"The prompt was made by renderer {version}. Update Shiftbook to read this run.")
    return RENDERERS[version]
