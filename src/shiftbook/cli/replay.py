"""`shiftbook replay`: what each policy would have sent for sessions that are already recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shiftbook.cli.left_out import left_out_rows, tell_left_out
from shiftbook.cli.options import Json, Verbose
from shiftbook.cli.output import data, line, note, table
from shiftbook.cli.rerun import TTLS
from shiftbook.cli.words import count
from shiftbook.clock import SystemClock
from shiftbook.economics.cache_rules import MarkerRule
from shiftbook.economics.cache_vendors import cache_rule
from shiftbook.economics.price_book import context_window, price_source, prices_at
from shiftbook.errors import BadInput
from shiftbook.policies.registry import POLICIES, policy_named
from shiftbook.replay import PolicyFigures, PolicySums, Sizes, replay, sizes_for, sums
from shiftbook.sessions import Session, Unmeasured, open_session, walk_sessions
from shiftbook.sessions.walk import is_folder
from shiftbook.studies.identifiers import KINDS
from shiftbook.views.own_requests import Life

OWN = "own"
LIVES: Mapping[str, Life] = {OWN: "own", **TTLS}


def command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            show_default=False,
            help="Files of sessions that `rerun` reads, or folders that are walked.",
        ),
    ],
    only: Annotated[
        int | None,
        typer.Option(
            "--only", metavar="N", show_default=False, help="The N-th session of a file that holds several."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            show_default=False,
            help="A policy, more than once for several, or all; all by default.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            show_default=False,
            help="Whose prices and cache rules count; those of the recorded model by default.",
        ),
    ] = None,
    cap: Annotated[
        int | None,
        typer.Option(
            "--cap",
            metavar="TOKENS",
            show_default=False,
            help="The prompt's hard limit, --fixed included; 40000 and the fixed part by default.",
        ),
    ] = None,
    mark: Annotated[
        int | None,
        typer.Option(
            "--mark",
            metavar="TOKENS",
            show_default=False,
            help="Rebuild down to this, --fixed included; 40% of what --cap leaves and the fixed part.",
        ),
    ] = None,
    fixed: Annotated[
        int | None,
        typer.Option(
            "--fixed",
            metavar="TOKENS",
            show_default=False,
            help="Counted into every prompt for what is not in the file; by default once 0, once 20000.",
        ),
    ] = None,
    ttl: Annotated[
        str,
        typer.Option(
            "--ttl",
            metavar="LIFE",
            help="How long the cache keeps a prompt: 5m, 1h, none (for ever), or own, the vendor's default.",
        ),
    ] = OWN,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Drive recorded sessions through every policy and tell what each would have sent and cost.

    Tokens are those of our prompts by our meter, cached as the vendor's rules would serve them at the
    recorded times, at today's prices. Output is what is to be seen of the recorded replies, the same for all.
    The policy transcript has no cap here. Paths to hex: of the identifiers that a call used and that had
    stood in the run before, the share that stood in the prompt that was answered. Of several sessions the
    median is that of their medians; a sum of which a part is not known is not known.
    """
    if ttl not in LIVES:
        raise BadInput(f"--ttl {ttl} is no life of a cache: give one of {', '.join(LIVES)}.")
    if any(each is not None and each < 0 for each in (cap, mark, fixed)):
        raise BadInput("--cap, --mark and --fixed are tokens: give numbers of at least 0.")
    names = _policies(policy or ["all"])
    now_ms = SystemClock().now_ms()
    if model is not None and prices_at(model, now_ms) is None:
        raise BadInput(f"No price is known for the model {model!r} ({price_source() or 'no price table'}).")
    if model is not None and cache_rule(model) is None:
        raise BadInput(f"No cache rule is known for the model {model!r}: name a Claude or GPT model.")
    choices = _Choices(names, sizes_for(cap, mark, fixed), ttl, model, now_ms)
    played: list[_Played] = []
    faults: list[Unmeasured] = []
    for session in _sessions(paths, only):
        found = session if isinstance(session, Unmeasured) else _played(session, choices)
        if isinstance(found, Unmeasured):
            faults.append(found)
        else:
            played.append(found)
    tell_left_out(faults, "replay", any_found=bool(played))
    if json:
        data(_told(played, faults, choices))
    elif len(played) == 1:
        _tell_one(played[0], choices)
    else:
        _tell_all(played, choices)


@dataclass(frozen=True, slots=True)
class _Choices:
    """What was asked for, the same for every session."""

    policies: Sequence[str]
    sizes: Sequence[Sizes]
    ttl: str
    model: str | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class _Played:
    """A session's figures, by policy for each of the sizes; `model` is whose prices count."""

    path: str
    model: str | None
    requests_in_file: int
    runs: Sequence[Mapping[str, PolicyFigures]]


def _sessions(paths: Sequence[Path], only: int | None) -> Iterator[Session | Unmeasured]:
    if only is None:
        return walk_sessions(paths)
    if len(paths) != 1 or is_folder(paths[0]):
        raise BadInput("--only chooses in one file: name that file alone.")
    return iter((open_session(paths[0], only),))


def _policies(given: list[str]) -> list[str]:
    names = list(POLICIES) if "all" in given else list(dict.fromkeys(given))
    for name in names:
        policy_named(name)
    return names


def _ruled(model: str | None, recorded: str | None) -> str | None:
    """The model whose rule and prices hold for every request: the chosen one, or a recorded one that is no
    Claude and whose rule is known. None: each reply's own model, under Anthropic's rules."""
    if model is not None or recorded is None:
        return model
    rule = cache_rule(recorded)
    return None if rule is None or isinstance(rule, MarkerRule) else recorded


def _rules_of(model: str | None) -> str:
    rule = None if model is None else cache_rule(model)
    if rule is None:
        return "Anthropic's cache rules (none are known for this model)"
    return "Anthropic's cache rules" if isinstance(rule, MarkerRule) else "OpenAI's cache rules"


def _played(session: Session, choices: _Choices) -> _Played | Unmeasured:
    """The session through every policy, or why it cannot be driven."""
    model = choices.model or session.model
    runs: list[Mapping[str, PolicyFigures]] = []
    for sizes in choices.sizes:
        found: dict[str, PolicyFigures] = {}
        for name in choices.policies:
            note(f"replaying {session.source}: {name}, fixed part {sizes.fixed:,} ...")
            try:
                found[name] = _figures(session, name, sizes, choices, model)
            except BadInput as refused:
                return Unmeasured(session.source, 0, str(refused).removesuffix("."), named=True, lost=True)
        runs.append(found)
    return _Played(session.source, model, session.requests_in_file, runs)


def _figures(
    session: Session, policy: str, sizes: Sizes, choices: _Choices, model: str | None
) -> PolicyFigures:
    made = replay(
        session,
        policy,
        sizes,
        ttl=LIVES[choices.ttl],
        model=_ruled(choices.model, model),
        prices=lambda name, _at_ms: prices_at(name, choices.now_ms),
        window=None if model is None else context_window(model),
    )
    return asyncio.run(made)


def _told(played: Sequence[_Played], faults: Sequence[Unmeasured], choices: _Choices) -> Mapping[str, object]:
    """One session's figures stand as they are, those of several as sums; `sessions` has each."""
    one = played[0] if len(played) == 1 else None
    runs: Sequence[Mapping[str, object]] = _sums(played, choices) if one is None else one.runs
    models = {each.model for each in played}
    model = played[0].model if len(models) == 1 else None
    return {
        "policies": runs[0],
        "path": None if one is None else one.path,
        "model": model,
        "prices": price_source(),
        "ttl": choices.ttl,
        "cache_rules": _rules_of(model) if len(models) == 1 else None,
        "requests_in_file": sum(each.requests_in_file for each in played),
        "at_fixed": _at_fixed(runs, choices),
        "sessions": [
            {
                "path": each.path,
                "model": each.model,
                "cache_rules": _rules_of(each.model),
                "requests_in_file": each.requests_in_file,
                "at_fixed": _at_fixed(each.runs, choices),
            }
            for each in played
        ],
        "left_out": left_out_rows(faults),
    }


def _at_fixed(runs: Sequence[Mapping[str, object]], choices: _Choices) -> list[Mapping[str, object]]:
    return [
        {"fixed": sizes.fixed, "cap": sizes.cap, "mark": sizes.mark, "policies": found}
        for sizes, found in zip(choices.sizes, runs, strict=True)
    ]


def _sums(played: Sequence[_Played], choices: _Choices) -> list[dict[str, PolicySums]]:
    return [
        {name: sums([each.runs[number][name] for each in played]) for name in choices.policies}
        for number in range(len(choices.sizes))
    ]


def _tell_one(played: _Played, choices: _Choices) -> None:
    told = f"priced as {played.model or '?'}, cached by {_rules_of(played.model)}, --ttl {choices.ttl}"
    line(f"{played.path}: {played.requests_in_file:,} requests recorded; {told}")
    for sizes, found in zip(choices.sizes, played.runs, strict=True):
        line("")
        states = {name: each["state"] for name, each in found.items()}
        _tell(sizes, found, {name: "" if state == "finished" else state for name, state in states.items()})


def _tell_all(played: Sequence[_Played], choices: _Choices) -> None:
    requests = sum(each.requests_in_file for each in played)
    rules = "; ".join(sorted({_rules_of(each.model) for each in played}))
    told = f"priced as {choices.model or 'each was recorded'}, cached by {rules}, --ttl {choices.ttl}"
    line(f"{count(len(played), 'session')}: {requests:,} requests recorded; {told}")
    for sizes, found in zip(choices.sizes, _sums(played, choices), strict=True):
        line("")
        cut = {name: each["unfinished"] for name, each in found.items()}
        _tell(
            sizes, found, {name: f"{number:,} not finished" if number else "" for name, number in cut.items()}
        )


def _tell(sizes: Sizes, found: Mapping[str, PolicyFigures | PolicySums], ends: Mapping[str, str]) -> None:
    line(f"fixed part {sizes.fixed:,} (--fixed), cap {sizes.cap:,}, mark {sizes.mark:,}")
    columns = (
        "policy",
        "requests",
        "prompt median",
        "max",
        "cached",
        "cost",
        "rebuilds",
        *KINDS,
        "over the window",
        "",
    )
    rows = [
        (
            name,
            f"{each['requests']:,}",
            _tokens(each["prompt_tokens"]["median"]),
            _tokens(each["prompt_tokens"]["max"]),
            "?" if each["cached_share"] is None else f"{each['cached_share']:.1%}",
            "?" if each["cost"] is None else f"${each['cost']:,.2f}",
            f"{each['rebuilds']:,}",
            *(_share(each["survival"][kind]["share"]) for kind in KINDS),
            _tokens(each["over_window"]),
            ends[name],
        )
        for name, each in found.items()
    ]
    table(columns, rows, right=columns[1:-1])


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _tokens(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
