"""The blocks of docs/reference/cli.md made from the program; `python -m tests.cli.reference` renews them.

A block stands between `<!-- VERB -->` and `<!-- end -->` and holds what `shiftbook VERB --help` says.
"""

from __future__ import annotations

import re
from pathlib import Path

import typer

from shiftbook.cli.app import VERBS, app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
_BLOCK = re.compile(r"<!-- ([a-z]+) -->\n(?:(?!<!--).*\n)*<!-- end -->")


def block(verb: str) -> str:
    """What the help of a verb says, as Markdown."""
    group = typer.main.get_command(app)
    with group.make_context("shiftbook", [], resilient_parsing=True) as ctx:
        made = group.get_command(ctx, verb)  # type: ignore[attr-defined]
        usage = made.make_context(verb, [], parent=ctx, resilient_parsing=True).get_usage()
    words = " ".join(usage.removeprefix("Usage: ").split())
    rows = []
    for parameter in made.params:
        named = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "argument":
            named = [parameter.metavar]
        value = parameter.metavar if parameter.param_type_name == "option" and not parameter.is_flag else None
        shown = ", ".join(f"`{name}{f' {value}' if value else ''}`" for name in named)
        rows.append(f"| {shown} | {parameter.help} |")
    help_text = "\n\n".join(" ".join(part.split()) for part in made.help.split("\n\n"))
    return f"`{words}`\n\n{help_text}\n\n| | |\n| --- | --- |\n" + "\n".join(rows) + "\n"


def renewed(page: str) -> str:
    """The page with its blocks as the program has them now."""
    return _BLOCK.sub(lambda found: f"<!-- {found[1]} -->\n{block(found[1])}<!-- end -->", page)


def described(page: str) -> list[str]:
    """The verbs that have a block, in order."""
    return [found[1] for found in _BLOCK.finditer(page)]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print("verbs without a block:", sorted(set(VERBS) - set(described(PAGE.read_text(encoding="utf-8")))))
