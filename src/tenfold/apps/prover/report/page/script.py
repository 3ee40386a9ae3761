"""Script: what makes the page's tables sort, and its queries open."""

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const make = (tag, text, kind) => { const one = document.createElement(tag);
  if (text !== undefined) one.textContent = text; if (kind) one.className = kind; return one; };

// Tables: a head is a button that sorts; figures from the greatest down, names from the first up.
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => head.firstChild.addEventListener("click", () => {
    const was = head.getAttribute("aria-sort");
    const down = was ? was === "ascending" : !head.classList.contains("text");
    heads.forEach(one => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = row => row.cells[at].dataset.v ?? row.cells[at].textContent;
    const order = (a, b) => head.classList.contains("text") ? a.localeCompare(b) : a - b;
    const rows = [...table.tBodies[0].rows].sort((a, b) =>
      (down ? -1 : 1) * order(value(a), value(b)));
    table.tBodies[0].append(...rows);
  }));
}
document.getElementById("columns")?.addEventListener("change", event =>
  document.body.classList.toggle("all", event.target.checked));

// Queries: a list that is filtered and sorted here; what one holds is made when it is opened.
const list = document.getElementById("list"), count = document.getElementById("count");
const more = document.getElementById("more"), STEP = 50;
const field = id => document.getElementById(id);
let shown = [], until = 0;
const orders = { asked: () => 0, worst: (a, b) => b.realistic - a.realistic,
  best: (a, b) => a.realistic - b.realistic,
  height: (a, b) => (b.height ?? -1) - (a.height ?? -1) };

function filter() {
  const text = field("ask").value.toLowerCase(), mode = field("mode").value;
  const kind = field("kind").value;
  shown = data.queries.filter(q => (!text || q.fact.toLowerCase().includes(text)) &&
    (!mode || q.mode === mode) && (!kind || (kind === "beaten" ? q.better > 0 :
      (kind === "proved") === (q.height !== null))));
  shown.sort(orders[field("order").value]);
  list.replaceChildren(); until = 0; extend();
}
function extend() {
  list.append(...shown.slice(until, until + STEP).map(entry));
  until = Math.min(until + STEP, shown.length);
  count.textContent = `${until} of ${shown.length} shown`;
  more.hidden = until >= shown.length;
}
function entry(q) {
  const one = make("details"), head = make("summary", q.fact + " ");
  head.append(make("span", q.mode, "tag"), " ", make("span", `rank ${q.realistic}`, "tag"), " ",
    make("span", q.height === null ? q.outcome.toLowerCase().replace("_", " ") :
      `height ${q.height}`, q.height === null ? "tag bad" : "tag"));
  one.append(head);
  one.addEventListener("toggle", () => { if (one.open && one.children.length === 1)
    one.append(inside(q)); });
  return one;
}
function inside(q) {
  const box = make("div", undefined, "inside");
  box.append(make("p", `Rank ${q.optimistic} (optimistic), ${q.realistic} (realistic), ` +
    `${q.pessimistic} (pessimistic) among ${q.candidates} candidates: ${q.better} better, ` +
    `${q.ties} as good.` + (q.weight === null ? "" : ` Weight ${q.weight}.`)));
  if (q.above.length) box.append(make("p", "Better: " + q.above.join(", ") +
    (q.better > q.above.length ? ` and ${q.better - q.above.length} more` : "") + "."));
  if (q.rules.length) { box.append(make("p", q.rules_count === 1 ? "Proved by the rule" :
      `Proved by ${q.rules_count} rules` + (q.rules_count > q.rules.length ? ", among them" : "")));
    const rules = make("ul"); for (const r of q.rules) rules.append(make("li", data.rules[r]));
    box.append(rules); }
  if (q.proof === null) { if (q.height !== null) box.append(make("p", data.without)); return box; }
  const proof = data.proofs[q.proof];
  box.append(make("p", data.closure ? "Its lowest proof:" : "The way that the search found:"));
  box.append(data.closure ? tree(proof) : way(proof));
  return box;
}
function tree(steps) {
  const top = make("ul", undefined, "tree"), drawn = new Set(), left = [[0, top]];
  while (left.length) {
    const [at, into] = left.pop(), [fact, rule, body] = steps[at], item = make("li");
    item.append(make("span", fact, rule < 0 ? "fact known" : "fact"));
    into.append(item);
    if (rule < 0) { item.append(" ", make("span", "known", "tag")); continue; }
    if (drawn.has(at) && body.length) {
      item.append(" ", make("span", "as above", "tag")); continue; }
    drawn.add(at);
    item.append(make("span", "by " + data.rules[rule], "by"));
    if (!body.length) continue;
    const below = make("ul"); item.append(below);
    for (const next of body.toReversed()) left.push([next, below]);
  }
  return top;
}
function way(steps) {
  const top = make("ul", undefined, "tree");
  for (const [goals, by] of steps) { const item = make("li");
    item.append(make("span", goals, by ? "fact" : "fact known"));
    if (by) item.append(make("span", by, "by")); top.append(item); }
  return top;
}
for (const id of ["ask", "mode", "kind", "order"]) field(id).addEventListener("input", filter);
more.addEventListener("click", extend);
filter();
"""
