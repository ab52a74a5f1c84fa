/* The closure of a frame: closure.py in C. Calls of templates and other rare constructs are left to Python. */
#include "kernel.h"

#define MOST_STAMP ((1 << 28) - 1)
#define FEW 32 /* waiting constructs that fit on the C stack */

/* The list of constructs still to be entered, each over a frame. */
typedef struct {
    int32_t (*at)[2];
    int n, room;
    int32_t few[FEW][2];
} Waiting;

static int wait(Waiting *w, int32_t construct, int32_t rest) {
    if (w->n == w->room) {
        int32_t(*at)[2] = malloc(2 * w->room * sizeof *at);
        if (!at) {
            PyErr_NoMemory();
            return -1;
        }
        memcpy(at, w->at, w->n * sizeof *at);
        if (w->at != w->few) free(w->at);
        w->at = at;
        w->room *= 2;
    }
    w->at[w->n][0] = construct, w->at[w->n++][1] = rest;
    return 0;
}

/* The state of entering a frame's construct. */
typedef struct {
    Engine *engine;
    Waiting waiting;
    Vec found;      /* the positions found so far */
    int32_t below;  /* the frame below, which is reached if the construct may be empty */
    int reached;
    int32_t stamp;  /* the value of this closure's marks on frames */
} Entry;

enum { PASSED = 1, SEEN = 2, AGAIN = 4 }; /* marks: reached without a byte; its construct was entered; it is the rest of a repeat */

/* Mark a frame; return whether it had this mark already since `entry` began. */
static int marked(Entry *entry, int32_t frame, int32_t mark) {
    int32_t *marks = &entry->engine->frames[frame].marks;
    if (*marks / 8 != entry->stamp) *marks = entry->stamp * 8;
    int before = (*marks & mark) != 0;
    *marks |= mark;
    return before;
}

/* Note that `frame` is reached without reading a byte. */
static int pass(Entry *entry, int32_t frame) {
    Engine *e = entry->engine;
    if (frame == entry->below) entry->reached = 1;
    if (frame == entry->below || marked(entry, frame, PASSED)) return 0;
    return wait(&entry->waiting, e->frames[frame].construct, frame_next(e, frame));
}

/* The closure of a frame as Python computes it, with every position checked. */
static Closure *ask(Engine *e, int32_t frame) {
    PyObject *object = frame_object(e, frame);
    PyObject *found = object ? PyObject_CallMethodOneArg(e->bridge, name_enter, object) : NULL;
    if (found && !PyList_Check(found)) {
        PyErr_SetString(PyExc_TypeError, "Bridge.enter gave no list");
        Py_CLEAR(found);
    }
    if (!found) return NULL;
    Vec vec = {NULL, 0, 0};
    Closure *closure = calloc(1, sizeof *closure);
    if (!closure) PyErr_NoMemory();
    int failed = !closure;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found) && !failed; i++) {
        Config config;
        PyObject *described = Py_NewRef(PyList_GET_ITEM(found, i)); /* hold it: Python code may run, and change the list */
        failed = config_of(e, described, &config) < 0 || vec_push(&vec, &config) < 0;
        Py_DECREF(described);
    }
    Py_DECREF(found);
    if (failed) {
        free(closure), free(vec.at);
        return NULL;
    }
    closure->configs = vec.at, closure->n = vec.n;
    return closure;
}

/* Enter the repeat in `frame`: its item and then one item fewer, or what comes after it. */
static int enter_repeat(Entry *entry, int32_t frame, Construct c, int32_t rest) {
    Engine *e = entry->engine;
    int32_t item = e->children[c.first];
    /* reached by an empty item: then all items may be empty, and a smaller count adds nothing */
    if (e->frames[frame].marks / 8 == entry->stamp && e->frames[frame].marks & AGAIN) {
        PyObject *answer = PyObject_CallMethod(e->bridge, "may_be_empty", "OO", e->constructs[item].node, e->constructs[item].env);
        int empty = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        if (empty) return empty < 0 ? -1 : pass(entry, rest);
    }
    int32_t after = rest;
    if (c.count > 1) {
        if ((after = frame_of(e, e->children[c.first + 1], rest)) < 0) return -1;
        marked(entry, after, AGAIN);
    }
    return wait(&entry->waiting, item, after) < 0 || (!c.low && pass(entry, rest) < 0) ? -1 : 0;
}

static int enter_construct(Entry *entry, int32_t construct, int32_t rest) {
    Engine *e = entry->engine;
    const Construct *at = construct_at(e, construct);
    if (!at) return -1;
    Construct c = *at; /* the array may have moved */
    if (c.kind <= JSON_TEXT && c.kind >= LITERAL) {
        Config config = {c.kind, c.object, rest, c.low, c.kind == LITERAL ? 0 : c.high, 0};
        return vec_push(&entry->found, &config) < 0 || (c.empty && pass(entry, rest) < 0) ? -1 : 0;
    }
    if (c.kind == SEQ) {
        if (!c.count) return pass(entry, rest);
        if (c.count > 1 && (rest = frame_of(e, e->children[c.first + 1], rest)) < 0) return -1;
        return wait(&entry->waiting, e->children[c.first], rest);
    }
    int32_t frame = 0;
    if (c.kind != ALT || c.count == 1) { /* only through these can a rule reach itself again */
        if ((frame = frame_of(e, construct, rest)) < 0) return -1;
        if (frame == entry->below) return pass(entry, frame);
    }
    if (c.kind == ASKED) {
        Closure *known = e->frames[frame].closure, *asked = known && known->done ? known : ask(e, frame);
        int failed = !asked || vec_append(&entry->found, asked->configs, asked->n) < 0;
        if (asked && asked != known) free(asked->configs), free(asked);
        return failed ? -1 : 0;
    }
    if (frame && marked(entry, frame, SEEN)) return 0;
    if (c.kind == MEMBERS) { /* what follows a name depends on the names written, which this frame holds */
        Config names = {CHOICES, c.object, frame, 0, c.high, 0};
        if (vec_push(&entry->found, &names) < 0) return -1;
    }
    if (c.kind == REPEAT) return enter_repeat(entry, frame, c, rest);
    for (int32_t i = c.count - 1; i >= 0; i--)
        if (wait(&entry->waiting, e->children[c.first + i], rest) < 0) return -1;
    return 0;
}

/* The positions of a frame's own construct, and the frames below that are reached without a byte (fill_closure adds theirs).
 *
 * Constructs are entered from a list, not recursively: a grammar may nest deeply. Marks on frames keep one from being entered
 * twice; they carry a stamp, so that they needn't be cleared. */
static Closure *enter(Engine *e, int32_t frame) {
    int32_t construct = e->frames[frame].construct;
    Closure *closure = calloc(1, sizeof *closure);
    if (!closure) {
        PyErr_NoMemory();
        return NULL;
    }
    if (construct < 0) { /* a fork */
        int32_t count;
        if ((closure->below = fork_ways(e, frame, &count))) return closure->below_count = count, closure;
        free(closure);
        return NULL;
    }
    Entry entry = {.engine = e, .below = frame_next(e, frame), .stamp = e->stamp = (e->stamp + 1) & MOST_STAMP};
    entry.waiting.at = entry.waiting.few, entry.waiting.room = FEW;
    int64_t steps = 0;
    int failed = wait(&entry.waiting, construct, entry.below) < 0, looked_at = e->crowded;
    marked(&entry, frame, PASSED);
    while (entry.waiting.n && !failed) {
        int32_t *next = entry.waiting.at[--entry.waiting.n];
        if (++steps > e->max_closure || ++e->entered > e->max_entered) failed = refuse(e, steps > e->max_closure ? "closure" : "entered");
        else failed = enter_construct(&entry, next[0], next[1]);
        if (failed || entry.found.n < looked_at) continue;
        looked_at = 2 * entry.found.n;
        if (vec_alike(&entry.found) <= e->crowded / 2) continue;
        Vec shared = {NULL, 0, 0};
        int done = shared_closure(e, frame, &shared);
        failed = done < 0;
        if (!done) looked_at = INT32_MAX, closure->apart = 1;
        if (done <= 0) {
            free(shared.at);
            continue;
        }
        free(entry.found.at);
        entry.found = shared, entry.reached = 0, entry.waiting.n = 0;
        closure->apart = 1; /* the closure is complete */
    }
    if (entry.waiting.at != entry.waiting.few) free(entry.waiting.at);
    if (!failed && entry.reached) {
        if (!(closure->below = malloc(sizeof(int32_t)))) PyErr_NoMemory(), failed = -1;
        else closure->below[closure->below_count++] = entry.below;
    }
    if (failed) {
        free(closure), free(entry.found.at);
        return NULL;
    }
    closure->configs = entry.found.at, closure->n = entry.found.n;
    return closure;
}

/* Add to a closure those of the frames reached without a byte, all of which are complete. A few positions aren't joined, so that Python
 * doesn't run: these are added where the closure's own are. */
static int finish(Engine *e, int32_t frame, Closure *closure) {
    Vec all = {closure->configs, closure->n, closure->n};
    int total = closure->n, failed = 0;
    for (int i = 0; i < closure->below_count; i++) total += e->frames[closure->below[i]].closure->n;
    int few = total <= CROWD_OF_STACKS;
    if (!few) all = (Vec){NULL, 0, 0}, failed = vec_append(&all, closure->configs, closure->n) < 0;
    for (int i = 0; i < closure->below_count && !failed; i++) {
        const Closure *below = e->frames[closure->below[i]].closure;
        failed = vec_append(&all, below->configs, below->n) < 0;
        if (few) closure->configs = all.at; /* the array may have moved */
    }
    if (!failed && all.n > 1) vec_distinct(&all);
    if (!failed && !closure->apart && all.n > e->crowded && vec_alike(&all) > e->crowded / 2) {
        Vec shared = {NULL, 0, 0};
        int done = shared_closure(e, frame, &shared);
        failed = done < 0;
        if (done > 0) free(all.at), all = shared;
        else free(shared.at);
    }
    if (!failed && !few) failed = vec_join(e, &all) < 0;
    Config *fitted = few || failed || !all.n ? NULL : realloc(all.at, all.n * sizeof(Config));
    if (fitted) all.at = fitted;
    if (few && failed) return -1;
    if (failed || closure->done) { /* another thread has finished it while Python code ran */
        free(all.at);
        return failed ? -1 : 0;
    }
    if (!few) free(closure->configs);
    free(closure->below);
    *closure = (Closure){.n = all.n, .configs = all.at, .done = 1};
    for (int i = 0; i < all.n; i++) closure->open_below |= all.at[i].kind == ACCEPT && all.at[i].rest == e->bottom;
    e->closure_bytes += sizeof *closure + closure->n * sizeof(Config);
    return 0;
}

/* Give a frame the closure of a single position: the frame of the end, and the bottom. */
int know_closure(Engine *e, int32_t frame, const Config *config) {
    Closure *closure = calloc(1, sizeof *closure);
    Vec one = {NULL, 0, 0};
    if (!closure || vec_push(&one, config) < 0) {
        free(closure);
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return -1;
    }
    closure->configs = one.at, closure->n = 1;
    e->frames[frame].closure = closure;
    return finish(e, frame, closure);
}

/* Fill the closure of a frame. It contains the closures of the frames below that are reached without a byte, which are filled first: a
 * frame stays on `work` until none of them is missing. Frames only lead downwards, so this ends. */
static int fill_closure(Engine *e, int32_t frame) {
    Waiting work = {.room = FEW};
    work.at = work.few;
    int failed = wait(&work, frame, 0);
    while (work.n && !failed) {
        int32_t top = work.at[work.n - 1][0];
        Closure *closure = e->frames[top].closure;
        if (closure && closure->done) {
            work.n--;
            continue;
        }
        if (!closure) {
            if (!(closure = enter(e, top))) failed = -1;
            else if (e->frames[top].closure) free(closure->configs), free(closure->below), free(closure); /* set by another thread */
            else e->frames[top].closure = closure;
            if (failed) break;
            closure = e->frames[top].closure;
            if (closure->done) continue; /* another thread has completed it: `finish` would free its contents */
        }
        int missing = 0;
        for (int i = 0; i < closure->below_count && !failed; i++) {
            const Closure *below = e->frames[closure->below[i]].closure;
            if (below && below->done) continue;
            missing = 1;
            failed = wait(&work, closure->below[i], 0);
        }
        if (!missing && !failed) failed = finish(e, top, closure);
    }
    if (work.at != work.few) free(work.at);
    return failed ? -1 : 0;
}

Closure *closure_of(Engine *e, int32_t frame) {
    assert(frame >= 0 && frame < e->frame_index.count);
    Closure *closure = e->frames[frame].closure;
    if (!closure || !closure->done) {
        if (read_only || fill_closure(e, frame) < 0) return NULL;
        closure = e->frames[frame].closure;
    }
    e->bottom_hits += closure->open_below;
    return closure;
}

const uint64_t *closure_first(Engine *e, Closure *closure) {
    if (closure->has_first) return closure->first;
    Vec vec = {closure->configs, closure->n, closure->n};
    if (read_only || next_bytes(e, &vec, closure->first) < 0) return NULL;
    closure->has_first = 1;
    return closure->first;
}
