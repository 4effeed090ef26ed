// The charts: goal completion by arm and kind of user, scenarios by arm, and where conversations stop.

const SHOWN_ROWS = 12;
const MOST_ARMS = 4; // with a column of its own in the funnel

// A chart without anything to show leaves its place to the others.
function fillChart(id, facts, ...children) {
  const chart = byId(id);
  chart.querySelector(".facts").textContent = facts;
  (chart.querySelector(".wide") || chart).append(...children.filter(Boolean));
}

// What the list is filtered by for an arm; that of recorded conversations is no arm.
function onlyArm(arm) {
  return { arm: Object.hasOwn(data.summary.arms, arm) ? arm : "" };
}

function ofArm(rows, arm) {
  return rows.filter((row) => (row.arm ?? "recorded") === arm);
}

function place(node, from, to) {
  node.style.left = `${100 * from}%`;
  if (to !== undefined) node.style.width = `${100 * (to - from)}%`;
  return node;
}

// A dot with its interval, or a bar without a dot: where some are undecided, only the ends are known.
function whiskerTrack({ rate, low, high, least, most, unknown }) {
  const parts = unknown ? [place(el("i", { class: "span" }), least, most)]
    : [low === null ? null : place(el("i", { class: "interval" }), low, high), place(el("i", { class: "dot" }), rate)];
  return el("span", { class: "track", "aria-hidden": "true" }, parts);
}

function whiskerRow(one) {
  const who = { ...onlyArm(one.arm), user: one.user ?? "" };
  const figure = one.unknown ? formatRange([one.least, one.most]) : formatPercent(one.rate);
  const interval = one.unknown ? "" : formatRange([one.low, one.high]).replace("%", "");
  const spoken = `${one.arm}: ${figure}${interval && `, 95% interval ${interval}`}, ${formatCount(one.n, "conversation", "conversations")}`;
  return el("li", {}, button({ class: one.unknown ? "whisker ranged" : "whisker", "aria-label": spoken, title: spoken, onclick: () => showOnly(who) },
    wrappable(one.arm, { class: "name" }), whiskerTrack(one),
    el("b", { class: "figure" }, figure), el("span", { class: "around quiet" }, interval)));
}

function drawWhiskers() {
  const all = data.whiskers.filter((one) => one.n > 0 && (one.user === null || data.users.length > 1));
  if (!all.length) return byId("whiskers").remove();
  const kinds = Map.groupBy(all, (one) => one.user);
  const groups = [...kinds].map(([user, rows]) => [
    kinds.size > 1 ? el("h3", {}, user === null ? "all users" : `${user} users`,
      el("span", { class: "quiet" }, ` ${formatCount(Math.max(...rows.map(({ n }) => n)), "conversation", "conversations")} each`)) : null,
    el("ul", { class: "whisker-rows" }, rows.map(whiskerRow))]);
  const [first, ...others] = groups;
  const axis = el("div", { class: "whisker axis", "aria-hidden": "true" }, el("span", { class: "name" }),
    el("span", { class: "track" }, [0, 0.25, 0.5, 0.75, 1].map((share) => place(el("i", {}, formatPercent(share)), share))), el("span", { class: "figure" }), el("span", { class: "around" }));
  fillChart("whiskers", "of each arm, with 95% intervals. A bar without a dot is a range: some are undecided.", axis, ...first,
    kinds.get(null)?.length > 6 && others.length ? el("details", {}, el("summary", {}, "by kind of user"), others) : el("div", {}, others));
  if (!all.some((one) => one.unknown)) byId("whiskers").querySelector(".facts").textContent = "of each arm, with 95% intervals.";
}

// Scenarios without their kinds of users, by arm: [scenario, rows of each arm, difference between arms, least share].
function collectScenarios(arms) {
  const byScenario = Map.groupBy(data.conversations.filter((row) => row.base !== undefined && row.status !== "nothing"), (row) => row.base);
  return [...byScenario].map(([scenario, rows]) => {
    const cells = arms.map((arm) => ofArm(rows, arm));
    const shares = cells.filter((cell) => cell.length).map(shareCompleted);
    return { scenario, cells, difference: Math.max(...shares) - Math.min(...shares), least: Math.min(...shares) };
  }).sort((a, b) => b.difference - a.difference || a.least - b.least);
}

function shareCompleted(rows) {
  return rows.filter(({ status }) => status === "completed").length / rows.length;
}

function heatCell(rows, scenario, arm) {
  if (!rows.length) return el("td", {});
  const [done, open] = ["completed", "undecided"].map((state) => rows.filter(({ status }) => status === state).length);
  const text = `${done}${open ? `–${done + open}` : ""}/${rows.length}`;
  const share = (done + open / 2) / rows.length;
  const cell = button({ class: `heat-cell ${share < 0.5 ? "low" : "high"}`, "aria-label": `${scenario}, ${arm}: ${done} of ${rows.length} completed${open ? `, ${open} undecided` : ""}`,
    onclick: () => showOnly({ scenario, ...onlyArm(arm) }) }, text);
  cell.style.setProperty("--strength", `${Math.abs(200 * share - 100)}%`);
  return el("td", {}, cell);
}

function drawHeat() {
  const { arms } = data;
  const scenarios = collectScenarios(arms);
  if (!scenarios.some(({ cells }) => arms.length > 1 || cells[0].length > 1)) return byId("heat").remove();
  const lines = scenarios.map(({ scenario, cells }) => el("tr", {}, el("th", { scope: "row" }, bdi(scenario)), cells.map((rows, at) => heatCell(rows, scenario, arms[at]))));
  const differing = scenarios.filter(({ difference }) => difference > 0).length;
  const facts = arms.length < 2 ? "Runs that completed the goal, worst first."
    : `Runs that completed the goal. ${differing ? `Arms differ in ${formatNumber(differing)} of ${formatNumber(scenarios.length)}; those come first.` : "No scenario differs between arms."}`;
  fillChart("heat", facts, el("table", { class: "heat" },
    el("thead", {}, el("tr", {}, el("td", {}), arms.map((arm) => el("th", { scope: "col" }, wrappable(arm))))),
    el("tbody", {}, lines)));
  byId("heat").querySelectorAll("thead th").forEach((head) => { head.style.width = `${Math.min(18, 66 / arms.length)}%`; });
  byId("heat").querySelector("table").style.minWidth = `${110 + 58 * arms.length}px`;
  byId("heat").append(...foldLines(lines, lines.slice(SHOWN_ROWS), "scenarios"));
}

// Hide these lines behind a button that shows all; nothing if there are only a few.
function foldLines(all, others, what) {
  if (others.length < 3) return [];
  const fold = (isFolded) => others.forEach((line) => { line.hidden = isFolded; });
  fold(true);
  const text = `Show all ${formatNumber(all.length)} ${what}`;
  const more = button({ class: "plain more", "aria-expanded": "false", onclick: () => {
    const isOpen = more.getAttribute("aria-expanded") === "true";
    more.setAttribute("aria-expanded", String(!isOpen));
    more.textContent = isOpen ? text : "Show fewer";
    fold(isOpen);
  } }, text);
  return [more];
}

// The milestones in the order of the layers, without joins and without those that nobody reached.
function funnelSteps(milestones, rows) {
  const stopped = new Set(rows.map((row) => row.stopped_at));
  const reached = new Set(rows.flatMap((row) => row.reached.map(({ name }) => name)));
  const steps = milestones.filter(({ name, type }) => stopped.has(name) || (reached.has(name) && type !== "Aggregator"))
    .sort((a, b) => (a.name === "End") - (b.name === "End") || a.at[0] - b.at[0] || a.at[1] - b.at[1]);
  const unreached = milestones.filter(({ name, type }) => !reached.has(name) && type !== "Aggregator").map(({ name }) => name);
  return { steps, unreached };
}

// The conversations that a funnel is about: those on one graph, or on all.
function funnelRows(number) {
  return data.conversations.filter((row) => (number === null || row.graph === number) && row.expected === undefined && row.status !== "nothing");
}

function funnelCell(rows, { name }, graph, arm) {
  const reached = rows.filter((row) => row.reached.some((one) => one.name === name)).length;
  const stopped = rows.filter((row) => row.stopped_at === name).length;
  const total = rows.length || 1;
  const stops = name === "End" ? "got here without success" : "stopped here";
  const only = { graph, ...onlyArm(arm) };
  return el("td", { "data-arm": arm }, el("div", { class: "step-cell" },
    button({ class: "step-bar", "aria-label": `${name}: ${reached} of ${rows.length} reached it`, onclick: () => showOnly({ ...only, at: `reached:${name}` }) },
      el("span", { class: "count" }, formatNumber(reached)), el("span", { class: "bar-track", "aria-hidden": "true" }, place(el("i"), 0, (reached - stopped) / total),
        stopped ? place(el("i", { class: "stopped" }), (reached - stopped) / total, reached / total) : null)),
    stopped ? button({ class: "stop-count", "aria-label": `${name}: ${stopped} ${stops}`, title: `${stopped} ${stops}`, onclick: () => showOnly({ ...only, at: `stopped:${name}` }) },
      `−${formatNumber(stopped)}`) : el("span", {})));
}

// Of a graph by its number, or over all graphs, whose milestones of one name are one.
function drawFunnel(number) {
  const graphs = number === null ? data.graphs : [data.graphs[number]];
  const rows = funnelRows(number);
  const named = data.arms.filter((arm) => ofArm(rows, arm).length);
  const columns = named.length > MOST_ARMS ? [["all arms", rows]] : named.map((arm) => [arm, ofArm(rows, arm)]);
  const byName = new Map(graphs.flatMap(({ milestones }) => milestones).map((milestone) => [milestone.name, milestone]));
  const { steps, unreached } = funnelSteps([...byName.values()], rows);
  const heads = columns.map(([arm, all]) => el("th", { scope: "col" }, wrappable(arm), el("span", { class: "quiet" }, ` of ${formatNumber(all.length)}`)));
  const toGraph = ({ name }) => showMilestone(name, data.graphs.findIndex((graph) => graphs.includes(graph) && graph.milestones.some((one) => one.name === name)));
  const lines = steps.map((milestone) => el("tr", {},
    el("th", { scope: "row" }, button({ class: "name", title: "Show it in the graph", onclick: () => toGraph(milestone) }, wrappable(milestone.name))),
    columns.map(([arm, all]) => funnelCell(all, milestone, number, arm))));
  const stops = steps.map(({ name }) => rows.filter((row) => row.stopped_at === name).length);
  const least = Math.max(1, [...stops].sort((a, b) => b - a)[SHOWN_ROWS - 1] || 0);
  const passed = lines.filter((line, at) => stops[at] < least && !["Start", "End"].includes(steps[at].name));
  byId("funnel").querySelector(".wide").replaceChildren(
    el("table", { class: "funnel" }, el("thead", {}, el("tr", {}, el("td", { class: "first" }), heads)), el("tbody", {}, lines)),
    ...foldLines(lines, passed, "milestones"));
  byId("funnel").querySelector(".first").style.width = `${columns.length < 2 ? 30 : 20}%`;
  byId("funnel").querySelector(".facts").textContent = "How many reached each milestone, in the order of the graph, and how many got no further (−). "
    + (unreached.length ? `Reached by nobody: ${unreached.slice(0, 8).join(", ")}${unreached.length > 8 ? ` and ${unreached.length - 8} more` : ""}.` : "");
}

// Beside many whiskers there is room for two charts, above few for none.
function arrangeCharts() {
  const [whiskers, others] = [".whisker-rows li", "#heat tbody tr:not([hidden])"].map((rows) => document.querySelectorAll(rows).length);
  const { classList } = document.querySelector(".charts");
  classList.toggle("stacked", whiskers < 4);
  classList.toggle("beside", others > 0 && whiskers > others + 5);
}

function drawFunnels() {
  const numbers = data.graphs.map((_, number) => number).filter((number) => funnelRows(number).length);
  if (!numbers.length) return byId("funnel").remove();
  const choices = numbers.length > 1 ? [null, ...numbers] : numbers;
  const select = byId("funnel-select");
  select.hidden = choices.length < 2;
  select.append(...choices.map((number) => el("option", {}, number === null ? "all graphs" : `${data.graphs[number].name} · ${formatNumber(funnelRows(number).length)}`)));
  select.addEventListener("change", () => drawFunnel(choices[select.selectedIndex]));
  drawFunnel(choices[0]);
}
