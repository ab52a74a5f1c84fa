/* The rows of a batch: a mask buffer that notes the contents of its rows. */
#include "core.h"

#define TOUCHED 64
#define SHARE 8 /* the number of rows that a thread takes at a time */
#define MOST_THREADS 64

/* A mask buffer with notes on its rows, so that a row of few tokens is cleared token by token instead of as a whole. */
typedef struct {
    PyObject_HEAD
    int32_t rows, words;
    uint32_t *mask;
    int32_t (*touched)[TOUCHED];
    int *touched_count; /* -1: anything may be set */
    Vec *written;       /* the positions whose mask the row holds */
    Engine **engines;   /* and their engine; NULL: unknown contents */
    Py_ssize_t shape[2], strides[2];
} Rows;

static int core_same(const Vec *a, const Vec *b) {
    return a->n == b->n && a->n && !memcmp(a->at, b->at, a->n * sizeof(Config));
}

static int has_text(const Vec *vec) {
    for (int i = 0; i < vec->n; i++)
        if (vec->at[i].kind >= TEXT) return 1;
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

/* Write the mask of `c` to row `i`; `e`: its engine, or a thread's copy. Results as of core_fill; after -1 the row is unknown. */
static int write_row(Rows *r, int32_t i, Core *c, Engine *e) {
    uint32_t *row = r->mask + (size_t)i * r->words;
    Target target = {.row = row, .words = r->words, .touched = r->touched[i], .touched_room = TOUCHED};
    if (r->touched_count[i] < 0 && has_text(&c->now)) {
        target.touched_count = -1; /* the whole row was written */
    } else if (r->touched_count[i] < 0) {
        memset(row, 0, r->words * sizeof(uint32_t));
    } else {
        for (int k = 0; k < r->touched_count[i]; k++) row[r->touched[i][k]] = 0;
    }
    for (int k = 0; !read_only && i + 1 < r->rows && k < r->touched_count[i + 1]; k++) /* prefetch for the next row */
        prefetch_write(row + r->words + r->touched[i + 1][k]);
    r->touched_count[i] = -1;
    int done = core_fill(c, e, &target);
    if (done > 0) r->touched_count[i] = target.touched_count;
    return done;
}

/* Whether the row holds the mask of `c` already. */
static int is_written(const Rows *r, int32_t i, const Core *c) {
    return r->engines[i] == c->engine && !c->ended && c->left < 0 && !c->checked && c->ask != MUST_ASK && core_same(&r->written[i], &c->now);
}

/* Rows shared out among threads, a few at a time. */
typedef struct {
    Rows *rows;
    Core **cores;
    int8_t *states; /* the result of each row */
    int32_t count, next;
} Sharing;

enum { LEFT, KNOWN, WRITTEN, SPOILT };

#ifdef _WIN32
#define take_next(next) (((next) += SHARE) - SHARE)
#else
#define take_next(next) __atomic_fetch_add(&(next), SHARE, __ATOMIC_RELAXED)
#endif

static void write_rows(void *argument) {
    Sharing *s = argument;
    Walk *spare = NULL;
    read_only = 1;
    for (int32_t at; (at = take_next(s->next)) < s->count;) {
        for (int32_t i = at; i < at + SHARE && i < s->count; i++) {
            Core *c = s->cores[i];
            if (is_written(s->rows, i, c)) {
                s->states[i] = KNOWN;
                continue;
            }
            Engine e = *c->engine; /* a copy of the counters; the tables are shared */
            if (spare && spare->levels != e.tokens->longest + 2) walk_free(spare), spare = NULL;
            e.spare = spare;
            s->states[i] = write_row(s->rows, i, c, &e) > 0 ? WRITTEN : SPOILT;
            spare = e.spare;
        }
    }
    walk_free(spare);
    read_only = 0;
}

/* Note that row `i` has the mask of `c`, or (NULL) unknown contents. */
static void know_row(Rows *r, int32_t i, Core *c) {
    Py_CLEAR(r->engines[i]);
    if (c && !c->ended && vec_copy(&r->written[i], &c->now) == 0) r->engines[i] = (Engine *)Py_NewRef(c->engine);
}

/* fill(cores, threads=1) -> list of the rows that Python must fill (where the budget or a memory may rule out tokens)
 *
 * Threads go first, and write what is in the tables already; one thread with the GIL then writes the rows that they left. A
 * row is known to hold nothing while it is written, so that an error in between is safe. */
static PyObject *rows_fill(Rows *r, PyObject *args) {
    PyObject *cores, *left = NULL;
    int threads = 1;
    if (!PyArg_ParseTuple(args, "O|i", &cores, &threads)) return NULL;
    if (!PyList_Check(cores) || PyList_GET_SIZE(cores) > r->rows || threads < 1 || threads > MOST_THREADS)
        return PyErr_Format(PyExc_ValueError, "a list of at most %d matchers, and 1 to %d threads", (int)r->rows, MOST_THREADS);
    /* hold it: Python code may run, and change the list */
    PyObject *held = PyList_AsTuple(cores);
    Sharing sharing = {.rows = r, .count = held ? (int32_t)PyTuple_GET_SIZE(held) : 0};
    sharing.cores = calloc(sharing.count + 1, sizeof *sharing.cores);
    sharing.states = calloc(sharing.count + 1, 1);
    int failed = !held || !sharing.cores || !sharing.states || !(left = PyList_New(0));
    if (failed && !PyErr_Occurred()) PyErr_NoMemory();
    for (int32_t i = 0; i < sharing.count && !failed; i++) {
        Core *c = sharing.cores[i] = (Core *)PyTuple_GET_ITEM(held, i);
        failed = !PyObject_TypeCheck((PyObject *)c, CoreType) || !core_begun(c) || c->engine->tokens->words != r->words;
        if (failed && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a row that is no matcher over the batch's vocabulary");
    }
    if (!failed && threads > 1 && sharing.count > SHARE) run_apart(threads, write_rows, &sharing);
    for (int32_t i = 0; i < sharing.count && !failed; i++) {
        if (sharing.states[i] == WRITTEN) know_row(r, i, sharing.cores[i]);
        if (sharing.states[i] == SPOILT) know_row(r, i, NULL);
    }
    for (int32_t i = 0; i < sharing.count && !failed; i++) {
        Core *c = sharing.cores[i];
        if (sharing.states[i] == WRITTEN || is_written(r, i, c)) continue;
        know_row(r, i, NULL);
        int done = write_row(r, i, c, c->engine);
        failed = done < 0;
        if (done > 0) know_row(r, i, c);
        if (done == 0) {
            PyObject *number = PyLong_FromLong(i);
            failed = !number || PyList_Append(left, number) < 0;
            Py_XDECREF(number);
        }
    }
    free(sharing.cores), free(sharing.states);
    Py_XDECREF(held);
    if (failed) Py_CLEAR(left);
    return left;
}

GUARDED(rows_fill, (Rows *r, PyObject *args), (r, args))

static PyMethodDef rows_methods[] = {
    {"fill", (PyCFunction)rows_fill_guarded, METH_VARARGS, "Write the matchers' masks on so many threads; the rows left to Python."},
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
