// The charts: goal completion by arm and kind of user, scenarios by arm, and where conversations stop.

const SHOWN_ROWS = 12;
const MOST_ARMS = 4; // with a column of its own in the funnel

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

// Hide these lines behind a button that shows all; nothing if there are only a few.
function foldLines(all, others, what) {
  if (others.length < 3) return [];
  const more = button({ class: "plain more" });
  const fold = (isFolded) => {
    others.forEach((line) => { line.hidden = isFolded; });
    more.textContent = isFolded ? `Show all ${formatNumber(all.length)} ${what}` : "Show fewer";
    more.setAttribute("aria-expanded", String(!isFolded));
  };
  more.addEventListener("click", () => fold(more.getAttribute("aria-expanded") === "true"));
  fold(true);
  return [more];
}

// A dot with its interval, or a bar without a dot: where some are undecided, only the ends are known.
function whiskerTrack({ rate, low, high, least, most, unknown }) {
  const parts = unknown ? [place(el("i", { class: "span" }), least, most)]
    : [place(el("i", { class: "interval" }), low, high), place(el("i", { class: "dot" }), rate)];
  return el("span", { class: "track", "aria-hidden": "true" }, parts);
}

function meanTokens({ arm, user }) {
  const rows = ofArm(data.conversations, arm).filter((row) => row.output_tokens && (user === null || row.user === user));
  return rows.length ? Math.round(rows.reduce((sum, row) => sum + row.output_tokens, 0) / rows.length) : null;
}

function whiskerRow(one) {
  const figure = one.unknown ? formatRange([one.least, one.most]) : formatPercent(one.rate);
  const interval = one.unknown ? "" : formatRange([one.low, one.high]).replace("%", "");
  const tokens = meanTokens(one);
  const spoken = [`${one.arm}, ${one.user ?? "all"} users: ${figure}`, interval && `95% interval ${interval}`,
    formatCount(one.n, "conversation", "conversations"), tokens && `${formatNumber(tokens)} output tokens each`];
  return el("li", {}, button({
    class: one.unknown ? "whisker ranged" : "whisker", "aria-label": spoken.filter(Boolean).join(", "),
    onclick: () => showOnly({ ...onlyArm(one.arm), user: one.user ?? "" }),
  }, wrappable(one.arm, { class: "name" }), whiskerTrack(one), el("b", { class: "figure" }, figure),
    el("span", { class: "around quiet" }, interval), el("span", { class: "cost quiet" }, tokens && formatNumber(tokens))));
}

function drawWhiskers() {
  const all = data.whiskers.filter((one) => one.n > 0 && (one.user === null || data.users.length > 1));
  if (!all.length) return byId("whiskers").remove();
  const kinds = [...Map.groupBy(all, (one) => one.user)];
  const groups = kinds.map(([user, rows]) => [
    kinds.length === 1 ? null : el("h3", {}, user === null ? "all users" : `${user} users`,
      el("span", { class: "quiet" }, ` ${formatCount(Math.max(...rows.map(({ n }) => n)), "conversation", "conversations")} each`)),
    el("ul", { class: "whisker-rows" }, rows.map(whiskerRow))]);
  const axis = el("div", { class: "whisker axis", "aria-hidden": "true" }, el("span", { class: "name" }),
    el("span", { class: "track" }, [0, 0.25, 0.5, 0.75, 1].map((share) => place(el("i", {}, formatPercent(share)), share))),
    el("span", { class: "figure" }), el("span", { class: "around" }), el("span", { class: "cost quiet" }, all.some(meanTokens) ? "tokens" : ""));
  const facts = ["of each arm, with 95% intervals", all.some((one) => one.unknown) && "a bar without a dot is a range, as some are undecided",
    all.some(meanTokens) && "tokens are those written in a conversation"];
  byId("whiskers").querySelector(".facts").textContent = `${facts.filter(Boolean).join("; ")}.`;
  const [first, ...others] = groups;
  byId("whiskers").append(axis, ...first.filter(Boolean), kinds[0][1].length > 6 && others.length
    ? el("details", {}, el("summary", {}, "by kind of user"), others) : el("div", {}, others));
}

// Scenarios without their kinds of users: the rows of each arm, and how far the arms differ.
function collectScenarios(arms) {
  const rows = data.conversations.filter((row) => row.base !== undefined && row.status !== "nothing");
  return [...Map.groupBy(rows, (row) => row.base)].map(([scenario, all]) => {
    const cells = arms.map((arm) => ofArm(all, arm));
    const shares = cells.filter((cell) => cell.length).map((cell) => countStatus(cell, "completed") / cell.length);
    return { scenario, cells, difference: Math.max(...shares) - Math.min(...shares), least: Math.min(...shares) };
  }).sort((a, b) => b.difference - a.difference || a.least - b.least);
}

function countStatus(rows, wanted) {
  return rows.filter(({ status }) => status === wanted).length;
}

function heatCell(rows, scenario, arm) {
  if (!rows.length) return el("td", {});
  const [done, open] = [countStatus(rows, "completed"), countStatus(rows, "undecided")];
  const share = (done + open / 2) / rows.length;
  const cell = button({
    class: share < 0.5 ? "heat-cell low" : "heat-cell", onclick: () => showOnly({ scenario, ...onlyArm(arm) }),
    "aria-label": `${scenario}, ${arm}: ${done} of ${rows.length} completed${open ? `, ${open} undecided` : ""}`,
  }, `${done}${open ? `–${done + open}` : ""}/${rows.length}`);
  cell.style.setProperty("--strength", `${Math.abs(200 * share - 100)}%`);
  return el("td", {}, cell);
}

function drawHeat() {
  const { arms } = data;
  const scenarios = collectScenarios(arms);
  const chart = byId("heat");
  if (!scenarios.some(({ cells }) => arms.length > 1 || cells[0].length > 1)) return chart.remove();
  const lines = scenarios.map(({ scenario, cells }) => el("tr", {}, el("th", { scope: "row" }, bdi(scenario)),
    cells.map((rows, at) => heatCell(rows, scenario, arms[at]))));
  const differing = scenarios.filter(({ difference }) => difference > 0).length;
  const order = differing ? `Arms differ in ${formatNumber(differing)} of ${formatNumber(scenarios.length)}; those come first.`
    : arms.length > 1 ? "No scenario differs between arms." : "The worst come first.";
  chart.querySelector(".facts").textContent = `Runs that completed the goal. ${order}`;
  const heads = arms.map((arm) => el("th", { scope: "col" }, wrappable(arm)));
  heads.forEach((head) => { head.style.width = `${Math.min(24, 66 / arms.length)}%`; });
  const table = el("table", { class: "heat" }, el("thead", {}, el("tr", {}, el("td", {}), heads)), el("tbody", {}, lines));
  table.style.minWidth = `${110 + 58 * arms.length}px`;
  chart.querySelector(".wide").append(table);
  chart.append(...foldLines(lines, lines.slice(SHOWN_ROWS), "scenarios"));
}

// The conversations that a funnel is about: those on one graph, or on all.
function funnelRows(number) {
  return data.conversations.filter((row) => (number === null || row.graph === number)
    && row.expected === undefined && row.status !== "nothing");
}

function funnelCell(rows, { name }, graph, arm) {
  const reached = rows.filter((row) => row.reached.some((one) => one.name === name)).length;
  const stopped = rows.filter((row) => row.stopped_at === name).length;
  const total = rows.length || 1;
  const stops = `${stopped} ${name === "End" ? "got here without success" : "stopped here"}`;
  const list = (what) => () => showOnly({ graph, ...onlyArm(arm), at: `${what}:${name}` });
  return el("td", { "data-arm": arm }, el("div", { class: "step-cell" },
    button({ class: "step-bar", "aria-label": `${name}, ${arm}: ${reached} of ${rows.length} reached it`, onclick: list("reached") },
      el("span", { class: "count" }, formatNumber(reached)),
      el("span", { class: "bar-track", "aria-hidden": "true" }, place(el("i"), 0, (reached - stopped) / total),
        stopped ? place(el("i", { class: "stopped" }), (reached - stopped) / total, reached / total) : null)),
    stopped ? button({ class: "stop-count", "aria-label": `${name}, ${arm}: ${stops}`, title: stops, onclick: list("stopped") },
      `−${formatNumber(stopped)}`) : el("span", {})));
}

// Of a graph by its number, or over all graphs, whose milestones of one name are one; in the order of the layers.
function drawFunnel(number) {
  const graphs = number === null ? data.graphs : [data.graphs[number]];
  const rows = funnelRows(number);
  const named = data.arms.filter((arm) => ofArm(rows, arm).length);
  const columns = named.length > MOST_ARMS ? [["all arms", rows]] : named.map((arm) => [arm, ofArm(rows, arm)]);
  const reached = new Set(rows.flatMap((row) => row.reached.map(({ name }) => name)));
  const stops = new Map([...Map.groupBy(rows, (row) => row.stopped_at)].map(([name, all]) => [name, all.length]));
  const milestones = [...new Map(graphs.flatMap((graph) => graph.milestones).map((one) => [one.name, one])).values()]
    .filter(({ name, type }) => stops.has(name) || type !== "Aggregator");
  const steps = milestones.filter(({ name }) => reached.has(name))
    .sort((a, b) => (a.name === "End") - (b.name === "End") || a.at[0] - b.at[0] || a.at[1] - b.at[1]);
  const toGraph = (milestone) => () => showMilestone(milestone.name,
    data.graphs.findIndex((graph) => graphs.includes(graph) && graph.milestones.includes(milestone)));
  const lines = steps.map((milestone) => el("tr", {},
    el("th", { scope: "row" }, button({ class: "name", title: "Show it in the graph", onclick: toGraph(milestone) }, wrappable(milestone.name))),
    columns.map(([arm, all]) => funnelCell(all, milestone, number, arm))));
  const counts = steps.map(({ name }) => stops.get(name) || 0);
  const least = Math.max(1, [...counts].sort((a, b) => b - a)[SHOWN_ROWS - 1] || 0);
  const corner = el("td");
  corner.style.width = `${columns.length < 2 ? 30 : 20}%`;
  const heads = columns.map(([arm, all]) => el("th", { scope: "col" }, wrappable(arm),
    el("span", { class: "quiet" }, ` of ${formatNumber(all.length)}`)));
  byId("funnel").querySelector(".wide").replaceChildren(
    el("table", { class: "funnel" }, el("thead", {}, el("tr", {}, corner, heads)), el("tbody", {}, lines)),
    ...foldLines(lines, lines.filter((_, at) => counts[at] < least && !["Start", "End"].includes(steps[at].name)), "milestones"));
  const unreached = milestones.filter(({ name }) => !reached.has(name)).map(({ name }) => name);
  const more = unreached.length > 8 ? ` and ${unreached.length - 8} more` : "";
  byId("funnel").querySelector(".facts").textContent = "How many reached each milestone, in the order of the graph, and how many got "
    + `no further (−). ${unreached.length ? `Reached by nobody: ${unreached.slice(0, 8).join(", ")}${more}.` : ""}`;
}

function drawFunnels() {
  const numbers = data.graphs.map((_, number) => number).filter((number) => funnelRows(number).length);
  if (!numbers.length) return byId("funnel").remove();
  const choices = numbers.length > 1 ? [null, ...numbers] : numbers;
  const select = byId("funnel-select");
  select.hidden = choices.length < 2;
  select.append(...choices.map((number) => el("option", {},
    number === null ? "all graphs" : `${data.graphs[number].name} · ${formatNumber(funnelRows(number).length)}`)));
  select.addEventListener("change", () => drawFunnel(choices[select.selectedIndex]));
  drawFunnel(choices[0]);
}

// Beside many whiskers there is room for two charts, above few for none.
function arrangeCharts() {
  const [whiskers, others] = [".whisker-rows li", "#heat tbody tr:not([hidden])"].map((rows) => document.querySelectorAll(rows).length);
  const { classList } = document.querySelector(".charts");
  classList.toggle("stacked", whiskers < 4);
  classList.toggle("beside", others > 0 && whiskers > others + 5);
}
