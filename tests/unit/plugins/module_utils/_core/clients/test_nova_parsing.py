# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The meaning of tracebacks in instance actions, and rows that Nova never sends.

The tracebacks are from a real Nova, without some lines in between.
"""

from __future__ import annotations

import typing as t

import pytest

from .......plugins.module_utils._core.clients.nova_parsing import parse_action, parse_service

RESIZE = """\
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 6340, in resize_instance
    self._resize_instance(context, instance, image, migration,
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line {line}, in _resize_instance
"""
RAISED_BY_THE_DRIVER = f"""{RESIZE.format(line=6377)}\
    disk_info = self.driver.migrate_disk_and_power_off(
  File "/usr/lib/python3/dist-packages/nova/virt/libvirt/driver.py", line 11580, \
in migrate_disk_and_power_off
"""
ROLLED_BACK = f"""{RESIZE.format(line=6354)}\
    with self._error_out_instance_on_exception(
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 11410, \
in _error_out_instance_on_exception
    raise error.inner_exception
"""
ROLLED_BACK_WITHOUT_PLACEMENT = f"""{RESIZE.format(line=6354)}\
    with self._error_out_instance_on_exception(
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 11405, \
in _error_out_instance_on_exception
    self._instance_update(context, instance,
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 749, in _instance_update
    self._update_resource_tracker(context, instance)
"""
NOT_SAVED = f"""{RESIZE.format(line=6408)}\
    instance.save(expected_task_state=task_states.RESIZE_MIGRATING)
"""
VOLUMES = f"""{RESIZE.format(line=6383)}\
    self._terminate_volume_connections(context, instance, bdms)
"""
REVERT_REFUSED = """\
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 6344, in resize_instance
    self._revert_allocation(context, instance, migration)
"""


@pytest.mark.parametrize(
    ("traceback", "in_copy"),
    [
        (RAISED_BY_THE_DRIVER, True),
        (ROLLED_BACK, True),
        (ROLLED_BACK_WITHOUT_PLACEMENT, True),
        (NOT_SAVED, False),
        (VOLUMES, False),
        (REVERT_REFUSED, False),
        ("", False),
        (None, False),
    ],
)
def test_traceback_shows_whether_the_driver_gave_up_the_copy(
    traceback: str | None, in_copy: bool
) -> None:
    (event,) = parse_action(_row({"traceback": traceback})).events

    assert event.failed_in_copy is in_copy


def test_missing_traceback_leaves_the_copy_unknown() -> None:
    """These credentials see the events of actions, but no traceback."""
    assert not parse_action(_row({})).events[0].failed_in_copy


def _row(more: dict[str, t.Any]) -> dict[str, t.Any]:
    event = {
        "event": "compute_resize_instance",
        "start_time": "",
        "finish_time": "",
        "result": "Error",
        "host": "compute-1",
        **more,
    }
    return {
        "action": "migrate",
        "request_id": "req-1",
        "user_id": "user",
        "start_time": "",
        "message": "Error",
        "events": [event],
    }


@pytest.mark.parametrize("host", [None, "", 7])
def test_service_without_the_name_of_a_host_is_refused(host: t.Any) -> None:
    with pytest.raises(ValueError, match="not the name of a host"):
        parse_service({"binary": "nova-compute", "host": host, "status": "enabled"})
