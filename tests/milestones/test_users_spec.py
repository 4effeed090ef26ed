"""What a file says of a user: read, or refused with what is wrong."""

from __future__ import annotations

import pytest
import yaml

from arq_graph.errors import SpecError
from arq_graph.milestones.users.agenda import AgendaUser
from arq_graph.milestones.users.personas import persona_of
from arq_graph.milestones.users.simulated import SimulatedUser
from arq_graph.milestones.users.spec import read_user
from arq_graph.milestones.users.user import make_user

FILE = """
persona: impatient
kind: perturbed
deviations: {asr: 0.2}
synonyms: {day: arrival}
intents:
- Where is my parcel?
- request: I want to move my stay.
  slots: {day: 2030-05-06, nights: 2, breakfast: true, budget: 99.5}
  accepts: a room with a view
"""


def test_a_user_is_read_from_yaml():
    user = read_user(yaml.safe_load(FILE))
    assert [intent.request for intent in user.intents] == ["Where is my parcel?", "I want to move my stay."]
    assert user.intents[1].slots == {"day": "2030-05-06", "nights": 2, "breakfast": True, "budget": 99.5}
    assert user.intents[1].slots["breakfast"] is True
    assert user.intents[1].accepts == ("a room with a view",)
    assert user.role == "customer"


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({}, "intents"),
        ({"intents": []}, "intents"),
        ({"intents": [{"slots": {}}]}, "intents.0.request"),
        ({"intents": ["x"], "kynd": "helpful"}, "kynd"),
        ({"intents": [{"request": "x", "slotz": {}}]}, "slotz"),
        ({"intents": ["x"], "kind": "evil"}, "kind"),
        ({"intents": ["x"], "deviations": {"asr": 2}}, "deviations"),
        ({"intents": ["x"], "deviations": {"lisp": 0.5}}, "lisp"),
        ({"intents": [{"request": "x", "done_when": "("}]}, "done_when"),
        ({"intents": [""]}, "intents.0.request"),
        ({"intents": [{"request": "x", "slots": {"id": ""}}]}, "intents.0.slots.id"),
        ({"intents": ["x"], "patience": -1}, "patience"),
        ({"intents": ["x"], "persona": "nobody"}, "no persona 'nobody'"),
        ("helpful", "mapping"),
        (None, "the user"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(values, wrong):
    with pytest.raises(SpecError) as raised:
        read_user(values, file="suite.yaml", line=7)
    assert wrong in str(raised.value)
    assert str(raised.value).startswith("suite.yaml:7: ")


def test_one_mistake_is_told_once():
    with pytest.raises(SpecError) as raised:
        read_user({"intents": [{"request": "Hi", "done_when": "(("}]})
    assert "`intents.0.done_when`: the pattern '((' is not" in str(raised.value)
    assert "at least 1 item" not in str(raised.value)
    with pytest.raises(SpecError) as raised:
        read_user({"intents": [], "patience": -1})
    assert "at least 1 item" in str(raised.value)
    assert "patience" in str(raised.value)


def test_a_persona_is_a_name_or_a_description():
    assert persona_of("Security Challenge").challenges
    assert persona_of("a retired teacher from Oslo").description == "a retired teacher from Oslo"
    with pytest.raises(SpecError, match="did you mean 'impatient'"):
        persona_of("impatiant")


def test_without_a_model_an_agenda_and_with_one_a_played_user():
    user = read_user({"intents": ["x y"]})
    assert isinstance(make_user(user, seed=0), AgendaUser)
    assert isinstance(make_user(user, seed=0, model="offline"), SimulatedUser)
