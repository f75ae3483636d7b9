"""Reasoning is signed for the exact place where it was given: its words, its model, everything before it.

A signature says two things apart: that the block is the vendor's and unedited, and that nothing before it has
changed. What comes before is the chained digest over tools, instructions and messages, cache markers left
out (`pieces.chain`), earlier reasoning included. The secret is fixed unless a test wants another vendor, so
that a server started anew honours what an earlier one signed.

Source of the rule: platform.claude.com/docs/en/build-with-claude/preserved-thinking (read 2026-11). The
vendor checks the prefix on newer models only and, of a model that cannot read the block, drops it in silence;
OpenAI lists what it withheld in `input_transformations`. Here the check is made for every model.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shiftbook.testing.server.pieces import Piece, Reasoned, chain

SECRET = b"a secret of the provider server"
_TAG, _MAC = 8, 16

Why = Literal["edited", "other prefix", "other model"]


@dataclass(frozen=True, slots=True)
class Stale:
    """A reasoning block that may not stand where it stands; `piece` is its number among the pieces."""

    reasoned: Reasoned
    why: Why
    piece: int


def sign(secret: bytes, model: str, before: bytes, words: str) -> str:
    """The signature of reasoning with these words, given by this model after that prefix."""
    tag = _tag(model)
    return base64.b64encode(
        tag + _unedited(secret, tag, words) + _placed(secret, tag, before, words)
    ).decode()


def stale(secret: bytes, model: str, pieces: Sequence[Piece]) -> list[Stale]:
    """Every reasoning block that was edited, or stands behind another prefix, or is another model's."""
    found: list[Stale] = []
    for number, (piece, before) in enumerate(zip(pieces, chain(pieces), strict=False)):
        if piece.reasoned is not None:
            why = _why(secret, model, before, piece.reasoned)
            if why is not None:
                found.append(Stale(piece.reasoned, why, number))
    return found


def _why(secret: bytes, model: str, before: bytes, given: Reasoned) -> Why | None:
    try:
        raw = base64.b64decode(given.signature, validate=True)
    except ValueError:
        return "edited"
    if base64.b64encode(raw).decode() != given.signature:
        return "edited"  # base64 has spare bits, in which an edit would not show
    tag, unedited, placed = raw[:_TAG], raw[_TAG : _TAG + _MAC], raw[_TAG + _MAC :]
    if not hmac.compare_digest(unedited, _unedited(secret, tag, given.words)):
        return "edited"
    if tag != _tag(model):
        return "other model"
    if not hmac.compare_digest(placed, _placed(secret, tag, before, given.words)):
        return "other prefix"
    return None


def _tag(model: str) -> bytes:
    return hashlib.sha256(model.encode("utf-8", "surrogatepass")).digest()[:_TAG]


def _unedited(secret: bytes, tag: bytes, words: str) -> bytes:
    return _mac(secret, b"words" + tag + words.encode("utf-8", "surrogatepass"))


def _placed(secret: bytes, tag: bytes, before: bytes, words: str) -> bytes:
    return _mac(secret, b"place" + tag + before + words.encode("utf-8", "surrogatepass"))


def _mac(secret: bytes, told: bytes) -> bytes:
    return hmac.new(secret, told, hashlib.sha256).digest()[:_MAC]
