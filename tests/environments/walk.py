"""A world of six rooms, in one of which a key lies."""

WALK = """%declare _STEP ROOM
//: type room
//: object a, b, c, d, e, f: room
//: fact at(one room), key(room)
//: init at(a), key(e)
//: goal some r: room (at(r), key(r))
start: | go{ROOM}
//: needs not at(r)
//: makes at(r)
//: tells key(r) by "A key lies in {r}."
go{r}: "go to " r _STEP start
"""
