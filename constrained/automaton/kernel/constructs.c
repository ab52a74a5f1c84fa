/* Constructs: a grammar's nodes, each with its parameters' values, and what they are made of.
 *
 * Most are read here. Each of the others is described by Python once (Bridge.construct).
 */
#include "kernel.h"
#include <structmember.h>

#define MOST_AHEAD 1024  /* most constructs that are read when a grammar is compiled */
#define MOST_EXPECTED 64 /* frames for which memory is reserved then, enough for the first masks */
#define MOST_VALUES 256  /* most values of choices that are looked up then */
#define MOST_DEPTH 8     /* most calls and sequences around such choices */
#define MOST_ENTERED 4   /* most constructs entered for closures then, for each construct read */
#define MOST_NESTED 256  /* and for closures of stacks of more than FLAT frames, which may be without end */
#define FLAT 2

/* Bridge.types, in their order. */
enum { LITERAL_NODE, CHARS_NODE, SEQ_NODE, ALT_NODE, CALL_NODE, REPEAT_NODE, CHOICES_NODE };

/* The offset of an attribute in objects of a type, if it is one of the type's `__slots__`. */
static void find_field(PyTypeObject *type, PyObject *name, Field *field) {
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    if (!found) PyErr_Clear();
    Py_XSETREF(field->type, (PyTypeObject *)Py_NewRef(type)); /* a reference is held, so that no other type gets this address */
    field->offset = 0;
    if (found && Py_IS_TYPE(found, &PyMemberDescr_Type) && type->tp_getattro == PyObject_GenericGetAttr) {
        const PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX && PyType_IsSubtype(type, PyDescr_TYPE(found))) field->offset = member->offset;
    }
    Py_XDECREF(found);
}

/* As PyObject_GetAttr; `field` caches the offset for the type of the last object. */
PyObject *field_of(PyObject *object, PyObject *name, Field *field) {
    if (Py_TYPE(object) != field->type) find_field(Py_TYPE(object), name, field);
    PyObject *value = field->offset ? *(PyObject **)((char *)object + field->offset) : NULL;
    return value ? Py_NewRef(value) : PyObject_GetAttr(object, name);
}

/* The number of the construct of a node in an environment, to both of which a reference is held; -1 on error. */
int32_t construct_of(Engine *e, PyObject *node, PyObject *env) {
    int32_t before = e->construct_index.count;
    PyObject *key[] = {node, env};
    int32_t number = index_number(&e->construct_index, (void **)&e->constructs, sizeof(Construct), key, sizeof key, INT32_MAX);
    if (number != before) return number;
    Py_INCREF(node), Py_INCREF(env);
    e->constructs[number].kind = UNREAD, e->constructs[number].distinct = -1;
    return number;
}

/* The nodes that a construct is made of; -1 on error. */
static int add_children(Engine *e, Construct *c, PyObject *const *nodes, Py_ssize_t count, PyObject *env) {
    if (count > INT32_MAX - e->children_count) {
        PyErr_SetString(PyExc_ValueError, "a construct of too many nodes");
        return -1;
    }
    if (grow_items((void **)&e->children, &e->children_room, e->children_count + (int32_t)count, sizeof *e->children) < 0) return -1;
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

/* Fill in the construct by Bridge.construct: (kind, what, low, high, may be empty, has values, environment, nodes). */
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

/* A node of one of Bridge.types with these fields; NULL on error. */
static PyObject *make_node(Engine *e, int type, int count, PyObject *const *names, PyObject *const *values) {
    PyTypeObject *of = (PyTypeObject *)PyTuple_GET_ITEM(e->types, type);
    PyObject *node = of->tp_new ? of->tp_new(of, no_arguments, NULL) : NULL; /* the fields are set directly, as `__init__` is Python code */
    if (!node && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a node's type can't be called");
    for (int i = 0; node && i < count; i++)
        if (PyObject_SetAttr(node, names[i], values[i]) < 0) Py_CLEAR(node);
    return node;
}

/* dict.setdefault(key, made), as a new reference; NULL on error. */
static PyObject *known_or(PyObject *dict, PyObject *key, PyObject *made) {
    PyObject *found = key && made ? PyDict_SetDefault(dict, key, made) : NULL;
    return Py_XNewRef(found);
}

/* The items after the first: of two, the second; else the sequence that Frames.tail makes. */
static PyObject *tail_of(Engine *e, PyObject *node, PyObject *items) {
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    if (count == 2) return Py_NewRef(PyTuple_GET_ITEM(items, 1));
    PyObject *key = PyLong_FromVoidPtr(node), *tail = NULL;
    PyObject *pair = key ? PyDict_GetItemWithError(e->tails, key) : NULL;
    Py_XINCREF(pair);
    if (key && !pair && !PyErr_Occurred()) {
        PyObject *rest = PyTuple_GetSlice(items, 1, count);
        tail = rest ? make_node(e, SEQ_NODE, 1, &name_items, &rest) : NULL;
        PyObject *made = tail ? PyTuple_Pack(2, node, tail) : NULL;
        pair = known_or(e->tails, key, made);
        Py_XDECREF(rest), Py_XDECREF(tail), Py_XDECREF(made);
        tail = NULL;
    }
    if (pair && PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2) tail = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
    else if (pair) PyErr_SetString(PyExc_TypeError, "a sequence's tail is kept beside the sequence");
    Py_XDECREF(key), Py_XDECREF(pair);
    return tail;
}

/* The repeat of an item as Frames.repeat makes it; `node`, if given, is a repeat with these bounds. `high` -1: unbounded. */
static PyObject *repeat_of(Engine *e, PyObject *item, int32_t low, int32_t high, PyObject *node) {
    PyObject *names[] = {name_item, name_low, name_high};
    PyObject *values[] = {item, PyLong_FromLong(low), high < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(high)};
    PyObject *id = PyLong_FromVoidPtr(item), *found = NULL;
    PyObject *key = id && values[1] && values[2] ? PyTuple_Pack(3, id, values[1], values[2]) : NULL;
    if (key && !node) found = Py_XNewRef(PyDict_GetItemWithError(e->repeats, key));
    if (key && !found && !PyErr_Occurred()) {
        PyObject *made = node ? Py_NewRef(node) : make_node(e, REPEAT_NODE, 3, names, values);
        found = known_or(e->repeats, key, made);
        Py_XDECREF(made);
    }
    Py_XDECREF(values[1]), Py_XDECREF(values[2]), Py_XDECREF(id), Py_XDECREF(key);
    return found;
}

/* The body of the rule that a call without arguments names. NULL without an error: the rule isn't made yet, and is only read
 * ahead (`ahead`), not reached by a text. */
static PyObject *body_of(PyObject *call, PyObject *env, int ahead) {
    static Field of_call, of_env, of_grammar, of_rule;
    PyObject *grammar = field_of(env, name_grammar, &of_env), *rules = grammar ? field_of(grammar, name_rules, &of_grammar) : NULL;
    PyObject *name = rules ? field_of(call, name_rule, &of_call) : NULL;
    PyObject *rule = name && PyDict_Check(rules) ? Py_XNewRef(PyDict_GetItemWithError(rules, name)) : NULL;
    if (name && !rule && !PyErr_Occurred() && !(ahead && PyDict_Check(rules))) rule = PyObject_GetItem(rules, name);
    PyObject *body = rule ? field_of(rule, name_body, &of_rule) : NULL;
    Py_XDECREF(grammar), Py_XDECREF(rules), Py_XDECREF(name), Py_XDECREF(rule);
    return body;
}

/* The index of a node's type in Bridge.types; NODE_TYPES: it isn't among them. */
static int type_of(const Engine *e, PyObject *node) {
    int type = 0;
    while (type < NODE_TYPES && (PyObject *)Py_TYPE(node) != PyTuple_GET_ITEM(e->types, type)) type++;
    return type;
}

/* A number that is a field of a node; `none` where it is None, -2 on error. */
static int32_t bound_of(PyObject *node, PyObject *name, Field *field, int32_t none) {
    PyObject *value = field_of(node, name, field);
    int32_t bound = !value ? -2 : value == Py_None ? none : int_between(value, 0, INT32_MAX, "a bound of a repeat");
    Py_XDECREF(value);
    return PyErr_Occurred() ? -2 : bound;
}

/* read_plain for a repeat. A bounded repeat of alternatives may be a loop, which Python decides. */
static int read_repeat(Engine *e, Construct *found, PyObject *item, PyObject *env) {
    static Field low, high, of_chars;
    PyObject *node = found->node;
    int of = type_of(e, item);
    found->low = bound_of(node, name_low, &low, -2), found->high = bound_of(node, name_high, &high, -1);
    if (found->low == -2 || found->high == -2) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a repeat's least count is None");
        return -1;
    }
    if (!found->high || (found->high > 0 && found->high < found->low)) return 0;
    if (of == CHARS_NODE) {
        PyObject *chars = field_of(item, name_chars, &of_chars);
        found->kind = TEXT;
        found->empty = !found->low;
        found->object = chars ? text_set(e->tokens, chars) : -1;
        Py_XDECREF(chars);
        return found->object < 0 ? -1 : 1;
    }
    if (found->high > 1 && (of == ALT_NODE || of == NODE_TYPES)) return 0;
    found->kind = REPEAT;
    PyObject *itself = repeat_of(e, item, found->low, found->high, node), *after = NULL;
    if (itself && found->high != 1)
        after = repeat_of(e, item, found->low ? found->low - 1 : 0, found->high < 0 ? -1 : found->high - 1, NULL);
    PyObject *nodes[] = {item, after};
    int failed = !itself || PyErr_Occurred() || add_children(e, found, nodes, after ? 2 : 1, env) < 0;
    Py_XDECREF(itself), Py_XDECREF(after);
    return failed ? -1 : 1;
}

/* read_plain for sorted texts. */
static int read_choices(Engine *e, Construct *found, PyObject *values) {
    Py_ssize_t count = PyTuple_Check(values) ? PyTuple_GET_SIZE(values) : 0;
    if (!count || count > INT32_MAX) return 0;
    if ((found->object = know_choices(e, values, Py_None, -1)) < 0) return -1;
    int empty = !PyBytes_GET_SIZE(PyTuple_GET_ITEM(values, 0));
    found->kind = empty && count == 1 ? SEQ : CHOICES;
    found->low = found->empty = (int8_t)empty, found->high = (int32_t)count;
    return 1;
}

/* The name of each node type's field of child nodes. */
static PyObject **const name_inside[NODE_TYPES] = {
    &name_data, &name_chars, &name_items, &name_items, &name_args, &name_item, &name_values,
};

/* Read a node without Python: 1: done; 0: Bridge.construct must read it, or (`ahead`) its rule isn't made yet; -1: an error. */
static int read_plain(Engine *e, int32_t number, int ahead) {
    static Field of_env, of_type[NODE_TYPES];
    Construct found = e->constructs[number];
    PyObject *node = found.node, *env = found.env; /* the construct holds the references */
    int type = type_of(e, node);
    if (type == NODE_TYPES) return 0;
    PyObject *values = field_of(env, name_values, &of_env);
    PyObject *inside = values ? field_of(node, *name_inside[type], &of_type[type]) : NULL;
    int tied = inside ? PyObject_IsTrue(values) : -1, result = tied < 0 ? -1 : 1;
    Py_XDECREF(values);
    if (result > 0 && type >= SEQ_NODE && type <= CALL_NODE && !PyTuple_Check(inside)) {
        PyErr_SetString(PyExc_TypeError, "a node's parts are no tuple");
        result = -1;
    }
    if (result < 0) {
        Py_XDECREF(inside);
        return -1;
    }
    found.tied = (int8_t)tied;
    found.kind = type == LITERAL_NODE ? LITERAL : type == CHARS_NODE ? TEXT : type == SEQ_NODE ? SEQ : ALT;
    Py_ssize_t count = type >= SEQ_NODE && type <= CALL_NODE ? PyTuple_GET_SIZE(inside) : 0;
    if (type == LITERAL_NODE) {
        if ((found.object = know_literal(e, inside)) < 0) result = -1;
        else if (!e->literals[found.object].length) found.kind = SEQ;
    } else if (type == CHARS_NODE) {
        found.low = found.high = 1;
        if ((found.object = text_set(e->tokens, inside)) < 0) result = -1;
    } else if (type == REPEAT_NODE) {
        result = read_repeat(e, &found, inside, env);
    } else if (type == CHOICES_NODE) {
        result = read_choices(e, &found, inside);
    } else if (type == CALL_NODE && (count || tied)) { /* constructs with parameters are left to Python */
        result = 0;
    } else if (type == CALL_NODE || (type == SEQ_NODE && count > 1)) {
        PyObject *made = type == CALL_NODE ? body_of(node, env, ahead) : tail_of(e, node, inside);
        PyObject *nodes[] = {type == CALL_NODE ? made : PyTuple_GET_ITEM(inside, 0), made};
        if (!made) result = PyErr_Occurred() ? -1 : 0;
        else if (add_children(e, &found, nodes, type == CALL_NODE ? 1 : 2, env) < 0) result = -1;
        Py_XDECREF(made);
    } else if (add_children(e, &found, PySequence_Fast_ITEMS(inside), count, env) < 0) {
        result = -1;
    }
    Py_DECREF(inside);
    if (result > 0) e->constructs[number] = found;
    return result;
}

/* A construct, read if it wasn't yet; NULL on error. The pointer is valid until another construct is added. */
const Construct *construct_at(Engine *e, int32_t number) {
    if (e->constructs[number].kind != UNREAD) return &e->constructs[number];
    int known = e->asks ? 0 : read_plain(e, number, 0);
    if (!known) {
        PyObject *arguments[] = {e->bridge, e->constructs[number].node, e->constructs[number].env};
        PyObject *described = PyObject_VectorcallMethod(name_construct, arguments, 3, NULL);
        known = described && read_described(e, number, described) == 0 ? 1 : -1;
        Py_XDECREF(described);
    }
    return known < 0 ? NULL : &e->constructs[number];
}

/* Whether a construct is a call of a rule in which items, or names, must differ (grammar.py: `distinct`); -1 on error. */
int is_distinct(Engine *e, int32_t number) {
    static Field of_env, of_grammar, of_call;
    if (e->constructs[number].distinct >= 0) return e->constructs[number].distinct;
    PyObject *node = e->constructs[number].node, *grammar = NULL, *distinct = NULL, *rule = NULL;
    int found = (PyObject *)Py_TYPE(node) == PyTuple_GET_ITEM(e->types, CALL_NODE);
    if (found) {
        grammar = field_of(e->constructs[number].env, name_grammar, &of_env);
        distinct = grammar ? field_of(grammar, name_distinct, &of_grammar) : NULL;
        rule = distinct ? field_of(node, name_rule, &of_call) : NULL;
        found = rule ? PySequence_Contains(distinct, rule) : -1;
        Py_XDECREF(grammar), Py_XDECREF(distinct), Py_XDECREF(rule);
    }
    return e->constructs[number].distinct = (int8_t)found;
}

/* The choices without a parameter that a construct begins with, as far as constructs are read; NULL: none. */
static const Construct *choices_first(const Engine *e, int32_t construct) {
    for (int i = 0; i <= MOST_DEPTH; i++) {
        const Construct *c = &e->constructs[construct];
        if (c->kind == CHOICES) return c;
        if (!c->count || !(c->kind == SEQ || (c->kind == ALT && c->count == 1))) return NULL;
        construct = e->children[c->first];
    }
    return NULL;
}

/* If a literal comes before choices, such as "go to " before objects, compute the tokens that begin with its last byte and
 * go on with a value. They are the same after all such literals, and the first mask that needs them would take longest of all. */
static int look_up_values(Engine *e) {
    int32_t left = MOST_VALUES;
    for (int32_t i = 0; i < e->construct_index.count; i++) {
        const Construct *c = &e->constructs[i], *before = c->kind == SEQ && c->count == 2 ? &e->constructs[e->children[c->first]] : NULL;
        const Construct *values = before && before->kind == LITERAL ? choices_first(e, e->children[c->first + 1]) : NULL;
        if (!values || values->high - values->low > left) continue;
        const Literal *literal = &e->literals[before->object];
        uint32_t child;
        if (!find_child(node_at(e->tokens, ROOT), literal->at[literal->length - 1], &child) || CHILD_IS_TOKEN(child)) continue;
        Config from = {CHOICES, values->object, 0, values->low, values->high, 0};
        int made = keep_values(e, node_at(e->tokens, CHILD_AT(child)), &from);
        if (made < 0) return -1;
        if (made) left -= values->high - values->low;
    }
    return 0;
}

/* Whether all constructs are read, and none of them is left to Python. */
static int all_plain(const Engine *e) {
    int plain = !e->asks;
    for (int32_t i = 0; i < e->construct_index.count && plain; i++) {
        int kind = e->constructs[i].kind;
        plain = kind >= LITERAL && kind != ASKED && kind != MEMBERS && kind != LOOP;
    }
    return plain;
}

/* Compute the closures of all frames, including frames made meanwhile. If a closure consists of several literals, such as the verbs
 * of actions, compute the mask of each. */
static int close_ahead(Engine *e) {
    int64_t left = MOST_ENTERED * (int64_t)e->construct_index.count, nested = MOST_NESTED;
    for (int32_t i = 1; i < e->frame_index.count && left > 0; i++) {
        int64_t *of = e->frames[i].depth > FLAT ? &nested : &left, before = e->entered;
        if (e->frames[i].construct < 0 || *of <= 0) continue;
        const Closure *closure = closure_of(e, i);
        if (!closure || look_up_literals(e, closure) < 0) return PyErr_Occurred() ? -1 : 0;
        *of -= e->entered - before;
    }
    return 0;
}

/* Read the constructs known so far and, recursively, their parts, up to MOST_AHEAD, except rules that aren't made yet. When a
 * grammar is compiled it was just made, so that its nodes are in the processor's cache; later, the first mask that needs them
 * would wait for memory. */
int read_ahead(Engine *e) {
    for (int32_t i = 0; i < e->construct_index.count && i < MOST_AHEAD && !e->asks; i++) {
        if (e->constructs[i].kind == UNREAD && read_plain(e, i, 1) < 0) return -1;
    }
    int32_t more = 2 * e->construct_index.count; /* otherwise the array of frames would grow several times during the first masks */
    if (expect_frames(e, more < MOST_EXPECTED ? more : MOST_EXPECTED) < 0 || look_up_values(e) < 0) return -1;
    e->ahead = 1;
    int failed = all_plain(e) && close_ahead(e) < 0;
    e->ahead = 0;
    if (failed || look_up_first(e, MOST_VALUES) < 0) return -1;
    return map_expect(&e->rows, e->rows.used); /* growing this map takes longer than most masks */
}
