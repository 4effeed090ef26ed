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
  if (row.status === "missed") return row.stopped_at !== "End" ? "End not reached" : row.forbidden ? "something forbidden on the way to End" : "End without success";
  return row.status === "undecided" ? "End undecided" : null;
}

// graph: the number of the only graph shown; at: [what, milestone], those who reached it or stopped there.
const LINKED = { state: "all", search: "", sort: "order", arm: "", use: "", differ: "" }; // what an address may say
const filter = { ...LINKED, page: 0, graph: null, at: null };

// A case is a scenario in one of its runs: each conversation knows those of the same case, one for each arm.
function findCases() {
  const cases = new Map();
  data.conversations.forEach((row, index) => {
    const key = row.arm === undefined || row.scenario === undefined ? index : `${row.scenario}\n${row.run}`;
    row.sameCase = cases.get(key) || [];
    row.sameCase.push(index);
    cases.set(key, row.sameCase);
  });
}

function armsDiffer(row) {
  return new Set(row.sameCase.map((index) => leading(data.conversations[index])[0])).size > 1;
}

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
  return name === "End" ? "End, without success" : name;
}

function armOf(row) {
  return row.arm === undefined ? null : row.user === undefined ? row.arm : `${row.arm}, ${row.user} user`;
}

function searchable(row) {
  if (row.searchable === undefined) {
    row.searchable = [row.id, row.task, row.use_case, armOf(row), row.source, row.stopped_at, data.graphs[row.graph].name]
      .filter((text) => text !== undefined && text !== null).join("\n").toLowerCase();
  }
  return row.searchable;
}

const ORDERS = {
  order: () => 0,
  least: (a, b) => (a.progress_range?.[1] ?? 2) - (b.progress_range?.[1] ?? 2), // what has no way to go comes last
  long: (a, b) => b.events - a.events,
};

// What is shown, case by case: of each case, the conversations that fit.
function found() {
  const [, , holds] = STATES.find(([name]) => name === filter.state) || STATES[0];
  const wanted = filter.search.trim().toLowerCase();
  const compare = ORDERS[filter.sort] || ORDERS.order;
  const fitting = data.conversations.map((_, index) => index)
    .filter((index) => {
      const row = data.conversations[index];
      return holds(row) && (!wanted || searchable(row).includes(wanted))
        && (!filter.arm || row.arm === filter.arm) && (!filter.use || row.use_case === filter.use)
        && (!filter.differ || armsDiffer(row))
        && (filter.graph === null || row.graph === filter.graph)
        && (filter.at === null || isAt(row, filter.graph, ...filter.at));
    })
    .sort((a, b) => compare(data.conversations[a], data.conversations[b]) || a - b);
  return [...Map.groupBy(fitting, (index) => data.conversations[index].sameCase).values()];
}

function refilter(changes) {
  Object.assign(filter, { page: 0 }, changes);
  drawList();
  history.replaceState(null, "", `#${hashOf(Object.fromEntries(Object.keys(LINKED).map((name) => [name, filter[name]])))}`);
}

function showOnly(changes) {
  refilter({ ...LINKED, at: null, graph: null, ...changes });
  byId("rows").scrollIntoView({ block: "center" });
}

function nameOf(row, index) {
  const isRepeated = row.run > 1 || data.conversations.some((one) => one.scenario === row.scenario && one.run > 1);
  return row.sameCase.length > 1 ? `${row.scenario}${isRepeated ? `, run ${row.run}` : ""}` : row.id || `conversation ${index + 1}`;
}

// The case in each arm, the open one marked.
function armButtons(row) {
  return row.sameCase.map((index) => {
    const one = data.conversations[index];
    const [state, mark, spoken] = leading(one);
    return button({ class: `pill ${state}`, "data-index": index, title: spoken, "aria-current": index === open ? "true" : null,
      onclick: () => go({ c: index }) }, `${mark} `, words(one.arm));
  });
}

function caseOf(group) {
  const row = data.conversations[group[0]];
  return el("li", { class: "case" },
    button({ class: "row", onclick: () => go({ c: group[0] }) }, el("span", { class: "who" },
      words(nameOf(row, group[0]), { class: "id" }), armsDiffer(row) ? el("span", { class: "tag warn" }, "arms differ") : null,
      words([row.use_case, row.user && `${row.user} user`].filter(Boolean).join(" · "), { class: "quiet facts" }))),
    el("div", { class: "arms" }, armButtons(row)));
}

function rowOf(group) {
  const [index] = group;
  const row = data.conversations[index];
  if (row.sameCase.length > 1) return caseOf(group);
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

// The choices besides the outcome; each stands in an element of its name.
function drawChoices() {
  const arms = Object.keys(data.summary.arms);
  byId("differ-choice").hidden = !data.conversations.some((row) => row.sameCase.length > 1);
  for (const [id, all, names] of [["arm", "all arms", arms], ["use", "all use cases", Object.keys(data.summary.use_cases)]]) {
    byId(id).hidden = names.length < 2;
    byId(id).replaceChildren(el("option", { value: "" }, all), ...names.map((name) => el("option", { value: name }, name)));
  }
  for (const id of ["search", "sort", "arm", "use", "differ"]) {
    byId(id).addEventListener("input", ({ target }) => refilter({ [id]: target.type === "checkbox" ? (target.checked ? "1" : "") : target.value }));
  }
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
  const total = new Set(data.conversations.map((row) => row.sameCase)).size;
  byId("found").textContent = `${all.length === total ? "" : `${number(all.length)} of `}${number(total)}`;
  byId("list-name").textContent = total === data.conversations.length ? "Conversations"
    : data.conversations.some(({ run }) => run > 1) ? "Cases, run by run" : "Cases";
  byId("rows").replaceChildren(...(shown.length ? shown.map(rowOf)
    : [el("li", { class: "none quiet" }, "No conversation is like that.")]));
  for (const id of ["search", "sort", "arm", "use"]) byId(id).value = filter[id];
  byId("differ").checked = Boolean(filter.differ);
  drawStates();
  drawChips();
  drawPages(all.length);
}

function markOpenRow() {
  byId("rows").querySelectorAll("[data-index]").forEach((row) => {
    if (Number(row.dataset.index) === open) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  });
}
