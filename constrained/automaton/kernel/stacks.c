/* Positions that differ only in their stacks, joined where they are many: graph_stack.py. */
#include "kernel.h"

#define JOIN_STEPS 5000 /* the cost of a join in Python, in steps of positions */
#define WAY_STEPS 8     /* the cost of a join in the kernel, for each way */
#define MOST_LEVELS 16  /* the most equal constructs on top of stacks below which the kernel joins different ones */
#define MOST_REPEATS 256

enum { ASK_PYTHON = -3 };

/* Order by what is read, then by the stack. */
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

/* The frames with forks replaced by the frames that they join; the count, -2 on error. The caller frees *ways. */
static int32_t flat_ways(Engine *e, const int32_t *frames, int32_t count, int32_t **ways) {
    int32_t found = 0, room = 0;
    *ways = NULL;
    for (int32_t i = 0; i < count; i++) {
        int32_t one[] = {frames[i]}, many = 1, *of = one;
        if (e->frames[frames[i]].construct < 0 && frames[i] && frames[i] != e->bottom && !(of = fork_ways(e, frames[i], &many))) return -2;
        int failed = grow_items((void **)ways, &room, found + many, sizeof **ways) < 0;
        if (!failed) memcpy(*ways + found, of, many * sizeof *of);
        if (of != one) free(of);
        if (failed) return -2;
        found += many;
    }
    return put_in_order(*ways, found);
}

/* Whether Python must join the ways: a parameter may be open in one stack, or two repeats differ only in their counts. */
static int ask_python(Engine *e, const int32_t *ways, int32_t count) {
    int32_t repeats = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t construct = e->frames[ways[i]].construct;
        const Construct *c = construct < 0 ? NULL : construct_at(e, construct);
        if (construct < 0) continue;
        if (!c) return -1;
        if (c->tied || c->kind == ASKED) return 1;
        if (c->kind != REPEAT && c->kind != TEXT && c->kind != LOOP) continue;
        int32_t read[] = {c->kind, c->kind == REPEAT ? e->children[c->first] : c->object};
        for (int32_t k = 0; k < i && repeats; k++) {
            int32_t other = e->frames[ways[k]].construct;
            const Construct *d = other < 0 || other == construct ? NULL : &e->constructs[other];
            if (d && d->kind == read[0] && (d->kind == REPEAT ? e->children[d->first] : d->object) == read[1]) return 1;
        }
        if (++repeats > MOST_REPEATS) return 1; /* pairs of so many aren't compared */
    }
    return 0;
}

/* join_frames without Python: branches with the same construct on top share it, and are joined below it. */
static int32_t join_natively(Engine *e, const int32_t *frames, int32_t count, int32_t level) {
    int32_t *ways, result = ASK_PYTHON, left = 0;
    if ((count = flat_ways(e, frames, count, &ways)) < 0) goto failed;
    e->work += WAY_STEPS * (int64_t)count;
    int asked = level > MOST_LEVELS ? 1 : ask_python(e, ways, count);
    if (asked < 0) goto failed;
    if (asked) goto done;
    for (int32_t i = 0; i < count; i++) { /* ways with the same construct become one way */
        int32_t construct = ways[i] < 0 ? -1 : e->frames[ways[i]].construct, alike = 0;
        if (ways[i] < 0) continue;
        int32_t *below = construct < 0 ? NULL : malloc(count * sizeof *below);
        if (construct >= 0 && !below) goto failed;
        for (int32_t k = i; construct >= 0 && k < count; k++) {
            if (ways[k] < 0 || e->frames[ways[k]].construct != construct) continue;
            below[alike++] = e->frames[ways[k]].next;
            if (k > i) ways[k] = -1;
        }
        int32_t joined = alike > 1 ? join_natively(e, below, alike, level + 1) : 0;
        free(below);
        if (joined < 0) {
            result = joined;
            goto done;
        }
        int32_t way = alike > 1 ? frame_of(e, construct, joined) : ways[i];
        if (way < 0) goto failed;
        ways[left++] = way;
    }
    result = fork_of(e, ways, left);
    if (result == -1) result = ASK_PYTHON;
    goto done;
failed:
    result = -2;
done:
    free(ways);
    return result;
}

/* The frame that joins `frames`, which are sorted; -1 if they can't be joined, -2 on error. */
int32_t join_frames(Engine *e, int32_t *frames, int32_t count) {
    if ((count = put_in_order(frames, count)) == 1) return frames[0];
    intptr_t known = frames[0]; /* the number of the list of the first frame, of the first two, … */
    Config key = {JOINED, 0, 0, 0, 0, 0};
    for (int i = 1; i < count; i++) {
        key.object = i == count - 1 ? -i : i; /* negative keys map a whole list to its frame */
        key.rest = frames[i], key.low = (int32_t)known;
        known = (intptr_t)map_get(&e->joined, &key);
        if (known || i == count - 1 || read_only) {
            if (!known) break;
            continue;
        }
        known = (intptr_t)e->joined.used + 1;
        if (map_put(&e->joined, &key, (void *)known) < 0) return -2;
    }
    if (known || read_only) return (int32_t)known - 2;
    int32_t own = join_natively(e, frames, count, 0);
    if (own != ASK_PYTHON) return own >= 0 && map_put(&e->joined, &key, (void *)(intptr_t)(own + 2)) < 0 ? -2 : own;
    if ((e->work += JOIN_STEPS) > e->max_work) {
        refuse(e, "mask_steps");
        return -2;
    }
    PyObject *objects = PyTuple_New(count);
    for (int i = 0; objects && i < count; i++) {
        PyObject *object = frame_object(e, frames[i]);
        if (object) PyTuple_SET_ITEM(objects, i, Py_NewRef(object));
        else Py_CLEAR(objects);
    }
    PyObject *frame = objects ? PyObject_CallMethod(e->bridge, "join", "(N)", objects) : NULL;
    if (!frame) return -2;
    int32_t rest = frame == Py_False ? -1 : know_frame(e, frame);
    if (frame != Py_False && rest < 0) rest = -2;
    Py_DECREF(frame);
    return rest > -2 && map_put(&e->joined, &key, (void *)(intptr_t)(rest + 2)) == 0 ? rest : -2;
}

/* Merge positions in free text that differ only in their counts, if these leave no gap. `vec` is sorted by_text. */
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

/* Order by set and stack, then by counts. */
static int by_text(const void *a, const void *b) {
    const Config *left = a, *right = b;
    const int32_t first[] = {left->kind, left->object, left->rest, left->depth, left->low};
    const int32_t second[] = {right->kind, right->object, right->rest, right->depth, right->low};
    for (int i = 0; i < 5; i++)
        if (first[i] != second[i]) return first[i] < second[i] ? -1 : 1;
    return 0;
}

/* Sort positions; return how many of them differ from the one before only in the stack. */
int vec_alike(Vec *vec) {
    int count = 0;
    qsort(vec->at, vec->n, sizeof(Config), compare);
    for (int i = 1; i < vec->n; i++) count += vec->at[i].rest != vec->at[i - 1].rest && alike(vec->at[i], vec->at[i - 1]);
    return count;
}

/* Join the positions that read the same into one, over a frame for any of their stacks. Counts are joined first, as they can
 * be without Python; then whole groups; where a group can't be joined, each with the one before it. */
int vec_join(Engine *e, Vec *vec) {
    if (vec->n <= CROWD_OF_STACKS) return 0;
    qsort(vec->at, vec->n, sizeof(Config), by_text);
    join_counts(vec);
    qsort(vec->at, vec->n, sizeof(Config), compare);
    int32_t *rests = malloc(vec->n * sizeof *rests);
    if (!rests) {
        PyErr_NoMemory();
        return -1;
    }
    int kept = 0, failed = 0;
    for (int i = 0, end; i < vec->n && !failed; i = end) {
        Config first = vec->at[i];
        int apart = first.kind == ACCEPT || (first.kind == CHOICES && e->choices[first.object].bind != Py_None);
        for (end = i + 1; end < vec->n && !apart && alike(first, vec->at[end]);) end++;
        for (int k = i; k < end; k++) rests[k - i] = vec->at[k].rest;
        int32_t rest = join_frames(e, rests, end - i);
        if ((failed = rest == -2)) break;
        if (rest >= 0) first.rest = rest;
        vec->at[kept++] = first;
        for (int k = i + 1; k < end && rest < 0; k++) { /* not all can be joined: try pairs */
            int32_t two[] = {vec->at[kept - 1].rest, vec->at[k].rest}, both = join_frames(e, two, 2);
            if ((failed = both == -2)) break;
            if (both >= 0) vec->at[kept - 1].rest = both;
            else vec->at[kept++] = vec->at[k];
        }
    }
    free(rests);
    if (!failed) vec->n = kept;
    return failed ? -1 : 0;
}
