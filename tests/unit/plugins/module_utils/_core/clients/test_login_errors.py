"""The errors of the libraries as sentences."""

from __future__ import annotations

import pytest
from keystoneauth1 import exceptions
from urllib3.exceptions import IncompleteRead, ProtocolError

from .......plugins.module_utils._common.errors import MalformedResponse
from .......plugins.module_utils._core.clients.login_errors import translate_sdk_errors


def test_answer_that_broke_off_is_named_once_by_its_address() -> None:
    broken = ProtocolError("Connection broken: IncompleteRead(675)", IncompleteRead(675, 219))
    url = "http://nova.example/v2.1/os-migrations"
    error = exceptions.UnknownConnectionError(f"Unexpected exception for {url}: {broken}", broken)

    with pytest.raises(MalformedResponse) as raised, translate_sdk_errors("Nova at http://nova"):
        raise error

    assert str(raised.value) == (
        f"Nova at http://nova sent an incomplete answer to {url}. Is a proxy in the way?"
    )
