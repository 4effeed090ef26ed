// A journey or a file of milestones as it fills up: layers run to the right, and the server has laid them out.

const NODE = { width: 104, height: 36, right: 24, below: 12, edge: 6 };

// As wide as the longest word, or half of the longest name, which has two lines.
function fitWidth(nodes) {
  const lengths = nodes.flatMap(({ name }) => [name.length / 2 + 2, ...name.split(/[\s_]/).map((word) => word.length)]);
  NODE.width = Math.min(124, Math.max(64, 18 + 7 * Math.max(...lengths)));
}

function place([layer, position]) {
  return [NODE.edge + layer * (NODE.width + NODE.right), NODE.edge + position * (NODE.height + NODE.below)];
}

function stateOf(node, progress, steps) {
  if (progress?.reached.includes(node.name)) return "done";
  const step = steps.find(({ step: id }) => node.name === id || node.name.startsWith(`${id}/`));
  if (step && step.state !== "waiting") return step.state;
  return progress?.next.some(({ name }) => name === node.name) ? "next" : "waiting";
}

function drawEdge([source, target, bends], points, states) {
  const [from, to] = [place(points.get(source)), place(points.get(target))];
  const middle = (point) => point[1] + NODE.height / 2;
  const stops = [[from[0] + NODE.width, middle(from)]];
  for (const bend of bends.map(place)) stops.push([bend[0], middle(bend)], [bend[0] + NODE.width, middle(bend)]);
  stops.push([to[0] - 5, middle(to)]);
  const path = stops.slice(1).map(([x, y], index) => {
    const [lastX, lastY] = stops[index];
    const half = (lastX + x) / 2;
    return `C${half} ${lastY} ${half} ${y} ${x} ${y}`;
  });
  const isDone = states.get(source) === "done" && ["done", "open"].includes(states.get(target));
  const [x, y] = stops.at(-1);
  return svg("g", { class: isDone ? "way done" : "way" },
    svg("path", { d: `M${stops[0].join(" ")}${path.join("")}` }), svg("path", { class: "tip", d: `M${x} ${y - 4}l6 4l-6 4z` }));
}

function drawNode(node, state) {
  const [x, y] = place(node.at);
  const isEnd = ["Start", "End"].includes(node.name);
  const caption = el("div", { class: "name-in" }, el("span", {}, bdi(node.name.replaceAll("_", "_\u200b"))));
  return svg("g", { class: `stop-${state} spot` }, svg("title", {}, `${node.name}: ${state}${node.description ? `. ${node.description}` : ""}`),
    svg("rect", { x, y, width: NODE.width, height: NODE.height, rx: isEnd ? NODE.height / 2 : 8 }),
    svg("foreignObject", { x, y, width: NODE.width, height: NODE.height }, caption));
}

export function drawGraph(graph, progress, steps, title) {
  fitWidth(graph.nodes);
  const points = new Map(graph.nodes.map((node) => [node.name, node.at]));
  const states = new Map(graph.nodes.map((node) => [node.name, stateOf(node, progress, steps)]));
  const corners = [...points.values(), ...graph.edges.flatMap(([, , bends]) => bends)].map(place);
  const width = Math.max(...corners.map(([x]) => x)) + NODE.width + NODE.edge;
  const height = Math.max(...corners.map(([, y]) => y)) + NODE.height + NODE.edge;
  const named = (state) => graph.nodes.filter(({ name }) => states.get(name) === state).map(({ name }) => name).join(", ") || "nothing";
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${title}. Done: ${named("done")}. Open: ${named("open")}.` },
    graph.edges.map((edge) => drawEdge(edge, points, states)), graph.nodes.map((node) => drawNode(node, states.get(node.name))));
  drawing.style.minWidth = `${0.7 * width}px`;
  return el("div", { class: "map", tabindex: 0, role: "group", "aria-label": title }, drawing);
}
