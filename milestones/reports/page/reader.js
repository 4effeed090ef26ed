// One conversation to read: its events by number, with the milestones at the events at which they were reached.

const LONG_RESULT = 500;

// JSON with line breaks and indents; every other sign stays as it was recorded.
function indented(text) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g) || [];
  return tokens.map((token, index) => {
    if (token === "{" || token === "[") {
      depth += 1;
      return /^[}\]]$/.test(tokens[index + 1] || "") ? token : token + line();
    }
    if (token === "}" || token === "]") {
      depth -= 1;
      return /^[{[]$/.test(tokens[index - 1] || "") ? token : line() + token;
    }
    return token === "," ? token + line() : token === ":" ? ": " : token;
  }).join("");
}

function asWritten(text) {
  if (!/^\s*[{[]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch (error) {
    return text;
  }
  return indented(text);
}

function marksOf(row) {
  const marks = new Map();
  const add = (step, mark) => marks.set(step, [...(marks.get(step) || []), mark]);
  for (const { name, step } of row.reached) {
    if (step > 0) add(step, badge(name));
  }
  for (const { step, rule } of row.forbidden || []) {
    add(step, el("span", { class: "tag bad" }, "forbidden: ", words(rule)));
  }
  for (const step of row.wasted_calls || []) add(step, el("span", { class: "tag warn" }, "served no milestone"));
  for (const step of row.repeated_calls || []) add(step, el("span", { class: "tag warn" }, "repeats an earlier call"));
  for (const step of row.unanswered_calls || []) add(step, el("span", { class: "tag warn" }, "no result recorded"));
  return marks;
}

function badge(name, kind) {
  return button({ class: `badge ${kind || ""}`, title: "Show it in the graph", onclick: () => showMilestone(name) }, kind ? "" : "◆ ", words(name));
}

// On a phone the reader covers the graph, so it closes when the graph is asked for.
function showMilestone(name) {
  const covers = getComputedStyle(byId("reader")).position === "fixed";
  go(covers ? { n: name, c: null } : { n: name });
  byId("canvas").scrollIntoView({ block: "nearest" });
}

function prose(text, kind) {
  return el("div", { class: kind, dir: "auto" }, cutText(text), cutNote(text));
}

function argumentsOf(event, invented) {
  const isOf = (path, name) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);
  if (!event.arguments.length) return el("p", { class: "quiet" }, "no arguments");
  return el("table", { class: "arguments" }, event.arguments.map(([name, value]) => {
    const paths = invented.filter((path) => isOf(path, name));
    const what = paths.length === 1 && paths[0] === name ? "" : ` ${paths.join(", ")}`;
    return el("tr", { class: paths.length ? "invented" : null }, el("th", { scope: "row" }, words(name)),
      el("td", {}, el("pre", { dir: "auto" }, cutText(value)), cutNote(value),
        paths.length ? el("span", { class: "tag warn", title: "Nobody said this value before the call" }, `possibly invented${what}`) : null));
  }));
}

function callBody(event, row, step) {
  if (event.malformed !== undefined) {
    return [el("span", { class: "tag bad" }, "arguments that cannot be read"),
      el("pre", { class: "output", dir: "auto" }, cutText(event.malformed)), cutNote(event.malformed)];
  }
  return [argumentsOf(event, (row.invented_arguments || {})[step] || [])];
}

function resultBody(event) {
  const text = cutText(event.text);
  const output = el("pre", { class: "output", dir: "auto" }, asWritten(text));
  if (text.length <= LONG_RESULT && typeof event.text === "string") return [output];
  const size = text.length + (typeof event.text === "string" ? 0 : event.text[1]);
  return [el("details", { class: "long" },
    el("summary", {}, words(`${text.slice(0, 120).replace(/\s+/g, " ")}…`), el("span", { class: "quiet" }, ` ${number(size)} characters`)),
    output, cutNote(event.text))];
}

function eventParts(event, row, step) {
  if (event.speaker) return { kind: event.speaker, head: event.speaker, body: [prose(event.text, "said")] };
  if (event.arguments) {
    return { kind: "call", head: ["calls ", el("code", {}, words(event.tool))], body: callBody(event, row, step) };
  }
  const of = event.call ? button({ class: "link", onclick: () => goToEvent(event.call) }, `of call ${event.call}`) : "of a call that is not recorded";
  return {
    kind: event.failed ? "result failed" : "result",
    head: ["result ", event.tool ? [el("code", {}, words(event.tool)), " "] : null, of,
      event.failed ? el("span", { class: "tag bad" }, "failed") : null],
    body: resultBody(event),
  };
}

function eventOf(event, row, step, marks, isBefore) {
  const { kind, head, body } = eventParts(event, row, step);
  const isForbidden = (row.forbidden || []).some((one) => one.step === step);
  return el("li", { class: `event ${kind}${isForbidden ? " forbidden" : ""}${isBefore ? " before" : ""}`, id: `event-${step}`, "data-step": step, tabindex: -1 },
    el("span", { class: "step", "aria-hidden": "true" }, step),
    el("div", { class: "body" }, el("div", { class: "speaker" }, head), body,
      marks ? el("div", { class: "marks" }, marks) : null));
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

function milestonesOf(row) {
  const steps = row.reached.filter(({ step }) => step > 0);
  const stop = row.stopped_at;
  return el("div", { class: "milestones" },
    el("p", {}, el("span", { class: "quiet" }, "Reached "), steps.length ? steps.map(({ name, step }) => button({
      class: "badge", onclick: () => goToEvent(step), title: `Go to event ${step}`,
    }, el("b", {}, step), " ", words(name))) : "nothing but the start"),
    stop === "End" ? el("p", { class: "bad" }, "It reached the end, but something forbidden happened.")
      : stop === null ? null : el("p", {}, el("span", { class: "quiet" }, "Stopped at "), badge(stop, "stopping")),
    row.status === "missed" ? nameList("Could have come next", row.frontier) : null,
    isRange(row) ? nameList("Nothing decides", row.undecided) : null);
}

function judgeOf(row) {
  const [reasons, agreement] = [row.reasons || {}, row.agreement || {}];
  const names = Object.keys({ ...reasons, ...agreement });
  if (!names.length) return null;
  return el("details", { class: "judge" }, el("summary", {}, `What the judge said of ${counted(names.length, "milestone", "milestones")}`),
    el("dl", {}, names.flatMap((name) => [
      el("dt", {}, words(name), agreement[name] === undefined ? null : el("span", { class: "quiet" }, ` ${percent(agreement[name])} of the votes agree`)),
      el("dd", { dir: "auto" }, reasons[name]),
    ])));
}

// What the answer had to be, in the words of the suite.
function expectedOf(row) {
  if (row.expected === undefined) return null;
  const { active, calls = [], may_call: allowed = [], says = [], never = [] } = row.expected;
  const call = ({ tool, arguments: given = {} }) => `${tool}(${Object.entries(given).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ")})`;
  const lines = active !== undefined ? [["active, and no other", active]] : [
    ["calls", calls.map(call)], ["may call", allowed],
    ["says", says.map((one) => one.criterion ?? `/${one.pattern}/`)], ["never says", never.map((one) => `/${one}/`)],
  ].filter(([label, all]) => all.length || label === "calls");
  return el("section", { class: "expected" }, el("h3", {}, "Expected"), el("table", { class: "arguments" }, lines.map(([label, all]) => el("tr", {},
    el("th", { scope: "row" }, label), el("td", {}, all.length ? all.map((text) => el("div", { dir: "auto" }, words(text))) : "nothing")))));
}

function twinOf(row) {
  if (row.twin === undefined) return null;
  const index = data.conversations.findIndex((one) => one.scenario === row.twin && one.arm === row.arm && one.run === row.run);
  return el("p", {}, el("span", { class: "quiet" }, "Twin, which differs in one thing: "),
    index < 0 ? words(row.twin) : button({ class: "link", onclick: () => go({ c: index }) }, words(row.twin)));
}

function answersOf(transcript) {
  const answers = (transcript && transcript.answers) || [];
  if (!answers.length) return null;
  return el("details", { class: "judge" }, el("summary", {}, `What the models answered, step by step: ${counted(answers.length, "answer", "answers")}`),
    answers.map(({ step, text }) => [
      el("p", { class: "quiet" }, words(step)), el("pre", { class: "output", dir: "auto" }, asWritten(cutText(text))), cutNote(text),
    ]));
}

function readerHead(index, row) {
  const [state, mark, spoken] = leading(row);
  const end = endOf(row);
  const all = found();
  const place = all.indexOf(index);
  const turn = (to, text) => button({ class: "plain", disabled: all[to] === undefined, onclick: () => go({ c: all[to] }) }, text);
  const facts = [
    row.use_case, armOf(row), row.task !== undefined ? `task ${row.task}` : null, row.source,
    row.record !== undefined ? `record ${row.record}` : null,
    data.graphs.length > 1 ? `graph ${data.graphs[row.graph].name}` : null,
    row.reward !== undefined ? `reward ${row.reward}` : null,
    row.error,
  ].filter(Boolean);
  return el("header", {},
    el("div", { class: "bar" }, el("h2", {}, words(row.id || `Conversation ${index + 1}`)),
      el("span", { class: "turning" }, turn(place - 1, "‹ Previous"), turn(place + 1, "Next ›"),
        button({ class: "plain", id: "close", onclick: () => go({ c: null }) }, "Close"))),
    el("p", { class: "verdict" }, el("span", { class: `pill ${state}` }, words(`${mark} ${spoken}`)),
      end === null ? null : [" ", el("span", { class: `pill ${end === "End by another road" ? "undecided" : row.status}` }, end)],
      row.progress_range ? [el("span", { class: "label" }, " progress "), meter(row.progress_range[0], ...row.progress_range), " ", el("b", {}, percentRange(row.progress_range))] : null),
    row.probes === undefined ? null : el("p", { dir: "auto" }, words(row.probes)),
    el("p", { class: "quiet facts" }, facts.map((fact, at) => [at ? " · " : "", words(fact)]).flat()));
}

function drawReader(index) {
  const reader = byId("reader");
  document.body.classList.toggle("reading", index !== null);
  if (index === null) {
    reader.replaceChildren(el("p", { class: "empty quiet" }, "Choose a conversation to read it, with its milestones at the events at which they were reached."));
    return;
  }
  const row = data.conversations[index];
  const transcript = embedded(`words-${index}`);
  const marks = marksOf(row);
  const instructions = transcript && transcript.instructions !== undefined ? data.instructions[transcript.instructions] : null;
  reader.replaceChildren(
    readerHead(index, row), ...[twinOf(row), expectedOf(row)].filter(Boolean), milestonesOf(row), ...[judgeOf(row), answersOf(transcript)].filter(Boolean),
    ...(instructions === null ? [] : [el("details", { class: "instructions" }, el("summary", {}, "Instructions of the agent"), prose(instructions, "said"))]),
    transcript
      ? el("ol", { class: "events" }, transcript.events.map((event, at) => eventOf(event, row, at + 1, marks.get(at + 1), at < (transcript.history || 0))))
      : el("p", { class: "notice" }, `The words of this conversation are not in this page, which holds those of ${number(data.readable)}.`));
}
