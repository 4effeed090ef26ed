"""`arq-graph simulate`: one conversation to watch."""

OFFLINE = ["--model", "offline"]


def test_a_conversation_is_shown_turn_by_turn_with_its_milestones(cli, shop):
    result = cli("simulate", "suite.yaml", *OFFLINE)
    assert result.code == 0
    parts = ("Where is my order?", "B-1002", "get_order {", "✓ get_order", "✓ Thanked", "✓ End")
    places = [result.out.index(part) for part in parts]
    assert places == sorted(places)
    assert "100% goal completed" in result.words
    assert "customer's goal: get_order: reached" in result.words
    assert "the user left" in result.words
    assert not shop.with_name("suite.results.jsonl").exists()


def test_a_kind_of_user_that_the_suite_does_not_name_can_be_watched(cli, shop):
    result = cli("simulate", "suite.yaml", "--kind", "perturbed", *OFFLINE)
    assert result.code == 0
    assert not any("B-1002" in line for line in result.out.splitlines() if line.strip().startswith("user "))
    other = cli("simulate", "suite.yaml", "--kind", "unhelpful", "--scenario", "order", *OFFLINE)
    assert other.out.startswith("order (unhelpful) · ")
    assert "there is no scenario 'x'" in cli("simulate", "suite.yaml", "--scenario", "x", *OFFLINE).words


def test_a_failure_of_the_app_is_shown_after_the_conversation(cli, shop):
    failed = cli("simulate", "suite.yaml", "--arm", "desk:hostile", *OFFLINE)
    assert failed.code == 1
    assert "gone" in failed.err
    assert "Where is my order?" in failed.out
    assert "\x1b" not in failed.out + failed.err
    assert cli("simulate", "suite.yaml", "--arm", "desk:unreached", *OFFLINE).code == 3
