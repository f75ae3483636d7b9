"""Observers: code that turns a known tool's result into statements, a plan and tallies.

An observer is pure. It is given a call that is done, its result and what the run knows, and returns what it
notices; the engine writes that beside the result, in one commit, with the observer's origin on it. It cannot
set a rule, and one that fails is a warning in the record and never the end of a run.
"""

from shiftbook.observers.json_path import JsonFact, JsonTally
from shiftbook.observers.promise import Noticed, Observed, Observer
from shiftbook.observers.todo import ToDo

__all__ = ["JsonFact", "JsonTally", "Noticed", "Observed", "Observer", "ToDo"]
