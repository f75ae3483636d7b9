"""What a value is recorded as, read back from an entry that holds it."""

from __future__ import annotations

import hashlib

from shiftbook import codec
from shiftbook.entries import ActionFinished
from shiftbook.messages import Text
from shiftbook.tools.contract import Output
from shiftbook.tools.results import to_output


def text_of(value: object) -> str:
    """The one text of a value; it is whole, and an entry can hold it."""
    output = to_output(value)
    (part,) = output.content
    assert type(part) is Text
    assert type(part.text) is str
    read_back(output)
    return part.text


def read_back(output: Output) -> None:
    """What was made of a value goes into an entry and comes out the same."""
    what = ActionFinished("1.1", "done", output.content)
    sealed = codec.seal([codec.draft(what)], after=0, head=b"", at_ms=[0], epoch=1, token=bytes)
    assert codec.open_row(sealed.rows[0], sealed.blobs.__getitem__).what == what
    assert all(hashlib.sha256(content).hexdigest() == blob for blob, content in output.blobs.items())
