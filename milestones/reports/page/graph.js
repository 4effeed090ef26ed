// The graph, drawn from layers and places: layers run to the right or down, whichever is larger where it has to fit.

const NODE = { width: 178, height: 60, join: 25 };
const MARGIN = 22;
const TALLEST = 800;
const SMALLEST_TEXT = 0.78; // of its size: a graph that does not fit is scrolled, not made too small to read
const MOST_EDGE_LABELS = 120;
const pen = document.createElement("canvas").getContext("2d");

const drawing = { graph: null, zoom: null, room: 0 };

function pointsOf(graph, portrait) {
  const along = portrait ? NODE.height + 54 : NODE.width + 64;
  const across = portrait ? NODE.width + 22 : NODE.height + 28;
  const half = { x: MARGIN + NODE.width / 2, y: MARGIN + NODE.height / 2 };
  const at = ([layer, place]) => portrait
    ? { x: half.x + place * across, y: half.y + layer * along }
    : { x: half.x + layer * along, y: half.y + place * across };
  const end = at([graph.layers - 1, graph.breadth]);
  return { at, width: end.x + half.x, height: end.y + half.y };
}

function wrapped(text, width, most, font) {
  pen.font = font;
  const fits = (line) => pen.measureText(line.trim()).width <= width;
  const lines = [""];
  for (const piece of text.slice(0, 300).split(/(?<=[\s_\-./:])/)) {
    if (fits(lines.at(-1) + piece)) lines[lines.length - 1] += piece;
    else if (lines.at(-1) === "") lines[lines.length - 1] = piece;
    else lines.push(piece);
  }
  if (lines.length <= most && lines.every(fits)) return lines.map((line) => line.trim());
  // Names often differ at their end alone.
  const head = most > 1 ? [shortened(lines[0], fits, (line, size) => line.slice(0, size))] : [];
  return [...head, `…${shortened(text, (line) => fits(`…${line}`), (line, size) => line.slice(-size))}`];
}

function shortened(text, fits, part) {
  let size = Math.min(text.length, 100);
  while (size > 1 && !fits(part(text, size))) size -= 1;
  return part(text, size).trim();
}

function shapeOf(milestone) {
  if (milestone.type === "Aggregator") return "join";
  if (milestone.name === "Start" || milestone.name === "End") return "end";
  return milestone.type === "FC" ? "call" : "state";
}

function reachedText(milestone, total) {
  const more = milestone.possibly ? ` (+${number(milestone.possibly)}?)` : "";
  return `${number(milestone.reached)} of ${number(total)}${more}`;
}

function spokenNode(milestone, total) {
  const kind = { join: "join", end: "", call: "tool call", state: "state" }[shapeOf(milestone)];
  const possibly = milestone.possibly ? `, possibly by ${number(milestone.possibly)} more` : "";
  const stops = milestone.name === "End" ? "of them with something forbidden on the way" : "stopped here";
  const stopped = milestone.stopped ? `, ${number(milestone.stopped)} ${stops}` : "";
  return `${milestone.name}${kind ? `, ${kind}` : ""}: reached by ${number(milestone.reached)} of ${number(total)}${possibly}${stopped}`;
}

function boxOf(graph, index, center) {
  const milestone = graph.milestones[index];
  const total = graph.conversations || 1;
  const x = center.x - NODE.width / 2;
  const y = center.y - NODE.height / 2;
  const round = shapeOf(milestone) === "call" ? 4 : NODE.height / 2;
  const frame = { x, y, width: NODE.width, height: NODE.height, rx: round };
  const share = milestone.reached / total;
  const possible = milestone.possibly / total;
  const lines = wrapped(milestone.name, NODE.width - 22, 2, "600 13px system-ui, sans-serif");
  const first = center.y - (lines.length === 2 ? 13 : 5);
  return [
    svg("clipPath", { id: `clip-${index}` }, svg("rect", frame)),
    svg("rect", { ...frame, class: "paper" }),
    svg("g", { "clip-path": `url(#clip-${index})` },
      svg("rect", { class: "share", x, y, width: NODE.width * share, height: NODE.height }),
      svg("rect", { class: "possible", x: x + NODE.width * share, y, width: NODE.width * possible, height: NODE.height })),
    svg("rect", { ...frame, class: "frame" }),
    lines.map((line, row) => svg("text", { class: "name", x: center.x, y: first + 15 * row }, line)),
    svg("text", { class: "count", x: center.x, y: center.y + (lines.length === 2 ? 21 : 14) }, reachedText(milestone, graph.conversations)),
  ];
}

function diamondOf(graph, index, center) {
  const milestone = graph.milestones[index];
  const r = NODE.join;
  const outline = `M${center.x} ${center.y - r}L${center.x + r} ${center.y}L${center.x} ${center.y + r}L${center.x - r} ${center.y}Z`;
  const share = 2 * r * (milestone.reached / (graph.conversations || 1));
  const [line] = wrapped(milestone.name, NODE.width - 10, 1, "600 11px system-ui, sans-serif");
  return [
    svg("clipPath", { id: `clip-${index}` }, svg("path", { d: outline })),
    svg("path", { class: "paper", d: outline }),
    svg("rect", { class: "share", "clip-path": `url(#clip-${index})`, x: center.x - r, y: center.y - r, width: share, height: 2 * r }),
    svg("path", { class: "frame", d: outline }),
    svg("text", { class: "count", x: center.x, y: center.y + 4 }, number(milestone.reached)),
    svg("text", { class: "name small", x: center.x, y: center.y + r + 12 }, line),
  ];
}

function stopBadge(milestone, center) {
  if (!milestone.stopped) return null;
  const text = number(milestone.stopped);
  const width = 12 + 7.5 * text.length;
  const right = shapeOf(milestone) === "join" ? center.x + NODE.join : center.x + NODE.width / 2;
  const top = center.y - (shapeOf(milestone) === "join" ? NODE.join : NODE.height / 2);
  return svg("g", { class: "stop" },
    svg("rect", { x: right - width + 4, y: top - 9, width, height: 18, rx: 9 }),
    svg("text", { x: right - width / 2 + 4, y: top + 4 }, text));
}

function drawNode(graph, index, center) {
  const milestone = graph.milestones[index];
  const pick = () => go({ n: milestone.name });
  const isJoin = shapeOf(milestone) === "join";
  return svg("g", {
    class: `node ${shapeOf(milestone)}`, tabindex: 0, role: "button", "data-milestone": milestone.name,
    "aria-label": spokenNode(milestone, graph.conversations), "aria-pressed": "false", onclick: pick,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick();
    },
  }, svg("title", {}, spokenNode(milestone, graph.conversations)),
    ...(isJoin ? diamondOf : boxOf)(graph, index, center), stopBadge(milestone, center));
}

// Where a line leaves or meets a node: at its side, in the direction of the layers.
function sideOf(milestone, center, portrait, ahead) {
  const isJoin = shapeOf(milestone) === "join";
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
function degreesOf(graph) {
  const out = graph.milestones.map(() => 0);
  const into = graph.milestones.map(() => 0);
  for (const { ends } of graph.edges) {
    out[ends[0]] += 1;
    into[ends[1]] += 1;
  }
  return { out, into, widest: 8 * Math.min(1, 6 / Math.max(1, ...out, ...into)) };
}

// Where an edge's number stands: where lines part from each other, not where they run together.
function labelPlace(points, portrait, leaving, meeting) {
  const share = leaving > meeting ? 0.78 : leaving < meeting ? 0.22 : 0.5;
  const last = leaving > meeting ? points.length - 1 : leaving < meeting ? 1 : Math.floor(points.length / 2);
  const [a, b] = [points[last - 1], points[last]];
  const rest = 1 - share;
  const ahead = 3 * rest * share * (rest + share);
  const along = (from, to) => rest ** 3 * from + ahead * ((from + to) / 2) + share ** 3 * to;
  const across = (from, to) => (rest ** 3 + 3 * rest ** 2 * share) * from + (3 * rest * share ** 2 + share ** 3) * to;
  return portrait ? { x: across(a.x, b.x), y: along(a.y, b.y) + 4 } : { x: along(a.x, b.x), y: across(a.y, b.y) + 4 };
}

function drawEdge(graph, index, at, portrait, degrees) {
  const edge = graph.edges[index];
  const [source, target] = edge.ends.map((end) => graph.milestones[end]);
  const runsBack = source.at[0] >= target.at[0];
  const tip = sideOf(target, at(target.at), portrait, runsBack);
  const points = [sideOf(source, at(source.at), portrait, !runsBack), ...edge.bends.map(at), tip];
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
  return svg("g", { class: edge.count ? "edge" : "edge unused", "data-edge": `${source.name} → ${target.name}`, "data-count": edge.count },
    svg("title", {}, `${source.name} → ${target.name}: ${counted(edge.count, "conversation", "conversations")}`),
    line, svg("path", { class: "head", d: head }),
    edge.count && graph.edges.length <= MOST_EDGE_LABELS
      ? svg("text", labelPlace(points, portrait, degrees.out[edge.ends[0]], degrees.into[edge.ends[1]]), number(edge.count)) : null);
}

function drawGraph(graph) {
  const canvas = byId("canvas");
  const room = canvas.clientWidth;
  const scale = (portrait) => {
    const { width, height } = pointsOf(graph, portrait);
    return Math.min(room / width, TALLEST / height, 1);
  };
  // Downwards only where it can be read without moving it sideways; to the right, Start is at the left edge.
  const portrait = scale(true) > scale(false) && room >= SMALLEST_TEXT * pointsOf(graph, true).width;
  const { at, width, height } = pointsOf(graph, portrait);
  const degrees = degreesOf(graph);
  const edges = graph.edges.map((_, index) => drawEdge(graph, index, at, portrait, degrees));
  const labels = edges.map((edge) => edge.querySelector("text"));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}` },
    svg("g", { class: "edges" }, edges),
    svg("g", { class: "numbers" }, labels), // above all lines
    svg("g", { class: "nodes" }, graph.milestones.map((one, index) => drawNode(graph, index, at(one.at)))));
  Object.assign(drawing, { graph, room, picture, width, height, zoom: null });
  canvas.replaceChildren(picture);
  zoomTo(null);
  bringIntoView(Math.max(0, graph.milestones.findIndex((one) => one.name === "Start")));
}

function fitting() {
  return Math.min(1.1, Math.max(SMALLEST_TEXT, (byId("canvas").clientWidth - 2) / drawing.width));
}

function zoomTo(zoom) {
  drawing.zoom = zoom === null ? fitting() : Math.min(2.5, Math.max(0.15, zoom));
  drawing.picture.setAttribute("width", drawing.width * drawing.zoom);
  drawing.picture.setAttribute("height", drawing.height * drawing.zoom);
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
  byId("legend").replaceChildren(legendOf(isOn));
}

function legendOf(isTracing) {
  const mark = (name, text) => el("span", { class: "key" }, el("i", { class: `key-${name}` }), text);
  const tracing = isTracing ? [mark("on", "the way of the open conversation")] : [];
  return el("span", {}, mark("call", "tool call"), mark("state", "state"), mark("join", "join: all of them"),
    mark("share", "share that reached it"), mark("possible", "possibly"), mark("stop", "stopped here"),
    mark("flow", "as many went this way"), ...tracing);
}

function bringIntoView(index) {
  const canvas = byId("canvas");
  const node = drawing.picture.querySelectorAll(".node")[index].getBoundingClientRect();
  const frame = canvas.getBoundingClientRect();
  canvas.scrollBy({ left: node.left + node.width / 2 - frame.left - frame.width / 2, top: node.top + node.height / 2 - frame.top - frame.height / 2 });
}
