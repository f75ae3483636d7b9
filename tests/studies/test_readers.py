"""BEAM and LoCoMo as they are laid out, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from shiftbook.errors import BadInput
from shiftbook.studies.beam import part_of, read_beam
from shiftbook.studies.locomo import read_locomo
from shiftbook.studies.recall import read
from tests.studies import data


def test_beam(tmp_path: Path) -> None:
    one, two = read_beam(data.beam(tmp_path))
    assert [(m.place, m.voice) for m in one.messages] == [
        (1, "person"),
        (2, "reply"),
        (3, "person"),
        (4, "reply"),
        (5, "person"),
        (6, "reply"),
    ]
    assert one.messages[0].text == "My boat lies at pier seven."
    assert one.messages[4].text == "The boat moved to pier nine today."
    assert {each.at for each in one.messages} == {"May-01-2024"}
    assert [(each.type, each.evidence) for each in one.asked] == [
        ("knowledge_update", (1, 5)),
        ("information_extraction", (2,)),
    ]
    assert one.skipped == 2
    assert (one.name, one.part, two.name, two.part) == ("1", "tuned", "2", "untouched")
    assert [each.evidence for each in two.asked] == [(5,)]
    assert list(read_beam(tmp_path, frozenset({"huge"}))) == []


def test_locomo_in_the_order_of_sessions_and_mended(tmp_path: Path) -> None:
    (chat,) = read_locomo(data.locomo(tmp_path))
    assert [each.text for each in chat.messages] == [
        "Ben: Look! [shares a photo: a red kite]",
        "Ann: The cat is grey.",
        "Ben: Mine is white.",
    ]
    assert [each.at for each in chat.messages] == ["8 May", "9 May", "9 May"]
    assert [(each.type, each.evidence) for each in chat.asked] == [
        ("single-hop", (2,)),
        ("multi-hop", (1,)),
        ("multi-hop", (2, 3)),
    ]
    assert (chat.skipped, chat.mended, chat.part) == (2, 1, "untouched")
    (tmp_path / "errors.json").unlink()
    (plain,) = read_locomo(tmp_path)
    assert plain.asked[1].evidence == (3,)
    assert plain.mended == 0


def test_one_folder_of_both_and_sizes(tmp_path: Path) -> None:
    data.beam(tmp_path / "beam")
    data.locomo(tmp_path / "locomo")
    assert [chat.source for chat in read(tmp_path)] == ["beam", "beam", "locomo"]
    assert [chat.source for chat in read(tmp_path, ["locomo"])] == ["locomo"]
    assert [chat.source for chat in read(tmp_path, ["tiny"])] == ["beam", "beam"]
    assert [chat.source for chat in read(tmp_path / "locomo")] == ["locomo"]


def test_the_parts_of_beam() -> None:
    assert [part_of("500K", name) for name in ("1", "2", "x")] == ["tuned", "untouched", "untouched"]
    assert [part_of("1M", name) for name in ("1", "3", "6", "7")] == [
        "untouched",
        "tuned",
        "tuned",
        "untouched",
    ]


def test_what_is_no_such_data_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no folder of BEAM or LoCoMo"):
        list(read(tmp_path))
    with pytest.raises(BadInput, match="is no folder"):
        list(read(tmp_path / "nowhere"))
    folder = data.beam(tmp_path / "beam")
    chat = folder / "tiny" / "1" / "chat.json.gz"
    for content, told in (
        (b"[", "is not JSON"),
        (json.dumps([{"turns": [[{"id": 1}]]}]).encode(), "not laid out as a chat"),
        (gzip.compress(b"[]")[:-9], "cannot be read"),
        (b"\xff\xfe\xff", "cannot be read"),
    ):
        chat.write_bytes(content)
        with pytest.raises(BadInput, match=told):
            list(read_beam(folder))
    chat.unlink()
    with pytest.raises(BadInput, match=r"has no chat\.json"):
        list(read_beam(folder))
    (folder / "evidence_index.jsonl").write_text("{}\n")
    with pytest.raises(BadInput, match="line 1"):
        list(read_beam(folder))
    turns = data.locomo(tmp_path / "locomo")
    (turns / "locomo.json").write_text('[{"sample_id": 1}]')
    with pytest.raises(BadInput, match="not laid out as LoCoMo"):
        list(read_locomo(turns))
