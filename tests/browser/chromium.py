"""A headless Chromium, and what readers do with a report in it."""

import json
import typing as t
from pathlib import Path
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from ...plugins.plugin_utils._report.html_page import render
from ...plugins.plugin_utils._report.view import Report

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class Chromium:
    def __init__(self, chromium: str, chromedriver: str, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(chromedriver))
        self._folder = profile

    def close(self) -> None:
        self.driver.quit()

    def start_over(self, folder: Path) -> None:
        self._folder = folder
        self.driver.get("about:blank")
        self.look()
        self.command("Emulation.setScriptExecutionDisabled", value=False)
        self.complaints()
        self.requests()

    def command(self, name: str, **arguments: t.Any) -> t.Any:
        """Send a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def script(self, text: str, *arguments: t.Any) -> t.Any:
        """Run a script of the test, which no policy of the page blocks."""
        return self.driver.execute_script(text, *arguments)

    def look(self, *, width: int = 1280, scheme: str = "light", media: str = "screen") -> None:
        """Set the window's width, the reader's colour scheme, or the output on paper."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)

    def open(self, report: Report) -> None:
        path = self._folder / "report.html"
        path.write_text(render(report), encoding="utf-8")
        self.driver.get(path.as_uri())

    def until(self, condition: t.Callable[[], t.Any]) -> t.Any:
        return WebDriverWait(self.driver, 20, poll_frequency=0.02).until(lambda driver: condition())

    def complaints(self) -> list[t.Any]:
        """Return what the browser has reported since: errors, and what a policy blocked."""
        return self.driver.get_log("browser")

    def requests(self) -> set[str]:
        """Return the schemes of all requests since the last call."""
        schemes = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                schemes.add(urlsplit(message["params"]["request"]["url"]).scheme)
        return schemes - {"about"}

    # ---- the findings ----

    @property
    def count(self) -> str:
        return self.texts("#count")[0].replace("\u00a0", "")

    def texts(self, selector: str) -> list[str]:
        """Return the texts of the elements, as they are in the document."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)",
            selector,
        )

    def attribute(self, selector: str, name: str) -> str | None:
        return self.find(selector).get_attribute(name)

    def find(self, selector: str) -> t.Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def column(self, selector: str) -> list[str]:
        """Return the text of one cell of each displayed row."""
        return self.texts(f"#body > .row {selector}")

    def choose(self, label: str, value: str) -> None:
        self.find(f'#{label} option[value="={value}"]').click()

    def search(self, text: str) -> None:
        self.find("#text").send_keys(text)

    def sort(self, key: str) -> str | None:
        """Click on a column header, and return the sort order that it announces."""
        head = self.find(f'th[data-key="{key}"]')
        head.find_element(By.TAG_NAME, "button").click()
        return head.get_attribute("aria-sort")

    def unfold(self, number: int = 0) -> str:
        """Expand a row, and return what is then visible."""
        self.script(
            "document.querySelectorAll('.fold')[arguments[0]].scrollIntoView({block: 'center'})",
            number,
        )
        self.driver.find_elements(By.CSS_SELECTOR, ".fold")[number].click()
        return self.find(".row.open + .detail").text

    def unfold_all(self) -> None:
        self.script(
            "for (const button of document.querySelectorAll('.fold[aria-expanded=false]')) "
            "button.click();"
        )
        self.script(
            "for (const details of document.querySelectorAll('details')) details.open = true;"
        )

    def tab_to(self, selector: str) -> None:
        """Press Tab until the focus is on the selected element."""
        for _time in range(60):
            at_body = self.script("return document.activeElement === document.body")
            focused = self.find("body") if at_body else self.driver.switch_to.active_element
            focused.send_keys(Keys.TAB)
            if self.script("return document.activeElement.matches(arguments[0])", selector):
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    def press(self, key: str) -> None:
        self.driver.switch_to.active_element.send_keys(key)

    def style(self, selector: str, name: str) -> str:
        return self.script(
            "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]",
            selector,
            name,
        )

    def shown(self, selector: str) -> bool:
        return self.script(
            "return document.querySelector(arguments[0]).checkVisibility()", selector
        )

    def elements(self) -> list[str]:
        return self.script(
            "return [...document.querySelectorAll('*')].map((element) => element.localName).sort()"
        )
