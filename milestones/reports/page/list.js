// The list of conversations: what is shown of them, in which order, and a part of it at a time.

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

// The customer's goal comes first if the scenario names one, because End may be reached by another road, too.
function getLeadingState(row) {
  if (row.goal === undefined) return [row.status, ...STATE_NAMES[row.status]];
  const state = row.goal_reached === null ? "undecided" : row.goal_reached ? "completed" : "missed";
  const outcome = { completed: "reached", missed: "not reached", undecided: "undecided" }[state];
  return [state, STATE_NAMES[state][0], `Customer's goal ${outcome}: ${row.goal}`];
}

function describeEnd(row) {
  if (row.goal === undefined) return null;
  if (row.status === "completed") return row.goal_reached === false ? "End by another road" : "End reached";
  if (row.status === "missed" && row.stopped_at !== "End") return "End not reached";
  if (row.status === "missed") return row.forbidden ? "something forbidden on the way to End" : "End without success";
  return row.status === "undecided" ? "End undecided" : null;
}

// What an address may say; at: what happened where, such as "stopped:pay", "reached:pay" or "broken:no-promises".
const LINKED = { state: "all", search: "", sort: "order", arm: "", use: "", user: "", scenario: "", at: "", differ: "" };
const filter = { ...LINKED, page: 0, graph: null }; // graph: the number of the only graph shown

// A scenario has one name for all kinds of users; a recorded task stands for one.
function getBaseName(row) {
  const name = row.scenario ?? (row.task === undefined ? undefined : [row.use_case, `task ${row.task}`].filter(Boolean).join(" · "));
  const kind = ` (${row.user})`;
  return name?.endsWith(kind) ? name.slice(0, -kind.length) : name;
}

// A case is a scenario in one of its runs: each conversation knows those of the same case, one for each arm.
function findCases() {
  const cases = new Map();
  data.conversations.forEach((row, index) => {
    row.base = getBaseName(row);
    const key = row.arm === undefined || row.scenario === undefined ? index : `${row.scenario}\n${row.run}`;
    row.sameCase = cases.get(key) || [];
    row.sameCase.push(index);
    cases.set(key, row.sameCase);
  });
}

function armsDiffer(row) {
  return new Set(row.sameCase.map((index) => getLeadingState(data.conversations[index])[0])).size > 1;
}

function isAt(row, at) {
  const [what, ...names] = at.split(":");
  const name = names.join(":");
  if (what === "broken") return (row.guidelines || []).some((one) => one.guideline === name && one.broken);
  if (what === "possibly") return (row.possibly_reached || []).includes(name);
  return what === "stopped" ? row.stopped_at === name : row.reached.some((one) => one.name === name);
}

// A conversation that is at End without having completed the goal was stopped by a rule alone.
function describeStop(name) {
  return name === "End" ? "End, without success" : name;
}

function describeArm(row) {
  return row.arm === undefined ? null : row.user === undefined ? row.arm : `${row.arm}, ${row.user} user`;
}

function getSearchText(row) {
  if (row.searchText === undefined) {
    row.searchText = [row.id, row.task, row.use_case, describeArm(row), row.source, row.stopped_at, data.graphs[row.graph].name]
      .filter((text) => text !== undefined && text !== null).join("\n").toLowerCase();
  }
  return row.searchText;
}

const ORDERS = {
  order: () => 0,
  least: (a, b) => (a.progress_range?.[1] ?? 2) - (b.progress_range?.[1] ?? 2), // what has no way to go comes last
  long: (a, b) => b.events - a.events,
};

// Return the cases that pass the filters: of each case, the numbers of its conversations that pass.
function findFittingCases() {
  const [, , hasState] = STATES.find(([name]) => name === filter.state) || STATES[0];
  const query = filter.search.trim().toLowerCase();
  const compare = ORDERS[filter.sort] || ORDERS.order;
  const fitting = data.conversations.map((_, index) => index)
    .filter((index) => {
      const row = data.conversations[index];
      return hasState(row) && (!query || getSearchText(row).includes(query))
        && (!filter.arm || row.arm === filter.arm) && (!filter.use || row.use_case === filter.use)
        && (!filter.user || row.user === filter.user) && (!filter.scenario || row.base === filter.scenario)
        && (!filter.differ || armsDiffer(row))
        && (filter.graph === null || row.graph === filter.graph)
        && (!filter.at || isAt(row, filter.at));
    })
    .sort((a, b) => compare(data.conversations[a], data.conversations[b]) || a - b);
  return [...Map.groupBy(fitting, (index) => data.conversations[index].sameCase).values()];
}

function refilter(changes) {
  const { state } = document.activeElement.dataset;
  Object.assign(filter, { page: 0 }, changes);
  drawList();
  byId("states").querySelector(`[data-state="${state}"]`)?.focus(); // it was drawn anew
  history.replaceState(null, "", `#${makeHash(Object.fromEntries(Object.keys(LINKED).map((name) => [name, filter[name]])))}`);
}

function showOnly(changes) {
  refilter({ ...LINKED, graph: null, ...changes });
  byId("desk").scrollIntoView({ block: "start" });
  byId("rows").querySelector("button")?.focus({ preventScroll: true });
}

function getName(row, index) {
  const isRepeated = row.run > 1 || data.conversations.some((one) => one.scenario === row.scenario && one.run > 1);
  return row.sameCase.length > 1 ? `${row.scenario}${isRepeated ? `, run ${row.run}` : ""}` : row.id || `conversation ${index + 1}`;
}

// The case in each arm, the open one marked.
function armButtons(row) {
  return row.sameCase.map((index) => {
    const one = data.conversations[index];
    const [state, mark, spoken] = getLeadingState(one);
    return button({ class: `pill ${state}`, "data-index": index, title: spoken, "aria-current": index === open ? "true" : null,
      onclick: () => navigate({ c: index }) }, `${mark} `, bdi(one.arm));
  });
}

function caseItem(group) {
  const row = data.conversations[group[0]];
  const isOpen = row.sameCase.includes(open);
  return el("li", { class: "case", "data-open": isOpen ? "true" : null },
    button({ class: "row", onclick: () => navigate({ c: group[0] }) }, el("span", { class: "who" },
      bdi(getName(row, group[0]), { class: "id" }), armsDiffer(row) ? el("span", { class: "tag warn" }, "arms differ") : null,
      bdi([row.use_case, row.user && `${row.user} user`].filter(Boolean).join(" · "), { class: "quiet facts" }))),
    el("div", { class: "arms" }, armButtons(row)));
}

function listItem(group) {
  const [index] = group;
  const row = data.conversations[index];
  if (row.sameCase.length > 1) return caseItem(group);
  const [state, mark, spoken] = getLeadingState(row);
  const stop = row.stopped_at;
  const facts = [
    row.use_case, describeArm(row), row.task !== undefined ? `task ${row.task}` : null,
    row.error !== undefined ? "ended in an error" : null,
    formatCount(row.turns, "message", "messages"), formatCount(row.calls, "call", "calls"),
  ].filter(Boolean).join(" · ");
  return el("li", {}, button({
    class: `row ${state}`, "data-index": index, "aria-current": index === open ? "true" : null,
    onclick: () => navigate({ c: index }),
  },
    el("span", { class: "mark", title: spoken }, mark),
    el("span", { class: "who" },
      bdi(row.id || `conversation ${index + 1}`, { class: "id" }),
      row.forbidden ? el("span", { class: "tag bad" }, "forbidden") : null,
      describeEnd(row) === "End by another road" ? el("span", { class: "tag warn" }, "End by another road") : null,
      bdi(facts, { class: "quiet facts" }),
      stop ? el("span", { class: "quiet facts" }, stop === "End" ? `at ${describeStop(stop)}` : ["stopped at ", bdi(stop)]) : null),
    el("span", { class: "far" }, meter(row.progress_range ? row.progress_range[0] : null, ...(row.progress_range || [])),
      el("span", {}, formatRange(row.progress_range)))));
}

function drawStates() {
  // Where End and the customer's goal always come together, one pair of choices says both.
  const isAlike = data.conversations.every((row) => (row.goal_reached ?? true) === (row.status === "completed"));
  byId("states").replaceChildren(...STATES.flatMap(([name, label, hasState]) => {
    const count = data.conversations.filter(hasState).length;
    if ((!count && !["all", "completed", "missed"].includes(name)) || (isAlike && name.endsWith("came-for"))) return [];
    return [button({
      class: "state", "data-state": name, "aria-pressed": String(filter.state === name), onclick: () => refilter({ state: name }),
    }, label, " ", el("span", { class: "quiet" }, formatNumber(count)))];
  }));
}

// The choices besides the outcome; each stands in an element of its name.
function drawChoices() {
  const arms = Object.keys(data.summary.arms);
  byId("differ-choice").hidden = !data.conversations.some((row) => row.sameCase.length > 1);
  const users = [...new Set(data.conversations.flatMap(({ user }) => user ?? []))].sort();
  const uses = Object.keys(data.summary.use_cases);
  for (const [id, all, names] of [["arm", "all arms", arms], ["use", "all use cases", uses], ["user", "all users", users]]) {
    byId(id).hidden = names.length < 2;
    byId(id).replaceChildren(el("option", { value: "" }, all), ...names.map((name) => el("option", { value: name }, name)));
  }
  for (const id of ["search", "sort", "arm", "use", "user", "differ"]) {
    byId(id).addEventListener("input", ({ target }) => refilter({ [id]: target.type === "checkbox" ? (target.checked ? "1" : "") : target.value }));
  }
}

function drawChips() {
  const chip = (text, name, clear) => button({ class: "chip", title: "Show the others too", onclick: () => refilter(clear) },
    text, bdi(name), " ✕");
  const chips = [];
  if (filter.scenario) chips.push(chip("", filter.scenario, { scenario: "" }));
  if (filter.at) {
    const [what, ...names] = filter.at.split(":");
    const verb = { stopped: "stopped at ", reached: "reached ", possibly: "possibly reached ", broken: "broke " }[what] || "";
    chips.push(chip(verb, what === "stopped" ? describeStop(names.join(":")) : names.join(":"), { at: "" }));
  }
  if (filter.graph !== null && data.graphs.length > 1) chips.push(chip("graph ", data.graphs[filter.graph].name, { graph: null }));
  byId("chips").replaceChildren(...chips);
}

function drawList() {
  const all = findFittingCases();
  const shown = all.slice(0, PAGE_LENGTH * (filter.page + 1));
  const rest = all.length - shown.length;
  const total = new Set(data.conversations.map((row) => row.sameCase)).size;
  byId("found").textContent = `${all.length === total ? "" : `${formatNumber(all.length)} of `}${formatNumber(total)}`;
  byId("list-name").textContent = total === data.conversations.length ? "Conversations"
    : data.conversations.some(({ run }) => run > 1) ? "Cases, run by run" : "Cases";
  byId("rows").replaceChildren(...(shown.length ? shown.map(listItem)
    : [el("li", { class: "none quiet" }, "No conversation is like that.")]));
  for (const id of ["search", "sort", "arm", "use", "user"]) byId(id).value = filter[id];
  byId("differ").checked = Boolean(filter.differ);
  drawStates();
  drawChips();
  byId("pages").replaceChildren(...(rest ? [button({ class: "plain", onclick: () => {
    filter.page += 1;
    drawList();
    byId("rows").children[shown.length].querySelector("button").focus();
  } }, `Show ${formatNumber(Math.min(rest, PAGE_LENGTH))} more`)] : []));
}

function markOpenRow() {
  byId("rows").querySelectorAll("[data-index]").forEach((row) => {
    if (Number(row.dataset.index) === open) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  });
  byId("rows").querySelectorAll(".case").forEach((item) => {
    if (item.querySelector("[aria-current]")) item.dataset.open = "true";
    else delete item.dataset.open;
  });
}
