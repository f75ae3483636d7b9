"""A run told to people and scripts as plain rows: what every face shows, in one place.

Views read and never write, import no agent and ask no model. What they hand out is plain values; text in a
summary line is safe for a terminal, text in a row is as the journal has it.
"""

from shiftbook.views.explained import ExplainView, explain_view
from shiftbook.views.figures import PromptTokens, RunFigures, run_figures
from shiftbook.views.holding import Hold, hold_of, hold_told
from shiftbook.views.lines import one_line, summary_line
from shiftbook.views.own_requests import OwnRequests
from shiftbook.views.prompts import BlockRow, PromptView, prompt_view
from shiftbook.views.rows import entries_of, follow_entries, show_row, show_rows
from shiftbook.views.runs import RunLine, runs_view, standing_of

__all__ = [
    "BlockRow",
    "ExplainView",
    "Hold",
    "OwnRequests",
    "PromptTokens",
    "PromptView",
    "RunFigures",
    "RunLine",
    "entries_of",
    "explain_view",
    "follow_entries",
    "hold_of",
    "hold_told",
    "one_line",
    "prompt_view",
    "run_figures",
    "runs_view",
    "show_row",
    "show_rows",
    "standing_of",
    "summary_line",
]
