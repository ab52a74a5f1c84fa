/* The Python type Engine: one grammar over one vocabulary. */
#include "kernel.h"

PyTypeObject *EngineType;

/* Append positions, described in a list or tuple, to `vec`. */
static int configs_of(Engine *e, PyObject *described, Vec *vec) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(described); i++) {
        Config config;
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(described, i)); /* hold it: Python code may run, and change the list */
        int failed = config_of(e, item, &config) < 0 || vec_push(vec, &config) < 0;
        Py_DECREF(item);
        if (failed) return -1;
    }
    return 0;
}

/* A number from 0 to `most` that is an attribute; -1 on error. */
static int32_t number_of(PyObject *object, const char *name, int32_t most) {
    PyObject *attribute = PyObject_GetAttrString(object, name);
    int32_t value = attribute ? int_between(attribute, 0, most, name) : -1;
    Py_XDECREF(attribute);
    return value;
}

/* A dict that is an attribute; NULL on error. */
static PyObject *dict_of(PyObject *object, const char *name) {
    PyObject *attribute = PyObject_GetAttrString(object, name);
    if (attribute && !PyDict_Check(attribute)) {
        PyErr_Format(PyExc_TypeError, "the bridge's %s are no dict", name);
        Py_CLEAR(attribute);
    }
    return attribute;
}

static int engine_init(Engine *e, PyObject *args, PyObject *kwargs) {
    PyObject *bridge, *tokens, *root;
    long long frames, positions, steps, bytes, closure, entered;
    if (kwargs || e->bridge ||
        !PyArg_ParseTuple(
            args, "OO!OLLLLLL", &bridge, TokensType, &tokens, &root, &frames, &positions, &steps, &bytes, &closure, &entered
        )) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "an engine is made once, and without keywords");
        return -1;
    }
    if (frames < 1 || positions < 1 || steps < 1 || bytes < 1 || closure < 1 || entered < 1 || !((Tokens *)tokens)->ready) {
        PyErr_SetString(PyExc_ValueError, "a limit below 1, or a vocabulary that was not made");
        return -1;
    }
    e->bridge = Py_NewRef(bridge);
    e->tokens = (Tokens *)Py_NewRef(tokens);
    e->max_frames = frames < MOST_FRAMES ? (int32_t)frames : MOST_FRAMES;
    e->max_positions = positions;
    e->max_work = steps;
    e->max_row_bytes = (size_t)bytes;
    e->max_closure = closure < INT32_MAX ? (int32_t)closure : INT32_MAX - 1;
    e->max_entered = entered < INT32_MAX ? (int32_t)entered : INT32_MAX - 1;
    e->numbers = PyDict_New();
    PyObject *bottom = PyObject_GetAttrString(bridge, "bottom");
    e->no_call = PyObject_GetAttrString(bridge, "no_call");
    e->types = PyObject_GetAttrString(bridge, "types");
    if (e->types && (!PyTuple_Check(e->types) || PyTuple_GET_SIZE(e->types) != NODE_TYPES)) {
        PyErr_SetString(PyExc_TypeError, "the bridge's types of nodes are not those of the kernel");
        Py_CLEAR(e->types);
    }
    for (int i = 0; i < NODE_TYPES && e->types; i++) {
        if (PyType_Check(PyTuple_GET_ITEM(e->types, i))) continue;
        PyErr_SetString(PyExc_TypeError, "the bridge's types of nodes are no types");
        Py_CLEAR(e->types);
    }
    if (e->types && (e->tails = dict_of(bridge, "tails"))) e->repeats = dict_of(bridge, "repeats");
    int known = bottom && e->repeats && e->no_call && e->types && e->numbers && (e->asks = number_of(bridge, "asks", 1)) >= 0 &&
                (e->near = number_of(bridge, "near", MOST_NEAR)) >= 0 && (e->deep = number_of(bridge, "deep", INT32_MAX)) >= 0 &&
                (e->crowded = number_of(bridge, "crowded", INT32_MAX / 4)) >= 0 &&
                first_frames(e, bottom) == 0;
    Py_XDECREF(bottom);
    if (!known && !PyErr_Occurred()) PyErr_NoMemory();
    if (!known) return -1;
    int32_t frame = know_frame(e, root);
    const Closure *begin = frame < 0 ? NULL : closure_of(e, frame);
    int failed = !begin || vec_append(&e->start, begin->configs, begin->n) < 0;
    if (!failed && e->start.n > e->max_positions) failed = refuse(e, "state_positions");
    failed = failed || read_ahead(e) < 0;
    e->ready = !failed;
    return failed ? -1 : 0;
}

int engine_ready(const Engine *e) {
    if (e->ready) return 1;
    PyErr_SetString(PyExc_ValueError, "an engine that was not made: Engine(bridge, tokens, …)");
    return 0;
}

/* Engine -> bridge -> masks -> engine is a reference cycle: only Python's garbage collector frees it. */
static int engine_traverse(Engine *e, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(e));
    Py_VISIT(e->bridge);
    Py_VISIT(e->tails);
    Py_VISIT(e->repeats);
    for (int32_t i = 0; i < e->frame_index.count; i++) Py_VISIT(e->frames[i].python);
    for (int32_t i = 0; i < e->construct_index.count; i++) {
        Py_VISIT(e->constructs[i].node);
        Py_VISIT(e->constructs[i].env);
    }
    return 0;
}

static int engine_clear(Engine *e) {
    Py_CLEAR(e->bridge);
    return 0;
}

static void engine_dealloc(Engine *e) {
    PyTypeObject *type = Py_TYPE(e);
    PyObject_GC_UnTrack(e);
    for (int32_t i = 0; i < e->frame_index.count; i++) {
        Closure *closure = e->frames[i].closure;
        if (closure) free(closure->configs), free(closure->below), free(closure);
        Py_XDECREF(e->frames[i].python);
    }
    for (int32_t i = 0; i < e->construct_index.count; i++) Py_DECREF(e->constructs[i].node), Py_DECREF(e->constructs[i].env);
    free(e->frames), free(e->ways), free(e->frame_index.slots), free(e->by_number);
    free(e->constructs), free(e->construct_index.slots), free(e->children);
    for (int32_t i = 0; i < e->literal_count; i++) Py_DECREF(e->literals[i].data);
    for (int32_t i = 0; i < e->choices_count; i++) {
        Py_DECREF(e->choices[i].values), Py_DECREF(e->choices[i].bind);
        free(e->choices[i].flat), free(e->choices[i].offsets);
    }
    for (int32_t i = 0; e->json && e->json[i]; i++) json_free(e->json[i]);
    free(e->literals), free(e->choices), free(e->json), free(e->start.at);
    map_clear(&e->finished, 0), map_clear(&e->joined, 0), map_clear(&e->stack_sensitive, 0);
    if (e->tokens) forget_masks(e), table_clear(&e->table, &e->tokens->states);
    Py_XDECREF(e->numbers);
    Py_XDECREF(e->bridge), Py_XDECREF(e->tokens), Py_XDECREF(e->no_call), Py_XDECREF(e->types);
    Py_XDECREF(e->tails), Py_XDECREF(e->repeats);
    type->tp_free((PyObject *)e);
    Py_DECREF(type);
}

static PyObject *engine_nbytes(Engine *e, void *Py_UNUSED(closure)) {
    size_t sum = sizeof *e + e->row_bytes + (e->rows.room + e->finished.room + e->joined.room + e->stack_sensitive.room) * sizeof(Slot);
    sum += e->closure_bytes + e->choices_bytes;
    sum += e->construct_index.room * sizeof(Construct) + (e->children_room + e->way_room + e->frame_index.slot_room + e->construct_index.slot_room) * sizeof(int32_t);
    sum += e->table.bytes + e->table.room * 8 + e->frame_index.room * sizeof(Frame) + e->by_number_room * sizeof(int32_t) + e->literal_room * sizeof(Literal) + e->choices_room * sizeof(Choices);
    return PyLong_FromSize_t(sum);
}

static PyObject *engine_rows(Engine *e, void *Py_UNUSED(closure)) {
    return PyLong_FromSize_t(e->rows_made);
}

static PyObject *engine_passed(Engine *e, void *Py_UNUSED(closure)) {
    return PyLong_FromLongLong(e->passed);
}

static PyObject *engine_precompute(Engine *e, PyObject *most) {
    Py_ssize_t limit = PyLong_AsSsize_t(most);
    if ((limit == -1 && PyErr_Occurred()) || !engine_ready(e)) return NULL;
    Py_ssize_t done = precompute(e, limit);
    return done < -1 || PyErr_Occurred() ? NULL : PyLong_FromSsize_t(done);
}

/* described positions -> packed row, as bytes */
static PyObject *engine_row(Engine *e, PyObject *positions) {
    PyObject *items = engine_ready(e) ? PySequence_Fast(positions, "positions are no sequence") : NULL, *out = NULL;
    if (!items) return NULL;
    Vec vec = {NULL, 0, 0};
    if (configs_of(e, items, &vec) == 0 && (out = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)e->tokens->words * 4))) {
        Target target = {.row = (uint32_t *)PyByteArray_AS_STRING(out), .words = e->tokens->words, .touched_count = -1};
        if (fill_row(e, &vec, &target) < 0) Py_CLEAR(out);
    }
    free(vec.at);
    Py_DECREF(items);
    return out;
}

GUARDED(engine_row, (Engine *e, PyObject *positions), (e, positions))
GUARDED(engine_precompute, (Engine *e, PyObject *most), (e, most))

static int engine_init_guarded(Engine *e, PyObject *args, PyObject *kwargs) {
    kernel_enter();
    int result = engine_init(e, args, kwargs);
    kernel_leave();
    return result;
}

static PyObject *engine_half_full(Engine *e, void *closure) {
    (void)closure;
    return PyBool_FromLong(e->frame_index.count > e->max_frames / 2 || e->entered > e->max_entered / 2);
}

static PyMethodDef engine_methods[] = {
    {"row", (PyCFunction)engine_row_guarded, METH_O, "The packed mask of some positions, as bytearray."},
    {"precompute", (PyCFunction)engine_precompute_guarded, METH_O,
     "Visit every position, at most so many; how many there are, -1 if more."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef engine_getset[] = {
    {"nbytes", (getter)engine_nbytes, NULL, "Bytes held, beside the vocabulary's.", NULL},
    {"rows", (getter)engine_rows, NULL, "Mask rows computed and kept so far.", NULL},
    {"frames_passed", (getter)engine_passed, NULL, "Frames passed so far to find what isn't known of a stack.", NULL},
    {"half_full", (getter)engine_half_full, NULL, "Half of the stack entries that are allowed were made, or entered.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot engine_slots[] = {
    {Py_tp_doc, "Engine(bridge, tokens, root, max_frames, max_positions, max_steps, max_row_bytes, max_closure, max_entered): a grammar's masks over a vocabulary."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, engine_init_guarded},
    {Py_tp_dealloc, engine_dealloc},
    {Py_tp_traverse, engine_traverse},
    {Py_tp_clear, engine_clear},
    {Py_tp_methods, engine_methods},
    {Py_tp_getset, engine_getset},
    {0, NULL},
};
PyType_Spec engine_spec = {
    "constrained.automaton._kernel.Engine", sizeof(Engine), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, engine_slots,
};
