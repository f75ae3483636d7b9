"""The page itself: a title, a few words, sections, and where the figures come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shiftbook.pages.markup import Markup, escaped, joined
from shiftbook.pages.style import STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What the browser is told: nothing is loaded and nothing runs, whatever slipped in."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    title: str
    parts: tuple[Markup, ...]


def page(title: str, sections: Sequence[Section], *, lead: str, command: str, version: str) -> str:
    """The whole file as text. `lead` says in plain words what is told; `command` makes the page again."""
    body = joined(
        (
            Markup(f"<section><h2>{escaped(each.title)}</h2>\n{joined(each.parts, chr(10))}</section>\n")
            for each in sections
        ),
        "\n",
    )
    made = facts({"Made by": command, "Version": f"shiftbook {version}"})
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style></head>\n"
        f"<body><main><h1>{escaped(title)}</h1>\n{paragraph(lead)}\n{made}\n{body}</main></body></html>\n"
    )


def paragraph(text: str) -> Markup:
    """Words; an empty line begins a new paragraph."""
    return joined((Markup(f"<p>{escaped(each.strip())}</p>") for each in text.split("\n\n")), "\n")


def notes(lines: Iterable[str]) -> Markup:
    """A list of sentences; nothing at all for none."""
    items = joined(Markup(f"<li>{escaped(line)}</li>") for line in lines)
    return Markup(f"<ul>{items}</ul>") if items else Markup("")


def facts(pairs: Mapping[str, str]) -> Markup:
    """Names and what they are, one a line."""
    rows = joined(
        Markup(f"<dt>{escaped(name)}</dt><dd><code>{escaped(value)}</code></dd>")
        for name, value in pairs.items()
    )
    return Markup(f"<dl>{rows}</dl>")
