/* The vocabulary: its sorted tokens as a trie, and the characters of each token. */
#include "kernel.h"
#ifdef __linux__
#include <sys/mman.h>
#endif

#define HUGE_PAGE ((size_t)2 << 20)

PyTypeObject *TokensType;

/* A node that isn't written yet, and the word to which its index will be written. */
typedef struct {
    int32_t low, high, depth, parent;
} Waiting;

static int32_t same_byte(const Tokens *t, int32_t at, int32_t high, int32_t depth) {
    uint8_t byte = t->flat[t->offsets[at] + depth];
    int32_t end = at + 1;
    while (end < high && t->lengths[end] > depth && t->flat[t->offsets[end] + depth] == byte) end++;
    return end;
}

/* Write the leaf of a token below a node of the given depth, and the node's entry for it. */
static int add_leaf(Tokens *t, int32_t *room, int32_t token, int32_t depth, int32_t word) {
    int32_t length = t->lengths[token] - depth, at = t->trie_words;
    int32_t words = (int32_t)((offsetof(Leaf, bytes) + length + 3) / sizeof(uint32_t));
    if (at + words > *room) {
        uint32_t *trie = realloc(t->trie, (*room + *room / 2 + words) * sizeof *trie);
        if (!trie) return -1;
        *room += *room / 2 + words;
        t->trie = trie;
    }
    Leaf *leaf = (Leaf *)(t->trie + at);
    leaf->id = t->ids[token], leaf->length = (uint16_t)length;
    memcpy(leaf->bytes, t->flat + t->offsets[token] + depth, length);
    t->trie[word] = leaf->bytes[0] | 1u << 8 | (uint32_t)at << 9;
    t->trie_words = at + words;
    return 0;
}

/* The start index of each child's tokens and the end of the last one's; returns the number of children; -2: unsorted tokens. */
static int find_children(const Tokens *t, const Waiting *node, int32_t at, int32_t begins[257]) {
    int count = 0;
    for (int32_t end; at < node->high; at = end) {
        end = same_byte(t, at, node->high, node->depth);
        begins[count++] = at;
        if (end == node->high) break;
        if (t->lengths[end] <= node->depth || t->flat[t->offsets[end] + node->depth] < t->flat[t->offsets[at] + node->depth]) return -2;
    }
    begins[count] = node->high;
    return count;
}

static void tell_fanout(Node *node) {
    Fanout *fanout = (Fanout *)fanout_of(node);
    memset(fanout, 0, sizeof *fanout);
    for (int i = 0; i < node->count; i++) {
        uint8_t byte = CHILD_BYTE(node->child[i]);
        fanout->bytes[byte >> 6] |= 1ull << (byte & 63);
        for (int k = (byte >> 6) + 1; k < 4; k++) fanout->before[k]++;
    }
}

/* Write the trie: each node, its leaves, then the nodes below. -1: no memory; -2: unsorted tokens; -3: too many tokens. */
static int build_trie(Tokens *t) {
    const int32_t head = sizeof(Node) / sizeof(uint32_t);
    int32_t room = 1 << 14, waiting_room = 1 << 10, waiting = 1, result = -1;
    Waiting *stack = malloc(waiting_room * sizeof *stack);
    t->trie = malloc(room * sizeof *t->trie);
    if (!stack || !t->trie) goto done;
    stack[0] = (Waiting){0, t->n, 0, -1};
    while (waiting) {
        Waiting next = stack[--waiting];
        int32_t begins[257], at = next.low, number = t->trie_words;
        if (number + LINE + ROOT + head + 256 > room || waiting + 256 > waiting_room) { /* a node has at most 256 children */
            room += room / 2, waiting_room += 256;
            uint32_t *trie = realloc(t->trie, room * sizeof *trie);
            if (trie) t->trie = trie;
            Waiting *more = realloc(stack, waiting_room * sizeof *more);
            if (more) stack = more;
            if (!trie || !more) goto done;
        }
        while (at < next.high && t->lengths[at] == next.depth) at++;
        int count = find_children(t, &next, at, begins);
        if (count < 0) {
            result = count;
            goto done;
        }
        if (!next.depth || count >= FANNED) {
            int32_t begin = (number + LINE - 1) / LINE * LINE;
            memset(t->trie + number, 0, (begin + ROOT - number) * sizeof *t->trie);
            number = begin + ROOT;
        }
        if (next.parent >= 0) t->trie[next.parent] |= (uint32_t)number << 9;
        Node *node = (Node *)(t->trie + number);
        *node = (Node){next.low, next.high, at - next.low, at > next.low ? t->ids[next.low] : -1, (uint16_t)count, (uint16_t)next.depth};
        for (int i = count - 1; i >= 0; i--) { /* the first child comes next */
            int leaf = begins[i + 1] - begins[i] == 1;
            uint8_t byte = t->flat[t->offsets[begins[i]] + next.depth];
            node->child[i] = byte | (uint32_t)leaf << 8 | (uint32_t)(leaf ? begins[i] : 0) << 9;
            if (!leaf) stack[waiting++] = (Waiting){begins[i], begins[i + 1], next.depth + 1, number + head + i};
        }
        if (count >= FANNED) tell_fanout(node);
        int32_t word = number + head, last = word + count;
        t->trie_words = last;
        for (; word < last; word++)
            if (CHILD_IS_TOKEN(t->trie[word]) && add_leaf(t, &room, CHILD_AT(t->trie[word]), next.depth, word) < 0) goto done;
        if (t->trie_words >= MOST_WORDS) {
            result = -3;
            goto done;
        }
    }
    result = 0;
done:
    free(stack);
    return result;
}

/* The range of a child's tokens: the returned index to `*end` - 1. */
int32_t tokens_below(const Tokens *t, uint32_t child, int32_t *end) {
    if (CHILD_IS_TOKEN(child)) {
        int32_t token = t->ranks[leaf_at(t, child)->id];
        *end = token + 1;
        return token;
    }
    const Node *below = node_at(t, CHILD_AT(child));
    *end = below->high;
    return below->low;
}

/* Memory in huge pages, if the system has them: with small pages, address translation takes longer than the reads. */
static void *take_block(size_t size) {
#ifdef MADV_HUGEPAGE
    if (size > HUGE_PAGE / 2) {
        size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        void *block = aligned_alloc(HUGE_PAGE, size);
        if (block) (void)madvise(block, size, MADV_HUGEPAGE); /* optional: a failure is ignored */
        return block;
    }
#endif
    return malloc(size);
}

/* Move all arrays that walks read into one block, which begins with the trie. */
static int gather(Tokens *t) {
    size_t trie = t->trie_words * sizeof(uint32_t), numbers = t->n * sizeof(int32_t), flat = t->offsets[t->n];
    uint8_t *block = take_block(trie + 2 * numbers + sizeof(int32_t) + flat);
    if (!block) return -1;
    memcpy(block, t->trie, trie);
    free(t->trie);
    t->trie = (uint32_t *)block;
    t->ids = memcpy(block += trie, t->ids, numbers);
    memcpy(block += numbers, t->offsets, numbers + sizeof(int32_t));
    free(t->offsets);
    t->offsets = (int32_t *)block;
    t->flat = memcpy(block + numbers + sizeof(int32_t), t->flat, flat);
    return 0;
}

/* Characters in `data`, or -1 if it isn't well-formed UTF-8 from end to end. */
static int32_t count_characters(const uint8_t *data, int32_t length) {
    int32_t count = 0;
    for (int32_t i = 0; i < length; count++) {
        uint8_t head = data[i];
        int32_t width = head < 0x80 ? 1 : head < 0xC2 ? 0 : head < 0xE0 ? 2 : head < 0xF0 ? 3 : head < 0xF5 ? 4 : 0;
        if (!width || i + width > length) return -1;
        for (int32_t k = 1; k < width; k++)
            if ((data[i + k] & 0xC0) != 0x80) return -1;
        uint8_t second = width > 1 ? data[i + 1] : 0;
        if ((head == 0xE0 && second < 0xA0) || (head == 0xED && second > 0x9F) || (head == 0xF0 && second < 0x90) ||
            (head == 0xF4 && second > 0x8F))
            return -1; /* overlong, a surrogate, or beyond the last code point */
        i += width;
    }
    return count;
}

int tokens_text(Tokens *t) {
    if (t->ascii) return 0;
    t->ascii = calloc(t->n, sizeof *t->ascii);
    t->plain = calloc(t->n, 1);
    t->chars = calloc(t->n, sizeof(int32_t));
    t->by_chars = malloc(t->n * sizeof(int32_t));
    t->chars_end = calloc(t->longest + 1, sizeof(int32_t));
    t->whole = calloc(t->words, sizeof(uint32_t));
    if (!t->ascii || !t->plain || !t->chars || !t->by_chars || !t->chars_end || !t->whole) {
        PyErr_NoMemory();
        return -1;
    }
    for (int32_t i = 0; i < t->n; i++) {
        const uint8_t *data = t->flat + t->offsets[i];
        uint8_t high = 0;
        for (int32_t k = 0; k < t->lengths[i]; k++) {
            high |= data[k];
            if (data[k] < 0x80) t->ascii[i][data[k] >> 6] |= 1ull << (data[k] & 63);
        }
        int32_t count = high < 0x80 ? t->lengths[i] : count_characters(data, t->lengths[i]);
        t->plain[i] = high < 0x80 ? 1 : count < 0 ? 0 : 2;
        if (count < 0) continue;
        t->chars[i] = count;
        t->chars_end[count]++;
        t->whole[t->ids[i] >> 5] |= 1u << (t->ids[i] & 31);
    }
    int32_t sum = 0;
    for (int32_t c = 0; c <= t->longest; c++) {
        int32_t here = t->chars_end[c];
        t->chars_end[c] = sum;
        sum += here;
    }
    for (int32_t i = 0; i < t->n; i++) /* afterwards chars_end[c] is the end of the tokens with c characters */
        if (t->plain[i]) t->by_chars[t->chars_end[t->chars[i]]++] = i;
    return 0;
}

static int tokens_init(Tokens *t, PyObject *args, PyObject *kwargs) {
    PyObject *given[4];
    int size;
    if (kwargs || t->held || !PyArg_ParseTuple(args, "OOOOi", &given[0], &given[1], &given[2], &given[3], &size)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "Tokens(flat, lengths, ids, ranks, size)");
        return -1;
    }
    for (; t->held < 4; t->held++)
        if (PyObject_GetBuffer(given[t->held], &t->buffers[t->held], PyBUF_CONTIG_RO) < 0) return -1;
    if (t->buffers[1].len % 4 || t->buffers[1].len > INT32_MAX || t->buffers[2].len != t->buffers[1].len || size < 1 ||
        size > INT32_MAX - 31 || t->buffers[3].len != (Py_ssize_t)size * 4)
        goto bad; /* before anything is read */
    for (int i = 1; i < 4; i++)
        if ((uintptr_t)t->buffers[i].buf % 4) goto bad;
    t->flat = t->buffers[0].buf;
    t->lengths = t->buffers[1].buf;
    t->ids = t->buffers[2].buf;
    t->ranks = t->buffers[3].buf;
    t->n = (int32_t)(t->buffers[1].len / 4);
    t->size = size;
    t->words = (size + 31) / 32;
    t->offsets = malloc(((size_t)t->n + 1) * sizeof(int32_t));
    t->set_numbers = PyDict_New();
    if (!t->offsets || !t->set_numbers) {
        PyErr_NoMemory();
        return -1;
    }
    int64_t sum = 0;
    for (int32_t i = 0; i < t->n; i++) {
        if (t->lengths[i] <= 0 || sum > INT32_MAX || t->ids[i] < 0 || t->ids[i] >= size) goto bad;
        t->offsets[i] = (int32_t)sum;
        sum += t->lengths[i];
        if (t->lengths[i] > t->longest) t->longest = t->lengths[i];
    }
    t->offsets[t->n] = (int32_t)sum;
    if (t->longest >= UINT16_MAX || t->n >= MOST_WORDS) {
too_large:
        PyErr_SetString(PyExc_ValueError, "a vocabulary too large for the kernel");
        return -1;
    }
    if (!t->n || sum != t->buffers[0].len || sum > INT32_MAX) goto bad;
    int32_t ranked = 0;
    for (int32_t i = 0; i < size; i++) {
        if (t->ranks[i] < -1 || t->ranks[i] >= t->n) goto bad;
        ranked += t->ranks[i] >= 0;
    }
    for (int32_t i = 0; i < t->n; i++)
        if (t->ranks[t->ids[i]] != i) goto bad;
    if (ranked != t->n) goto bad;
    int built = build_trie(t);
    if (built == -2) goto bad;
    if (built == -3) goto too_large;
    if (built < 0 || gather(t) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    t->rows.most = SPARE_ROWS, t->states.most = SPARE_STATES;
    t->ready = 1;
    return 0;
bad:
    PyErr_SetString(PyExc_ValueError, "the vocabulary's arrays don't belong together");
    return -1;
}

static void tokens_dealloc(Tokens *t) {
    PyTypeObject *type = Py_TYPE(t);
    while (t->held) PyBuffer_Release(&t->buffers[--t->held]);
    if (!t->ready) free(t->offsets); /* otherwise it is part of the trie's block */
    free(t->trie);
    free(t->ascii), free(t->plain), free(t->chars), free(t->by_chars), free(t->chars_end), free(t->whole);
    for (int i = 0; i < t->set_count; i++) text_free(t->sets[i]);
    free(t->sets), map_clear(&t->bases, 1), map_clear(&t->inside, 1);
    spare_free(&t->rows), spare_free(&t->states), walk_free(t->spare), characters_free(t->characters), free(t->clear);
    Py_XDECREF(t->set_numbers);
    type->tp_free((PyObject *)t);
    Py_DECREF(type);
}

static PyObject *tokens_nbytes(Tokens *t, void *Py_UNUSED(closure)) {
    size_t sum = t->ready ? (size_t)t->n * 8 + t->offsets[t->n] + t->trie_words * sizeof(uint32_t) : 0;
    if (t->ascii) sum += (size_t)t->n * (16 + 1 + 4 + 4) + t->words * 4 + t->longest * 4;
    sum += t->bases.used * t->words * 4 + (t->bases.room + t->inside.room) * sizeof(Slot) + t->inside_bytes + characters_bytes(t->characters);
    sum += t->rows.count * t->rows.size + t->states.count * t->states.size + (t->clear ? t->words * 4 : 0);
    for (int i = 0; i < t->set_count; i++) {
        TextSet *set = t->sets[i];
        sum += (size_t)set->room * (512 + 32 + 1);
        if (set->indexed) sum += (size_t)t->words * 4 + t->n + t->longest + set->outlier_count * (sizeof(Outlier) + sizeof(uint32_t));
    }
    return PyLong_FromSize_t(sum);
}

static PyObject *tokens_prepare_text(Tokens *t, PyObject *Py_UNUSED(none)) {
    if (!t->ready) PyErr_SetString(PyExc_ValueError, "a vocabulary that was not made: Tokens(flat, lengths, …)");
    if (!t->ready || tokens_text(t) < 0) return NULL;
    Py_RETURN_NONE;
}

GUARDED(tokens_prepare_text, (Tokens *t, PyObject *none), (t, none))

static PyMethodDef tokens_methods[] = {
    {"prepare_text", (PyCFunction)tokens_prepare_text_guarded, METH_NOARGS, "Look at the tokens' characters now."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef tokens_getset[] = {
    {"nbytes", (getter)tokens_nbytes, NULL, "Bytes held, beside the arrays it was given.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot tokens_slots[] = {
    {Py_tp_doc, "Tokens(flat, lengths, ids, ranks, size): a vocabulary's sorted tokens."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, tokens_init},
    {Py_tp_dealloc, tokens_dealloc},
    {Py_tp_methods, tokens_methods},
    {Py_tp_getset, tokens_getset},
    {0, NULL},
};
PyType_Spec tokens_spec = {"constrained.automaton._kernel.Tokens", sizeof(Tokens), 0, Py_TPFLAGS_DEFAULT, tokens_slots};
