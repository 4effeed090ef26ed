"""TRL reads the data for fine-tuning, trains on the answers alone, and refuses answers that are to be filled in."""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from arq_graph.experiments.finetuning import make_finetuning_examples
from arq_graph.milestones import read_transcript

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("trl"), reason="needs TRL: pip install trl"),
]

PAGE = Path(__file__).parents[2] / "docs" / "fine-tuning.md"
CALL = {"id": "1", "function": {"name": "find_parcel", "arguments": '{"number": "P-7"}'}}
TALK = {
    "tools": [{"name": "find_parcel", "parameters": {"properties": {"number": {"type": "string"}}}}],
    "messages": [
        {"role": "system", "content": "You run the post office of a small town."},
        {"role": "user", "content": "Where is my parcel P-7?"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "at the dépôt"},
        {"role": "assistant", "content": "It is at the dépôt."},
    ],
}
TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def make_rows(stage: Any, reason: str = "") -> list[dict[str, Any]]:
    """Return the rows of a stage, with this reason in every place to fill in."""
    transcripts = [read_transcript(TALK)]
    reasons: dict[str, Any] = {}
    if reason:
        for turn in make_finetuning_examples(transcripts, stage):
            reasons[turn.turn] = dict.fromkeys(turn.reasons, reason)
    rows: list[dict[str, Any]] = []
    for turn in make_finetuning_examples(transcripts, stage, reasons=reasons):
        rows += turn.rows
    return rows


def make_tokenizer() -> Any:
    """A token for every byte, and a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["<pad>", "<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    bytes_alone = Tokenizer(models.BPE(vocab={name: number for number, name in enumerate(names)}, merges=[]))
    bytes_alone.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_alone.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=bytes_alone, pad_token="<pad>", eos_token="<end>")
    made.chat_template = TEMPLATE
    return made


def make_random_llama(tokens: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=tokens, **sizes))


def write_rows(rows: list[dict[str, Any]], file: Path) -> Path:
    file.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return file


def make_trainer(rows: list[dict[str, Any]], folder: Path) -> Any:
    """TRL's own trainer, of a Llama of random weights, on a file of these rows."""
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    file = write_rows(rows, folder / "data.jsonl")
    data = load_dataset("json", data_files=str(file), split="train", cache_dir=str(folder / "cache"))
    reader = make_tokenizer()
    settings: dict[str, Any] = {"use_cpu": True, "bf16": False, "report_to": [], "save_strategy": "no"}
    config = SFTConfig(str(folder / "out"), max_length=None, max_steps=1, **settings)
    return SFTTrainer(make_random_llama(len(reader)), config, train_dataset=data, processing_class=reader)


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_trl_trains_on_the_answers_alone(tmp_path: Path) -> None:
    rows = make_rows(1)
    training = make_trainer(rows, tmp_path)
    for row, prepared in zip(rows, training.train_dataset, strict=True):
        pairs = zip(prepared["input_ids"], prepared["labels"], strict=True)
        learned = training.processing_class.decode([token for token, label in pairs if label != -100])
        assert learned == f"{row['completion'][0]['content']}<end>"
    assert training.train().training_loss > 0


@pytest.mark.skipif(not find_spec("peft"), reason="needs PEFT: pip install peft")
def test_the_script_of_the_page_trains_both_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModelForCausalLM

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    reader = make_tokenizer()
    reader.save_pretrained("untrained")
    make_random_llama(len(reader)).save_pretrained("untrained")
    write_rows(make_rows(1), Path("react.jsonl"))
    write_rows(make_rows(2, "The customer asks for it."), Path("plans.jsonl"))
    (script,) = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    changes = {
        "meta-llama/Llama-3.1-8B-Instruct": "untrained",
        "LONGEST = 4096": "LONGEST = 10_000",  # here a character is a token
        "max_length=LONGEST,": "max_length=LONGEST, use_cpu=True, bf16=False, report_to=[],",
    }
    for name, instead in changes.items():
        assert name in script
        script = script.replace(name, instead)
    exec(compile(script, str(PAGE), "exec"), {})
    folders = ("untrained", "stage-1", "stage-2")
    weights = [AutoModelForCausalLM.from_pretrained(folder).state_dict() for folder in folders]
    name = "model.layers.0.self_attn.q_proj.weight"
    assert not weights[0][name].equal(weights[1][name])
    assert not weights[1][name].equal(weights[2][name])


@pytest.mark.parametrize("others", [0, 2], ids=["alone", "among others"])
def test_trl_refuses_what_is_to_be_filled_in(others: int, tmp_path: Path) -> None:
    unfilled = make_rows(2)
    assert {"unfilled"} == {key for row in unfilled for key in row} - {"prompt"}
    with pytest.raises((KeyError, TypeError)):
        make_trainer(make_rows(1)[:others] + unfilled, tmp_path)
