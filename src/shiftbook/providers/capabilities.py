"""What each family of models takes and gives, as rows of data.

A row is found by the model's name; nothing else in Shiftbook branches on a model's name. A row that is wrong
is mended here, by one line. A model that no row knows gets `UNKNOWN`, which claims nothing that an endpoint
speaking the plain protocol would refuse: no images, no reasoning sent back, no cache fields, contents as
plain strings.

How long a prefix must be to be cached, and what that costs, stands in `economics.cache_vendors`, not here.

Sources: platform.claude.com/docs (thinking, tool use, prompt caching), developers.openai.com/api/docs
(reasoning, prompt caching), the types of the official SDKs (anthropic 2.14, openai 3.57),
api-docs.deepseek.com (thinking with tools), docs.mistral.ai (tool calls), platform.moonshot.ai; read 2026-11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Capabilities:
    """One family of models. `pattern` has to match the beginning of the name, vendor prefixes removed.

    images, files     whether images and PDF files may be sent at all
    reasoning         what comes back of reasoning: `signed` and `encrypted` blocks are sent back verbatim,
                      `field` is a field of that name in Chat messages (`reasoning_field`), `none` is not sent
    kept_pairs        calls and answers without the reasoning that led to them, after a rebuild: `native` as
                      such, `quoted` as text, `unless manual thinking` as such but for that one setting
    cache             `markers` (Anthropic), `breakpoints` and a cache key (OpenAI from GPT-5.6 on),
                      `key` (OpenAI before), `none`: no field about caching is sent
    content           Chat contents as lists of `parts` or as plain `text`
    output_limit      the Chat field that limits the answer
    system_role       who speaks the instructions in Chat and in a Responses item
    call_id_chars     the longest call id; `call_id_exact` is its only length where there is one, letters and
                      digits alone
    phases            whether a Responses message says that it is a remark on the way or the answer
    usage             whose convention the usage of Chat follows
    """

    pattern: str
    images: bool = False
    files: bool = False
    reasoning: Literal["none", "signed", "encrypted", "field"] = "none"
    reasoning_field: str = ""
    kept_pairs: Literal["native", "quoted", "unless manual thinking"] = "native"
    cache: Literal["none", "markers", "key", "breakpoints"] = "none"
    content: Literal["text", "parts"] = "text"
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    call_id_chars: int = 40
    call_id_exact: int | None = None
    phases: bool = False
    usage: Literal["openai", "deepseek"] = "openai"


UNKNOWN = Capabilities("")
"""For a model without a row."""

_CLAUDE = Capabilities(
    r"claude",
    images=True,
    files=True,
    reasoning="signed",
    kept_pairs="unless manual thinking",
    cache="markers",
    call_id_chars=64,
)
_CLAUDE_WITHOUT_THINKING = Capabilities(
    r"claude-(3(?!-7)|2|instant)", images=True, cache="markers", call_id_chars=64
)

TABLE: tuple[Capabilities, ...] = (
    _CLAUDE_WITHOUT_THINKING,
    _CLAUDE,
    Capabilities(
        r"gpt-(5\.([6-9]|\d\d)|[6-9](?!\d)|\d\d)",
        images=True,
        files=True,
        reasoning="encrypted",
        cache="breakpoints",
        content="parts",
        output_limit="max_completion_tokens",
        system_role="developer",
        phases=True,
    ),
    Capabilities(
        r"gpt-5\.[3-5](?!\d)",
        images=True,
        files=True,
        reasoning="encrypted",
        cache="key",
        content="parts",
        output_limit="max_completion_tokens",
        system_role="developer",
        phases=True,
    ),
    Capabilities(
        r"gpt-5-chat|chatgpt-|gpt-4o|gpt-4\.1|gpt-4-turbo",
        images=True,
        files=True,
        cache="key",
        content="parts",
        output_limit="max_completion_tokens",
    ),
    Capabilities(
        r"(gpt-5(?!\d)|o[134](?!\d)|codex-mini)",
        images=True,
        files=True,
        reasoning="encrypted",
        cache="key",
        content="parts",
        output_limit="max_completion_tokens",
        system_role="developer",
    ),
    Capabilities(r"deepseek-reasoner$|deepseek-r1", usage="deepseek"),
    Capabilities(
        r"deepseek",
        reasoning="field",
        reasoning_field="reasoning_content",
        kept_pairs="quoted",
        usage="deepseek",
    ),
    Capabilities(
        r"(kimi|moonshot)", reasoning="field", reasoning_field="reasoning_content", kept_pairs="quoted"
    ),
    Capabilities(r"(glm-|minimax)", reasoning="field", reasoning_field="reasoning_content"),
    Capabilities(
        r"(mistral|ministral|magistral|devstral|codestral|pixtral|mixtral)", call_id_chars=9, call_id_exact=9
    ),
    Capabilities(r"(gemini|grok)", images=True, content="parts"),
)
"""Every row, the special before the general: the first that matches is taken."""

_PREFIX = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|mistral|deepseek|moonshotai|google|x-ai)[./]")


def capabilities(model: str) -> Capabilities:
    """The row of a model by its name, with or without the prefix of a vendor or a region."""
    name = _PREFIX.sub("", model.lower())
    for row in TABLE:
        if re.match(row.pattern, name):
            return row
    return UNKNOWN
