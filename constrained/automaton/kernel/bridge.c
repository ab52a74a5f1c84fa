/* Conversion between Python's positions, as bridge.py describes them, and plain structs with numbers for objects. */
#include "kernel.h"

#define MOST_FLAT (1 << 20) /* most bytes of choices that are copied into one block */

/* A Python int from `low` to `high`; -1, with an error set, if it isn't one (`low` is never below -1). */
int32_t int_between(PyObject *object, int32_t low, int32_t high, const char *what) {
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred()) return -1;
    if (value >= low && value <= high) return (int32_t)value;
    PyErr_Format(PyExc_ValueError, "%s is %ld, not %d to %d", what, value, (int)low, (int)high);
    return -1;
}

int32_t know_literal(Engine *e, PyObject *data) {
    if (!PyBytes_CheckExact(data) || PyBytes_GET_SIZE(data) > INT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "a literal is not bytes");
        return -1;
    }
    PyObject *found = PyDict_GetItemWithError(e->numbers, data);
    if (found) return (int32_t)PyLong_AsLong(found);
    if (PyErr_Occurred()) return -1;
    Literal *literals = with_room(e->literals, e->literal_count + 1, &e->literal_room, 4, sizeof *literals);
    if (!literals) return -1;
    e->literals = literals;
    PyObject *number = PyLong_FromLong(e->literal_count);
    if (!number || PyDict_SetItem(e->numbers, data, number) < 0) {
        Py_XDECREF(number);
        return -1;
    }
    Py_DECREF(number);
    e->literals[e->literal_count] =
        (Literal){Py_NewRef(data), (const uint8_t *)PyBytes_AS_STRING(data), (int32_t)PyBytes_GET_SIZE(data)};
    return e->literal_count++;
}

/* Copy the values into one block: Python's bytes objects lie far apart, and a walk would wait for the memory of each. */
static void flatten(Engine *e, Choices *choices, size_t total) {
    Py_ssize_t n = PyTuple_GET_SIZE(choices->values);
    uint8_t *flat = malloc(total + 1);
    int32_t *offsets = malloc((n + 1) * sizeof *offsets);
    if (!flat || !offsets) { /* without memory, walks read the objects */
        free(flat), free(offsets);
        return;
    }
    int32_t at = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *value = PyTuple_GET_ITEM(choices->values, i);
        offsets[i] = at;
        memcpy(flat + at, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
        at += (int32_t)PyBytes_GET_SIZE(value);
    }
    offsets[n] = at;
    choices->flat = flat;
    choices->offsets = offsets;
    e->choices_bytes += total + (n + 1) * sizeof *offsets;
}

static int is_above(PyObject *value, PyObject *before) {
    Py_ssize_t length = PyBytes_GET_SIZE(value), shorter = PyBytes_GET_SIZE(before);
    int order = memcmp(PyBytes_AS_STRING(value), PyBytes_AS_STRING(before), length < shorter ? length : shorter);
    return order > 0 || (order == 0 && length > shorter);
}

static int choices_room(Engine *e) {
    Choices *choices = with_room(e->choices, e->choices_count + 1, &e->choices_room, 8, sizeof *choices);
    if (choices) e->choices = choices;
    return choices ? 0 : -1;
}

int32_t know_choices(Engine *e, PyObject *values, PyObject *bind, int32_t set) {
    PyObject *id = PyLong_FromVoidPtr(values);
    PyObject *key = id ? PyTuple_Pack(2, id, bind) : NULL;
    PyObject *found = key ? PyDict_GetItemWithError(e->numbers, key) : NULL, *number = NULL;
    int32_t result = -1;
    Py_XDECREF(id);
    if (found) result = (int32_t)PyLong_AsLong(found);
    if (found || PyErr_Occurred()) goto done;
    if (!PyTuple_Check(values) || PyTuple_GET_SIZE(values) >= INT32_MAX || !(set >= 0 || bind == Py_None || PyUnicode_Check(bind))) {
        PyErr_SetString(PyExc_TypeError, "choices are no tuple, or are bound to no name");
        goto done;
    }
    if (choices_room(e) < 0) goto done;
    int32_t longest = 0;
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
        PyObject *value = PyTuple_GET_ITEM(values, i);
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) > INT32_MAX) {
            PyErr_SetString(PyExc_TypeError, "a choice is not bytes");
            goto done;
        }
        if (i && !is_above(value, PyTuple_GET_ITEM(values, i - 1))) {
            PyErr_SetString(PyExc_ValueError, "choices are not in order");
            goto done;
        }
        total += PyBytes_GET_SIZE(value);
        if (PyBytes_GET_SIZE(value) > longest) longest = (int32_t)PyBytes_GET_SIZE(value);
    }
    number = PyLong_FromLong(e->choices_count);
    if (!number || PyDict_SetItem(e->numbers, key, number) < 0) goto done;
    Choices *added = &e->choices[e->choices_count];
    *added = (Choices){Py_NewRef(values), Py_NewRef(bind), set, longest, NULL, NULL};
    result = e->choices_count++;
    if (total <= MOST_FLAT) flatten(e, added, (size_t)total);
done:
    Py_XDECREF(key), Py_XDECREF(number);
    return result;
}

/* Loops are stored among the choices; the length of the key distinguishes the two. */
static int32_t know_loop(Engine *e, PyObject *charset, PyObject *loop) {
    int32_t set = text_set(e->tokens, charset), result = -1;
    PyObject *key = set < 0 ? NULL : Py_BuildValue("(NOi)", PyLong_FromVoidPtr(loop), charset, 0), *first = NULL;
    PyObject *found = key ? PyDict_GetItemWithError(e->numbers, key) : NULL, *number = NULL;
    if (found) result = (int32_t)PyLong_AsLong(found);
    else if (key && !PyErr_Occurred() && choices_room(e) == 0) first = PyObject_GetAttrString(loop, "first");
    PyObject *bytes = first ? PySequence_Tuple(first) : NULL;
    uint64_t *begins = bytes ? calloc(4, sizeof *begins) : NULL;
    int failed = !begins || !(number = PyLong_FromLong(e->choices_count));
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(bytes); i++) {
        int32_t byte = int_between(PyTuple_GET_ITEM(bytes, i), 0, 255, "a byte");
        if (!(failed = byte < 0)) begins[byte >> 6] |= 1ull << (byte & 63);
    }
    if (bytes && (failed || PyDict_SetItem(e->numbers, key, number) < 0)) {
        free(begins);
        if (!PyErr_Occurred()) PyErr_NoMemory();
    } else if (bytes) {
        e->choices[e->choices_count] = (Choices){Py_NewRef(loop), Py_NewRef(charset), set, 0, (uint8_t *)begins, NULL};
        result = e->choices_count++;
        e->choices_bytes += 32;
    }
    Py_XDECREF(key), Py_XDECREF(first), Py_XDECREF(bytes), Py_XDECREF(number);
    return result;
}

/* Whether the sorted values low … high - 1 agree on their first `depth` bytes and are longer (of texts left out, the first may end
 * there). */
static int choices_agree(const Choices *choices, int32_t low, int32_t high, int32_t depth) {
    int32_t length, last;
    const uint8_t *first_value = choice(choices, low, &length), *last_value = choice(choices, high - 1, &last);
    int ends = choices->set >= 0 && length == depth && (high == low + 1 || last > depth);
    return ends || (length > depth && last > depth) ? !memcmp(first_value, last_value, depth) : 0;
}

static int32_t inside_state(TextSet *set, PyObject *inside) {
    PyObject *state = PyDict_GetItemWithError(set->numbers, inside);
    /* states inside a character are numbered when they are reached: step until this one has a number */
    for (int i = 0; !state && i < set->states && !PyErr_Occurred(); i++)
        if (text_expand(set, i) == 0) state = PyDict_GetItemWithError(set->numbers, inside);
    if (!state && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such state inside a character");
    return state ? (int32_t)PyLong_AsLong(state) : -1;
}

/* From what Bridge.describe gives, (kind, object, rest, low, high, depth, bind), with every number checked. */
int config_of(Engine *e, PyObject *described, Config *out) {
    if (!PyTuple_Check(described) || PyTuple_GET_SIZE(described) != 7) {
        PyErr_SetString(PyExc_TypeError, "a position is described by seven things");
        return -1;
    }
    PyObject *object = PyTuple_GET_ITEM(described, 1), *low = PyTuple_GET_ITEM(described, 3);
    PyObject *high = PyTuple_GET_ITEM(described, 4), *depth = PyTuple_GET_ITEM(described, 5);
    *out = (Config){0};
    if ((out->kind = int_between(PyTuple_GET_ITEM(described, 0), ACCEPT, JSON_TEXT, "the kind")) < 0) return -1;
    if ((out->rest = know_frame(e, PyTuple_GET_ITEM(described, 2))) < 0) return -1;
    if (out->kind == LITERAL) {
        if ((out->object = know_literal(e, object)) < 0) return -1;
        out->low = int_between(low, 0, e->literals[out->object].length - 1, "the offset");
        return out->low < 0 ? -1 : 0;
    }
    if (out->kind == CHOICES || out->kind == EXCEPT) {
        PyObject *bind = PyTuple_GET_ITEM(described, 6);
        if (out->kind == EXCEPT && (bind == Py_None || PyUnicode_Check(bind))) {
            PyErr_SetString(PyExc_TypeError, "a run without its set of characters");
            return -1;
        }
        int32_t set = out->kind == EXCEPT ? text_set(e->tokens, bind) : -1;
        if (PyErr_Occurred() || (out->object = know_choices(e, object, bind, set)) < 0) return -1;
        const Choices *choices = &e->choices[out->object];
        int32_t count = (int32_t)PyTuple_GET_SIZE(choices->values);
        if ((out->low = int_between(low, 0, count - 1, "the first choice")) < 0) return -1;
        if ((out->high = int_between(high, out->low + 1, count, "the end of the choices")) < 0) return -1;
        if ((out->depth = int_between(depth, 0, choices->longest, "the depth")) < 0) return -1;
        if (choices_agree(choices, out->low, out->high, out->depth)) return 0;
        PyErr_SetString(PyExc_ValueError, "choices that don't agree on what was read");
        return -1;
    }
    if (out->kind == JSON_TEXT) {
        if ((out->object = know_json(e, object)) < 0) return -1;
        out->low = int_between(low, 0, INT32_MAX, "the state"), out->high = int_between(high, -1, INT32_MAX, "the most characters");
        out->depth = int_between(depth, 0, INT32_MAX, "the state inside a character");
        if (!PyErr_Occurred() && json_checked(e->json[out->object], out)) return 0;
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such place in a text");
        return -1;
    }
    if (out->kind == TEXT || out->kind == LOOP) {
        out->object =
            out->kind == TEXT ? text_set(e->tokens, object) : know_loop(e, object, PyTuple_GET_ITEM(described, 6));
        if (out->object < 0) return -1;
        if ((out->low = int_between(low, 0, INT32_MAX, "the fewest characters")) < 0) return -1;
        out->high = int_between(high, -1, INT32_MAX, "the most characters");
        if (PyErr_Occurred()) return -1;
        if (out->high >= 0 && out->high < (out->low ? out->low : 1)) {
            PyErr_SetString(PyExc_ValueError, "fewer characters at most than at least");
            return -1;
        }
        return (out->depth = inside_state(e->tokens->sets[set_of(e, out)], depth)) < 0 ? -1 : 0;
    }
    return 0;
}

PyObject *position_of(Engine *e, const Config *c) {
    PyObject *object = Py_None, *depth = NULL, *bind = Py_None;
    if (c->kind == LITERAL) object = e->literals[c->object].data;
    if (c->kind == CHOICES || c->kind == EXCEPT) {
        object = e->choices[c->object].values;
        bind = e->choices[c->object].bind;
    }
    if (c->kind == JSON_TEXT) object = json_table(e->json[c->object]);
    if (c->kind == LOOP) bind = e->choices[c->object].values;
    if (c->kind == TEXT || c->kind == LOOP) {
        object = e->tokens->sets[set_of(e, c)]->charset;
        depth = Py_NewRef(PyList_GET_ITEM(e->tokens->sets[set_of(e, c)]->keys, c->depth));
    } else if (!(depth = PyLong_FromLong(c->depth))) {
        return NULL;
    }
    PyObject *rest = frame_object(e, c->rest);
    if (!rest) {
        Py_DECREF(depth);
        return NULL;
    }
    return PyObject_CallMethod(
        e->bridge, "position", "iOOiiNO", (int)c->kind, object, rest, (int)c->low, (int)c->high, depth, bind
    );
}
