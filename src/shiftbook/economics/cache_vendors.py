"""Which cache rule a model runs under, as dated data.

Minimum lengths change with models and without notice, so each row carries where it was read. A Claude model
that no row knows gets the largest minimum seen: a run may then do better than the model says, never worse.
Other unknown models have no rule (None): their cache is not guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

from shiftbook.economics.cache_rules import BreakpointRule, CacheRule, MarkerRule, PrefixRule


@dataclass(frozen=True, slots=True)
class Minimum:
    """The shortest prefix, in tokens, that a family of Claude models keeps; `pattern` is sought in the id."""

    pattern: str
    tokens: int
    source: str


_READ = "docs.litellm.ai/docs/completion/prompt_caching and dev.to/creeta, read 2026-10"
CLAUDE_MINIMA: tuple[Minimum, ...] = (
    Minimum(r"opus-5$|(fable|mythos)-5$", 512, _READ),
    Minimum(r"sonnet-5$|sonnet-4-[56]|opus-4-(8|1)(?!\d)|opus-4$", 1024, _READ),
    Minimum(r"opus-4-7|haiku-3|3-5-haiku|3-haiku", 2048, _READ),
    Minimum(r"opus-4-[56]|haiku-4-5", 4096, _READ),
)
CLAUDE_LARGEST_MINIMUM = 4096
"""For Claude models without a row; the 5.5 models' own minimum was not found in any source (2026-11)."""

OPENAI_BREAKPOINTS = BreakpointRule()
OPENAI_PREFIXES = PrefixRule()
"""In memory entries live 5 to 10 minutes without use; the shorter is taken."""
OPENAI_PREFIXES_24H = PrefixRule(life=86_400.0)
"""The same with `prompt_cache_retention` of 24 hours."""
VLLM = PrefixRule(minimum=16, step_tokens=16, life=inf, last_computed=True)
"""Full KV blocks of 16 tokens, no life; eviction under memory pressure is not modelled."""

_OPENAI_OLD = re.compile(r"^(gpt-4o|gpt-4\.1|gpt-5(?!\d)(?!\.([6-9]|\d\d))|o[134](?!\d))")
_OPENAI_NEW = re.compile(r"^gpt-(5\.([6-9]|\d\d)|[6-9](?!\d)|\d\d)")
_DATE = re.compile(r"[-@]20\d{6}$|-latest$")


def cache_rule(model: str) -> CacheRule | None:
    """The rule for a model id, with or without a vendor prefix and a date; None when it is not known."""
    name = _DATE.sub("", model.lower().rsplit("/", 1)[-1])
    if "claude" in name:
        dashed = name.replace(".", "-")
        for row in CLAUDE_MINIMA:
            if re.search(row.pattern, dashed):
                return MarkerRule(row.tokens)
        return MarkerRule(CLAUDE_LARGEST_MINIMUM)
    if _OPENAI_NEW.match(name):
        return OPENAI_BREAKPOINTS
    if _OPENAI_OLD.match(name):
        return OPENAI_PREFIXES
    return None
