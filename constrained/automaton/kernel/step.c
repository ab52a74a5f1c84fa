/* Steps: the positions after a byte. */
#include "kernel.h"

/* `near`: the position over its near_frame. 1: it differs from `c`, and may have the same mask. */
int near_config(Engine *e, const Config *c, Config *near) {
    *near = *c;
    if (!c->rest) return 0;
    if ((near->rest = near_frame(e, c->rest)) < 0) return -1;
    return near->rest != c->rest && !(e->stack_sensitive.used && map_get(&e->stack_sensitive, near));
}

/* While this is set, frames reached by a step are collected here instead of being entered. */
static THREAD_LOCAL Vec *ends;

/* Append the positions of a frame's closure. */
static int append_closure(Engine *e, int32_t rest, Vec *out) {
    Config end = {FINISHED, 0, rest, 0, 0, 0};
    if (ends) return vec_push(ends, &end);
    Closure *closure = closure_of(e, rest);
    return closure && vec_append(out, closure->configs, closure->n) == 0 ? 0 : -1;
}

/* The frame after value `i` of a choice, its parameter bound if it binds one; -1 on error. */
static int32_t after_choice(Engine *e, const Config *c, int32_t i) {
    Choices *choices = &e->choices[c->object];
    if (choices->bind == Py_None) return c->rest;
    Config key = {FINISHED, c->object, c->rest, i, 0, 0};
    intptr_t known = (intptr_t)map_get(&e->finished, &key);
    if (known || read_only) return (int32_t)known - 1;
    PyObject *rest_object = frame_object(e, c->rest);
    if (!rest_object) return -1;
    choices = &e->choices[c->object]; /* Python code may have changed the array */
    PyObject *frame = PyObject_CallMethod(
        e->bridge, "after_choice", "OOO", PyTuple_GET_ITEM(choices->values, i), choices->bind, rest_object
    );
    if (!frame) return -1;
    int32_t rest = know_frame(e, frame);
    Py_DECREF(frame);
    return rest >= 0 && map_put(&e->finished, &key, (void *)(intptr_t)(rest + 1)) == 0 ? rest : -1;
}

/* Whether the run so far is one of the excluded texts. */
static int is_left_out(const Engine *e, const Config *c) {
    int32_t length;
    choice(&e->choices[c->object], c->low, &length);
    return length == c->depth;
}

/* The position in free text that a run with excluded texts becomes once it differs from all of them. */
Config except_text(const Engine *e, const Config *c) {
    return (Config){TEXT, e->choices[c->object].set, c->rest, 0, -1, 0};
}

static int step_except(Engine *e, const Config *c, uint8_t byte, Vec *out) {
    const Choices *choices = &e->choices[c->object];
    Config next = *c, text = except_text(e, c);
    next.low = choices_from(choices, c->low + is_left_out(e, c), c->high, c->depth, byte);
    next.high = choices_from(choices, next.low, c->high, c->depth, byte + 1);
    if (next.low == next.high) return step_config(e, &text, byte, out);
    next.depth++;
    if (vec_push(out, &next) < 0) return -1;
    return is_left_out(e, &next) ? 0 : append_closure(e, c->rest, out);
}

/* The frame of a loop's other alternative, which Python makes once for each pair of counts. */
Closure *closure_aside(Engine *e, const Config *c) {
    Config key = {ASIDE, c->object, c->rest, c->low, c->high, 0};
    intptr_t known = (intptr_t)map_get(&e->finished, &key);
    if (!known && read_only) return NULL;
    if (!known) {
        PyObject *rest = frame_object(e, c->rest);
        if (!rest) return NULL;
        PyObject *loop = e->choices[c->object].values;
        PyObject *frame = PyObject_CallMethod(e->bridge, "aside", "OiiO", loop, (int)c->low, (int)c->high, rest);
        int32_t number = frame ? know_frame(e, frame) : -1;
        Py_XDECREF(frame);
        if (number < 0 || map_put(&e->finished, &key, (void *)(intptr_t)(number + 1)) < 0) return NULL;
        known = number + 1;
    }
    return closure_of(e, (int32_t)known - 1);
}

static int step_aside(Engine *e, const Config *c, uint8_t byte, Vec *out) {
    Closure *other = closure_aside(e, c);
    if (!other) return -1;
    for (int i = 0; i < other->n; i++)
        if (step_config(e, &other->configs[i], byte, out) < 0) return -1;
    return 0;
}

int step_config(Engine *e, const Config *c, uint8_t byte, Vec *out) {
    if (c->kind == EXCEPT) return step_except(e, c, byte, out);
    Config next = *c;
    if (c->kind == JSON_TEXT) {
        int how = step_json(e, c, byte, &next);
        return (how & 1 && vec_push(out, &next) < 0) || (how & 2 && append_closure(e, c->rest, out) < 0) ? -1 : 0;
    }
    if (c->kind == LITERAL) {
        const Literal *literal = &e->literals[c->object];
        if (literal->at[c->low] != byte) return 0;
        if (++next.low == literal->length) return append_closure(e, c->rest, out);
        return vec_push(out, &next);
    }
    if (c->kind == TEXT || c->kind == LOOP) {
        if (c->kind == LOOP && c->depth == 0 && begins_aside(e, c, byte))
            return step_aside(e, c, byte, out);
        TextSet *set = e->tokens->sets[set_of(e, c)];
        if (!set->known[c->depth] && text_expand(set, c->depth) < 0) return -1;
        int state = set->next[c->depth][byte];
        if (state < 0) return 0;
        next.depth = state;
        if (state) return vec_push(out, &next);
        if (next.low) next.low--;
        if (next.high > 0) next.high--;
        if (next.high && vec_push(out, &next) < 0) return -1;
        return next.low ? 0 : append_closure(e, c->rest, out);
    }
    if (c->kind == CHOICES) {
        const Choices *choices = &e->choices[c->object];
        int32_t length;
        next.low = choices_from(choices, c->low, c->high, c->depth, byte);
        if (next.low == c->high || choice(choices, next.low, &length)[c->depth] != byte) return 0;
        next.high = choices_from(choices, next.low + 1, c->high, c->depth, byte + 1);
        next.depth++;
        if (length == next.depth) {
            int32_t rest = after_choice(e, c, next.low);
            if (rest < 0 || append_closure(e, rest, out) < 0) return -1;
            next.low++;
        }
        return next.low < next.high ? vec_push(out, &next) : 0;
    }
    return 0;
}

/* Raise LimitError; `limit` is the name of a field of Limits. */
int refuse(Engine *e, const char *limit) {
    if (read_only || e->ahead) return -1;
    PyObject *none = PyObject_CallMethod(e->bridge, "refuse", "s", limit);
    if (none) PyErr_SetString(PyExc_RuntimeError, "a limit was passed");
    Py_XDECREF(none);
    return -1;
}

/* step_all for many positions: the stacks of those that end with the byte are joined first, and entered once. */
static int step_joined(Engine *e, const Vec *from, uint8_t byte, Vec *to) {
    Vec ended = {NULL, 0, 0};
    int failed = 0;
    to->n = 0;
    ends = &ended;
    for (int i = 0; i < from->n && !failed; i++) failed = step_config(e, &from->at[i], byte, to) < 0;
    ends = NULL;
    int32_t *rests = failed ? NULL : malloc((ended.n + 1) * sizeof *rests), rest = -1;
    if (!rests && !failed) failed = !no_memory();
    for (int i = 0; i < ended.n && rests; i++) rests[i] = ended.at[i].rest;
    if (!failed && ended.n > 1 && (rest = fork_of(e, rests, ended.n)) == -2) failed = 1;
    for (int i = 0; i < ended.n && !failed; i++)
        if (rest < 0 || !i) failed = append_closure(e, rest < 0 ? ended.at[i].rest : rest, to) < 0;
    free(rests), free(ended.at);
    return failed ? -1 : 0;
}

int step_vec(Engine *e, const Vec *from, uint8_t byte, Vec *to) {
    to->n = 0;
    if ((e->work += from->n) > e->max_work) return refuse(e, "mask_steps");
    for (int i = 0; i < from->n; i++)
        if (step_config(e, &from->at[i], byte, to) < 0) return -1;
    e->work += 8 * (int64_t)to->n; /* sorting takes most of the time */
    if (from->n > 1 && to->n > e->crowded && vec_alike(to) > e->crowded / 2 && step_joined(e, from, byte, to) < 0) return -1;
    if (to->n > 1) vec_distinct(to);
    if (vec_join(e, to) < 0) return -1;
    if (to->n > e->max_positions) return refuse(e, "state_positions");
    return 0;
}

/* The set of bytes that may come next, one bit each. */
int next_bytes(Engine *e, const Vec *vec, uint64_t out[4]) {
    memset(out, 0, 4 * sizeof *out);
    for (int i = 0; i < vec->n; i++) {
        const Config *c = &vec->at[i];
        if (c->kind == LITERAL) {
            uint8_t byte = e->literals[c->object].at[c->low];
            out[byte >> 6] |= 1ull << (byte & 63);
        } else if (c->kind == CHOICES) {
            const Choices *choices = &e->choices[c->object];
            for (int32_t at = c->low, length; at < c->high;) {
                uint8_t byte = choice(choices, at, &length)[c->depth];
                out[byte >> 6] |= 1ull << (byte & 63);
                at = choices_from(choices, at, c->high, c->depth, byte + 1);
            }
        } else if (c->kind == JSON_TEXT) {
            Config next;
            for (int b = 0; b < 256; b++)
                if (step_json(e, c, (uint8_t)b, &next)) out[b >> 6] |= 1ull << (b & 63);
        } else if (c->kind >= TEXT) {
            TextSet *set = e->tokens->sets[c->kind == EXCEPT ? e->choices[c->object].set : set_of(e, c)];
            int32_t state = c->kind == EXCEPT ? 0 : c->depth;
            if (!set->known[state] && text_expand(set, state) < 0) return -1;
            for (int k = 0; k < 4; k++) out[k] |= set->first[state][k];
            const uint64_t *aside = c->kind == LOOP && !state ? (const uint64_t *)e->choices[c->object].flat : NULL;
            for (int k = 0; k < 4 && aside; k++) out[k] |= aside[k];
        }
    }
    return 0;
}

/* A bound on the bytes to the end from here and from everywhere after it: distance.py. */
double horizon(Engine *e, const Vec *vec) {
    double most = 0;
    for (int i = 0; i < vec->n; i++) {
        const Config *c = &vec->at[i];
        if (c->kind <= STEP_END) continue;
        Closure *closure = closure_of(e, c->rest);
        if (!closure) return -1;
        if (!closure->has_bounds && read_only) return -1;
        if (!closure->has_bounds) {
            PyObject *frame = frame_object(e, c->rest);
            PyObject *bounds = frame ? PyObject_CallMethod(e->bridge, "bounds", "(O)", frame) : NULL;
            if (bounds && !PyTuple_Check(bounds)) PyErr_SetString(PyExc_TypeError, "Bridge.bounds gave no pair");
            int fine = bounds && PyTuple_Check(bounds) &&
                       PyArg_ParseTuple(bounds, "dd", &closure->shortest, &closure->farthest);
            Py_XDECREF(bounds);
            if (!fine) return -1;
            closure->has_bounds = 1;
        }
        double here = c->kind == LITERAL  ? e->literals[c->object].length - c->low
                      : c->kind == JSON_TEXT ? 12.0 * (json_farthest(e->json[c->object]) + 1)
                      : c->kind == EXCEPT ? e->choices[c->object].longest + 4.0
                      : c->kind == CHOICES ? e->choices[c->object].longest - c->depth
                                           : 4.0 * (c->low > 1 ? c->low : 1);
        here += closure->shortest;
        if (here > most) most = here;
        if (closure->farthest > most) most = closure->farthest;
    }
    return most;
}
