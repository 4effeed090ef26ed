// One conversation to read: its events by number, with the milestones at the events at which they were reached.

const LONG_RESULT = 500;

function collectMarks(row) {
  const marks = new Map();
  const add = (step, mark) => marks.set(step, [...(marks.get(step) || []), mark]);
  for (const { name, step } of row.reached) {
    if (step > 0) add(step, badge(name));
  }
  for (const { step, rule } of row.forbidden || []) {
    add(step, el("span", { class: "tag bad" }, "forbidden: ", bdi(rule)));
  }
  const tooEarly = row.too_early || {};
  for (const [step, names] of Object.entries(tooEarly)) {
    add(Number(step), el("span", { class: "tag warn" }, "too early: ", bdi(names.join(", ")), ` ${names.length > 1 ? "were" : "was"} not reached`));
  }
  for (const step of row.wasted_calls || []) {
    if (!tooEarly[step]) add(step, el("span", { class: "tag warn" }, "served no milestone"));
  }
  for (const step of row.repeated_calls || []) add(step, el("span", { class: "tag warn" }, "repeats an earlier call"));
  for (const step of row.unanswered_calls || []) add(step, el("span", { class: "tag warn" }, "no result recorded"));
  return marks;
}

function badge(name, kind) {
  return button({ class: `badge ${kind || ""}`, title: "Show it in the graph", onclick: () => showMilestone(name) }, kind ? "" : "◆ ", bdi(name));
}

// On a phone the reader covers the graph, so it closes when the graph is asked for.
function showMilestone(name, number = graphNumber) {
  const covers = getComputedStyle(byId("reader")).position === "fixed";
  const isOther = number !== graphNumber;
  navigate({ n: name, ...(isOther ? { g: data.graphs[number].name } : {}), ...(covers || isOther ? { c: null } : {}) });
  byId("bench").scrollIntoView({ block: "start" });
}

function prose(text, kind) {
  return el("div", { class: kind, dir: "auto" }, text);
}

function argumentTable(event, invented) {
  const isOf = (path, name) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);
  if (!event.arguments.length) return el("p", { class: "quiet" }, "no arguments");
  return el("table", { class: "arguments" }, event.arguments.map(([name, value]) => {
    const paths = invented.filter((path) => isOf(path, name));
    const what = paths.length === 1 && paths[0] === name ? "" : ` ${paths.join(", ")}`;
    return el("tr", { class: paths.length ? "invented" : null }, el("th", { scope: "row" }, bdi(name)),
      el("td", {}, el("pre", { dir: "auto" }, value),
        paths.length ? el("span", { class: "tag warn", title: "Nobody said this value before the call" }, `possibly invented${what}`) : null));
  }));
}

function callBody(event, row, step) {
  if (event.malformed !== undefined) {
    return [el("span", { class: "tag bad" }, "arguments that cannot be read"), el("pre", { class: "output", dir: "auto" }, event.malformed)];
  }
  return [argumentTable(event, (row.invented_arguments || {})[step] || [])];
}

function resultBody({ text }) {
  const output = el("pre", { class: "output", dir: "auto" }, text);
  return text.length <= LONG_RESULT ? [output]
    : [el("details", { class: "long" }, el("summary", {}, bdi(`${text.slice(0, 120).replace(/\s+/g, " ")}…`)), output)];
}

function eventParts(event, row, step) {
  if (event.speaker) return { kind: event.speaker, head: event.speaker, body: [prose(event.text, "said")] };
  if (event.arguments) {
    return { kind: "call", head: [event.by === "user" ? "user calls " : "calls ", el("code", {}, bdi(event.tool))], body: callBody(event, row, step) };
  }
  const of = event.call ? button({ class: "link", onclick: () => goToEvent(event.call) }, `of call ${event.call}`) : "of a call that is not recorded";
  return {
    kind: event.failed ? "result failed" : "result",
    head: ["result ", event.tool ? [el("code", {}, bdi(event.tool)), " "] : null, of,
      event.failed ? el("span", { class: "tag bad" }, "failed") : null],
    body: resultBody(event),
  };
}

function eventItem(event, row, step, marks, isBefore) {
  const { kind, head, body } = eventParts(event, row, step);
  const isForbidden = (row.forbidden || []).some((one) => one.step === step);
  const notes = event.turn || [];
  const judged = row.reached.filter((one) => one.step === step).map(({ name }) => judgeNote(name, row));
  const classes = `event ${kind}${isForbidden ? " forbidden" : ""}${isBefore ? " before" : ""}`;
  return el("li", { class: classes, id: `event-${step}`, "data-step": step, tabindex: -1 },
    el("span", { class: "step", "aria-hidden": "true" }, step),
    el("div", { class: "body" }, el("div", { class: "speaker" }, head), body,
      marks ? el("div", { class: "marks" }, marks) : null, judged, notes.map((note) => turnNote(note, notes.length))));
}

function goToEvent(step) {
  const event = byId(`event-${step}`);
  if (!event) return;
  event.scrollIntoView({ block: "center" });
  event.focus({ preventScroll: true });
}

function nameList(label, names) {
  if (!names || !names.length) return null;
  return el("p", {}, el("span", { class: "quiet" }, `${label} `), names.map((name) => badge(name, "other")));
}

// What nothing decides matters where the goal or the progress depends on it.
function isRange(row) {
  return row.status === "undecided" || (row.progress_range !== null && row.progress_range[0] !== row.progress_range[1]);
}

function milestoneSection(row) {
  const steps = row.reached.filter(({ step }) => step > 0);
  const stop = row.stopped_at;
  return el("div", { class: "milestones" },
    el("p", {}, el("span", { class: "quiet" }, "Reached "), steps.length ? steps.map(({ name, step }) => button({
      class: "badge", onclick: () => goToEvent(Math.min(step, row.events)), title: step > row.events ? "After the conversation" : `Go to event ${step}`,
    }, el("b", {}, step > row.events ? "end" : step), " ", bdi(name))) : "nothing but the start"),
    stop === "End" ? el("p", { class: "bad" },
      `It reached the end, but ${row.forbidden ? "something forbidden happened" : "the world says that it was no success"}.`)
      : stop === null ? null : el("p", {}, el("span", { class: "quiet" }, "Stopped at "), badge(stop, "stopping")),
    row.status === "missed" ? nameList("Could have come next", row.frontier) : null,
    isRange(row) ? nameList("Nothing decides", row.undecided) : null);
}

// The words on milestones that were reached stand at their events.
function judgeSection(row) {
  const shown = new Set(row.reached.filter(({ step }) => step > 0 && step <= row.events).map(({ name }) => name));
  const names = Object.keys({ ...row.reasons, ...row.agreement }).filter((name) => !shown.has(name));
  if (!names.length) return null;
  return el("details", { class: "judge" }, el("summary", {}, `What the judge said of ${formatCount(names.length, "other milestone", "other milestones")}`),
    names.map((name) => judgeNote(name, row)));
}

// Return what was expected of an answer, or else the milestones: by kind and text, the state and the event.
function collectChecks(index) {
  const row = data.conversations[index];
  const transcript = readEmbedded(`words-${index}`);
  const { milestones } = data.graphs[row.graph];
  const { active, calls = [], says = [], never = [] } = row.expected || {};
  const checks = new Map();
  const add = (kind, text, state, step) => checks.set(JSON.stringify([kind, text]), [state, step]);
  const addMilestone = (kind, text, name, otherwise) => {
    const step = row.reached.find((one) => one.name === name)?.step;
    add(kind, text, step !== undefined ? "completed" : (row.undecided || []).includes(name) ? "undecided" : otherwise, step);
  };
  const findMilestone = (beginning) => milestones.find((one) => one.name.startsWith(beginning))?.name;
  const rules = [...(row.forbidden || [])];
  if (active !== undefined) {
    const activeText = /^active: (.*)$/.exec(transcript?.events.at(-1)?.text || "")?.[1];
    const activeIds = activeText === undefined || activeText === "none" ? [] : activeText.split(", ");
    active.forEach((id) => add("active", id, activeText === undefined ? row.status : activeIds.includes(id) ? "completed" : "missed"));
    if (!active.length) add("active", "none", row.status);
    activeIds.filter((id) => !active.includes(id)).forEach((id) => add("active, not expected", id, "missed"));
  }
  calls.forEach((call, at) => {
    const given = Object.entries(call.arguments || {}).map(([name, rule]) => [name, JSON.stringify(rule)]);
    addMilestone("calls", callText(call.tool, given), findMilestone(`Call ${at + 1}: `), "missed");
  });
  says.forEach((one, at) => addMilestone("says", one.criterion ?? `/${one.pattern}/`, findMilestone(`Says ${at + 1}: `), "missed"));
  for (const pattern of never) {
    const at = rules.findIndex(({ rule }) => rule.endsWith(` says /${pattern}/`));
    const [broken] = at < 0 ? [] : rules.splice(at, 1);
    add("never says", `/${pattern}/`, broken ? "missed" : "completed", broken?.step);
  }
  if (row.expected === undefined) {
    for (const { name, type } of milestones) if (name !== "Start" && type !== "Aggregator") addMilestone("", name, name, "nothing");
  }
  rules.forEach(({ rule, step }) => add("forbidden", rule, "missed", step));
  return { row, index, checks, calls: (transcript?.events || []).slice(transcript?.history || 0).filter((event) => event.arguments) };
}

function callText(tool, given) {
  return `${tool}(${given.map(([name, value]) => `${name}: ${value}`).join(", ")})`;
}

// What was expected beside what was done, in each arm.
function comparisonTable(row, index) {
  if (row.sameCase.length < 2 && row.expected === undefined) return null;
  const arms = row.sameCase.map(collectChecks);
  const cell = ([state, step] = [], isOpen) => el("td", { class: state },
    isOpen && step ? button({ class: "link", onclick: () => goToEvent(step) }, `${STATE_NAMES[state][0]} event ${step}`) : state ? STATE_NAMES[state][0] : "");
  const line = (kind, text, cells) => el("tr", {}, text
    ? [kind && el("th", { scope: "row" }, kind), el("td", { dir: "auto", colspan: kind ? null : 2 }, bdi(text))] : el("th", { scope: "row", colspan: 2 }, kind), cells);
  const keys = [...new Set(arms.flatMap((arm) => [...arm.checks].flatMap(([key, [state]]) => (state === "nothing" ? [] : [key]))))];
  const allowed = row.expected?.may_call || [];
  const isOpen = byId("reader").querySelector(".comparison")?.open ?? row.expected !== undefined;
  const title = row.expected ? "Expected and done" : `Milestones in ${row.sameCase.length} arms`;
  return el("details", { class: "judge comparison", open: isOpen }, el("summary", {}, title),
    el("div", { class: "wide" }, el("table", { class: "arguments compared" },
    el("thead", {}, el("tr", {}, el("td", { colspan: 2 }),
      row.sameCase.length > 1 ? armButtons(row).map((one) => el("th", { scope: "col" }, one)) : el("th", { scope: "col" }, "Done"))),
    el("tbody", {},
      keys.map((key) => line(...JSON.parse(key), arms.map((arm) => cell(arm.checks.get(key), arm.index === index)))),
      allowed.length ? line("may call", allowed.join(", "), null) : null,
      row.expected && arms.some(({ calls }) => calls.length) ? line("called", "", arms.map(({ calls }) => el("td", {}, calls.length
        ? calls.map((call) => el("div", {}, bdi(callText(call.tool, call.arguments))))
        : "nothing"))) : null,
      line("output tokens", "", arms.map((arm) => el("td", {}, arm.row.output_tokens === undefined ? "–" : formatNumber(arm.row.output_tokens))))))));
}

function twinLine(row) {
  if (row.twin === undefined) return null;
  const index = data.conversations.findIndex((one) => one.scenario === row.twin && one.arm === row.arm && one.run === row.run);
  return el("p", { class: "twin" }, el("span", { class: "quiet" }, "Twin, which differs in one thing: "),
    index < 0 ? bdi(row.twin) : button({ class: "link", onclick: () => navigate({ c: index }) }, bdi(row.twin)));
}

// A filled blueprint: each query beside its answer.
function blueprintTable(value, note = () => null) {
  if (value === null || typeof value !== "object") return value === null ? el("span", { class: "quiet" }, "–") : bdi(String(value));
  const entries = Object.entries(value);
  if (!entries.length) return el("span", { class: "quiet" }, "none");
  if (Array.isArray(value)) return value.map((one) => el("div", {}, blueprintTable(one)));
  return el("table", { class: "arguments filled" }, entries.map(([name, one]) => el("tr", {},
    el("th", { scope: "row" }, bdi(name), note(name, one)), el("td", { dir: "auto" }, blueprintTable(one)))));
}

function answerBody(text, row) {
  const note = (id, answer) => {
    if (row.expected?.active === undefined || typeof answer?.should_apply !== "boolean") return null;
    const isExpected = row.expected.active.includes(id);
    return el("span", { class: `tag ${isExpected === answer.should_apply ? "" : "bad"}` }, isExpected ? "expected active" : "not expected");
  };
  try {
    return blueprintTable(JSON.parse(text), note);
  } catch (error) { // words, or the beginning of an answer that was cut
    return el("pre", { class: "output", dir: "auto" }, text);
  }
}

function answerSection(transcript, row) {
  const answers = transcript?.answers || [];
  if (!answers.length) return null;
  const isOpen = byId("reader").querySelector(".answers")?.open; // the next conversation is read like the last
  return el("details", { class: "judge answers", open: Boolean(isOpen) },
    el("summary", {}, `What the models answered, step by step: ${formatCount(answers.length, "answer", "answers")}`),
    answers.map(({ step, text }) => el("div", { class: "answer" }, el("h3", {}, bdi(step)), answerBody(text, row))));
}

function readerHeader(index, row) {
  const [state, mark, spoken] = getLeadingState(row);
  const end = describeEnd(row);
  const cases = findFittingCases().map(([first]) => data.conversations[first].sameCase);
  const place = cases.indexOf(row.sameCase);
  const inThisArm = (all) => all.find((one) => data.conversations[one].arm === row.arm) ?? all[0];
  const turn = (to, text) => button({ class: "plain", disabled: !cases[to], onclick: () => navigate({ c: inThisArm(cases[to]) }) }, text);
  const facts = [
    row.use_case, describeArm(row), row.task !== undefined && row.task !== row.scenario ? `task ${row.task}` : null, row.source,
    row.record !== undefined ? `record ${row.record}` : null,
    data.graphs.length > 1 && data.graphs[row.graph].name !== row.scenario ? `graph ${data.graphs[row.graph].name}` : null,
    row.reward !== undefined ? `reward ${row.reward}` : null,
    row.error,
  ].filter(Boolean);
  return el("header", {},
    el("div", { class: "bar" }, el("h2", {}, bdi(getName(row, index))),
      el("span", { class: "turning" }, turn(place - 1, "‹ Previous"), turn(place + 1, "Next ›"),
        button({ class: "plain", id: "close", onclick: () => navigate({ c: null }) }, "Close"))),
    el("p", { class: "verdict" }, el("span", { class: `pill ${state}` }, bdi(`${mark} ${spoken}`)),
      end === null ? null : [" ", el("span", { class: `pill ${end === "End by another road" ? "undecided" : row.status}` }, end)],
      row.progress_range ? [el("span", { class: "label" }, " progress "), meter(row.progress_range[0], ...row.progress_range), " ",
        el("b", {}, formatRange(row.progress_range))] : null),
    row.probes === undefined ? null : el("p", { dir: "auto" }, bdi(row.probes)),
    el("p", { class: "quiet facts" }, facts.map((fact, at) => [at ? " · " : "", bdi(fact)]).flat()));
}

function drawReader(index) {
  const reader = byId("reader");
  document.body.classList.toggle("reading", index !== null);
  if (index === null) return reader.replaceChildren();
  const row = data.conversations[index];
  const transcript = readEmbedded(`words-${index}`);
  const marks = collectMarks(row);
  const instructions = transcript && transcript.instructions !== undefined ? data.instructions[transcript.instructions] : null;
  reader.replaceChildren(
    ...[readerHeader(index, row), twinLine(row), comparisonTable(row, index), row.expected ? null : milestoneSection(row), judgeSection(row),
      answerSection(transcript, row)].filter(Boolean),
    ...(instructions === null ? [] : [el("details", { class: "instructions" }, el("summary", {}, "Instructions of the agent"), prose(instructions, "said"))]),
    transcript
      ? el("ol", { class: "events" }, transcript.events.map((event, at) =>
        eventItem(event, row, at + 1, marks.get(at + 1), at < (transcript.history || 0))))
      : el("p", { class: "notice" }, "The words of this conversation are not in this page",
        data.elsewhere.length ? [", but in ", bdi(data.elsewhere.join(", "))] : null, "."));
}
