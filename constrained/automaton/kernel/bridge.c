/* From Python's positions and back: what bridge.py describes, as plain structs with numbers for objects. */
#include "kernel.h"

#define MOST_FLAT (1 << 20) /* bytes of choices that are laid side by side */

/* The number (from 1; 0: None) of a frame, which the kernel then knows; -1 on error. */
int32_t know_frame(Engine *e, PyObject *frame) {
    if (frame == Py_None) return 0;
    PyObject *attribute = PyObject_GetAttr(frame, name_number);
    long number = attribute ? PyLong_AsLong(attribute) : -1;
    Py_XDECREF(attribute);
    if (number < 0 || number >= INT32_MAX) return -1;
    int32_t rest = (int32_t)number + 1;
    if (rest >= e->frame_room) {
        int32_t room = e->frame_room ? e->frame_room : 64;
        while (room <= rest) room *= 2;
        PyObject **frames = realloc(e->frames, room * sizeof *frames);
        if (frames) e->frames = frames;
        Closure **closures = realloc(e->closures, room * sizeof *closures);
        if (closures) e->closures = closures;
        int32_t *near = realloc(e->near, room * sizeof *near);
        if (near) e->near = near;
        if (!frames || !closures || !near) {
            PyErr_NoMemory();
            return -1;
        }
        memset(frames + e->frame_room, 0, (room - e->frame_room) * sizeof *frames);
        memset(near + e->frame_room, 0, (room - e->frame_room) * sizeof *near);
        memset(closures + e->frame_room, 0, (room - e->frame_room) * sizeof *closures);
        e->frame_room = room;
    }
    e->frames[rest] = frame;
    return rest;
}

static int32_t know_literal(Engine *e, PyObject *data) {
    PyObject *found = PyDict_GetItemWithError(e->literal_numbers, data);
    if (found) return (int32_t)PyLong_AsLong(found);
    if (PyErr_Occurred()) return -1;
    if (e->literal_count == e->literal_room) {
        int32_t room = e->literal_room ? 2 * e->literal_room : 16;
        Literal *literals = realloc(e->literals, room * sizeof *literals);
        if (!literals) {
            PyErr_NoMemory();
            return -1;
        }
        e->literals = literals;
        e->literal_room = room;
    }
    PyObject *number = PyLong_FromLong(e->literal_count);
    if (!number || !PyBytes_Check(data) || PyDict_SetItem(e->literal_numbers, data, number) < 0) {
        Py_XDECREF(number);
        return -1;
    }
    Py_DECREF(number);
    e->literals[e->literal_count] =
        (Literal){Py_NewRef(data), (const uint8_t *)PyBytes_AS_STRING(data), (int32_t)PyBytes_GET_SIZE(data)};
    return e->literal_count++;
}

/* Python's bytes lie all over memory; a walk that looks at a hundred of them waits for each. */
static void flatten(Engine *e, Choices *choices, size_t total) {
    Py_ssize_t n = PyTuple_GET_SIZE(choices->values);
    uint8_t *flat = malloc(total + 1);
    int32_t *offsets = malloc((n + 1) * sizeof *offsets);
    if (!flat || !offsets) { /* it works without */
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

static int32_t know_choices(Engine *e, PyObject *values, PyObject *bind) {
    PyObject *id = PyLong_FromVoidPtr(values);
    PyObject *key = id ? PyTuple_Pack(2, id, bind) : NULL;
    PyObject *found = key ? PyDict_GetItemWithError(e->choices_numbers, key) : NULL, *number = NULL;
    int32_t result = -1;
    Py_XDECREF(id);
    if (found) result = (int32_t)PyLong_AsLong(found);
    if (found || PyErr_Occurred()) goto done;
    if (!PyTuple_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "choices are no tuple");
        goto done;
    }
    if (e->choices_count == e->choices_room) {
        int32_t room = e->choices_room ? 2 * e->choices_room : 8;
        Choices *choices = realloc(e->choices, room * sizeof *choices);
        if (!choices) {
            PyErr_NoMemory();
            goto done;
        }
        e->choices = choices;
        e->choices_room = room;
    }
    int32_t longest = 0;
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
        PyObject *value = PyTuple_GET_ITEM(values, i);
        if (!PyBytes_Check(value)) {
            PyErr_SetString(PyExc_TypeError, "a choice is not bytes");
            goto done;
        }
        total += PyBytes_GET_SIZE(value);
        if (PyBytes_GET_SIZE(value) > longest) longest = (int32_t)PyBytes_GET_SIZE(value);
    }
    number = PyLong_FromLong(e->choices_count);
    if (!number || PyDict_SetItem(e->choices_numbers, key, number) < 0) goto done;
    Choices *added = &e->choices[e->choices_count];
    *added = (Choices){Py_NewRef(values), Py_NewRef(bind), longest, NULL, NULL};
    result = e->choices_count++;
    if (total <= MOST_FLAT) flatten(e, added, (size_t)total);
done:
    Py_XDECREF(key), Py_XDECREF(number);
    return result;
}

/* From what Bridge.describe gives: (kind, object, rest, low, high, depth, bind). */
int config_of(Engine *e, PyObject *described, Config *out) {
    if (!PyTuple_Check(described) || PyTuple_GET_SIZE(described) != 7) {
        PyErr_SetString(PyExc_TypeError, "a position is described by seven things");
        return -1;
    }
    PyObject *const *item = &PyTuple_GET_ITEM(described, 0);
    PyObject *object = item[1], *depth = item[5], *bind = item[6];
    *out = (Config){(int32_t)PyLong_AsLong(item[0]), 0, 0, (int32_t)PyLong_AsLong(item[3]), (int32_t)PyLong_AsLong(item[4]), 0};
    if (PyErr_Occurred() || (out->rest = know_frame(e, item[2])) < 0) return -1;
    if (out->kind == LITERAL) {
        out->object = know_literal(e, object);
    } else if (out->kind == CHOICES) {
        out->object = know_choices(e, object, bind);
        out->depth = (int32_t)PyLong_AsLong(depth);
    } else if (out->kind == TEXT) {
        if ((out->object = text_set(e->tokens, object)) < 0) return -1;
        TextSet *set = e->tokens->sets[out->object];
        PyObject *state = PyDict_GetItemWithError(set->numbers, depth);
        /* states inside a character get their numbers as they are found: go on until this one has its own */
        for (int i = 0; !state && i < set->states && !PyErr_Occurred(); i++)
            if (text_expand(set, i) == 0) state = PyDict_GetItemWithError(set->numbers, depth);
        if (!state && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no such state inside a character");
        out->depth = state ? (int32_t)PyLong_AsLong(state) : 0;
    }
    return out->object < 0 || PyErr_Occurred() ? -1 : 0;
}

PyObject *position_of(Engine *e, const Config *c) {
    PyObject *object = Py_None, *depth = NULL, *bind = Py_None;
    if (c->kind == LITERAL) object = e->literals[c->object].data;
    if (c->kind == CHOICES) {
        object = e->choices[c->object].values;
        bind = e->choices[c->object].bind;
    }
    if (c->kind == TEXT) {
        object = e->tokens->sets[c->object]->charset;
        depth = Py_NewRef(PyList_GET_ITEM(e->tokens->sets[c->object]->keys, c->depth));
    } else if (!(depth = PyLong_FromLong(c->depth))) {
        return NULL;
    }
    PyObject *rest = c->rest ? e->frames[c->rest] : Py_None;
    return PyObject_CallMethod(
        e->bridge, "position", "iOOiiNO", (int)c->kind, object, rest, (int)c->low, (int)c->high, depth, bind
    );
}
