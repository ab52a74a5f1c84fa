"""The keyword `format`: the formats of RFCs, as trees of characters.

Every text admitted by a format is valid; where a format allows more than people write, the comment beside its
pattern says what is left out.
"""

from __future__ import annotations

from functools import cache

from constrained.grammar.nodes import Node
from constrained.grammar.patterns.ecma import ANY_TEXT
from constrained.grammar.regex import regex_node

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_DATE = f"(?:{_YEAR}-{_DAY}|{_LEAP_YEAR}-02-29)"
_ANY_DATE = f"(?:[0-9]{{4}}-{_DAY}|(?:{_LEAP_YEAR}|0000)-02-29)"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_ZONE = f"(?:[Zz]|[+-]{_CLOCK})"
_TIME = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]{{1,9}})?{_ZONE}"
_ANY_TIME = rf"{_CLOCK}:(?:[0-5][0-9]|60)(?:\.[0-9]+)?{_ZONE}"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,%d}[A-Za-z0-9])?"
_HOSTNAME = "|".join(
    rf"{_LABEL % (size - 2)}(?:\.{_LABEL % (size - 2)}){{0,{count - 1}}}" for size, count in ((63, 3), (24, 10))
)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_LOCAL = rf"{_ATOM}{{1,20}}(?:\.{_ATOM}{{1,20}}){{0,2}}|{_ATOM}{{1,64}}"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_ANY_IPV4 = rf"0{{0,2}}{_OCTET}(?:\.0{{0,2}}{_OCTET}){{3}}"
_GROUP = "[0-9A-Fa-f]{1,4}"
_LAST = rf"(?:{_GROUP}:{_GROUP}|{_IPV4})"
_BEFORE_LAST = "|".join(
    [
        rf"(?:{_GROUP}:){{6}}",
        rf"::(?:{_GROUP}:){{5}}",
        *(rf"(?:{_GROUP}(?::{_GROUP}){{0,{before}}})?::(?:{_GROUP}:){{{4 - before}}}" for before in range(5)),
    ]
)
_IPV6 = rf"(?:{_BEFORE_LAST}){_LAST}|(?:{_GROUP}(?::{_GROUP}){{0,5}})?::{_GROUP}|(?:{_GROUP}(?::{_GROUP}){{0,6}})?::"
_PERCENT = "%[0-9A-Fa-f]{2}"
_UNRESERVED = r"A-Za-z0-9._~!$&'()*+,;=\-"
_PATH = rf"(?:[{_UNRESERVED}:@/]|{_PERCENT})"
_PCHAR = rf"(?:[{_UNRESERVED}:@]|{_PERCENT})"
_AUTHORITY = rf"(?:(?:[{_UNRESERVED}:]|{_PERCENT})*@)?(?:\[(?:{_IPV6})\]|(?:[{_UNRESERVED}]|{_PERCENT})*)(?::[0-9]*)?"
_AFTER = rf"(?:\?(?:[{_UNRESERVED}:@/?]|{_PERCENT})*)?(?:#(?:[{_UNRESERVED}:@/?]|{_PERCENT})*)?"
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*:"
_ABSOLUTE = rf"(?://{_AUTHORITY}(?:/{_PATH}*)?|/(?:{_PCHAR}{_PATH}*)?)"
_URI = rf"{_SCHEME}(?:{_ABSOLUTE}|{_PCHAR}{_PATH}*|){_AFTER}"
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
    "uri-reference": rf"(?:(?:{_SCHEME})?{_ABSOLUTE}|{_SCHEME}(?:{_PCHAR}{_PATH}*)?"
    rf"|(?:[{_UNRESERVED}@]|{_PERCENT})+(?:/{_PATH}*)?|){_AFTER}",  # RFC 3986
    "json-pointer": r"(?:/(?:[^/~]|~[01])*)*",  # RFC 6901
}


WIDEST = {
    "date": _ANY_DATE,
    "time": _ANY_TIME,
    "date-time": rf"{_ANY_DATE}[Tt ]{_ANY_TIME}",
    "ipv4": _ANY_IPV4,
    "ipv6": _IPV6.replace(_IPV4, _ANY_IPV4),
    **{name: PATTERNS[name] for name in ("duration", "uuid", "json-pointer")},
    "email": rf"{ANY_TEXT}@{ANY_TEXT}",
    "hostname": r"[^\s!-,/:-@[-^`{-~]*",
    "uri": r"[A-Za-z][A-Za-z0-9+.-]*:\S*",
    "uri-reference": r"\S*",
}
"""What any validator may take for one: with year 0, leap seconds and zeros before numbers; and all that has an @, the
characters of a host's name (of any script), a scheme, or no white space."""


FORMAT_STATES = 10_000
"""States that it takes at most to tell that there are texts of a format as long as its example, and steps of these."""


@cache
def format_node(name: str, either: bool = False) -> Node:
    """The texts of a format as a tree of characters; `either`: those that any validator may take for one."""
    return regex_node((WIDEST if either else PATTERNS)[name])
