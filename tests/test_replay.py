"""One recording through every policy: what differs is the prompts; the figures are those of the engine."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shiftbook import rerun
from shiftbook.economics.price_book import price_list
from shiftbook.errors import BadInput
from shiftbook.journal.open import open_store
from shiftbook.messages import Block, Text
from shiftbook.policies.registry import POLICIES
from shiftbook.prompt.measure import block_tokens
from shiftbook.replay import PolicyFigures, Sizes, replay, sizes_for, sums
from shiftbook.sessions import open_session
from shiftbook.tokens import BpeMeter
from shiftbook.views import run_figures
from tests.cli.program import run as program
from tests.rerun.recordings import Tape

MODEL = "claude-opus-4-5"
AT = datetime(2026, 11, 30, tzinfo=UTC)
DESIGN = {"requests", "prompt_tokens", "cached_share", "cost", "rebuilds"}


def prices(model: str, at_ms: int):
    return price_list(model, AT)


def long_tape(path: Path, replies: int = 30) -> Path:
    """Invented work in a library: each shelf's list is long, so that a small cap has to be kept."""
    tape = Tape().said("Count every shelf of the library.")
    for number in range(replies):
        call = {"type": "tool_use", "id": f"c{number}", "name": "count", "input": {"shelf": number}}
        if number >= replies - 5:
            call["input"] = {"after": "place 7001"}
        tape.replied({"type": "text", "text": f"Now shelf {number}."}, call)
        books = ", ".join(f"book {number * 37 + each} at place {each}" for each in range(60))
        odd = " One book stands at place 7001." if number == 0 else ""
        tape.answered(f"c{number}", f"Shelf {number}: {books}.{odd}")
    tape.replied({"type": "text", "text": "All shelves are counted."})
    for line in tape.lines:
        if line["type"] == "assistant":
            line["message"]["model"] = MODEL
    return tape.write(path)


def played(path: Path, policy: str, sizes: Sizes, **more) -> PolicyFigures:
    return asyncio.run(replay(open_session(path), policy, sizes, prices=prices, **more))


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_sends_every_request_and_has_every_figure(tmp_path: Path, policy: str) -> None:
    found = played(long_tape(tmp_path / "tape.jsonl"), policy, Sizes(8_000, 3_500, 500), window=6_000)
    assert found.keys() >= DESIGN
    assert (found["requests"], found["state"], len(found["sizes"])) == (31, "finished", 31)
    most = found["prompt_tokens"]["max"]
    assert most is not None
    assert found["cost"] is not None
    assert found["cost"] > 0
    assert found["cached_share"] is not None
    held = {kind: found["survival"][kind] for kind in ("numbers", "paths")}
    assert held["paths"] == {"of": 0, "held": 0, "share": None}
    assert held["numbers"]["of"] == 5
    # Five calls name what the first shelf showed and no later one did. The first of them stands in the prompt
    # of the others, so a window that dropped the shelf lacks the name once.
    expected = {"transcript": (5,), "window": (4,)}
    assert held["numbers"]["held"] in expected.get(policy, (4, 5))
    over = found["over_window"]
    assert over == sum(size > 6_000 for size in found["sizes"])
    if policy == "transcript":
        assert (found["rebuilds"], most > 8_000) == (0, True)
        assert over
    else:
        assert found["rebuilds"] > 0
        assert most <= 8_000


def test_the_figures_are_those_of_a_rerun(tmp_path: Path) -> None:
    path = long_tape(tmp_path / "tape.jsonl")
    found = played(path, "window", Sizes(8_000, 3_500, 500))

    async def rerun_figures():
        store = await open_store(":memory:")
        try:
            settings = rerun.Settings(policy="window", cap=8_000, mark=3_500, fixed=500)
            await rerun.rerun(store, open_session(path), settings, run="r")
            return await run_figures(store, "r")
        finally:
            await store.close()

    figures = asyncio.run(rerun_figures())
    assert found["prompt_tokens"] == figures["prompt_tokens"]
    assert found["requests"] == figures["turns"]


def test_the_cost_of_one_request_is_the_sum_by_hand(tmp_path: Path) -> None:
    tape = Tape().said("Say hello.").replied({"type": "text", "text": "Hello, and a good day."})
    tape.lines[1]["message"]["model"] = MODEL
    found = played(tape.write(tmp_path / "tape.jsonl"), "transcript", Sizes(0, 0, 9_000))
    output = block_tokens(Block("assistant", (Text("Hello, and a good day."),)), BpeMeter())
    # Opus 4.5: 6.25 USD a million written for five minutes, 25 out; the whole prompt is new.
    assert found["cost"] == pytest.approx((6.25 * found["sizes"][0] + 25 * output) / 1e6)
    unknown = Tape().said("Say hello.").replied({"type": "text", "text": "Hello."})
    none = played(unknown.write(tmp_path / "other.jsonl"), "transcript", Sizes(0, 0, 9_000))
    assert none["cost"] is None


def test_the_rule_is_the_vendors_of_the_model(tmp_path: Path) -> None:
    path = long_tape(tmp_path / "tape.jsonl")
    shares = {
        model: played(path, "transcript", Sizes(0, 0, 20_000), model=model, ttl="5m")["cached_share"]
        for model in (MODEL, "gpt-6-sol", "gpt-4o")
    }
    assert all(share is not None and share > 0.8 for share in shares.values())
    assert len(set(shares.values())) > 1
    with pytest.raises(BadInput, match="No cache rule is known for the model 'mistral-large'"):
        played(path, "transcript", Sizes(0, 0, 0), model="mistral-large")


def test_sizes_include_the_fixed_part() -> None:
    assert sizes_for(None, None, None) == [Sizes(40_000, 16_000, 0), Sizes(60_000, 36_000, 20_000)]
    assert sizes_for(30_000, 12_000, 5_000) == [Sizes(30_000, 12_000, 5_000)]
    assert sizes_for(25_000, None, 5_000) == [Sizes(25_000, 13_000, 5_000)]


def test_the_program_prints_a_table_and_the_promised_json(tmp_path: Path) -> None:
    long_tape(tmp_path / "tape.jsonl", 12)
    words = ("replay", "tape.jsonl", "--cap", "6000", "--fixed", "0", "--model", "claude-haiku-4-5")
    ran = program(tmp_path, *words, "--json")
    assert ran.code == 0
    assert set(ran.json["policies"]) == set(POLICIES)
    assert all(each.keys() >= DESIGN for each in ran.json["policies"].values())
    assert [(each["fixed"], each["cap"]) for each in ran.json["at_fixed"]] == [(0, 6_000)]
    shown = program(tmp_path, *words, "--policy", "window")
    assert (shown.code, "window" in shown.out, "journal" in shown.out) == (0, True, False)
    assert "fixed part 0 (--fixed), cap 6,000" in shown.out
    both = program(tmp_path, "replay", "tape.jsonl", "--policy", "window", "--json").json
    assert [each["fixed"] for each in both["at_fixed"]] == [0, 20_000]


@pytest.mark.parametrize(
    "words",
    [
        ("nowhere.jsonl",),
        ("tape.jsonl", "--policy", "memory"),
        ("tape.jsonl", "--model", "nobody-1"),
        ("tape.jsonl", "--ttl", "2h"),
        ("tape.jsonl", "--model", "gemini-2.5-pro"),
        ("tape.jsonl", "--fixed", "-1"),
        ("tape.jsonl", "--cap", "100", "--fixed", "5000", "--policy", "window"),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path: Path, words: tuple[str, ...]) -> None:
    long_tape(tmp_path / "tape.jsonl", 2)
    ran = program(tmp_path, "replay", *words)
    assert (ran.code, ran.out) == (2, "")
    told = [line for line in ran.err.splitlines() if not line.startswith("replaying")]
    assert told
    assert told[0].startswith("shiftbook: ")


def test_a_rerun_of_a_priced_model_tells_the_cost_of_its_own_requests(tmp_path: Path) -> None:
    path = long_tape(tmp_path / "tape.jsonl", 5)
    told = program(
        tmp_path, "rerun", "tape.jsonl", "--policy", "transcript", "--fixed", "9000", "--json"
    ).json
    alone = played(path, "transcript", Sizes(0, 0, 9_000))
    assert told["cost"] == pytest.approx(alone["cost"])
    listed = program(tmp_path, "runs", "--json").json
    assert [each["cost"] for each in listed] == [None]
    assert (
        json.loads(program(tmp_path, "runs", "--cost", "--json").out)[0]["cost"] is None
    )  # nobody billed it


def test_a_vendors_own_life_holds_unless_another_is_chosen(tmp_path: Path) -> None:
    path = long_tape(tmp_path / "tape.jsonl", 8)
    lines = [json.loads(each) for each in path.read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):  # seven minutes between a line and the next
        line["timestamp"] = f"2031-05-01T{8 + number * 7 // 60:02}:{number * 7 % 60:02}:00.000Z"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")
    shares = {
        (model, ttl): played(path, "transcript", Sizes(0, 0, 20_000), model=model, ttl=ttl)["cached_share"]
        for model in (MODEL, "gpt-6-sol")
        for ttl in ("own", "5m", "1h")
    }
    assert shares[MODEL, "own"] == shares[MODEL, "5m"] == 0, "Anthropic's five minutes have passed"
    assert shares["gpt-6-sol", "5m"] == 0
    for warm in ((MODEL, "1h"), ("gpt-6-sol", "own"), ("gpt-6-sol", "1h")):
        share = shares[warm]
        assert share is not None
        assert share > 0.5


def test_a_folder_gives_sums_over_its_sessions_and_each_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    for name, replies in (("a", 4), ("b", 12), ("c", 6)):
        long_tape(folder / f"{name}.jsonl", replies)
    (folder / "letter.txt").write_text("Dear library,\n", encoding="utf-8")
    ran = program(tmp_path, "replay", "kept", "--policy", "window", "--cap", "4500", "--fixed", "0", "--json")
    assert ran.code == 0
    assert "left out: 1 file in the folders that is no session" in ran.err
    sessions = ran.json["sessions"]
    assert [Path(each["path"]).name for each in sessions] == ["a.jsonl", "b.jsonl", "c.jsonl"]
    each = [session["at_fixed"][0]["policies"]["window"] for session in sessions]
    told = ran.json["policies"]["window"]
    assert told.keys() >= DESIGN
    assert ran.json["at_fixed"][0]["policies"]["window"] == told
    assert (told["sessions"], told["requests"], told["unfinished"]) == (3, 5 + 13 + 7, 0)
    assert told["rebuilds"] == sum(one["rebuilds"] for one in each) > 0
    assert told["cost"] == pytest.approx(sum(one["cost"] for one in each))
    assert told["prompt_tokens"] == {
        "median": sorted(one["prompt_tokens"]["median"] for one in each)[1],
        "max": max(one["prompt_tokens"]["max"] for one in each),
    }
    cached = sum(one["cached_share"] * sum(one["sizes"]) for one in each)
    assert told["cached_share"] == pytest.approx(cached / sum(sum(one["sizes"]) for one in each))
    alone = program(
        tmp_path, "replay", "kept/b.jsonl", "--policy", "window", "--cap", "4500", "--fixed", "0", "--json"
    )
    assert alone.json["policies"]["window"] == each[1]
    assert alone.json["sessions"][0] == {**sessions[1], "path": alone.json["path"]}


def test_a_session_that_cannot_be_replayed_is_named_and_the_rest_counts(tmp_path: Path) -> None:
    long_tape(tmp_path / "good.jsonl", 3)
    (tmp_path / "broken.jsonl").write_bytes(b"\0\0\0")
    words = ("--policy", "window", "--fixed", "0")
    ran = program(tmp_path, "replay", "broken.jsonl", "good.jsonl", "gone.jsonl", *words, "--json")
    assert ran.code == 0
    assert [Path(each["path"]).name for each in ran.json["left_out"]] == ["broken.jsonl", "gone.jsonl"]
    assert [Path(each["path"]).name for each in ran.json["sessions"]] == ["good.jsonl"]
    assert "left out: broken.jsonl" in ran.err
    assert "left out: gone.jsonl: cannot be opened" in ran.err
    shown = program(tmp_path, "replay", "good.jsonl", "good.jsonl", "broken.jsonl", *words)
    assert shown.out.startswith("good.jsonl: 4 requests recorded")  # a file named twice is one session
    many = program(tmp_path, "replay", ".", "--only", "1")
    assert (many.code, "name that file alone" in many.err) == (2, True)


def test_a_sum_of_which_a_part_is_not_known_is_not_known(tmp_path: Path) -> None:
    known = played(long_tape(tmp_path / "a.jsonl", 2), "window", Sizes(8_000, 3_500, 500), window=6_000)
    unknown = PolicyFigures(**{**known, "cost": None, "over_window": None})
    assert sums([known, known])["cost"] == pytest.approx(2 * (known["cost"] or 0))
    both = sums([known, unknown])
    assert (both["cost"], both["over_window"]) == (None, None)
    assert both["requests"] == 2 * known["requests"]
