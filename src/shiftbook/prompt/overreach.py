"""What a model's report may not say, however true: how the run stands, a rule for later, a person's words.

Run state is rendered by code, rules come from the author or a person, and people's words are quoted by rule;
a report that says such things would be a second source of them, and a tool's text could speak through it.
The patterns are English, and a second net: the first is that a report is shown as an account and no
instruction, and that nothing of it becomes a rule, a statement, the plan or a tally.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shiftbook.entries import Entry, PersonSaid, ReportLine
from shiftbook.prompt import wording

LINE_CHARS_MAX = 600
"""A line that is longer is no line of an account."""

_PERSONS = re.compile(
    r"\d{4,}-\d\d-\d\d \d\d:\d\d UTC, (?:" + "|".join(map(re.escape, wording.SAID_BY.values())) + r"): "
)
_SOMEBODY = r"(?:user|person|human|customer|operator|owner|somebody|someone|approval|approver)"
_STATE = re.compile(
    rf"\b(?:waiting|waits|wait)\s+(?:for|on)\s+(?:\w+\s+)?(?:{_SOMEBODY}|answer|reply|response|input"
    r"|confirmation|instructions?|go-ahead|decision|timer|sub-?agent)"
    r"|\bawait(?:s|ing)\b"
    r"|\b(?:run|task|session|shift|agent|assistant|conversation|job|work|everything"
    r"|all (?:tasks|work|steps|items|calls|actions))\s+(?:is|are|was|were|has been|have been|had been)\s+"
    r"(?:(?:now|already|still|all|fully|currently)\s+)*"
    r"(?:done|finished|completed?|over|ended|paused|stopped|halted|cancell?ed|failed|blocked|waiting|idle"
    r"|pending|running|limited|closed)\b"
    r"|\b(?:nothing|no \w+)\s+(?:is|are|was|were|remains?)\s+(?:left|open|pending|outstanding"
    r"|to be done|to do)\b"
    r"|\bno (?:open|pending|outstanding|remaining|unanswered)\s+(?:calls?|actions?|requests?|tasks?|items?"
    r"|steps?|questions?)\b"
    r"|\b(?:is|are|remains?|still)\s+(?:still\s+)?(?:pending|outstanding)\b",
    re.IGNORECASE,
)
_STANDING = re.compile(
    r"\b(?:from (?:now|here|this point|today) on|henceforth|going forward|in (?:the )?future|always"
    r"|at all times"
    r"|(?:standing|new|permanent) (?:rule|instruction|order|polic)\w*)\b"
    r"|\b(?:you|we|(?:the |all |every )?(?:agent|assistant|model)s?) (?:must|should|shall|have to|has to|need"
    r"|needs|are to|is to|may not|must not)\b"
    r"|\A\W*(?:never|do not|don't|ignore|disregard|forget|make sure|be sure|remember to|you)\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\b(?:user|person|human|operator|owner|author)(?: \w+ly| then| also| has| had)?\s+(?:said"
    r"|says|asks?|asked|tells?|told|wants?|wanted|requests?|requested|instructs?|instructed|orders?|ordered"
    r"|approves?|approved|confirms?|confirmed|agrees?|agreed|allows?|allowed|permits?|permitted|wrote|writes"
    r"|decided|decides)\b",
    re.IGNORECASE,
)


def is_persons(line: ReportLine) -> bool:
    """Whether the line gives somebody's own words in the form that only the writer by rule may use."""
    return _PERSONS.match(line.text) is not None


def overreach(line: ReportLine, cited: Sequence[Entry]) -> str | None:
    """Why a line that a model wrote may not stand, whatever those that it cites hold; None if it may."""
    if len(line.text) > LINE_CHARS_MAX:
        return f"it is longer than {LINE_CHARS_MAX} characters"
    if is_persons(line):
        return "it has the form in which code quotes people's words"
    if _STATE.search(line.text):
        return "it says how the run stands, which is rendered by code"
    people = [isinstance(e.what, PersonSaid) and e.what.author != "recording" for e in cited]
    if _STANDING.search(line.text) and not all(people):
        return "it reads as a standing instruction, and not only people's words stand behind it"
    if _SAID.search(line.text) and not any(people):
        return "it says what a person said, and cites no person's words"
    return None
