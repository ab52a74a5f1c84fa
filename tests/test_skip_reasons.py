"""The closing lines of a test run count the skips by reason."""

from types import SimpleNamespace

from tests.conftest import skip_reasons


def test_skips_are_counted_by_their_reason_wherever_they_stand():
    def skipped(file: str, reason: str) -> SimpleNamespace:
        return SimpleNamespace(longrepr=(file, 1, f"Skipped: {reason}"))

    found = skip_reasons([skipped("a.py", "no data"), skipped("b.py", "no  data"), skipped("a.py", "needs Java")])
    assert found == {"no data": 2, "needs Java": 1}
