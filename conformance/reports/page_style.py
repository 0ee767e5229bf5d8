"""The style of the page: what it has besides the style that all pages share."""

from ...pages import BASE

_OWN = """\
.number, .evidence, .asks { color: var(--soft); }
.guarantees tbody th { width: 34%; }
.calibration tbody th { width: 50%; }
details.fail { border-left-color: var(--fail); }
details.open { border-left-color: var(--open); }
summary .name { font-weight: 600; margin: 0 .4rem; overflow-wrap: anywhere; }
.number { font-size: .85rem; overflow-wrap: anywhere; }
.asks, .evidence { font-size: .925rem; }
ul.evidence { margin: .1rem 0 .5rem; padding-left: 1.2rem; overflow-wrap: anywhere; }
.message { font-weight: 550; }
details.fail .message { color: var(--fail); }
details.open .message { color: var(--open); }
.timeline { font: .82rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.timeline caption { font-family: system-ui, sans-serif; }
.timeline td, .timeline th { border: 1px solid var(--line); padding: .3rem .6rem; background: var(--paper); }
.timeline td.when { white-space: nowrap; width: 1%; text-align: right; }
.timeline td.idle { background: none; border-top: 0; border-bottom: 0; }
.meanings > div { display: grid; grid-template-columns: 11rem 1fr; gap: .3rem 1rem; margin: .5rem 0; }
.meanings dd { margin: 0; }
.paths { font-size: .9rem; overflow-wrap: anywhere; }
@media (max-width: 42rem) {
  .timeline { min-width: 36rem; }
  .guarantees thead, .calibration thead { position: absolute; clip-path: inset(50%); }
  .guarantees tr, .calibration tr { display: block; padding: .7rem 0; border-bottom: 1px solid var(--line); }
  .guarantees th, .guarantees td, .calibration th, .calibration td { display: block; width: auto !important; border: 0;
    padding: .15rem 0; }
  .meanings > div { grid-template-columns: 1fr; }
}
"""
STYLE = BASE + _OWN
