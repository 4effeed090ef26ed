"""Predictions from files, and results that are kept on disk."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

from arq_graph.errors import InputError
from arq_graph.milestones import Call
from arq_graph.milestones.turn_level.actions import Action
from arq_graph.milestones.turn_level.comparison import compare
from arq_graph.milestones.turn_level.evaluation import evaluate_turns
from arq_graph.milestones.turn_level.predictions import NOT_GIVEN, evaluate_predictions, read_predictions
from arq_graph.milestones.turn_level.results_file import ResultsFile
from tests.milestones.conversations import agent, called, conversation, user

TALK = conversation(user("Where is A-1?"), called("get", "late", id="A-1"), agent("It is late."), id="talk")
SETTINGS = {"dataset": "talks.json, 1", "model": "offline"}


def lines(file: Path, *records: Any) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


# --- predictions


def test_recorded_predictions_are_compared_step_by_step(tmp_path):
    file = lines(
        tmp_path / "p.jsonl",
        {"id": "talk", "step": 1, "calls": [{"tool": "get", "arguments": {"id": "A-1"}}]},
        {"id": "talk", "step": 2, "answer": "It is late."},
    )
    found = evaluate_predictions(read_predictions(file), TALK)
    assert found.metrics.action_recall.rate == found.metrics.parameter_match.rate == 1
    assert found.metrics.similarity.mean == 1


def test_a_step_without_a_prediction_is_an_error_and_counts(tmp_path):
    file = lines(tmp_path / "p.jsonl", {"id": "talk", "step": 2, "answer": "It is late."})
    found = evaluate_predictions(read_predictions(file), TALK)
    assert found.outcomes[0].error == NOT_GIVEN
    assert found.outcomes[0].confusion == "no_prediction"
    assert found.metrics.confusion["no_prediction"] == 1
    assert found.metrics.confusion["error"] == 0
    assert found.metrics.mistaken[0].predicted == "no prediction"
    assert (found.metrics.errors, found.metrics.action_recall.rate) == (1, 0.5)


def test_a_prediction_for_no_step_is_told_unless_only_some_steps_are_looked_at():
    stray = {("talk", 1): Action(answer="a"), ("walk", 7): Action(answer="b")}
    with pytest.raises(InputError, match="step 7 of conversation 'walk'"):
        evaluate_predictions(stray, TALK)
    assert evaluate_predictions(stray, TALK, limit=1).metrics.steps == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "talk", "answer": "a"}', "line 2: it needs `id`"),
        ('{"id": "talk", "step": "1", "answer": "a"}', "line 2: it needs `id`"),
        ('{"id": "talk", "step": 3}', "line 2: dict is no action"),
        ('{"id": "talk", "step": 3, "calls": [{}]}', "line 2: .*without a name"),
        (
            '{"id": "talk", "step": 2, "answer": "b"}',
            "line 2: step 2 of conversation 'talk' is predicted twice",
        ),
        ("[1]", "line 2: it is no JSON object"),
        ("{", "line 2: no JSON"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(tmp_path, line, said):
    file = tmp_path / "p.jsonl"
    file.write_text('{"id": "talk", "step": 2, "answer": "a"}\n' + line)
    with pytest.raises(InputError, match=said):
        read_predictions(file)


def test_embeddings_get_many_answers_at_once():
    class Counting(Embeddings):
        batches = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            type(self).batches += 1
            return [[1.0, len(text)] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            raise NotImplementedError

    talks = [conversation(user("hi"), agent(f"hello {n}"), id=str(n)) for n in range(100)]
    predictions = {(str(n), 1): Action(answer=f"good day {n}") for n in range(100)}
    found = evaluate_predictions(predictions, talks, similarity=Counting())
    assert found.metrics.similarity.n == 100
    assert Counting.batches == 2  # of 64 and of 36 pairs


def test_one_answer_that_cannot_be_scored_costs_no_other_its_score():
    def similarity(truth: str, predicted: str) -> float:
        if predicted == "b":
            raise ValueError("boom")
        return 0.5

    talks = [conversation(user("hi"), agent("hello"), id=id) for id in "abc"]
    found = evaluate_predictions({(id, 1): Action(answer=id) for id in "abc"}, talks, similarity=similarity)
    assert [each.similarity for each in found.outcomes] == [0.5, None, 0.5]
    assert found.outcomes[1].error == "the similarity raised ValueError: boom"
    assert found.outcomes[1].matched


# --- results


def outcome(step: int, **fields: Any) -> Any:
    truth = Action((Call("get", {"id": "\u00e9", "n": [1.5, None]}),))
    return compare(truth, fields.pop("predicted", truth), id="talk", step=step, **fields)


def test_results_are_there_when_the_file_is_opened_again(tmp_path):
    file = tmp_path / "r.jsonl"
    with ResultsFile(file, SETTINGS) as results:
        assert results.done == ()
        results.append(outcome(1))
        results.append(outcome(2, predicted=None, error="half \ud800"))
    with ResultsFile(file, SETTINGS) as results:
        assert results.done == (outcome(1), outcome(2, predicted=None, error="half \ud800"))
        results.append(outcome(2))
    with ResultsFile(file, SETTINGS) as results:
        assert results.done == (outcome(1), outcome(2))  # the later line counts


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_line_that_a_killed_run_left_unfinished_is_cut_off(tmp_path, cut):
    file = tmp_path / "r.jsonl"
    with ResultsFile(file, SETTINGS) as results:
        results.append(outcome(1))
        results.append(outcome(2))
    file.write_bytes(file.read_bytes()[:-cut])
    with ResultsFile(file, SETTINGS) as results:
        assert results.done == (outcome(1),)
        results.append(outcome(2))
    with ResultsFile(file, SETTINGS) as results:
        assert results.done == (outcome(1), outcome(2))


def test_results_of_another_dataset_or_agent_are_refused_and_left_alone(tmp_path):
    file = tmp_path / "r.jsonl"
    with ResultsFile(file, SETTINGS) as results:
        results.append(outcome(1))
    before = file.read_bytes()
    for other in ({**SETTINGS, "model": "gpt"}, {"dataset": SETTINGS["dataset"]}, {**SETTINGS, "agent": "a"}):
        with pytest.raises(InputError, match=r"this is another: .* changed since"):
            ResultsFile(file, other)
    assert file.read_bytes() == before


@pytest.mark.parametrize("held", ["my diary\n", '{"a": 1}\n', "[]\n", '{"schema": 2, "settings": {}}\n'])
def test_a_file_that_holds_something_else_is_not_overwritten(tmp_path, held):
    file = tmp_path / "diary.txt"
    file.write_text(held)
    with pytest.raises(InputError, match="name another file"):
        ResultsFile(file, SETTINGS)
    assert file.read_text() == held


def test_a_file_without_a_line_end_that_holds_something_else_is_not_emptied(tmp_path):
    file = tmp_path / "diary.txt"
    file.write_text("my diary")
    with pytest.raises(InputError, match="name another file"):
        ResultsFile(file, SETTINGS)
    assert file.read_text() == "my diary"


def test_a_damaged_line_is_asked_again(tmp_path):
    file = tmp_path / "r.jsonl"
    with ResultsFile(file, SETTINGS) as results:
        results.append(outcome(1))
    file.write_text(file.read_text() + '{"id": "talk"}\n')
    with ResultsFile(file, SETTINGS) as results:
        assert results.done == (outcome(1),)


def test_what_json_cannot_say_is_kept_as_text(tmp_path):
    odd = Action((Call("get", {"x": {4: math.nan}, "y": (-math.inf, {"z"}), "a": {1.5: None}}),))
    file = tmp_path / "r.jsonl"
    with ResultsFile(file, SETTINGS) as results:
        results.append(outcome(1, predicted=odd))

    def no_json(constant: str) -> None:
        raise AssertionError(constant)

    [_, line] = file.read_text().splitlines()
    json.loads(line, parse_constant=no_json)
    with ResultsFile(file, SETTINGS) as results:
        [kept] = results.done
    [call] = kept.predicted.calls
    assert call.arguments == {
        "x": {"4": "NaN"},
        "y": ["-Infinity", "{'z'}"],
        "a": {"1.5": None},
    }


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "pipe"])
def test_what_is_no_regular_file_is_refused_unread(tmp_path, device):
    path = Path(device)
    if device == "pipe":
        path = tmp_path / "pipe"
        os.mkfifo(path)
    with pytest.raises(InputError, match="no regular file"):
        ResultsFile(path, SETTINGS)


def test_a_second_run_on_the_same_file_is_refused_and_the_first_goes_on(tmp_path):
    pytest.importorskip("fcntl")
    file = tmp_path / "r.jsonl"
    with ResultsFile(file, SETTINGS) as results:
        results.append(outcome(1))
        with pytest.raises(InputError, match="in use by another run"):
            ResultsFile(file, SETTINGS)
        results.append(outcome(2))
    with ResultsFile(file, SETTINGS) as results:
        assert results.done == (outcome(1), outcome(2))


@pytest.mark.parametrize("blank", ["\n", "\n\n"])
def test_a_file_of_blank_lines_is_none_of_ours(tmp_path, blank):
    file = tmp_path / "r.jsonl"
    file.write_text(blank)
    with pytest.raises(InputError, match="name another file"):
        ResultsFile(file, SETTINGS)


def test_results_are_predictions_too(tmp_path):
    given = iter(["It is late.", ValueError("boom")])

    def answer(history: list[Any]) -> str:
        now = next(given)
        if isinstance(now, Exception):
            raise now
        return str(now)

    file = tmp_path / "r.jsonl"
    with ResultsFile(file, SETTINGS) as results:
        first = evaluate_turns(answer, TALK, on_step=results.append)
    again = evaluate_predictions(read_predictions(file), TALK)
    assert (
        [each.matched for each in again.outcomes]
        == [each.matched for each in first.outcomes]
        == [False, False]
    )
    assert again.metrics.errors == 1
