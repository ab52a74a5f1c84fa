"""A few pages to look things up in: names that share beginnings, and signs that mean something to search engines."""

from constrained.environments.question.env import Question
from constrained.environments.question.passages import Collection, Passage

MILHOUSE = Passage(
    "Milhouse Van Houten",
    (
        "Milhouse is a character in The Simpsons, made by Matt Groening.",
        "He was named after U.S. president Richard Nixon.",
        "Bart is his friend; so he was named his best friend.",
    ),
)
PAGES = (
    MILHOUSE,
    Passage("Matt Groening", ("Matt Groening (born 1954) is an American cartoonist.",)),
    Passage("Mercury (planet)", ("Mercury is the planet nearest to the Sun.",)),
    Passage("Mercury (element)", ("Mercury is a metal that is liquid.",)),
    Passage("Mercury", ("Mercury may be a planet, a metal or a god.",)),
    Passage("Foley & Lardner", ("Foley & Lardner is a firm of lawyers.",)),
    Passage('"Heroes" (album)', ('"Heroes" is an album by David Bowie.',)),
    Passage("Łódź", ("Łódź is a city in Poland, near Warsaw.",)),
    Passage("東京", ("東京は日本の首都。",)),
    Passage("NOT", ("NOT, AND, OR are logical operators; NEAR is none.",)),
)
SMALL = Collection.of(PAGES)
QUESTION = Question(
    "q1", "easy", "Who was Milhouse in The Simpsons named after?", "Richard Nixon", ("Milhouse Van Houten",)
)
