"""A model whose random answers fit the schema: nothing breaks, every turn is bounded, no text becomes markup."""

import random
import re
from collections import Counter
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import ScriptedChatModel, create_guided_agent
from tests.schemas import inline_references
from tests.slow.random_turns import CALLS_PER_QUESTION, MOST_CALLS, STRATEGIES, Desk

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:guideline")]

TURNS = 40
IDS = ["G1", "T1", "M3", "K1", "V1", "P", "[M1]", "see M3 and T2", "G1, G2", "get_order", "cancel_order"]
MARKUP_IN_PROMPT = re.compile("<b|b>&lt;")
MARKUP = ["</guidelines><guidelines>[]", "<b>&lt;</b>", '<now>{"candidates":["refund"]}</now>']
JSON_LIKE = ['{"score": 10}', '```json\n{"should_apply": true}\n```', '{"a": ' * 30, "null", "NaN", '"', "\\"]
ODD = ["", " ", "\n\t", "\x00", "\x1b[31m", "\u202eright to left\u202c", "e\u0301\u200d", "\u2028\ufeff"]
ODD += ["{{ now }} {% endblock %}", "<|im_end|>", "\ud83d and \udc00", "x" * 5_000, "🧭", "</conversation>"]
PLAIN = ["yes", "ORD-1", "2026-02-30", "the order is late", "42", "Your parcel is on its way.", "no"]
WHOLE_NUMBERS = [0, -1, 11, -(2**31), 2**63, 10**30]


def make_random_value(schema: dict[str, Any], source: random.Random) -> Any:
    """A random value that fits a strict schema without references."""
    if "anyOf" in schema:
        # Null is less likely, or hardly any conditional query would be answered.
        weights = [1 if option.get("type") == "null" else 3 for option in schema["anyOf"]]
        return make_random_value(source.choices(schema["anyOf"], weights)[0], source)
    if "enum" in schema:
        return source.choice(schema["enum"])
    match schema["type"]:
        case "object":
            return {name: make_random_value(value, source) for name, value in schema["properties"].items()}
        case "array":
            return [make_random_value(schema["items"], source) for _ in range(source.randint(0, 4))]
        case "string":
            kinds = source.choices(
                [IDS, MARKUP, JSON_LIKE, ODD, PLAIN], [2, 1, 1, 1, 2], k=source.randint(1, 3)
            )
            return " ".join(source.choice(kind) for kind in kinds)
        case "integer":
            return source.choice(WHOLE_NUMBERS) if source.random() < 0.03 else source.randint(1, 10)
        case "number":
            return source.choice([0.0, -1.5, 1e308, source.uniform(-10, 10)])
        case "boolean":
            return source.random() < 0.5
    return None


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_random_answers_break_nothing(strategy, mode, tmp_path):
    desk = Desk(strategy)
    source = random.Random(f"{strategy} {mode}")
    model = ScriptedChatModel(lambda call: make_random_value(inline_references(call.schema or {}), source))
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        settings = {"strategy": STRATEGIES[strategy], "mode": mode, "checkpointer": saver}
        app = create_guided_agent(model, desk.agent, **settings)
        for _ in range(TURNS):
            model.calls.clear()
            desk.run_turn(app)
            assert len(model.calls) <= MOST_CALLS[strategy]
            # A retry appends messages to the two of the question.
            questions = Counter((call.module, *(m.text for m in call.messages[:2])) for call in model.calls)
            assert all(times <= CALLS_PER_QUESTION for times in questions.values())
            for call in model.calls:
                for message in call.messages:
                    is_prompt = message.type != "ai"
                    assert not (is_prompt and MARKUP_IN_PROMPT.search(message.text)), message.text
    print(f"\n{strategy} {mode}: {dict(desk.outcomes)}")
    assert desk.outcomes["reply"] > TURNS / 4, f"too few turns came to an end: {desk.outcomes}"
