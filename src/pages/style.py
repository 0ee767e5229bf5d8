"""The style that all pages share: colours for light and dark mode, text, tables, badges, print.

Each colour of text has a contrast of at least 4.5 to 1 with each background that it is used on (WCAG 2.2, AA).
"""

BASE = """\
:root {
  --paper: #fff; --ink: #1b1f24; --soft: #59636e; --line: #d8dee4; --panel: #f6f8fa; --link: #0550ae;
  --pass: #116329; --pass-soft: #dafbe1; --fail: #a40e26; --fail-soft: #ffebe9; --open: #7d4e00; --open-soft: #fff3cd;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0d1117; --ink: #e6edf3; --soft: #9ea7b3; --line: #30363d; --panel: #161b22; --link: #79b8ff;
    --pass: #7ee2a0; --pass-soft: #12361f; --fail: #ffa198; --fail-soft: #4a1218; --open: #f0c674; --open-soft: #3d2e08;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .1rem 0 .8rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .7rem; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .5rem; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
header { border-top: .4rem solid; padding-top: 1rem; }
.kind { margin: 0; font-size: .9rem; }
.verdict { font-size: 1.1rem; }
.badge { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; font-size: .8rem; font-weight: 650;
  letter-spacing: .02em; white-space: nowrap; border: 1px solid; }
.badge.pass { color: var(--pass); background: var(--pass-soft); }
.badge.fail { color: var(--fail); background: var(--fail-soft); }
.badge.open { color: var(--open); background: var(--open-soft); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .7rem 2rem;
  margin: 1.4rem 0 0; padding: 1rem 1.2rem; background: var(--panel); border: 1px solid var(--line);
  border-radius: .5rem; }
.facts dt { color: var(--soft); font-size: .8rem; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-size: .85rem; padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .6rem .8rem .6rem 0; border-bottom: 1px solid var(--line); }
thead th { font-size: .8rem; color: var(--soft); font-weight: 500; padding-bottom: .3rem; }
tbody th { font-weight: 600; }
th span { display: block; font-weight: 400; font-size: .875rem; }
td { overflow-wrap: anywhere; }
td ul { margin: .3rem 0 0; padding-left: 1.1rem; font-size: .9rem; }
td p { font-size: .875rem; color: var(--soft); }
details { border: 1px solid var(--line); border-left: .25rem solid var(--pass); border-radius: .35rem; margin: .4rem 0;
  padding: 0 .9rem; background: var(--panel); }
details[open] { padding-bottom: .7rem; }
summary { padding: .45rem 0; cursor: pointer; }
.scroll { overflow-x: auto; margin-top: .8rem; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .35rem; padding: .8rem 1rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: .875rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.kind, th span, caption { color: var(--soft); }
header.pass { border-color: var(--pass); }
header.fail { border-color: var(--fail); }
header.open { border-color: var(--open); }
@media (max-width: 42rem) {
  body { font-size: 15px; }
  h1 { font-size: 1.5rem; }
}
@media print {
  body { font-size: 11pt; }
  details, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
}
"""
