// Why the agent did what it did in one turn: its journeys, guidelines, tools, replies and model calls.

import { drawGraph } from "./graph.js";
import { requestsOf } from "./turns.js";

const ORIGINS = { code: "decided by code", relation: "by a relation", failure: "could not be judged" };
const VERDICTS = { missing: "argument missing", invalid: "argument invalid", confirm: "waits for a yes", declined: "not called" };
const opened = new Map();

const text = (words, kind) => (words ? el("p", { class: kind, dir: "auto" }, words) : null);
const tag = (words, kind) => el("span", { class: `tag ${kind || ""}` }, words);
const list = (items) => el("ul", { class: "items" }, items);
const item = (kind, ...children) => el("li", { class: `item ${kind}` }, children);
const title = (...children) => el("p", { class: "title" }, children);
const output = (words, name) => el("pre", { class: "output", dir: "auto", tabindex: 0, role: "group", "aria-label": name }, words);

function section(name, count, ...children) {
  return el("section", { class: "part" }, el("h2", {}, name, el("span", { class: "quiet" }, ` ${count}`)), children);
}

// Stays as open as it was when the turn is drawn again.
function fold(key, summary, ...children) {
  const remember = ({ target }) => opened.set(key, target.open);
  return el("details", { class: "fold-in", open: opened.get(key) || false, ontoggle: remember },
    el("summary", { "data-key": key }, summary), children);
}

export function argumentList(values) {
  const format = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const rows = Object.entries(values).map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, bdi(name)),
    el("td", {}, el("code", { dir: "auto" }, format(value)))));
  return rows.length ? el("table", { class: "arguments" }, rows) : null;
}

function prettify(words) {
  try {
    return JSON.stringify(JSON.parse(words), null, 2);
  } catch {
    return words;
  }
}

function seconds(value) {
  if (value < 1) return `${Math.round(1000 * value)} ms`;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
}

function describeRule(rule) {
  if (!rule) return null;  // a guideline of before the agent was edited
  const condition = el("span", { class: "quiet" }, rule.condition ? `when ${rule.condition}` : "always");
  return text([condition, rule.action ? `: ${rule.action}` : ""], "rule");
}

function guidelineItem(match, turn) {
  const rule = turn.agent.guidelines[match.guideline];
  const isFollowed = turn.reply?.followed.includes(match.guideline);
  const isAboutReply = match.active && turn.reply && rule?.action;
  return item(match.active ? "on" : "",
    title(el("b", {}, bdi(match.guideline)),
      match.score === null ? null : tag(`score ${match.score}`, match.active ? "good" : ""),
      ORIGINS[match.origin] ? tag(ORIGINS[match.origin]) : null,
      isAboutReply ? tag(isFollowed ? "followed" : "not in the reply", isFollowed ? "good" : "") : null),
    describeRule(rule), match.rationale.length > 1 ? text(match.rationale, "reason") : null,
    match.missing_information ? text(`Not known yet: ${match.missing_information}`, "reason") : null,
    match.remarks.map((remark) => text(remark, "reason warn")));
}

function guidelines(turn) {
  const [active, others] = [true, false].map((is) => turn.matches.filter((match) => match.active === is));
  if (!turn.matches.length) return null;
  const drawAll = (matches) => list(matches.map((match) => guidelineItem(match, turn)));
  return section("Guidelines", `${active.length} of ${turn.matches.length} active`,
    active.length ? drawAll(active) : text("None applies in this turn.", "quiet"),
    others.length ? fold(`others-${turn.number}`, `${others.length} not active`, drawAll(others)) : null);
}

function tools(turn) {
  const runs = turn.tools.map((run) => {
    const [mark, kind] = run.status === "success" ? ["ran", "good"] : ["failed", "bad"];
    return item("", title(el("code", {}, bdi(run.tool)), tag(mark, kind)), argumentList(run.arguments),
      output(prettify(run.result), `Result of ${run.tool}`));
  });
  const ran = new Set(turn.tools.map((run) => run.tool));
  const isNews = ({ kind, tool, problem }) => kind !== "declined" || !(ran.has(tool) || problem === "no call was proposed");
  // The same call is decided on again in each pass of a turn.
  const decisions = new Map(turn.decisions.map((verdict) => [JSON.stringify([verdict.tool, verdict.kind, verdict.arguments]), verdict]));
  const refusals = [...decisions.values()].filter((verdict) => verdict.kind in VERDICTS && isNews(verdict)).map((verdict) => item("",
    title(el("code", {}, bdi(verdict.tool)), tag(VERDICTS[verdict.kind], "warn")), argumentList(verdict.arguments),
    verdict.argument ? text([el("code", {}, bdi(verdict.argument)), ` ${verdict.description}`]) : null,
    text(verdict.problem, "reason")));
  const waiting = requestsOf(turn).map((call) => item("", title(el("code", {}, bdi(call.name)), tag("waits for an operator", "warn")),
    argumentList(call.args)));
  const all = [...runs, ...refusals, ...waiting];
  return all.length ? section("Tools", `${formatNumber(runs.length)} called`, list(all)) : null;
}

function graphs(agent, turn) {
  return agent.graphs.map((graph) => {
    const journey = turn?.journeys.find(({ journey: id }) => id === graph.journey);
    const progress = turn?.progress.get(graph.journey);
    const name = graph.journey ? `Journey ${graph.journey}` : "Milestones";
    const range = progress?.progress_range ? formatRange(progress.progress_range) : null;
    const far = joinFacts(journey?.state.replace("_", " "), range) || "not begun";
    const drawing = drawGraph(graph, progress, journey?.steps || [], name);
    if (journey || progress || !turn) return section(name, far, drawing);
    return el("section", { class: "part" }, fold(`graph-${graph.journey}`, `${name} ${far}`, drawing));
  });
}

function replies(turn) {
  const rejected = turn.revisions.filter(({ violations }) => violations.length);
  return rejected.length ? section("Replies that were revised", rejected.length, list(rejected.map((revision) =>
    item("", text(revision.candidate), revision.violations.map((violation) => text(violation, "reason warn")))))) : null;
}

function sources({ passages, reply, number }) {
  if (!passages.length) return null;
  return section("Knowledge", formatCount(passages.length, "passage", "passages"), fold(`passages-${number}`, "Found for this turn",
    list(passages.map((passage) => item("", title(el("b", {}, passage.id), bdi(passage.title),
      reply?.cited.includes(passage.id) ? tag("cited", "good") : null), text(passage.text))))));
}

function lines(name, rows) {
  const items = rows.map(([label, words]) => item("", el("b", {}, `${label} `), el("span", { dir: "auto" }, words)));
  return items.length ? section(name, "", list(items)) : null;
}

function formatTokens({ input_tokens: read, output_tokens: written }) {
  return written === undefined ? null : `${formatNumber(read || 0)} → ${formatNumber(written || 0)} tokens`;
}

const joinFacts = (...facts) => facts.filter(Boolean).join(" · ");

function steps(turn, showCall) {
  const calls = [...turn.calls.values()].sort((a, b) => a.started - b.started);
  if (!calls.length) return null;
  const first = turn.started / 1000;
  const last = Math.max(...calls.map((call) => call.started + (call.seconds ?? 0)), first + 0.001);
  return section("Model calls", "with prompts and answers", el("ul", { class: "calls" }, calls.map((call) => {
    const bar = el("span", { class: call.error ? "stretch bad" : "stretch" });
    bar.style.marginInlineStart = `${100 * Math.max(0, call.started - first) / (last - first)}%`;
    bar.style.width = `${100 * (call.seconds ?? last - call.started) / (last - first)}%`;
    const time = call.error ? "failed" : call.seconds === null ? "…" : seconds(call.seconds);
    return el("li", {}, button({ class: "call", "data-key": `call-${call.id}`, onclick: () => showCall(call) },
      el("span", {}, el("b", {}, call.step), el("span", { class: "quiet" }, ` ${call.about}`)),
      el("span", { class: "quiet" }, joinFacts(time, formatTokens(call))), el("span", { class: "clock", "aria-hidden": "true" }, bar)));
  })));
}

export function effort(turn) {
  const calls = [...turn.calls.values()];
  const tokens = calls.reduce((sum, call) => sum + (call.input_tokens || 0) + (call.output_tokens || 0), 0);
  return joinFacts(turn.ended ? seconds((turn.ended - turn.started) / 1000) : null, tokens ? `${formatNumber(tokens)} tokens` : null,
    calls.length ? formatCount(calls.length, "model call", "model calls") : null);
}

function head(name, facts, ...children) {
  return el("header", { class: "summary" }, el("h2", {}, name), el("p", { class: "quiet" }, facts), children);
}

export function describeTurn(turn, showCall) {
  const failed = turn.checks.filter((check) => !check.passed)
    .map((check) => [`${check.check} (${check.on})`, `failed: ${check.then}. ${check.reason}`]);
  const plan = (turn.plan?.steps || []).map((step) => [step.tool || "answer", step.description]);
  return [
    head(`Turn ${turn.number}`, effort(turn)), graphs(turn.agent, turn), guidelines(turn), tools(turn), lines("Checks", failed),
    lines("Plan", plan), lines("Moves", turn.moves), replies(turn), sources(turn), steps(turn, showCall),
  ];
}

export function describeAgent(agent) {
  const rules = Object.entries(agent.guidelines);
  const tools = Object.entries(agent.tools).map(([name, description]) => [name, description.split("\n")[0]]);
  return [
    head("What it can do", `${formatCount(rules.length, "guideline", "guidelines")} · ${formatCount(tools.length, "tool", "tools")}`),
    text(agent.profile, "part"), graphs(agent),
    section("Guidelines", "", list(rules.map(([id, rule]) => item("", title(el("b", {}, bdi(id))), describeRule(rule))))),
    lines("Tools", tools),
  ];
}

export function describeCall(call, close) {
  const block = (name, words) => (words ? [el("h3", {}, name), output(words, name)] : null);
  const time = call.seconds === null ? null : seconds(call.seconds);
  return [
    head(`${call.step} ${call.about}`, joinFacts(time, formatTokens(call)), button({ class: "plain", onclick: close }, "Close")),
    block("Error", call.error), block("Answer", prettify(call.answer || "")), call.prompt.map(([role, words]) => block(`Prompt: ${role}`, words)),
    call.schema ? el("details", {}, el("summary", {}, "Schema of the answer"), output(call.schema, "Schema")) : null,
  ];
}
