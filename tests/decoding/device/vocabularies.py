"""Small vocabularies of odd sizes."""

from constrained import Vocabulary

WORDS = [b"ab", b"abc", b"desk 1", b"go to ", b"\xc3", b"\xa9", b"bb", b"c?"]
VOCABULARIES = {
    "odd width": Vocabulary([bytes((b,)) for b in range(256)] + WORDS + [b""], [264]),
    "several EOS, wide": Vocabulary([b""] + [bytes((b,)) for b in range(256)] + WORDS, [0, 300, 299], size=333),
    "one word": Vocabulary([b"a", b"b", b"c", b"\xc3", b"\xa9", b"e", b"go", b""], [7]),
}
