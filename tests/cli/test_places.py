"""Where the journal is looked for, in order; and what is overridden of an agent, in its reference."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shiftbook.cli.places import address
from shiftbook.cli.words import plain, without_password
from shiftbook.errors import BadInput
from shiftbook.run.reference import Overrides, load_agent


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SHIFTBOOK_DB", raising=False)
    inner = tmp_path / "inner" / "most"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return tmp_path


def test_the_order(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address(None) == "shiftbook.db"
    (project / "pyproject.toml").write_text('[tool.shiftbook]\ndb = "books/all.db"\n')
    assert address(None) == str(project / "books/all.db")
    (project / "inner/pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert address(None) == str(project / "books/all.db")
    (project / "inner/most/pyproject.toml").write_text('[tool.shiftbook]\ndb = "near.db"\n')
    assert address(None) == str(project / "inner/most/near.db")
    monkeypatch.setenv("SHIFTBOOK_DB", "env.db")
    assert address(None) == "env.db"
    assert address("flag.db") == "flag.db"


@pytest.mark.parametrize(
    "text", ["[tool.shiftbook\n", "[tool.shiftbook]\ndb = 3\n", '[tool.shiftbook]\ndb = ""\n']
)
def test_a_broken_project_file_is_named(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(BadInput, match=r"pyproject\.toml"):
        address(None)


def test_overrides_stand_in_the_reference_and_newer_ones_win(
    shop: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(shop)
    monkeypatch.syspath_prepend(str(shop))
    request.addfinalizer(lambda: sys.modules.pop("agent"))
    bare = load_agent("agent.py:shop")
    assert (bare.reference, bare.policy) == ("agent.py:shop", "transcript")
    first = load_agent("agent.py:shop", Overrides(policy="window", cap=900))
    again = load_agent(first.reference, Overrides(cap=1000, fixed=0))
    assert (again.policy, again.cap, again.fixed) == ("window", 1000, 0)
    assert again.reference == "agent.py:shop?policy=window&cap=1000&fixed=0"
    assert load_agent(again.reference) == again
    for odd in ("agent.py:shop?cap=many", "agent.py:shop?colour=red"):
        with pytest.raises(BadInput, match="behind the"):
            load_agent(odd)


def test_a_password_is_left_out_and_nothing_else() -> None:
    assert without_password("postgresql://jo:s3cret@h:5/b") == "postgresql://jo@h:5/b"
    assert without_password("postgresql://h:5/b") == "postgresql://h:5/b"
    assert without_password("postgresql://h/b?password=s3cret") == "postgresql://h/b"
    assert without_password("postgresql:///b?password=s3cret&host=/tmp") == "postgresql:///b?host=/tmp"
    behind = "postgresql://jo@h/b?sslmode=require&sslpassword=s3cret&PASSWORD=s3cret"
    assert without_password(behind) == "postgresql://jo@h/b?sslmode=require"
    assert without_password("odd?password=name.db") == "odd?password=name.db"
    assert without_password("book.db") == "book.db"
    named = "postgresql://h/b?user=jo&{}port=5"
    assert without_password(named.format("password=s3cret&")) == named.format("")
    assert without_password("postgresql://jo@h/b?sslpassword=s3cret") == "postgresql://jo@h/b"


def test_newlines_and_tabs_stay() -> None:
    assert plain("a\tb\n\x1b[0m\r\x7f\u202e\udc00") == "a\tb\n\\x1b[0m\\r\\x7f\\u202e\\udc00"
