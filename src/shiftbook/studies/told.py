"""A study as a page: what was asked, the figures with their intervals, and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from shiftbook.messages import Json
from shiftbook.pages import Bar, Markup, Section, bar_chart, notes, page, paragraph, table
from shiftbook.studies.identifiers import KINDS

Cells = tuple[str | int | float | None, ...]

READ_INTERVALS = (
    "The thin line over a bar is Wilson's interval of 95%: with so few cases the true share may lie anywhere "
    "on it, and two bars whose lines overlap are not told apart by this study."
)


IN_TEXT = (
    "Numbers in text: without those that stood before as the numbers of a file's lines alone, which a "
    "reading tool puts there by the thousand, and which were needed to read on from a line."
)

PARTED = (
    "Part: every other file, in the order of their names. The policies' constants were chosen on the 1st, "
    "3rd ... of the sessions that docs/guides/studies.md tells of; whether it is these, a study cannot know."
)

RECALLED = (
    "Recalled: of what the prompt lacks, the share that recall brings back within 2,000 tokens, asked with "
    "the turn's own words without the identifiers in question."
)


def page_of(result: Mapping[str, Json]) -> str:
    """The page of a study's whole result. `KeyError` for a study that has none."""
    title, lead, sections = _PAGES[result["study"]](result)
    return page(title, sections, lead=lead, command=result["command"], version=result["version"])


Told = tuple[str, str, list[Section]]


def _boundary(result: Mapping[str, Json]) -> Told:
    lead = (
        "When a session grows too long, a coding agent replaces everything so far by an account and goes on "
        f"with that. Such moments looked at again here: {result['boundaries']}, in recorded sessions: "
        f"{result['sessions']}. What the agent then used in a tool's input, had seen before, and had not "
        "seen since, was needed from the prompt: a path, a number, a symbol, a hexadecimal id. Which share "
        "of it stood in the account that was really written, and which share would have stood in the prompt "
        "of each policy at the same size?"
    )
    chosen = list(_by_cap(result["table"]))
    sections = [
        Section(
            f"Prompts of {_cap_name(cap)}",
            (
                *(
                    bar_chart(
                        [
                            _bar(policy, found[kind], found["interval"][kind])
                            for policy, found in policies.items()
                        ],
                        title=f"Needed {kind} that stand in the prompt ({_n(policies, kind)} needed)",
                        most=1.0,
                    )
                    for kind in KINDS
                    if _n(policies, kind)
                ),
            ),
        )
        for cap, policies in chosen
    ]
    sections.append(Section("All figures", (_boundary_table(result["table"]),)))
    told = [
        READ_INTERVALS,
        "Without lists: identifiers that stand only in lines with fewer words than identifiers do not count.",
        "Shown per needed: how many identifiers stand in the prompt for each one that was needed and held.",
        RECALLED,
        "A prompt that holds an identifier may still be poor: a list holds much and explains little.",
        "The account of notes is written by rule here, since no model is asked; a model's may hold more.",
        PARTED,
        IN_TEXT,
        "A dash: nothing of the kind was needed, so there is no share of it.",
        f"Tokens are counted by {result['meter']}.",
    ]
    sections.append(Section("How to read it", (notes(told),)))
    return "What is still in the prompt after a compaction?", lead, sections


def _by_cap(figures: Mapping[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    caps = dict.fromkeys(cap for policies in figures.values() for cap in policies)
    for cap in caps:
        yield cap, {policy: found[cap] for policy, found in figures.items() if cap in found}


def _cap_name(cap: str) -> str:
    return "the size of the recorded account" if cap == "own" else f"{int(cap):,} tokens"


def _n(policies: Mapping[str, Json], kind: str) -> int:
    return max((found["n"][kind] for found in policies.values()), default=0)


def _bar(policy: str, value: float | None, interval: tuple[float, float] | None = None) -> Bar:
    """The bar of a policy; our own and the account that was really written stand out."""
    low, high = interval if interval and value is not None else (None, None)
    colour = 1 if policy.startswith("summary") else 0 if policy == "journal" else 5
    return Bar(policy, value, low, high, colour=colour)


BOUNDARY_COLUMNS = (
    *("policy", "cap", "part", "boundaries", "tokens"),
    *KINDS,
    "numbers in text",
    *(f"{kind} without lists" for kind in KINDS[:3]),
    *(f"{kind} recalled" for kind in KINDS[:3]),
    "shown per needed",
)


def boundary_rows(figures: Mapping[str, Json]) -> Iterator[Cells]:
    """A row for each policy and cap, and where the files are of several parts one for each of them."""
    for policy, caps in figures.items():
        for cap, found in caps.items():
            parts = found["by_part"] if len(found["by_part"]) > 1 else {}
            for part, inner in {"all": found, **parts}.items():
                yield (
                    policy,
                    cap,
                    part,
                    inner["boundaries"],
                    None if inner["tokens"] is None else inner["tokens"]["median"],
                    *(inner[kind] for kind in KINDS),
                    inner["numbers_in_text"],
                    *(inner["without_bare"][kind] for kind in KINDS[:3]),
                    *(inner["lacking_recalled"][kind] for kind in KINDS[:3]),
                    inner["shown_per_needed"],
                )


def _boundary_table(figures: Mapping[str, Json]) -> Markup:
    rows = [["-" if cell is None else cell for cell in row] for row in boundary_rows(figures)]
    return table(BOUNDARY_COLUMNS, rows, right=BOUNDARY_COLUMNS[3:])


def _recall(result: Mapping[str, Json]) -> Told:
    asked = result["questions"]
    lead = (
        f"{result['chats']} long chats come with {asked['asked']} questions whose evidence is labelled: the "
        "messages that hold the answer. A prompt under a cap cannot hold the chat. Does it hold the evidence "
        "when the question is asked? Whole: the message's full text stands in the prompt; that is necessary "
        "for an answer, and not enough."
    )
    sections = []
    for source, sizes in result["table"].items():
        for size, policies in sizes.items():
            caps = dict.fromkeys(cap for found in policies.values() for cap in found)
            for cap in caps:
                bars = [
                    _bar(policy, found[cap]["all"], found[cap]["interval"]["all"])
                    for policy, found in policies.items()
                    if cap in found
                ]
                means = [
                    _bar(policy, found[cap]["mean"]) for policy, found in policies.items() if cap in found
                ]
                sections.append(
                    Section(
                        f"{source}, {size}, prompts of {int(cap):,} tokens",
                        (
                            bar_chart(bars, title="Questions whose evidence is all there", most=1.0),
                            bar_chart(means, title="Share of the evidence that is there, mean", most=1.0),
                            _recall_table(policies, cap),
                        ),
                    )
                )
    told = [
        READ_INTERVALS,
        "Cut: at least the first 400 characters of the message stand in the prompt.",
        "recall-only is the ranking of recall packed into the whole cap, without a brief and recent turns.",
        "Constants were chosen on the half of the chats named tuned; the other is untouched.",
        f"{asked['skipped']} questions without usable labels were not asked.",
        f"Tokens are counted by {result['meter']}.",
    ]
    sections.append(Section("How to read it", (paragraph(" ".join(told[:1])), notes(told[1:]))))
    return "Does a capped prompt hold the evidence?", lead, sections


RECALL_COLUMNS = ("policy", "questions", "n", "any", "all", "mean", "all cut", "mean cut")


def _recall_table(policies: Mapping[str, Json], cap: str) -> Markup:
    rows: list[Cells] = []
    for policy, caps in policies.items():
        if cap not in caps:
            continue
        found = caps[cap]
        for name, inner in {"all": found, **found["by_part"], **found["by_type"]}.items():
            cut = inner["cut"]
            rows.append(
                (
                    policy,
                    name.replace("_", " "),
                    inner["n"],
                    inner["any"],
                    inner["all"],
                    inner["mean"],
                    cut["all"],
                    cut["mean"],
                )
            )
    return table(RECALL_COLUMNS, rows, right=RECALL_COLUMNS[2:])


_PAGES: Mapping[str, Callable[[Mapping[str, Json]], Told]] = {"boundary": _boundary, "recall": _recall}
