"""Each cell of the table in docs/providers.md, seen at a stub of the provider's API through the provider's class."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph import Question, Reasoner, errors, track_usage
from arq_graph.nodes import BlueprintNode
from tests.reasoning.cases import GOOD, Verdict, make_reasoner
from tests.slow.providers.apis import CACHED, READ, WRITTEN
from tests.slow.providers.rows import LIMIT, ROWS, SLOW, documented, serving
from tests.slow.providers.stub import Asked, Refused, Said

pytestmark = SLOW

HEAD = "You are a judge. " + "Be fair. " * 500
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
LATER = [HumanMessage("Well?")]
PROMPT = [SystemMessage(HEAD), HumanMessage("Where is my order?")]


def good(asked: Asked) -> Said:
    """The answer of a model that was told the schema, in one way or another; others answer in words."""
    return Said(json.dumps(GOOD) if asked.schema or "JSON schema" in asked.prompt else "It seems to be late.")


def cut(asked: Asked) -> Said:
    return Said(json.dumps(GOOD)[:20], cut=True)


def raising(refused: Refused) -> Callable[[Asked], Said]:
    def answer(asked: Asked) -> Said:
        raise refused

    return answer


def ask(reasoner: Reasoner, grown: list[Any] | None = None) -> Any:
    """Ask the question; its answer is streamed where what grows is collected."""
    question = Question(Verdict, PROMPT, on_partial=None if grown is None else grown.append)
    (answer,) = reasoner.ask_all([question])
    if isinstance(answer, Exception):
        raise answer
    return answer


def structured_output(name: str, grown: list[Any] | None = None) -> str:
    stub, make = serving(name, good)
    with stub:
        answer = ask(make_reasoner(make()), grown)
        found_out = len(stub.asked), len(stub.refused)
        ask(make_reasoner(make()), grown)
    assert answer.value.model_dump() == GOOD
    assert (len(stub.asked) - 1, len(stub.refused)) == found_out  # what works is remembered
    return f"`{answer.attempts[-1].method}`"


def temperature(name: str) -> str:
    stub, make = serving(name, good)
    with stub:
        make_reasoner(make(), temperature=0.3).ask(Verdict, PROMPT)
        sent = stub.asked[-1].temperature
        with_its_own = make_reasoner(make(temperature=1.0), temperature=0.3)
        with_its_own.ask(Verdict, PROMPT)
    assert stub.asked[-1].temperature in (1.0, None)
    return {0.3: "sent", None: "left out"}[sent]


def refusal(name: str, grown: list[Any] | None = None) -> str:
    stub, make = serving(name, lambda asked: Said(refusal="I cannot judge people."))
    with stub, pytest.raises(errors.ReasoningError) as raised:
        ask(make_reasoner(make()), grown)
    if isinstance(raised.value, errors.RefusalError):
        assert len(stub.asked) == 1  # and no retry
        assert raised.value.refusal
        return "its words" if "I cannot judge" in raised.value.refusal else "without words"
    assert isinstance(raised.value, errors.BlueprintError)
    assert raised.value.attempts[-1].text == "I cannot judge people."
    return "as an answer that is no JSON"


def token_limit(name: str, grown: list[Any] | None = None) -> str:
    stub, make = serving(name, good)
    with stub:
        reasoner = make_reasoner(make())
        ask(reasoner, grown)
        settled = len(stub.asked)
        stub.answer = cut
        with pytest.raises(errors.BlueprintError, match="cut off at the token limit; raise max_tokens"):
            ask(reasoner, grown)
    limits = [asked.max_tokens for asked in stub.asked[settled:]]
    assert limits == [LIMIT, 2 * LIMIT]
    return "doubled once"


def usage(name: str, grown: list[Any] | None = None) -> str:
    stub, make = serving(name, good)
    with stub:
        ask(make_reasoner(make()), grown)
        with track_usage() as used:
            ask(make_reasoner(make()), grown)
    assert (used.total["input_tokens"], used.total["output_tokens"]) == (READ, WRITTEN)
    cached = used.total.get("input_token_details", {}).get("cache_read")
    return {CACHED: "cached ones too", 0: "without cached ones", None: "without cached ones"}[cached]


def caching(name: str) -> str:
    stub, make = serving(name, good)
    with stub:
        make_reasoner(make()).ask(Verdict, PROMPT)
    return "marked" if stub.asked[-1].marked else "not marked"


def images(name: str) -> str:
    stub, make = serving(name, good)
    template = "{% block head %}Judge.{% endblock %}{% block tail %}Where is it?{% endblock %}"
    look = HumanMessage(["Look:", IMAGE])
    with stub:
        node = BlueprintNode(make(), Verdict, template, write={"score": lambda answer: answer.value.score})
        try:
            assert node.invoke({"messages": [look]}) == {"score": 8}
        except errors.InputError:
            assert node.invoke({"messages": [look, *LATER]}) == {"score": 8}  # the thread goes on
            return "refused"
    assert stub.asked[-1].images == 1
    assert '"attachments": ["image 1"]}' in stub.asked[-1].prompt
    return "shown"


CELLS: dict[str, Callable[..., str]] = {
    "structured output": structured_output,
    "temperature": temperature,
    "refusal": refusal,
    "token limit": token_limit,
    "usage": usage,
    "caching": caching,
    "images": images,
}


def test_the_documented_table_has_these_rows_and_columns():
    columns, rows = documented()
    assert (columns, list(rows)) == (list(CELLS), list(ROWS))


@pytest.mark.parametrize("column", CELLS)
@pytest.mark.parametrize("name", ROWS)
def test_a_cell_of_the_documented_table_is_true(name: str, column: str):
    assert CELLS[column](name) == documented()[1][name][column]


@pytest.mark.parametrize("column", ["structured output", "refusal", "token limit", "usage"])
@pytest.mark.parametrize("name", ROWS)
def test_a_streamed_answer_is_the_same_and_is_told_of_while_it_is_written(name: str, column: str):
    grown: list[Any] = []
    assert CELLS[column](name, grown) == documented()[1][name][column]
    assert column == "refusal" or any(0 < len(each.get("rationale", "")) < 18 for each in grown)


@pytest.mark.parametrize("name", ROWS)
def test_a_wrong_key_and_an_overload_are_told_apart_whatever_the_class_raises(name: str):
    stub, make = serving(name, good)
    with stub:
        reasoner = make_reasoner(make())
        reasoner.ask(Verdict, PROMPT)
        overload = iter([Refused("Overloaded", status=503)])

        def busy(asked: Asked) -> Said:
            for refused in overload:
                raise refused
            return good(asked)

        stub.answer = busy
        assert reasoner.ask(Verdict, PROMPT).value.model_dump() == GOOD
        stub.answer = raising(Refused("Wrong key", status=401))
        key = f"Wrong key.*Look at the API key of {name.split()[0]}[ ,]"
        with pytest.raises(errors.ModelRequestError, match=key):
            reasoner.ask(Verdict, PROMPT)
    with pytest.raises(errors.ModelUnavailableError):  # nobody is there any more
        make_reasoner(make(), timeout=1).ask(Verdict, PROMPT)


@pytest.mark.parametrize("name", ROWS)
def test_a_higher_limit_that_the_provider_refuses_ends_as_the_limit_itself_does(name: str):
    def answer(asked: Asked) -> Said:
        if (asked.max_tokens or 0) > LIMIT:
            raise Refused(f"max_tokens: {asked.max_tokens} > {LIMIT}, which is the most for this model")
        return cut(asked)

    stub, make = serving(name, good)
    with stub:
        reasoner = make_reasoner(make())
        reasoner.ask(Verdict, PROMPT)
        stub.answer = answer
        with pytest.raises(errors.BlueprintError, match="cut off at the token limit"):
            reasoner.ask(Verdict, PROMPT)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("anthropic:claude-sonnet-4-6", "set ANTHROPIC_API_KEY"),
        ("google_genai:gemini-2.5-flash", "set GOOGLE_API_KEY"),
        ("bedrock_converse:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "Could not load credentials"),
    ],
)
def test_a_string_without_a_key_is_told_when_the_model_is_made(spec: str, told: str, monkeypatch: Any):
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC", "GOOGLE", "GEMINI", "AWS"))]:
        monkeypatch.delenv(name)
    with pytest.raises(errors.InputError, match=f'"{spec}".*{told}') as raised:
        Reasoner(spec)
    assert "pip install" not in str(raised.value)


def test_a_class_that_only_a_call_tells_of_its_missing_key_makes_one_call(monkeypatch: Any):
    stub, make = serving("ChatAnthropic", good)
    told = r"header is empty.*API key of ChatAnthropic \(ANTHROPIC_API_KEY, unless your code gives another\)"
    with stub, track_usage() as used, pytest.raises(errors.ModelRequestError, match=told):
        make_reasoner(make(api_key="")).ask(Verdict, PROMPT)
    assert (used.calls, stub.asked) == (1, [])


def test_a_prompt_that_gemini_blocks_is_a_refusal():
    stub, make = serving("ChatGoogleGenerativeAI", lambda asked: Said(refusal="blocked prompt"))
    with stub, pytest.raises(errors.RefusalError, match="blocked the prompt: SAFETY"):
        make_reasoner(make()).ask(Verdict, PROMPT)
