/* Sets of characters: steps byte by byte, and which tokens are inside a set. */
#include "kernel.h"

void text_free(TextSet *set) {
    if (!set) return;
    Py_XDECREF(set->charset), Py_XDECREF(set->keys), Py_XDECREF(set->numbers);
    free(set->next), free(set->first), free(set->known), free(set->row), free(set->free), free(set->outliers), free(set->outlier_ids), free(set->counts);
    free(set);
}

/* The number of the state with CharSet's name `key` (None: before a character); -1 on error. */
static int state_number(TextSet *set, PyObject *key) {
    PyObject *found = PyDict_GetItemWithError(set->numbers, key);
    if (found) return (int)PyLong_AsLong(found);
    if (PyErr_Occurred()) return -1;
    if (set->states == set->room) {
        int room = set->room ? set->room * 2 : 4;
        if (room > INT16_MAX) {
            PyErr_SetString(PyExc_MemoryError, "a character set with too many states");
            return -1;
        }
        int16_t(*next)[256] = realloc(set->next, room * sizeof *next);
        if (next) set->next = next;
        uint64_t(*first)[4] = realloc(set->first, room * sizeof *first);
        if (first) set->first = first;
        uint8_t *known = realloc(set->known, room);
        if (known) set->known = known;
        if (!next || !first || !known) {
            no_memory();
            return -1;
        }
        set->room = room;
    }
    PyObject *number = PyLong_FromLong(set->states);
    if (!number || PyDict_SetItem(set->numbers, key, number) < 0 || PyList_Append(set->keys, key) < 0) {
        Py_XDECREF(number);
        return -1;
    }
    Py_DECREF(number);
    set->known[set->states] = 0;
    return set->states++;
}

int text_set(Tokens *t, PyObject *charset) {
    PyObject *found = PyDict_GetItemWithError(t->set_numbers, charset);
    if (found) return (int)PyLong_AsLong(found);
    if (PyErr_Occurred()) return -1;
    TextSet **sets = realloc(t->sets, (t->set_count + 1) * sizeof *sets);
    TextSet *set = calloc(1, sizeof *set);
    if (sets) t->sets = sets;
    if (!sets || !set) {
        free(set);
        no_memory();
        return -1;
    }
    set->charset = Py_NewRef(charset);
    set->keys = PyList_New(0);
    set->numbers = PyDict_New();
    PyObject *number = PyLong_FromLong(t->set_count);
    if (!set->keys || !set->numbers || !number || state_number(set, Py_None) < 0 ||
        PyDict_SetItem(t->set_numbers, charset, number) < 0) {
        Py_XDECREF(number);
        text_free(set);
        return -1;
    }
    Py_DECREF(number);
    t->sets[t->set_count] = set;
    return t->set_count++;
}

/* `CharSet.edges(state)`: byte -> state, where (0, 0, 0) says that the character is whole. */
int text_expand(TextSet *set, int state) {
    if (set->known[state]) return 0;
    if (read_only) return -1;
    PyObject *edges = PyObject_CallMethod(set->charset, "edges", "(O)", PyList_GET_ITEM(set->keys, state));
    if (!edges) return -1;
    int16_t next[256];
    uint64_t first[4] = {0, 0, 0, 0};
    memset(next, 0xFF, sizeof next);
    PyObject *byte, *key;
    Py_ssize_t at = 0;
    int failed = !PyDict_Check(edges);
    while (!failed && PyDict_Next(edges, &at, &byte, &key)) {
        long value = PyLong_AsLong(byte);
        int whole = PyTuple_Check(key) && PyTuple_GET_SIZE(key) == 3 && PyLong_AsLong(PyTuple_GET_ITEM(key, 0)) == 0;
        int number = whole ? 0 : state_number(set, key);
        failed = number < 0 || value < 0 || value > 255;
        if (!failed) next[value] = (int16_t)number, first[value >> 6] |= 1ull << (value & 63);
    }
    Py_DECREF(edges);
    if (failed) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "CharSet.edges gave no map of bytes");
        return -1;
    }
    memcpy(set->next[state], next, sizeof next);
    memcpy(set->first[state], first, sizeof first);
    set->known[state] = 1;
    return 0;
}

/* Read a token as characters of the set: 1 all inside; 0 and `outlier` filled otherwise; -1 on error. */
static int classify(Tokens *t, TextSet *set, int32_t token, Outlier *outlier) {
    const uint8_t *data = t->flat + t->offsets[token];
    int32_t length = t->lengths[token], start = 0, chars = 0;
    int state = 0;
    for (int32_t i = 0; i < length; i++) {
        if (!set->known[state] && text_expand(set, state) < 0) return -1;
        int next = set->next[state][data[i]];
        if (next < 0) {
            int32_t left = length - start, kept = left - 1 < OUTLIER_BYTES ? left - 1 : OUTLIER_BYTES;
            *outlier = (Outlier){token, start, chars, t->ids[token], data[start], (uint8_t)(left < 255 ? left : 255), {0}};
            memcpy(outlier->after, data + start + 1, kept);
            return 0;
        }
        if (next == 0) chars++, start = i + 1;
        state = next;
    }
    *outlier = (Outlier){token, -1, chars, t->ids[token], 0, 0, {0}};
    return state == 0;
}

static int by_byte(const void *a, const void *b) {
    const Outlier *one = a, *two = b;
    if (one->byte != two->byte) return one->byte - two->byte;
    int first = one->left == 1, second = two->left == 1;
    return first != second ? second - first : one->token - two->token;
}

/* Fill in which tokens are inside a set, and where the others leave it.
 *
 * A token's ASCII characters decide where it has no other characters, or where the set has all characters beyond ASCII; only the
 * rest are read byte by byte. Tokens that leave the set are listed only if they are few (`permissive`): else a walk is quicker. */
int text_index(Tokens *t, TextSet *set) {
    if (set->indexed) return 0;
    if (read_only) return -1;
    if (tokens_text(t) < 0 || text_expand(set, 0) < 0) return -1;
    uint64_t outside[2] = {0, 0};
    for (int b = 0; b < 128; b++)
        if (set->next[0][b] < 0) outside[b >> 6] |= 1ull << (b & 63);
    /* whether every character beyond ASCII is inside: then a token's ASCII characters decide */
    PyObject *every = PyObject_CallMethod(set->charset, "overlap", "ii", 0x80, 0xD7FF);
    PyObject *more = every ? PyObject_CallMethod(set->charset, "overlap", "ii", 0xE000, 0x10FFFF) : NULL;
    int beyond = more && PyLong_AsLong(every) == 2 && PyLong_AsLong(more) == 2;
    Py_XDECREF(every), Py_XDECREF(more);
    if (PyErr_Occurred()) return -1;

    uint32_t *row = malloc(t->words * sizeof(uint32_t));
    uint8_t *inside = calloc(t->n, 1), *counts = calloc(t->longest + 2, 1);
    uint32_t *outlier_ids = NULL;
    Outlier *outliers = NULL;
    if (!row || !inside || !counts) goto memory;
    memcpy(row, t->whole, t->words * sizeof(uint32_t));
    int32_t outsiders = 0, count = 0;
    Outlier one;
    for (int32_t i = 0; i < t->n; i++) {
        int clean = !((t->ascii[i][0] & outside[0]) | (t->ascii[i][1] & outside[1]));
        int in = t->plain[i] && clean && (t->plain[i] == 1 || beyond);
        if (!in && clean && t->plain[i] == 2 && (in = classify(t, set, i, &one)) < 0) goto error;
        inside[i] = (uint8_t)in;
        if (in) {
            counts[t->chars[i]] = 1;
        } else {
            outsiders++;
            row[t->ids[i] >> 5] &= ~(1u << (t->ids[i] & 31));
        }
    }
    set->permissive = outsiders <= t->n / 4;
    if (set->permissive) {
        outliers = malloc((size_t)outsiders * sizeof(Outlier) + 1);
        if (!outliers) goto memory;
        for (int32_t i = 0; i < t->n; i++) {
            if (inside[i]) continue;
            if (classify(t, set, i, &outliers[count]) < 0) goto error;
            if (outliers[count].offset != 0) { /* tokens that begin outside the set are never looked up here */
                counts[outliers[count].before + (outliers[count].offset < 0)] = 1;
                count++;
            }
        }
    }
    if (set->permissive) {
        qsort(outliers, count, sizeof *outliers, by_byte);
        for (int32_t b = 0, at = 0; b <= 256; b++) {
            while (at < count && outliers[at].byte < b) at++;
            set->outlier_start[b] = at;
            if (b == 256) break;
            while (at < count && outliers[at].byte == b && outliers[at].left == 1) at++;
            set->outlier_longer[b] = at;
        }
        if (!(outlier_ids = malloc((size_t)count * sizeof *outlier_ids + 1))) goto memory;
        for (int32_t i = 0; i < count; i++) outlier_ids[i] = (uint32_t)outliers[i].id;
    }
    set->row = row, set->free = inside, set->outliers = outliers, set->outlier_ids = outlier_ids, set->outlier_count = count, set->counts = counts;
    set->indexed = 1;
    return 0;
memory:
    no_memory();
error:
    free(row), free(inside), free(counts), free(outliers);
    return -1;
}
