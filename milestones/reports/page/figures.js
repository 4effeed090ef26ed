// The figures over all conversations: cards, the tables' links, and what a reader has to be warned of.

function card(name, value, line, ...bar) {
  return el("div", { class: "card" }, el("h3", {}, name), el("p", { class: "value" }, value), bar.length ? meter(...bar) : null,
    el("p", { class: "quiet" }, line));
}

// The decided conversations need not be like the undecided: where there are some, a figure is a range over all.
function between(least, most, decided) {
  if (least === most) return { text: formatPercent(decided.rate), rate: decided.rate, low: decided.low, high: decided.high };
  return { text: `${formatPercent(least)} to ${formatPercent(most)}`, rate: least, low: least, high: most };
}

function goalFigure(summary) {
  return between(summary.goal_at_least.rate, summary.goal_at_most.rate, summary.goal_completion);
}

// For one arm, or for conversations of no arm: over several arms together, figures would mean nothing.
function figureCards(summary) {
  const { goal_reached: reached, goal_at_least: least, goal_completion: decided, progress_rate: rate } = summary;
  const goal = goalFigure(summary);
  const progress = between(summary.progress_at_least.mean, summary.progress_at_most.mean, { ...rate, rate: rate.mean });
  const of = ({ count, n }, unknown) => `${formatNumber(count)} of ${formatNumber(n)}${unknown ? `, and ${formatNumber(unknown)} undecided` : ""}`;
  return [
    reached && card("Customer's goal reached", formatPercent(reached.rate), of(reached, reached.unknown), reached.rate, reached.low, reached.high),
    card("Goal completion", goal.text, of(least, decided.unknown - summary.nothing_to_complete), goal.rate, goal.low, goal.high),
    card("Progress rate", progress.text, "mean, over the way to the end", progress.rate, progress.low, progress.high),
  ];
}

function rewardCard({ reward }) {
  const n = reward ? reward.both + reward.only_a + reward.only_b + reward.neither : 0;
  return n ? card("Agrees with the reward", formatPercent((reward.both + reward.neither) / n),
    `both ${formatNumber(reward.both)}, neither ${formatNumber(reward.neither)}, goal only ${formatNumber(reward.only_a)}, reward only ${formatNumber(reward.only_b)}`) : null;
}

function drawFigures() {
  const { overall, arms } = data.summary;
  byId("figures").append(...[
    ...(Object.keys(arms).length > 1 ? [] : figureCards(overall)),
    rewardCard(overall),
    overall.agreement.mean === null ? null
      : card("Judge's votes agree", formatPercent(overall.agreement.mean), `over ${formatCount(overall.agreement.n, "verdict", "verdicts")}`),
  ].filter(Boolean));
  const sources = [...new Set(data.conversations.flatMap(({ source }) => source || []))];
  byId("about").append([
    formatCount(overall.conversations, "conversation", "conversations"),
    sources.length === 1 ? sources[0] : sources.length ? formatCount(sources.length, "file", "files") : null,
  ].filter(Boolean).join(" · "));
}

// The figures of an arm, by use case or kind of user, lead to its conversations.
function linkTables() {
  const users = new Set(data.conversations.map((row) => row.user));
  document.querySelectorAll(".tables table").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    for (const row of table.tBodies[0].rows) {
      const name = row.cells[0].textContent;
      const only = name === "all" ? {} : Object.hasOwn(data.summary.use_cases, name) ? { use: name }
        : users.has(name) ? { search: `${name} user` } : null;
      [...row.cells].forEach((cell, at) => {
        const isOfArm = Object.hasOwn(data.summary.arms, heads[at]);
        if (only === null || (!isOfArm && heads[at] !== "recorded") || !/\d/.test(cell.textContent)) return;
        cell.replaceChildren(button({ class: "link", onclick: () => showOnly(isOfArm ? { arm: heads[at], ...only } : only) }, cell.textContent));
      });
    }
  });
}

function drawNotices() {
  const unreviewed = data.graphs.filter((graph) => graph.reviewed === false);
  const notes = [];
  if (data.stopped !== null) {
    notes.push(["Stopped before all was done: ", bdi(data.stopped),
      `. ${formatCount(data.missing, "conversation is", "conversations are")} missing here.`]);
  }
  if (unreviewed.length) {
    notes.push(["Nobody has reviewed ",
      unreviewed.length === 1 ? ["the graph ", bdi(unreviewed[0].name)] : `${formatNumber(unreviewed.length)} of the graphs`,
      ": it was generated, and what is measured on it may not mean what it says."]);
  }
  const total = data.conversations.length;
  if (data.readable < total) {
    notes.push([`This page holds the words of ${formatNumber(data.readable)} of ${formatNumber(total)} conversations`,
      data.readable ? ", first of those in which something forbidden happened or the goal was missed" : "", ". All are counted and listed.",
      data.elsewhere.length ? [" There was no room for the others; all are in ", bdi(data.elsewhere.join(", ")), "."] : null]);
  }
  if (data.stand_in !== null) byId("notices").append(el("p", { class: "notice stand-in" }, data.stand_in));
  byId("notices").append(...notes.map((note) => el("p", { class: "notice" }, note)));
}

function drawBroken() {
  if (!data.broken.length) return;
  const panel = byId("broken");
  panel.hidden = false;
  panel.querySelector("summary").append(`${formatCount(data.broken.length, "broken record", "broken records")}: not scored, in no figure`);
  panel.querySelector("ul").append(...data.broken.map((one) => el("li", {}, bdi(one))));
}
