"""A password in an address is told to nobody: when all goes well, and when it is mistyped (F9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shiftbook.cli.places import address
from shiftbook.journal.postgres_address import names_a_server
from tests.cli.program import run
from tests.workers.ground import fresh_database

MISTYPED = [
    "host=h user=jo password=s3cret dbname=db",
    "user=jo\tpassword = s3cret",
    "postgresql:/jo:s3cret@h/db",
    "postgres:jo:s3cret@h/db",
    "POSTGRESQL://jo:s3cret@h/db",
    " postgresql://jo:s3cret@h/db",
    "postgresql+asyncpg://jo:s3cret@h/db",
    "jo:s3cret@h/db",
    "//jo:s3cret@h/db",
]


def with_password(db: str) -> list[str]:
    """The address with a password in each place where one may stand; the server asks for none."""
    return [db.replace("book@", "book:s3cret@"), db.replace("book@", "") + "?user=book&password=s3cret"]


def test_f9_no_verb_prints_the_password_when_all_goes_well(shop: Path) -> None:
    with fresh_database() as bare:
        for number, db in enumerate(with_password(bare)):
            name = f"r{number}"
            for words in (
                ["run", "agent.py:talk", "Hm?", "--run-id", name],
                ["send", name, "And?"],
                ["resume", name],
                ["run", "agent.py:shop", "Hm?", "--queue"],
                ["worker", "--once"],
                ["workers", "--json"],
                ["show", name],
                ["verify", name],
            ):
                ran = run(shop, *words, "-v", "--db", db)
                assert ran.code in (0, 5), ran.err
                assert "s3cret" not in ran.out + ran.err
            copied = run(shop, "copy", name, "-v", "--from", db, "--to", f"{name}.db")
            assert copied.code == 0
            assert "s3cret" not in copied.out + copied.err


@pytest.mark.parametrize("odd", MISTYPED)
def test_f9_a_mistyped_address_becomes_no_file_and_is_not_told(odd: str, shop: Path) -> None:
    before = sorted(shop.iterdir())
    for words in (["runs"], ["run", "agent.py:shop", "Hm?"], ["send", "r1", "Hm?"]):
        told = run(shop, *words, "-v", "--db", odd)
        assert told.code == 2
        assert "The address of a journal is the path" in told.err
        assert "s3cret" not in told.out + told.err
    assert [each for each in sorted(shop.iterdir()) if each.name != "__pycache__"] == before


@pytest.mark.parametrize("odd", MISTYPED)
def test_f9_a_mistyped_address_in_a_project_file_is_no_path_in_its_folder(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHIFTBOOK_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.shiftbook]\ndb = {json.dumps(odd)}\n")
    assert address(None) == odd


@pytest.mark.parametrize("path", ["book.db", "./a:b@c.db", "/data/user=jo.db", "postgres.db", ":memory:a@b"])
def test_the_path_of_a_file_is_no_servers_address(path: str) -> None:
    assert not names_a_server(path)
