"""`shiftbook replay`: what each policy would have sent for a session that is already recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from shiftbook.cli.options import Json, Verbose
from shiftbook.cli.output import data, line, note, table
from shiftbook.cli.rerun import TTLS
from shiftbook.clock import SystemClock
from shiftbook.economics.cache_rules import MarkerRule
from shiftbook.economics.cache_vendors import cache_rule
from shiftbook.economics.price_book import context_window, price_source, prices_at
from shiftbook.errors import BadInput
from shiftbook.policies.registry import POLICIES, policy_named
from shiftbook.replay import PolicyFigures, Sizes, replay, sizes_for
from shiftbook.sessions import Session, open_session
from shiftbook.studies.identifiers import KINDS
from shiftbook.views.own_requests import Life

OWN = "own"
LIVES: Mapping[str, Life] = {OWN: "own", **TTLS}


def command(
    session: Annotated[
        Path,
        typer.Argument(metavar="SESSION", show_default=False, help="A recorded session that `rerun` reads."),
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
    """Drive a recorded session through every policy and tell what each would have sent and cost.

    Tokens are those of our prompts by our meter, cached as the vendor's rules would serve them at the
    recorded times, at today's prices. Output is what is to be seen of the recorded replies, the same for all.
    The policy transcript has no cap here. Paths to hex: of the identifiers that a call used and that had
    stood in the run before, the share that stood in the prompt that was answered.
    """
    if ttl not in LIVES:
        raise BadInput(f"--ttl {ttl} is no life of a cache: give one of {', '.join(LIVES)}.")
    if any(each is not None and each < 0 for each in (cap, mark, fixed)):
        raise BadInput("--cap, --mark and --fixed are tokens: give numbers of at least 0.")
    names = _policies(policy or ["all"])
    recorded = open_session(session, only)
    named = model or recorded.model
    now_ms = SystemClock().now_ms()
    if model is not None and prices_at(model, now_ms) is None:
        raise BadInput(f"No price is known for the model {model!r} ({price_source() or 'no price table'}).")
    if model is not None and cache_rule(model) is None:
        raise BadInput(f"No cache rule is known for the model {model!r}: name a Claude or GPT model.")
    runs: list[tuple[Sizes, dict[str, PolicyFigures]]] = []
    for sizes in sizes_for(cap, mark, fixed):
        found: dict[str, PolicyFigures] = {}
        for name in names:
            note(f"replaying {name}, fixed part {sizes.fixed:,} ...")
            found[name] = _played(recorded, name, sizes, ttl, model, now_ms, named)
        runs.append((sizes, found))
    if json:
        data(_told(recorded, named, ttl, runs))
        return
    told = f"priced as {named or '?'}, cached by {_rules_of(named)}, --ttl {ttl}"
    line(f"{recorded.source}: {recorded.requests_in_file:,} requests recorded; {told}")
    for sizes, found in runs:
        line("")
        _tell(sizes, found)


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


def _played(
    session: Session,
    policy: str,
    sizes: Sizes,
    ttl: str,
    model: str | None,
    now_ms: int,
    named: str | None,
) -> PolicyFigures:
    window = None if named is None else context_window(named)
    made = replay(
        session,
        policy,
        sizes,
        ttl=LIVES[ttl],
        model=_ruled(model, named),
        prices=lambda name, _at_ms: prices_at(name, now_ms),
        window=window,
    )
    return asyncio.run(made)


def _told(
    session: Session, model: str | None, ttl: str, runs: list[tuple[Sizes, dict[str, PolicyFigures]]]
) -> Mapping[str, object]:
    return {
        "policies": runs[0][1],
        "path": session.source,
        "model": model,
        "prices": price_source(),
        "ttl": ttl,
        "cache_rules": _rules_of(model),
        "requests_in_file": session.requests_in_file,
        "at_fixed": [
            {"fixed": sizes.fixed, "cap": sizes.cap, "mark": sizes.mark, "policies": found}
            for sizes, found in runs
        ],
    }


def _tell(sizes: Sizes, found: Mapping[str, PolicyFigures]) -> None:
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
            "" if each["state"] == "finished" else each["state"],
        )
        for name, each in found.items()
    ]
    table(columns, rows, right=columns[1:-1])


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _tokens(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
