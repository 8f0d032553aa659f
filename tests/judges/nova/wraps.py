"""Makes what Nova's tests use begin and end with a step of the trial that runs.

Without a trial, all of it works as before, but for waits: a test of the wall clock fails on a slow
machine, whoever is right.
"""

from __future__ import annotations

import functools
import re
import typing as t

from nova import context, objects, service, test
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import cinder, conf, cyborg, neutron, notifications
from nova.tests.functional import fixtures as functional_fixtures
from nova.tests.functional.api import client
from oslo_messaging.rpc import client as rpc_client
from oslo_messaging.rpc import dispatcher

from ....plugins.module_utils._core.clients.allocation_writer import AllocationWriter
from .trial import Trial

_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PATIENCE = 40
# In seconds, so that no service is down because the machine is slow.
_REPORT_INTERVAL = 300
_DOWN_TIME = 1800
_LONG = 1200

Label = t.Callable[..., str]

# The trial that runs now; None between two tests, and while a test runs without the collection.
running: Trial | None = None


def _step(label: str, during_write: bool = False, deep: bool = False) -> None:
    if running is not None and (running.is_deep or not deep):
        running.step(label, during_write)


def _wrap(owner: type, name: str, make_wrapper: t.Callable[..., t.Any]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make_wrapper(original)))


def _step_before(owner: type, name: str, make_label: Label) -> None:
    def make_wrapper(original: t.Any) -> t.Any:
        def call(self: t.Any, *args: t.Any, **kwargs: t.Any) -> t.Any:
            _step(make_label(self, *args, **kwargs))
            return original(self, *args, **kwargs)

        return call

    _wrap(owner, name, make_wrapper)


def _step_after(owner: type, name: str) -> None:
    def make_wrapper(original: t.Any) -> t.Any:
        def call(self: t.Any, *args: t.Any, **kwargs: t.Any) -> t.Any:
            try:
                return original(self, *args, **kwargs)
            finally:
                _step(f"after {owner.__name__}.{name}", deep=True)

        return call

    _wrap(owner, name, make_wrapper)


def install() -> None:
    """Wrap all of it, once for the process."""
    _be_patient()
    _watch_fixtures()
    _watch_test()
    _watch_nova()
    _watch_writes()


def _be_patient() -> None:
    def wait_longer(original: t.Any) -> t.Any:
        def call(self: t.Any, event_type: str, n_events: int = 1, timeout: float = 10.0) -> t.Any:
            _step(f"wait for {event_type}")
            return original(self, event_type, n_events, timeout * _PATIENCE)

        return call

    _wrap(notifications.FakeVersionedNotifier, "wait_for_versioned_notifications", wait_longer)

    def set_intervals(original: t.Any) -> t.Any:
        def call(self: t.Any) -> None:
            original(self)
            self.conf.set_default("report_interval", _REPORT_INTERVAL)
            self.conf.set_default("service_down_time", _DOWN_TIME)
            # Otherwise the first client registers them.
            self.conf.register_opts(rpc_client._client_opts)
            self.conf.set_default("rpc_response_timeout", _LONG)

        return call

    _wrap(conf.ConfFixture, "setUp", set_intervals)
    context.CELL_TIMEOUT = _LONG


def _watch_fixtures() -> None:
    def make_setup(name: str) -> t.Any:
        def make_wrapper(original: t.Any) -> t.Any:
            def call(self: t.Any) -> None:
                original(self)
                if running is not None:
                    running.fixtures[name] = self
                    self.addCleanup(running.fixtures.pop, name, None)

            return call

        return make_wrapper

    for owner, name in (
        (nova_fixtures.OSAPIFixture, "Nova"),
        (functional_fixtures.PlacementFixture, "Placement"),
        (neutron.NeutronFixture, "Neutron"),
        (cinder.CinderFixture, "Cinder"),
        (cyborg.CyborgFixture, "Cyborg"),
    ):
        _wrap(owner, "setUp", make_setup(name))

    def note_cell(original: t.Any) -> t.Any:
        def call(self: t.Any, connection_str: str, default: bool = False) -> None:
            original(self, connection_str, default=default)
            if running is not None:
                running.cells[connection_str] = self._ctxt_mgrs[connection_str]

        return call

    _wrap(nova_fixtures.CellDatabases, "add_cell_database", note_cell)

    def enter_cell_at_once(original: t.Any) -> t.Any:
        # A thread of Nova that stands still at a step may have locked the cell of the fixture.
        def call(self: t.Any, ctxt: t.Any, cell_mapping: t.Any) -> t.Any:
            if running is not None and running.in_pass:
                return self._real_target_cell(ctxt, cell_mapping)
            return original(self, ctxt, cell_mapping)

        return call

    _wrap(nova_fixtures.CellDatabases, "_wrap_target_cell", enter_cell_at_once)


def _watch_test() -> None:
    def label_request(_self: t.Any, uri: str, *_args: t.Any, **kwargs: t.Any) -> str:
        text = f"{kwargs.get('method', 'GET')} {uri}"
        if uri.endswith("/action"):
            text += f" {(kwargs.get('body') or '')[:80]}"
        return _UUID.sub(r"\1", text)

    _step_before(client.TestOpenStackClient, "api_request", label_request)
    for name in ("put", "post", "delete"):
        _step_before(
            functional_fixtures.PlacementApiClient,
            name,
            lambda _self, url, *_args, verb=name, **_kwargs: f"the test: {verb} {url[:60]}",
        )
    for name in ("start_service", "restart_compute_service", "_run_periodics"):
        _step_before(test.TestCase, name, lambda *_args, label=name, **_kwargs: label)
    _step_before(service.Service, "stop", lambda self, *_args, **_kwargs: f"stop {self.host}")

    def end_with_pass(original: t.Any) -> t.Any:
        def call(self: t.Any, result: t.Any) -> t.Any:
            try:
                return original(self, result)
            finally:
                # What follows takes the fixtures down.
                if running is not None:
                    running.end()

        return call

    _wrap(test.TestCase, "_run_test_method", end_with_pass)


def _watch_nova() -> None:
    for name in ("_fake_put", "_fake_post", "_fake_delete"):
        _wrap(functional_fixtures.PlacementFixture, name, _make_placement_wrapper)

    def watch_message(original: t.Any) -> t.Any:
        def call(self: t.Any, incoming: t.Any) -> t.Any:
            method = incoming.message.get("method") or ""
            # The API may ask for something during a pass, which changes nothing.
            if method.startswith("get_"):
                return original(self, incoming)
            _step(f"before the message {method}", deep=True)
            try:
                return original(self, incoming)
            finally:
                _step(f"after the message {method}", deep=True)

        return call

    _wrap(dispatcher.RPCDispatcher, "dispatch", watch_message)
    _step_after(objects.Instance, "save")
    _step_after(objects.Instance, "destroy")
    _step_after(objects.Migration, "create")
    _step_after(objects.Migration, "save")


def _make_placement_wrapper(original: t.Any) -> t.Any:
    verb = original.__name__.removeprefix("_fake_")

    def call(self: t.Any, nova: t.Any, url: str, *args: t.Any, **kwargs: t.Any) -> t.Any:
        label = _UUID.sub(r"\1", f"Nova: {verb} {url[:70]}")
        consumers = []
        if url == "/allocations":
            consumers = list(args[0] if args else kwargs["data"])
        elif url.startswith("/allocations/"):
            consumers = [url.removeprefix("/allocations/")]
        # The test itself writes without a client of Nova's.
        is_write = bool(consumers) and nova is not None
        _step(f"before {label}", during_write=is_write, deep=True)
        response = original(self, nova, url, *args, **kwargs)
        if response.status_code == 409 and running is not None:
            running.note_conflict(consumers)
        _step(f"after {label}", deep=True)
        return response

    return call


def _watch_writes() -> None:
    def judge_first(original: t.Any) -> t.Any:
        def call(self: t.Any, batch: t.Any, version: str) -> t.Any:
            if running is not None:
                running.judge_write([change.as_dict() for change in batch])
            return original(self, batch, version)

        return call

    _wrap(AllocationWriter, "_send", judge_first)
