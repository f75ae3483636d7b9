"""One invented fixture a format, its rows against a count by hand: each trap of each format is in one.

A row is (branch, model, kind, uncached, read, written, output, prompt, source). An estimated row is the meter
over the texts that stand here: what was said before, and the reply.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shiftbook.sessions import FORMATS, RecordedRequests, requests_of, walk_requests
from shiftbook.tokens import BpeMeter
from tests.sessions import foreign
from tests.sessions.foreign import REQUESTS

Told = list[tuple[object, ...]]


def plain(name: str) -> Callable[[Path], Path]:
    return lambda folder: REQUESTS / name


def script(name: str) -> Callable[[Path], Path]:
    return lambda folder: foreign.database(folder / "sessions", (REQUESTS / name).read_text())


def told(found: RecordedRequests) -> Told:
    return [
        (
            row.branch,
            row.model,
            row.kind,
            row.usage.uncached,
            row.usage.cache_read,
            row.usage.cache_write,
            row.usage.output,
            row.usage.prompt,
            row.source,
        )
        for row in found.rows
    ]


def estimated(*turns: tuple[list[str], str]) -> Told:
    """The rows of a conversation: for each, the texts said since the reply before it, and the reply."""
    rows: Told = []
    prompt = 0
    for heard, reply in turns:
        prompt += sum(map(BpeMeter().count, heard))
        output = BpeMeter().count(reply)
        rows.append(("", None, "main", None, None, None, output, prompt, "estimated"))
        prompt += output
    return rows


SUBMIT = "[{'function': {'arguments': '{}', 'name': 'submit'}, 'id': 'call_7', 'type': 'function'}]"
CLAUDE, GPT = "claude-invented-1", "gpt-invented"
CODEX = "gpt-invented-codex"

EXPECTED: dict[str, tuple[str, Callable[[Path], Path], dict[str, Told]]] = {
    "codex": (
        "codex",
        plain("codex/rollout-1.jsonl"),
        {
            "cx-1": [
                ("", CODEX, "main", 5000, 0, None, 120, 5000, "reported"),
                ("", CODEX, "main", 208, 4992, None, 30, 5200, "reported"),
                ("", "gpt-invented-codex-mini", "main", 776, 1024, None, 9, 1800, "reported"),
            ]
        },
    ),
    "codex, only totals": (
        "codex",
        plain("codex_totals.jsonl"),
        {
            "cx-0": [
                ("", None, "main", 3000, 1000, None, 50, 4000, "differenced"),
                ("", None, "main", 1000, 4000, None, 40, 5000, "differenced"),
            ]
        },
    ),
    "codex, its sub-agent": (
        "codex",
        plain("codex_agents/rollout-side.jsonl"),
        {"cx-9a": [("cx-9a", CODEX, "subagent", 900, 0, 0, 5, 900, "reported")]},
    ),
    "codex, records and a compaction": (
        "codex",
        plain("codex_agents/rollout-main.jsonl"),
        {
            "cx-9": [
                ("", CODEX, "main", 100, 0, 3900, 40, 4000, "reported"),
                ("", CODEX, "main", 50, 3900, 250, 12, 4200, "reported"),
                ("", CODEX, "compaction", 100, 0, 3000, 9, 3100, "reported"),
                ("", CODEX, "main", 100, 1500, 400, 20, 2000, "reported"),
                ("", CODEX, "main", None, None, None, None, None, "missing"),
            ]
        },
    ),
    "chat log": (
        "openai-chat",
        plain("chat_log.jsonl"),
        {
            "": [
                ("", GPT, "main", 1200, 0, None, 20, 1200, "reported"),
                ("", GPT, "main", 48, 1152, 100, 5, 1300, "reported"),
                ("", "deep-invented", "main", 260, 640, 0, 7, 900, "reported"),
                ("", "old-invented", "main", None, None, None, 6, 800, "reported"),
            ]
        },
    ),
    "chat list": (
        "openai-chat",
        plain("chat_list.json"),
        {
            "": estimated(
                (["Be brief.", "How deep is the harbour?"], 'sound\n{"at":"pier"}'), (["9 m"], "Nine metres.")
            )
        },
    ),
    "anthropic log": (
        "anthropic-messages",
        plain("anthropic_log.jsonl"),
        {
            "": [
                ("", CLAUDE, "main", 50, 0, 3000, 4, 3050, "reported"),
                ("", CLAUDE, "compaction", 180000, 0, 0, 3500, 180000, "reported"),
                ("", CLAUDE, "main", 23000, 0, 0, 400, 23000, "reported"),
            ]
        },
    ),
    "anthropic list": (
        "anthropic-messages",
        plain("anthropic_list.json"),
        {
            "": estimated(
                (["How deep is the harbour?"], 'sound it\nsound\n{"at": "pier"}'),
                (["9 m\nIn metres, please."], "Nine metres."),
            )
        },
    ),
    "responses log": (
        "openai-responses",
        plain("responses_log.jsonl"),
        {
            "": [
                ("", GPT, "main", 400, 0, None, 12, 400, "reported"),
                ("", GPT, "main", 76, 1024, 400, 30, 1500, "reported"),
            ]
        },
    ),
    "responses items": (
        "openai-responses",
        plain("responses_items.json"),
        {
            "": estimated(
                (
                    ["Be brief.", "How deep is the harbour?"],
                    '\nsound\n{"at":"pier"}\nsound\n{"at":"mole"}',
                ),
                (["9 m", '[{"type": "input_text", "text": "4 m"}]'], "Nine and four."),
                (["Thanks."], "Welcome."),
            )
        },
    ),
    "openhands events": (
        "openhands",
        plain("openhands_events.jsonl"),
        {
            "": [
                ("", CLAUDE, "main", 100, 0, 2900, 50, 3000, "differenced"),
                ("", CLAUDE, "main", 100, 2900, 300, 40, 3300, "differenced"),
                ("condenser", CLAUDE, "compaction", 2500, 0, 0, 200, 2500, "differenced"),
                ("", CLAUDE, "main", 50, 1100, 50, 10, 1200, "differenced"),
            ]
        },
    ),
    "openhands state": (
        "openhands",
        plain("openhands_state/base_state.json"),
        {
            "51b4": [
                ("", CLAUDE, "main", 100, 0, 2900, 50, 3000, "reported"),
                ("", CLAUDE, "main", 100, 2900, 300, 40, 3300, "reported"),
                ("condenser", CLAUDE, "compaction", 2500, 0, 0, 200, 2500, "reported"),
            ]
        },
    ),
    "swe-agent": (
        "swe-agent",
        plain("swe_agent.traj"),
        {
            "swe_main": estimated(
                (
                    ["You mend code.", "A demonstration.", "shown, not asked", "The shed leaks."],
                    "Look first.\n```\nls\n```",
                ),
                (
                    ["shed.py"],
                    f"Mend it.\n{SUBMIT}",
                ),
            )
        },
    ),
    "tau-bench": (
        "tau-bench",
        lambda folder: REQUESTS.parent / "tau_lines.jsonl",
        {
            "1": estimated(
                (["Be a baker.", "two loaves"], 'bake\n{"loaves": 2}'),
                (["baked"], 'Once more.\nbake\n{"loaves": 2,'),
                (["Error: bad arguments"], "Two loaves are baked."),
            ),
            "2": estimated((["Be a baker.", "a\u2028line apart"], 'weigh\n{"g": 1, "g": 2}')),
        },
    ),
    "atif": (
        "atif",
        plain("atif.json"),
        {
            "at-1": [
                ("", CLAUDE, "main", 100, 0, 900, 20, 1000, "reported"),
                ("sub-a", "small-invented", "subagent", None, None, None, 5, 500, "reported"),
                ("", CLAUDE, "main", 1400, 900, None, 30, 2300, "reported"),
                ("", CLAUDE, "main", None, None, None, None, None, "missing"),
            ]
        },
    ),
    "atif with sidechains": (
        "atif",
        plain("atif_sides.json"),
        {
            "at-2": [
                ("", CLAUDE, "main", 100, 100, 800, 20, 1000, "reported"),
                ("ab", CLAUDE, "subagent", 100, 0, 300, 5, 400, "reported"),
                ("", CLAUDE, "main", 100, 900, 300, 4, 1300, "reported"),
            ]
        },
    ),
    "mini-swe-agent": (
        "mini-swe-agent",
        plain("mini_swe_agent.json"),
        {
            "1": [
                ("", GPT, "main", 500, 0, None, 9, 500, "reported"),
                ("", GPT, "main", 28, 512, None, 4, 540, "reported"),
                ("", GPT, "main", 68, 512, None, 11, 580, "reported"),
            ]
        },
    ),
    "mini-swe-agent, responses": (
        "mini-swe-agent",
        plain("mini_swe_agent_responses.json"),
        {
            "1": [
                ("", GPT, "main", 0, 0, 500, 9, 500, "reported"),
                ("", GPT, "main", 0, 500, 40, 4, 540, "reported"),
            ]
        },
    ),
    "inspect": (
        "inspect",
        lambda folder: foreign.eval_archive(folder / "log"),
        {
            "s1 epoch 1": [
                ("", CLAUDE, "main", 20, 0, 1000, 30, 1020, "reported"),
                ("", CLAUDE, "main", 30, 1000, 200, 10, 1230, "reported"),
                ("grader", CLAUDE, "other", 700, None, None, 3, 700, "reported"),
            ],
            "s2 epoch 1": [("", CLAUDE, "main", 40, None, None, 2, 40, "reported")],
            "s3 epoch 1": [
                ("", CLAUDE, "main", 10, 0, 900, 5, 910, "reported"),
                ("diver e", CLAUDE, "subagent", 20, 0, 0, 6, 20, "reported"),
                ("diver e", CLAUDE, "subagent", 30, 0, 0, 7, 30, "reported"),
                ("", CLAUDE, "main", 15, 900, 100, 4, 1015, "reported"),
                ("graded", CLAUDE, "other", 70, 0, 0, 2, 70, "reported"),
            ],
        },
    ),
    "otel": (
        "otel",
        plain("otel.json"),
        {
            "conv-1": [
                ("", GPT, "main", 500, 0, 1000, 11, 1500, "reported"),
                ("", GPT, "main", 300, 1000, 900, 20, 2200, "reported"),
            ],
            "t2": [("", "old-invented", "main", None, None, None, 4, 300, "reported")],
        },
    ),
    "otel, twins": (
        "otel",
        plain("otel_twins.json"),
        {
            "t9": [
                ("", CLAUDE, "main", 100, 0, 1500, 3, 1600, "reported"),
                ("", CLAUDE, "main", None, None, None, 1, 50, "reported"),
                ("", CLAUDE, "main", None, None, None, 1, 60, "reported"),
            ],
            "watch": [("", CLAUDE, "main", 200, 1500, 0, 4, 1700, "reported")],
        },
    ),
    "openai agents": (
        "openai-agents",
        script("agents_sdk.sql"),
        {
            "shop": [
                ("", None, "main", 2452, 2048, None, 90, 4500, "reported"),
                ("retry", None, "main", None, None, None, 20, 1700, "reported"),
            ],
            "plain": estimated(
                (["Any tea left?"], 'stock\n{"of": "tea"}'),
                (["2"], "Two tins."),
            ),
        },
    ),
    "langgraph": (
        "langgraph",
        lambda folder: foreign.checkpoints(folder / "checkpoints"),
        {
            "t1": [
                ("", CLAUDE, "main", 100, 0, 900, 20, 1000, "reported"),
                ("tools:9", "small-invented", "subagent", None, None, None, 4, 300, "reported"),
                ("", CLAUDE, "main", 200, 900, 200, 30, 1300, "reported"),
                ("", CLAUDE, "main", 200, 1100, 100, 6, 1400, "reported"),
            ],
            "t2": [
                ("", None, "main", None, None, None, 3, 70, "reported"),
                ("", None, "main", None, None, None, None, None, "missing"),
            ],
            "t3": [("", CLAUDE, "main", 100, 100, 1300, 7, 1500, "reported")],
        },
    ),
    "vercel": (
        "vercel-ui",
        plain("vercel.json"),
        {
            "": [
                ("", GPT, "main", 600, 300, None, 40, 900, "reported"),
                ("", None, "main", None, None, None, 3, 22, "estimated"),
            ]
        },
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_rows_of_a_fixture_are_those_counted_by_hand(name: str, tmp_path: Path) -> None:
    kind, made, expected = EXPECTED[name]
    found = list(requests_of(made(tmp_path)))
    assert {each.format for each in found} == {kind}
    assert {each.name: told(each) for each in found} == expected


def test_every_format_has_a_fixture() -> None:
    covered = {kind for kind, _, _ in EXPECTED.values()} | {"claude-code", "inspect-json"}
    assert covered == {known.name for known in FORMATS}


def walked(path: Path) -> list[RecordedRequests]:
    return [each for each in walk_requests([path]) if isinstance(each, RecordedRequests)]


def test_a_codex_fork_does_not_bill_the_history_that_it_copied() -> None:
    first, fork = walked(REQUESTS / "codex")
    assert [row.usage.prompt for row in first.rows] == [5000, 5200, 1800]
    assert (fork.name, fork.copies) == ("cx-2", 2)
    assert [row.usage.prompt for row in fork.rows] == [5300]
    assert [mark.what for mark in first.marks] == ["compaction"]
    assert [fault.line for fault in first.broken] == [len(first.rows) + 17]


def test_an_openhands_folder_is_one_session_with_the_marks_of_its_events() -> None:
    (state,) = walked(REQUESTS / "openhands_state")
    assert [(mark.what, mark.by) for mark in state.marks] == [("compaction", "condenser")]
    assert len(state.rows) == 3
    assert not state.broken


def test_marks_of_the_other_formats() -> None:
    for name, lines in (("openhands_events.jsonl", [6]), ("responses_items.json", [9])):
        (found,) = requests_of(REQUESTS / name)
        assert [(mark.what, mark.line) for mark in found.marks] == [("compaction", line) for line in lines]


def test_a_row_says_how_many_requests_it_sums(tmp_path: Path) -> None:
    shop, plain_session = requests_of(script("agents_sdk.sql")(tmp_path))
    assert [row.requests for row in shop.rows] == [3, 1]
    assert [fault.line for fault in plain_session.broken] == [4]
    (chat,) = requests_of(REQUESTS / "vercel.json")
    assert [row.requests for row in chat.rows] == [2, 1]
    (garden,) = requests_of(REQUESTS / "atif.json")
    assert [row.requests for row in garden.rows] == [1, 1, 2, 1]
    assert garden.copies == 1
