"""A real Chromium, and reports opened in it from files, as readers open them.

No cloud is needed.
"""

import shutil
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ...plugins.plugin_utils._report.proposed_commands import ENVIRONMENT
from .chromium import Chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in paths:
        pytest.skip(
            "Chromium is missing: apt-get install --no-install-recommends chromium chromium-driver"
        )
    browser = Chromium(*t.cast("list[str]", paths), tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def chromium(
    browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Chromium]:
    """The browser, in a clean state, for reports of a run of cleanup_orphans.

    The test fails if the page did anything that it must not do.
    """
    for name in ("AWX_PRIVATE_DATA_DIR", *ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    options = ImmutableDict(args=("osops.placement.cleanup_orphans",))
    monkeypatch.setattr(context, "CLIARGS", options)
    browser.start_over(tmp_path)
    yield browser
    assert browser.complaints() == []
    assert browser.requests() <= {"file", "data"}
