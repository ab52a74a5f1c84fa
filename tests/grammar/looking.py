"""Random patterns that look around."""

from __future__ import annotations

from hypothesis import strategies as st

ALPHABET = "ab\n"
char = st.sampled_from(["a", "b", "a", "b", r"\n", ".", "[ab]", "[^a]", r"\w", r"\W"])
asked = st.recursive(
    char,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=2).map(lambda x: f"(?:{'|'.join(x)})"),
    ),
    max_leaves=4,
)
anchor = st.sampled_from([r"\b", r"\B", "^", "$", r"\A", r"\Z", "(?m:^)", "(?m:$)"])
look = st.one_of(
    anchor, st.tuples(st.sampled_from(["(?=", "(?!", "(?<=", "(?<!"]), asked).map(lambda x: f"{x[0]}{x[1]})")
)
counts = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "*?", "??"])
# of what has no repeats and no empty texts: on others, `re` itself may go round for ever
possessive = st.tuples(asked, st.sampled_from(["*+", "?+", "{1,2}+"])).map(lambda x: f"(?:{x[0]}){x[1]}")


def _larger(inner):
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda x: f"(?:{'|'.join(x)})"),
        st.tuples(inner, counts).map(lambda x: f"(?:{x[0]}){x[1]}"),
        st.tuples(st.sampled_from(["(?=", "(?!", "(?<=", "(?<!", "(?>"]), inner).map(lambda x: f"{x[0]}{x[1]})"),
    )


patterns = st.recursive(st.one_of(char, char, look, possessive), _larger, max_leaves=8)
