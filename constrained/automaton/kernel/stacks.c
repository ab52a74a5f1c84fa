/* Positions that differ only in their stacks, joined where they are many: graph_stack.py. */
#include "kernel.h"

#define JOIN_STEPS 5000 /* steps of single positions that take as long as Python takes for one join */

/* By what is read, then by the frame after it. */
static int compare(const void *a, const void *b) {
    Config left = *(const Config *)a, right = *(const Config *)b;
    int32_t first = left.rest, second = right.rest;
    left.rest = right.rest = 0;
    int order = memcmp(&left, &right, sizeof(Config));
    return order ? order : (first > second) - (first < second);
}

static int alike(Config a, Config b) {
    a.rest = b.rest = 0;
    return !memcmp(&a, &b, sizeof(Config));
}

/* The frame for any of those that `many` go on with: its number, -1 where they must stay apart, -2 on error. */
static int32_t join(Engine *e, const Config *many, int count) {
    intptr_t known = many[0].rest; /* number of the list of the first, the first two … */
    Config key = {JOINED, 0, 0, 0, 0, 0};
    for (int i = 1; i < count; i++) {
        key.object = i == count - 1 ? -i : i; /* below 0: of a whole list, the frame for it */
        key.rest = many[i].rest, key.low = (int32_t)known;
        known = (intptr_t)map_get(&e->joined, &key);
        if (known || i == count - 1 || read_only) {
            if (!known) break;
            continue;
        }
        known = (intptr_t)e->joined.used + 1;
        if (map_put(&e->joined, &key, (void *)known) < 0) return -2;
    }
    if (known || read_only) return (int32_t)known - 2;
    if ((e->work += JOIN_STEPS) > e->max_work) {
        refuse(e, "mask_steps");
        return -2;
    }
    PyObject *frames = PyTuple_New(count);
    for (int i = 0; frames && i < count; i++) {
        PyObject *frame = frame_object(e, many[i].rest);
        if (frame) PyTuple_SET_ITEM(frames, i, Py_NewRef(frame));
        else Py_CLEAR(frames);
    }
    PyObject *frame = frames ? PyObject_CallMethod(e->bridge, "join", "(N)", frames) : NULL;
    if (!frame) return -2;
    int32_t rest = frame == Py_False ? -1 : know_frame(e, frame);
    if (frame != Py_False && rest < 0) rest = -2;
    Py_DECREF(frame);
    return rest > -2 && map_put(&e->joined, &key, (void *)(intptr_t)(rest + 2)) == 0 ? rest : -2;
}

/* Free text that differs only in its counts is one, if they leave no gap. `vec` is sorted by_text. */
static void join_counts(Vec *vec) {
    int kept = 0;
    for (int i = 0; i < vec->n; i++) {
        Config next = vec->at[i], *last = kept ? &vec->at[kept - 1] : NULL;
        if (last && next.kind == TEXT && last->kind == TEXT && next.object == last->object && next.rest == last->rest &&
            next.depth == last->depth && (last->high < 0 || next.low <= (int64_t)last->high + 1)) {
            if (next.high < 0 || (last->high >= 0 && next.high > last->high)) last->high = next.high;
        } else {
            vec->at[kept++] = next;
        }
    }
    vec->n = kept;
}

/* Texts of one set and stack side by side, lower counts first. */
static int by_text(const void *a, const void *b) {
    const Config *left = a, *right = b;
    const int32_t first[] = {left->kind, left->object, left->rest, left->depth, left->low};
    const int32_t second[] = {right->kind, right->object, right->rest, right->depth, right->low};
    for (int i = 0; i < 5; i++)
        if (first[i] != second[i]) return first[i] < second[i] ? -1 : 1;
    return 0;
}

/* Join the positions that read the same into one, over a frame for any of their stacks. Counts are joined first, as they can
 * be without Python; then whole groups; where a group can't be joined, each with the one before it. */
int vec_join(Engine *e, Vec *vec) {
    if (vec->n <= CROWD_OF_STACKS) return 0;
    qsort(vec->at, vec->n, sizeof(Config), by_text);
    join_counts(vec);
    qsort(vec->at, vec->n, sizeof(Config), compare);
    int kept = 0;
    for (int i = 0, end; i < vec->n; i = end) {
        Config first = vec->at[i];
        int apart = first.kind == ACCEPT || (first.kind == CHOICES && e->choices[first.object].bind != Py_None);
        for (end = i + 1; end < vec->n && !apart && alike(first, vec->at[end]);) end++;
        int32_t rest = end - i > 1 ? join(e, vec->at + i, end - i) : first.rest;
        if (rest == -2) return -1;
        if (rest >= 0) first.rest = rest;
        vec->at[kept++] = first;
        for (int k = i + 1; k < end && rest < 0; k++) { /* some must stay apart: two by two */
            Config two[] = {vec->at[kept - 1], vec->at[k]};
            int32_t both = join(e, two, 2);
            if (both == -2) return -1;
            if (both >= 0) vec->at[kept - 1].rest = both;
            else vec->at[kept++] = two[1];
        }
    }
    vec->n = kept;
    return 0;
}
