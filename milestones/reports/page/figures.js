// The figures over all conversations: cards, the table of use cases, and what a reader has to be warned of.

function card(name, value, lines, extra) {
  return el("div", { class: "card" },
    el("h3", {}, name), el("p", { class: "value" }, value), extra,
    lines.filter(Boolean).map((line) => el("p", { class: "quiet" }, line)));
}

function interval(figure) {
  return figure.low === null ? null : `95% interval ${percentRange([figure.low, figure.high])}`;
}

// The decided conversations need not be like the undecided: where there are some, a figure is a range over all.
function between(least, most, decided) {
  if (least === most) return { text: percent(decided.rate), rate: decided.rate, low: decided.low, high: decided.high };
  return { text: `${percent(least)} to ${percent(most)}`, rate: least, low: least, high: most, undecided: true };
}

function goalFigure(summary) {
  return between(summary.goal_at_least.rate, summary.goal_at_most.rate, summary.goal_completion);
}

function progressFigure(summary) {
  const { mean, low, high } = summary.progress_rate;
  return between(summary.progress_at_least.mean, summary.progress_at_most.mean, { rate: mean, low, high });
}

function goalCard(summary) {
  const goal = goalFigure(summary);
  const least = summary.goal_at_least;
  const most = summary.goal_at_most;
  return card("Goal completion", goal.text, [
    goal.undecided
      ? `${number(least.count)} to ${number(most.count)} of ${number(least.n)}: ${number(most.count - least.count)} undecided`
      : [`${number(least.count)} of ${number(least.n)}`, interval(summary.goal_completion)].filter(Boolean).join(" · "),
    summary.goal_reached ? "End, by any road" : null,
    summary.nothing_to_complete ? `${number(summary.nothing_to_complete)} with nothing to complete` : null,
  ], meter(goal.rate, goal.low, goal.high));
}

function progressCard(summary) {
  const progress = progressFigure(summary);
  return card("Progress rate", progress.text, [
    progress.undecided
      ? `mean of ${number(summary.progress_at_least.n)}, what is undecided not observed and observed`
      : [`mean of ${number(summary.progress_rate.n)}`, interval(summary.progress_rate)].filter(Boolean).join(" · "),
  ], meter(progress.rate, progress.low, progress.high));
}

function reachedCard(summary) {
  const reached = summary.goal_reached;
  return reached && card("Customer's goal reached", percent(reached.rate), [
    [`${number(reached.count)} of ${number(reached.n)}`, interval(reached)].filter(Boolean).join(" · "),
    reached.unknown ? `and ${number(reached.unknown)} undecided` : null,
  ], meter(reached.rate, reached.low, reached.high));
}

function passCard(summary) {
  const shares = Object.entries(summary.pass_hat_k);
  const leftOut = summary.pass_hat_k_undecided;
  const undecided = leftOut ? `${counted(leftOut, "task", "tasks")} left out: not every run is decided` : null;
  if (!shares.length) {
    return leftOut ? card("pass^k", "–", [undecided, "no other task was run several times"]) : null;
  }
  const bars = el("table", { class: "bars" }, shares.map(([k, share]) => el("tr", {}, el("th", { scope: "row" }, `k = ${k}`), el("td", {}, meter(share)), el("td", {}, percent(share)))));
  return el("div", { class: "card" }, el("h3", {}, "pass^k"), bars,
    el("p", { class: "quiet" }, "chance that k runs of a task all complete it"),
    undecided ? el("p", { class: "quiet" }, undecided) : null);
}

function rewardCard(summary) {
  const reward = summary.reward;
  const n = reward ? reward.both + reward.only_a + reward.only_b + reward.neither : 0;
  if (!n) return null;
  const cell = (count, label) => el("td", {}, el("b", {}, number(count)), ` ${label}`);
  const table = el("table", { class: "four" },
    el("tr", {}, cell(reward.both, "both"), cell(reward.only_a, "goal only")),
    el("tr", {}, cell(reward.only_b, "reward only"), cell(reward.neither, "neither")));
  return el("div", { class: "card" }, el("h3", {}, "Agrees with the reward"),
    el("p", { class: "value" }, percent((reward.both + reward.neither) / n)), table);
}

function attentionCard(summary) {
  const undecided = summary.goal_completion.unknown - summary.nothing_to_complete;
  const cases = new Set(data.conversations.filter(armsDiffer).map((row) => row.sameCase));
  const line = (label, count, act) => el("tr", { class: count ? "alarm" : null },
    el("th", { scope: "row" }, count && act ? button({ class: "link", onclick: act }, label) : label),
    el("td", {}, number(count)));
  return el("div", { class: "card" }, el("h3", {}, "To look at"), el("table", { class: "counts" },
    line("Something forbidden", summary.forbidden.count, () => showOnly({ state: "forbidden" })),
    line("Undecided", undecided, () => showOnly({ state: "undecided" })),
    Object.keys(data.summary.arms).length > 1 ? line("Cases in which arms differ", cases.size, () => showOnly({ differ: "1" })) : null,
    line("Broken records", data.broken_count, showBroken)));
}

function showBroken() {
  byId("broken").open = true;
  byId("broken").scrollIntoView();
}

function drawFigures() {
  const summary = data.summary.overall;
  const total = summary.conversations;
  byId("figures").append(...[
    reachedCard(summary),
    goalCard(summary),
    progressCard(summary),
    card("Conversations", number(total), [
      `${decimal(summary.turns.mean)} user messages and ${decimal(summary.calls.mean)} calls each`,
      `${decimal(summary.wasted_calls.mean)} calls served no milestone, ${decimal(summary.repeated_calls.mean)} repeated an earlier one`,
    ]),
    attentionCard(summary),
    passCard(summary),
    rewardCard(summary),
    summary.agreement.mean === null ? null
      : card("Judge's votes agree", percent(summary.agreement.mean), [`over ${counted(summary.agreement.n, "verdict", "verdicts")}`]),
  ].filter(Boolean));
  const sources = [...new Set(data.conversations.flatMap(({ source }) => source || []))];
  byId("about").append([
    counted(total, "conversation", "conversations"),
    counted(data.graphs.length, "milestone graph", "milestone graphs"),
    sources.length === 1 ? sources[0] : sources.length ? counted(sources.length, "file", "files") : null,
  ].filter(Boolean).join(" · "));
}

function arms() {
  return Object.entries(data.summary.arms).flatMap(([arm, summary]) => [
    [arm, summary, { arm }],
    ...Object.entries(data.summary.arms_by_user[arm] || {})
      .map(([user, cell]) => [`${arm}, ${user} user`, cell, { arm, search: `${user} user` }]),
  ]);
}

function drawUseCases() {
  drawGroups("arms", "Arm", arms());
  drawGroups("use-cases", "Use case", Object.entries(data.summary.use_cases).map(([use, summary]) => [use, summary, { use }]));
}

// The figures of an arm, in a table of an experiment, lead to its cases.
function linkTables() {
  document.querySelectorAll(".tables table").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    for (const row of table.tBodies[0].rows) {
      const use = row.cells[0].textContent;
      if (use !== "all" && !Object.hasOwn(data.summary.use_cases, use)) continue;
      [...row.cells].forEach((cell, at) => {
        if (!Object.hasOwn(data.summary.arms, heads[at])) return;
        const only = { arm: heads[at], use: use === "all" ? "" : use };
        cell.replaceChildren(button({ class: "link", onclick: () => showOnly(only) }, cell.textContent));
      });
    }
  });
}

function drawGroups(id, title, cases) {
  if (!cases.length) return;
  const reached = cases.some(([, summary]) => summary.goal_reached) ? ["Customer's goal reached"] : [];
  const head = [title, "Conversations", ...reached, "Goal completion", "Progress rate", "Undecided", "Forbidden", "Calls", "Stops most at"];
  const row = ([name, summary, only]) => {
    const goal = goalFigure(summary);
    const progress = progressFigure(summary);
    const stop = Object.entries(summary.stops)[0];
    return el("tr", {},
      el("th", { scope: "row" }, button({ class: "link", onclick: () => showOnly(only) }, words(name))),
      el("td", {}, number(summary.conversations)),
      reached.map(() => reachedCell(summary.goal_reached)),
      el("td", {}, meter(goal.rate, goal.low, goal.high), ` ${goal.text} `,
        el("span", { class: "quiet" }, goal.low === null || goal.undecided ? "" : percentRange([goal.low, goal.high]))),
      el("td", {}, meter(progress.rate, progress.low, progress.high), ` ${progress.text}`),
      el("td", {}, number(summary.goal_at_most.count - summary.goal_at_least.count)),
      el("td", {}, number(summary.forbidden.count)),
      el("td", {}, decimal(summary.calls.mean)),
      el("td", {}, stop ? [words(stopWords(stop[0])), ` (${number(stop[1])})`] : "–"));
  };
  const panel = byId(id);
  panel.hidden = false;
  panel.open = cases.length <= 12 && !document.querySelector(".tables");
  panel.querySelector(".wide").append(el("table", { class: "cases" },
    el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, cases.map(row))));
}

// A group of which no scenario names a goal has none to reach.
function reachedCell(reached) {
  if (!reached) return el("td", {}, "–");
  const undecided = reached.unknown ? `, and ${number(reached.unknown)} undecided` : "";
  return el("td", {}, meter(reached.rate, reached.low, reached.high), ` ${percent(reached.rate)} `,
    el("span", { class: "quiet" }, `${number(reached.count)} of ${number(reached.n)}${undecided}`));
}

function drawNotices() {
  const unreviewed = data.graphs.filter((graph) => graph.reviewed === false);
  const notes = [];
  if (data.stopped !== null) {
    notes.push(["Stopped before all was done: ", words(data.stopped),
      `. ${counted(data.missing, "conversation is", "conversations are")} missing here.`]);
  }
  if (unreviewed.length) {
    notes.push(["Nobody has reviewed ",
      unreviewed.length === 1 ? ["the graph ", words(unreviewed[0].name)] : `${number(unreviewed.length)} of the graphs`,
      ": it was generated, and what is measured on it may not mean what it says."]);
  }
  const total = data.conversations.length;
  if (data.readable < total) {
    const which = data.readable ? "; those with something forbidden and those that missed the goal come first" : "";
    notes.push(`This page holds the words of ${number(data.readable)} of ${number(total)} conversations${which}. All are counted and listed.`);
  }
  if (data.stand_in !== null) byId("notices").append(el("p", { class: "notice stand-in" }, data.stand_in));
  byId("notices").append(...notes.map((note) => el("p", { class: "notice" }, note)));
}

function drawBroken() {
  if (!data.broken_count) return;
  const panel = byId("broken");
  panel.hidden = false;
  panel.querySelector("summary").append(`${counted(data.broken_count, "broken record", "broken records")}: not scored, in no figure`);
  const rest = data.broken_count - data.broken.length;
  panel.querySelector("ul").append(
    ...data.broken.map((one) => el("li", {}, words(one))),
    ...(rest ? [el("li", { class: "quiet" }, `and ${number(rest)} more, not listed here`)] : []));
}
