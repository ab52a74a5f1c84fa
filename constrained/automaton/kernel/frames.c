/* Stacks of constructs, as linked frames. Python's object for a frame is made only when Python code needs it. */
#include "kernel.h"

#define FRAME_KEY (2 * sizeof(int32_t)) /* bytes of a key: construct and next frame */
#define APART -1 /* `construct` of frames without one: the end, Python's forks, and the bottom */
#define FORKED -2 /* `construct` of the kernel's own forks */

/* Make room for `count` items of `size` bytes at `*array`; new items are 0. */
int grow_items(void **array, int32_t *room, int32_t count, size_t size) {
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

/* Double the slots of an index. */
static int grow_slots(Index *index, const void *items, size_t size, size_t length) {
    int32_t room = index->slot_room ? 2 * index->slot_room : 16;
    int32_t *slots = malloc(room * sizeof *slots);
    if (!slots) {
        PyErr_NoMemory();
        return -1;
    }
    memset(slots, 0xFF, room * sizeof *slots);
    for (int32_t i = 0; i < index->count; i++) {
        size_t at = hash((const char *)items + i * size, length) & (room - 1);
        while (slots[at] >= 0) at = (at + 1) & (room - 1);
        slots[at] = i;
    }
    free(index->slots);
    index->slots = slots;
    index->slot_room = room;
    return 0;
}

/* index_number, inlined where the compiler knows the sizes. */
static inline int32_t number_in(Index *index, void **items, size_t size, const void *key, size_t length, int32_t most) {
    if (2 * index->count >= index->slot_room && grow_slots(index, *items, size, length) < 0) return -1;
    size_t at = hash(key, length) & (index->slot_room - 1);
    for (; index->slots[at] >= 0; at = (at + 1) & (index->slot_room - 1))
        if (same((char *)*items + index->slots[at] * size, key, length)) return index->slots[at];
    assert(!read_only);
    if (index->count >= most) return -2;
    if (grow_items(items, &index->room, index->count + 1, size) < 0) return -1;
    memcpy((char *)*items + index->count * size, key, length);
    return index->slots[at] = index->count++;
}

/* The number of the item of `size` bytes that begins with `key` (a multiple of 8 bytes); a new item is appended.
 * -1: no memory; -2: more than `most`. */
int32_t index_number(Index *index, void **items, size_t size, const void *key, size_t length, int32_t most) {
    return number_in(index, items, size, key, length, most);
}

static int by_number(const void *a, const void *b) {
    return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

/* Sort numbers and remove duplicates; the new count. */
int32_t put_in_order(int32_t *numbers, int32_t count) {
    int32_t kept = 1;
    qsort(numbers, count, sizeof *numbers, by_number);
    for (int32_t i = 1; i < count; i++)
        if (numbers[i] != numbers[kept - 1]) numbers[kept++] = numbers[i];
    return kept;
}

/* frames ----------------------------------------------------------------------------------------- */

static int32_t new_frame(Engine *e, int32_t construct, int32_t next, int32_t depth) {
    int32_t before = e->frame_index.count, key[] = {construct, next};
    int32_t number = number_in(&e->frame_index, (void **)&e->frames, sizeof(Frame), key, FRAME_KEY, e->max_frames);
    if (number == before) e->frames[number].depth = depth;
    return number == -2 ? refuse(e, "frames") : number;
}

/* Make room for so many frames more. */
int expect_frames(Engine *e, int32_t more) {
    Index *index = &e->frame_index;
    int32_t count = index->count + more;
    if (grow_items((void **)&e->frames, &index->room, count, sizeof(Frame)) < 0) return -1;
    while (index->slot_room < 2 * count)
        if (grow_slots(index, e->frames, sizeof(Frame), FRAME_KEY) < 0) return -1;
    return 0;
}

/* Frame 0 stands for the end of the text; the bottom of stacks comes next. */
int first_frames(Engine *e, PyObject *bottom) {
    Config end = {ACCEPT, 0, 0, 0, 0, 0};
    e->bottom = -1; /* never 0, which is the end of the text */
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

/* The kernel's fork that joins `frames`, which are sorted; if all are the same frame, that frame.
 * -1: some belong to calls with parameters, or it is too late to make one; -2: an error. */
int32_t fork_of(Engine *e, int32_t *frames, int32_t count) {
    count = put_in_order(frames, count);
    if (count == 1) return frames[0];
    intptr_t known = frames[0]; /* the number of the list of the first frame, of the first two, … */
    Config key = {FORKS, 0, 0, 0, 0, 0};
    for (int32_t i = 1; i < count; i++) {
        key.object = i == count - 1 ? -i : i; /* negative keys map a whole list to its fork */
        key.rest = frames[i], key.low = (int32_t)known;
        if ((known = (intptr_t)map_get(&e->joined, &key))) continue;
        if (read_only) return -1;
        if (i < count - 1 && map_put(&e->joined, &key, (void *)(known = (intptr_t)e->joined.used + 1)) < 0) return -2;
    }
    if (known) return (int32_t)known;
    for (int32_t i = 0; i < count; i++) {
        int32_t construct = e->frames[frames[i]].construct;
        const Construct *c = construct < 0 ? NULL : construct_at(e, construct);
        if (construct >= 0 && !c) return -2;
        if (c && c->tied) return -1;
    }
    int32_t at = e->way_count, fork;
    if (grow_items((void **)&e->ways, &e->way_room, at + count + 1, sizeof *e->ways) < 0) return -2;
    if ((fork = new_frame(e, FORKED, at, 1)) < 0) return -2;
    e->ways[e->way_count++] = count;
    memcpy(e->ways + e->way_count, frames, count * sizeof *frames);
    e->way_count += count;
    return map_put(&e->joined, &key, (void *)(intptr_t)fork) < 0 ? -2 : fork;
}

/* The frames that a fork joins, which the caller frees; NULL on error. */
int32_t *fork_ways(Engine *e, int32_t fork, int32_t *count) {
    int32_t *found = NULL;
    *count = 0;
    if (e->frames[fork].construct == FORKED) {
        const int32_t *ways = e->ways + e->frames[fork].next;
        if (!(found = malloc(ways[0] * sizeof *found))) return no_memory();
        memcpy(found, ways + 1, ways[0] * sizeof *found);
        *count = ways[0];
        return found;
    }
    PyObject *object = frame_object(e, fork), *ways = object ? PyObject_GetAttr(object, name_ways) : NULL;
    if (ways && !PyTuple_Check(ways)) PyErr_SetString(PyExc_TypeError, "a fork's ways are no tuple");
    else if (ways && !(found = malloc(PyTuple_GET_SIZE(ways) * sizeof *found + 1))) PyErr_NoMemory();
    for (Py_ssize_t i = 0; found && i < PyTuple_GET_SIZE(ways); i++) {
        if ((found[(*count)++] = know_frame(e, PyTuple_GET_ITEM(ways, i))) >= 0) continue;
        free(found);
        found = NULL;
    }
    Py_XDECREF(ways);
    return found;
}

/* The frame below; 0 for a fork, too. */
int32_t frame_next(const Engine *e, int32_t frame) {
    return e->frames[frame].construct < 0 ? 0 : e->frames[frame].next;
}

/* The number in Python of a frame; -1 on error. */
static long frame_number(Engine *e, PyObject *frame) {
    static Field field;
    PyObject *attribute = field_of(frame, name_number, &field);
    if (!attribute) return -1;
    long number = PyLong_AsLong(attribute);
    Py_DECREF(attribute);
    if (number == -1 && PyErr_Occurred()) return -1;
    if (number >= 0 && number < e->max_frames) return number;
    PyErr_Format(PyExc_ValueError, "a frame's number is %ld, not 0 to %d", number, (int)e->max_frames - 1);
    return -1;
}

/* Note that Python's `frame` is the frame `known`. */
static int tie_frame(Engine *e, int32_t known, PyObject *frame, long number) {
    if (grow_items((void **)&e->by_number, &e->by_number_room, (int32_t)number + 1, sizeof *e->by_number) < 0) return -1;
    if (!e->by_number[number]) e->by_number[number] = known;
    if (!e->frames[known].python) e->frames[known].python = Py_NewRef(frame);
    return 0;
}

/* The frame of Python's `frame`, and of those below it; -1 on error. */
int32_t know_frame(Engine *e, PyObject *frame) {
    static Field of_node, of_env, of_next;
    PyObject *above = NULL; /* frames that have no number yet, from the top of the stack down */
    int32_t known = 0;
    long last = LONG_MAX;
    PyObject *node = NULL, *env = NULL;
    Py_INCREF(frame);
    while (frame != Py_None) {
        long number = frame_number(e, frame);
        if (number < 0) goto error;
        if (number >= last) { /* a cycle would not end */
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
        if (!(env = field_of(frame, name_env, &of_env))) goto error;
        if (env == e->no_call) {
            known = new_frame(e, APART, (int32_t)number, 1);
            if (known < 0 || tie_frame(e, known, frame, number) < 0) goto error;
            break;
        }
        if ((!above && !(above = PyList_New(0))) || PyList_Append(above, frame) < 0) goto error;
        Py_SETREF(frame, field_of(frame, name_next, &of_next));
        if (!frame) goto error;
    }
    for (Py_ssize_t i = above ? PyList_GET_SIZE(above) - 1 : -1; i >= 0; i--) {
        PyObject *each = PyList_GET_ITEM(above, i);
        Py_XDECREF(node), Py_XDECREF(env);
        node = field_of(each, name_node, &of_node), env = field_of(each, name_env, &of_env);
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

/* A worklist of frames, whose last item is processed first: a frame is processed after all frames below it, so that each stack is
 * traversed once. */
typedef struct {
    int32_t *at, count, room;
} Path;

static int push_frame(Engine *e, Path *path, int32_t frame) {
    e->passed++;
    if (grow_items((void **)&path->at, &path->room, path->count + 1, sizeof *path->at) < 0) return -1;
    path->at[path->count++] = frame;
    return 0;
}

/* Push the frames directly below one that aren't known; return their number, -1 on error. */
static int push_below(Engine *e, Path *path, int32_t frame, int (*is_known)(const Frame *)) {
    int32_t next = frame_next(e, frame), before = path->count;
    if (next && !is_known(&e->frames[next]) && push_frame(e, path, next) < 0) return -1;
    if (e->frames[frame].construct != FORKED) return path->count - before;
    for (int32_t i = 0, at = e->frames[frame].next; i < e->ways[at]; i++) {
        int32_t way = e->ways[at + 1 + i];
        if (way && !is_known(&e->frames[way]) && push_frame(e, path, way) < 0) return -1;
    }
    return path->count - before;
}

static int in_python(const Frame *frame) {
    return frame->python != NULL;
}

static int is_capped(const Frame *frame) {
    return frame->capped != 0;
}

/* Make Python's frame for one of the kernel's forks, whose frames all have Python objects. */
static PyObject *python_fork(Engine *e, int32_t fork) {
    int32_t at = e->frames[fork].next, count = e->ways[at];
    PyObject *objects = PyTuple_New(count);
    for (int32_t i = 0; objects && i < count; i++) {
        int32_t way = e->ways[at + 1 + i];
        PyTuple_SET_ITEM(objects, i, Py_NewRef(way ? e->frames[way].python : Py_None));
    }
    return objects ? PyObject_CallMethod(e->bridge, "join", "(N)", objects) : NULL;
}

/* Python's object for a frame, made if there is none yet: a borrowed reference, NULL on error. */
PyObject *frame_object(Engine *e, int32_t frame) {
    Path path = {NULL, 0, 0};
    if (!frame) return Py_None;
    int failed = !in_python(&e->frames[frame]) && push_frame(e, &path, frame) < 0;
    while (!failed && path.count) {
        int32_t lowest = path.at[path.count - 1], next = frame_next(e, lowest);
        int missing = in_python(&e->frames[lowest]) ? 0 : push_below(e, &path, lowest, in_python);
        if ((failed = missing < 0) || missing) continue;
        path.count--;
        if (in_python(&e->frames[lowest])) continue;
        PyObject *made;
        if (e->frames[lowest].construct == FORKED) {
            made = python_fork(e, lowest);
        } else {
            const Construct *c = &e->constructs[e->frames[lowest].construct];
            PyObject *arguments[] = {e->bridge, c->node, c->env, next ? e->frames[next].python : Py_None};
            made = PyObject_VectorcallMethod(name_frame, arguments, 4, NULL);
        }
        long number = made ? frame_number(e, made) : -1;
        failed = number < 0 || tie_frame(e, lowest, made, number) < 0;
        Py_XDECREF(made);
    }
    free(path.at);
    return failed ? NULL : e->frames[frame].python;
}

/* The top of a deep stack over the bottom frame, which stands for any stack: masks are the same unless a walk reaches the bottom.
 * Stacks with parameters, whose values other frames may share, and forks are returned unchanged. -1 on error. */
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

/* A repeat's frame over `next`, with counts that one token can't reach capped, as in masks.py. */
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

/* The fork of the same frames with such counts capped. */
static int32_t cut_fork(Engine *e, int32_t fork) {
    int32_t count, *ways = fork_ways(e, fork, &count);
    for (int32_t i = 0; ways && i < count; i++) ways[i] = ways[i] ? e->frames[ways[i]].capped : 0;
    int32_t found = ways ? fork_of(e, ways, count) : -1;
    free(ways);
    return found;
}

/* The frame with counts that one token can't reach capped, so that stacks with other large counts share masks. -1 on error. */
int32_t capped_frame(Engine *e, int32_t frame) {
    Path path = {NULL, 0, 0};
    int32_t found = 1;
    if (!frame || is_capped(&e->frames[frame])) return frame ? e->frames[frame].capped : 0;
    if (read_only || push_frame(e, &path, frame) < 0) return -1;
    while (found > 0 && path.count) {
        int32_t lowest = path.at[path.count - 1], next = frame_next(e, lowest);
        int missing = is_capped(&e->frames[lowest]) ? 0 : push_below(e, &path, lowest, is_capped);
        if (missing < 0) found = -1;
        if (missing) continue;
        path.count--;
        if (is_capped(&e->frames[lowest])) continue;
        if (e->frames[lowest].construct == FORKED) {
            found = cut_fork(e, lowest);
        } else if (e->asks || e->frames[lowest].construct < 0) {
            PyObject *object = frame_object(e, lowest);
            PyObject *made = object ? PyObject_CallMethodOneArg(e->bridge, name_capped, object) : NULL;
            found = made ? know_frame(e, made) : -1;
            Py_XDECREF(made);
        } else {
            found = cut(e, lowest, next ? e->frames[next].capped : 0);
        }
        if (!found) PyErr_SetString(PyExc_ValueError, "a frame with its counts cut is none");
        if (found > 0) e->frames[lowest].capped = found;
    }
    free(path.at);
    return found > 0 ? found : -1;
}
