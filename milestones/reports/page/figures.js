// What stands above the charts: the verdict, and what a reader has to be warned of.

function drawVerdict() {
  byId("verdict").append(...data.verdict.map((sentence, at) => el("span", { class: at ? "quiet" : null }, at ? " " : "", sentence)));
  const { overall, arms } = data.summary;
  const scenarios = new Set(data.conversations.filter((row) => row.scenario).map((row) => row.base)).size;
  const sources = [...new Set(data.conversations.flatMap(({ source }) => source || []))];
  const facts = [
    formatCount(overall.conversations, "conversation", "conversations"),
    scenarios ? formatCount(scenarios, "scenario", "scenarios") : null,
    Object.keys(arms).length > 1 ? formatCount(Object.keys(arms).length, "arm", "arms") : null,
    sources.length === 1 ? sources[0] : sources.length ? formatCount(sources.length, "file", "files") : null,
    describeReward(overall.reward),
    overall.agreement.mean === null ? null : `${formatPercent(overall.agreement.mean)} of the judge's votes agree with its verdict`,
  ];
  byId("about").append(facts.filter(Boolean).join(" · "));
}

function describeReward(reward) {
  const n = reward ? reward.both + reward.only_a + reward.only_b + reward.neither : 0;
  if (!n) return null;
  return `agrees with the recorded reward in ${formatPercent((reward.both + reward.neither) / n)} `
    + `(goal only: ${formatNumber(reward.only_a)}, reward only: ${formatNumber(reward.only_b)})`;
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
