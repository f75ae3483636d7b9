"""Rules of the words around the code: paths, links, the changelog, the project file."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

from tests.tidy.rule import TEXT, Findings, Source, rule

ROOT = Path(__file__).resolve().parent.parent.parent
AGENTS_LINES = 80
SECTIONS = "Added|Changed|Deprecated|Removed|Fixed|Security"
HEADING = rf"## \[Unreleased\]|## \[\d+\.\d+\.\d+\] - \d{{4}}-\d\d-\d\d|### ({SECTIONS})"
ONE_CHANGE = (
    "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One,\n  at length.\n\n## [0.1.0] - 2026-01-01\n"
)


@rule(
    *TEXT,
    why="a path or an address from one machine means nothing on another, and tells strangers about it",
    bad=["x = '/" + "home/someone/code'", "see /" + "Users/jo/x", "--index" + "-url x", "/" + "root/.cache"],
    good="/home/you/agent.py, docs/home/page, https://example.com/home/page\n",
)
def no_machine_paths(source: Source) -> Findings:
    paths = r"(?<![\w.~])/(?:home|Users|root|work|mnt|srv)/(?!(?:you|me|user)\b)[\w.]"
    hosts = r"pypi[.]org|python" + r"hosted|index[-]url"
    for number, line in enumerate(source.lines, 1):
        if found := re.search(f"{paths}|{hosts}", line):
            yield number, f"{found[0]}..."


@rule(
    "CHANGELOG.md",
    why="people look for what changed for them, in the form of keepachangelog.com",
    bad=[
        "# Changes\n",
        "# Changelog\n\n## [0.1.0] - 2026-01-01\n",
        ONE_CHANGE.replace("Added", "News"),
        ONE_CHANGE.replace("at length.", "at length"),
        ONE_CHANGE.replace("### Added", "### Added\n\n### Fixed"),
        ONE_CHANGE.replace("2026-01-01", "January"),
    ],
    good=ONE_CHANGE,
    at="CHANGELOG.md",
)
def changelog_form(source: Source) -> Findings:
    heads = [(number, line) for number, line in enumerate(source.lines, 1) if line.startswith("#")]
    if [line for _, line in heads[:2]] != ["# Changelog", "## [Unreleased]"]:
        yield 1, "it opens with the headings `# Changelog` and `## [Unreleased]`"
    for number, line in heads[1:]:
        if not re.fullmatch(HEADING, line):
            yield number, f"{line}: neither a version with its date nor one of the six sections"
    blocks = re.split(r"\n\s*\n|\n(?=- )", source.text.strip())
    for block, after in pairwise([*blocks, "## end"]):
        if block.startswith("### ") and not after.startswith("- "):
            yield 1, f"{block} is empty"
        if block.startswith("- ") and not block.endswith("."):
            yield 1, f"not a sentence: {block}"


@rule("AGENTS.md", why="it is read at every start; what is longer is not", bad="x\n" * 81, at="AGENTS.md")
def agents_length(source: Source) -> Findings:
    if len(source.lines) > AGENTS_LINES:
        yield 1, f"{len(source.lines)} lines; at most {AGENTS_LINES}"


@rule(
    "*.md",
    why="a reader follows links",
    bad=["[see](nowhere.md)", "[see](../README.md#nowhere-there)", "# Here\n\n[see](#there)"],
    good="# See `it`: here\n\n[see](../LICENSE#top) [out](https://example.com#x) [it](#see-it-here) "
    "[all](../README.md#shiftbook)",
    at="docs/page.md",
)
def links_resolve(source: Source) -> Findings:
    here = ROOT / source.path
    for number, line in enumerate(source.lines, 1):
        for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", line):
            page = here.parent / target
            if re.match(r"\w+:", target):
                continue
            if target and not page.exists():
                yield number, f"no such file: {target}"
            elif heading and (not target or page.suffix == ".md"):
                text = page.read_text(encoding="utf-8") if target else source.text
                if heading not in _headings(text):
                    yield number, f"no such heading: {target}#{heading}"


def _headings(text: str) -> set[str]:
    """The headings of a page as a link names them: small letters, no signs, dashes for spaces."""
    lines = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL).splitlines()
    names = (line.lstrip("#").strip().lower() for line in lines if re.match(r"#+ ", line))
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", name)) for name in names}


@rule(
    "pyproject.toml",
    why="`all` means all",
    bad='[project.optional-dependencies]\nall = []\nsearch = ["numpy"]\n',
    good='[project.optional-dependencies]\nall = ["shiftbook[search]"]\nsearch = ["numpy"]\ndev = []\n',
    at="pyproject.toml",
)
def all_extra(source: Source) -> Findings:
    extras = tomllib.loads(source.text)["project"]["optional-dependencies"]
    for name in sorted(extras.keys() - {"all", "dev"}):
        if not any(re.match(rf"shiftbook\[.*\b{name}\b.*\]", each) for each in extras["all"]):
            yield 1, f"the extra {name} is not in `all`"
