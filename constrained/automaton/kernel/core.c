/* One text being written: what matcher.py builds on. */
#include "core.h"

PyTypeObject *CoreType;

/* begin(compiled, engine, begun, eos, checked) -> bool */
static PyObject *core_begin(Core *c, PyObject *args) {
    PyObject *compiled, *engine, *eos;
    Py_buffer begun;
    int checked;
    if (!PyArg_ParseTuple(args, "OO!y*O!p", &compiled, EngineType, &engine, &begun, &PyTuple_Type, &eos, &checked))
        return NULL;
    uint32_t ids[MAX_EOS];
    Py_ssize_t count = PyTuple_GET_SIZE(eos);
    int failed = c->engine || !engine_ready((Engine *)engine) || begun.len > INT32_MAX || count > MAX_EOS;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        long id = PyLong_AsLong(PyTuple_GET_ITEM(eos, i));
        failed = id < 0 || id >= ((Engine *)engine)->tokens->size;
        ids[i] = (uint32_t)id;
    }
    if (failed) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a matcher begun twice, too long a text, or EOS ids that the kernel can't take");
        PyBuffer_Release(&begun);
        return NULL;
    }
    c->compiled = Py_NewRef(compiled);
    c->engine = (Engine *)Py_NewRef(engine);
    memcpy(c->eos, ids, sizeof ids);
    c->eos_count = (int)count;
    c->checked = checked;
    c->left = -1;
    c->ended = 0;
    c->snapshot_count = c->past.n = 0;
    failed = read_bytes(c->engine, &c->engine->start, begun.buf, (int32_t)begun.len, &c->start, &c->one) < 0 ||
             vec_copy(&c->now, &c->start) < 0;
    PyBuffer_Release(&begun);
    if (failed) return NULL;
    return PyBool_FromLong(c->start.n > 0);
}

static void core_dealloc(Core *c) {
    PyTypeObject *type = Py_TYPE(c);
    Py_XDECREF(c->compiled), Py_XDECREF(c->engine);
    free(c->start.at), free(c->now.at), free(c->past.at), free(c->one.at), free(c->two.at), free(c->snapshots);
    type->tp_free((PyObject *)c);
    Py_DECREF(type);
}

int core_begun(Core *c) {
    if (c->engine) return 1;
    PyErr_SetString(PyExc_ValueError, "a matcher comes from CompiledGrammar.matcher()");
    return 0;
}

/* Begin a call in which Python may run, and other threads with it; -1, an error, if one is under way. */
static int take(Core *c) {
    if (c->busy) {
        PyErr_SetString(PyExc_RuntimeError, "a matcher that another thread is using: give each thread its own copy()");
        return -1;
    }
    return c->busy = 1, 0;
}

#define ALONE(name, parameters, arguments) \
    static PyObject *name##_alone parameters { \
        if (take(c) < 0) return NULL; \
        PyObject *result = name arguments; \
        c->busy = 0; \
        return result; \
    } \
    GUARDED(name##_alone, parameters, arguments)

static int remember(Core *c) {
    Snapshot *snapshots = with_room(c->snapshots, c->snapshot_count + 1, &c->snapshot_room, 16, sizeof *snapshots);
    if (!snapshots) return -1;
    c->snapshots = snapshots;
    c->snapshots[c->snapshot_count] = (Snapshot){c->past.n, c->now.n, c->left, c->ended};
    if (vec_append(&c->past, c->now.at, c->now.n) < 0) return -1;
    c->snapshot_count++;
    return 0;
}

/* 1 if the budget, or a vocabulary without some bytes, may rule out tokens; -1 on error. */
static int filtered(const Core *c, Engine *e) {
    if (c->checked) return 1;
    if (c->left < 0) return 0;
    double bound = horizon(e, &c->now);
    return bound < 0 ? -1 : (double)c->left <= bound + (double)c->spare;
}

static PyObject *positions(Engine *e, const Vec *vec) {
    PyObject *out = PyTuple_New(vec->n);
    for (int i = 0; out && i < vec->n; i++) {
        PyObject *position = position_of(e, &vec->at[i]);
        if (!position) Py_CLEAR(out);
        else PyTuple_SET_ITEM(out, i, position);
    }
    return out;
}

/* Read a token: False, and nothing is changed, if it isn't allowed. The positions after it are made in `one` and swapped in at
 * the end, so that an error leaves the text where it was. */
static PyObject *core_advance(Core *c, PyObject *token) {
    PyObject *number = PyNumber_Index(token);
    if (!number) { /* what int() takes is taken, as in Python */
        PyErr_Clear();
        if (!(number = PyNumber_Long(token))) return NULL;
    }
    int overflow;
    long long id = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (!core_begun(c)) return NULL;
    c->engine->work = 0;
    if (overflow || id < 0) Py_RETURN_FALSE;
    for (int i = 0; i < c->eos_count; i++) {
        if (c->eos[i] != (uint64_t)id) continue;
        if (!accepting(&c->now)) Py_RETURN_FALSE;
        if (remember(c) < 0) return NULL;
        c->ended = 1;
        Py_RETURN_TRUE;
    }
    const Tokens *t = c->engine->tokens;
    if (c->ended || id >= t->size || t->ranks[id] < 0) Py_RETURN_FALSE;
    int32_t rank = t->ranks[id];
    if (read_bytes(c->engine, &c->now, t->flat + t->offsets[rank], t->lengths[rank], &c->one, &c->two) < 0) return NULL;
    if (!c->one.n) Py_RETURN_FALSE;
    int64_t left = c->left < 0 ? -1 : c->left - 1;
    int check = filtered(c, c->engine);
    if (check < 0) return NULL;
    if (check) {
        if (c->left == 0) Py_RETURN_FALSE;
        PyObject *after = positions(c->engine, &c->one);
        PyObject *fits = after ? PyObject_CallMethod((PyObject *)c, "_fits", "OL", after, (long long)left) : NULL;
        Py_XDECREF(after);
        if (!fits) return NULL;
        int fine = PyObject_IsTrue(fits);
        Py_DECREF(fits);
        if (fine <= 0) return fine < 0 ? NULL : Py_NewRef(Py_False);
        /* Python ran: the scratch may have been used */
        if (read_bytes(c->engine, &c->now, t->flat + t->offsets[rank], t->lengths[rank], &c->one, &c->two) < 0)
            return NULL;
    }
    if (remember(c) < 0) return NULL;
    Vec swap = c->now;
    c->now = c->one;
    c->one = swap;
    c->left = left;
    c->ask = c->remembers ? MAY_ASK : 0;
    Py_RETURN_TRUE;
}

static PyObject *core_rollback(Core *c, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs > 1) return PyErr_Format(PyExc_TypeError, "rollback takes one number, not %zd", nargs);
    long long tokens = nargs ? PyLong_AsLongLong(args[0]) : 1;
    if (tokens == -1 && PyErr_Occurred()) return NULL;
    if (tokens < 0 || tokens > c->snapshot_count)
        return PyErr_Format(PyExc_ValueError, "can't take back %lld tokens of %d", tokens, (int)c->snapshot_count);
    if (tokens) {
        Snapshot snapshot = c->snapshots[c->snapshot_count - tokens];
        assert(snapshot.from >= 0 && snapshot.from + snapshot.n <= c->past.n);
        c->now.n = 0;
        if (snapshot.n && vec_append(&c->now, c->past.at + snapshot.from, snapshot.n) < 0) return NULL;
        c->past.n = snapshot.from;
        c->left = snapshot.left;
        c->ended = snapshot.ended;
        c->ask = c->remembers ? MAY_ASK : 0;
        c->snapshot_count -= (int32_t)tokens;
    }
    Py_RETURN_NONE;
}

static PyObject *core_reset(Core *c, PyObject *Py_UNUSED(none)) {
    if (vec_copy(&c->now, &c->start) < 0) return NULL;
    c->past.n = c->snapshot_count = c->ended = 0;
    c->ask = c->remembers ? MAY_ASK : 0;
    c->left = -1;
    Py_RETURN_NONE;
}

static PyObject *core_copy(Core *c, PyObject *Py_UNUSED(none)) {
    PyTypeObject *type = Py_TYPE(c);
    Core *other = (Core *)type->tp_alloc(type, 0);
    if (!other) return NULL;
    other->compiled = Py_XNewRef(c->compiled);
    other->engine = (Engine *)Py_XNewRef(c->engine);
    other->snapshots = malloc(c->snapshot_count * sizeof(Snapshot) + 1);
    if (!other->snapshots || vec_copy(&other->start, &c->start) < 0 || vec_copy(&other->now, &c->now) < 0 ||
        vec_copy(&other->past, &c->past) < 0) {
        Py_DECREF(other);
        return PyErr_NoMemory();
    }
    if (c->snapshot_count) memcpy(other->snapshots, c->snapshots, c->snapshot_count * sizeof(Snapshot));
    other->snapshot_count = other->snapshot_room = c->snapshot_count;
    other->left = c->left;
    other->spare = c->spare;
    other->ended = c->ended;
    other->checked = c->checked;
    other->remembers = c->remembers, other->ask = c->ask;
    memcpy(other->eos, c->eos, sizeof c->eos);
    other->eos_count = c->eos_count;
    return (PyObject *)other;
}

#define MOST_NOTED (1 << 18) /* entries of the map, beyond which nothing more is noted */

/* Whether it was noted that the memory (memory.py) rules out no token at the present positions; with `note`, note that. The positions
 * are looked up one after the other, each with the number found for those before it. The map's values are twice such a number, and
 * one more where it was noted for the list that ends there. */
static int nothing_out(const Core *c, int note) {
    Map *map = &c->engine->finished;
    intptr_t known = 0;
    if (note && map->used > MOST_NOTED) return 0;
    for (int i = 0; i < c->now.n; i++) {
        Config key = c->now.at[i];
        key.kind += (int32_t)(known / 2) * (INSIDE + 1);
        known = (intptr_t)map_get(map, &key);
        if (!known && !note) return 0;
        if (!known) known = 2 * (intptr_t)(map->used + 1);
        if (note && map_put(map, &key, (void *)(known | (i == c->now.n - 1))) < 0) return -1;
    }
    return known & 1;
}

/* Whether Python must compute the next mask, because the memory may rule out some of its tokens. */
static int asks(const Core *c) {
    return c->ask && !c->ended && (c->ask == MUST_ASK || !nothing_out(c, 0));
}

/* Note that the memory rules out no token at the present positions. */
static PyObject *core_know_nothing_out(Core *c, PyObject *Py_UNUSED(none)) {
    return core_begun(c) && nothing_out(c, 1) >= 0 ? Py_NewRef(Py_None) : NULL;
}

static int fill(const Core *c, Engine *e, Target *target) {
    int check = c->ended ? 0 : asks(c) ? 1 : filtered(c, e);
    if (check) return check < 0 ? -1 : 0;
    if (c->ended) {
        if (target->touched_count < 0) memset(target->row, 0, target->words * sizeof(uint32_t));
    } else if (fill_row(e, &c->now, target) < 0) {
        return -1;
    }
    if (!c->ended && !accepting(&c->now)) return 1;
    for (int i = 0; i < c->eos_count; i++) {
        assert((int32_t)c->eos[i] < c->engine->tokens->size);
        int32_t word = (int32_t)(c->eos[i] >> 5);
        target->row[word] |= 1u << (c->eos[i] & 31);
        if (target->touched_count >= 0) {
            if (target->touched_count < target->touched_room) target->touched[target->touched_count++] = word;
            else target->touched_count = -1;
        }
    }
    return 1;
}

/* Write the next mask to `target`. 1: done; 0: Python must compute it, as the budget or the memory may rule out tokens; -1: an error. */
int core_fill(Core *c, Engine *e, Target *target) {
    if (read_only) return fill(c, e, target);
    if (take(c) < 0) return -1;
    int done = fill(c, e, target);
    c->busy = 0;
    return done;
}

/* fill_bitmask(mask, row=0): unusual or wrong arguments are left to Python. */
static PyObject *core_fill_bitmask(Core *c, PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    Py_buffer view;
    if (!core_begun(c)) return NULL;
    Py_ssize_t row = nargs == 2 ? PyLong_AsSsize_t(args[1]) : 0;
    if (row == -1 && PyErr_Occurred()) return NULL;
    if ((nargs == 1 || nargs == 2) && !names && PyObject_CheckBuffer(args[0])) {
        int32_t words = c->engine->tokens->words;
        if (PyObject_GetBuffer(args[0], &view, PyBUF_STRIDES | PyBUF_WRITABLE | PyBUF_FORMAT) == 0) {
            int done = 0;
            const char *format = view.format ? view.format : "B";
            if (view.ndim == 2 && view.itemsize == 4 && !((uintptr_t)view.buf & 3) && !(view.strides[0] & 3) && (*format == 'i' || *format == 'l') && !format[1] &&
                view.shape[1] >= words && view.strides[1] == 4 && row >= 0 && row < view.shape[0]) {
                uint32_t *at = (uint32_t *)((char *)view.buf + row * view.strides[0]);
                Target target = {.row = at, .words = words, .touched_count = -1};
                done = core_fill(c, c->engine, &target);
                if (done > 0 && view.shape[1] > words) memset(at + words, 0, (view.shape[1] - words) * 4);
            }
            PyBuffer_Release(&view);
            if (done < 0) return NULL;
            if (done) Py_RETURN_NONE;
        } else {
            PyErr_Clear();
        }
    }
    PyObject *slow = PyObject_GetAttrString((PyObject *)c, "_fill_any");
    PyObject *result = slow ? PyObject_Vectorcall(slow, args, nargs, names) : NULL;
    Py_XDECREF(slow);
    return result;
}

/* Whether a construct on top of the stack is an array or object in which items, or names, must differ; -1 on error. */
static int opens_distinct(Engine *e, int32_t frame) {
    int32_t one[] = {frame}, count = 1, *ways = one;
    if (!frame || frame == e->bottom) return 0;
    if (e->frames[frame].construct < 0 && !(ways = fork_ways(e, frame, &count))) return -1;
    int found = 0;
    for (int32_t i = 0; i < count && !found; i++)
        if (ways[i] && e->frames[ways[i]].construct >= 0) found = is_distinct(e, e->frames[ways[i]].construct);
    if (ways != one) free(ways);
    return found;
}

/* Whether reading a token may open such an array or object. */
static PyObject *core_opens(Core *c, PyObject *token) {
    if (!core_begun(c)) return NULL;
    Engine *e = c->engine;
    const Tokens *t = e->tokens;
    long id = PyLong_AsLong(token);
    if (id == -1 && PyErr_Occurred()) return NULL;
    if (id < 0 || id >= t->size || t->ranks[id] < 0) Py_RETURN_FALSE;
    const uint8_t *data = t->flat + t->offsets[t->ranks[id]];
    e->work = 0;
    if (vec_copy(&c->one, &c->now) < 0) return NULL;
    for (int32_t i = 0; i < t->lengths[t->ranks[id]] && c->one.n; i++) {
        for (int k = 0; k < c->one.n; k++) {
            Config *at = &c->one.at[k];
            if (at->kind != LITERAL || e->literals[at->object].at[at->low] != data[i] || at->low + 1 != e->literals[at->object].length) continue;
            int opens = opens_distinct(e, at->rest);
            if (opens) return opens < 0 ? NULL : Py_NewRef(Py_True);
        }
        if (step_vec(e, &c->one, data[i], &c->two) < 0) return NULL;
        Vec swap = c->one;
        c->one = c->two;
        c->two = swap;
    }
    Py_RETURN_FALSE;
}

/* Replace the positions after the last token by others, a list of what Bridge.describe gives. */
static PyObject *core_go_to(Core *c, PyObject *described) {
    if (!core_begun(c)) return NULL;
    if (!PyList_Check(described)) return PyErr_Format(PyExc_TypeError, "positions are a list");
    c->one.n = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(described); i++) {
        Config config;
        PyObject *item = Py_NewRef(PyList_GET_ITEM(described, i)); /* Python may run, and hold the list, too */
        int failed = config_of(c->engine, item, &config) < 0 || vec_push(&c->one, &config) < 0;
        Py_DECREF(item);
        if (failed) return NULL;
    }
    Vec swap = c->now;
    c->now = c->one;
    c->one = swap;
    Py_RETURN_NONE;
}

/* Whether the budget may rule out tokens here. */
static PyObject *core_near(Core *c, PyObject *Py_UNUSED(none)) {
    int near = core_begun(c) ? filtered(c, c->engine) : -1;
    return near < 0 ? NULL : PyBool_FromLong(near);
}

/* The bytes that must come next, up to `most`. */
static PyObject *core_forced(Core *c, PyObject *limit) {
    long most = PyLong_AsLong(limit);
    if ((most == -1 && PyErr_Occurred()) || !core_begun(c)) return NULL;
    PyObject *out = PyByteArray_FromStringAndSize(NULL, 0);
    if (!out || c->ended || vec_copy(&c->one, &c->now) < 0) goto done;
    c->engine->work = 0;
    while (!accepting(&c->one) && PyByteArray_GET_SIZE(out) < most) {
        uint64_t next[4];
        int forced = -1, ways = 0;
        if (next_bytes(c->engine, &c->one, next) < 0) goto done;
        for (int k = 0; k < 4; k++) {
            ways += count_bits(next[k]);
            if (next[k]) forced = k * 64 + lowest_bit(next[k]);
        }
        if (ways != 1) goto done;
        Py_ssize_t size = PyByteArray_GET_SIZE(out);
        if (PyByteArray_Resize(out, size + 1) < 0) goto done;
        PyByteArray_AS_STRING(out)[size] = (char)forced;
        if (step_vec(c->engine, &c->one, (uint8_t)forced, &c->two) < 0) goto done;
        Vec swap = c->one;
        c->one = c->two;
        c->two = swap;
    }
done:;
    PyObject *result = PyErr_Occurred() || !out ? NULL
                                                : PyBytes_FromStringAndSize(PyByteArray_AS_STRING(out), PyByteArray_GET_SIZE(out));
    Py_XDECREF(out);
    return result;
}

static PyObject *core_positions(Core *c, PyObject *Py_UNUSED(none)) {
    return core_begun(c) ? positions(c->engine, &c->now) : NULL;
}

static PyObject *core_complete(Core *c, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(accepting(&c->now));
}

static PyObject *core_terminated(Core *c, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(c->ended);
}

static PyObject *core_compiled(Core *c, void *Py_UNUSED(closure)) {
    return Py_NewRef(c->compiled ? c->compiled : Py_None);
}

static PyObject *core_get_left(Core *c, void *Py_UNUSED(closure)) {
    if (c->left < 0) Py_RETURN_NONE;
    return PyLong_FromLongLong(c->left);
}

static PyObject *core_get_ask(Core *c, void *Py_UNUSED(closure)) {
    return PyLong_FromLong(c->ask);
}

/* Set whether Python must compute the next mask: 0, MAY_ASK or MUST_ASK. Once it was set, it is MAY_ASK again after each token. */
static int core_set_ask(Core *c, PyObject *value, void *Py_UNUSED(closure)) {
    int ask = value ? int_between(value, 0, MUST_ASK, "when Python is asked") : -1;
    if (ask < 0) return -1;
    kernel_enter();
    c->remembers = 1, c->ask = (int8_t)ask;
    kernel_leave();
    return 0;
}

static PyObject *core_get_spare(Core *c, void *Py_UNUSED(closure)) {
    return PyLong_FromLongLong(c->spare);
}

static int core_set_spare(Core *c, PyObject *value, void *Py_UNUSED(closure)) {
    int spare = value ? int_between(value, 0, INT32_MAX, "the tokens to spare") : -1;
    if (spare < 0) return -1;
    kernel_enter();
    c->spare = spare;
    kernel_leave();
    return 0;
}

static int core_set_left(Core *c, PyObject *value, void *Py_UNUSED(closure)) {
    long long left = !value || value == Py_None ? -1 : PyLong_AsLongLong(value);
    if (PyErr_Occurred()) return -1;
    if (left < 0 && value && value != Py_None) {
        PyErr_SetString(PyExc_ValueError, "a budget below 0");
        return -1;
    }
    kernel_enter();
    c->left = left;
    kernel_leave();
    return 0;
}

GUARDED(core_begin, (Core *c, PyObject *args), (c, args))
ALONE(core_advance, (Core *c, PyObject *token), (c, token))
ALONE(core_rollback, (Core *c, PyObject *const *args, Py_ssize_t nargs), (c, args, nargs))
ALONE(core_reset, (Core *c, PyObject *none), (c, none))
ALONE(core_copy, (Core *c, PyObject *none), (c, none))
GUARDED(core_fill_bitmask, (Core *c, PyObject *const *args, Py_ssize_t nargs, PyObject *names), (c, args, nargs, names))
ALONE(core_forced, (Core *c, PyObject *limit), (c, limit))
ALONE(core_opens, (Core *c, PyObject *token), (c, token))
ALONE(core_go_to, (Core *c, PyObject *described), (c, described))
ALONE(core_know_nothing_out, (Core *c, PyObject *none), (c, none))
ALONE(core_near, (Core *c, PyObject *none), (c, none))
ALONE(core_positions, (Core *c, PyObject *none), (c, none))

static PyMethodDef core_methods[] = {
    {"_begin", (PyCFunction)core_begin_guarded, METH_VARARGS, NULL},
    {"advance", (PyCFunction)core_advance_alone_guarded, METH_O, "Read a token; False, and nothing changed, if it is not allowed."},
    {"rollback", (PyCFunction)(void (*)(void))core_rollback_alone_guarded, METH_FASTCALL, "Take back the last tokens, by default one."},
    {"reset", (PyCFunction)core_reset_alone_guarded, METH_NOARGS, "Back to the beginning, without a budget."},
    {"copy", (PyCFunction)core_copy_alone_guarded, METH_NOARGS, "An independent matcher at the same place."},
    {"fill_bitmask", (PyCFunction)(void (*)(void))core_fill_bitmask_guarded, METH_FASTCALL | METH_KEYWORDS,
     "Write the allowed tokens into ``mask[row]``, int32 [rows, words]; row 0 by default."},
    {"_forced", (PyCFunction)core_forced_alone_guarded, METH_O, NULL},
    {"_opens", (PyCFunction)core_opens_alone_guarded, METH_O, NULL},
    {"_go_to", (PyCFunction)core_go_to_alone_guarded, METH_O, NULL},
    {"_near", (PyCFunction)core_near_alone_guarded, METH_NOARGS, NULL},
    {"_know_nothing_out", (PyCFunction)core_know_nothing_out_alone_guarded, METH_NOARGS, NULL},
    {"_positions", (PyCFunction)core_positions_alone_guarded, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef core_getset[] = {
    {"compiled", (getter)core_compiled, NULL, NULL, NULL},
    {"is_complete", (getter)core_complete, NULL, "The text so far is in the language.", NULL},
    {"is_terminated", (getter)core_terminated, NULL, "An EOS token has been read.", NULL},
    {"_ask", (getter)core_get_ask, (setter)core_set_ask, NULL, NULL},
    {"_spare", (getter)core_get_spare, (setter)core_set_spare, NULL, NULL},
    {"_left", (getter)core_get_left, (setter)core_set_left, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot core_slots[] = {
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, core_dealloc},
    {Py_tp_methods, core_methods},
    {Py_tp_getset, core_getset},
    {0, NULL},
};
PyType_Spec core_spec = {
    "constrained.automaton._kernel.Core", sizeof(Core), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, core_slots,
};
