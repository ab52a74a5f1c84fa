/* One grammar over one vocabulary: positions as plain structs, what they can read, what follows. */
#include "kernel.h"

PyTypeObject *EngineType;

#define MOST_FLAT (1 << 20) /* bytes of choices that are laid side by side */

/* vectors and maps of positions ------------------------------------------------------------------ */

int vec_append(Vec *vec, const Config *configs, int n) {
    if (vec->n + n > vec->room) {
        int room = vec->room ? vec->room : 4;
        while (room < vec->n + n) room *= 2;
        Config *at = realloc(vec->at, room * sizeof(Config));
        if (!at) {
            PyErr_NoMemory();
            return -1;
        }
        vec->at = at;
        vec->room = room;
    }
    memcpy(vec->at + vec->n, configs, n * sizeof(Config));
    vec->n += n;
    return 0;
}

int vec_push(Vec *vec, const Config *config) {
    return vec_append(vec, config, 1);
}

int vec_copy(Vec *to, const Vec *from) {
    to->n = 0;
    return from->n ? vec_append(to, from->at, from->n) : 0;
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, sizeof(Config));
}

void vec_distinct(Vec *vec) {
    int kept = 0;
    if (vec->n > 12) qsort(vec->at, vec->n, sizeof(Config), compare);
    for (int i = 0; i < vec->n; i++) {
        int known = 0;
        if (vec->n > 12)
            known = kept && !compare(&vec->at[kept - 1], &vec->at[i]);
        else
            for (int k = 0; k < kept && !known; k++) known = !compare(&vec->at[k], &vec->at[i]);
        if (!known) vec->at[kept++] = vec->at[i];
    }
    vec->n = kept;
}

static size_t hash(const Config *key) {
    const uint32_t *word = (const uint32_t *)key;
    uint64_t h = 0x9E3779B97F4A7C15ull;
    for (size_t i = 0; i < sizeof(Config) / 4; i++) h = (h ^ word[i]) * 0xFF51AFD7ED558CCDull, h ^= h >> 32;
    return (size_t)h;
}

void *map_get(const Map *map, const Config *key) {
    if (!map->used) return NULL;
    for (size_t i = hash(key) & (map->room - 1);; i = (i + 1) & (map->room - 1)) {
        if (!map->slots[i].used) return NULL;
        if (!compare(&map->slots[i].key, key)) return map->slots[i].value;
    }
}

int map_put(Map *map, const Config *key, void *value) {
    if (2 * (map->used + 1) > map->room) {
        Map larger = {NULL, map->room ? map->room * 2 : 64, map->used};
        larger.slots = calloc(larger.room, sizeof(Slot));
        if (!larger.slots) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t k = 0; k < map->room; k++) {
            if (!map->slots[k].used) continue;
            size_t i = hash(&map->slots[k].key) & (larger.room - 1);
            while (larger.slots[i].used) i = (i + 1) & (larger.room - 1);
            larger.slots[i] = map->slots[k];
        }
        free(map->slots);
        *map = larger;
    }
    size_t i = hash(key) & (map->room - 1);
    while (map->slots[i].used && compare(&map->slots[i].key, key)) i = (i + 1) & (map->room - 1);
    map->used += !map->slots[i].used;
    map->slots[i] = (Slot){*key, value, 1};
    return 0;
}

void map_clear(Map *map, int free_values) {
    for (size_t i = 0; free_values && i < map->room; i++)
        if (map->slots[i].used) free(map->slots[i].value);
    free(map->slots);
    *map = (Map){NULL, 0, 0};
}

/* from Python's positions and back --------------------------------------------------------------- */

/* The number (from 1; 0: None) of a frame, which the kernel then knows; -1 on error. */
int32_t know_frame(Engine *e, PyObject *frame) {
    if (frame == Py_None) return 0;
    PyObject *attribute = PyObject_GetAttrString(frame, "number");
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
        if (!frames || !closures) {
            PyErr_NoMemory();
            return -1;
        }
        memset(frames + e->frame_room, 0, (room - e->frame_room) * sizeof *frames);
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
    PyObject *object, *rest, *depth, *bind;
    *out = (Config){0, 0, 0, 0, 0, 0};
    if (!PyArg_ParseTuple(described, "iOOiiOO", &out->kind, &object, &rest, &out->low, &out->high, &depth, &bind) ||
        (out->rest = know_frame(e, rest)) < 0)
        return -1;
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

/* what follows ----------------------------------------------------------------------------------- */

Closure *closure_of(Engine *e, int32_t rest) {
    if (e->closures[rest]) return e->closures[rest];
    PyObject *found = rest ? PyObject_CallMethod(e->bridge, "enter", "(O)", e->frames[rest])
                           : Py_BuildValue("[(iOOiiiO)]", ACCEPT, Py_None, Py_None, 0, 0, 0, Py_None);
    if (!found) return NULL;
    Closure *closure = NULL;
    if (PyList_Check(found)) {
        int n = (int)PyList_GET_SIZE(found);
        closure = calloc(1, sizeof *closure);
        Config *configs = malloc(n * sizeof(Config) + 1);
        if (!closure || !configs) PyErr_NoMemory();
        for (int i = 0; i < n && !PyErr_Occurred(); i++) config_of(e, PyList_GET_ITEM(found, i), &configs[i]);
        if (PyErr_Occurred()) {
            free(closure), free(configs);
            closure = NULL;
        } else {
            *closure = (Closure){.n = n, .configs = configs, .capped = -1};
        }
    } else {
        PyErr_SetString(PyExc_TypeError, "Bridge.enter gave no list");
    }
    Py_DECREF(found);
    if (!closure) return NULL;
    if (e->closures[rest]) { /* another thread was faster, while Python ran */
        free(closure->configs), free(closure);
    } else {
        e->closures[rest] = closure;
        e->closure_bytes += sizeof *closure + closure->n * sizeof(Config);
    }
    return e->closures[rest];
}

static int append_closure(Engine *e, int32_t rest, Vec *out) {
    Closure *closure = closure_of(e, rest);
    return closure && vec_append(out, closure->configs, closure->n) == 0 ? 0 : -1;
}

/* The frame after value `i` of a choice, its parameter bound if it binds one; -1 on error. */
static int32_t after_choice(Engine *e, const Config *c, int32_t i) {
    Choices *choices = &e->choices[c->object];
    if (choices->bind == Py_None) return c->rest;
    Config key = {FINISHED, c->object, c->rest, i, 0, 0};
    intptr_t known = (intptr_t)map_get(&e->finished, &key);
    if (known) return (int32_t)known - 1;
    PyObject *frame = PyObject_CallMethod(
        e->bridge, "after_choice", "OOO", PyTuple_GET_ITEM(choices->values, i), choices->bind,
        c->rest ? e->frames[c->rest] : Py_None
    );
    if (!frame) return -1;
    int32_t rest = know_frame(e, frame);
    Py_DECREF(frame);
    return rest >= 0 && map_put(&e->finished, &key, (void *)(intptr_t)(rest + 1)) == 0 ? rest : -1;
}

/* The first of values[low:high], which agree on `depth` bytes, whose next byte is `byte` or more. */
int choices_from(const Choices *choices, int32_t low, int32_t high, int32_t depth, int byte) {
    int32_t length;
    /* often all agree here as well */
    if (low == high || choice(choices, low, &length)[depth] >= byte) return low;
    if (choice(choices, high - 1, &length)[depth] < byte) return high;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (choice(choices, middle, &length)[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int step_config(Engine *e, const Config *c, uint8_t byte, Vec *out) {
    Config next = *c;
    if (c->kind == LITERAL) {
        const Literal *literal = &e->literals[c->object];
        if (literal->at[c->low] != byte) return 0;
        if (++next.low == literal->length) return append_closure(e, c->rest, out);
        return vec_push(out, &next);
    }
    if (c->kind == TEXT) {
        TextSet *set = e->tokens->sets[c->object];
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
        next.low = choices_from(choices, c->low, c->high, c->depth, byte);
        next.high = choices_from(choices, next.low, c->high, c->depth, byte + 1);
        if (next.low == next.high) return 0;
        next.depth++;
        int32_t length;
        choice(choices, next.low, &length);
        if (length == next.depth) {
            int32_t rest = after_choice(e, c, next.low);
            if (rest < 0 || append_closure(e, rest, out) < 0) return -1;
            next.low++;
        }
        return next.low < next.high ? vec_push(out, &next) : 0;
    }
    return 0;
}

/* `why`: "positions" of one state, or "steps" of one mask. */
static int refuse(Engine *e, const char *why) {
    PyObject *none = PyObject_CallMethod(e->bridge, "refuse", "s", why);
    if (none) PyErr_SetString(PyExc_RuntimeError, "a limit was passed");
    Py_XDECREF(none);
    return -1;
}

int step_vec(Engine *e, const Vec *from, uint8_t byte, Vec *to) {
    to->n = 0;
    if ((e->work += from->n) > e->max_work) return refuse(e, "steps");
    for (int i = 0; i < from->n; i++)
        if (step_config(e, &from->at[i], byte, to) < 0) return -1;
    e->work += 8 * (int64_t)to->n; /* sorting them is the larger part */
    if (to->n > 1) vec_distinct(to);
    if (to->n > e->max_positions) return refuse(e, "positions");
    return 0;
}

/* The bytes that may come next, one bit each. */
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
        } else if (c->kind == TEXT) {
            TextSet *set = e->tokens->sets[c->object];
            if (!set->known[c->depth] && text_expand(set, c->depth) < 0) return -1;
            for (int k = 0; k < 4; k++) out[k] |= set->first[c->depth][k];
        }
    }
    return 0;
}

const uint64_t *closure_first(Engine *e, Closure *closure) {
    Vec vec = {closure->configs, closure->n, closure->n};
    if (!closure->has_first && next_bytes(e, &vec, closure->first) < 0) return NULL;
    closure->has_first = 1;
    return closure->first;
}

/* A bound on the bytes to the end from here and from everywhere after it: distance.py. */
double horizon(Engine *e, const Vec *vec) {
    double most = 0;
    for (int i = 0; i < vec->n; i++) {
        const Config *c = &vec->at[i];
        if (c->kind <= STEP_END) continue;
        Closure *closure = closure_of(e, c->rest);
        if (!closure) return -1;
        if (!closure->has_bounds) {
            PyObject *bounds = PyObject_CallMethod(e->bridge, "bounds", "(O)", c->rest ? e->frames[c->rest] : Py_None);
            int fine = bounds && PyArg_ParseTuple(bounds, "dd", &closure->shortest, &closure->farthest);
            Py_XDECREF(bounds);
            if (!fine) return -1;
            closure->has_bounds = 1;
        }
        double here = c->kind == LITERAL   ? e->literals[c->object].length - c->low
                      : c->kind == CHOICES ? e->choices[c->object].longest - c->depth
                                           : 4.0 * (c->low > 1 ? c->low : 1);
        here += closure->shortest;
        if (here > most) most = here;
        if (closure->farthest > most) most = closure->farthest;
    }
    return most;
}

/* the type --------------------------------------------------------------------------------------- */

static int engine_init(Engine *e, PyObject *args, PyObject *kwargs) {
    PyObject *bridge, *tokens, *start;
    long long positions, steps, bytes;
    if (kwargs || e->bridge ||
        !PyArg_ParseTuple(args, "OO!OLLL", &bridge, TokensType, &tokens, &start, &positions, &steps, &bytes)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "an engine is made once, and without keywords");
        return -1;
    }
    e->bridge = Py_NewRef(bridge);
    e->tokens = (Tokens *)Py_NewRef(tokens);
    e->max_positions = positions;
    e->max_work = steps;
    e->max_row_bytes = (size_t)bytes;
    e->literal_numbers = PyDict_New();
    e->choices_numbers = PyDict_New();
    e->frame_room = 64;
    e->frames = calloc(64, sizeof *e->frames);
    e->closures = calloc(64, sizeof *e->closures);
    if (!e->literal_numbers || !e->choices_numbers || !e->frames || !e->closures) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *described = PySequence_Fast(start, "start is no sequence");
    if (!described) return -1;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(described) && !PyErr_Occurred(); i++) {
        Config config;
        if (config_of(e, PySequence_Fast_GET_ITEM(described, i), &config) == 0) vec_push(&e->start, &config);
    }
    Py_DECREF(described);
    return PyErr_Occurred() ? -1 : 0;
}

static void engine_dealloc(Engine *e) {
    PyTypeObject *type = Py_TYPE(e);
    for (int32_t i = 0; i < e->frame_room && e->closures; i++)
        if (e->closures[i]) free(e->closures[i]->configs), free(e->closures[i]);
    for (int32_t i = 0; i < e->literal_count; i++) Py_DECREF(e->literals[i].data);
    for (int32_t i = 0; i < e->choices_count; i++) {
        Py_DECREF(e->choices[i].values), Py_DECREF(e->choices[i].bind);
        free(e->choices[i].flat), free(e->choices[i].offsets);
    }
    free(e->frames), free(e->closures), free(e->literals), free(e->choices), free(e->start.at);
    map_clear(&e->finished, 0), map_clear(&e->rows, 1), table_clear(&e->table);
    walk_free(e->spare);
    Py_XDECREF(e->literal_numbers), Py_XDECREF(e->choices_numbers);
    Py_XDECREF(e->bridge), Py_XDECREF(e->tokens);
    type->tp_free((PyObject *)e);
    Py_DECREF(type);
}

static PyObject *engine_nbytes(Engine *e, void *Py_UNUSED(closure)) {
    size_t sum = sizeof *e + e->row_bytes + (e->rows.room + e->finished.room) * sizeof(Slot);
    sum += e->closure_bytes + e->choices_bytes;
    sum += e->table.bytes + e->table.room * 8 + (size_t)e->frame_room * 16 + e->literal_room * sizeof(Literal) + e->choices_room * sizeof(Choices);
    return PyLong_FromSize_t(sum);
}

static PyObject *engine_rows(Engine *e, void *Py_UNUSED(closure)) {
    return PyLong_FromSize_t(e->rows_made);
}

static PyObject *engine_precompute(Engine *e, PyObject *most) {
    Py_ssize_t limit = PyLong_AsSsize_t(most);
    if (limit == -1 && PyErr_Occurred()) return NULL;
    Py_ssize_t done = precompute(e, limit);
    return done < -1 || PyErr_Occurred() ? NULL : PyLong_FromSsize_t(done);
}

/* described positions -> packed row, as bytes */
static PyObject *engine_row(Engine *e, PyObject *positions) {
    PyObject *items = PySequence_Fast(positions, "positions are no sequence"), *out = NULL;
    if (!items) return NULL;
    Vec vec = {NULL, 0, 0};
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items) && !PyErr_Occurred(); i++) {
        Config config;
        if (config_of(e, PySequence_Fast_GET_ITEM(items, i), &config) == 0) vec_push(&vec, &config);
    }
    if (!PyErr_Occurred() && (out = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)e->tokens->words * 4))) {
        Target target = {.row = (uint32_t *)PyByteArray_AS_STRING(out), .words = e->tokens->words, .touched_count = -1};
        if (fill_row(e, &vec, &target) < 0) Py_CLEAR(out);
    }
    free(vec.at);
    Py_DECREF(items);
    return out;
}

/* known() -> the positions whose masks are kept */
static PyObject *engine_known(Engine *e, PyObject *Py_UNUSED(none)) {
    Vec keys = {NULL, 0, 0}; /* first: Python runs below */
    int failed = 0;
    for (size_t i = 0; i < e->rows.room && !failed; i++)
        if (e->rows.slots[i].used) failed = vec_push(&keys, &e->rows.slots[i].key) < 0;
    PyObject *out = failed ? NULL : PyList_New(0);
    for (int i = 0; out && i < keys.n; i++) {
        PyObject *position = position_of(e, &keys.at[i]);
        if (!position || PyList_Append(out, position) < 0) Py_CLEAR(out);
        Py_XDECREF(position);
    }
    free(keys.at);
    return out;
}

/* restore(described position, ids): ids as int32, each one of a token that stands for text */
static PyObject *engine_restore(Engine *e, PyObject *args) {
    PyObject *described;
    Py_buffer ids;
    Config config;
    if (!PyArg_ParseTuple(args, "Oy*", &described, &ids)) return NULL;
    const int32_t *at = ids.buf;
    Py_ssize_t count = ids.len / (Py_ssize_t)sizeof(int32_t);
    int failed = config_of(e, described, &config);
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        if (at[i] >= 0 && at[i] < e->tokens->size && e->tokens->ranks[at[i]] >= 0) continue;
        PyErr_SetString(PyExc_ValueError, "an id that stands for no text");
        failed = 1;
    }
    if (!failed) failed = restore_mask(e, &config, at, count) < 0;
    PyBuffer_Release(&ids);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef engine_methods[] = {
    {"known", (PyCFunction)engine_known, METH_NOARGS, "The positions whose masks are kept."},
    {"restore", (PyCFunction)engine_restore, METH_VARARGS, "Take the mask of a described position for known."},
    {"row", (PyCFunction)engine_row, METH_O, "The packed mask of some positions, as bytearray."},
    {"precompute", (PyCFunction)engine_precompute, METH_O,
     "Visit every position, at most so many; how many there are, -1 if more."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef engine_getset[] = {
    {"nbytes", (getter)engine_nbytes, NULL, "Bytes held, beside the vocabulary's.", NULL},
    {"rows", (getter)engine_rows, NULL, "Mask rows computed and kept so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot engine_slots[] = {
    {Py_tp_doc, "Engine(bridge, tokens, start, max_positions, max_steps, max_row_bytes): a grammar's masks over a vocabulary."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, engine_init},
    {Py_tp_dealloc, engine_dealloc},
    {Py_tp_methods, engine_methods},
    {Py_tp_getset, engine_getset},
    {0, NULL},
};
PyType_Spec engine_spec = {"constrained.automaton._kernel.Engine", sizeof(Engine), 0, Py_TPFLAGS_DEFAULT, engine_slots};
