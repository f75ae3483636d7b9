"""Growing a prompt by a recipe: render, measure, digest, and only then, once it is committed, adopt.

A growth is a value of its own, so that a commit that is refused leaves the prompt as it was. Growing costs
what is added, whatever the prompt holds. Refused: editing anything that stands in the prompt already.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from shiftbook.entries import MODEL_VISIBLE, Entry, Pick, Recipe
from shiftbook.messages import Block, Media, Result
from shiftbook.prompt.brief import APART
from shiftbook.prompt.digest import block_digest, chain, start
from shiftbook.prompt.epoch import EpochPrompt, Growth, Made, Rebuild
from shiftbook.prompt.measure import Gauge
from shiftbook.prompt.render import RENDERER, renderer

MERGED_FORMS = frozenset({"whole", "kept"})
"""Forms in which a range says no more and no less than its entries one by one."""


def first_prompt(declaration: str, gauge: Gauge) -> EpochPrompt:
    """The empty prompt of a run's first epoch."""
    fixed = gauge.fixed
    return EpochPrompt(
        epoch=1,
        fixed=fixed,
        digest=start(declaration, RENDERER),
        tokens=fixed,
        declaration=declaration,
        renderer=RENDERER,
        meter=gauge.meter_in_use,
    )


def grow(
    prompt: EpochPrompt,
    picks: Recipe,
    entries: Iterable[Entry],
    gauge: Gauge | None,
    made: Made | None = None,
) -> Growth:
    """What these picks of these entries add to the prompt; without a gauge nothing is measured.

    `made` are their blocks and sizes where they have been rendered and measured already.
    """
    known = _visible(entries)
    if made is not None:
        blocks, sizes = [block for block, _ in made], tuple([size for _, size in made])
    else:
        blocks = rendered(picks, known, prompt.renderer)
        sizes = () if gauge is None else tuple([gauge.measure(block) for block in blocks])
    return Growth(
        blocks=tuple(blocks),
        sizes=sizes,
        picks=picks,
        shown=_shown(picks, known),
        digest=digested(prompt.digest, blocks),
        tokens=prompt.tokens + sum(sizes),
        declaration=prompt.declaration,
        renderer=prompt.renderer,
        fixed=prompt.fixed,
        meter=prompt.meter,
        seen=tuple(sorted([position for position in known if position > prompt.upto])),
    )


def new_epoch(
    prompt: EpochPrompt,
    choice: Rebuild,
    number: int,
    declaration: str,
    entries: Iterable[Entry],
    gauge: Gauge | None,
) -> Growth:
    """What a rebuild makes in place of the prompt, from what it shows and from `entries`."""
    known = {**prompt.shown, **_visible(entries)}
    recipe = (*choice.head, *choice.picks)
    return opened(recipe, known, number, declaration, gauge)


def opened(
    recipe: Recipe,
    known: Mapping[int, Entry],
    number: int,
    declaration: str,
    gauge: Gauge | None,
    version: int = RENDERER,
) -> Growth:
    """An epoch's prompt from nothing but its recipe and the entries that this names."""
    blocks = rendered(recipe, known, version)
    sizes = () if gauge is None else tuple(gauge.measure(block) for block in blocks)
    fixed = 0 if gauge is None else gauge.fixed
    return Growth(
        blocks=tuple(blocks),
        sizes=sizes,
        picks=recipe,
        shown=_shown(recipe, known),
        digest=digested(start(declaration, version), blocks),
        tokens=fixed + sum(sizes),
        fresh_epoch=number,
        declaration=declaration,
        renderer=version,
        fixed=fixed,
        meter="" if gauge is None else gauge.meter_in_use,
        seen=(max((*known, *(pick.last for pick in recipe)), default=0),),
    )


def adopt(prompt: EpochPrompt, growth: Growth) -> None:
    """Take a growth into the prompt: its commit went through."""
    if growth.fresh_epoch is not None:
        prompt.epoch, prompt.picks = growth.fresh_epoch, list(growth.picks)
        prompt.blocks, prompt.sizes, prompt.shown, prompt.media = [], [], {}, set()
    else:
        order = [prompt.upto, *growth.seen]
        prompt.picks[-1:] = merged([*prompt.picks[-1:], *growth.picks], order)
    prompt.last_end = len(prompt.blocks)
    prompt.blocks.extend(growth.blocks)
    prompt.media.update(media_of(growth.blocks))
    if prompt.last_end == 0:
        prompt.first_end = len(prompt.blocks)
    prompt.sizes.extend(growth.sizes)
    prompt.shown.update((entry.position, entry) for entry in growth.shown)
    prompt.digest, prompt.tokens, prompt.fixed = growth.digest, growth.tokens, growth.fixed
    prompt.declaration, prompt.renderer = growth.declaration, growth.renderer
    prompt.meter = growth.meter
    prompt.upto = max((prompt.upto, *growth.seen))


def media_of(blocks: Iterable[Block]) -> Iterator[str]:
    """The blobs of the images and files in these blocks."""
    for block in blocks:
        for part in block.parts:
            for each in part.content if type(part) is Result else (part,):
                if type(each) is Media:
                    yield each.blob


def merged(picks: Sequence[Pick], order: Sequence[int]) -> list[Pick]:
    """The same recipe in fewer picks: neighbours of one form become one range.

    `order` holds the positions of the model-visible entries in question, rising; two picks are neighbours
    when nothing visible lies between them. What renders differently as a range is left alone.
    """
    after = dict(pairwise(order))
    result: list[Pick] = []
    for pick in picks:
        last = result[-1] if result else None
        if (
            last is not None
            and last.form == pick.form
            and last.form in MERGED_FORMS
            and after.get(last.last) == pick.first
        ):
            result[-1] = Pick(last.first, pick.last, pick.form)
        else:
            result.append(pick)
    return result


def rendered(recipe: Recipe, known: Mapping[int, Entry], version: int) -> list[Block]:
    """The blocks of a recipe by the renderer of that version."""
    render = renderer(version)
    return [block for pick in recipe for block in render(pick, known)]


def digested(digest: str, blocks: Iterable[Block]) -> str:
    """The chain over these blocks, from `digest` on."""
    for block in blocks:
        digest = chain(digest, block_digest(block))
    return digest


def _visible(entries: Iterable[Entry]) -> dict[int, Entry]:
    return {entry.position: entry for entry in entries if type(entry.what) in MODEL_VISIBLE}


def _shown(recipe: Recipe, known: Mapping[int, Entry]) -> tuple[Entry, ...]:
    return tuple(
        [
            known[position]
            for pick in recipe
            if pick.form not in APART
            for position in range(pick.first, pick.last + 1)
            if position in known
        ]
    )
