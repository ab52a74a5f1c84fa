"""`format`: the texts of the formats that are enforced, each from its RFC.

Every text admitted is of the format; where a format allows more than people write, the
docstring of its pattern says what is left out.
"""

from __future__ import annotations

from functools import cache

from constrained.grammar.nodes import Node
from constrained.grammar.regex import regex_node

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]{{1,9}})?(?:[Zz]|[+-]{_CLOCK})"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,%d}[A-Za-z0-9])?"
_HOSTNAME = "|".join(
    rf"{_LABEL % (size - 2)}(?:\.{_LABEL % (size - 2)}){{0,{count - 1}}}" for size, count in ((63, 3), (24, 10))
)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_LOCAL = rf"{_ATOM}{{1,20}}(?:\.{_ATOM}{{1,20}}){{0,2}}|{_ATOM}{{1,64}}"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_GROUP = "[0-9A-Fa-f]{1,4}"
_LAST = rf"(?:{_GROUP}:{_GROUP}|{_IPV4})"
_IPV6 = "|".join(
    [
        rf"(?:{_GROUP}:){{6}}{_LAST}",
        rf"::(?:{_GROUP}:){{5}}{_LAST}",
        *(rf"(?:{_GROUP}(?::{_GROUP}){{0,{before}}})?::(?:{_GROUP}:){{{4 - before}}}{_LAST}" for before in range(5)),
        rf"(?:{_GROUP}(?::{_GROUP}){{0,5}})?::{_GROUP}",
        rf"(?:{_GROUP}(?::{_GROUP}){{0,6}})?::",
    ]
)
_PERCENT = "%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9._~!$&'()*+,;=\-"
_PATH = rf"(?:[{_UNRESERVED}:@/]|{_PERCENT})"
_PCHAR = rf"(?:[{_UNRESERVED}:@]|{_PERCENT})"
_AUTHORITY = rf"(?:(?:[{_UNRESERVED}:]|{_PERCENT})*@)?(?:\[(?:{_IPV6})\]|(?:[{_UNRESERVED}]|{_PERCENT})*)(?::[0-9]*)?"
_AFTER = rf"(?:\?(?:[{_UNRESERVED}:@/?]|{_PERCENT})*)?(?:#(?:[{_UNRESERVED}:@/?]|{_PERCENT})*)?"
_HIERARCHY = rf"(?://{_AUTHORITY}(?:/{_PATH}*)?|/(?:{_PCHAR}{_PATH}*)?|{_PCHAR}{_PATH}*|)"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]*:{_HIERARCHY}{_AFTER}"
_HALF = "[0-9A-Fa-f]{4}"
_DIGITS = "[0-9]+"
_DURATION_TIME = rf"T(?:{_DIGITS}H(?:{_DIGITS}M(?:{_DIGITS}S)?)?|{_DIGITS}M(?:{_DIGITS}S)?|{_DIGITS}S)"
_DURATION_DATE = rf"(?:{_DIGITS}Y(?:{_DIGITS}M(?:{_DIGITS}D)?)?|{_DIGITS}M(?:{_DIGITS}D)?|{_DIGITS}D)"

PATTERNS = {
    "date": _DATE,  # RFC 3339, full-date: with the days that each month has
    "time": _TIME,  # RFC 3339, full-time; without leap seconds, to the nanosecond
    "date-time": rf"{_DATE}[Tt]{_TIME}",  # RFC 3339, date-time
    "duration": rf"P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|{_DIGITS}W)",  # RFC 3339, appendix A
    "uuid": rf"{_HALF}{_HALF}(?:-{_HALF}){{3}}-{_HALF}{_HALF}{_HALF}",  # RFC 4122
    "email": rf"(?:{_LOCAL})@(?:{_HOSTNAME})",  # RFC 5321, Mailbox: without quoted local parts and address literals
    "hostname": _HOSTNAME,  # RFC 1123: names of 3 labels, or of 10 up to 24 characters each
    "ipv4": _IPV4,  # RFC 2673, dotted-quad
    "ipv6": _IPV6,  # RFC 4291, section 2.2
    "uri": _URI,  # RFC 3986
    "uri-reference": rf"(?:{_URI}|(?://{_AUTHORITY}(?:/{_PATH}*)?|/(?:{_PCHAR}{_PATH}*)?"
    rf"|(?:[{_UNRESERVED}@]|{_PERCENT})+(?:/{_PATH}*)?|){_AFTER})",  # RFC 3986
    "json-pointer": r"(?:/(?:[^/~]|~[01])*)*",  # RFC 6901
}


@cache
def format_node(name: str) -> Node | None:
    """The texts of a format as a tree of characters; None if it is not enforced."""
    return regex_node(PATTERNS[name]) if name in PATTERNS else None
