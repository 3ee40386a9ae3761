"""Style: how the page looks, in the light and in the dark, on a desk and in a hand."""

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1d2430; --soft: #5a6472;
  --line: #d9dee5; --card: #f5f7fa; --good: #2763ad; --bad: #b8651b; --third: #6b7280;
  --rule: #efe7fb; --known: #e3f1e6 }
@media (prefers-color-scheme: dark) { :root { --ground: #14181f; --text: #e3e7ed; --soft: #9aa4b2;
  --line: #343c48; --card: #1d232d; --good: #7cb1ec; --bad: #e6a35c; --third: #98a2b0;
  --rule: #35294b; --known: #1f3a29 } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground);
  max-width: 70rem; margin: 0 auto; padding: 1rem 1rem 4rem }
h1 { font-size: 1.6rem; margin: .6rem 0 .2rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line) }
p { margin: .4rem 0 } .soft { color: var(--soft) }
code, .mono { font-family: ui-monospace, monospace; font-size: .88em; overflow-wrap: anywhere }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .6rem;
  margin: 1rem 0 }
.card { background: var(--card); border-radius: .5rem; padding: .5rem .8rem }
.card strong { display: block; font-size: 1.45rem; font-variant-numeric: tabular-nums }
.card span { color: var(--soft); font-size: .85rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .4rem 0 }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere } dd.set { font-weight: 600 }
.wrap { overflow-x: auto } table { border-collapse: collapse; width: 100%;
  font-variant-numeric: tabular-nums }
th, td { padding: .25rem .55rem; text-align: right; vertical-align: top }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; min-width: 7rem }
th.text, td.text { text-align: left } td.text { overflow-wrap: anywhere }
thead th { border-bottom: 1px solid var(--line); vertical-align: bottom }
th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0;
  padding: 0; cursor: pointer; text-align: inherit }
th[aria-sort=ascending] button::after { content: " ↑" }
th[aria-sort=descending] button::after { content: " ↓" }
tbody tr:nth-child(odd) { background: var(--card) }
tfoot td { border-top: 1px solid var(--line); font-weight: 600 }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: .25rem .7rem;
  align-items: center; max-width: 44rem; font-variant-numeric: tabular-nums }
.bars .name { text-align: right } .bar { display: flex; height: 1.05rem; min-width: 1px }
.bar i { display: block; background: var(--good) } .bar i.bad { background: var(--bad) }
.key { display: inline-block; width: .8rem; height: .8rem; background: var(--good);
  vertical-align: -1px; margin: 0 .25rem 0 .8rem }
.key.bad { background: var(--bad) } .key.third { background: var(--third) }
.plot { position: relative; height: 15rem; margin: .8rem 1rem 2.4rem 2.6rem; max-width: 52rem;
  border-left: 1px solid var(--line); border-bottom: 1px solid var(--line) }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible }
.plot polyline { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke }
.plot .good { stroke: var(--good) } .plot .bad { stroke: var(--bad) }
.plot .third { stroke: var(--third); stroke-dasharray: 5 4 }
.plot line { stroke: var(--line); vector-effect: non-scaling-stroke }
.plot span { position: absolute; font-size: .8rem; color: var(--soft) }
.plot .x { top: 100%; transform: translate(-50%, .2rem) }
.plot .y { right: 100%; transform: translate(-.35rem, 50%) }
.tools { display: flex; flex-wrap: wrap; gap: .5rem; margin: .6rem 0 }
.tools input, .tools select, .more { font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: .35rem; padding: .25rem .5rem; max-width: 100% }
.tools input[type=search] { flex: 1 1 14rem; min-width: 0 }
.more { cursor: pointer; margin: .6rem 0 }
#list details { border-bottom: 1px solid var(--line); padding: .3rem 0 }
#list summary { cursor: pointer; overflow-wrap: anywhere }
.tag { background: var(--card); border-radius: .3rem; padding: 0 .4rem; font-size: .82rem;
  color: var(--soft); white-space: nowrap }
.tag.bad { color: var(--bad) } .inside { padding: .3rem 0 .6rem 1rem }
.tree, .tree ul { list-style: none; margin: 0; padding-left: 1.1rem;
  border-left: 1px solid var(--line) }
.tree { padding-left: 0; border: 0 } .tree li { margin: .25rem 0 }
.fact { background: var(--rule); border-radius: .3rem; padding: .05rem .4rem;
  overflow-wrap: anywhere }
.fact.known { background: var(--known) } .by { display: block; color: var(--soft);
  font-size: .88rem; overflow-wrap: anywhere }
.narrow { display: none; color: var(--soft) }
@media (max-width: 640px) { body { padding: .5rem .7rem 3rem } .narrow { display: block }
  table { font-size: .85rem } th, td { padding: .25rem .2rem }
  body:not(.all) .wide { display: none }
  th:first-child, td:first-child { min-width: 5rem }
  dl { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: .3rem }
  .inside { padding-left: .2rem } .plot { margin-right: 1.2rem } }
"""
