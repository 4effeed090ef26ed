// The address says what is shown, so that it can be shared: g a graph, n a milestone, c a conversation, and the filters of
// the list.

const data = readEmbedded("data");
let graphNumber = 0;
let selected = null;
let open = null;

function readAddress() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

// Return the address with these changes, without what is null or a default.
function makeHash(changes) {
  const entries = Object.entries({ ...readAddress(), ...changes }).filter(([name, value]) => (value ?? LINKED[name]) !== LINKED[name]);
  return new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
}

function navigate(changes) {
  const parts = { ...changes };
  if (changes.n && data.graphs.length > 1) parts.g = data.graphs[graphNumber].name;
  if (changes.c !== undefined && changes.c !== null && data.conversations[changes.c].graph !== graphNumber) parts.g = parts.n = null;
  location.hash = makeHash(parts);
  followAddress(); // at once: the event comes later, and then changes nothing
}

function parseIndex(text, count) {
  return /^\d+$/.test(text || "") && Number(text) < count ? Number(text) : null;
}

function followAddress() {
  const parts = readAddress();
  const before = { graphNumber, open, selected };
  open = parseIndex(parts.c, data.conversations.length);
  const linked = Object.keys(LINKED).filter((name) => filter[name] !== (parts[name] ?? LINKED[name]));
  if (linked.length) {
    Object.assign(filter, { page: 0 }, ...linked.map((name) => ({ [name]: parts[name] ?? LINKED[name] })));
    drawList();
  }
  const graphIndex = data.graphs.findIndex((graph) => graph.name === parts.g);
  if (graphIndex >= 0) graphNumber = graphIndex;
  else if (open !== null) graphNumber = data.conversations[open].graph;
  const milestone = data.graphs[graphNumber]?.milestones.findIndex(({ name }) => name === parts.n) ?? -1;
  selected = milestone < 0 ? null : milestone;
  if (selected !== null) byId("bench").open = true;
  showGraph();
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

// A graph is drawn when its fold is open, because it has to know its room.
function showGraph() {
  const graph = data.graphs[graphNumber];
  if (!graph || !byId("bench").open) return;
  byId("graph-select").value = String(graphNumber);
  byId("graph-facts").replaceChildren(
    `${formatNumber(graph.completed)} of ${formatCount(graph.conversations, "conversation", "conversations")} completed the goal`,
    ...(graph.file ? [" · ", bdi(graph.file)] : []),
    ...(graph.reviewed === false ? [" · ", el("span", { class: "tag warn" }, "generated, not reviewed")] : []));
  byId("inspector").hidden = selected === null;
  byId("inspector").replaceChildren(...(selected === null ? [] : describeMilestone(graph)).filter(Boolean));
  if (drawing.graph !== graph) drawGraph(graph);
  markGraph(graph, selected, open === null ? null : data.conversations[open]);
  if (selected !== null) bringIntoView(selected);
}

function describeMilestone(graph) {
  const milestone = graph.milestones[selected];
  const isAll = milestone.requires === "all" && milestone.dependencies.length > 1;
  const others = (label, from, to) => nameList(label,
    graph.edges.filter((edge) => edge.ends[from] === selected).map((edge) => graph.milestones[edge.ends[to]].name));
  const list = (what, label) => {
    const at = `${what}:${milestone.name}`;
    const { length } = data.conversations.filter((row) => row.graph === graphNumber && isAt(row, at));
    return length ? button({ class: "plain", onclick: () => showOnly({ at, graph: graphNumber }) }, `${formatNumber(length)} ${label}`) : null;
  };
  return [
    el("div", { class: "bar" }, el("h2", {}, bdi(milestone.name)), button({ class: "plain", onclick: () => navigate({ n: null }) }, "Close")),
    el("p", { class: "quiet facts" }, [describeKind(milestone), milestone.optional ? "optional" : null,
      milestone.weight === 1 ? null : `weight ${milestone.weight}`].filter(Boolean).join(" · ")),
    milestone.description ? prose(milestone.description, "said") : null,
    others(isAll ? "After all of" : "After", 1, 0), others("Before", 0, 1),
    el("p", { class: "states" }, list("reached", "reached it"), list("possibly", "possibly reached it"),
      list("stopped", milestone.name === "End" ? "reached it without success" : "stopped here")),
    milestone.name === "End" && milestone.stopped ? el("p", { class: "quiet facts" },
      "The goal does not count as completed if something forbidden happened, or if the world says that it was no success.") : null,
  ];
}

function drawGraphChoice() {
  const select = byId("graph-select");
  select.hidden = data.graphs.length < 2;
  select.append(...data.graphs.map((graph, index) => el("option", { value: index },
    `${graph.name} · ${formatNumber(graph.completed)} of ${formatNumber(graph.conversations)} completed`)));
  select.addEventListener("change", () => {
    const index = Number(select.value);
    refilter({ graph: index, at: "" });
    navigate({ g: data.graphs[index].name, n: null });
  });
}

function start() {
  mergeGraphs();
  findCases();
  drawVerdict();
  drawNotices();
  drawBroken();
  drawWhiskers();
  drawHeat();
  drawFunnels();
  arrangeCharts();
  drawGuidelines();
  drawGraphChoice();
  drawChoices();
  drawList();
  drawReader(null);
  byId("bench").hidden = !data.graphs.length;
  byId("bench").addEventListener("toggle", showGraph);
  byId("fit").addEventListener("click", () => zoomTo(null));
  byId("larger").addEventListener("click", () => zoomTo(drawing.zoom * 1.25));
  byId("smaller").addEventListener("click", () => zoomTo(drawing.zoom / 1.25));
  byId("reader").addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open !== null) navigate({ c: null });
  });
  window.addEventListener("hashchange", followAddress);
  new ResizeObserver(refit).observe(byId("canvas"));
  const wide = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  }));
  document.querySelectorAll(".wide").forEach((region) => wide.observe(region));
  followAddress();
}

start();
