"""Consent in free words: it counts if code finds nothing that speaks against it, and a model agrees."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Confirmation
from arq_graph.errors import SpecError
from tests.agreement.desk import CANCEL, CANCELLED, QUESTION, THREAD, Desk
from tests.brain import act

CONSENT = "Yes, please proceed with the cancellation. Thank you!"


def count_consent_prompts(desk: Desk) -> int:
    return sum("agreeing_words" in call.schema["properties"] for call in desk.model.calls)


def test_consent_in_other_words_runs_the_call_if_the_model_agrees(desk):
    desk.reset(consent=True)
    desk.request()
    desk.send(CONSENT)
    assert desk.ran == CANCELLED


def test_without_the_models_key_the_customer_is_asked_again(desk):
    desk.request()
    assert desk.send(CONSENT).endswith(QUESTION)
    assert desk.ran == []


@pytest.mark.parametrize("mode", ["arq", "cot"])
def test_every_mode_reads_consent(mode):
    desk = Desk(mode=mode)
    desk.reset(consent=True)
    desk.request()
    desk.send(CONSENT)
    assert desk.ran == CANCELLED


REFUSED_KEYS = {
    "quotes words that nobody wrote": {"agreeing_words": "I agree to all of it", "agrees": True},
    "quotes nothing": {"agreeing_words": "", "agrees": True},
    "names something open": {"agreeing_words": CONSENT, "left_open": "which card", "agrees": True},
    "does not agree": {"agreeing_words": CONSENT, "agrees": False},
    "gives no valid answer": {"agrees": "perhaps"},
}


@pytest.mark.parametrize("consent", REFUSED_KEYS.values(), ids=REFUSED_KEYS)
def test_the_models_key_needs_a_quote_and_nothing_left_open(tools_desk, consent):
    tools_desk.reset(consent=consent)
    tools_desk.request()
    assert tools_desk.send(CONSENT).endswith(QUESTION)
    assert tools_desk.ran == []


VETOED = [
    "Yes, if it is free",
    "Yes, cancel it. Is there a fee?",
    "Yes, cancel A-2 as well",
    "Yes, the order of 3 May",
    "Yes, my husband said “cancel the whole account”",
    "Yes, for two people",
    "Yes, but wait",
    "Sure, unless it was sent",
    "Cancel it",
    "of it all, yes",
    "Yes, forget about it not",
    "Yes, cancel XYZ please",
    "Ja, aber nur zum Teil",
    "Oui, mais demain",
    "Sí, pero quiero un cambio",
    "Sim, mas amanhã",
    "Tak, ale jutro",
    "Ja tack, men vänta",
    "Evet ama önce ücreti söyleyin",
    "Да, но не сегодня",
    "はい、でも明日にしてください",
    "好的，但是明天",
    "네, 하지만 내일",
    "Yes " + "please cancel it " * 30,
]


@pytest.mark.parametrize("answer", VETOED)
def test_codes_key_is_a_veto_and_spares_the_model(tools_desk, answer):
    tools_desk.reset(consent=True)
    tools_desk.request()
    tools_desk.send(answer)
    assert (tools_desk.ran, count_consent_prompts(tools_desk)) == ([], 0)


YES_BY_LANGUAGE = {
    "es": "Sí, por favor. ¡Gracias!",
    "pt": "Sim, por favor",
    "pl": "Tak, proszę",
    "sv": "Ja tack",
    "tr": "Evet, lütfen",
    "ru": "Да, пожалуйста. Спасибо!",
    "ja": "はい、お願いします。",
    "zh": "好的，谢谢",
    "ko": "네, 부탁드립니다",
}


@pytest.mark.parametrize("answer", YES_BY_LANGUAGE.values(), ids=YES_BY_LANGUAGE)
def test_a_listed_yes_counts_in_a_dozen_languages_without_a_model(tools_desk, answer):
    tools_desk.request()
    tools_desk.send(answer)
    assert (tools_desk.ran, count_consent_prompts(tools_desk)) == (CANCELLED, 0)


def test_a_designer_adds_phrases_and_may_switch_free_words_off():
    confirm = {"by": "customer", "yes": ["Nur zu"], "reading": "strict"}
    desk = Desk(confirm={"cancel_order": confirm})
    desk.reset(consent=True)
    desk.request()
    desk.send(CONSENT)
    assert (desk.ran, count_consent_prompts(desk)) == ([], 0)
    desk.send("Nur zu, danke!")
    assert desk.ran == CANCELLED
    desk = Desk(confirm={"cancel_order": confirm | {"yes": ["Drop it"]}})
    desk.request()
    desk.send("Drop it")  # a veto stays one
    assert desk.ran == []
    with pytest.raises(SpecError, match=r"'\.\.\.' has no word"):
        Confirmation(by="customer", yes=["..."])


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        ("Yes, please proceed with these.", True),
        ("Yes, cancel both", False),
        ("Yes, the last one", False),
        ("Yes, A-1", False),
    ],
)
def test_of_several_calls_an_answer_may_not_pick_some(answer, runs):
    desk = Desk()
    desk.reset(consent=True)
    desk.propose(cancel_order=[{"order_id": "A-1"}, {"order_id": "B-2"}])
    desk.answer.consent = True
    desk.request()
    desk.send(answer)
    assert bool(desk.ran) is runs


def test_the_third_time_in_a_row_the_reply_says_what_answer_is_expected(desk):
    replies = [desk.request(), *(desk.send("Hmm, A-1") for _ in range(3))]
    is_explained = ["reply with just the word yes" in reply for reply in replies]
    assert is_explained == [False, False, True, True]
    assert all(reply.endswith(QUESTION) for reply in replies)


def test_the_designers_words_say_what_answer_is_expected():
    confirm = {"by": "customer", "unclear": "Bitte nur mit Ja antworten."}
    desk = Desk(confirm={"cancel_order": confirm})
    desk.request()
    assert "Bitte" not in desk.send("Hmm")
    assert "Bitte nur mit Ja antworten.\n\n" in desk.send("Hmm")


def test_a_changed_call_is_a_new_question(tools_desk):
    tools_desk.reset((CANCEL, act("cancel_order", {"order_id": "A-2"})), wants=False)
    tools_desk.request()
    reply = tools_desk.send("No, A-2")
    assert (tools_desk.state["agreements"][-1]["times_asked"], '"A-2"' in reply) == (1, True)


def send_history(desk: Desk, *texts: str) -> None:
    """Send the whole history with new ids, as clients of a chat completions endpoint do."""
    messages: list[Any] = []
    for number, text in enumerate(texts):
        message_class = AIMessage if number % 2 else HumanMessage
        messages.append(message_class(text, id=f"client-{len(desk.state.get('messages', ()))}-{number}"))
    desk.app.invoke({"messages": messages}, THREAD)


def test_a_question_is_found_in_a_history_that_the_client_sends(tools_desk):
    reply = tools_desk.request()
    send_history(tools_desk, "Please cancel A-1.", reply, "Yes")
    assert tools_desk.ran == CANCELLED
    send_history(tools_desk, "Please cancel A-1.", reply, "Yes")
    assert tools_desk.ran == CANCELLED  # the yes is spent


def test_arguments_never_come_from_the_history(tools_desk):
    reply = tools_desk.request()
    send_history(tools_desk, "Please cancel A-9.", reply.replace("A-1", "A-9"), "Yes")
    assert tools_desk.ran == []


def test_a_hand_back_leaves_the_question_open(tools_desk):
    tools_desk.request()
    hand_back = AIMessage("Transferring back to supervisor", response_metadata={"__is_handoff_back": True})
    tools_desk.app.invoke({"messages": [hand_back, HumanMessage("Yes")]}, THREAD)
    assert tools_desk.ran == CANCELLED


@pytest.mark.filterwarnings("error")
def test_an_agents_own_words_close_the_question_without_a_warning():
    desk = Desk(name="Order desk")
    desk.reset(wants=False)
    desk.request()
    desk.send("Forget it")
    desk.send("Yes")
    assert desk.ran == []


def test_another_agents_words_close_the_question_with_a_warning(tools_desk):
    tools_desk.request()
    interruption = AIMessage("By the way, we have a sale.", name="Marketing")
    with pytest.warns(UserWarning, match="closed by a message of 'Marketing'"):
        tools_desk.app.invoke({"messages": [interruption, HumanMessage("Yes")]}, THREAD)
    assert tools_desk.ran == []


def test_a_renamed_agent_says_that_it_drops_the_question(tools_desk):
    tools_desk.request()
    tools_desk.restart(name="Front desk")
    with pytest.warns(UserWarning, match="a confirmation question of 'Desk', which 'Front desk' can't read"):
        tools_desk.send("Yes")
    assert tools_desk.ran == []
