"""Digests of prompts: one for each block, chained, so that equal means equal to the byte from the beginning.

What is digested is what is said: a block's side and parts as canonical text. Its kind and its entries are
how it came about and are left out. 128 bits of SHA-256, in hex:

    start  = H("shiftbook prompt" + declaration + renderer)
    chain  = H(digest before + digest of the block)
"""

from __future__ import annotations

import hashlib

from shiftbook import canonical
from shiftbook.messages import Block, Part, Result, Text
from shiftbook.payload import part_to_plain

DIGEST_CHARS = 32
"""Hex digits of a digest."""


def start(declaration: str, renderer: int) -> str:
    """The digest of an empty prompt, of an agent as declared in blob `declaration`, by that renderer."""
    return _hex(f"shiftbook prompt\n{declaration}\n{renderer}\n")


def block_text(block: Block) -> str:
    """What a block says, as canonical text."""
    return f'["{block.side}",[{",".join([_part_text(part) for part in block.parts])}]]'


def block_digest(block: Block) -> str:
    """The digest of one block."""
    return _hex(block_text(block))


def chain(digest: str, block: str) -> str:
    """The digest of a prompt with one block more, from its digest before and that block's."""
    return _hex(f"{digest}\n{block}\n")


def _part_text(part: Part) -> str:
    """The canonical text of one part: put together where its form is known, since most parts are words."""
    match part:
        case Text(text):
            return f'{{"text":{canonical.encode(text)}}}'
        case Result(call, content, is_error):
            told = ",".join([_part_text(each) for each in content])
            end = ',"error":true}' if is_error else "}"
            return f'{{"result":{canonical.encode(call)},"content":[{told}]{end}'
    return canonical.encode(part_to_plain(part))


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:DIGEST_CHARS]
