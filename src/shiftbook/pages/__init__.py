"""Pages: figures told in one file of HTML that anyone can open, keep and send.

A page is text made from plain data: it loads nothing, runs nothing, and reads in light and dark, on paper and
on a telephone. Whatever it is given is hostile text and is escaped here, once; `Markup` is what has been.
"""

from shiftbook.pages.bars import Bar, bar_chart
from shiftbook.pages.lines import Level, Moment, Series, line_chart
from shiftbook.pages.markup import Markup, joined
from shiftbook.pages.page import Section, facts, notes, page, paragraph
from shiftbook.pages.table import table

__all__ = [
    "Bar",
    "Level",
    "Markup",
    "Moment",
    "Section",
    "Series",
    "bar_chart",
    "facts",
    "joined",
    "line_chart",
    "notes",
    "page",
    "paragraph",
    "table",
]
