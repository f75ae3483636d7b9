"""Checking a run's record afterwards: nothing but the record is needed, no agent, model or price."""

from shiftbook.verify.verdict import Fault, Verdict
from shiftbook.verify.walk import verify

__all__ = ["Fault", "Verdict", "verify"]
