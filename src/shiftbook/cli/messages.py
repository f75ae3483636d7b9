"""A person's message from the command line or from stdin."""

from __future__ import annotations

import sys

from shiftbook.errors import BadInput

STDIN = "-"


def message_of(positional: str | None, option: str | None, *, needed: bool) -> str | None:
    """The one message that was given, None where none is needed; `BadInput` for two, none or an empty one."""
    if positional is not None and option is not None:
        raise BadInput("Two messages were given, one bare and one by --message: give one of the two.")
    message = positional if option is None else option
    if option == STDIN:
        try:
            message = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as fault:
            raise BadInput(f"What came on stdin is not UTF-8 text (byte {fault.start + 1}).") from None
    if message is None and not needed:
        return None
    if message is None or not message.strip():
        raise BadInput(
            "There is no message: write it behind the other words, or send it by --message - on stdin."
        )
    return message
