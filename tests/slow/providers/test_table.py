"""Each cell of the table in docs/providers.md, tested through the provider's class at a stub of its API."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph import Question, Reasoner, errors, track_usage
from arq_graph.nodes import BlueprintNode
from tests.reasoning.cases import GOOD, Verdict, make_reasoner
from tests.slow.providers.rows import LIMIT, ROWS, SLOW, make_stub, read_table
from tests.slow.providers.stub import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    ModelAnswer,
    Refused,
    Request,
)

pytestmark = SLOW

HEAD = "You are a judge. " + "Be fair. " * 500
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
LATER = [HumanMessage("Well?")]
PROMPT = [SystemMessage(HEAD), HumanMessage("Where is my order?")]


def answer_well(request: Request) -> ModelAnswer:
    """Answer in JSON if the request has the schema, in whatever way, or else in words."""
    knows_schema = request.schema or "JSON schema" in request.prompt
    return ModelAnswer(json.dumps(GOOD) if knows_schema else "It seems to be late.")


def answer_cut_off(request: Request) -> ModelAnswer:
    return ModelAnswer(json.dumps(GOOD)[:20], cut=True)


def make_refusing(refused: Refused) -> Callable[[Request], ModelAnswer]:
    def answer(request: Request) -> ModelAnswer:
        raise refused

    return answer


def ask(reasoner: Reasoner, partial_answers: list[Any] | None = None) -> Any:
    """Ask the question; the answer is streamed if its partial answers are collected."""
    question = Question(
        Verdict, PROMPT, on_partial=None if partial_answers is None else partial_answers.append
    )
    (answer,) = reasoner.ask_all([question])
    if isinstance(answer, Exception):
        raise answer
    return answer


def structured_output(name: str, partial_answers: list[Any] | None = None) -> str:
    stub, make = make_stub(name, answer_well)
    with stub:
        answer = ask(make_reasoner(make()), partial_answers)
        counts = len(stub.requests), len(stub.refused)
        ask(make_reasoner(make()), partial_answers)
    assert answer.value.model_dump() == GOOD
    assert (len(stub.requests) - 1, len(stub.refused)) == counts  # the method that works is remembered
    return f"`{answer.attempts[-1].method}`"


def temperature(name: str) -> str:
    stub, make = make_stub(name, answer_well)
    with stub:
        make_reasoner(make(), temperature=0.3).ask(Verdict, PROMPT)
        sent = stub.requests[-1].temperature
        make_reasoner(make(temperature=1.0), temperature=0.3).ask(Verdict, PROMPT)
    assert stub.requests[-1].temperature in (1.0, None)
    return {0.3: "sent", None: "left out"}[sent]


def refusal(name: str, partial_answers: list[Any] | None = None) -> str:
    stub, make = make_stub(name, lambda request: ModelAnswer(refusal="I cannot judge people."))
    with stub, pytest.raises(errors.ReasoningError) as raised:
        ask(make_reasoner(make()), partial_answers)
    if isinstance(raised.value, errors.RefusalError):
        assert len(stub.requests) == 1  # and no retry
        assert raised.value.refusal
        return "its words" if "I cannot judge" in raised.value.refusal else "without words"
    assert isinstance(raised.value, errors.BlueprintError)
    assert raised.value.attempts[-1].text == "I cannot judge people."
    return "as an answer that is no JSON"


def token_limit(name: str, partial_answers: list[Any] | None = None) -> str:
    stub, make = make_stub(name, answer_well)
    with stub:
        reasoner = make_reasoner(make())
        ask(reasoner, partial_answers)
        before = len(stub.requests)
        stub.answer = answer_cut_off
        with pytest.raises(errors.BlueprintError, match="cut off at the token limit; raise max_tokens"):
            ask(reasoner, partial_answers)
    limits = [request.max_tokens for request in stub.requests[before:]]
    assert limits == [LIMIT, 2 * LIMIT]
    return "doubled once"


def usage(name: str, partial_answers: list[Any] | None = None) -> str:
    stub, make = make_stub(name, answer_well)
    with stub:
        ask(make_reasoner(make()), partial_answers)
        with track_usage() as used:
            ask(make_reasoner(make()), partial_answers)
    assert (used.total["input_tokens"], used.total["output_tokens"]) == (INPUT_TOKENS, OUTPUT_TOKENS)
    cached = used.total.get("input_token_details", {}).get("cache_read")
    return {CACHED_TOKENS: "cached ones too", 0: "without cached ones", None: "without cached ones"}[cached]


def caching(name: str) -> str:
    stub, make = make_stub(name, answer_well)
    with stub:
        make_reasoner(make()).ask(Verdict, PROMPT)
    return "marked" if stub.requests[-1].marked else "not marked"


def images(name: str) -> str:
    stub, make = make_stub(name, answer_well)
    template = "{% block head %}Judge.{% endblock %}{% block tail %}Where is it?{% endblock %}"
    look = HumanMessage(["Look:", IMAGE])
    with stub:
        node = BlueprintNode(make(), Verdict, template, write={"score": lambda answer: answer.value.score})
        try:
            assert node.invoke({"messages": [look]}) == {"score": 8}
        except errors.InputError:
            assert node.invoke({"messages": [look, *LATER]}) == {"score": 8}  # the thread goes on
            return "refused"
    assert stub.requests[-1].images == 1
    assert '"attachments": ["image 1"]}' in stub.requests[-1].prompt
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
    columns, rows = read_table()
    assert (columns, list(rows)) == (list(CELLS), list(ROWS))


@pytest.mark.parametrize("column", CELLS)
@pytest.mark.parametrize("name", ROWS)
def test_a_cell_of_the_documented_table_is_true(name: str, column: str):
    assert CELLS[column](name) == read_table()[1][name][column]


@pytest.mark.parametrize("column", ["structured output", "refusal", "token limit", "usage"])
@pytest.mark.parametrize("name", ROWS)
def test_a_streamed_answer_is_the_same_and_has_partial_answers(name: str, column: str):
    partial_answers: list[Any] = []
    assert CELLS[column](name, partial_answers) == read_table()[1][name][column]
    assert column == "refusal" or any(
        0 < len(partial.get("rationale", "")) < 18 for partial in partial_answers
    )


@pytest.mark.parametrize("name", ROWS)
def test_a_wrong_key_and_an_overload_are_distinguished(name: str):
    stub, make = make_stub(name, answer_well)
    with stub:
        reasoner = make_reasoner(make())
        reasoner.ask(Verdict, PROMPT)
        overload = iter([Refused("Overloaded", status=503)])

        def busy(request: Request) -> ModelAnswer:
            for refused in overload:
                raise refused
            return answer_well(request)

        stub.answer = busy
        assert reasoner.ask(Verdict, PROMPT).value.model_dump() == GOOD
        stub.answer = make_refusing(Refused("Wrong key", status=401))
        key = f"Wrong key.*Look at the API key of {name.split()[0]}[ ,]"
        with pytest.raises(errors.ModelRequestError, match=key):
            reasoner.ask(Verdict, PROMPT)
    with pytest.raises(errors.ModelUnavailableError):  # nobody is there any more
        make_reasoner(make(), timeout=1).ask(Verdict, PROMPT)


@pytest.mark.parametrize("name", ROWS)
def test_a_higher_limit_that_the_provider_refuses_ends_as_the_limit_itself_does(name: str):
    def answer(request: Request) -> ModelAnswer:
        if (request.max_tokens or 0) > LIMIT:
            raise Refused(f"max_tokens: {request.max_tokens} > {LIMIT}, which is the most for this model")
        return answer_cut_off(request)

    stub, make = make_stub(name, answer_well)
    with stub:
        reasoner = make_reasoner(make())
        reasoner.ask(Verdict, PROMPT)
        stub.answer = answer
        with pytest.raises(errors.BlueprintError, match="cut off at the token limit"):
            reasoner.ask(Verdict, PROMPT)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("anthropic:claude-sonnet-4-6", "set ANTHROPIC_API_KEY"),
        ("google_genai:gemini-2.5-flash", "set GOOGLE_API_KEY"),
        ("bedrock_converse:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "Could not load credentials"),
    ],
)
def test_a_missing_key_is_an_error_when_the_model_is_made(spec: str, message: str, monkeypatch: Any):
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC", "GOOGLE", "GEMINI", "AWS"))]:
        monkeypatch.delenv(name)
    with pytest.raises(errors.InputError, match=f'"{spec}".*{message}') as raised:
        Reasoner(spec)
    assert "pip install" not in str(raised.value)


def test_a_missing_key_that_only_a_call_reveals_costs_one_call():
    stub, make = make_stub("ChatAnthropic", answer_well)
    message = (
        r"header is empty.*API key of ChatAnthropic \(ANTHROPIC_API_KEY, unless your code gives another\)"
    )
    with stub, track_usage() as used, pytest.raises(errors.ModelRequestError, match=message):
        make_reasoner(make(api_key="")).ask(Verdict, PROMPT)
    assert (used.calls, stub.requests) == (1, [])


def test_a_prompt_that_gemini_blocks_is_a_refusal():
    stub, make = make_stub("ChatGoogleGenerativeAI", lambda request: ModelAnswer(refusal="blocked prompt"))
    with stub, pytest.raises(errors.RefusalError, match="blocked the prompt: SAFETY"):
        make_reasoner(make()).ask(Verdict, PROMPT)
