"""The files of examples/: editors find their schemas, and the agent of the documentation is among them."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from arq_graph import Agent
from arq_graph.agent.yaml_file import Document

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
FILES = sorted(EXAMPLES.rglob("*.yaml"))
KINDS = ("agent", "tools", "milestones", "suite")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(EXAMPLES)))
def test_an_editor_finds_the_schema_of_an_example_and_accepts_the_file(file):
    text = file.read_text(encoding="utf-8")
    line = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert line
    schema = file.parent / line[1]
    jsonschema.validate(Document(text, str(file)).values, json.loads(schema.read_text(encoding="utf-8")))


@pytest.mark.parametrize("kind", KINDS)
def test_the_schemas_beside_the_examples_are_those_that_the_command_prints(kind, capsys):
    from arq_graph.cli import main

    with pytest.raises(SystemExit):
        main(["schema", kind])
    stored = (EXAMPLES / ".schemas" / f"{kind}.json").read_text(encoding="utf-8")
    assert stored == capsys.readouterr().out, "run `make schemas`"


def test_the_page_about_guidelines_shows_the_agent_that_is_in_the_examples():
    page = (ROOT / "docs" / "guidelines.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yaml\n# desk.yaml\n(.*?)```", page, re.DOTALL)
    comment, _, stored = (EXAMPLES / "desk.yaml").read_text(encoding="utf-8").partition("\n")
    assert comment == "# yaml-language-server: $schema=.schemas/agent.json"
    assert stored == shown
    assert Agent.from_yaml(EXAMPLES / "desk.yaml").toolbox.keys() == {"get_order", "cancel_order"}
