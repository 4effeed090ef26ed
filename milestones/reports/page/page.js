// What is looked at stands in the address, so that it can be shared: g a graph, n a milestone, c a conversation, and
// what the list is filtered by.

const data = embedded("data");
let graphNumber = 0;
let selected = null;
let open = null;

function address() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

// The address with these changes; what is null or as it is at first is left out.
function hashOf(changes) {
  const kept = Object.entries({ ...address(), ...changes }).filter(([name, value]) => (value ?? LINKED[name]) !== LINKED[name]);
  return new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
}

function go(changes) {
  const parts = { ...changes };
  if (changes.n && data.graphs.length > 1) parts.g = data.graphs[graphNumber].name;
  if (changes.c !== undefined && changes.c !== null && data.conversations[changes.c].graph !== graphNumber) {
    parts.g = parts.n = null;
  }
  location.hash = hashOf(parts);
  read(); // at once: the event comes later, and then changes nothing
}

function numberIn(text, count) {
  return /^\d+$/.test(text || "") && Number(text) < count ? Number(text) : null;
}

function read() {
  const parts = address();
  const before = { graphNumber, open, selected };
  open = numberIn(parts.c, data.conversations.length);
  const linked = Object.keys(LINKED).filter((name) => filter[name] !== (parts[name] ?? LINKED[name]));
  if (linked.length) {
    Object.assign(filter, { page: 0 }, ...linked.map((name) => ({ [name]: parts[name] ?? LINKED[name] })));
    drawList();
  }
  const named = data.graphs.findIndex((graph) => graph.name === parts.g);
  if (named >= 0) graphNumber = named;
  else if (open !== null) graphNumber = data.conversations[open].graph;
  if (graphNumber !== before.graphNumber || drawing.graph === null) showGraph();
  const graph = data.graphs[graphNumber];
  const milestone = graph ? graph.milestones.findIndex((one) => one.name === parts.n) : -1;
  selected = milestone < 0 ? null : milestone;
  if (graph) {
    markGraph(graph, selected, open === null ? null : data.conversations[open]);
    drawInspector(graph);
    if (selected !== null && selected !== before.selected) bringIntoView(selected);
  }
  if (open !== before.open) {
    drawReader(open);
    markOpenRow();
    if (open !== null) showReader(before.open !== null && data.conversations[open].sameCase.includes(before.open));
    else byId("rows").querySelector(`[data-index="${before.open}"]`)?.focus({ preventScroll: true });
  }
}

function showReader(isSameCase) {
  const reader = byId("reader");
  if (!isSameCase) reader.scrollTop = 0;
  reader.scrollIntoView({ block: "nearest" });
  reader.focus({ preventScroll: true });
}

function showGraph() {
  const graph = data.graphs[graphNumber];
  if (!graph) return;
  byId("graph-select").value = String(graphNumber);
  drawGraph(graph);
}

function peopleOf(label, what, milestone, hint) {
  const all = whoIsAt(graphNumber, what, milestone);
  if (!all.length && what !== "reached") return null;
  const shown = all.slice(0, 12);
  return el("section", { "data-who": what }, el("h3", {}, label, " ", el("span", { class: "quiet" }, number(all.length))),
    hint ? el("p", { class: "quiet" }, hint) : null,
    el("ul", { class: "people" }, shown.map((index) => el("li", {}, button({ class: "link", "data-index": index, onclick: () => go({ c: index }) },
      words(data.conversations[index].id || `conversation ${index + 1}`))))),
    all.length ? button({ class: "plain", onclick: () => {
      showOnly({ at: [what, milestone], graph: graphNumber });
    } }, all.length > shown.length ? `List all ${number(all.length)}` : "Show in the list") : null);
}

function drawInspector(graph) {
  byId("inspector").replaceChildren(...(selected === null ? overview(graph) : milestoneDetails(graph)).filter(Boolean));
}

function overview(graph) {
  return [
    el("h2", {}, words(graph.name || "Milestones")),
    el("p", { class: "quiet" }, `${number(graph.completed)} of ${counted(graph.conversations, "conversation", "conversations")} completed the goal`),
    graph.file ? el("p", { class: "quiet facts" }, words(graph.file)) : null,
    graph.reviewed === false ? el("p", { class: "tag warn" }, "generated, not reviewed") : null,
    el("p", { class: "quiet" }, "Choose a milestone to see who reached it and who stopped there."),
  ];
}

function milestoneDetails(graph) {
  const one = graph.milestones[selected];
  const kind = { join: "join", end: "end of the graph", call: "tool call", state: "state" }[shapeOf(one)];
  const others = (label, from, to) => nameList(label, graph.edges.filter((edge) => edge.ends[from] === selected).map((edge) => graph.milestones[edge.ends[to]].name));
  const isEnd = one.name === "End";
  return [
    el("div", { class: "bar" }, el("h2", {}, words(one.name)), button({ class: "plain", onclick: () => go({ n: null }) }, "Close")),
    el("p", { class: "quiet" }, one.name === "Start" ? "start of the graph" : kind, one.weight === 1 ? "" : ` · weight ${one.weight}`),
    one.description ? prose(one.description, "said") : null,
    el("p", {}, el("b", {}, `${percent(graph.conversations ? one.reached / graph.conversations : null)}`), ` reached it: ${reachedText(one, graph.conversations)}`),
    meter(graph.conversations ? one.reached / graph.conversations : null),
    others(one.requires === "all" && one.dependencies.length > 1 ? "After all of" : "After", 1, 0), others("Before", 0, 1),
    peopleOf(isEnd ? "Reached the end without success" : "Stopped here", "stopped", one.name,
      isEnd ? "The goal does not count as completed if something forbidden happened, or if the world says that it was no success." : null),
    peopleOf("Possibly reached it", "possibly", one.name), peopleOf("Reached it", "reached", one.name),
  ];
}

function drawGraphChoice() {
  const select = byId("graph-select");
  select.hidden = data.graphs.length < 2;
  select.append(...data.graphs.map((graph, index) => el("option", { value: index },
    `${graph.name} · ${number(graph.completed)} of ${number(graph.conversations)} completed`)));
  select.addEventListener("change", () => {
    const index = Number(select.value);
    refilter({ graph: index, at: null });
    go({ g: data.graphs[index].name, n: null });
  });
}

function start() {
  findCases();
  drawFigures();
  drawPlot();
  drawNotices();
  drawBroken();
  drawGraphChoice();
  linkTables();
  drawChoices();
  drawList();
  drawReader(null);
  // Of a suite of single answers, each has a graph of its own, which says little: the cases come first.
  if (data.conversations.some((row) => row.expected)) byId("bench").before(byId("desk"));
  byId("fit").addEventListener("click", () => zoomTo(null));
  byId("larger").addEventListener("click", () => zoomTo(drawing.zoom * 1.25));
  byId("smaller").addEventListener("click", () => zoomTo(drawing.zoom / 1.25));
  byId("reader").addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open !== null) go({ c: null });
  });
  window.addEventListener("hashchange", read);
  window.addEventListener("resize", () => {
    if (!drawing.graph || Math.abs(drawing.room - byId("canvas").clientWidth) < 40) return;
    showGraph();
    read();
  });
  read();
}

start();
