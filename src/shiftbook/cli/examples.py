"""An example for each verb, shown at the end of its `--help`; a test holds each against the verb."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, str] = {
    "init": "shiftbook init",
    "demo": "shiftbook demo",
    "run": 'shiftbook run agent.py:shop "Order 3 boxes of tea."',
    "resume": 'shiftbook resume --last --message "And coffee?"',
    "send": 'shiftbook send --last "Stop after this one."',
    "worker": "shiftbook worker --db postgresql://ME@HOST/NAME",
    "workers": "shiftbook workers --db postgresql://ME@HOST/NAME",
    "rerun": "shiftbook rerun SESSION.jsonl --policy journal --cap 40000",
    "measure": "shiftbook measure ~/.claude/projects --html page.html",
    "replay": "shiftbook replay SESSION.jsonl --policy all --cap 40000",
    "runs": "shiftbook runs --state running",
    "show": "shiftbook show --last",
    "tail": "shiftbook tail --last --until-rest",
    "prompt": "shiftbook prompt --last",
    "explain": "shiftbook explain --last --turn 2",
    "verify": "shiftbook verify --last",
    "study": "shiftbook study boundary ~/.claude/projects",
    "export": "shiftbook export --last --output run.jsonl",
    "import": "shiftbook import run.jsonl",
    "copy": "shiftbook copy --from shiftbook.db --to postgresql://ME@HOST/NAME",
}
