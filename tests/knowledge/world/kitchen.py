"""A small world by hand: a cup, an egg, a shut cupboard and a microwave."""

KITCHEN = """%declare _STEP
%declare PLACE THING MICROWAVE
//: type place, thing
//: type microwave, fridge: place
//: fact at(one place), in(thing, one place), held(at-most-one thing), shut(place), hot(thing)
//: object shelf, cupboard: place; "microwave 1": microwave; cup, egg: thing
//: init at(shelf), in(cup, shelf), in(egg, cupboard), shut(cupboard)
//: goal some t: thing (hot(t), in(t, cupboard))
//: goal "put a hot {K} in {P}": some t: K, p: P (hot(t), in(t, p))
//: tells shut(p), at(p) by "The {p} is closed"
//: tells all in(t, p), at(p) by "On the {p}, you see {t, ...}."
//: maybe in(t, p) if not held(t)
//: fails by "Nothing happens."

// Heat something.
start: | goto{PLACE} | take{THING, PLACE} | put{THING, PLACE} | heat{THING, MICROWAVE} | open{PLACE} | look

// goto: go to a place.
//: needs not at(p)
//: makes at(p)
goto{p}: "go to " p _STEP start

// take: take a thing from where you stand.
//: needs at(p), in(t, p), not shut(p), not held(*)
//: makes held(t), not in(t, p)
take{t, p}: "take " t " from " p _STEP start

// put: put down what you hold.
//: needs held(t), at(p), not shut(p)
//: makes not held(t), in(t, p)
put{t, p}: "put " t " in " p _STEP start

// heat: heat what you hold.
//: needs held(t), at(m)
//: makes hot(t)
heat{t, m}: "heat " t " with " m _STEP start

//: needs at(p), shut(p)
//: makes not shut(p)
open{p}: "open " p _STEP start

look: "look" _STEP start
"""
