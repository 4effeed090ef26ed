"""A model that answers anything, and an oracle that knows every paragraph that a strict agent may send.

The oracle shares no code with the product: it fills the templates of `TEMPLATES` with every value that `find_allowed`
takes from the data that the results were made of.
"""

import random
import re
from itertools import product
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph

from arq_graph import Agent, AgentState, Guideline, Reply, ScriptedChatModel, Variable
from arq_graph.nodes import ReplyChooser
from tests.order_tools import ran
from tests.replies.bank import block_card, get_account
from tests.schemas import fill_schema, inline_references

FREE = "FREE TEXT"
TEMPLATES = {
    "hello": ["Good day!", "Guten Tag!"],
    "balance": ["You have {amount}.", "Sie haben {amount}."],
    "now": ["Right now: {amount}."],
    "owner": ["{name} owns {card}."],
    "blocked": ["Done: {result}"],
    "note": ["You said {words}."],
    "tier": ["You are {tier}."],
    "other": ["A colleague will call."],
}
FIELDS: dict[str, dict[str, Any]] = {
    "balance": {"amount": {"result": "get_account.balance", "type": "number"}},
    "now": {"amount": {"result": "get_account.balance", "type": "number", "this_turn": True}},
    "owner": {
        "name": {"result": "get_account.owner.name", "max_length": 12},
        "card": {"result": "get_account.cards.no", "customer": True},
    },
    "blocked": {"result": {"result": "block_card"}},
    "note": {"words": {"customer": True, "max_length": 20}},
    "tier": {"tier": {"variable": "tier"}},
}
NAMES = [
    "Ada Day",
    "{card}",
    "%s {0}",
    "a\nb",
    "<b>x</b>",
    "",
    "x" * 13,
    "[x](y)",
    "{{name}}",
    "\x1b[31m",
    "Bo",
]
AMOUNTS = ["59.90", "5", "-3.5", '"12"', '"twelve"', "true", "null", "[1, 22]", '{"x": 1}', '"<i>"']
CARDS = ["4-1", "4-17", "{name}", "44", "a\\nb"]
WORDS = [
    "lost",
    "my",
    "card",
    "4-1.",
    "(4-17)",
    "{amount}",
    "<b>bold</b>",
    "-5",
    "3.5",
    "A&amp;B",
    "59.90",
    "Bo",
]
RESULTS = ["blocked 4-1", "no\nway", FREE, "{result}", '{"balance": 1}']


def make_agent() -> Agent:
    replies = []
    for id, (text, *more) in TEMPLATES.items():
        texts = {"en": text, "de": more[0]} if more else text
        replies.append(Reply(id, texts, fields=FIELDS.get(id, {}), otherwise=id == "other"))
    return Agent(
        "Bank",
        "You help.",
        [Guideline(None, "be polite", continuous=True)],
        tools=[get_account, block_card],
        variables=[
            Variable("tier", "The tier.", "gold {name}"),
            Variable("secret", "Not for replies.", "hush"),
        ],
        replies=replies,
        composition="strict",
        fallback=FREE,
    )


class Conversation:
    """A random conversation of two turns, and what may be sent in it."""

    def __init__(self, source: random.Random) -> None:
        self.messages: list[Any] = []
        self.texts: list[str] = []
        self.allowed: dict[tuple[str, str], dict[str, str]] = {("tier", "tier"): {"gold {name}": "V1"}}
        self.tempting: list[tuple[str, str]] = [(FREE, "M1"), ("hush", "V2"), ("", "M1"), ("{amount}", "M2")]
        self.ids = ["V1", "V2", "P", "K1", ""]
        result_count = 0
        for turn in (1, 2):
            self.texts.append(" ".join(source.choices(WORDS, k=source.randint(1, 5))))
            self.messages.append(HumanMessage(self.texts[-1], id=f"h{turn}"))
            self.ids.append(f"M{turn}")
            for number in range(source.randint(0, 2)):
                result_count += 1
                self.ids.append(f"T{result_count}")
                self._add_result(source, f"c{turn}{number}", is_current=turn == 2)
        for reply, field in (("owner", "card"), ("note", "words")):
            for number, text in enumerate(self.texts, start=1):
                self._allow(reply, field, list_runs_of_words(text), f"M{number}")

    def _add_result(self, source: random.Random, id: str, *, is_current: bool) -> None:
        status = source.choice(["success", "success", "success", "error"])
        if source.random() < 0.3:
            text = source.choice(RESULTS)
            tool, values = "block_card", {("blocked", "result"): [text]}
        else:
            amount, name = source.choice(AMOUNTS), source.choice(NAMES)
            cards = source.sample(CARDS, source.randint(0, 3))
            escaped = name.replace("\n", "\\n").replace("\x1b", "\\u001b")
            rows = ", ".join(f'{{"no": "{card}"}}' for card in cards)
            text = f'{{"balance": {amount}, "owner": {{"name": "{escaped}"}}, "cards": [{rows}]}}'
            numbers = re.findall(r"-?\d+(?:\.\d+)?", "" if "{" in amount else amount)
            tool = "get_account"
            values = {("balance", "amount"): numbers, ("owner", "name"): [name], ("owner", "card"): cards}
            if is_current:
                values["now", "amount"] = numbers
        for (reply, field), found in values.items():
            self.tempting += [(value, self.ids[-1]) for value in found]
            if status == "success":
                self._allow(reply, field, found, self.ids[-1])
        self.messages += ran(text, tool=tool, status=status, id=id)

    def _allow(self, reply: str, field: str, values: list[str], source: str) -> None:
        limit = FIELDS[reply][field].get("max_length", 200)
        harmless = {value for value in values if value and len(value) <= limit}
        harmless = {value for value in harmless if not re.search(r"[\x00-\x1f]|<\w|&\w+;|\]\(|\\n", value)}
        self.allowed.setdefault((reply, field), {}).update(dict.fromkeys(sorted(harmless), source))

    def list_paragraphs(self) -> set[str]:
        """Return every paragraph that may be sent."""
        paragraphs: set[str] = set()
        for id, texts in TEMPLATES.items():
            names = list(FIELDS.get(id, ()))
            for values in product(*(self.allowed.get((id, name), ()) for name in names)):
                filled = dict(zip(names, values, strict=True))
                for text in texts:
                    paragraphs.add(re.sub(r"\{(\w+)\}", lambda match: filled[match[1]], text))  # noqa: B023
        return paragraphs

    def make_answer(self, source: random.Random) -> Any:
        """Return an answer of a model that tries to have something else sent."""
        if source.random() < 0.05:
            return source.choice(
                [FREE, {"replies": FREE}, {"content": FREE}, {"language": FREE, "replies": [FREE]}]
            )
        replies = []
        for _ in range(source.choice([0, 1, 1, 1, 1, 1, 2, 2, 6])):
            id = source.choice([*TEMPLATES, *TEMPLATES, FREE])
            rows = []
            for name in [*FIELDS.get(id, ()), *source.choices(["text", "content"], k=source.randint(0, 1))]:
                right = list(self.allowed.get((id, name), {}).items())
                value, cited = source.choice(right if right and source.random() < 0.7 else self.tempting)
                if source.random() < 0.2:
                    longer = [f"{value} {FREE}", f" {value} ", f"{value}0", f"{value}.0", f"+{value}"]
                    value = source.choice([value[:-1], value[1:], *longer, *NAMES])
                if source.random() < 0.1:
                    cited = source.choice(self.ids)
                rows.append({"field": name, "value": value, "source": cited})
            replies.append({"reply": id, "values": rows})
        return {
            "language": source.choice(["en", "de", "fr", FREE]),
            "replies": replies,
            "followed": [FREE],
            "is_every_reply_right": source.random() < 0.9,
        }


def list_runs_of_words(text: str) -> list[str]:
    """Return every run of whole words of a text, without the quotation marks, brackets and stops around it."""
    words = text.split()
    runs: list[str] = []
    for start, end in product(range(len(words)), repeat=2):
        run = " ".join(words[start : end + 1])
        runs.append(re.sub(r"^[^\w&-]+|[^\w-]+$", "", run))
        runs.append(run)
    return runs


def run_hostile_turns(count: int, seed: str) -> dict[str, int]:
    """Have a model answer at random, and check what is sent and streamed; return how often which reply was sent."""
    source = random.Random(seed)
    outcomes: dict[str, int] = {}
    agent = make_agent()
    current: list[Conversation] = []

    def answer(call: Any) -> Any:
        answer = current[-1].make_answer(source)
        if not isinstance(answer, dict):
            return answer
        asked = fill_schema(inline_references(call.schema))
        return asked | {key: value for key, value in answer.items() if key in asked or source.random() < 0.02}

    model = ScriptedChatModel(answer)
    graphs = []
    for mode in ("arq", "cot", "direct"):
        graph = StateGraph(AgentState)
        node = ReplyChooser(model, agent, mode=mode, stream=True, draft_key="draft", max_attempts=1)
        graph.add_node("reply", node)
        graph.add_edge(START, "reply")
        graphs.append(graph.compile())
    for number in range(count):
        conversation = Conversation(source)
        current.append(conversation)
        state = {"messages": conversation.messages, "draft": FREE}
        parts = list(graphs[number % 3].stream(state, stream_mode=["custom", "values"]))
        text = parts[-1][1]["messages"][-1].text
        deltas = [part.text for kind, part in parts if kind == "custom" and part.type == "reply_delta"]
        allowed = conversation.list_paragraphs()
        for paragraph in [*text.split("\n\n"), *(delta.removeprefix("\n\n") for delta in deltas)]:
            assert paragraph in allowed, (paragraph, state)
        for used in parts[-1][1]["revisions"][-1].get("replies", ()):
            outcomes[used["reply"]] = outcomes.get(used["reply"], 0) + 1
    return outcomes
