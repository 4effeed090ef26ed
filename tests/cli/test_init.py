"""`arq-graph init`: a project that runs at once."""

import json
import re

import jsonschema
import pytest
import yaml

SCHEMA_LINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")


def test_a_new_project_runs_offline_as_it_is(cli, folder, monkeypatch):
    made = cli("init", "order-desk")
    assert made.code == 0, made.words
    assert "cd order-desk" in made.words
    monkeypatch.chdir(folder / "order-desk")
    assert "agent.yaml can be run" in cli("check", "agent.yaml").words
    assert cli("milestones", "check", "milestones.yaml", "--agent", "agent.yaml").code == 0
    evaluated = cli("evaluate", "suite.yaml")
    assert evaluated.code == 0, evaluated.words
    assert "6 conversations" in evaluated.words
    talk = cli("chat", "agent.yaml", stdin="Please cancel my order ORD-1002.\nyes\n")
    assert "The order ORD-1002 is cancelled." in talk.words


def test_the_files_of_a_project_name_schemas_that_they_fit(cli, folder):
    cli("init", "desk")
    files = list((folder / "desk").glob("*.yaml"))
    assert len(files) == 3
    for file in files:
        line = SCHEMA_LINE.match(file.read_text())
        assert line, file
        schema = json.loads((file.parent / line[1]).read_text())
        jsonschema.validate(yaml.safe_load(file.read_text()), schema)


def test_the_model_is_the_one_that_was_asked_for(cli, folder):
    assert cli("init", "desk", "--model", "anthropic:claude-x").code == 0
    project = folder / "desk"
    assert "ARQ_GRAPH_MODEL=anthropic:claude-x\nANTHROPIC_API_KEY=" in (project / ".env.example").read_text()
    assert '"anthropic:claude-x"' in (project / "graph.py").read_text()
    assert "arq_graph[cli,play,providers]" in (project / "pyproject.toml").read_text()
    workflow = yaml.safe_load((project / ".github" / "workflows" / "agent.yml").read_text())
    assert workflow["jobs"]["agent"]["env"]["ANTHROPIC_API_KEY"] == "${{ secrets.ANTHROPIC_API_KEY }}"


@pytest.mark.parametrize("name", ["null", "no", "True", "x-1_"])
def test_a_name_that_means_something_in_yaml_is_a_name(cli, folder, name):
    assert cli("init", name).code == 0
    assert (
        f'name: "{name.replace("-", " ").replace("_", " ").strip().capitalize()}"'
        in (folder / name / "agent.yaml").read_text()
    )


@pytest.mark.parametrize("name", ["9lives", ".", "-x", "a b", 'x"]', "ü", "a" * 65])
def test_a_name_that_other_files_could_not_hold_is_refused(cli, folder, name):
    result = cli("init", "--", name)
    assert result.code == 2
    assert "must begin with a letter" in result.words
    assert list(folder.iterdir()) == []


def test_a_folder_with_something_in_it_is_left_alone(cli, folder):
    (folder / "desk").mkdir()
    (folder / "desk" / "notes.txt").write_text("mine")
    result = cli("init", "desk")
    assert result.code == 1
    assert "desk isn't empty: choose another name" in result.words
    assert [path.name for path in folder.rglob("*")] == ["desk", "notes.txt"]


def test_an_empty_folder_is_filled(cli, folder):
    (folder / "desk").mkdir()
    assert cli("init", "desk").code == 0
    assert (folder / "desk" / "agent.yaml").exists()


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(cli, folder):
    result = cli("init", "nowhere/desk")
    assert result.code == 1
    assert "nowhere/desk can't be written: No such file or directory" in result.words
    assert list(folder.iterdir()) == []
