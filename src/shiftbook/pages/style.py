"""How a page looks: one style sheet, light and dark, from a telephone to a wide screen.

Colours are those of Okabe and Ito, which people with any sort of colour vision tell apart; a line is marked
by its dashes as well, so that a print in grey can be read.
"""

from __future__ import annotations

SERIES_MAX = 7
"""Colours, and so lines in one chart."""

DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 4", "1 4")

_LIGHT = ("#0072b2", "#d55e00", "#007a5a", "#b04a86", "#8a6d00", "#2f83b5", "#444444")
_DARK = ("#56b4e9", "#f28e4b", "#2fc79a", "#e39ac5", "#f0c24b", "#9ad0f5", "#cccccc")


def _colours(names: tuple[str, ...]) -> str:
    return " ".join(f"--s{number}:{colour};" for number, colour in enumerate(names))


STYLE = f"""
:root {{ color-scheme: light dark; --paper:#ffffff; --ink:#1b1b1f; --soft:#5b5f68; --rule:#d9dce1;
  --wash:#f4f5f7; {_colours(_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper:#16181c; --ink:#e8e9ec; --soft:#a3a8b2;
  --rule:#343840; --wash:#1f2228; {_colours(_DARK)} }} }}
* {{ box-sizing:border-box }}
html {{ -webkit-text-size-adjust:100% }}
body {{ margin:0; background:var(--paper); color:var(--ink);
  font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif }}
main {{ max-width:62rem; margin:0 auto; padding:1.5rem 1rem 4rem }}
h1 {{ font-size:1.7rem; line-height:1.25; margin:.5rem 0 1rem }}
h2 {{ font-size:1.2rem; margin:2.4rem 0 .6rem; padding-top:.8rem; border-top:1px solid var(--rule) }}
p,li {{ max-width:44rem; overflow-wrap:anywhere }}
ul {{ padding-left:1.2rem }}
code {{ font:.88em/1.5 ui-monospace,Menlo,Consolas,monospace; overflow-wrap:anywhere }}
dl {{ display:grid; grid-template-columns:max-content 1fr; gap:.2rem 1rem; font-size:.92rem }}
dt {{ color:var(--soft) }} dd {{ margin:0; overflow-wrap:anywhere }}
.wide {{ overflow-x:auto; margin:.8rem 0 1.4rem }}
table {{ border-collapse:collapse; font-size:.9rem; font-variant-numeric:tabular-nums }}
caption {{ text-align:left; color:var(--soft); padding-bottom:.4rem }}
th,td {{ padding:.3rem .8rem .3rem 0; text-align:left; vertical-align:top;
  border-bottom:1px solid var(--rule) }}
thead th {{ color:var(--soft); font-weight:600; white-space:nowrap }}
.right {{ text-align:right; white-space:nowrap }}
.none {{ color:var(--soft); font-style:italic }}
figure {{ margin:1rem 0 1.6rem }}
figcaption {{ font-weight:600; margin-bottom:.5rem }}
.axis {{ color:var(--soft); font-size:.8rem }}
.plot {{ position:relative; margin:.5rem .6rem 1.4rem 3.9rem; height:15rem }}
.plot svg {{ position:absolute; inset:0; width:100%; height:100%; overflow:visible }}
.plot .y,.plot .x,.plot .m {{ position:absolute; color:var(--soft); font-size:.75rem; line-height:1;
  white-space:nowrap }}
.plot .y {{ right:100%; margin-right:.4rem; transform:translateY(50%) }}
.plot .x {{ top:100%; margin-top:.4rem; transform:translateX(-50%) }}
.plot .x.last {{ transform:translateX(-100%) }}
.plot .m {{ transform:translateY(-110%); right:0; background:var(--paper) }}
.grid {{ stroke:var(--rule); stroke-width:1; vector-effect:non-scaling-stroke }}
.level {{ stroke:var(--soft); stroke-width:1; stroke-dasharray:3 3; vector-effect:non-scaling-stroke }}
.moment {{ stroke:var(--soft); stroke-width:1; opacity:.45; vector-effect:non-scaling-stroke }}
.line {{ fill:none; stroke-width:2; stroke-linejoin:round; vector-effect:non-scaling-stroke }}
.dot {{ stroke-width:5; stroke-linecap:round; fill:none; vector-effect:non-scaling-stroke }}
.key {{ display:flex; flex-wrap:wrap; gap:.2rem 1.1rem; font-size:.85rem; list-style:none; padding:0;
  margin:.2rem 0 .6rem }}
.key svg {{ width:1.9rem; height:.6rem; margin-right:.4rem; overflow:visible }}
.bars {{ display:grid; grid-template-columns:minmax(4rem,max-content) 1fr max-content; gap:.25rem .7rem;
  align-items:center; font-size:.88rem }}
.bars svg {{ display:block; width:100%; height:1rem }}
.bars .label {{ overflow-wrap:anywhere; max-width:13rem }}
.bars .value {{ text-align:right; font-variant-numeric:tabular-nums }}
.bars .track {{ background:var(--wash) }}
.bars .group {{ grid-column:1/-1; color:var(--soft); margin-top:.5rem }}
.reach {{ stroke:var(--ink); stroke-width:1.5; vector-effect:non-scaling-stroke }}
@media (max-width:36rem) {{ body {{ font-size:15px }} .plot {{ margin-left:3.2rem; height:12rem }}
  dl {{ grid-template-columns:1fr }} dd {{ margin-bottom:.4rem }}
  .bars {{ grid-template-columns:1fr max-content }} .bars .label {{ grid-column:1/-1; max-width:none }} }}
@media print {{ main {{ max-width:none }} h2,figure,tr {{ break-inside:avoid }} }}
"""
