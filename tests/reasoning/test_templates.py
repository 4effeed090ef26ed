"""Prompt templates: their blocks, their errors, and replacing one block of a template."""

from __future__ import annotations

from pathlib import Path

import pytest

from arq_graph.errors import PromptError
from arq_graph.reasoning.templates import PromptTemplate

SHIPPED = """\
{% block head %}
{% block task %}
Do the task.
{% endblock %}

{% block rules %}
Keep the rules.
{% endblock %}
{{ items | section("items") }}
{% endblock %}
{% block tail %}
{{ now | json }}
{% endblock %}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shipped.md").write_text(SHIPPED, encoding="utf-8")
    return tmp_path


def test_blocks_are_rendered_one_at_a_time(folder):
    template = PromptTemplate(folder / "shipped.md", folder)
    assert template.render("head", {"items": [1]}) == ("Do the task.\n\nKeep the rules.\n<items>[1]</items>")
    assert template.render("tail", {"now": {"a": "<"}}) == '{"a": "\\u003c"}'


def test_a_template_may_be_given_as_text(folder):
    assert PromptTemplate("{% block head %}Hi {{ name }}{% endblock %}", folder).render(
        "head", {"name": "Ada"}
    ) == ("Hi Ada")


def test_one_block_can_be_overridden_and_the_rest_kept(folder):
    text = '{% extends "shipped.md" %}{% block task %}Do mine.{% endblock %}'
    template = PromptTemplate(text, folder)
    head = template.render("head", {"items": []})
    assert head.startswith("Do mine.")
    assert "Keep the rules." in head
    assert template.render("tail", {"now": 1}) == "1"


def test_an_overriding_block_may_add_to_the_shipped_one(folder):
    text = '{% extends "shipped.md" %}{% block rules %}{{ super() }}And be kind.{% endblock %}'
    head = PromptTemplate(text, folder).render("head", {"items": []})
    assert "Keep the rules.\nAnd be kind." in head


def test_a_chain_of_overrides_takes_the_most_derived_block(folder):
    (folder / "middle.md").write_text(
        '{% extends "shipped.md" %}{% block task %}Middle.{% endblock %}{% block rules %}Mine.{% endblock %}'
    )
    text = '{% extends "middle.md" %}{% block task %}{{ super() }} Top.{% endblock %}'
    head = PromptTemplate(text, folder).render("head", {"items": []})
    assert head.startswith("Middle. Top.")
    assert "Mine." in head


def test_rendering_one_template_does_not_change_another(folder):
    shipped = PromptTemplate(folder / "shipped.md", folder)
    before = shipped.render("head", {"items": []})
    PromptTemplate('{% extends "shipped.md" %}{% block task %}X{% endblock %}', folder).render(
        "head", {"items": []}
    )
    assert shipped.render("head", {"items": []}) == before


def test_a_variable_that_is_not_given_is_an_error_that_names_it(folder):
    with pytest.raises(PromptError, match=r"shipped.md, block 'head': 'items' is undefined"):
        PromptTemplate(folder / "shipped.md", folder).render("head", {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{% block head %}", "the given template is not a valid Jinja2 template"),
        ("{% block head %}{{ x | shout }}{% endblock %}", "No filter named 'shout'"),
        ("{% extends name %}", "named by a plain string"),
        ("{% extends 'nowhere.md' %}", "nowhere.md"),
    ],
)
def test_a_template_that_cannot_be_read_is_an_error(folder, text, problem):
    with pytest.raises(PromptError, match=problem):
        PromptTemplate(text, folder)


def test_a_file_that_is_missing_or_no_text_is_an_error(folder):
    with pytest.raises(PromptError, match=r"cannot read the prompt template .*none\.md"):
        PromptTemplate(folder / "none.md", folder)
    (folder / "latin.md").write_bytes("{% block head %}Grüße{% endblock %}".encode("latin-1"))
    with pytest.raises(PromptError, match=r"cannot read the prompt template .*latin\.md"):
        PromptTemplate(folder / "latin.md", folder)
    with pytest.raises(PromptError, match="cannot read"):
        PromptTemplate(folder, folder)


def test_a_path_given_as_text_is_told_apart_from_a_template(folder):
    with pytest.raises(PromptError, match="looks like a file's name"):
        PromptTemplate("prompts/mine.md", folder).render("head", {})


def test_blocks_that_are_needed_are_looked_for_at_once(folder):
    with pytest.raises(PromptError, match=r"has no block 'tail'; it needs \{% block head %\}"):
        PromptTemplate("{% block head %}{% endblock %}", folder, needs=("head", "tail"))


@pytest.mark.parametrize(
    "text",
    [
        "{% block head %}{{ 1 / 0 }}{% endblock %}",
        "{% block head %}{{ name.upper }}{{ name + 1 }}{% endblock %}",
        "{% block head %}{{ name | int(base=99) }}{{ name[0:'x'] }}{% endblock %}",
    ],
)
def test_an_error_inside_a_template_is_an_error_of_the_prompt(folder, text):
    with pytest.raises(PromptError, match="block 'head'"):
        PromptTemplate(text, folder).render("head", {"name": "Ada"})


def test_what_a_customer_writes_is_never_read_as_a_template(folder):
    template = PromptTemplate(folder / "shipped.md", folder)
    assert "{{ 7 * 7 }}" in template.render("head", {"items": ["{{ 7 * 7 }}{% block task %}"]})
