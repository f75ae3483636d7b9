"""The closed vocabulary of what can happen in a run.

Every entry is a frozen value in the past tense. Entries neither render nor stamp themselves; position,
stamp and lease epoch stand in the `Entry` around them. The vocabulary grows only by a decision record:
`What` is matched exhaustively wherever it is folded, so that a new kind cannot be overlooked.

Only the kinds in `MODEL_VISIBLE` may enter a prompt. The kinds stand in one module for each thing that they
are about; everybody imports them from here.
"""

from shiftbook.entries.actions import (
    ActionFinished,
    ActionStarted,
    Outcome,
)
from shiftbook.entries.asking import (
    EpochOpened,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelInterrupted,
    Pick,
    Recalled,
    Recipe,
)
from shiftbook.entries.knowledge import (
    Origin,
    PlanChanged,
    PlanItem,
    PlanState,
    Sort,
    StatementMade,
    TallyChanged,
    TallyOperation,
)
from shiftbook.entries.reports import (
    LineStruck,
    ReportAnswered,
    ReportAsked,
    ReportFailed,
    ReportLine,
    ReportWritten,
)
from shiftbook.entries.run import (
    AgentDeclared,
    Author,
    LimitReached,
    PersonSaid,
    RuleSet,
    RunEnded,
    RunOpened,
    RunRested,
    State,
    UserContent,
    Warned,
)
from shiftbook.entries.vocabulary import (
    FORMAT,
    KIND_NUMBERS,
    KINDS,
    MODEL_VISIBLE,
    Entry,
    What,
)

__all__ = [
    "FORMAT",
    "KINDS",
    "KIND_NUMBERS",
    "MODEL_VISIBLE",
    "ActionFinished",
    "ActionStarted",
    "AgentDeclared",
    "Author",
    "Entry",
    "EpochOpened",
    "LimitReached",
    "LineStruck",
    "ModelAnswered",
    "ModelAsked",
    "ModelFailed",
    "ModelInterrupted",
    "Origin",
    "Outcome",
    "PersonSaid",
    "Pick",
    "PlanChanged",
    "PlanItem",
    "PlanState",
    "Recalled",
    "Recipe",
    "ReportAnswered",
    "ReportAsked",
    "ReportFailed",
    "ReportLine",
    "ReportWritten",
    "RuleSet",
    "RunEnded",
    "RunOpened",
    "RunRested",
    "Sort",
    "State",
    "StatementMade",
    "TallyChanged",
    "TallyOperation",
    "UserContent",
    "Warned",
    "What",
]
