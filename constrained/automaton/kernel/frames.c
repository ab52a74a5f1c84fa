/* Stacks: constructs (a grammar's nodes, each with its parameters' values), and frames, which pile them up.
 *
 * Python describes a construct once (bridge.py); frames are made here, and Python's own only where it is asked about one.
 */
#include "kernel.h"

#define APART -1 /* the construct of frames without a construct: the end, forks, and the bottom */

static size_t hash(const void *key, size_t length) {
    const uint32_t *word = key;
    uint64_t h = 0x9E3779B97F4A7C15ull;
    for (size_t i = 0; i < length / 4; i++) h = (h ^ word[i]) * 0xFF51AFD7ED558CCDull, h ^= h >> 32;
    return (size_t)h;
}

/* Room for `count` items of `size` bytes at `*array`, new ones all 0. */
static int grow(void **array, int32_t *room, int32_t count, size_t size) {
    if (count <= *room) return 0;
    int32_t more = count + (count < 32 ? count : count / 4);
    void *at = realloc(*array, more * size);
    if (!at) {
        PyErr_NoMemory();
        return -1;
    }
    memset((char *)at + *room * size, 0, (more - *room) * size);
    *array = at;
    *room = more;
    return 0;
}

/* The number of the item of `size` bytes that begins with `key`; a new one comes last. -1: no memory; -2: more than `most`. */
static int32_t index_number(Index *index, void **items, size_t size, const void *key, size_t length, int32_t most) {
    if (2 * index->count >= index->slot_room) {
        int32_t room = index->slot_room ? 2 * index->slot_room : 16;
        int32_t *slots = malloc(room * sizeof *slots);
        if (!slots) {
            PyErr_NoMemory();
            return -1;
        }
        memset(slots, 0xFF, room * sizeof *slots);
        for (int32_t i = 0; i < index->count; i++) {
            size_t at = hash((char *)*items + i * size, length) & (room - 1);
            while (slots[at] >= 0) at = (at + 1) & (room - 1);
            slots[at] = i;
        }
        free(index->slots);
        index->slots = slots;
        index->slot_room = room;
    }
    size_t at = hash(key, length) & (index->slot_room - 1);
    for (; index->slots[at] >= 0; at = (at + 1) & (index->slot_room - 1))
        if (!memcmp((char *)*items + index->slots[at] * size, key, length)) return index->slots[at];
    assert(!read_only);
    if (index->count >= most) return -2;
    if (grow(items, &index->room, index->count + 1, size) < 0) return -1;
    memcpy((char *)*items + index->count * size, key, length);
    return index->slots[at] = index->count++;
}

/* constructs ------------------------------------------------------------------------------------- */

/* The number of a node in an environment, both kept; -1 on error. */
int32_t construct_of(Engine *e, PyObject *node, PyObject *env) {
    int32_t before = e->construct_index.count;
    PyObject *key[] = {node, env};
    int32_t number = index_number(&e->construct_index, (void **)&e->constructs, sizeof(Construct), key, sizeof key, INT32_MAX);
    if (number != before) return number;
    Py_INCREF(node), Py_INCREF(env);
    e->constructs[number].kind = UNREAD;
    return number;
}

/* The nodes that a construct is made of; -1 on error. */
static int add_children(Engine *e, Construct *c, PyObject *const *nodes, Py_ssize_t count, PyObject *env) {
    if (count > INT32_MAX - e->children_count) {
        PyErr_SetString(PyExc_ValueError, "a construct of too many nodes");
        return -1;
    }
    if (grow((void **)&e->children, &e->children_room, e->children_count + (int32_t)count, sizeof *e->children) < 0) return -1;
    c->first = e->children_count;
    c->count = (int32_t)count;
    e->children_count += c->count;
    for (int32_t i = 0; i < c->count; i++) {
        int32_t child = construct_of(e, nodes[i], env);
        if (child < 0) return -1;
        e->children[c->first + i] = child;
    }
    return 0;
}

/* What Bridge.construct says of it: (kind, what, low, high, may be empty, has values, environment, nodes). */
static int read_described(Engine *e, int32_t number, PyObject *described) {
    PyObject *what, *env, *nodes;
    int kind, low, high, empty, tied;
    if (!PyTuple_Check(described)) {
        PyErr_SetString(PyExc_TypeError, "a construct is described by a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(described, "iOiippOO!", &kind, &what, &low, &high, &empty, &tied, &env, &PyTuple_Type, &nodes))
        return -1;
    Construct found = e->constructs[number];
    found.kind = kind, found.low = low, found.high = high, found.empty = (int8_t)empty, found.tied = (int8_t)tied;
    found.count = (int32_t)PyTuple_GET_SIZE(nodes);
    if ((kind >= LITERAL && kind <= JSON_TEXT) || kind == MEMBERS) {
        PyObject *bind = Py_None;
        if (kind > TEXT && kind != JSON_TEXT && !PyArg_ParseTuple(what, "OO", &what, &bind)) return -1;
        PyObject *position = Py_BuildValue(
            "(iOOOOOO)", kind == MEMBERS ? CHOICES : kind, what, Py_None, PyTuple_GET_ITEM(described, 2),
            PyTuple_GET_ITEM(described, 3), kind == TEXT || kind == LOOP ? Py_None : name_zero, bind
        );
        Config config;
        int failed = !position || config_of(e, position, &config) < 0;
        Py_XDECREF(position);
        if (failed) return -1;
        found.object = config.object;
    } else if (kind < ASKED || kind > MEMBERS || (kind == SEQ && found.count > 2) || (kind == REPEAT && (found.count < 1 || found.count > 2))) {
        PyErr_SetString(PyExc_ValueError, "a construct of no known kind, or of too many nodes");
        return -1;
    }
    if (add_children(e, &found, PySequence_Fast_ITEMS(nodes), PyTuple_GET_SIZE(nodes), env) < 0) return -1;
    e->constructs[number] = found;
    return 0;
}

/* What follows the first of several items: of two, the other; else a node of Python's. */
static PyObject *tail_of(Engine *e, PyObject *node, PyObject *items) {
    if (PyTuple_GET_SIZE(items) == 2) return Py_NewRef(PyTuple_GET_ITEM(items, 1));
    return PyObject_CallMethodOneArg(e->bridge, name_tail, node);
}

/* The body of the rule that a call without arguments names. */
static PyObject *body_of(PyObject *call, PyObject *env) {
    PyObject *name = PyObject_GetAttr(call, name_rule), *grammar = PyObject_GetAttr(env, name_grammar);
    PyObject *rules = name && grammar ? PyObject_GetAttr(grammar, name_rules) : NULL;
    PyObject *rule = rules ? PyObject_GetItem(rules, name) : NULL, *body = rule ? PyObject_GetAttr(rule, name_body) : NULL;
    Py_XDECREF(name), Py_XDECREF(grammar), Py_XDECREF(rules), Py_XDECREF(rule);
    return body;
}

/* What nodes of these types, in the order of Bridge.types, are made of. */
enum { LITERAL_NODE, CHARS_NODE, SEQ_NODE, ALT_NODE, CALL_NODE };
static PyObject **const name_inside[NODE_TYPES] = {&name_data, &name_chars, &name_items, &name_items, &name_args};

/* Read one of those as Bridge.construct would: 1. 0: that has to, -1: an error. */
static int read_plain(Engine *e, int32_t number) {
    Construct found = e->constructs[number];
    PyObject *node = found.node, *env = found.env; /* the construct holds them */
    int type = 0;
    while (type < NODE_TYPES && (PyObject *)Py_TYPE(node) != PyTuple_GET_ITEM(e->types, type)) type++;
    if (type == NODE_TYPES) return 0;
    PyObject *values = PyObject_GetAttr(env, name_values), *inside = values ? PyObject_GetAttr(node, *name_inside[type]) : NULL;
    int tied = inside ? PyObject_IsTrue(values) : -1, result = tied < 0 ? -1 : 1;
    Py_XDECREF(values);
    if (result > 0 && type >= SEQ_NODE && !PyTuple_Check(inside)) {
        PyErr_SetString(PyExc_TypeError, "a node's parts are no tuple");
        result = -1;
    }
    if (result < 0) {
        Py_XDECREF(inside);
        return -1;
    }
    found.tied = (int8_t)tied;
    found.kind = type == LITERAL_NODE ? LITERAL : type == CHARS_NODE ? TEXT : type == SEQ_NODE ? SEQ : ALT;
    Py_ssize_t count = type >= SEQ_NODE ? PyTuple_GET_SIZE(inside) : 0;
    if (type == LITERAL_NODE) {
        if ((found.object = know_literal(e, inside)) < 0) result = -1;
        else if (!e->literals[found.object].length) found.kind = SEQ;
    } else if (type == CHARS_NODE) {
        found.low = found.high = 1;
        if ((found.object = text_set(e->tokens, inside)) < 0) result = -1;
    } else if (type == CALL_NODE && (count || tied)) { /* parameters are Python's */
        result = 0;
    } else if (type == CALL_NODE || (type == SEQ_NODE && count > 1)) {
        PyObject *made = type == CALL_NODE ? body_of(node, env) : tail_of(e, node, inside);
        PyObject *nodes[] = {type == CALL_NODE ? made : PyTuple_GET_ITEM(inside, 0), made};
        if (!made || add_children(e, &found, nodes, type == CALL_NODE ? 1 : 2, env) < 0) result = -1;
        Py_XDECREF(made);
    } else if (add_children(e, &found, PySequence_Fast_ITEMS(inside), count, env) < 0) {
        result = -1;
    }
    Py_DECREF(inside);
    if (result > 0) e->constructs[number] = found;
    return result;
}

/* A construct, described; NULL on error. It stays where it is until another is added. */
const Construct *construct_at(Engine *e, int32_t number) {
    if (e->constructs[number].kind != UNREAD) return &e->constructs[number];
    int known = e->asks ? 0 : read_plain(e, number);
    if (!known) {
        PyObject *arguments[] = {e->bridge, e->constructs[number].node, e->constructs[number].env};
        PyObject *described = PyObject_VectorcallMethod(name_construct, arguments, 3, NULL);
        known = described && read_described(e, number, described) == 0 ? 1 : -1;
        Py_XDECREF(described);
    }
    return known < 0 ? NULL : &e->constructs[number];
}

/* frames ----------------------------------------------------------------------------------------- */

static int32_t new_frame(Engine *e, int32_t construct, int32_t next, int32_t depth) {
    int32_t before = e->frame_index.count, key[] = {construct, next};
    int32_t number = index_number(&e->frame_index, (void **)&e->frames, sizeof(Frame), key, sizeof key, e->max_frames);
    if (number == before) e->frames[number].depth = depth;
    return number == -2 ? refuse(e, "frames") : number;
}

/* Frame 0 stands for the end of the text; the bottom of stacks comes next. */
int first_frames(Engine *e, PyObject *bottom) {
    Config end = {ACCEPT, 0, 0, 0, 0, 0};
    e->bottom = -1; /* the end is not it */
    if (new_frame(e, APART, -1, 0) < 0 || know_closure(e, 0, &end) < 0 || (e->bottom = know_frame(e, bottom)) < 0) return -1;
    if (!e->bottom || e->frames[e->bottom].construct >= 0) {
        PyErr_SetString(PyExc_ValueError, "the bridge's bottom is none");
        return -1;
    }
    e->frames[e->bottom].capped = end.rest = e->bottom;
    return know_closure(e, e->bottom, &end);
}

/* The frame of a construct over another (0: none), each made once; -1 on error. */
int32_t frame_of(Engine *e, int32_t construct, int32_t next) {
    if (next && e->frames[next].construct == construct) { /* x* x* is x* */
        const Construct *c = construct_at(e, construct);
        if (!c) return -1;
        if ((c->kind == REPEAT || c->kind == TEXT) && !c->low && c->high < 0 && !c->tied) return next;
    }
    return new_frame(e, construct, next, next ? e->frames[next].depth + 1 : 1);
}

/* The frame below; 0 for a fork, too. */
int32_t frame_next(const Engine *e, int32_t frame) {
    return e->frames[frame].construct < 0 ? 0 : e->frames[frame].next;
}

/* The number in Python of a frame; -1 on error. */
static long frame_number(Engine *e, PyObject *frame) {
    PyObject *attribute = PyObject_GetAttr(frame, name_number);
    if (!attribute) return -1;
    long number = PyLong_AsLong(attribute);
    Py_DECREF(attribute);
    if (number == -1 && PyErr_Occurred()) return -1;
    if (number >= 0 && number < e->max_frames) return number;
    PyErr_Format(PyExc_ValueError, "a frame's number is %ld, not 0 to %d", number, (int)e->max_frames - 1);
    return -1;
}

/* Let Python's `frame` be `known`. */
static int tie_frame(Engine *e, int32_t known, PyObject *frame, long number) {
    if (grow((void **)&e->by_number, &e->by_number_room, (int32_t)number + 1, sizeof *e->by_number) < 0) return -1;
    if (!e->by_number[number]) e->by_number[number] = known;
    if (!e->frames[known].python) e->frames[known].python = Py_NewRef(frame);
    return 0;
}

/* The frame of Python's `frame`, and of those below it; -1 on error. */
int32_t know_frame(Engine *e, PyObject *frame) {
    PyObject *above = NULL; /* list of frames that aren't known yet, from the top down */
    int32_t known = 0;
    long last = LONG_MAX;
    PyObject *node = NULL, *env = NULL;
    Py_INCREF(frame);
    while (frame != Py_None) {
        long number = frame_number(e, frame);
        if (number < 0) goto error;
        if (number >= last) { /* or it might go round in circles */
            PyErr_SetString(PyExc_ValueError, "a frame's number is not above those of the frames below");
            goto error;
        }
        last = number;
        if (number < e->by_number_room && e->by_number[number]) {
            known = e->by_number[number];
            if (e->frames[known].python == frame) break;
            PyErr_Format(PyExc_ValueError, "two frames of number %ld", number);
            goto error;
        }
        Py_XDECREF(env);
        if (!(env = PyObject_GetAttr(frame, name_env))) goto error;
        if (env == e->no_call) {
            known = new_frame(e, APART, (int32_t)number, 1);
            if (known < 0 || tie_frame(e, known, frame, number) < 0) goto error;
            break;
        }
        if ((!above && !(above = PyList_New(0))) || PyList_Append(above, frame) < 0) goto error;
        Py_SETREF(frame, PyObject_GetAttr(frame, name_next));
        if (!frame) goto error;
    }
    for (Py_ssize_t i = above ? PyList_GET_SIZE(above) - 1 : -1; i >= 0; i--) {
        PyObject *each = PyList_GET_ITEM(above, i);
        Py_XDECREF(node), Py_XDECREF(env);
        node = PyObject_GetAttr(each, name_node), env = PyObject_GetAttr(each, name_env);
        int32_t construct = node && env ? construct_of(e, node, env) : -1;
        if (construct < 0 || (known = frame_of(e, construct, known)) < 0) goto error;
        long number = frame_number(e, each);
        if (number < 0 || tie_frame(e, known, each, number) < 0) goto error;
    }
    goto done;
error:
    known = -1;
done:
    Py_XDECREF(node), Py_XDECREF(env), Py_XDECREF(above), Py_XDECREF(frame);
    return known;
}

/* Python's own of a frame, made where there is none yet: borrowed, NULL on error. */
PyObject *frame_object(Engine *e, int32_t frame) {
    if (!frame) return Py_None;
    while (!e->frames[frame].python) {
        int32_t lowest = frame; /* of those without one */
        while (frame_next(e, lowest) && !e->frames[frame_next(e, lowest)].python) lowest = frame_next(e, lowest);
        const Construct *c = &e->constructs[e->frames[lowest].construct];
        int32_t next = frame_next(e, lowest);
        PyObject *below = next ? e->frames[next].python : Py_None;
        PyObject *arguments[] = {e->bridge, c->node, c->env, below};
        PyObject *made = PyObject_VectorcallMethod(name_frame, arguments, 4, NULL);
        long number = made ? frame_number(e, made) : -1;
        int failed = number < 0 || tie_frame(e, lowest, made, number) < 0;
        Py_XDECREF(made);
        if (failed) return NULL;
    }
    return e->frames[frame].python;
}

/* A deep stack's top over any stack (the bottom): its masks are the same, if a walk gets no deeper. Stacks with parameters,
 * whose values may be tied further down, and forks stay as they are. -1 on error. */
int32_t near_frame(Engine *e, int32_t frame) {
    if (!frame || e->frames[frame].depth <= e->deep || e->asks) return frame;
    if (e->frames[frame].near) return e->frames[frame].near;
    if (read_only) return -1;
    int32_t top[MOST_NEAR], below = frame, near = e->bottom;
    for (int i = 0; i < e->near && near; i++, below = frame_next(e, below)) {
        int32_t construct = below ? e->frames[below].construct : -1;
        const Construct *c = construct < 0 ? NULL : construct_at(e, construct);
        if (construct >= 0 && !c) return -1;
        if (!c || c->tied) near = 0;
        top[i] = construct;
    }
    if (!near) near = frame;
    else
        for (int i = e->near - 1; i >= 0; i--)
            if ((near = frame_of(e, top[i], near)) < 0) return -1;
    e->frames[frame].near = near;
    return near;
}

/* A repeat's frame with counts beyond one token's reach cut, as in masks.py, over `next`. */
static int32_t cut(Engine *e, int32_t frame, int32_t next) {
    int32_t construct = e->frames[frame].construct, cap = e->tokens->longest + 1;
    const Construct *c = construct_at(e, construct);
    if (!c) return -1;
    int32_t low = c->low < cap ? c->low : cap, high = c->high;
    if (high < 0 || high > cap) high = c->low <= cap ? -1 : cap + 1;
    if (high >= 0 && high < low) high = low;
    if ((c->kind == REPEAT || c->kind == TEXT || c->kind == LOOP) && (low != c->low || high != c->high)) {
        PyObject *node = PyObject_CallMethod(e->bridge, "repeat", "Oii", c->node, (int)low, (int)high);
        construct = node ? construct_of(e, node, e->constructs[construct].env) : -1;
        Py_XDECREF(node);
        if (construct < 0) return -1;
    }
    return frame_of(e, construct, next);
}

/* The frame with counts beyond one token's reach cut: masks are shared between far-off counts. -1 on error. */
int32_t capped_frame(Engine *e, int32_t frame) {
    while (frame && !e->frames[frame].capped) {
        if (read_only) return -1;
        int32_t lowest = frame, next; /* of those not known yet */
        while ((next = frame_next(e, lowest)) && !e->frames[next].capped) lowest = next;
        int32_t found = lowest;
        if (e->asks || e->frames[lowest].construct < 0) {
            PyObject *object = frame_object(e, lowest);
            PyObject *made = object ? PyObject_CallMethodOneArg(e->bridge, name_capped, object) : NULL;
            found = made ? know_frame(e, made) : -1;
            Py_XDECREF(made);
        } else {
            found = cut(e, lowest, next ? e->frames[next].capped : 0);
        }
        if (found < 0) return -1;
        if (!found) {
            PyErr_SetString(PyExc_ValueError, "a frame with its counts cut is none");
            return -1;
        }
        e->frames[lowest].capped = found;
    }
    return frame ? e->frames[frame].capped : 0;
}
