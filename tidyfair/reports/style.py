"""The style of report pages: one column of text, pictures as wide as it, tables wider if need be, screens and paper."""

from __future__ import annotations

from tidyfair.reports.theme import DARK, FONT, LIGHT, variables

STYLE = f"""
:root {{ color-scheme: light dark; {variables(LIGHT)} --wash: #f6f7f9;
  --shade: rgb(0 0 0 / 0.2); }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} --wash: #1c2025;
  --shade: rgb(255 255 255 / 0.22); }} }}
""" + """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--background); color: var(--ink); font: 1rem/1.55 FONT;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
main { max-width: 59rem; margin: 0 auto; padding: 3.5rem 1.5rem 5rem; }
h1 { font-size: 2.25rem; line-height: 1.15; letter-spacing: -0.02em; margin: 0 0 1.75rem; text-wrap: balance; }
h2 { font-size: 1.4rem; line-height: 1.25; letter-spacing: -0.01em; margin: 0 0 0.5rem; }
h3 { font-size: 1.05rem; margin: 2.25rem 0 0.25rem; }
p { margin: 0.5rem 0 1rem; }
section { margin-top: 4rem; padding-top: 1.5rem; border-top: 1px solid var(--rule); }
section p, li { max-width: 44rem; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 0.2em; }
code { font: 0.8125em ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; color: var(--muted); }
.finding { font-size: 1.0625rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: 1rem 2rem;
  margin: 0 0 2.5rem; padding: 1.1rem 0; border: solid var(--rule); border-width: 1px 0; }
.facts div { min-width: 0; }
.facts dt { color: var(--muted); font-size: 0.8125rem; }
.facts dd { margin: 0; }
.opening h2 { margin-top: 2.5rem; }
.mark { width: 0.8em; height: 0.8em; margin-right: 0.15em; fill: currentColor; vertical-align: -0.03em; }
.good { --tone: var(--good); }
.bad { --tone: var(--bad); }
.open { --tone: var(--open); }
.mark, .verdict, .headline { color: var(--tone); }
.headline { font-size: 1.4rem; line-height: 1.3; font-weight: 650; letter-spacing: -0.01em; margin: 0 0 0.75rem; }
.verdicts ul, .findings { list-style: none; margin: 0; padding: 0; }
.verdicts li { display: grid; grid-template-columns: 13.5rem 1fr; gap: 0 1.5rem; max-width: none; padding: 0.7rem 0;
  border-top: 1px solid var(--rule); }
.verdict { font-weight: 600; font-size: 0.9375rem; }
.findings li { max-width: none; padding: 0.6rem 0 0.6rem 1.25rem; border-left: 3px solid var(--rule); margin: 0.6rem 0;
  font-size: 1.125rem; line-height: 1.5; }
.findings .differ { border-left-color: var(--accent); }
.findings .open { border-left-style: dashed; border-left-color: var(--muted); }
.findings .remark { font-size: 0.9375rem; padding: 0.15rem 0 0.15rem 1.25rem; margin: 0.3rem 0; border: 0; }
.contents { margin-top: 3rem; }
.contents ol { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: 0.35rem 1.5rem; font-size: 0.9375rem; }
figure { margin: 1.75rem 0; }
figure svg { display: block; width: 100%; height: auto; }
.narrow { display: none; }
.table { position: relative; left: 50%; transform: translateX(-50%); transform: translateX(round(-50%, 1px));
  width: min-content; min-width: 100%; max-width: calc(100vw - 3rem); margin: 1.5rem 0; overflow-x: auto; background:
  linear-gradient(to right, var(--background) 40%, transparent) left / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--background) 40%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / 1.25rem 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) right / 1.25rem 100% no-repeat scroll; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; line-height: 1.4; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.35rem; }
th, td { padding: 0.5rem 0.65rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule);
  overflow-wrap: break-word; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
thead th { vertical-align: bottom; font-weight: 600; border-bottom: 1px solid var(--muted); }
thead code, tbody th code { display: block; font-weight: 400; overflow-wrap: normal; }
.long { overflow-wrap: anywhere; min-width: 6rem; }
tbody th { font-weight: 500; }
.number { text-align: right; white-space: nowrap; }
thead .number { white-space: normal; }
td small { display: block; font-size: 0.8125em; color: var(--muted); white-space: nowrap; }
.worse { color: var(--bad); font-weight: 600; }
.worse small { font-weight: 400; }
sup { font-size: 0.7em; line-height: 0; font-weight: 400; }
.note { font-size: 0.8125rem; color: var(--muted); }
details { margin: 1.25rem 0; border-top: 1px solid var(--rule); border-bottom: 1px solid var(--rule); }
details + details { margin-top: calc(-1.25rem - 1px); }
summary { cursor: pointer; padding: 0.6rem 0; color: var(--accent); }
pre { overflow-x: auto; background: var(--wash); padding: 1rem 1.25rem; line-height: 1.5; white-space: pre-wrap; }
pre code { color: inherit; }
@media screen and (max-width: 44rem) {
  .table { position: static; transform: none; width: auto; background: none; }
  main { padding: 1.75rem 1.25rem 3rem; }
  h1 { font-size: 1.75rem; }
  .wide { display: none; }
  .narrow { display: block; }
  .facts { grid-template-columns: 1fr 1fr; gap: 0.75rem 1.25rem; }
  .verdicts li { grid-template-columns: 1fr; }
  section { margin-top: 2.75rem; }
  .findings li { font-size: 1.0625rem; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, caption, tbody, tr, tbody th, td { display: block; width: 100%; }
  tr { padding: 0.7rem 0; border-bottom: 1px solid var(--rule); }
  tbody th { padding: 0 0 0.25rem; border: 0; font-size: 0.9375rem; font-weight: 600; }
  td { display: flex; justify-content: space-between; gap: 1.25rem; padding: 0.15rem 0; border: 0; text-align: right; }
  td::before { content: attr(data-label); color: var(--muted); text-align: left; flex: 0 1 45%; }
  td small { white-space: normal; }
  td.prose { display: block; text-align: left; }
  td.prose::before { display: block; }
}
@media print {
  @page { size: A4; margin: 16mm 15mm 18mm; }
  :root { font-size: 9.5pt; }
  main { max-width: none; padding: 0; }
  h2, h3, summary, .finding, .headline, caption { break-after: avoid; }
  section { margin-top: 1.5rem; padding-top: 0.75rem; }
  figure, tr, .verdicts li, .findings li { break-inside: avoid; }
  figure svg { max-height: 235mm; }
  thead { display: table-header-group; }
  .table { position: static; transform: none; width: auto; max-width: none; overflow: visible; background: none; }
  table { font-size: 7.5pt; }
  th, td { padding: 3pt 4pt; }
  .short, p, pre, dl, .headline { break-inside: avoid; }
  .contents { display: none; }
  details { border: 0; }
  details::details-content { content-visibility: visible; display: block; height: auto; opacity: 1; }
  summary { list-style: none; color: var(--ink); font-weight: 600; }
  summary::marker, summary::-webkit-details-marker { display: none; content: ""; }
  a { color: inherit; text-decoration: none; }
}
""".replace("FONT", FONT)
"""The style of a page; print is always light."""
