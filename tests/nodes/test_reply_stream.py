"""The reply while it is written: what goes out of it, when it is begun anew, and what never shows."""

from __future__ import annotations

import json
from time import time_ns

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk, HumanMessage
from langgraph.graph import END, START, StateGraph

from arq_graph import (
    Agent,
    AgentState,
    Guideline,
    Reasoner,
    Revising,
    ScriptedChatModel,
    create_guided_agent,
)
from arq_graph.nodes import MessageReviser
from tests.apps.desk import desk, late, says
from tests.brain import Brain, brain
from tests.order_tools import A1, cancel, get_order
from tests.reasoning.endpoint import Endpoint, ok

FIELDS = {"tools": [cancel], "confirm": {"cancel": "customer"}, "fallback": "I cannot say."}
GUIDELINES = [Guideline("they ask", "tell the status", tools=[get_order]), Guideline("they wait", "say so")]
AGENT = Agent("Desk", "You help with orders.", GUIDELINES, **FIELDS)
MATCHED = {"agent": "Desk", "guideline": "G1", "active": True, "matched": True, "score": 8}
WAITING = {"agent": "Desk", "kind": "confirm", "tool": "cancel", "arguments": A1}
FILLER = "It has left our house by now, and we are sorry that it took so long to get there. "
UNSOURCED = {"factual_information_provided": [{"fact": "it is late", "source": None}]}


def streamed(model, turn="h1", *, times=1, channels=None, mode="direct", **options):
    """What revisers tell in a graph: for each delta its revision's number and its text; and the other events."""
    graph = StateGraph(AgentState)
    nodes = [f"message {number}" for number in range(times)]
    for name in nodes:
        graph.add_node(name, MessageReviser(model, AGENT, stream=True, mode=mode, **options))
    for edge in zip([START, *nodes], [*nodes, END], strict=True):
        graph.add_edge(*edge)
    began = time_ns() // 1_000
    state = {"messages": [HumanMessage("Where is it?", id=turn)]}
    state |= {"guideline_matches": [{**MATCHED, "turn": turn}], **(channels or {})}
    events = list(graph.compile().stream(state, stream_mode="custom"))
    deltas = [(event.revision, event.text) for event in events if event.type == "reply_delta"]
    assert all(began <= number <= time_ns() // 1_000 for number, _ in deltas)
    return deltas, [event for event in events if event.type != "reply_delta"]


def shown(deltas):
    """What a client has shown of each revision in the end."""
    texts = {}
    for number, text in deltas:
        texts[number] = texts.get(number, "") + text
    assert list(texts) == sorted(texts)
    assert all(text for _, text in deltas)
    return list(texts.values())


@pytest.mark.parametrize(("runs", "mode"), [("sync", "arq"), ("async", "direct")], indirect=["runs"])
def test_a_reply_goes_out_sentence_by_sentence_while_it_is_written(runs, mode):
    said = f"It is late. {FILLER}Here is what I know:\n- it left on 3.5. at 4.30\n{FILLER}Is that all right?"
    model = brain(judge={"G1": 9}, call={"get_order": A1}, reply=said)
    app = create_guided_agent(model, desk(), mode=mode, stream=True)
    events = runs.stream(app, says("Where is A-1?"), stream_mode="custom")
    assert [event.type for event in events][-2:] == ["reply_revised", "reply_sent"]
    deltas = [event for event in events if event.type == "reply_delta"]
    assert [event.text for event in deltas] == [
        *("It is late. ", FILLER, "Here is what I know:\n", "- it left on 3.5. ", "at 4.30\n"),
        *(FILLER, "Is that all right?"),
    ]
    assert len({event.revision for event in deltas}) == 1
    assert {(event.agent, event.turn) for event in events} == {(desk().name, events[-1].turn)}


@pytest.mark.parametrize("runs", ["async"], indirect=True)
def test_no_token_reaches_the_stream_of_messages(runs):
    answer = {"revisions": [{"content": "It is late. I am sorry.", "followed": []}]}
    with Endpoint(lambda _: ok(answer)) as endpoint:
        reviser = MessageReviser(endpoint.chat_model(), AGENT, mode="direct", stream=True)
        graph = (
            StateGraph(AgentState).add_sequence([("message", reviser)]).add_edge(START, "message").compile()
        )
        state = {
            "messages": [HumanMessage("Where is it?", id="h1")],
            "guideline_matches": [{**MATCHED, "turn": "h1"}],
        }
        parts = runs.stream(graph, state, stream_mode=["messages", "custom"])
    assert [part[0].text for mode, part in parts if mode == "messages"] == ["It is late. I am sorry."]
    assert [part.type for mode, part in parts if mode == "custom"].count("reply_delta") == 2


def test_the_reply_streams_where_the_app_or_its_settings_say_so():
    for own, asked in ((True, False), (False, True), (False, False)):
        model = brain(reply="It is late.")
        app = create_guided_agent(model, desk(), revising=Revising(stream=own), stream=asked)
        events = list(app.stream(says("Where?"), stream_mode="custom"))
        assert ("reply_delta" in [event.type for event in events]) is (own or asked)


@pytest.mark.parametrize(
    "pieces",
    [
        ["遅れています。"],
        ["वह देर से है। "],
        ["هل هذا كل شيء؟ "],
        ['He said "It is late!" ', "So it is. "],
        ["Version 3.5 of shop.example is *late.* "],
    ],
)
def test_sentences_end_as_their_script_has_it(pieces):
    deltas, _ = streamed(brain(reply="".join(pieces * 9)))
    *first, last = (text for _, text in deltas)
    assert [text.strip() for text in first] == [text.strip() for text in pieces * 9][: len(first)]
    assert len(first) > 6
    assert "".join([*first, last]) == "".join(pieces * 9)


def test_what_has_no_end_goes_out_in_words():
    deltas, _ = streamed(brain(reply="word " * 200))
    assert shown(deltas) == ["word " * 200]
    assert {len(text) % 5 for _, text in deltas} == {0}
    assert max(len(text) for _, text in deltas) < 250


def test_another_revision_has_a_higher_number_and_the_accepted_one_is_sent():
    one = {"revision_number": 1, "content": f"First. {FILLER}", "followed": [], **UNSOURCED}
    one |= {"offered_services": [], "instructions_broken": [], "is_repeat_message": False}
    two = {**one, "revision_number": 2, "content": f"Second. {FILLER}"}
    deltas, others = streamed(brain(reply=[{"revisions": [one, two]}, f"Third. {FILLER}"]), mode="arq")
    assert shown(deltas) == [f"{word}. {FILLER}" for word in ("First", "Second", "Third")]
    assert others[-1].content == f"Third. {FILLER}"


class Breaking(ScriptedChatModel):
    """Loses its connection in the middle of its first answer."""

    def stream(self, *args, **kwargs):
        tokens = list(super().stream(*args, **kwargs))
        yield from tokens[: len(tokens) // 2]
        if len(self.calls) == 1:
            raise ConnectionError("lost")
        yield from tokens[len(tokens) // 2 :]


def test_an_attempt_that_breaks_off_and_a_node_that_runs_again_have_higher_numbers():
    model = Reasoner(Breaking(Brain(reply=FILLER * 9), model_name="breaking"), module="message", backoff=0)
    deltas, _ = streamed(model, "broken", times=2, extra_revisions=0)
    lost, *whole = shown(deltas)
    assert whole == [FILLER * 9] * 2
    assert lost in (FILLER * number for number in range(1, 9))


@pytest.mark.parametrize("leak", ["I ran get_order for you.", "By G1 it is.", "By `cancel`."])
def test_of_a_revision_that_gives_internals_away_nothing_more_goes_out(leak):
    model = brain(reply=[f"{FILLER * 3}{leak} {FILLER}", "It is late."])
    deltas, others = streamed(model)
    before, sent = shown(deltas)
    assert before == FILLER * 3
    assert sent == others[-1].content == "It is late."


class Chunked(ScriptedChatModel):
    """Streams pieces of another size."""

    size: int

    def stream(self, *args, **kwargs):
        said = self.invoke(*args, **kwargs).text
        yield from (AIMessageChunk(said[at : at + self.size]) for at in range(0, len(said), self.size))


@pytest.mark.parametrize("size", [1, 30, 60, 90, 1000])
def test_an_answer_that_is_corrected_in_a_second_object_is_another_revision_in_pieces_of_any_size(size):
    first = f"First. {FILLER}I ran get_order. It is late."
    said = f"{FILLER * 2}It has more sentences than the first one."
    one, two = (json.dumps({"revisions": [{"content": text, "followed": []}]}) for text in (first, said))
    model = Chunked(lambda call: f"{one}\nWait, corrected:\n{two}", size=size, model_name=f"in-{size}")
    deltas, others = streamed(model, extra_revisions=0)
    *before, sent = shown(deltas)
    assert all(first.startswith(each) and "get_order" not in each for each in before)
    assert sent == others[-1].content == said


PARTS = ["get_order", "G1", "\n", ". ", "。", "late ", "😀", '"', "\\", "{", FILLER]


@given(st.lists(st.sampled_from(PARTS), max_size=9))
@settings(max_examples=25)
def test_whatever_is_written_what_went_out_is_a_beginning_of_it_without_internals(parts):
    said = " ".join(["It is.", *parts])
    deltas, others = streamed(brain(reply=said), extra_revisions=0)
    out = "".join(shown(deltas))
    assert said.startswith(out)
    assert not any(name in out for name in ("get_order", "G1"))
    assert out == said or others[-1].content == AGENT.fallback


def test_a_draft_that_stands_is_shown_and_another_text_that_is_sent_is_told_in_the_end():
    planned = {"plan": [{"agent": "Desk", "turn": "h1", "final_answer": "It ships on Monday. It does."}]}
    deltas, others = streamed(brain(reply=""), channels=planned)
    assert shown(deltas) == [others[-1].content] == ["It ships on Monday. It does."]
    said = [{"content": f"It is {word}.", **UNSOURCED} for word in ("late", "very late")]
    deltas, others = streamed(brain(reply=said), on_unsatisfied="fallback", mode="arq")
    assert (shown(deltas), others[-1].content) == (["It is late.", "It is very late."], AGENT.fallback)


def test_code_s_own_question_comes_behind_the_reply_and_nothing_that_asks_beside_it_goes_out():
    said = [f"{FILLER}Shall I do it? {FILLER}", f"It is final. {FILLER}"]
    deltas, others = streamed(brain(reply=said), channels={"tool_insights": [{**WAITING, "turn": "h1"}]})
    assert shown(deltas) == [FILLER, said[1]]
    *_, sent, asked = others
    assert (sent.type, asked.type) == ("reply_sent", "confirmation_asked")
    assert sent.content == f"{said[1].strip()}\n\n{asked.question}"


@pytest.mark.parametrize("judge", [{"G1": 9}, {"G1": 9, "G2": late}])
def test_a_reply_that_is_drafted_ahead_goes_out_once_it_stands_and_one_that_is_taken_back_never(judge):
    def said(asked):
        return f"{FILLER}{len(asked.section('active_guidelines'))} rules apply."

    model = brain(judge=judge, call={"get_order": A1}, reply=said)
    app = create_guided_agent(model, desk(), eager=True, stream=True)
    events = list(app.stream(says("Where is A-1?"), stream_mode="custom"))
    deltas = [(event.revision, event.text) for event in events if event.type == "reply_delta"]
    assert shown(deltas) == [events[-1].content]
