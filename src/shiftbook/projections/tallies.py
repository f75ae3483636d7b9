"""Exact running numbers, by key and place: set and added to by code, never by a model's arithmetic.

Amounts are whole numbers or decimals; a floating-point number is refused, since it is not what was counted.
Sums are exact, however long the numbers get. A tally keeps the entries that it is the sum of, since it was
last set; a long one is set to its own total now and then (`carry_due`), as a page of a ledger is carried
forward, so that no sum ever has to be made over the whole journal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Context, Decimal, DecimalException, Inexact, Overflow

from shiftbook.entries import Entry, TallyChanged
from shiftbook.messages import Json

DIGITS_MAX = 60
"""Digits of an amount, before and behind the point together."""

CARRY_EVERY = 100
"""Operands after which a tally is carried forward."""

Amount = int | Decimal
TallyKey = tuple[str, str]
"""Key and place."""

_PLAIN = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
# Wide enough that no sum of allowed amounts is ever rounded; a rounding would raise.
_EXACT = Context(prec=10_000, traps=[Inexact, Overflow], Emin=-9_999, Emax=9_999)


@dataclass(slots=True)
class Tally:
    """A running number and the entries that it is made of: the last "set", if any, and what came after it."""

    total: Amount = 0
    operands: list[Entry] = field(default_factory=list)


def read_amount(value: Json) -> Amount:
    """The exact number that was written; "1,234" is 1234, "1.50" is a decimal.

    Raises `ValueError` with the rest of a sentence that begins with "the amount".
    """
    if isinstance(value, float):
        raise ValueError('is a floating-point number and not exact; write it as text, as in "12.50"')
    if isinstance(value, str):
        text = value.strip()
        if not (_PLAIN.fullmatch(text) or _GROUPED.fullmatch(text)):
            raise ValueError('is not a number; write a whole number or one like "1234.50"')
        text = text.replace(",", "")
        if sum(letter.isdigit() for letter in text) > DIGITS_MAX:
            raise ValueError(f"has more than {DIGITS_MAX} digits")
        return Decimal(text) if "." in text else int(text)
    if not is_exact(value):
        raise ValueError(f"has to be a whole number or a decimal of at most {DIGITS_MAX} digits")
    amount: Amount = value
    return amount


def is_exact(value: Json) -> bool:
    """Whether the value is an amount that a tally takes."""
    if type(value) is int:
        return value.bit_length() <= DIGITS_MAX * 4
    if type(value) is not Decimal or not value.is_finite():
        return False
    _, digits, exponent = value.as_tuple()
    return len(digits) <= DIGITS_MAX and isinstance(exponent, int) and abs(exponent) <= DIGITS_MAX


def added(one: Amount, other: Amount) -> Amount:
    """The exact sum: whole when both are whole."""
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return _EXACT.add(Decimal(one), Decimal(other))


def learn_tally(tallies: dict[TallyKey, Tally], entry: Entry, what: TallyChanged) -> None:
    """Take one change; an amount that is no exact number, which no release writes, changes nothing."""
    amount = what.amount
    if type(amount) is not int and (type(amount) is not Decimal or not amount.is_finite()):
        return
    key = (what.key, what.place)
    before = tallies.get(key)
    try:
        if what.operation == "set" or before is None:
            total = added(0, amount)
        else:
            total = added(before.total, amount)
    except (DecimalException, ValueError):
        return
    operands = [] if what.operation == "set" or before is None else before.operands
    operands.append(entry)
    tallies[key] = Tally(total, operands)


def carry_due(tallies: dict[TallyKey, Tally], key: TallyKey) -> TallyChanged | None:
    """The entry that carries this tally forward when its page is full, else None."""
    tally = tallies.get(key)
    if tally is None or len(tally.operands) <= CARRY_EVERY:
        return None
    last = tally.operands[-1]
    assert isinstance(last.what, TallyChanged)
    return TallyChanged(key[0], "set", tally.total, last.what.origin, place=key[1], sources=(last.position,))
