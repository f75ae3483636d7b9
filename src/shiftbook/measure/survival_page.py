"""What recorded compactions kept, as one page, for somebody who has never seen the project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftbook.measure.survival import Part, Survived, pooled
from shiftbook.pages import Bar, Markup, Section, bar_chart, facts, notes, page, paragraph, table
from shiftbook.pages.table import Cell

LEAD = (
    "When a session no longer fits, many tools put an account of it in place of all that was said. This "
    "page shows, for each recorded compaction, how much of what stood before stands in the account, and how "
    "much of what the work needed afterwards."
)

WORDS = """\
Kept: of all identifiers that stood before the compaction, those that stand in the account.
Needed: identifiers that a later call used, that stood before, and that nobody had shown again in between.
Held: of those that were needed, the ones that the account has. The rest had to be found again or guessed.
Account: the size of the account in tokens, by our own meter.
Decisions are sentences with a deciding word, kept when half of their long words are: rough and generous.
"Not known" stands where nothing of a kind was there to be kept: no share is told of nothing.\
""".splitlines()


def survival_page(
    found: Sequence[tuple[str, Sequence[Survived]]], *, sessions: int, command: str, version: str
) -> str:
    """The page as text; deterministic. `found` are those with a compaction, `sessions` counts all."""
    kept, needed = pooled(each for _, many in found for each in many)
    whole = sum(len(many) for _, many in found)
    said = {"Sessions": f"{sessions:,}", "Compactions": f"{whole:,}"}
    short: list[Markup] = [facts(said)]
    if whole:
        short += [_chart(needed), _all(kept, needed)]
    else:
        short.append(paragraph("There is no recorded compaction with replies before and after it."))
    sections = [Section("In short", tuple(short)), Section("How to read this", (notes(WORDS),))]
    if whole:
        sections.append(Section("Every compaction", (_each(found, list(needed)),)))
    return page(
        "What compactions kept of your sessions", sections, lead=LEAD, command=command, version=version
    )


def _chart(needed: Mapping[str, Part]) -> Markup:
    bars = [Bar(kind, 100 * part.share) for kind, part in needed.items() if part.share is not None]
    if not bars:
        return paragraph("No later call used anything that stood only before a compaction.")
    title = "Of what was needed after a compaction, how much its account held"
    return bar_chart(bars, title=title, most=100, digits=0, unit="%")


def _all(kept: Mapping[str, Part], needed: Mapping[str, Part]) -> Markup:
    columns = ("kind", "stood before", "kept", "needed after", "held")
    rows = [
        (
            kind,
            part.of,
            part.share,
            needed[kind].of if kind in needed else "not counted",
            needed[kind].share if kind in needed else "not counted",
        )
        for kind, part in kept.items()
    ]
    return table(columns, rows, right=columns[1:], caption="All compactions together; shares from 0 to 1")


def _each(found: Sequence[tuple[str, Sequence[Survived]]], kinds: Sequence[str]) -> Markup:
    columns = ("session", "after turn", "account", *(f"{kind} held" for kind in kinds))
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            each.turn,
            each.tokens,
            *(f"{part.held:,} of {part.of:,}" if part.of else "none needed" for part in each.needed.values()),
        )
        for name, many in found
        for each in many
    ]
    return table(columns, rows, right=columns[1:])
