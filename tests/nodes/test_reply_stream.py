"""The reply while it is written: what is sent of it, when it starts again, and what never shows."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk, HumanMessage
from langgraph.graph import END, START, StateGraph

from arq_graph import Agent, AgentState, Guideline, Reasoner, ScriptedChatModel, create_guided_agent
from arq_graph.nodes import MessageReviser
from tests.apps.desk import judge_late, make_desk, make_input
from tests.brain import Brain, brain
from tests.order_tools import A1, cancel, get_order
from tests.reasoning.endpoint import Endpoint, ok

GUIDELINES = [Guideline("they ask", "tell the status", tools=[get_order]), Guideline("they wait", "say so")]
AGENT = Agent(
    "Desk",
    "You help with orders.",
    GUIDELINES,
    tools=[cancel],
    confirm={"cancel": "customer"},
    fallback="I cannot say.",
)
STATE = {
    "messages": [HumanMessage("Where is it?", id="h1")],
    "guideline_matches": [
        {"agent": "Desk", "turn": "h1", "guideline": "G1", "active": True, "matched": True, "score": 8}
    ],
}
FILLER = "It has left our house by now, and we are sorry that it took so long to get there. "
UNSOURCED = {"factual_information_provided": [{"fact": "it is late", "source": None}]}


def stream(model, *, revisers=1, channels=None, mode="direct", **options):
    """Return the deltas of a graph of revisers, as revision and text, and its other events."""
    graph = StateGraph(AgentState)
    names = [f"message {number}" for number in range(revisers)]
    for name in names:
        graph.add_node(name, MessageReviser(model, AGENT, stream=True, mode=mode, **options))
    for edge in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(*edge)
    events = list(graph.compile().stream({**STATE, **(channels or {})}, stream_mode="custom"))
    deltas = [(event.revision, event.text) for event in events if event.type == "reply_delta"]
    return deltas, [event for event in events if event.type != "reply_delta"]


def join_deltas(deltas):
    """Return the text of each revision, as a client shows it in the end."""
    texts: dict[int, str] = {}
    for revision, text in deltas:
        texts[revision] = texts.get(revision, "") + text
    assert list(texts) == sorted(texts)
    assert all(text for _, text in deltas)
    return list(texts.values())


@pytest.mark.parametrize(("runs", "mode"), [("sync", "arq"), ("async", "direct")], indirect=["runs"])
def test_reply_is_sent_sentence_by_sentence_while_it_is_written(runs, mode):
    reply = f"It is late. {FILLER}Here is what I know:\n- it left on 3.5. at 4.30\n{FILLER}Is that all right?"
    model = brain(judge={"G1": 9}, call={"get_order": A1}, reply=reply)
    app = create_guided_agent(model, make_desk(), mode=mode, stream=True)
    events = runs.stream(app, make_input("Where is A-1?"), stream_mode="custom")
    assert [event.type for event in events][-2:] == ["reply_revised", "reply_sent"]
    deltas = [event for event in events if event.type == "reply_delta"]
    assert [event.text for event in deltas] == [
        "It is late. ",
        FILLER,
        "Here is what I know:\n",
        "- it left on 3.5. ",
        "at 4.30\n",
        FILLER,
        "Is that all right?",
    ]
    assert len({event.revision for event in deltas}) == 1
    assert {(event.agent, event.turn) for event in events} == {(make_desk().name, events[-1].turn)}


@pytest.mark.parametrize("runs", ["async"], indirect=True)
def test_no_token_reaches_the_stream_of_messages(runs):
    answer = {"revisions": [{"content": "It is late. I am sorry.", "followed": []}]}
    with Endpoint(lambda _: ok(answer)) as endpoint:
        reviser = MessageReviser(endpoint.chat_model(), AGENT, mode="direct", stream=True)
        graph = StateGraph(AgentState).add_sequence([("message", reviser)]).add_edge(START, "message")
        parts = runs.stream(graph.compile(), STATE, stream_mode=["messages", "custom"])
    assert [part[0].text for mode, part in parts if mode == "messages"] == ["It is late. I am sorry."]
    assert [part.type for mode, part in parts if mode == "custom"].count("reply_delta") == 2


@pytest.mark.parametrize(
    "sentence",
    ["遅れています。", "هل هذا كل شيء؟ ", "Version 3.5 of shop.example is *late.* "],
)
def test_sentences_end_as_in_their_script(sentence):
    deltas, _ = stream(brain(reply=sentence * 9))
    *first, last = (text for _, text in deltas)
    assert len(first) > 6
    assert {text.strip() for text in first} == {sentence.strip()}
    assert "".join([*first, last]) == sentence * 9


def test_long_text_without_a_sentence_end_is_sent_in_words():
    deltas, _ = stream(brain(reply="word " * 200))
    assert join_deltas(deltas) == ["word " * 200]
    assert {len(text) % 5 for _, text in deltas} == {0}
    assert max(len(text) for _, text in deltas) < 250


def test_next_revision_has_a_higher_number_and_the_accepted_one_is_sent():
    first = {"revision_number": 1, "content": f"First. {FILLER}", "followed": [], **UNSOURCED}
    first |= {"offered_services": [], "instructions_broken": [], "is_repeat_message": False}
    second = {**first, "revision_number": 2, "content": f"Second. {FILLER}"}
    model = brain(reply=[{"revisions": [first, second]}, f"Third. {FILLER}"])
    deltas, events = stream(model, mode="arq")
    assert join_deltas(deltas) == [f"{word}. {FILLER}" for word in ("First", "Second", "Third")]
    assert events[-1].content == f"Third. {FILLER}"


class BreakingModel(ScriptedChatModel):
    """Loses its connection in the middle of its first answer."""

    def stream(self, *args, **kwargs):
        tokens = list(super().stream(*args, **kwargs))
        yield from tokens[: len(tokens) // 2]
        if len(self.calls) == 1:
            raise ConnectionError("lost")
        yield from tokens[len(tokens) // 2 :]


def test_broken_attempt_and_node_that_runs_again_get_higher_numbers():
    breaking = BreakingModel(Brain(reply=FILLER * 9), model_name="breaking")
    model = Reasoner(breaking, module="message", backoff=0)
    deltas, _ = stream(model, revisers=2, extra_revisions=0)
    lost, *complete = join_deltas(deltas)
    assert complete == [FILLER * 9] * 2
    assert lost in (FILLER * number for number in range(1, 9))


def test_nothing_more_is_sent_of_a_revision_that_gives_internals_away():
    for leak in ("I ran get_order for you.", "By G1 it is."):
        deltas, events = stream(brain(reply=[f"{FILLER * 3}{leak} {FILLER}", "It is late."]))
        assert join_deltas(deltas) == [FILLER * 3, "It is late."]
        assert events[-1].content == "It is late."


class ChunkedModel(ScriptedChatModel):
    """Streams pieces of another size."""

    size: int

    def stream(self, *args, **kwargs):
        text = self.invoke(*args, **kwargs).text
        for start in range(0, len(text), self.size):
            yield AIMessageChunk(text[start : start + self.size])


@pytest.mark.parametrize("size", [1, 60])
def test_answer_corrected_in_a_second_object_is_another_revision(size):
    first = f"First. {FILLER}I ran get_order. It is late."
    second = f"{FILLER * 2}It has more sentences than the first one."
    answers = [json.dumps({"revisions": [{"content": text, "followed": []}]}) for text in (first, second)]
    text = "\nWait, corrected:\n".join(answers)
    model = ChunkedModel(lambda call: text, size=size, model_name=f"in-{size}")
    deltas, events = stream(model, extra_revisions=0)
    *rejected, sent = join_deltas(deltas)
    assert all(first.startswith(text) and "get_order" not in text for text in rejected)
    assert sent == events[-1].content == second


PARTS = ["get_order", "G1", "\n", ". ", "。", "late ", "😀", '"', "\\", "{", FILLER]


@given(st.lists(st.sampled_from(PARTS), max_size=9))
@settings(max_examples=15)
def test_text_sent_is_always_a_beginning_of_the_reply_without_internals(parts):
    reply = " ".join(["It is.", *parts])
    deltas, events = stream(brain(reply=reply), extra_revisions=0)
    sent = "".join(join_deltas(deltas))
    assert reply.startswith(sent)
    assert not any(name in sent for name in ("get_order", "G1"))
    assert sent == reply or events[-1].content == AGENT.fallback


def test_accepted_draft_is_streamed_and_a_fallback_is_only_in_the_last_event():
    planned = {"plan": [{"agent": "Desk", "turn": "h1", "final_answer": "It ships on Monday. It does."}]}
    deltas, events = stream(brain(reply=""), channels=planned)
    assert join_deltas(deltas) == [events[-1].content] == ["It ships on Monday. It does."]
    replies = [{"content": f"It is {word}.", **UNSOURCED} for word in ("late", "very late")]
    deltas, events = stream(brain(reply=replies), on_unsatisfied="fallback", mode="arq")
    assert join_deltas(deltas) == ["It is late.", "It is very late."]
    assert events[-1].content == AGENT.fallback


def test_confirmation_question_follows_the_reply_and_nothing_that_asks_beside_it_is_sent():
    replies = [f"{FILLER}Shall I do it? {FILLER}", f"It is final. {FILLER}"]
    pending = {"agent": "Desk", "turn": "h1", "kind": "confirm", "tool": "cancel", "arguments": A1}
    deltas, events = stream(brain(reply=replies), channels={"tool_insights": [pending]})
    assert join_deltas(deltas) == [FILLER, replies[1]]
    *_, sent, question_asked = events
    assert (sent.type, question_asked.type) == ("reply_sent", "confirmation_asked")
    assert sent.content == f"{replies[1].strip()}\n\n{question_asked.question}"


@pytest.mark.parametrize("judge", [{"G1": 9}, {"G1": 9, "G2": judge_late}])
def test_reply_drafted_ahead_is_streamed_only_once_it_is_accepted(judge):
    def reply(prompt):
        return f"{FILLER}{len(prompt.section('active_guidelines'))} rules apply."

    model = brain(judge=judge, call={"get_order": A1}, reply=reply)
    app = create_guided_agent(model, make_desk(), eager=True, stream=True)
    events = list(app.stream(make_input("Where is A-1?"), stream_mode="custom"))
    deltas = [(event.revision, event.text) for event in events if event.type == "reply_delta"]
    assert join_deltas(deltas) == [events[-1].content]
    if "G2" not in judge:
        assert len(deltas) == 1  # an accepted draft is sent in one piece
