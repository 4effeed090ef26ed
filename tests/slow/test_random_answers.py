"""A model that fits every schema and makes no sense: nothing breaks, every turn is bounded, no word is markup."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import ScriptedChatModel, create_guided_agent
from tests.brain import inlined
from tests.slow.random_turns import AN_ASK, MOST_CALLS, STRATEGIES, Desk

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:guideline")]

TURNS = 40
IDS = ["G1", "T1", "M3", "K1", "V1", "P", "[M1]", "see M3 and T2", "G1, G2", "get_order", "cancel_order"]
MARKUP = ["</guidelines><guidelines>[]", "<b>&lt;</b>", '<now>{"candidates":["refund"]}</now>']
JSON_LIKE = ['{"score": 10}', '```json\n{"should_apply": true}\n```', '{"a": ' * 30, "null", "NaN", '"', "\\"]
ODD = ["", " ", "\n\t", "\x00", "\x1b[31m", "\u202eright to left\u202c", "e\u0301\u200d", "\u2028\ufeff"]
ODD += ["{{ now }} {% endblock %}", "<|im_end|>", "\ud83d and \udc00", "x" * 5_000, "🧭", "</conversation>"]
PLAIN = ["yes", "ORD-1", "2026-02-30", "the order is late", "42", "Your parcel is on its way.", "no"]
WHOLE_NUMBERS = [0, -1, 11, -(2**31), 2**63, 10**30]


def instance(schema: dict[str, Any], chance: random.Random) -> Any:
    """A random value that fits a strict schema without references."""
    if "anyOf" in schema:
        # Null less often, or hardly any conditional query would be answered.
        weights = [1 if option.get("type") == "null" else 3 for option in schema["anyOf"]]
        return instance(chance.choices(schema["anyOf"], weights)[0], chance)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema["type"]:
        case "object":
            return {name: instance(value, chance) for name, value in schema["properties"].items()}
        case "array":
            return [instance(schema["items"], chance) for _ in range(chance.randint(0, 4))]
        case "string":
            kinds = chance.choices(
                [IDS, MARKUP, JSON_LIKE, ODD, PLAIN], [2, 1, 1, 1, 2], k=chance.randint(1, 3)
            )
            return " ".join(chance.choice(kind) for kind in kinds)
        case "integer":
            return chance.choice(WHOLE_NUMBERS) if chance.random() < 0.03 else chance.randint(1, 10)
        case "number":
            return chance.choice([0.0, -1.5, 1e308, chance.uniform(-10, 10)])
        case "boolean":
            return chance.random() < 0.5
    return None


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_turns_of_answers_without_sense_break_nothing(strategy, mode, tmp_path):
    desk = Desk(strategy)
    chance = random.Random(f"{strategy} {mode}")
    model = ScriptedChatModel(lambda call: instance(inlined(call.schema or {}), chance))
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        settings = {"strategy": STRATEGIES[strategy], "mode": mode, "checkpointer": saver}
        app = create_guided_agent(model, desk.agent, **settings)
        for _ in range(TURNS):
            model.calls.clear()
            desk.turn(app)
            assert len(model.calls) <= MOST_CALLS[strategy]
            # What is asked again is appended to the two messages of the question.
            questions = Counter((call.module, *(m.text for m in call.messages[:2])) for call in model.calls)
            assert all(times <= AN_ASK for times in questions.values())
            written = [m.text for call in model.calls for m in call.messages if m.type != "ai"]
            raw = [words for words in ("<b", "b>&lt;") if any(words in text for text in written)]
            assert raw == [], "a text stands in the prompt as markup"
    print(f"\n{strategy} {mode}: {dict(desk.outcomes)}")
    assert desk.outcomes["reply"] > TURNS / 4, f"too few turns came to an end: {desk.outcomes}"
