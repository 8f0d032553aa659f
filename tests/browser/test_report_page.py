"""The HTML report as its readers use it in a browser.

With mouse, keyboard, paper, small windows and many findings.
"""

import collections
import dataclasses as d
import statistics
import typing as t

import pytest
from selenium.webdriver.common.keys import Keys

from ...plugins.module_utils._common.text import make_printable
from ...plugins.module_utils._core.models.kinds import KINDS
from . import reports
from .chromium import Chromium

# The places where names are displayed, each by different code.
_DRAWN = (
    ".banner.bad",
    ".where",
    ".journal",
    ".lines .name",
    ".server",
    ".hosts",
    ".reason",
    ".providers",
    ".answer summary",
    ".answer pre",
    ".detail dd",
    ".detail li",
    ".plain-list",
    "#host option:last-child",
)

# Types a text letter by letter, and returns how long each letter kept the page busy, including
# drawing.
_TYPED = """
const [text, done] = arguments, box = document.getElementById("text"), took = [];
const next = (length) => {
  if (length > text.length) return done(took);
  const start = performance.now();
  box.value = text.slice(0, length);
  box.dispatchEvent(new Event("input", { bubbles: true }));
  document.body.getBoundingClientRect();
  took.push(performance.now() - start);
  requestAnimationFrame(() => next(length + 1));
};
next(1);
"""


@pytest.mark.long
def test_page_opens_2000_findings_within_2_seconds(chromium: Chromium) -> None:
    took = []
    report = reports.many(2000)
    for _time in range(3):
        chromium.open(report)
        opened = "return performance.getEntriesByType('navigation')[0].domComplete"
        took.append(chromium.script(opened))
        assert len(chromium.column("td")) > 0
    assert chromium.count == f"{len(reports.entries_of(report))} findings"
    print(f"opened after {', '.join(f'{milliseconds:.0f}' for milliseconds in took)} ms")
    # Other tests may use the processors at the same time.
    assert min(took) < 2000


@pytest.mark.long
@pytest.mark.parametrize(("count", "limit"), [(2_000, 50), (20_000, 250)])
def test_filter_responds_without_lag(chromium: Chromium, count: int, limit: int) -> None:
    chromium.open(reports.many(count))
    took = chromium.driver.execute_async_script(_TYPED, "evacuated_source rack3")
    print(f"{count} findings: {statistics.median(took):.0f} ms, {max(took):.0f} ms at most")
    assert int(chromium.count.split()[0]) < count / 20
    assert statistics.median(took) < limit


def test_page_shows_more_rows_when_scrolled_to_the_end(chromium: Chromium) -> None:
    chromium.open(reports.many(200))
    drawn = len(chromium.column(".kind"))
    assert drawn < 200
    chromium.script("document.getElementById('further').scrollIntoView()")
    chromium.until(lambda: len(chromium.column(".kind")) > drawn)
    while chromium.script("return !document.getElementById('further').hidden"):
        chromium.script("document.getElementById('further').click()")
    assert len(chromium.column(".kind")) == len(reports.entries_of(reports.many(200)))


@pytest.mark.parametrize("key", ["vcpu", "memory", "disk"])
def test_page_sorts_amounts_numerically(chromium: Chromium, key: str) -> None:
    report = reports.remediated()
    for number, entry in enumerate(report.findings["findings"]):
        if entry["change"]:
            for share in entry["change"]["frees"].values():
                share.update(VCPU=number, MEMORY_MB=700 * number, DISK_GB=700 * number)
    chromium.open(report)
    unsorted = chromium.column(".kind")
    assert chromium.sort(key) == "descending"
    title = {"vcpu": "VCPU", "memory": "Memory", "disk": "Disk"}[key]
    falling = [_bytes(amount) for amount in chromium.column(f'[data-title="{title}"]')]
    assert falling == sorted(falling, reverse=True) and len(set(falling)) > 5
    assert chromium.sort(key) == "ascending"
    assert [_bytes(amount) for amount in chromium.column(f'[data-title="{title}"]')] == falling[
        ::-1
    ]
    assert chromium.sort(key) is None
    assert chromium.column(".kind") == unsorted


@pytest.mark.parametrize(
    ("key", "selector"), [("kind", ".kind"), ("hosts", ".hosts"), ("state", ".state")]
)
def test_page_sorts_texts_alphabetically(chromium: Chromium, key: str, selector: str) -> None:
    chromium.open(reports.remediated())
    before = chromium.column(selector)
    assert chromium.sort(key) == "ascending"
    rising = chromium.column(selector)
    assert chromium.sort(key) == "descending"
    assert sorted(before) == sorted(rising)
    assert chromium.column(selector)[0] == rising[-1] != rising[0]


@pytest.mark.parametrize(
    ("label", "key"), [("verdict", "verdict"), ("kind", "kind"), ("project", "project")]
)
def test_filter_keeps_only_rows_with_the_chosen_value(
    chromium: Chromium, label: str, key: str
) -> None:
    report = reports.remediated()
    chromium.open(report)
    entries = reports.entries_of(report)
    for value, count in collections.Counter(entry[key] or "" for entry in entries).items():
        chromium.choose(label, value)
        assert chromium.count == f"{count} of {len(entries)} findings"
        assert len(chromium.column(".kind")) == count
        if label != "project":
            assert set(chromium.column(f".{label}")) == {value}


def test_page_filters_by_host_outcome_and_text_together(chromium: Chromium) -> None:
    report = reports.many(2000)
    total = f"{len(reports.entries_of(report))} findings"
    chromium.open(report)
    chromium.choose("host", "compute-1.rack3")
    of_host = int(chromium.count.split()[0])
    chromium.choose("state", "reduced")
    chromium.search("wrong_amount requires")
    found = int(chromium.count.split()[0])
    assert 0 < found < of_host < 2000
    assert set(chromium.column(".kind")) == {"wrong_amount"}
    assert all("compute-1.rack3" in hosts for hosts in chromium.column(".hosts"))
    chromium.search(" nothing is like this")
    assert chromium.count == f"0 of {total}" and chromium.column(".kind") == []
    chromium.find("[type=reset]").click()
    chromium.until(lambda: chromium.count == total)


def test_filter_finds_new_findings(chromium: Chromium) -> None:
    report = reports.remediated()
    chromium.open(report)
    assert not chromium.shown("#fresh-label")
    for number, entry in enumerate(reports.entries_of(report)):
        entry.update(new=number < 3, first_seen="2026-11-20T01:02:03Z")
    chromium.open(report)
    assert "3" in chromium.texts(".card.fresh")[0]
    chromium.find("#fresh").click()
    assert chromium.count == f"3 of {len(reports.entries_of(report))} findings"
    assert "2026-11-20T01:02:03Z" in chromium.unfold()


def test_page_expands_evidence_change_and_log_complaints(chromium: Chromium) -> None:
    chromium.open(reports.remediated())
    chromium.choose("kind", "unhosted_server")
    entry = _find_entry("unhosted_server")
    told = chromium.unfold()
    assert entry["reason"] in told
    for answer in entry["evidence"]:
        assert answer["request"] in told and str(answer["status"]) in told and answer["at"] in told
    for provider in entry["providers"]:
        assert provider["name"] in told and provider["uuid"] in told
    assert chromium.column(".kind") == ["unhosted_server"]
    removed, added = chromium.texts(".line.removed"), chromium.texts(".line.added")
    assert any(entry["providers"][0]["uuid"] in line and line.startswith("−") for line in removed)
    assert [line.strip() for line in added] == ['+   "allocations": {},']
    assert "in the database" in told
    chromium.find(".fold").click()
    assert chromium.texts(".detail") == []


def test_page_explains_each_kind_where_it_is_counted_and_where_it_is_found(
    chromium: Chromium,
) -> None:
    chromium.open(reports.remediated())
    help_text = '[data-kind="deleted_server"] .help'
    assert not chromium.shown(help_text)
    chromium.find('[data-kind="deleted_server"] summary').click()
    told = chromium.find(help_text).text
    (meaning,) = (kind.meaning for kind in KINDS if kind.name == "deleted_server")
    assert meaning in told and "by default" in told
    assert """-e '{"orphan_cleanup_remediate_kinds": ["deleted_server"]}' --check""" in told
    chromium.choose("kind", "deleted_server")
    assert meaning in chromium.unfold()
    links = chromium.script(
        "return [...document.querySelectorAll('.meaning a')].map((link) => link.href)"
    )
    page = "https://github.com/osops/ansible-placement/blob/main/docs/kinds.md"
    assert links[0] == links[-1] == f"{page}#deleted_server"


def test_page_has_names_beside_uuids_of_requests_and_changes(chromium: Chromium) -> None:
    entry = _find_entry("evacuated_source")
    chromium.open(reports.remediated())
    chromium.choose("kind", "evacuated_source")
    chromium.unfold()

    def get_names(selector: str) -> set[tuple[str, str]]:
        pairs = chromium.script(
            "return [...document.querySelectorAll(`${arguments[0]} .known`)].map((name) =>"
            " [name.parentElement.textContent, name.textContent])",
            selector,
        )
        return set(map(tuple, pairs))

    server = entry["server"]
    assert any(
        f"GET /servers/{server['uuid']}" in text and name == server["name"]
        for text, name in get_names(".answer summary")
    )
    providers = {provider["uuid"]: provider["name"] for provider in entry["providers"]}
    for uuid in entry["change"]["before"]["allocations"]:
        assert any(
            uuid in text and name == providers[uuid] for text, name in get_names(".side.removed")
        )


def test_command_is_copied_as_one_line(chromium: Chromium) -> None:
    chromium.look(width=390)
    chromium.open(d.replace(reports.planned(), plan_path="/srv/a b/plan.json"))
    chromium.find(".steps summary").click()
    chromium.script(
        "window.copied = [];"
        "navigator.clipboard.writeText = (text) => Promise.resolve(window.copied.push(text));"
    )
    button = chromium.find(".steps .command button")
    button.click()
    chromium.until(lambda: button.text == "Copied")
    assert chromium.script("return window.copied") == [
        "ansible-playbook osops.placement.cleanup_orphans "
        """-e '{"orphan_cleanup_plan": "/srv/a b/plan.json"}'"""
    ]
    chromium.script("navigator.clipboard.writeText = () => Promise.reject()")
    button.click()
    chromium.until(lambda: button.text == "Selected")
    assert chromium.script("return String(getSelection())") == (
        chromium.script("return window.copied[0]")
    )


def test_page_explains_changes_that_were_not_made(chromium: Chromium) -> None:
    chromium.open(reports.remediated())
    chromium.choose("state", "skipped")
    assert "since detection" in chromium.unfold()
    assert set(chromium.column(".state")) == {"skipped"}


def test_expanded_rows_stay_expanded_after_sorting(chromium: Chromium) -> None:
    chromium.open(reports.remediated())
    told = chromium.unfold(4)
    chromium.sort("age")
    assert chromium.find(".row.open + .detail").text == told


def test_page_works_with_the_keyboard_alone(chromium: Chromium) -> None:
    chromium.open(reports.remediated())
    chromium.tab_to('th[data-key="memory"] button')
    assert chromium.style(":focus", "outlineStyle") == "solid"
    chromium.press(Keys.ENTER)
    assert chromium.attribute("th[data-key=memory]", "aria-sort") == "descending"
    chromium.tab_to(".fold")
    chromium.press(Keys.SPACE)
    assert chromium.script("return document.activeElement.getAttribute('aria-expanded')") == "true"
    chromium.tab_to(".answer:nth-of-type(2) summary")
    chromium.press(Keys.ENTER)
    assert chromium.shown(".answer:nth-of-type(2) pre")


def test_page_announces_the_number_of_rows_to_screen_readers(chromium: Chromium) -> None:
    chromium.open(reports.remediated())
    assert chromium.attribute("#count", "aria-live") == "polite"
    # A table that is displayed as blocks keeps its roles only if they are explicit.
    chromium.look(width=360)
    nodes = chromium.command("Accessibility.getFullAXTree")["nodes"]
    roles = collections.Counter(node["role"]["value"] for node in nodes if not node["ignored"])
    entries = reports.entries_of(reports.remediated())
    assert roles["columnheader"] >= 8 and roles["row"] > len(entries) and roles["status"] == 1
    for node in nodes:
        if not node["ignored"] and node["role"]["value"] in ("button", "combobox", "searchbox"):
            assert node["name"]["value"], node


def test_page_follows_the_dark_colour_preference(chromium: Chromium) -> None:
    chromium.open(reports.remediated())
    light = [_lightness(chromium.style("body", name)) for name in ("backgroundColor", "color")]
    chromium.look(scheme="dark")
    dark = [_lightness(chromium.style("body", name)) for name in ("backgroundColor", "color")]
    assert light[0] > 200 > 80 > light[1] and dark[0] < 40 < 200 < dark[1]


def test_printed_page_has_all_rows_with_reasons_and_no_controls(chromium: Chromium) -> None:
    report = reports.many(200)
    chromium.open(report)
    assert not chromium.shown(".row .why") and chromium.shown("#filters")
    chromium.choose("verdict", "protected")
    chromium.look(media="print")
    total = len(reports.entries_of(report))
    chromium.until(lambda: f"{len(chromium.column('.why'))} of {total} findings" == chromium.count)
    assert chromium.shown(".row .why") and not chromium.shown("#filters")
    assert chromium.style("body", "backgroundColor") == "rgb(255, 255, 255)"
    chromium.look(media="print", scheme="dark")
    assert chromium.style("body", "backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize(
    "report",
    [reports.remediated, reports.closed, lambda: reports.named("x" * 255)],
    ids=["remediated", "closed", "long names"],
)
@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_page_is_never_wider_than_the_window(
    chromium: Chromium, width: int, report: t.Callable[[], t.Any]
) -> None:
    chromium.look(width=width)
    chromium.open(report())
    chromium.unfold_all()
    assert chromium.script("return document.documentElement.scrollWidth") <= width


def test_page_makes_a_failed_soundness_check_obvious(chromium: Chromium) -> None:
    report = reports.closed()
    chromium.open(report)
    told = chromium.find(".banner.bad").text
    for gate in report.findings["summary"]["coverage"]["failed_checks"]:
        assert gate in told
    bottom = "return document.querySelector('.banner.bad').getBoundingClientRect().bottom"
    assert chromium.script(bottom) < 400


def test_page_without_javascript_is_a_plain_list(chromium: Chromium) -> None:
    chromium.command("Emulation.setScriptExecutionDisabled", value=True)
    chromium.open(reports.remediated())
    told = chromium.find("body").text
    assert "JavaScript" in told and "may be changed" not in told and "7 GiB" in told
    for entry in reports.entries_of(reports.remediated()):
        assert (entry["consumer"] or "") in told and make_printable(entry["reason"]) in told


@pytest.mark.parametrize("name", reports.HOSTILE)
def test_page_shows_a_hostile_name_as_text_only(chromium: Chromium, name: str) -> None:
    """The name causes no dialog, script, element or request.

    The fixture checks that the browser reports nothing.
    """
    chromium.open(reports.named("x"))
    chromium.unfold_all()
    harmless = chromium.elements()
    chromium.open(reports.named(reports.HOSTILE[name]))
    chromium.unfold_all()
    assert chromium.elements() == harmless
    assert chromium.script("return window.__pwned") is None
    # Complaints of hosts are shown with shortened names.
    shown = make_printable(reports.HOSTILE[name])[:39]
    for place in _DRAWN:
        assert any(shown in _unquoted(text) for text in chromium.texts(place)), place


def test_name_cannot_change_the_direction_of_surrounding_text(chromium: Chromium) -> None:
    name = "שרת"
    chromium.open(reports.named(name))
    chromium.unfold_all()
    loose = chromium.script(
        """
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), loose = [];
        while (walker.nextNode()) {
          const { data, parentElement } = walker.currentNode;
          if (data.includes(arguments[0]) &&
              !parentElement.closest("bdi, option, script, noscript"))
            loose.push(parentElement.outerHTML);
        }
        return loose;
        """,
        name,
    )
    assert loose == []


def test_content_security_policy_blocks_foreign_content(chromium: Chromium) -> None:
    chromium.open(reports.remediated())
    chromium.script(
        """
        const script = document.createElement("script");
        script.textContent = "window.__pwned = 1";
        document.body.append(script);
        document.body.setAttribute("onclick", "window.__pwned = 2");
        document.body.click();
        document.body.setAttribute("style", "color: rgb(1, 2, 3)");
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/x.png";
        document.body.append(image);
        """
    )
    assert chromium.script("return window.__pwned") is None
    assert chromium.style("body", "color") != "rgb(1, 2, 3)"

    def list_refused() -> list[str]:
        messages = [entry["message"] for entry in chromium.complaints()]
        return [message for message in messages if "Content Security Policy" in message]

    refused = chromium.until(list_refused)
    assert any("connect" in message or "loading" in message.lower() for message in refused)
    # The browser also counts what it blocked as requested.
    chromium.requests()


def _find_entry(kind: str) -> t.Any:
    (entry,) = (each for each in reports.remediated().findings["findings"] if each["kind"] == kind)
    return entry


def _bytes(amount: str) -> float:
    number, _space, unit = amount.partition(" ")
    return 0 if amount == "–" else float(number) * 1024 ** ("", "MiB", "GiB", "TiB").index(unit)


def _lightness(color: str) -> float:
    return statistics.mean(map(int, color.removeprefix("rgb(").removesuffix(")").split(",")))


def _unquoted(text: str) -> str:
    """Undo the doubled quotes and backslashes of text that is displayed as JSON."""
    return text + text.replace('\\"', '"').replace("\\\\", "\\")
