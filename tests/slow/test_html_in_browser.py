"""The page of a report in a headless Chromium: what it shows, what a click does, on a phone and in the dark."""

import json

import pytest

from arq_graph.milestones import Report, Transcript, score_transcripts
from arq_graph.milestones.evaluation.expectation import Expectation
from arq_graph.milestones.reports.table_format import Row, Table
from tests.milestones.conversations import agent, called, conversation, user
from tests.milestones.sample_report import hostile_report, make_sample_report
from tests.slow.report_pages import DESK, PHONE, WIDTHS, find_node, get_texts, list_violations, open_graph

pytestmark = pytest.mark.slow


ANSWERS = {
    ("again", "arq"): [agent("active: hours")],
    ("again", "direct"): [agent("active: fees")],
    ("booking", "arq"): [called("look", id=7), agent("It is done.")],
    ("booking", "direct"): [called("look", id=7), agent("It is done.")],
}
EXPECTED = {
    "again": Expectation.model_validate({"active": ["hours"]}),
    "booking": Expectation.model_validate(
        {
            "calls": [{"tool": "look", "arguments": {"id": 7}}],
            "says": [{"pattern": "done"}],
            "never": ["sorry"],
        }
    ),
}


@pytest.fixture
def open_experiment(open_report):
    """Opens the page of two cases in two arms: of active guidelines, in which the arms differ, and of a turn."""

    def open_page(link="", **context):
        filled = {"hours": {"score": 2, "should_apply": False}}
        extra = {"model_answers": [{"module": "matcher", "answer": {"content": json.dumps(filled)}}]}
        talks: list[Transcript] = [
            conversation(user("Hello?"), *events, id=f"{case} / {arm}", use_case=case, extra=extra)
            for (case, arm), events in ANSWERS.items()
        ]
        graphs = {case: wanted.make_graph(["look"]) for case, wanted in EXPECTED.items()}
        report = score_transcripts(graphs, talks).report()
        records = []
        for record, (case, arm) in zip(report.conversations, ANSWERS, strict=True):
            expected = EXPECTED[case].model_dump(mode="json", exclude_defaults=True)
            fields = {"scenario": case, "arm": arm, "run": 1, "twin": "booking", "expected": expected}
            records.append(record.model_copy(update=fields))
        row = Row(name="booking", cells=("100%", "100%"))
        table = Table(title="success by category", columns=("arq", "direct"), rows=(row,))
        report = Report(conversations=tuple(records), graphs=report.graphs)
        return open_report(report, talks, link, tables=[table], **context)

    return open_page


def get_comparison(page):
    return [" ".join(text.split()) for text in page.locator(".compared tbody tr").all_inner_texts()]


def test_the_cases_in_which_arms_differ_are_found_and_compared(open_experiment):
    page = open_experiment()
    assert get_texts(page, ".case .id") == ["again", "booking"]
    page.locator("#differ").check()
    assert get_texts(page, ".case .id") == ["again"]
    page.locator(".case .row").click()
    page.wait_for_selector(".case[data-open]:has-text('again')")
    assert get_comparison(page)[:2] == ["active hours ✓ ✕", "active, not expected fees ✕"]
    page.locator(".compared button", has_text="direct").click()
    page.wait_for_selector(".compared .missed[aria-current=true]")
    page.locator(".answers summary").click()
    assert get_texts(page, ".answers .tag") == ["expected active"]
    page.locator(".twin button").click()
    page.wait_for_selector(".compared tr:has-text('never says')")
    assert get_comparison(page)[:3] == [
        "calls look(id: 7) ✓ ✓ event 2",
        "says /done/ ✓ ✓ event 4",
        "never says /sorry/ ✓ ✓",
    ]
    assert "called look(id: 7) look(id: 7)" in get_comparison(page)


def test_what_the_list_is_filtered_by_stands_in_the_address(open_experiment):
    page = open_experiment()
    page.locator("#arm").select_option("direct")
    page.locator("#use").select_option("booking")
    assert page.evaluate("location.hash") == "#arm=direct&use=booking"
    for link, names in (
        ("#arm=direct&use=booking", ["booking"]),
        ("#state=missed&arm=direct", ["again"]),
        ("#state=missed&arm=arq", []),
        ("#differ=1&c=3", ["again"]),
        ("#state=nonsense&sort=x", ["again", "booking"]),
    ):
        assert get_texts(open_experiment(link), ".case .id") == names
    page.locator("#arm").select_option("")
    page.locator("#use").select_option("again")
    assert get_texts(page, ".case .id") == ["again"]


@pytest.mark.parametrize("how", ["click", "Enter"])
def test_a_milestone_shows_who_reached_it_and_who_stopped_there(open_refunds, how):
    page = open_refunds()
    open_graph(page)
    if how == "click":
        find_node(page, "find_by_number").click()
    else:
        find_node(page, "find_by_number").press(how)
    page.locator("#inspector button", has_text="3 reached it").click()
    assert get_texts(page, ".row .id") == ["mug", "lamp", "kettle"]
    page.locator("#inspector button", has_text="1 stopped here").click()
    assert get_texts(page, ".row .id") == ["lamp"]


def test_a_conversation_has_its_milestones_and_faults_at_their_events(open_refunds):
    page = open_refunds()
    page.locator(".row", has_text="mug").click()
    page.wait_for_selector("#reader .event")
    marks = {step: get_texts(page, f"#event-{step} .marks .badge") for step in range(1, 7)}
    assert {step: names for step, names in marks.items() if names} == {
        2: ["◆ find_by_number"],
        4: ["◆ Comforted"],
        5: ["◆ refund", "◆ Both", "◆ End"],
    }
    page.locator("#reader button", has_text="Next").click()
    page.wait_for_selector("#event-6 .invented")
    assert "repeats an earlier call" in page.locator("#event-4 .marks").inner_text()
    page.locator("#reader button", has_text="Next").click()
    page.wait_for_selector("#event-6.forbidden")
    assert "guarantee" in page.locator("#event-6 .tag.bad").inner_text()
    long = page.locator(".event.result details")
    assert not long.locator("pre").is_visible()
    long.locator("summary").click()
    assert len(long.locator("pre").inner_text()) == 900


def test_a_link_leads_to_a_conversation_and_a_milestone(open_refunds):
    page = open_refunds("#c=2&n=refund")
    assert page.locator("#reader h2").inner_text() == "kettle"
    assert page.locator("#inspector h2").inner_text() == "refund"
    for link in ("#c=99&n=nothing", "#c=-1", "#c=%FF&n", "#g=x"):
        assert open_refunds(link).locator(".row").count() == 4


def test_the_list_is_filtered_searched_and_sorted(open_refunds):
    page = open_refunds()
    for state, names in (
        ("completed", ["mug"]),
        ("forbidden", ["kettle"]),
        ("missed", ["lamp", "kettle", "lamp"]),
    ):
        page.locator(f'[data-state="{state}"]').click()
        assert get_texts(page, ".row .id") == names
    page.locator('[data-state="all"]').click()
    page.locator("#sort").select_option("least")
    assert get_texts(page, ".row .id")[-2:] == ["mug", "kettle"]
    page.locator("#search").fill("OTHERS")
    assert get_texts(page, ".row .id") == ["kettle"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_and_everything_that_can_be_clicked_has_a_name(open_refunds, scheme):
    for link, viewport in (("", DESK), ("#c=1&n=refund", DESK), ("#n=End", PHONE)):
        page = open_refunds(link, color_scheme=scheme, viewport=viewport)
        page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        assert list_violations(page) == []


def test_a_comparison_of_arms_can_be_read_in_the_dark_and_on_a_phone(open_experiment):
    page = open_experiment("#c=1", viewport=PHONE, color_scheme="dark")
    page.locator(".answers").evaluate("element => { element.open = true; }")
    assert list_violations(page) == []
    width, screen = page.evaluate(WIDTHS)
    assert width <= screen


@pytest.mark.parametrize("link", ["", "#n=find_by_number", "#c=2&n=End"])
def test_on_a_phone_nothing_is_wider_than_the_screen(open_refunds, link):
    page = open_refunds(link, viewport=PHONE, has_touch=True)
    width, screen = page.evaluate(WIDTHS)
    assert width <= screen
    if "c=" in link:
        assert page.locator("#reader").bounding_box()["width"] == screen
        page.locator("#close").click()
    assert page.locator("#reader").is_hidden()
    if not link:
        open_graph(page)
    assert get_texts(find_node(page, "refund"), ".caption") == ["refund\n2 of 4"]


def test_hostile_text_stays_text(open_report):
    page = open_report(*hostile_report(), "#c=0", "<script>window.harmed=1</script>", viewport=PHONE)
    page.wait_for_selector("#event-5")
    for details in page.locator(".event details").all():
        details.evaluate("element => { element.open = true; }")
    page.locator("#reader .badge").nth(0).click()
    assert page.evaluate("window.harmed") is None
    assert page.locator("img").count() == 0
    assert "<img src=x" in page.locator("#inspector").inner_text()
    width, screen = page.evaluate(WIDTHS)
    assert width <= screen


def test_thousands_of_conversations_are_listed_a_page_at_a_time(open_report):
    talks = [conversation(user(f"words of {at}"), id=f"talk {at}") for at in range(3_000)]
    page = open_report(make_sample_report(talks), talks)
    assert page.locator("#notices").inner_text() == ""
    assert page.locator(".row").count() == 100
    page.locator("#pages button", has_text="Show 100 more").click()
    assert page.locator(".row").count() == 200
    page.locator("#search").fill("talk 2999")
    assert get_texts(page, ".row .id") == ["talk 2999"]
