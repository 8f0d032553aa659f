"""Two hosts, beside a third one with a server in order."""

import pytest

from ..scene import Scene


@pytest.fixture(name="scene")
def _scene() -> Scene:
    scene = Scene()
    third = scene.host("compute-3")
    scene.server(third, third)
    return scene
