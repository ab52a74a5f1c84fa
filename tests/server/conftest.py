"""A scripted server and a proxy before it, imported when a test asks for them: extras that they need may be missing."""

import pytest


@pytest.fixture
def script():
    from tests.guard.scripted import scripted

    with scripted() as script:
        yield script


@pytest.fixture
def proxy(script):
    from tests.server.proxied import Running

    with Running(script.url) as running:
        yield running
