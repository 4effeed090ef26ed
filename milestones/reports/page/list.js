// The list of conversations: what is shown of them, in which order, and a page of it at a time.

const PAGE_LENGTH = 100;
const STATES = [
  ["all", "All", () => true],
  ["came-for", "Customer's goal reached", (row) => row.goal_reached === true],
  ["not-came-for", "Customer's goal not reached", (row) => row.goal_reached === false],
  ["completed", "Completed", (row) => row.status === "completed"],
  ["missed", "Not completed", (row) => row.status === "missed"],
  ["undecided", "Undecided", (row) => row.status === "undecided"],
  ["forbidden", "Forbidden", (row) => Boolean(row.forbidden)],
  ["nothing", "Nothing to complete", (row) => row.status === "nothing"],
];
const STATE_NAMES = {
  completed: ["✓", "Goal completed"], missed: ["✕", "Goal not completed"],
  undecided: ["?", "Undecided"], nothing: ["–", "Nothing to complete"],
};

// What the customer came for leads, where the scenario names it: End may be reached by another road, too.
function leading(row) {
  if (row.goal === undefined) return [row.status, ...STATE_NAMES[row.status]];
  const state = row.goal_reached === null ? "undecided" : row.goal_reached ? "completed" : "missed";
  const said = { completed: "reached", missed: "not reached", undecided: "undecided" }[state];
  return [state, STATE_NAMES[state][0], `Customer's goal ${said}: ${row.goal}`];
}

function endOf(row) {
  if (row.goal === undefined) return null;
  if (row.status === "completed") return row.goal_reached === false ? "End by another road" : "End reached";
  if (row.status === "missed") return row.stopped_at === "End" ? "something forbidden on the way to End" : "End not reached";
  return row.status === "undecided" ? "End undecided" : null;
}

// graph: the number of the only graph shown; at: [what, milestone], those who reached it or stopped there.
const filter = { state: "all", search: "", sort: "order", page: 0, graph: null, at: null };

function isAt(row, graph, what, milestone) {
  if (row.graph !== graph) return false;
  return what === "stopped" ? row.stopped_at === milestone
    : what === "possibly" ? (row.possibly_reached || []).includes(milestone)
      : row.reached.some((one) => one.name === milestone);
}

function whoIsAt(graph, what, milestone) {
  return data.conversations.flatMap((row, index) => (isAt(row, graph, what, milestone) ? [index] : []));
}

// Whoever is at End and did not complete the goal was stopped by nothing but a rule.
function stopWords(name) {
  return name === "End" ? "End, with something forbidden on the way" : name;
}

function armOf(row) {
  return row.arm === undefined ? null : row.user === undefined ? row.arm : armName(row.arm, row.user);
}

function searchable(row) {
  if (row.searchable === undefined) {
    row.searchable = [row.id, row.task, row.use_case, armOf(row), row.source, row.stopped_at, data.graphs[row.graph].name]
      .filter((text) => text !== undefined && text !== null).join("\n").toLowerCase();
  }
  return row.searchable;
}

function progressOf(row, end) {
  return row.progress_range ? row.progress_range[end] : 2 * end - 0.5; // what has no way to go comes last
}

const ORDERS = {
  order: () => 0,
  least: (a, b) => progressOf(a, 1) - progressOf(b, 1),
  most: (a, b) => progressOf(b, 0) - progressOf(a, 0),
  long: (a, b) => b.events - a.events,
};

function found() {
  const holds = STATES.find(([name]) => name === filter.state)[2];
  const wanted = filter.search.trim().toLowerCase();
  const compare = ORDERS[filter.sort];
  return data.conversations.map((_, index) => index)
    .filter((index) => {
      const row = data.conversations[index];
      return holds(row) && (!wanted || searchable(row).includes(wanted))
        && (filter.graph === null || row.graph === filter.graph)
        && (filter.at === null || isAt(row, filter.graph, ...filter.at));
    })
    .sort((a, b) => compare(data.conversations[a], data.conversations[b]) || a - b);
}

function refilter(changes) {
  Object.assign(filter, { page: 0 }, changes);
  drawList();
}

function showState(state) {
  refilter({ state, at: null, graph: null, search: "" });
  byId("search").value = "";
  byId("rows").scrollIntoView({ block: "center" });
}

function searchFor(text) {
  byId("search").value = text;
  refilter({ search: text, state: "all", at: null, graph: null });
  byId("rows").scrollIntoView({ block: "center" });
}

function rowOf(index) {
  const row = data.conversations[index];
  const [state, mark, spoken] = leading(row);
  const stop = row.stopped_at;
  const facts = [
    row.use_case, armOf(row), row.task !== undefined ? `task ${row.task}` : null,
    row.error !== undefined ? "ended in an error" : null,
    counted(row.turns, "message", "messages"), counted(row.calls, "call", "calls"),
  ].filter(Boolean).join(" · ");
  return el("li", {}, button({
    class: `row ${state}`, "data-index": index, "aria-current": index === open ? "true" : null,
    onclick: () => go({ c: index }),
  },
    el("span", { class: "mark", title: spoken }, mark),
    el("span", { class: "who" },
      words(row.id || `conversation ${index + 1}`, { class: "id" }),
      row.forbidden ? el("span", { class: "tag bad" }, "forbidden") : null,
      endOf(row) === "End by another road" ? el("span", { class: "tag warn" }, "End by another road") : null,
      words(facts, { class: "quiet facts" }),
      stop ? el("span", { class: "quiet facts" }, stop === "End" ? `at ${stopWords(stop)}` : ["stopped at ", words(stop)]) : null),
    el("span", { class: "far" }, meter(row.progress_range ? row.progress_range[0] : null, ...(row.progress_range || [])),
      el("span", {}, percentRange(row.progress_range)))));
}

function drawStates() {
  byId("states").replaceChildren(...STATES.flatMap(([name, label, holds]) => {
    const count = data.conversations.filter(holds).length;
    if (!count && !["all", "completed", "missed"].includes(name)) return [];
    return [button({
      class: "state", "data-state": name, "aria-pressed": String(filter.state === name), onclick: () => refilter({ state: name }),
    }, label, " ", el("span", { class: "quiet" }, number(count)))];
  }));
}

function drawChips() {
  const chip = (text, name, clear) => button({ class: "chip", title: "Show the others too", onclick: () => refilter(clear) }, text, name ? words(name) : "", " ✕");
  const chips = [];
  if (filter.at) {
    const [what, name] = filter.at;
    const isForbidden = what === "stopped" && name === "End";
    const verb = { stopped: isForbidden ? "at " : "stopped at ", reached: "reached ", possibly: "possibly reached " }[what];
    chips.push(chip(verb, isForbidden ? stopWords(name) : name, { at: null, graph: data.graphs.length > 1 ? filter.graph : null }));
  }
  if (filter.graph !== null && data.graphs.length > 1) {
    chips.push(chip("graph ", data.graphs[filter.graph].name, { graph: null, at: null }));
  }
  byId("chips").replaceChildren(...chips);
}

function drawPages(count) {
  const last = Math.max(0, Math.ceil(count / PAGE_LENGTH) - 1);
  const turn = (page) => () => {
    filter.page = page;
    drawList();
    byId("rows").scrollTop = 0;
  };
  const from = filter.page * PAGE_LENGTH;
  byId("pages").replaceChildren(...(last === 0 ? [] : [
    button({ class: "plain", disabled: filter.page === 0, onclick: turn(filter.page - 1) }, "Previous"),
    el("span", { class: "quiet" }, `${number(from + 1)}–${number(Math.min(count, from + PAGE_LENGTH))} of ${number(count)}`),
    button({ class: "plain", disabled: filter.page === last, onclick: turn(filter.page + 1) }, "Next"),
  ]));
}

function drawList() {
  const all = found();
  const from = filter.page * PAGE_LENGTH;
  const shown = all.slice(from, from + PAGE_LENGTH);
  byId("found").textContent = all.length === data.conversations.length
    ? number(all.length) : `${number(all.length)} of ${number(data.conversations.length)}`;
  byId("rows").replaceChildren(...(shown.length ? shown.map(rowOf)
    : [el("li", { class: "none quiet" }, "No conversation is like that.")]));
  drawStates();
  drawChips();
  drawPages(all.length);
}

function markOpenRow() {
  byId("rows").querySelectorAll(".row").forEach((row) => {
    if (Number(row.dataset.index) === open) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  });
}
