"""What tests of pages share: sizes of screens, what axe-core finds, and where things are on a report's page."""

import pytest

PHONE = {"width": 360, "height": 720}
DESK = {"width": 1400, "height": 900}
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"


def list_violations(page):
    """Return what axe-core finds: faint text, buttons without a name, tables without heads, …"""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [(rule["id"], node["html"][:120]) for rule in found for node in rule["nodes"]]


def find_node(page, name):
    return page.locator(f'[data-milestone="{name}"]')


def open_graph(page):
    page.locator("#bench > summary").click()
    page.wait_for_selector(".node")


def get_texts(page, selector):
    return [text.strip() for text in page.locator(selector).all_inner_texts()]
