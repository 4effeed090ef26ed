// The guidelines: how often each was followed and broken, and at a reply, what the agent went by.

const GUIDELINE_COLUMNS = Object.entries({ guideline: "Guideline", arm: "Arm", turns: "Active", followed: "Followed", broken: "Broken", score: "Score" });
const OUTCOMES = { followed: ["✓", "completed"], broken: ["✕", "missed"] };

// Guidelines with the rows of their arms: by name, the least score first, or the highest count.
function sortGuidelines(order) {
  const groups = [...Map.groupBy(data.guidelines, (one) => one.guideline).values()];
  const sum = (rows, name) => rows.reduce((total, row) => total + (row[name] ?? 0), 0);
  return groups.sort((a, b) => order === "guideline" ? a[0].guideline.localeCompare(b[0].guideline)
    : order === "score" ? sum(a, "score") / a.length - sum(b, "score") / b.length
      : sum(b, order) - sum(a, order) || sum(b, "turns") - sum(a, "turns"));
}

function guidelineLine(one, columns, at, rows) {
  const only = { ...onlyArm(one.arm), at: `broken:${one.guideline}` };
  const cells = {
    guideline: () => at ? null : el("th", { scope: "rowgroup", rowspan: rows.length }, wrappable(one.guideline)),
    arm: () => el("td", { class: "arm" }, bdi(one.arm)),
    turns: () => el("td", { class: "number" }, formatNumber(one.turns)),
    followed: () => el("td", { class: "number" }, one.checked ? formatNumber(one.followed) : "–"),
    broken: () => el("td", { class: "number" }, one.broken ? button({ class: "link", onclick: () => showOnly(only),
      "aria-label": `${one.guideline}, ${one.arm}: broken in ${formatCount(one.broken, "turn", "turns")}` }, formatNumber(one.broken)) : one.broken ?? "–"),
    score: () => el("td", { class: "number" }, one.score === null ? "–" : one.score.toFixed(1)),
  };
  const why = one.reasons.map(({ text, count }) => el("div", { dir: "auto" }, bdi(text), el("span", { class: "quiet" }, count > 1 ? ` ×${count}` : "")));
  return el("tr", {}, columns.map(([name]) => cells[name]()).filter(Boolean), el("td", { class: "why" }, why));
}

function drawGuidelines(order = "broken") {
  const all = data.guidelines;
  const section = byId("guidelines");
  section.hidden = !all.length;
  if (!all.length) return;
  const arms = new Set(all.map(({ arm }) => arm));
  const columns = GUIDELINE_COLUMNS.filter(([name]) => name !== "arm" || arms.size > 1);
  const groups = sortGuidelines(order).map((rows) => el("tbody", {}, rows.map((one, at) => guidelineLine(one, columns, at, rows))));
  const direction = ["guideline", "score"].includes(order) ? "ascending" : "descending";
  const heads = columns.map(([name, label]) => el("th", {
    scope: "col", "aria-sort": name === order ? direction : null, class: ["guideline", "arm"].includes(name) ? name : "number",
  }, name === "arm" ? label : button({ class: "sorter", onclick: () => {
    drawGuidelines(name);
    section.querySelector("[aria-sort] button").focus(); // it was drawn anew
  } }, label)));
  const broken = new Set(all.filter((one) => one.broken).map((one) => one.guideline));
  const none = all.some(({ checked }) => checked) ? "None was broken." : "No reply was checked against them.";
  const result = broken.size ? `${formatCount(broken.size, "guideline was", "guidelines were")} broken.` : none;
  const facts = `Turns in which each was active, followed and broken. ${result}`;
  section.replaceChildren(el("header", { class: "figcaption" }, el("h2", {}, "Guidelines"), el("p", { class: "quiet facts" }, facts)),
    el("div", { class: "wide" }, el("table", { class: "cases" },
      el("thead", {}, el("tr", {}, heads, el("th", { scope: "col", class: "why" }, "Why it was broken"))), groups)),
    ...foldLines(groups, groups.slice(Math.ceil(SHOWN_ROWS / Math.min(3, arms.size))), "guidelines"));
}

function codeList(label, names) {
  if (!names?.length) return null;
  return el("p", {}, el("span", { class: "quiet" }, `${label} `), names.map((name, at) => [at ? ", " : "", el("code", {}, bdi(name))]));
}

function activeGuideline({ id, score, rationale, origin, outcome, reason }) {
  const [mark, state] = OUTCOMES[outcome] || ["·", "nothing"];
  const by = { code: "decided by code", relation: "follows from another" }[origin];
  return el("li", { class: state },
    el("span", { class: "mark", role: "img", "aria-label": outcome || "not checked" }, mark),
    el("div", {}, bdi(id, { class: "id" }),
      el("span", { class: "quiet" }, [outcome, score !== undefined && `score ${score}`, by].filter(Boolean).map((text) => ` · ${text}`)),
      reason ? el("div", { class: outcome === "broken" ? "bad" : null, dir: "auto" }, bdi(reason)) : null,
      rationale ? el("div", { class: "quiet", dir: "auto" }, bdi(rationale)) : null));
}

const REFUSED = { missing: "refused, an argument is missing", invalid: "refused, invalid", declined: "declined" };
const VERDICTS = { ...REFUSED, run: "ran", confirm: "waits for a confirmation" };

function verdictLine({ tool, kind, argument, problem, rationale }) {
  return el("p", {}, el("code", {}, bdi(tool)), " ", el("b", { class: REFUSED[kind] && "bad" }, VERDICTS[kind] || kind),
    argument ? [" · ", el("code", {}, bdi(argument))] : null, problem ? [": ", bdi(problem)] : null,
    rationale ? el("span", { class: "quiet" }, " · ", bdi(rationale)) : null);
}

// One line for what an agent went by in a turn, which opens to all of it.
function turnNote(note, count) {
  const guidelines = note.guidelines || [];
  const broken = guidelines.filter(({ outcome }) => outcome === "broken");
  const verdicts = note.verdicts || [];
  const refused = verdicts.filter(({ kind }) => REFUSED[kind]);
  const active = guidelines.length;
  const parts = [
    count > 1 ? note.agent : null, `${active} of ${active + (note.inactive || 0)} guidelines active`,
    note.unlocked?.length ? formatCount(note.unlocked.length, "tool unlocked", "tools unlocked") : null,
    refused.length ? formatCount(refused.length, "call refused", "calls refused") : null,
    note.confirmed?.length ? formatCount(note.confirmed.length, "call confirmed", "calls confirmed") : null,
    note.revisions > 1 ? `${note.revisions} drafts` : null,
  ].filter(Boolean).join(" · ");
  return el("details", { class: "turn" },
    el("summary", {}, bdi(parts), " ",
      broken.length ? el("span", { class: "tag bad" }, "broken: ", bdi(broken.map(({ id }) => id).join(", "))) : null),
    guidelines.length ? el("ul", {}, guidelines.map(activeGuideline)) : null,
    codeList("Unlocked", note.unlocked), verdicts.map(verdictLine), codeList("The customer agreed to", note.confirmed),
    (note.violations || []).map((text) => el("p", { class: "bad", dir: "auto" }, bdi(text))));
}

function judgeNote(name, row) {
  const agreement = row.agreement?.[name];
  const reason = row.reasons?.[name];
  if (agreement === undefined && reason === undefined) return null;
  const votes = (agreement ?? 1) < 1 ? ` (${formatPercent(agreement)} of the votes agree)` : "";
  return el("p", { class: "judged", dir: "auto" }, el("span", { class: "quiet" }, "The judge on ", bdi(name), `${votes}: `), bdi(reason ?? "no words"));
}
