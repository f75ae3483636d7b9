"""`measure --json` field by field: all that docs/reference/measure.md lists and no more, all that the
terminal shows, and null where nothing is known."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shiftbook.measure.told import usd
from tests.cli.program import run
from tests.measure.files import growing, reply, said, write
from tests.measure.test_survival import tape

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "sessions" / "fixtures" / "requests"
KINDS = ("paths", "numbers", "symbols", "hex", "decisions")
FREE = ("unpriced", "not_foreseen", "false_alarms")
"""Objects whose keys come out of the files."""


def documented(verb: str) -> set[str]:
    """The fields of one table of the reference."""
    page = (ROOT / "docs" / "reference" / "measure.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"## `{verb} --json`\n(.*?)(?:\n## |\Z)", page, re.DOTALL)
    fields = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(fields) == len(set(fields))
    return set(fields)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value with the name of its place in the reference; an empty list or object has none."""
    if isinstance(value, dict):
        for key, inner in value.items():
            name = "KIND" if key in KINDS else "NAME" if path.endswith(FREE) else key
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path, value


def garden(folder: Path) -> Path:
    """All at once: growth, a fall, a break, an expired life, a torn line, a copy, a sub-agent."""
    lines: list[Any] = growing(30)
    lines.append(reply(31, 51_000, 0, 60))
    lines.append(reply(32, 52_000, 16_000, 61))
    lines.append(reply(33, 30_000, 20_000, 62))
    lines.append(reply(34, 31_000, 30_000, 68))
    lines.append('{"type": "assistant", "mess')
    write(folder / "garden.jsonl", lines)
    write(folder / "again.jsonl", [*growing(2), reply(40, 20_000, 0, 3)])
    beside = folder / "garden" / "subagents"
    beside.mkdir(parents=True)
    write(beside / "agent-a1.jsonl", growing(2))
    (folder / "letter.txt").write_text("Water the beans.\n", encoding="utf-8")
    return folder


def fields(found: Any) -> set[str]:
    """The names of all places; a list that is null has those that it has elsewhere."""
    names = {path for path, _ in leaves(found)}
    return {name for name in names if not any(other.startswith(f"{name}[]") for other in names)}


def told(folder: Path, *words: str) -> Any:
    ran = run(folder, "measure", *words, "--json")
    assert ran.code == 0
    return ran.json


def test_every_field_is_in_the_reference_and_every_field_of_the_reference_is_there(tmp_path: Path) -> None:
    garden(tmp_path)
    paths = ("again.jsonl", "garden.jsonl", "letter.txt", str(FIXTURES))
    assert fields(told(tmp_path, *paths)) == documented("measure")


def test_every_field_of_the_cache_check_is_in_the_reference(tmp_path: Path) -> None:
    garden(tmp_path)
    found = told(tmp_path, "garden.jsonl", "letter.txt", "--check-cache")
    assert fields(found) == documented("measure --check-cache")


def test_every_field_of_the_survival_is_in_the_reference(tmp_path: Path) -> None:
    tape().write(tmp_path / "tape.jsonl")
    (tmp_path / "letter.txt").write_text("Water the beans.\n", encoding="utf-8")
    found = told(tmp_path, "tape.jsonl", "letter.txt", "--survival")
    assert fields(found) == documented("measure --survival")


def shown(values: list[Any], cost: dict[str, Any]) -> set[str]:
    """All ways in which the terminal may write these numbers; a share of the cost is a quotient of two."""
    ways: set[str] = set()
    for value in values:
        if isinstance(value, (int, float)):
            ways |= {
                f"{value:,}",
                f"{value:,.0f}",
                f"{value:+,.0f}",
                f"{value:,.1f}",
                f"{value:.1%}",
                f"{value:+.2f}",
            }
            ways |= {f"{value:.3f}", usd(value).removeprefix("$")}
    if cost["total"]:
        ways |= {f"{cost[part] / cost['total']:.0%}" for part in cost if isinstance(cost[part], float)}
    return ways


NUMBER = re.compile(r"(?<![\w*.,])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?")
BARS = {"1", "5", "10", "20", "60"}
"""Minutes of the histogram's bars, whose names are in `over_ms` and `under_ms`."""


@pytest.mark.parametrize("words", [(), ("--model", "gpt-5.4", "--window", "123456", "--r", "3210")])
def test_every_figure_that_one_session_shows_is_in_its_json(tmp_path: Path, words: tuple[str, ...]) -> None:
    garden(tmp_path)
    found = told(tmp_path, "garden.jsonl", *words)
    (session,) = found["sessions"]
    lines = run(tmp_path, "measure", "garden.jsonl", *words).out.splitlines()
    chart = lines.index("prompt tokens, request by request")
    end = next(number for number in range(chart, len(lines)) if not lines[number])
    text = "\n".join([*lines[1:chart], *lines[end:]]).replace(session["verdict"], "")
    text = text.replace("(1 is ideal)", "").replace(session["cache_life_used"], "")
    ways = shown([value for _, value in leaves(found)], session["cost"]) | BARS
    figures = NUMBER.findall(text)
    assert len(figures) > 30
    assert [each for each in figures if each not in ways] == []
    assert NUMBER.findall(lines[0].split(", ")[1])[0] in ways
    assert session["verdict"] in lines


def test_every_figure_that_a_table_shows_is_in_the_json(tmp_path: Path) -> None:
    garden(tmp_path)
    found = told(tmp_path, ".")
    shown_lines = run(tmp_path, "measure", ".").out.splitlines()[1:]
    text = re.sub(r"\S+\.jsonl", "", "\n".join(shown_lines))
    ways = {"1"}
    for session in found["sessions"]:
        ways |= shown([value for _, value in leaves(found)], session["cost"])
        ways.add(str(None if session["breaks"] is None else len(session["breaks"])))
    assert [each for each in NUMBER.findall(text) if each not in ways] == []


COUNTS = re.compile(
    r"sessions\[\]\.(usage\.\w+|copies|pairs|broken\[\]\.line)|usage_share\.\w+|all\.(with_t_star|shorter)"
    r"|unreadable\[\]\.line"
)
"""Where 0 is a count of something that was looked for, and found not to be there."""


def openai_list(folder: Path) -> Path:
    """Words without any usage: sizes are estimated, the cache is unknown."""
    told = [{"role": "user", "content": "Plan the garden. " * 40}]
    for number in range(4):
        told.append({"role": "assistant", "content": "Three beds. " * number**2})
        told.append({"role": "user", "content": "Go on."})
    file = folder / "list.json"
    file.write_text(json.dumps(told), encoding="utf-8")
    return file


def nothing_reported(folder: Path) -> Path:
    """Requests whose usage is not in the file at all."""
    lines = [said(), *(reply(number, 20_000, 0, number) for number in range(1, 4))]
    for line in lines[1:]:
        del line["message"]["usage"]
    return write(folder / "silent.jsonl", lines)


@pytest.mark.parametrize("made", [openai_list, nothing_reported])
def test_what_is_not_known_is_null_and_never_zero(tmp_path: Path, made: Any) -> None:
    found = told(tmp_path, made(tmp_path).name)
    zeros = [
        path
        for path, value in leaves(found)
        if value == 0 and not isinstance(value, bool) and not COUNTS.fullmatch(path)
    ]
    assert zeros == []
    (session,) = found["sessions"]
    unknown = ("cached_share", "rewrite_factor", "misses", "cold", "cold_share", "cache_life", "pauses")
    assert {session[name] for name in (*unknown, "breaks_tokens", "m_star", "shorter")} == {None}
    assert session["breaks"] is None
    assert {session["cost"][part] for part in ("total", "uncached", "cache_write", "output")} == {None}
    text = run(tmp_path, "measure", made(tmp_path).name).out
    assert re.search(r"found the cache cold +\?", text)
    assert "broke within its life" not in text


def test_a_write_that_is_not_recorded_is_not_counted_as_nothing(tmp_path: Path) -> None:
    """A log of chat completions tells what was read and not what was written."""
    shutil.copytree(FIXTURES, tmp_path / "all")
    found = told(tmp_path, "all")
    rewritten = [
        bar["rewritten"]
        for session in found["sessions"]
        for bar in session["pauses"] or ()
        if bar["missed"] and session["rewrite_factor"] is None
    ]
    assert rewritten
    assert set(rewritten) == {None}


def test_a_session_without_a_request_is_said_to_be_left_out(tmp_path: Path) -> None:
    write(tmp_path / "garden.jsonl", growing(2))
    write(tmp_path / "opened.jsonl", [said()])
    ran = run(tmp_path, "measure", ".")
    assert (ran.code, "1 session without a request of a model: not counted" in ran.err) == (0, True)
