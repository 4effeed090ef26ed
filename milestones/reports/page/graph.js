// The graph, drawn from layers and places: layers run to the right or down, whichever is larger where it has to fit.

const SIZES = {
  wide: { width: 172, height: 62, join: 24, along: 58, across: 22 },
  tall: { width: 136, height: 70, join: 24, along: 36, across: 10 },
};
const MARGIN = 18;
const MOST_EDGE_LABELS = 120;

const drawing = { graph: null, zoom: null, isFitted: true };
let NODE = SIZES.wide;

// Graphs that differ in the user's goal alone, on which End depends, are drawn as one, and counted together.
function mergeGraphs() {
  const groups = [...Map.groupBy(data.graphs, ({ name, milestones }) => JSON.stringify([name.split(": ")[0], milestones.map((one) => [
    one.name, one.type, one.name === "End" ? null : one.dependencies, one.requires, one.optional, one.weight, one.by, one.state])])).values()];
  const places = new Map(); // of each graph: the number of its group, and the new numbers of its edges
  const merged = groups.map((graphs, number) => {
    const keys = graphs.map(({ edges }) => edges.map(({ ends }) => ends.join()));
    const common = keys[0].filter((key) => keys.every((all) => all.includes(key)));
    graphs.forEach((graph, at) => places.set(graph, { number, edges: keys[at].map((key) => common.indexOf(key)) }));
    const sum = (count) => graphs.reduce((total, graph) => total + count(graph), 0);
    return {
      ...graphs[0], name: graphs.length > 1 ? graphs[0].name.split(": ")[0] : graphs[0].name,
      conversations: sum((graph) => graph.conversations), completed: sum((graph) => graph.completed),
      edges: common.map((key) => ({ ...graphs[0].edges[keys[0].indexOf(key)],
        count: sum((graph) => graph.edges[keys[graphs.indexOf(graph)].indexOf(key)].count) })),
      milestones: graphs[0].milestones.map((milestone, at) => ({ ...milestone,
        ...Object.fromEntries(["reached", "possibly", "stopped"].map((name) => [name, sum((graph) => graph.milestones[at][name])])) })),
    };
  });
  for (const row of data.conversations) {
    const { number, edges } = places.get(data.graphs[row.graph]);
    row.graph = number;
    row.edges = row.edges.map((edge) => edges[edge]);
  }
  data.graphs = merged;
}

function placeGraph(graph, portrait) {
  const size = portrait ? SIZES.tall : SIZES.wide;
  const along = size.along + (portrait ? size.height : size.width);
  const across = size.across + (portrait ? size.width : size.height);
  const half = { x: MARGIN + size.width / 2, y: MARGIN + size.height / 2 };
  const at = ([layer, place]) => portrait
    ? { x: half.x + place * across, y: half.y + layer * along }
    : { x: half.x + layer * along, y: half.y + place * across };
  const end = at([graph.layers - 1, graph.breadth]);
  return { at, width: end.x + half.x, height: end.y + half.y };
}

function getShape(milestone) {
  if (milestone.type === "Aggregator") return "join";
  if (milestone.name === "Start" || milestone.name === "End") return "end";
  return milestone.type === "FC" ? "call" : "state";
}

function reachedText(milestone, total) {
  const more = milestone.possibly ? ` (+${formatNumber(milestone.possibly)}?)` : "";
  return `${formatNumber(milestone.reached)} of ${formatNumber(total)}${more}`;
}

function describeKind(milestone) {
  if (milestone.state) return "end state";
  if (milestone.by === "user") return "user's call";
  return { join: "join", end: `${milestone.name.toLowerCase()} of the graph`, call: "tool call", state: "state" }[getShape(milestone)];
}

// What a milestone is besides a call or a state.
function special(milestone) {
  const isSpecial = milestone.state || milestone.by === "user";
  return [milestone.optional && "optional", isSpecial && describeKind(milestone)].filter(Boolean).join(", ");
}

function describeNode(milestone, total) {
  const kind = [getShape(milestone) !== "end" && describeKind(milestone), milestone.optional && "optional"].filter(Boolean).join(", ");
  const possibly = milestone.possibly ? `, possibly by ${formatNumber(milestone.possibly)} more` : "";
  const stops = milestone.name === "End" ? "of them without success" : "stopped here";
  const stopped = milestone.stopped ? `, ${formatNumber(milestone.stopped)} ${stops}` : "";
  const reached = `reached by ${formatNumber(milestone.reached)} of ${formatNumber(total)}`;
  return `${milestone.name}${kind ? `, ${kind}` : ""}: ${reached}${possibly}${stopped}`;
}

// A browser breaks and cuts words in HTML, not in SVG.
function caption(x, y, width, height, kind, ...lines) {
  return svg("foreignObject", { x, y, width, height }, el("div", { class: kind }, lines));
}

function nodeParts(graph, index, { x, y }) {
  const milestone = graph.milestones[index];
  const shape = getShape(milestone);
  const isJoin = shape === "join";
  const r = NODE.join;
  const [width, height] = isJoin ? [2 * r, 2 * r] : [NODE.width, NODE.height];
  const [left, top] = [x - width / 2, y - height / 2];
  const outline = (attributes) => isJoin ? svg("path", { ...attributes, d: `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z` })
    : svg("rect", { ...attributes, x: left, y: top, width, height, rx: shape === "call" ? 4 : height / 2 });
  const [share, possible] = [milestone.reached, milestone.possibly].map((count) => width * count / (graph.conversations || 1));
  const name = wrappable(milestone.name, { class: "name" });
  return [
    svg("clipPath", { id: `clip-${index}` }, outline()),
    outline({ class: "paper" }),
    svg("g", { "clip-path": `url(#clip-${index})` },
      svg("rect", { class: "share", x: left, y: top, width: share, height }),
      svg("rect", { class: "possible", x: left + share, y: top, width: possible, height })),
    outline({ class: "frame" }),
    milestone.state && svg("rect", { class: "frame", x: left + 4, y: top + 4, width: width - 8, height: height - 8, rx: height / 2 - 4 }),
    isJoin ? [caption(left, top, width, height, "caption", formatNumber(milestone.reached)),
      caption(x - NODE.width / 2, top + height, NODE.width, 32, "caption small", name)]
      : caption(left + 8, top, width - 16, height, "caption", name, el("span", { class: "special" }, special(milestone)),
        el("span", {}, reachedText(milestone, graph.conversations))),
  ];
}

function stopBadge(milestone, center) {
  if (!milestone.stopped) return null;
  const text = formatNumber(milestone.stopped);
  const width = 12 + 7.5 * text.length;
  const right = getShape(milestone) === "join" ? center.x + NODE.join : center.x + NODE.width / 2;
  const top = center.y - (getShape(milestone) === "join" ? NODE.join : NODE.height / 2);
  return svg("g", { class: "stop" },
    svg("rect", { x: right - width + 4, y: top - 9, width, height: 18, rx: 9 }),
    svg("text", { x: right - width / 2 + 4, y: top + 4 }, text));
}

function drawNode(graph, index, center) {
  const milestone = graph.milestones[index];
  const pick = () => navigate({ n: milestone.name });
  return svg("g", {
    class: ["node", getShape(milestone), milestone.optional && "optional", milestone.by === "user" && "by-user",
      special(milestone) && "marked"].filter(Boolean).join(" "), tabindex: 0, role: "button", "data-milestone": milestone.name,
    "aria-label": describeNode(milestone, graph.conversations), "aria-pressed": "false", onclick: pick,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick();
    },
  }, svg("title", {}, describeNode(milestone, graph.conversations)),
    nodeParts(graph, index, center), stopBadge(milestone, center));
}

// Where a line leaves or meets a node: at its side, in the direction of the layers.
function findSide(milestone, center, portrait, ahead) {
  const isJoin = getShape(milestone) === "join";
  const reach = (isJoin ? NODE.join : (portrait ? NODE.height : NODE.width) / 2) * (ahead ? 1 : -1);
  return portrait ? { x: center.x, y: center.y + reach } : { x: center.x + reach, y: center.y };
}

function curve(points, portrait) {
  let line = `M${points[0].x} ${points[0].y}`;
  for (let index = 1; index < points.length; index += 1) {
    const [a, b] = [points[index - 1], points[index]];
    const middle = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
    line += portrait
      ? `C${a.x} ${middle.y} ${b.x} ${middle.y} ${b.x} ${b.y}`
      : `C${middle.x} ${a.y} ${middle.x} ${b.y} ${b.x} ${b.y}`;
  }
  return line;
}

// How many edges leave and meet each milestone, and how wide the widest line may be where they crowd.
function countDegrees(graph) {
  const of = (end) => graph.milestones.map((_, index) => graph.edges.filter(({ ends }) => ends[end] === index).length);
  const [out, into] = [of(0), of(1)];
  return { out, into, widest: 8 * Math.min(1, 6 / Math.max(1, ...out, ...into)) };
}

function drawEdge(graph, index, at, portrait, degrees) {
  const edge = graph.edges[index];
  const [source, target] = edge.ends.map((end) => graph.milestones[end]);
  const runsBack = source.at[0] >= target.at[0];
  const tip = findSide(target, at(target.at), portrait, runsBack);
  const points = [findSide(source, at(source.at), portrait, !runsBack), ...edge.bends.map(at), tip];
  const shift = runsBack ? 9 : 0; // so that the two edges of a cycle do not cover each other
  points.forEach((point) => { point[portrait ? "x" : "y"] += shift; });
  const share = edge.count / (graph.conversations || 1);
  const width = edge.count ? 1.5 + degrees.widest * share : 1;
  const size = 5 + width / 2;
  const back = (runsBack ? -1 : 1) * (size + 2);
  const end = { ...tip };
  points[points.length - 1] = portrait ? { x: end.x, y: end.y - back } : { x: end.x - back, y: end.y };
  const head = portrait
    ? `M${end.x} ${end.y}L${end.x - size} ${end.y - back}L${end.x + size} ${end.y - back}Z`
    : `M${end.x} ${end.y}L${end.x - back} ${end.y - size}L${end.x - back} ${end.y + size}Z`;
  const line = svg("path", { class: "line", d: curve(points, portrait) });
  line.style.strokeWidth = width;
  // Its number stands where lines part from each other, not where they run together.
  const [leaving, meeting] = [degrees.out[edge.ends[0]], degrees.into[edge.ends[1]]];
  const place = line.getPointAtLength(line.getTotalLength() * (leaving > meeting ? 0.78 : leaving < meeting ? 0.22 : 0.5));
  return svg("g", { class: edge.count ? "edge" : "edge unused", "data-edge": `${source.name} → ${target.name}`, "data-count": edge.count },
    svg("title", {}, `${source.name} → ${target.name}: ${formatCount(edge.count, "conversation", "conversations")}`),
    line, svg("path", { class: "head", d: head }),
    edge.count && graph.edges.length <= MOST_EDGE_LABELS
      ? svg("text", { x: place.x, y: place.y + 4 }, formatNumber(edge.count)) : null);
}

function drawGraph(graph) {
  const portrait = fitInto(placeGraph(graph, true)) > fitInto(placeGraph(graph, false));
  NODE = portrait ? SIZES.tall : SIZES.wide;
  const { at, width, height } = placeGraph(graph, portrait);
  const degrees = countDegrees(graph);
  const edges = graph.edges.map((_, index) => drawEdge(graph, index, at, portrait, degrees));
  const labels = edges.map((edge) => edge.querySelector("text"));
  const picture = svg("svg", { class: portrait ? "tall" : "wide", viewBox: `0 0 ${width} ${height}` },
    svg("g", { class: "edges" }, edges),
    svg("g", { class: "numbers" }, labels), // above all lines
    svg("g", { class: "nodes" }, graph.milestones.map((one, index) => drawNode(graph, index, at(one.at)))));
  Object.assign(drawing, { graph, portrait, picture, width, height });
  byId("canvas").replaceChildren(picture);
  zoomTo(null);
}

// The size at which all of a graph can be seen.
function fitInto({ width, height }) {
  return Math.min(1.1, (byId("canvas").clientWidth - 2) / width, Math.max(320, 0.8 * window.innerHeight) / height);
}

function zoomTo(zoom) {
  const fit = fitInto(drawing);
  drawing.isFitted = zoom === null;
  drawing.zoom = zoom === null ? fit : Math.min(2.5, Math.max(0.05, zoom));
  drawing.picture.setAttribute("width", drawing.width * drawing.zoom);
  drawing.picture.setAttribute("height", drawing.height * drawing.zoom);
  byId("canvas").style.height = `${Math.max(200, Math.ceil(drawing.height * fit) + 2)}px`;
}

// The room changes with the window, and with the milestone that is described beside the graph.
function refit() {
  if (!drawing.graph || !byId("canvas").clientWidth) return;
  const isPortrait = fitInto(placeGraph(drawing.graph, true)) > fitInto(placeGraph(drawing.graph, false));
  if (isPortrait !== drawing.portrait) {
    drawing.graph = null;
    showGraph();
  } else if (drawing.isFitted) zoomTo(null);
}

// Mark the milestone that is looked at, and the way that the open conversation took.
function markGraph(graph, selected, row) {
  const isOn = row !== null && data.graphs[row.graph] === graph;
  const reached = new Set(isOn ? row.reached.map(({ name }) => name) : []);
  const edges = new Set(isOn ? row.edges : []);
  drawing.picture.classList.toggle("tracing", isOn);
  drawing.picture.querySelectorAll(".node").forEach((node, index) => {
    const { name } = graph.milestones[index];
    node.classList.toggle("on", reached.has(name));
    node.classList.toggle("here", isOn && row.stopped_at === name);
    node.setAttribute("aria-pressed", String(index === selected));
  });
  drawing.picture.querySelectorAll(".edge").forEach((edge, index) => edge.classList.toggle("on", edges.has(index)));
  byId("legend").replaceChildren(makeLegend(isOn));
}

function makeLegend(isTracing) {
  const mark = (name, text) => el("span", { class: "key" }, el("i", { class: `key-${name}` }), text);
  const { milestones } = drawing.graph;
  const has = (test, name, text) => (milestones.some(test) ? mark(name, text) : null);
  return el("span", {}, mark("call", "tool call"), mark("state", "state"), has((one) => getShape(one) === "join", "join", "join: all of them"),
    mark("share", "share that reached it"), has((one) => one.possibly, "possible", "possibly"),
    has((one) => one.stopped, "stop", "stopped here"),
    mark("flow", "as many went this way"), isTracing ? mark("on", "the way of the open conversation") : null);
}

// Nothing to do while all of the graph is in view.
function bringIntoView(index) {
  const canvas = byId("canvas");
  const node = drawing.picture.querySelectorAll(".node")[index].getBoundingClientRect();
  const frame = canvas.getBoundingClientRect();
  canvas.scrollBy({ left: node.left + (node.width - frame.width) / 2 - frame.left, top: node.top + (node.height - frame.height) / 2 - frame.top });
}
