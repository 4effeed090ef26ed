"""Files that somebody sent: reading one never runs its code, and never takes more time or memory than its size."""

import json
import os
import pickle
import re
from itertools import product
from pathlib import Path

import pytest

from tests.cli.test_thread_files import HOSTILE_CHECKPOINTS, MILESTONES, Touch, write_thread

AGENT = "name: Desk\nprofile: A desk.\nguidelines:\n"
SCENARIOS = "scenarios:\n- name: s\n  says: Hello\n  expect: {never: ['(?:ab){99999999}']}\n"


@pytest.mark.parametrize(
    "pattern", ["a{99999999}", "(?:a{1000}){1000}", "(?x)(a{5000}) {5000}", "a" * 20_000]
)
def test_a_pattern_that_would_take_gigabytes_is_refused_before_it_is_compiled(cli, pattern):
    Path("m.yaml").write_text(f"failed_if: '{pattern}'\nmilestones:\n{MILESTONES}")
    result = cli("milestones", "check", "m.yaml")
    assert (result.code, "m.yaml:1: `failed_if`: the pattern" in result.words) == (1, True), result.words
    assert "times; use `+` or `*`" in result.words or "is longer than 10,000 characters" in result.words


def test_a_pattern_of_a_suite_is_refused_too_and_one_with_usual_counts_is_not(cli):
    Path("suite.yaml").write_text(SCENARIOS)
    assert "repeats something more than 10,000 times" in cli("evaluate", "suite.yaml").words
    Path("m.yaml").write_text(
        f"failed_if: '\\d{{4}}-\\d{{2}}(-\\p{{L}}{{2,900}}){{30}}'\nmilestones:\n{MILESTONES}"
    )
    assert cli("milestones", "check", "m.yaml").code == 0


READS_AND_WRITES = (
    "check {}",
    "graph {}",
    "init new --from {}",
    "run {} -c talk.txt",
    "run agent.yaml -c {}",
    "chat agent.yaml --model offline --db {}",
    "explain {}",
    "explain --db {}",
    "milestones draw {}",
    "milestones author --agent agent.yaml --workflow {} --out new.yaml --model gpt-4o",
    "milestones author --agent agent.yaml --workflow talk.txt --out {} --model gpt-4o",
    "score {} --milestones milestones.yaml",
    "score talk.json --milestones {}",
    "score talk.json --milestones milestones.yaml --tools {}",
    "score talk.json --milestones milestones.yaml --json {}",
    "score talk.json --milestones milestones.yaml --html {}",
    "finetune-data talk.json --stage 1 --out {}",
    "turns {}",
    "compare {} {}",
    "evaluate {}",
    "evaluate suite.yaml --results {}",
    "simulate {}",
)


@pytest.mark.parametrize(
    ("kind", "line"), [*product(["pipe"], READS_AND_WRITES), *product(["device"], READS_AND_WRITES[:5])]
)
def test_a_pipe_or_a_device_is_refused_by_every_command_that_reads_or_writes_files(cli, kind, line):
    os.environ["OPENAI_API_KEY"] = "no key"
    os.mkfifo("pipe")
    Path("device").symlink_to("/dev/zero")
    Path("agent.yaml").write_text(f"{AGENT}- action: greet\n")
    suite = "scenarios:\n- {name: s, agent: agent.yaml, says: Hello, expect: {never: [no]}}\n"
    Path("suite.yaml").write_text(suite)
    Path("milestones.yaml").write_text(MILESTONES)
    Path("talk.txt").write_text("Hello\n")
    Path("talk.json").write_text('[{"role": "user", "content": "hello?"}]')
    result = cli(*line.format(kind, kind).split())
    assert result.code == 1, result.words
    assert result.err.count("error: ") == 1
    assert "should not happen" not in result.words
    assert "not a regular file" in result.words or "there is no" in result.words, result.words


def test_an_env_file_that_is_a_pipe_is_not_waited_for(cli):
    os.mkfifo(".env")
    result = cli("schema", "agent")
    assert (result.code, ".env cannot be read" in result.words) == (0, True)


BILLION_VALUES = "a0: &a0 [x, x]\n" + "".join(
    f"a{number}: &a{number} [*a{number - 1}, *a{number - 1}]\n" for number in range(1, 30)
)
ALL_AT_ONCE = """\
name: Desk
profile: !shout A desk.
colour: red
colour: blue
tools: [nowhere:tool]
guidelines:
- {id: one, action: greet, depends_on: [tow]}
- {id: two, action: greet, continuous: 7}
- {id: two, action: greet, entails: [&target one]}
glossary:
- {name: order, description: a purchase}
- {name: Order, description: a purchase}
"""


def test_check_names_all_mistakes_of_a_file_at_once(cli):
    Path("agent.yaml").write_text(ALL_AT_ONCE)
    result = cli("check", "agent.yaml")
    for mistake in (
        "2: the tag `!shout` is unknown",
        "3: has an unknown key `colour`",
        "4: the key `colour` is used twice",
        "5: `tools[0]` names the module 'nowhere'",
        "7: `guidelines[0].depends_on[0]` names 'tow'",
        "8: `guidelines[1].continuous` must be true or false",
        "9: `guidelines[2].id` is used twice: 'two'",
        "12: `glossary[1].name` is used twice: 'Order'",
    ):
        assert f"agent.yaml:{mistake}" in result.words
    assert (result.code, result.words.count("agent.yaml:")) == (1, 8), result.words


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("".join(f"key{number}: 1\n" for number in range(2_000)), "and 1,990 more"),
        ("guidelines:\n" + "- 7\n" * 200, "and 190 more"),
        ("guidelines:\n" + "- {id: x, action: greet}\n" * 200, "and 189 more"),
        ("guidelines:\n" + "- {action: greet, entails: [x, y]}\n" * 200, "and 390 more"),
        ("a: " + "x" * 100_000 + "\n- b\n", "is not YAML"),
        ("? " + "x" * 100_000 + "\n: b\n", "characters) …"),
        ("guidelines: [" + "a, " * 600_000 + "]\n", "has more than 500,000 keys and values"),
        (BILLION_VALUES, "aliases (`*name`) stand for more than 50,000 values"),
    ],
)
def test_an_error_names_the_first_ten_mistakes_and_is_never_longer_than_a_screen(cli, text, rest):
    Path("agent.yaml").write_text(f"name: Desk\nprofile: A desk.\n{text}")
    result = cli("check", "agent.yaml")
    assert (result.code, rest in result.words) == (1, True), result.words[-400:]
    assert len(result.words) < 4_200


MODULE = """\
from pathlib import Path

Path("ran").touch()

def tool(order: str) -> str:
    \"\"\"Look an order up.\"\"\"
    return order

def check(event: object, earlier: object) -> bool:
    return True
"""
CHECKED = """\
- {name: Start, type: NFC}
- {name: Greeted, type: NFC, dependencies: [Start], check: "evil:check"}
- {name: End, type: NFC, dependencies: [Greeted]}
"""
SUITE = "scenarios:\n- name: s\n  agent: agent.yaml\n  says: Hello\n  expect: {never: [no]}\n"
CALL = {"lc": 2, "type": "constructor", "id": ["os", "mkdir"], "args": ["ran"]}
LINES = {
    "init": "init new --from tagged.yaml",
    "chat": "chat agent.yaml --model offline",
    "play": "play evil:tool --model offline --no-open",
    "run": "run agent.yaml -c talk.txt --model offline",
    "prepare": "prepare agent.yaml --model offline",
    "check": "check agent.yaml",
    "graph": "graph agent.yaml",
    "evaluate": "evaluate suite.yaml --model offline",
    "experiment": "experiment suite.yaml --model offline --record out",
    "simulate": "simulate suite.yaml --model offline",
    "explain": "explain",
    "schema": "schema agent",
    "score": "score talk.json talk.jsonl --milestones milestones.yaml",
    "compare": "compare talk.json talk.jsonl",
    "turns": "turns talk.json",
    "finetune-data": "finetune-data talk.json talk.jsonl --stage 1 --out out.jsonl",
    "milestones": "milestones check checked.yaml",
}
READING_ONLY = (
    "milestones draw checked.yaml",
    "turns talk.jsonl",
    "score talk.json --milestones tagged.yaml",
)
WITH_OPTIONS = (
    "score talk.json --milestones milestones.yaml --agent agent.yaml",
    "turns talk.json --tools agent.yaml",
    "finetune-data talk.json --stage 1 --out out.jsonl --tools evil:tool",
    "milestones check milestones.yaml --agent agent.yaml",
    "score talk.json --milestones checked.yaml",
)


@pytest.fixture
def sent_folder(folder: Path) -> Path:
    """A folder that somebody sent: what its files name or hold makes the file `ran`."""
    message = {"role": "user", "content": "Hello", "additional_kwargs": CALL}
    tag = "!!python/object/apply:os.mkdir [ran]"
    files = {
        "evil.py": MODULE,
        "agent.yaml": f"{AGENT}- {{action: greet, tools: ['evil:tool']}}\n",
        "tagged.yaml": f"name: {tag}\nprofile: {tag}\nmilestones: {tag}\nscenarios: {tag}\n",
        "milestones.yaml": MILESTONES,
        "checked.yaml": CHECKED,
        "suite.yaml": SUITE,
        "talk.txt": "Hello\n",
        "talk.json": json.dumps([message, {"role": "assistant", "content": "Hi"}, CALL]),
    }
    for name, text in files.items():
        Path(name).write_text(text)
    Path("talk.jsonl").write_bytes(pickle.dumps(Touch()))
    write_thread(*HOSTILE_CHECKPOINTS["a pickle"])
    return folder


def get_documented_commands() -> set[str]:
    """Return the commands of which the documentation says that they run code without any option."""
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    section = page.read_text().partition("**Which commands run code?**")[2]
    return set(re.findall(r"`([\w-]+)`", section.partition(" import the modules")[0]))


@pytest.mark.parametrize("command", LINES)
def test_only_the_commands_that_the_documentation_names_run_code_of_files(cli, sent_folder, command):
    cli(*LINES[command].split())
    assert Path("ran").exists() == (command in get_documented_commands())


def test_the_commands_above_are_all_that_read_files(cli):
    commands = set(re.findall(r"^│ ([a-z][a-z-]+)  ", cli("--help").out, re.MULTILINE))
    assert commands == LINES.keys() | {"demo"}


@pytest.mark.parametrize("line", READING_ONLY)
def test_reading_runs_nothing_else(cli, sent_folder, line):
    cli(*line.split())
    assert not Path("ran").exists()


@pytest.mark.parametrize("line", WITH_OPTIONS)
def test_options_that_name_code_run_it(cli, sent_folder, line):
    cli(*line.split())
    assert Path("ran").exists()


@pytest.mark.parametrize("command", ["check", "graph", "run", "evaluate", "simulate", "milestones"])
def test_tags_of_python_in_a_file_make_nothing(cli, sent_folder, command):
    line = re.sub(r"(agent|suite|checked)\.yaml", "tagged.yaml", LINES[command])
    result = cli(*line.split())
    assert (result.code, "python/object/apply" in result.words, Path("ran").exists()) == (1, True, False)
