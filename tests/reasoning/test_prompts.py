"""The prompt of a step: the template's blocks, untrusted text in sections, the conversation's lines."""

import json
import re
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from arq_graph import ARQ, errors, respond
from arq_graph.nodes import BlueprintNode
from tests.reasoning.cases import script_model

HEAD = "{% block head %}Tell the mood.{% endblock %}"
TAIL = "{% block tail %}{{ orders | section('orders') }}{% endblock %}"
ANYTHING = st.text(st.characters(codec=None, categories=None), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ANYTHING,
    lambda inner: st.lists(inner) | st.dictionaries(ANYTHING, inner),
    max_leaves=8,
)


class Mood(ARQ):
    mood: str = respond("In one word.")


def get_prompt(messages, template=HEAD + TAIL, orders=None, **options) -> tuple[str, str]:
    """Return the system message and the human message that a node sends."""
    model = script_model([{"mood": "glad"}])
    node = BlueprintNode(model, Mood, template, reads=["orders"], **options)
    node.invoke({"messages": messages, "orders": orders})
    head, rest = (message.text for message in model.calls[0].messages)
    return head, rest


def get_lines(messages, **options) -> list[dict]:
    """Return the lines of the conversation."""
    inside = re.search(
        r"<conversation>\n(.*)\n</conversation>", get_prompt(messages, **options)[1], re.DOTALL
    )
    assert inside
    return [json.loads(line) for line in inside[1].split("\n")] if inside[1] else []


def get_ids(lines) -> list[str]:
    return [line["id"] for line in lines if "id" in line]


# Sections


@settings(max_examples=8)
@given(VALUES)
def test_any_value_can_be_read_from_its_section_and_cannot_close_it(value):
    _, text = get_prompt([HumanMessage("Hi")], orders=value)
    text.encode("utf-8")
    inside = re.search(r"<orders>(.*)</orders>", text)
    assert inside
    assert not set("<>") & set(inside[1])
    sent = re.sub("[\ud800-\udfff]", "\ufffd", json.dumps(value, ensure_ascii=False))
    assert json.loads(inside[1]) == json.loads(sent)


@pytest.mark.parametrize("text", ["\ud800", "\n", "{{ 7 * 7 }}{% block head %}"])
def test_no_text_leaves_its_line_or_is_rendered_as_a_template(text):
    spoken = get_lines([HumanMessage(text), HumanMessage("next")])
    assert [line["text"] for line in spoken] == [text.replace("\ud800", "\ufffd"), "next"]


# Templates


def test_blocks_are_rendered_one_at_a_time_and_from_a_file_too(tmp_path):
    template = "{% block head %}{% block task %}Do it.{% endblock %}{% endblock %}" + TAIL
    assert get_prompt([], template)[0] == "Do it."
    (tmp_path / "mine.md").write_text(template)
    assert get_prompt([], tmp_path / "mine.md")[0] == "Do it."


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{% block head %}{{ x | shout }}{% endblock %}", "No filter named 'shout'"),
        ("{% block head %}{{ moood }}{% endblock %}" + TAIL, "'moood' is undefined"),
        ("{% extends name %}", "named by a plain string"),
        (
            '{% extends "message_reviser.md" %}{% block nowhere %}x{% endblock %}',
            "has no block 'nowhere' to replace: its blocks are head",
        ),
        ("prompts/mine.md", "no block 'head'.*name of a file"),
        (HEAD + "{% block tail %}{{ 1 / 0 }}{% endblock %}", "block 'tail': ZeroDivisionError"),
    ],
)
def test_a_template_that_cannot_be_used_is_an_error_that_says_why(template, problem):
    with pytest.raises(errors.PromptError, match=problem):
        get_prompt([], template)


def test_a_file_that_is_missing_or_is_not_text_is_an_error(tmp_path):
    (tmp_path / "latin.md").write_bytes(b"Gr\xfc\xdfe")
    for path in (tmp_path / "none.md", tmp_path / "latin.md"):
        with pytest.raises(errors.PromptError, match="cannot read the prompt template"):
            get_prompt([], path)


# The conversation


def call(id, name="look", **args):
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


def test_messages_and_results_are_numbered_separately():
    talk = [
        SystemMessage("The shop is closed."),
        HumanMessage([{"type": "text", "text": "Where is it?"}, {"type": "image_url", "image_url": {}}]),
        AIMessage("One moment.", tool_calls=[call("c1", order="A-1")]),
        AIMessage("", tool_calls=[call("c2", order="A-2")]),
        ToolMessage("here", tool_call_id="c1"),
        ToolMessage("gone", tool_call_id="c2", status="error"),
        ToolMessage("x", tool_call_id="c9", name="find"),
        AIMessage([{"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "It is here."}]),
    ]
    look = {"from": "tool", "tool": "look"}
    assert get_lines(talk) == [
        {"id": "M1", "from": "system", "text": "The shop is closed."},
        {
            "id": "M2",
            "from": "customer",
            "text": "Where is it?",
            "attachments": ["image_url"],  # without its image
        },
        {"id": "M3", "from": "agent", "text": "One moment."},
        {"id": "T1", **look, "arguments": {"order": "A-1"}, "result": "here"},
        {"id": "T2", **look, "arguments": {"order": "A-2"}, "result": "gone", "error": True},
        {"id": "T3", "from": "tool", "tool": "find", "arguments": {}, "result": "x"},
        {"id": "M4", "from": "agent", "text": "It is here."},
    ]


PNG = {"type": "image", "base64": "iVBO", "mime_type": "image/png"}
LINK = {"type": "image", "url": "https://shop.example/a.png"}
SOUND = {"type": "audio", "base64": "UklG", "mime_type": "audio/wav"}


def test_an_image_follows_the_line_that_names_it_in_the_form_that_every_class_reads():
    data, link = ({"url": url, "detail": "low"} for url in ("data:image/png;base64,iVBO", LINK["url"]))
    images = [{"type": "image_url", "image_url": data}, {"type": "image_url", "image_url": link}]
    model = script_model([{"mood": "glad"}])
    shot = ToolMessage(
        [{**PNG, "cache_control": {"type": "ephemeral"}}, SOUND], tool_call_id="c1", name="shot"
    )
    talk = [HumanMessage(["Like this", *images]), AIMessage("One moment."), shot, HumanMessage("And?")]
    BlueprintNode(model, Mood, HEAD + TAIL, reads=["orders"]).invoke({"messages": talk})
    content = model.calls[0].messages[1].content
    assert [block for block in content if block["type"] == "image"] == [PNG, LINK, PNG]
    texts = [block.get("text", block["type"]) for block in content]
    line = {"id": "M1", "from": "customer", "text": "Like this", "attachments": ["image 1", "image 2"]}
    assert texts[0] == f"<conversation>\n{json.dumps(line)}"
    assert texts[3].endswith('"result": "", "attachments": ["image 3", "audio"]}')
    assert texts[1:3] + texts[4:5] == ["image"] * 3
    assert texts[5].endswith("<orders>null</orders>")


@pytest.mark.parametrize(
    ("block", "profile"),
    [
        (SOUND, {}),
        ({"type": "image", "file_id": "f1"}, {}),
        ({"type": "image", "source_type": "base64"}, {}),
        (PNG, {"image_inputs": False}),
    ],
)
def test_an_attachment_that_cannot_be_shown_is_refused_in_its_turn_and_later_only_named(block, profile):
    model = script_model([{"mood": "glad"}], profile=profile)
    node = BlueprintNode(model, Mood, HEAD + TAIL, reads=["orders"])
    sent = [HumanMessage("Look"), HumanMessage([block])]
    with pytest.raises(
        errors.InputError, match=rf"M2 comes with a block of the kind '{block['type']}'.*text"
    ):
        node.invoke({"messages": sent})
    node.invoke({"messages": [*sent, HumanMessage("Where is it?")]})
    assert f'"attachments": ["{block["type"]}"]' in model.calls[0].messages[1].content


@pytest.mark.parametrize(
    ("content", "budget", "ids"),
    [("x" * 400, 1000, ["M7", "M8", "M9", "M10", "M11"]), ([PNG], 6000, ["M9", "M10", "M11"])],
)
def test_a_history_over_the_budget_is_cut_to_half_of_it_counting_images(content, budget, ids):
    talk = [HumanMessage(content) for _ in range(11)]
    assert get_ids(get_lines(talk, history_tokens=budget)) == ids


def test_the_answered_turn_is_that_of_the_agents_last_reply():
    talk = [HumanMessage("Hi", id="h1"), AIMessage("Which?"), HumanMessage("Hm", id="h2"), HumanMessage("A")]
    tail = "{% block tail %}{{ conversation.answered_turn_id }}{% endblock %}"
    ends = [get_prompt(talk[:end], HEAD + tail)[1].splitlines()[-1] for end in (1, 3, 4)]
    assert ends == ["None", "h1", "h1"]


@pytest.mark.parametrize(
    ("kind", "key"), [(HumanMessage, "text"), (partial(ToolMessage, tool_call_id="c"), "result")]
)
def test_a_long_message_is_shortened_in_the_middle(kind, key):
    (line,) = get_lines([kind("a" * 600 + "b" * 600)], history_tokens=1000)
    assert line[key] == f"{'a' * 500} … {'b' * 500}"
    assert line["shortened_from_characters"] == 1200


BUDGET = 400


@st.composite
def talks(draw):
    """A conversation of turns, each with calls and results in the middle."""
    messages = []
    sizes = st.integers(0, 600)
    for turn in range(draw(st.integers(1, 6))):
        messages.append(HumanMessage("x" * draw(sizes)))
        for id in range(draw(st.integers(0, 4))):
            messages.append(AIMessage("", tool_calls=[call(f"c{turn}-{id}")]))
            messages.append(ToolMessage("y" * draw(sizes), tool_call_id=f"c{turn}-{id}"))
        messages += [AIMessage("z" * size) for size in draw(st.lists(sizes, max_size=1))]
    return messages


@settings(max_examples=8)
@given(talks())
def test_a_cut_shows_whole_turns_and_stays_where_it_is_until_a_turn_begins(messages):
    previous: list[dict] = []
    all_ids = get_ids(get_lines(messages))
    for end in range(1, len(messages) + 1):
        shown = get_lines(messages[:end], history_tokens=BUDGET)
        start = 0
        if "note" in shown[0]:
            start = all_ids.index(shown[0]["up_to"]) + 1
            assert shown[0]["not_shown"] == start
        ids = get_ids(shown)
        if ids[0] not in all_ids[start:]:  # the message that is answered now stays, whatever its turn
            assert shown[1]["from"] == "agent"
            assert not any(line.get("from") == "agent" for line in shown[2:-1])
            ids = ids[1:]
        assert ids == all_ids[start : start + len(ids)]
        last_turn = max(index for index, line in enumerate(shown) if line.get("from") == "customer")
        earlier = [line for line in shown[:last_turn] if line.get("id") in ids]
        assert sum(len(json.dumps(line)) for line in earlier) <= 4 * BUDGET + 400
        if start:
            assert shown[len(shown) - len(ids)]["from"] == "customer"
        if previous and not isinstance(messages[end - 1], HumanMessage):
            assert shown[: len(previous)] == previous
        previous = shown


def test_what_is_not_shown_is_counted_and_its_values_are_told():
    talk = [HumanMessage("My order is ORD-77, for 2 (ann@x.org), 9:00–13:00."), AIMessage("It costs €19.90.")]
    talk += [HumanMessage("x" * 400) for _ in range(11)]
    note = get_lines(talk, history_tokens=1000)[0]
    assert (note["not_shown"], note["up_to"]) == (7, "M7")
    assert note["values_mentioned"] == {"M1": ["ORD-77", "ann@x.org", "9:00", "13:00"], "M2": ["€19.90"]}
