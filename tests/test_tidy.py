"""Style as a test: what the house cares about, each rule with its reason in the failure message.

The rules stand in `tests/tidy`. Each carries a bad snippet that it must catch and a good one that it must let
pass, so that a rule that has stopped working fails here before the house gets untidy. A file may be let off
by name in `EXCEPTIONS`, with a reason; an exception that is no longer needed fails too. What cannot be
checked by reading one file is a sentence in CONTRIBUTING.md instead.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.tidy import code, text
from tests.tidy.rule import RULES, Rule, Source

ROOT = text.ROOT

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(rule, path) -> the reason why this file need not keep this rule."""

LARGEST_BLOB_BYTES = 300_000
LARGE_FILES: dict[str, str] = {}
"""path -> the reason why this file may be larger."""


def house_files() -> dict[str, Path]:
    """The files that git tracks or would track; in an unpacked archive, all but hidden ones."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        names = listed.split("\0")
    except (OSError, subprocess.CalledProcessError):
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        names = [str(path) for path in found if not any(part.startswith(".") for part in path.parts)]
    return {name: ROOT / name for name in sorted(names) if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    files = house_files()
    wanted = [name for name in files if any(each.applies(name) for each in RULES)]
    return [Source(name, files[name].read_text(encoding="utf-8")) for name in wanted]


def too_large(sizes: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{name}: {size:,} bytes" for name, size in sizes if size > LARGEST_BLOB_BYTES]


each_rule = pytest.mark.parametrize("each", RULES, ids=lambda each: each.name)


@each_rule
def test_the_house_keeps(each: Rule, sources: list[Source]) -> None:
    broken = [told for path, told in each.findings(sources) if (each.name, path) not in EXCEPTIONS]
    if broken:
        pytest.fail(f"{each.name}: {each.why}.\n  " + "\n  ".join(broken), pytrace=False)


@each_rule
def test_catches_the_bad_and_passes_the_good(each: Rule) -> None:
    for path, snippet in each.bad:
        assert each.findings([Source(path, snippet)]), (
            f"{each.name} does not catch {snippet[:60]!r} in {path}"
        )
    path, snippet = each.good
    assert each.applies(path)
    assert not each.findings([Source(path, snippet)])


def test_every_exception_is_needed_and_has_a_reason(sources: list[Source]) -> None:
    broken = {(each.name, path) for each in RULES for path, _ in each.findings(sources)}
    assert not EXCEPTIONS.keys() - broken, "these exceptions are no longer needed: remove them"
    assert not LARGE_FILES.keys() - house_files().keys()
    assert all(len(reason.split()) > 3 for reason in [*EXCEPTIONS.values(), *LARGE_FILES.values()])


def test_no_large_file_is_tracked() -> None:
    assert too_large([("a", LARGEST_BLOB_BYTES + 1), ("b", 1)]) == [f"a: {LARGEST_BLOB_BYTES + 1:,} bytes"]
    sizes = [(name, path.stat().st_size) for name, path in house_files().items() if name not in LARGE_FILES]
    assert not too_large(sizes), "a clone stays small: make large data by a script, or keep it elsewhere"


def test_import_is_light() -> None:
    probe = f"import sys, shiftbook; print(*sorted({set(code.LAZY)} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True, text=True).stdout
    assert not loaded.strip(), "`import shiftbook` loads heavy packages; import them where they are used"
