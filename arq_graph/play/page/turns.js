// The conversation as the journal tells it: its turns, each with what led to the reply.

export const conversation = {};

export function begin(id) {
  Object.assign(conversation, { id, read: 0, agent: null, problem: "", takeover: null, isRunning: false, items: [] });
}

export const turnsOf = () => conversation.items.filter((item) => item.kind === "turn");
export const lastTurn = () => turnsOf().at(-1);

function addTurn(message, time) {
  const { items, agent } = conversation;
  const before = lastTurn();
  if (before?.customer.id === message.id) items.splice(items.indexOf(before), 1);  // it is tried again
  items.push({
    kind: "turn", number: turnsOf().length + 1, agent, customer: { id: message.id, text: message.content }, pieces: [],
    started: time, ended: null, error: "", question: null, interrupts: [], matches: [], decisions: [], tools: [],
    calls: new Map(), revisions: [], checks: [], passages: [], plan: null, moves: [], reply: null,
    // How far the customer is goes on from turn to turn.
    journeys: before?.journeys || [], progress: new Map(before?.progress),
  });
}

// The calls that wait for an operator.
export const requestsOf = (turn) => turn.interrupts.flatMap(({ metadata }) => metadata.request?.action_requests || []);

const note = (text) => conversation.items.push({ kind: "note", text });

const CUSTOM = {
  customer: (turn, value, time) => addTurn(value, time),
  operator(turn, value) {
    const refuse = ({ name, args }, { message }) => turn.decisions.push({ kind: "declined", tool: name, arguments: args,
      argument: null, problem: `An operator did not allow it${message ? `: ${message}` : ""}` });
    const requests = requestsOf({ interrupts: turn.interrupts.filter(({ id }) => id === value.interrupt_id) });
    (value.payload?.decisions || []).forEach((decision, at) => { if (decision.type === "reject") refuse(requests[at], decision); });
  },
  agent_loaded(turn, value) {
    if (conversation.agent) note("The agent was loaded again");
    conversation.agent = value;
    conversation.problem = "";
  },
  agent_broken: (turn, value) => { conversation.problem = value.problem; },
  colleague: (turn, value) => turn.pieces.push({ kind: "colleague", text: value.text }),
  given_back() {
    note("The conversation was given back to the agent");
    conversation.takeover = null;
  },
  handed_over: (turn, value) => { conversation.takeover = value.takeover; },
  model_call: (turn, value) => turn?.calls.set(value.id, value),
  guidelines_matched: (turn, value) => { turn.matches = value.matches; },
  journeys_advanced: (turn, value) => { turn.journeys = value.journeys; },
  progress_made: (turn, value) => turn.progress.set(value.progress.journey || "", value.progress),
  tools_decided: (turn, value) => turn.decisions.push(...value.decisions),
  plan_made: (turn, value) => Object.assign(turn, { plan: value.plan, decisions: [...turn.decisions, ...value.decisions] }),
  thought: (turn, value) => turn.moves.push(["thought", value.text]),
  spoke(turn, value) {
    turn.moves.push([value.category.replaceAll("_", " "), value.text]);
    turn.decisions.push(...value.decisions);
  },
  tool_called: (turn, value) => turn.tools.push(value),
  passages_found: (turn, value) => { turn.passages = value.passages; },
  check_made: (turn, value) => turn.checks.push(value.decision),
  reply_revised: (turn, value) => turn.revisions.push(value),
  reply_sent: (turn, value) => { turn.reply = value; },
  confirmation_asked: (turn, value) => { turn.question = value; },
};

const EVENTS = {
  RUN_STARTED(turn) {
    Object.assign(turn, { ended: null, error: "", interrupts: [] });
    conversation.isRunning = true;
  },
  TEXT_MESSAGE_START: (turn, event) => turn.pieces.push({ kind: "agent", id: event.messageId, text: "" }),
  TEXT_MESSAGE_CONTENT: (turn, event) => { turn.pieces.find((piece) => piece.id === event.messageId).text += event.delta; },
  // A partial reply that wasn't accepted is gone; what came before this run stays.
  MESSAGES_SNAPSHOT(turn, event) {
    const ids = new Set(event.messages.map((message) => message.id));
    turn.pieces = turn.pieces.filter((piece) => piece.kind !== "agent" || piece.isOld || ids.has(piece.id));
  },
  RUN_FINISHED: (turn, event) => end(turn, event, { interrupts: event.outcome?.interrupts || [] }),
  RUN_ERROR: (turn, event) => end(turn, event, { error: event.message }),
  CUSTOM: (turn, event) => CUSTOM[event.name]?.(turn, event.value, event.timestamp),
};

function end(turn, event, fields) {
  Object.assign(turn, fields, { ended: event.timestamp });
  for (const piece of turn.pieces) piece.isOld = true;
  conversation.isRunning = false;
}

// Add what the journal has further, and return the turns that it changes.
export function readEntries(entries) {
  const changed = new Set();
  for (const entry of entries) {
    const before = lastTurn();
    EVENTS[entry.type]?.(before, entry);
    conversation.read += 1;
    // The buttons of a turn are for as long as it is the last one. What is written in it stays when the agent is loaded.
    if (!entry.name?.startsWith("agent_")) changed.add(before).add(lastTurn());
  }
  return changed;
}

// A question is open only until somebody says something else.
export const isOpen = (turn) => turn === lastTurn() && !conversation.isRunning && !conversation.takeover;
