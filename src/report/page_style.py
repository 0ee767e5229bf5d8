"""The style of the page: what it has besides the style that all pages share."""

from ..pages import BASE

_OWN = """\
:root { --s1: #2f6fd0; --s2: #0f8a7e; --s3: #1f8a3d; --s4: #c77700; --late: #cf3346; --grid: #e6eaee;
  --note: #0a4c94; --note-soft: #ddeeff; }
@media (prefers-color-scheme: dark) {
  :root { --s1: #5b9cf5; --s2: #3fbfb0; --s3: #57c878; --s4: #e6a23c; --late: #f4717f; --grid: #232a33;
    --note: #9ecbff; --note-soft: #10294a; }
}
.s1 { --colour: var(--s1); } .s2 { --colour: var(--s2); } .s3 { --colour: var(--s3); } .s4 { --colour: var(--s4); }
.late { --colour: var(--late); }
main { max-width: 72rem; }
section { scroll-margin-top: 3.5rem; }
h2 { padding-top: 1.4rem; border-top: 1px solid var(--line); }
#advice h2 { border-top: 0; margin-top: 1rem; }
.badge.note { color: var(--note); background: var(--note-soft); }
.where { color: var(--soft); }
.summary { max-width: 52rem; margin-bottom: 1rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
nav { position: sticky; top: 0; z-index: 1; background: var(--paper); border-bottom: 1px solid var(--line);
  margin: 1.6rem -1.25rem 0; padding: 0 1.25rem; overflow-x: auto; }
nav ul { display: flex; gap: 1.25rem; list-style: none; margin: 0; padding: 0; }
nav a { display: block; padding: .65rem 0; white-space: nowrap; text-decoration: none; font-size: .9rem;
  color: var(--soft); }
nav a:hover { color: var(--link); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(14.5rem, 1fr)); gap: .75rem; margin: 1.2rem 0; }
.tiles > div { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; }
.tiles dt { color: var(--soft); font-size: .8rem; }
.tiles dd { margin: 0; font-size: 1.35rem; font-weight: 650; line-height: 1.3; overflow-wrap: anywhere; }
.tiles dd span { display: block; color: var(--soft); font-size: .8rem; font-weight: 400; }
header .tiles { grid-template-columns: repeat(4, 1fr); }
header .tiles dd { font-size: 1.7rem; }
.advice { list-style: none; margin: 0; padding: 0; display: grid; gap: .9rem; }
.advice li { border: 1px solid var(--line); border-left: .25rem solid var(--note); border-radius: .5rem;
  padding: .9rem 1.1rem; min-width: 0; }
.advice li.fail { border-left-color: var(--fail); }
.advice li.open { border-left-color: var(--open); }
.advice h3 { margin: 0 0 .4rem; display: flex; flex-wrap: wrap; gap: .3rem .6rem; align-items: center;
  overflow-wrap: anywhere; }
.advice pre { margin: .7rem 0; padding: .6rem .9rem; max-height: 14rem; overflow: auto; }
.gain strong { color: var(--pass); }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: .75rem; }
figure { margin: 0; }
.panel { border: 1px solid var(--line); border-radius: .5rem; padding: .8rem 1rem .6rem; min-width: 0; }
figcaption { display: flex; justify-content: space-between; align-items: baseline; gap: .6rem; }
figcaption span { font-size: 1.15rem; font-weight: 650; }
.axis { color: var(--soft); font-size: .78rem; margin: .2rem 0; }
.axis.ends { display: flex; justify-content: space-between; gap: 1rem; }
.plot { display: block; width: 100%; overflow: visible; border-radius: .2rem; }
.plot.line { height: 8.5rem; }
.plot path { vector-effect: non-scaling-stroke; fill: none; }
.plot .grid { stroke: var(--grid); stroke-width: 1; }
.plot .stroke { stroke: var(--colour); stroke-width: 2; stroke-linejoin: round; }
.plot .area { fill: var(--colour); opacity: .14; }
.plot .hit { fill: transparent; }
.plot .point { stroke: var(--colour); stroke-width: 9; stroke-linecap: round; opacity: 0; }
.plot .dot { stroke: var(--colour); stroke-linecap: round; opacity: .8; }
.plot .mark:hover .point, .plot .mark.on .point { opacity: 1; }
.plot.lanes .mark:hover .dot, .plot.lanes .mark.on .dot { stroke: var(--ink); opacity: 1; }
.readout { min-height: 1.3em; margin: .2rem 0 0; font-size: .82rem; line-height: 1.3; color: var(--ink); }
.panel .axis.ends { margin-top: 0; }
.timeline { display: grid; grid-template-columns: fit-content(11rem) minmax(0, 1fr); gap: 1rem; }
.lane-names { list-style: none; margin: 0; padding: 0; font-size: .82rem; text-align: right; }
.lane-names li { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; margin: .6rem 0 1rem; padding: 0;
  font-size: .82rem; color: var(--soft); }
.key { display: inline-block !important; width: .7rem; height: .7rem; border-radius: .15rem; margin-right: .45rem;
  background: var(--colour); }
svg.bar { display: block; width: 100%; height: .8rem; margin-top: .3rem; border-radius: .15rem; }
.bar .track { fill: var(--grid); }
.bar rect { fill: var(--colour); }
.stack svg.bar { height: 1.6rem; }
.scroll { margin: .4rem 0 1rem; }
th, td { padding: .45rem .9rem .45rem 0; font-size: .9rem; }
thead th { white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.number + :not(.number) { padding-left: 1rem; }
th:last-child, td:last-child { padding-right: 0; }
tbody th { overflow-wrap: anywhere; font-weight: 550; }
.bars td.bar { width: 38%; min-width: 7rem; }
.bars tbody th { width: 24%; }
th .key { font-size: inherit; }
th .badge { display: inline-block; font-size: .8rem; font-weight: 650; }
th .badge span { display: inline; font-size: inherit; font-weight: inherit; }
details { border-left: 1px solid var(--line); }
summary { color: var(--link); font-size: .9rem; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .85rem; }
@media (max-width: 42rem) {
  nav { margin: 1.2rem -1.25rem 0; }
  .tiles, header .tiles { grid-template-columns: 1fr 1fr; }
  header .tiles dd { font-size: 1.4rem; }
  .timeline { grid-template-columns: 6rem minmax(0, 1fr); gap: .5rem; }
  .lane-names { font-size: .68rem; }
  .stacked thead, .bars thead { position: absolute; clip-path: inset(50%); }
  .stacked tr, .bars tr { display: flex; flex-wrap: wrap; gap: .1rem 1rem; padding: .5rem 0;
    border-bottom: 1px solid var(--line); }
  .stacked th, .stacked td, .bars th, .bars td { border: 0; padding: 0 !important; text-align: left; width: auto; }
  .stacked tbody th, .bars tbody th, .bars td.bar { flex: 1 0 100%; width: 100%; }
  .stacked td:not(.bar)::before, .bars td:not(.bar)::before { content: attr(data-name) " "; color: var(--soft); }
  .stacked td:empty { display: none; }
}
@media print {
  nav, .readout { display: none; }
  main { max-width: none; padding: 0; }
  .advice li, .panel, .tiles > div, figure { break-inside: avoid; }
  h2, caption { break-after: avoid; }
  .advice pre { max-height: none; }
  .panels { grid-template-columns: repeat(3, 1fr); }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
STYLE = BASE + _OWN
