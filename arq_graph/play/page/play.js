// The page: reads the journal, draws what it changes, and sends what is written and pressed.

import { argumentList, describeAgent, describeCall, describeTurn, effort } from "./inspector.js";
import { begin, conversation, isOpen, lastTurn, readEntries, requestsOf, turnsOf } from "./turns.js";

const WORK = { matcher: "matching guidelines", tools: "deciding on tools", message: "writing the reply" };
const items = new Map();  // the list item of each turn and note
let selected = null;  // a turn that is looked at, in the place of the last one
let shown;

async function request(path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(path, body && { method: "POST", headers, body: JSON.stringify(body) });
  if (response.status === 403) throw new Error("This page is no longer the playground’s: open the address that the command printed.");
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function act(path, body = {}) {
  try {
    return await request(path, body);
  } catch (error) {
    showProblem(error.message);
    return null;
  }
}

function showProblem(words) {
  const isOfFiles = words === conversation.problem;
  const name = isOfFiles ? "The agent’s files have a mistake. The agent from before goes on." : "That did not work.";
  byId("problem").hidden = !words;
  byId("problem").replaceChildren(el("b", {}, name), el("pre", { dir: "auto" }, words));
}

// Draw something again without losing the place of the keyboard.
function fill(node, children) {
  const key = node.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  node.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (key) node.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// --- what is sent

const EMPTY = { threadId: "", runId: "", state: {}, messages: [], tools: [], context: [], forwardedProps: {} };

function say(text, forwardedProps = {}, id = crypto.randomUUID()) {
  selected = null;
  act("/turns", { ...EMPTY, messages: [{ id, role: "user", content: text }], forwardedProps });
}

function decide(turn, fields) {
  const decisions = requestsOf(turn).map((_, at) => (fields[`choice-${at}`].value === "approve" ? { type: "approve" }
    : { type: "reject", message: fields[`reason-${at}`].value || null }));
  act("/turns", { ...EMPTY, resume: turn.interrupts.map(({ id, metadata }) => ({ interruptId: id, status: "resolved",
    payload: { decisions: decisions.splice(0, metadata.request.action_requests.length) } })) });
}

// --- the conversation

function questionCard(turn) {
  const { id, question, calls } = turn.question;
  const answer = (label, words, props, kind) => button({
    class: kind, disabled: !isOpen(turn), "data-key": `${label}-${id}`, onclick: () => say(words, props) }, label);
  return el("div", { class: "box", role: "group", "aria-label": "Question to the customer" },
    el("p", { class: "words", dir: "auto" }, question),
    calls.map((call) => el("div", {}, el("code", {}, bdi(call.tool)), argumentList(call.arguments))),
    el("p", { class: "acts" }, answer("Yes, go ahead", "Yes", { agrees_to: id }, "main"), answer("No", "No", {}, "plain")));
}

function approvalCard(turn) {
  const calls = requestsOf(turn).map(({ name, args, description }, at) => {
    const choice = (value, label) => el("label", {},
      el("input", { type: "radio", name: `choice-${at}`, value, checked: value === "approve" }), ` ${label}`);
    return el("fieldset", {}, el("legend", {}, "May ", el("code", {}, bdi(name)), " run?"),
      el("p", { class: "quiet", dir: "auto" }, description), argumentList(args),
      el("p", { class: "acts" }, choice("approve", "Approve"), choice("reject", "Reject"),
        el("input", { name: `reason-${at}`, placeholder: "Why not?", "aria-label": "Why not?", dir: "auto" })));
  });
  const submit = (event) => { event.preventDefault(); decide(turn, event.target.elements); };
  return el("form", { class: "box warned", onsubmit: submit, "aria-label": "An operator decides" }, el("b", {}, "An operator decides"),
    calls, el("p", { class: "acts" }, el("button", { class: "main", type: "submit", disabled: !isOpen(turn) }, "Send the decision")));
}

function bubble(kind, speaker, words) {
  const by = el("span", { class: kind === "colleague" ? "by" : "unseen" }, `${speaker}: `);
  return el("div", { class: `bubble ${kind}`, dir: "auto" }, by, words);
}

function turnParts(turn) {
  const isRunning = turn === lastTurn() && conversation.isRunning;
  const question = turn.question?.question;
  const trim = (words) => (question && words.endsWith(question) ? words.slice(0, -question.length).trim() : words);
  const pieces = turn.pieces.map((piece) => ({ ...piece, text: trim(piece.text) })).filter((piece) => piece.text);
  const step = [...turn.calls.values()].filter((call) => call.seconds === null).at(-1)?.step;
  const retry = () => say(turn.customer.text, {}, turn.customer.id);
  return [
    bubble("customer", "Customer", turn.customer.text),
    pieces.map(({ kind, text }) => bubble(kind, kind === "agent" ? "Agent" : "Colleague", text)),
    turn.question && !turn.error ? questionCard(turn) : null,
    turn.interrupts.length ? approvalCard(turn) : null,
    turn.error ? el("div", { class: "box failed" }, el("p", { dir: "auto" }, turn.error),
      isOpen(turn) ? button({ class: "plain", onclick: retry }, "Try again") : null) : null,
    isRunning ? el("p", { class: "quiet" }, `${WORK[step] || step || "reading"} …`) : null,
    el("p", { class: "foot" }, button({ class: "link", "data-key": `why-${turn.number}`, onclick: () => select(turn, true) },
      `Turn ${turn.number}: why?`), el("span", { class: "quiet" }, ` ${effort(turn)}`)),
  ];
}

function drawItem(item) {
  if (!items.has(item)) {
    const look = ({ target }) => { if (!target.closest("button, form") && getSelection().isCollapsed) select(item); };
    items.set(item, item.kind === "note" ? el("li", { class: "note quiet" }, item.text) : el("li", { class: "exchange", onclick: look }));
  }
  if (item.kind === "turn") fill(items.get(item), turnParts(item));
}

function drawConversation(changed) {
  for (const item of conversation.items) if (!items.has(item) || changed.has(item)) drawItem(item);
  const hint = "Write as a customer of this agent. What it does, and why, is shown beside the conversation.";
  const nodes = conversation.items.map((item) => items.get(item));
  if (!nodes.length) nodes.push(el("li", { class: "note quiet hint" }, hint));
  const shown = [...byId("turns").children];
  // What stays isn't put in again, or it would lose the place of the keyboard.
  if (nodes.length !== shown.length || nodes.some((node, at) => node !== shown[at])) byId("turns").replaceChildren(...nodes);
}

function drawTakeover() {
  const { takeover } = conversation;
  const panel = byId("takeover");
  if (panel.hidden === !takeover) return;  // what is written there stays
  panel.hidden = !takeover;
  if (!takeover) return;
  const write = (event) => {
    event.preventDefault();
    act("/colleague", { text: event.target.elements.words.value });
    event.target.reset();
  };
  const hint = "Write as the colleague";
  const told = Object.entries(takeover.summary || {}).filter(([, value]) => value?.length);
  const by = takeover.by === "agent" ? "the agent" : takeover.by;
  fill(panel, [
    el("p", {}, el("b", {}, "A person has this conversation. "), `Handed over by ${[by, takeover.reason].filter(Boolean).join(": ")}`),
    el("details", {}, el("summary", {}, "What the person is told"), told.map(([name, value]) => [
      el("h3", {}, name.replaceAll("_", " ")), el("ul", {}, [value].flat().map((line) => el("li", { dir: "auto" }, line)))])),
    el("form", { class: "acts", onsubmit: write },
      el("input", { name: "words", required: true, "aria-label": hint, placeholder: hint, dir: "auto" }),
      el("button", { type: "submit", class: "plain" }, "Send as colleague"),
      button({ class: "plain", onclick: () => act("/give-back") }, "Give back to the agent")),
  ]);
}

function drawWhy() {
  const turn = selected || lastTurn();
  if (turn !== shown) byId("why").scrollTop = 0;
  shown = turn;
  if (conversation.agent) fill(byId("why"), turn ? describeTurn(turn, showCall) : describeAgent(conversation.agent));
  for (const [item, node] of items) {
    node.classList.toggle("selected", item === turn);
    node.querySelector(".foot .link")?.setAttribute("aria-pressed", String(item === turn));
  }
}

function draw(changed) {
  const { agent, isRunning, takeover } = conversation;
  const list = byId("turns");
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 60;
  byId("agent-name").textContent = agent?.name || "Playground";
  byId("model").textContent = agent?.model || "";
  document.title = agent ? `${agent.name} · Playground` : "Playground";
  showProblem(conversation.problem);
  const isWaiting = !isRunning && lastTurn()?.interrupts.length > 0;  // for an operator
  byId("send").disabled = isRunning || isWaiting;
  byId("text").disabled = isWaiting;
  byId("text").placeholder = takeover ? "Write as the customer, to the person" : "Write as the customer";
  drawTakeover();
  drawConversation(changed);
  if (isAtEnd) list.scrollTop = list.scrollHeight;
  drawWhy();
}

function select(turn, shows) {
  selected = turn === lastTurn() ? null : turn;
  if (shows) showSide("why");
  drawWhy();
}

// On a narrow screen one side is shown at a time.
function showSide(side) {
  document.body.classList.toggle("shows-why", side === "why");
  byId("show-why").setAttribute("aria-pressed", String(side === "why"));
  byId("show-talk").setAttribute("aria-pressed", String(side !== "why"));
}

async function showCall({ id }) {
  const dialog = byId("call");
  const call = await act(`/calls/${id}`, null);
  if (!call) return;
  fill(dialog, describeCall(call, () => dialog.close()));
  dialog.showModal();
  dialog.scrollTop = 0;
}

// --- what is pressed

byId("composer").onsubmit = (event) => {
  event.preventDefault();
  const text = byId("text").value.trim();
  if (!text || conversation.isRunning) return;
  byId("text").value = "";
  say(text);
};
byId("text").onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("composer").requestSubmit();
};
byId("restart").onclick = () => act("/restart");
byId("show-talk").onclick = () => showSide("talk");
byId("show-why").onclick = () => showSide("why");
byId("save").onclick = () => {
  byId("saving-title").value ||= turnsOf()[0]?.customer.text.slice(0, 60) || "";
  byId("saving-result").replaceChildren();
  byId("saving").showModal();
};
byId("saving-close").onclick = () => byId("saving").close();
byId("saving-form").onsubmit = async (event) => {
  event.preventDefault();
  const result = byId("saving-result");
  try {
    const { command } = await request("/scenarios", { file: byId("saving-file").value, name: byId("saving-title").value });
    result.replaceChildren("Saved. Evaluate the suite with: ", el("code", {}, command));
  } catch (error) {
    result.replaceChildren(el("span", { class: "bad" }, error.message));
  }
};

// --- what comes in

async function follow() {
  for (;;) {
    let answer;
    try {
      answer = await request(`/events?conversation=${conversation.id}&after=${conversation.read}`);
    } catch (error) {
      const hasEnded = error instanceof TypeError;  // nobody answers
      showProblem(hasEnded ? "The playground has ended: start it again, and open the address that it prints." : error.message);
      byId("send").disabled = true;
      return;
    }
    if (answer.conversation !== conversation.id) {
      begin(answer.conversation);
      items.clear();
      selected = null;
      byId("saving-title").value = "";
    }
    const wasRunning = conversation.isRunning;
    if (answer.entries.length) draw(readEntries(answer.entries));
    if (wasRunning && !conversation.isRunning) {
      byId("announcer").textContent = lastTurn().error || lastTurn().pieces.map(({ text }) => text).join("\n");
    }
  }
}

begin("");
follow();
byId("text").focus();
