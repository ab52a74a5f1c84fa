/* The rows of a batch: a mask buffer that knows what it holds. */
#include "core.h"

#define TOUCHED 64

/* A mask buffer that knows what it holds: a row of a few tokens is cleared by those, not whole. */
typedef struct {
    PyObject_HEAD
    int32_t rows, words;
    uint32_t *mask;
    int32_t (*touched)[TOUCHED];
    int *touched_count; /* -1: anything may be set */
    Vec *written;       /* the positions whose mask the row holds */
    Engine **engines;   /* and whose; NULL: not known */
    Py_ssize_t shape[2], strides[2];
} Rows;

static int core_same(const Vec *a, const Vec *b) {
    return a->n == b->n && a->n && !memcmp(a->at, b->at, a->n * sizeof(Config));
}

static int has_text(const Vec *vec) {
    for (int i = 0; i < vec->n; i++)
        if (vec->at[i].kind == TEXT) return 1;
    return 0;
}

static int rows_init(Rows *r, PyObject *args, PyObject *kwargs) {
    int rows, words;
    if (kwargs || r->mask || !PyArg_ParseTuple(args, "ii", &rows, &words) || rows < 0 || words < 1) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "Rows(rows, words)");
        return -1;
    }
    r->rows = rows, r->words = words;
    r->mask = calloc((size_t)rows * words + 1, sizeof(uint32_t));
    r->touched = calloc(rows + 1, sizeof *r->touched);
    r->touched_count = calloc(rows + 1, sizeof(int));
    r->written = calloc(rows + 1, sizeof(Vec));
    r->engines = calloc(rows + 1, sizeof(Engine *));
    r->shape[0] = rows, r->shape[1] = words, r->strides[0] = (Py_ssize_t)words * 4, r->strides[1] = 4;
    if (r->mask && r->touched && r->touched_count && r->written && r->engines) return 0;
    PyErr_NoMemory();
    return -1;
}

static void rows_dealloc(Rows *r) {
    PyTypeObject *type = Py_TYPE(r);
    for (int32_t i = 0; i < r->rows && r->written; i++) free(r->written[i].at);
    for (int32_t i = 0; i < r->rows && r->engines; i++) Py_XDECREF(r->engines[i]);
    free(r->mask), free(r->touched), free(r->touched_count), free(r->written), free(r->engines);
    type->tp_free((PyObject *)r);
    Py_DECREF(type);
}

static int rows_buffer(Rows *r, Py_buffer *view, int flags) {
    *view = (Py_buffer){
        .buf = r->mask, .obj = Py_NewRef((PyObject *)r), .len = (Py_ssize_t)r->rows * r->words * 4, .itemsize = 4,
        .ndim = 2, .format = flags & PyBUF_FORMAT ? "i" : NULL, .shape = r->shape, .strides = r->strides,
    };
    return 0;
}

/* fill(cores) -> list of the rows that Python must fill (the budget has a say there) */
static PyObject *rows_fill(Rows *r, PyObject *cores) {
    if (!PyList_Check(cores) || PyList_GET_SIZE(cores) > r->rows)
        return PyErr_Format(PyExc_ValueError, "a list of at most %d matchers", (int)r->rows);
    PyObject *left = PyList_New(0);
    PyObject *item = NULL;
    /* Python may run in between, and change the list */
    for (Py_ssize_t i = 0; left && i < PyList_GET_SIZE(cores) && i < r->rows; i++) {
        Py_XSETREF(item, Py_NewRef(PyList_GET_ITEM(cores, i)));
        Core *c = (Core *)item;
        if (!PyObject_TypeCheck(item, CoreType) || !core_begun(c) || c->engine->tokens->words != r->words) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a row that is no matcher over the batch's vocabulary");
            Py_CLEAR(left);
            break;
        }
        int known = r->engines[i] == c->engine && !c->ended && c->left < 0 && !c->checked;
        if (known && core_same(&r->written[i], &c->now)) continue;
        uint32_t *row = r->mask + (size_t)i * r->words;
        Target target = {.row = row, .words = r->words, .touched = r->touched[i], .touched_room = TOUCHED};
        if (r->touched_count[i] < 0 && has_text(&c->now)) {
            target.touched_count = -1; /* written whole, as before */
        } else if (r->touched_count[i] < 0) {
            memset(row, 0, r->words * sizeof(uint32_t));
        } else {
            for (int k = 0; k < r->touched_count[i]; k++) row[r->touched[i][k]] = 0;
        }
        for (int k = 0; i + 1 < r->rows && k < r->touched_count[i + 1]; k++) /* the next row's, while this one is made */
            prefetch_write(row + r->words + r->touched[i + 1][k]);
        Py_CLEAR(r->engines[i]);
        r->touched_count[i] = -1;
        int done = core_fill(c, &target);
        if (done < 0) {
            Py_CLEAR(left);
        } else if (done == 0) {
            PyObject *number = PyLong_FromSsize_t(i);
            if (!number || PyList_Append(left, number) < 0) Py_CLEAR(left);
            Py_XDECREF(number);
        } else {
            r->touched_count[i] = target.touched_count;
            if (!c->ended && vec_copy(&r->written[i], &c->now) == 0) r->engines[i] = (Engine *)Py_NewRef(c->engine);
        }
    }
    Py_XDECREF(item);
    return left;
}

static PyMethodDef rows_methods[] = {
    {"fill", (PyCFunction)rows_fill, METH_O, "Write the matchers' masks; the rows left to Python."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot rows_slots[] = {
    {Py_tp_doc, "Rows(rows, words): a mask int32 [rows, words] that only its own `fill` may write."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, rows_init},
    {Py_tp_dealloc, rows_dealloc},
    {Py_tp_methods, rows_methods},
    {Py_bf_getbuffer, rows_buffer},
    {0, NULL},
};
PyType_Spec rows_spec = {"constrained.automaton._kernel.Rows", sizeof(Rows), 0, Py_TPFLAGS_DEFAULT, rows_slots};
