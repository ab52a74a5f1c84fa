/* What stands between the quotes of a JSON string, read by a table: constrained/grammar/json_text.py.
 *
 * For masks, tokens that are alike to such a table are taken together: those whose characters are of the same classes
 * share a node of a second trie, over which the table runs once.
 */
#include "kernel.h"

enum { CHARACTER = 1, ESCAPE, DIGITS, PAIR, PAIR_ESCAPE, PAIR_DIGITS }; /* where in a character */
#define FEW 24 /* where no more ASCII characters than this may come, the vocabulary's own trie is walked */
#define ANY_ESCAPE (-1) /* a character that is escaped without need */
#define MOST_INSIDE ((PAIR_DIGITS << 28) | (3 << 24) | 0xFFFFFF)

/* A token, and from which of its bytes on it isn't plain characters. */
typedef struct {
    int32_t node, token, offset;
} Part;

struct JsonText {
    PyObject *table;
    int32_t ranges, classes, states, farthest;
    int32_t *starts, *of_range; /* [ranges] */
    int32_t *after;             /* [states][classes + 1] */
    int32_t *fewest, *ends;     /* [states] */
    int32_t ascii[128];         /* classes of these characters; -1: none stands for itself */
    int32_t nodes, node_room;   /* of the second trie; 0: not built yet */
    struct { int32_t parent, of, depth, whole, part; } *node; /* its class; how many characters; where its tokens begin */
    int32_t *whole;             /* ids of the tokens that end at a node, by node */
    Part *parts;                /* the others, by node */
};

void json_free(JsonText *t) {
    if (!t) return;
    Py_XDECREF(t->table);
    free(t->starts), free(t->of_range), free(t->after), free(t->fewest), free(t->ends), free(t->node), free(t->whole), free(t->parts);
    free(t);
}

int32_t json_farthest(const JsonText *t) {
    return t->farthest;
}

PyObject *json_table(const JsonText *t) {
    return t->table;
}

/* The numbers of a tuple, each from `low` to `high`; `*count` of them, or any number where that is -1. */
static int32_t *numbers(PyObject *tuple, int32_t *count, int32_t low, int32_t high) {
    if (!tuple || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) < 1 || PyTuple_GET_SIZE(tuple) > MOST_NODES ||
        (*count >= 0 && PyTuple_GET_SIZE(tuple) != *count)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a table's part is no tuple of the right length");
        return NULL;
    }
    *count = (int32_t)PyTuple_GET_SIZE(tuple);
    int32_t *out = malloc(*count * sizeof *out);
    if (!out) PyErr_NoMemory();
    for (int32_t i = 0; out && i < *count; i++) {
        out[i] = int_between(PyTuple_GET_ITEM(tuple, i), low, high, "a number of a table");
        if (PyErr_Occurred()) free(out), out = NULL;
    }
    return out;
}

static int32_t range_of(const JsonText *t, int32_t code) {
    int32_t low = 0, high = t->ranges;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (t->starts[middle] <= code) low = middle;
        else high = middle;
    }
    return low;
}

static int load(JsonText *t, PyObject *table) {
    static const char *const names[] = {"starts", "classes", "fewest", "ends", "after"};
    PyObject *part[5] = {NULL};
    int failed = 0;
    for (int i = 0; i < 5 && !failed; i++) failed = !(part[i] = PyObject_GetAttrString(table, names[i]));
    t->ranges = t->states = -1;
    failed = failed || !(t->starts = numbers(part[0], &t->ranges, 0, 0x10FFFF)) ||
             !(t->of_range = numbers(part[1], &t->ranges, -1, MOST_NODES)) ||
             !(t->fewest = numbers(part[2], &t->states, 0, MOST_NODES)) || !(t->ends = numbers(part[3], &t->states, 0, 1));
    for (int32_t i = 0; i < t->ranges && !failed; i++) {
        failed = i ? t->starts[i] <= t->starts[i - 1] : t->starts[i] != 0;
        if (t->of_range[i] >= t->classes) t->classes = t->of_range[i] + 1;
    }
    int32_t width = t->classes + 1;
    failed = failed || !PyTuple_Check(part[4]) || PyTuple_GET_SIZE(part[4]) != t->states || width > MOST_NODES / t->states ||
             !(t->after = malloc((size_t)t->states * width * sizeof(int32_t)));
    for (int32_t i = 0; i < t->states && !failed; i++) {
        int32_t *row = numbers(PyTuple_GET_ITEM(part[4], i), &width, -1, t->states - 1);
        failed = !row;
        if (row) memcpy(t->after + (size_t)i * width, row, width * sizeof *row);
        free(row);
        if (t->fewest[i] > t->farthest) t->farthest = t->fewest[i];
    }
    for (int b = 0; b < 128 && !failed; b++)
        t->ascii[b] = b >= 0x20 && b != '"' && b != '\\' ? t->of_range[range_of(t, b)] : -1;
    for (int i = 0; i < 5; i++) Py_XDECREF(part[i]);
    if (failed && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a table that is none");
    return failed ? -1 : 0;
}

/* The number of a table; -1 on error. */
int32_t know_json(Engine *e, PyObject *table) {
    int32_t count = 0;
    for (; e->json && e->json[count]; count++)
        if (e->json[count]->table == table) return count;
    JsonText **json = realloc(e->json, (count + 2) * sizeof *json);
    if (json) e->json = json;
    JsonText *t = json ? calloc(1, sizeof *t) : NULL;
    if (json) json[count] = NULL;
    if (!t) {
        PyErr_NoMemory();
        return -1;
    }
    if (load(t, table) < 0) {
        json_free(t);
        return -1;
    }
    t->table = Py_NewRef(table);
    e->choices_bytes += ((size_t)t->states * (t->classes + 3) + 2 * (size_t)t->ranges) * sizeof(int32_t);
    e->json[count] = t;
    e->json[count + 1] = NULL;
    return count;
}

/* Whether a position's numbers, as Python gives them, can be. */
int json_checked(const JsonText *t, const Config *c) {
    int kind = c->depth >> 28, count = c->depth >> 24 & 15;
    return c->low >= 0 && c->low < t->states && c->high >= -1 && c->depth >= 0 && c->depth <= MOST_INSIDE &&
           (kind ? count <= 3 && (kind != CHARACTER || count) : !c->depth);
}

static int leads(const JsonText *t, int32_t to, int32_t left) {
    return to >= 0 && (left < 0 || t->fewest[to] < left);
}

/* Whether some character from `low` to `high` may come. */
static int some(const JsonText *t, const Config *c, int32_t low, int32_t high) {
    const int32_t *after = t->after + (size_t)c->low * (t->classes + 1);
    if (low == ANY_ESCAPE) return leads(t, after[t->classes], c->high);
    for (int32_t i = range_of(t, low); i < t->ranges && t->starts[i] <= high; i++)
        if (t->of_range[i] >= 0 && leads(t, after[t->of_range[i]], c->high)) return 1;
    return 0;
}

/* Whether a character that is begun may become one that may come. */
static int may_become(const JsonText *t, const Config *c) {
    int kind = c->depth >> 28, count = c->depth >> 24 & 15;
    int32_t value = c->depth & 0xFFFFFF;
    if (kind == CHARACTER) {
        int64_t low = value ? (int64_t)value << 6 * count : count == 2 ? 0x800 : 0x10000, high = (((int64_t)value + 1) << 6 * count) - 1;
        return low <= 0x10FFFF && some(t, c, (int32_t)low, high > 0x10FFFF ? 0x10FFFF : (int32_t)high);
    }
    if (kind == ESCAPE)
        return some(t, c, ANY_ESCAPE, 0) || some(t, c, 0, 0x1F) || some(t, c, 0x22, 0x22) || some(t, c, 0x5C, 0x5C) ||
               some(t, c, 0x7F, 0x10FFFF);
    int32_t low = (value & 0xFFF) << 4 * (4 - count), high = low + (1 << 4 * (4 - count)) - 1;
    if (kind == DIGITS) {
        if (low < 0x20 && some(t, c, low, high < 0x1F ? high : 0x1F)) return 1;
        if (high >= 0x7F && some(t, c, low > 0x7F ? low : 0x7F, high)) return 1;
        if (low < 0x7F && high >= 0x20 && some(t, c, ANY_ESCAPE, 0)) return 1;
        if (low >= 0xDC00 || high < 0xD800) return 0;
        low = low > 0xD800 ? low - 0xD800 : 0, high = high < 0xDBFF ? high - 0xD800 : 0x3FF;
        return some(t, c, 0x10000 + (low << 10), 0x103FF + (high << 10));
    }
    if (kind == PAIR_DIGITS) {
        if (low >= 0xE000 || high < 0xDC00) return 0;
        int32_t first = 0x10000 + ((value >> 12 & 0x3FF) << 10);
        return some(t, c, first + (low > 0xDC00 ? low - 0xDC00 : 0), first + (high < 0xDFFF ? high - 0xDC00 : 0x3FF));
    }
    value &= 0x3FF;
    return some(t, c, 0x10000 + (value << 10), 0x103FF + (value << 10));
}

static int digit_of(uint8_t byte) {
    int lower = byte | 0x20;
    return byte >= '0' && byte <= '9' ? byte - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Where in a character the next byte leads, -1 for nowhere; if it ends there (0), which one it is. */
static int32_t next_inside(int32_t inside, uint8_t byte, int32_t *code) {
    int kind = inside >> 28, count = inside >> 24 & 15;
    int32_t value = inside & 0xFFFFFF;
    *code = byte;
    if (!kind) {
        if (byte == '\\') return ESCAPE << 28;
        if (byte < 0x80) return byte >= 0x20 && byte != '"' ? 0 : -1;
        int left = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
        return byte >= 0xC2 && byte < 0xF5 ? CHARACTER << 28 | left << 24 | (byte & 0x3F >> left) : -1;
    }
    if (kind == CHARACTER) {
        if ((byte & 0xC0) != 0x80 || value > 0x10FFFF >> 6) return -1;
        value = value << 6 | (byte & 0x3F);
        count--;
        if ((count == 1 && value < 0x20) || (count == 2 && (value < 0x10 || value > 0x10F))) return -1; /* or spelled too long */
        *code = value;
        return count ? CHARACTER << 28 | count << 24 | value : 0;
    }
    if (kind == ESCAPE && byte != 'u') {
        static const char from[] = "bfnrt\"\\/", to[] = "\b\f\n\r\t\"\\";
        const char *found = byte ? strchr(from, byte) : NULL;
        *code = found && found - from < 7 ? to[found - from] : ANY_ESCAPE;
        return found ? 0 : -1;
    }
    if (kind == PAIR) return byte == '\\' ? PAIR_ESCAPE << 28 | value : -1;
    if (kind == ESCAPE || kind == PAIR_ESCAPE) return byte == 'u' ? (kind + 1) << 28 | (value & 0xFFF) << 12 : -1;
    int digit = digit_of(byte);
    if (digit < 0) return -1;
    if (count < 3) return kind << 28 | (count + 1) << 24 | (value & 0xFFF000) | ((value & 0xFF) << 4 | digit);
    *code = (value & 0xFFF) << 4 | digit;
    if (kind == PAIR_DIGITS) {
        if (*code < 0xDC00 || *code > 0xDFFF) return -1;
        *code = 0x10000 + ((value >> 12 & 0x3FF) << 10) + *code - 0xDC00;
    } else if (*code >= 0xD800 && *code < 0xDC00) {
        return PAIR << 28 | (*code - 0xD800);
    } else if (*code >= 0x20 && *code < 0x7F) {
        *code = ANY_ESCAPE;
    }
    return 0;
}

/* The state after a class of characters (the last: ANY_ESCAPE), one character later: 0 where it can't be finished. */
static int take(const JsonText *t, Config *c, int32_t of) {
    int32_t to = of < 0 ? -1 : t->after[(size_t)c->low * (t->classes + 1) + of];
    if (!leads(t, to, c->high)) return 0;
    c->low = to;
    c->depth = 0;
    if (c->high > 0) c->high--;
    return 1;
}

/* Read a byte: 0 if that can't be. */
static int take_byte(const JsonText *t, Config *c, uint8_t byte) {
    if (!c->depth && byte < 0x80 && byte != '\\') return take(t, c, t->ascii[byte]);
    int32_t code, inside = next_inside(c->depth, byte, &code);
    if (inside < 0) return 0;
    if (!inside) return take(t, c, code == ANY_ESCAPE ? t->classes : t->of_range[range_of(t, code)]);
    c->depth = inside;
    return may_become(t, c);
}

static int goes_on(const JsonText *t, const Config *c) {
    const int32_t *after = t->after + (size_t)c->low * (t->classes + 1);
    for (int32_t i = 0; i < t->classes; i++)
        if (leads(t, after[i], c->high)) return 1;
    return 0;
}

/* 1: `next` goes on, 2: what comes after the text may come, 3: both; 0: the byte can't be read. */
int step_json(const Engine *e, const Config *c, uint8_t byte, Config *next) {
    const JsonText *t = e->json[c->object];
    *next = *c;
    if (!take_byte(t, next, byte)) return 0;
    if (next->depth) return 1;
    return goes_on(t, next) | t->ends[next->low] << 1;
}

/* the second trie -------------------------------------------------------------------------------- */

/* Node and class -> the node below. */
typedef struct {
    uint64_t *key; /* node * classes + class + 1; 0: none */
    int32_t *node;
    size_t room;
} Children;

static int32_t add_node(JsonText *t, int32_t parent, int32_t of) {
    void *node = with_room(t->node, t->nodes + 1, &t->node_room, 1024, sizeof *t->node);
    if (!node) return -1;
    t->node = node;
    t->node[t->nodes].parent = parent, t->node[t->nodes].of = of;
    t->node[t->nodes].depth = parent < 0 ? 0 : t->node[parent].depth + 1;
    t->node[t->nodes].whole = t->node[t->nodes].part = 0;
    return t->nodes++;
}

static int32_t child_of(JsonText *t, Children *c, int32_t parent, int32_t of) {
    if (2 * (size_t)t->nodes >= c->room) {
        Children more = {.room = c->room ? 2 * c->room : 4096};
        more.key = calloc(more.room, sizeof *more.key), more.node = malloc(more.room * sizeof *more.node);
        for (size_t i = 0; more.key && more.node && i < c->room; i++) {
            if (!c->key[i]) continue;
            size_t at = c->key[i] * 0x9E3779B97F4A7C15ull >> 20 & (more.room - 1);
            while (more.key[at]) at = (at + 1) & (more.room - 1);
            more.key[at] = c->key[i], more.node[at] = c->node[i];
        }
        if (!more.key || !more.node) {
            free(more.key), free(more.node);
            return -1;
        }
        free(c->key), free(c->node);
        *c = more;
    }
    uint64_t key = (uint64_t)parent * t->classes + of + 1;
    size_t at = key * 0x9E3779B97F4A7C15ull >> 20 & (c->room - 1);
    for (; c->key[at]; at = (at + 1) & (c->room - 1))
        if (c->key[at] == key) return c->node[at];
    int32_t node = add_node(t, parent, of);
    if (node >= 0) c->key[at] = key, c->node[at] = node;
    return node;
}

/* Follow a token's plain characters from a node and an offset; `*at` is where they end. -1: no memory. */
static int32_t follow(JsonText *t, Children *children, const uint8_t *data, int32_t length, int32_t node,
                      int32_t *at, int32_t (*path)[2], int32_t *steps) {
    while (*at < length && node >= 0) {
        int32_t code = -1, inside = 0, end = *at;
        int32_t of = data[end] < 0x80 ? t->ascii[data[end]] : -1;
        if (of >= 0) {
            end++;
        } else if (data[end] >= 0x80) {
            do inside = next_inside(inside, data[end++], &code);
            while (inside > 0 && end < length);
            of = inside ? -1 : t->of_range[range_of(t, code)];
        }
        if (of < 0) break;
        node = child_of(t, children, node, of);
        *at = end;
        path[*steps][0] = end, path[(*steps)++][1] = node;
    }
    return node;
}

static int build(const Tokens *tokens, JsonText *t) {
    Children children = {0};
    Part *all = malloc((tokens->n + 1) * sizeof *all);
    int32_t(*path)[2] = malloc((tokens->longest + 2) * sizeof *path);
    t->whole = malloc((tokens->n + 1) * sizeof *t->whole), t->parts = malloc((tokens->n + 1) * sizeof *t->parts);
    int failed = !all || !path || !t->whole || !t->parts || add_node(t, -1, -1) < 0;
    int32_t steps = 0;
    for (int32_t i = 0; i < tokens->n && !failed; i++) {
        const uint8_t *data = tokens->flat + tokens->offsets[i], *before = i ? tokens->flat + tokens->offsets[i - 1] : data;
        int32_t length = tokens->lengths[i], shared = 0, most = i ? tokens->lengths[i - 1] : 0;
        if (length < most) most = length;
        while (shared < most && data[shared] == before[shared]) shared++;
        while (steps && path[steps - 1][0] > shared) steps--;
        int32_t at = steps ? path[steps - 1][0] : 0, node = steps ? path[steps - 1][1] : 0;
        node = follow(t, &children, data, length, node, &at, path, &steps);
        failed = node < 0;
        all[i] = (Part){node, i, at};
        if (!failed) (*(at == length ? &t->node[node].whole : &t->node[node].part))++;
    }
    failed = failed || add_node(t, -1, -1) < 0; /* the end of the last node's tokens */
    for (int32_t n = 0, whole = 0, part = 0; n < t->nodes && !failed; n++) { /* counts become beginnings */
        int32_t wholes = t->node[n].whole, parts = t->node[n].part;
        t->node[n].whole = whole, t->node[n].part = part;
        whole += wholes, part += parts;
    }
    for (int32_t i = 0; i < tokens->n && !failed; i++) {
        if (all[i].offset == tokens->lengths[i]) t->whole[t->node[all[i].node].whole++] = tokens->ids[i];
        else t->parts[t->node[all[i].node].part++] = all[i];
    }
    for (int32_t n = t->nodes - 1; n > 0 && !failed; n--) t->node[n].whole = t->node[n - 1].whole, t->node[n].part = t->node[n - 1].part;
    if (!failed) {
        t->node[0].whole = t->node[0].part = 0;
        Part *fitted = realloc(t->parts, (t->node[t->nodes - 1].part + 1) * sizeof *fitted);
        void *node = realloc(t->node, t->nodes * sizeof *t->node);
        if (fitted) t->parts = fitted;
        if (node) t->node = node, t->node_room = t->nodes;
    }
    free(all), free(path), free(children.key), free(children.node);
    if (!failed) return 0;
    t->nodes = 0;
    free(t->whole), free(t->parts);
    t->whole = NULL, t->parts = NULL;
    no_memory();
    return -1;
}

/* Emit a token if its bytes from `at` on can be read from `c`, and after the text from the state `after` of the table. */
static int try_part(Walk *w, const JsonText *t, Config c, int32_t token, int32_t at, int begun, int32_t after) {
    const Tokens *tokens = w->engine->tokens;
    const uint8_t *data = tokens->flat + tokens->offsets[token];
    const uint64_t *first = table_first(w->engine, after);
    if (!first) return -1;
    for (; at < tokens->lengths[token]; at++, begun = 1) {
        if (begun && !c.depth && t->ends[c.low] && first[data[at] >> 6] >> (data[at] & 63) & 1)
            return try_sorted(w, token, at, after);
        if (!take_byte(t, &c, data[at])) return 0;
    }
    return emit(w, tokens->ids[token]);
}

/* The same for all tokens below a node, whose bytes were read. */
static int walk_below(Walk *w, const JsonText *t, const Config *c, const Node *node, int32_t after) {
    const Tokens *tokens = w->engine->tokens;
    const uint64_t *first = node->depth && !c->depth && t->ends[c->low] ? table_first(w->engine, after) : NULL;
    for (int i = 0; i < node->count; i++) {
        uint32_t child = node->child[i];
        uint8_t byte = CHILD_BYTE(child);
        Config next = *c;
        if (first && first[byte >> 6] >> (byte & 63) & 1) {
            if (descend_from(w, node, after, child) < 0) return -1;
        } else if (CHILD_IS_TOKEN(child)) {
            int32_t token = tokens->ranks[leaf_at(tokens, child)->id];
            if (try_part(w, t, next, token, node->depth, node->depth > 0, after) < 0) return -1;
        } else if (take_byte(t, &next, byte)) {
            const Node *below = node_at(tokens, CHILD_AT(child));
            if (emit_ends(w, below) < 0 || walk_below(w, t, &next, below, after) < 0) return -1;
        }
    }
    return 0;
}

static int is_narrow(const Engine *e, const Config *c) {
    const JsonText *t = e->json[c->object];
    int count = 0;
    for (int b = 0; b < 0x80; b++) count += t->ascii[b] >= 0 && leads(t, t->after[(size_t)c->low * (t->classes + 1) + t->ascii[b]], c->high);
    return count <= FEW;
}

/* Emit the tokens that can be read from `c`: 1. 0: they must be walked beside what comes after the text. */
int walk_json(Walk *w, const Config *c) {
    Engine *e = w->engine;
    JsonText *t = e->json[c->object];
    Closure *rest = closure_of(e, c->rest);
    const uint64_t *first = rest ? closure_first(e, rest) : NULL;
    if (!first) return -1;
    for (int b = 0x20; b < 0x100; b++)
        if (b != '"' && first[b >> 6] >> (b & 63) & 1) return 0; /* where the text ends is open */
    Vec from = {rest->configs, rest->n, 0};
    int32_t after = table_state(e, &from, 1);
    if (after < 0) return -1;
    int full = !t->nodes && e->choices_bytes > e->max_row_bytes; /* so many second tries that no more are made */
    if (c->depth || full || is_narrow(e, c)) return walk_below(w, t, c, node_at(e->tokens, 0), after) < 0 ? -1 : 1;
    if (!t->nodes) {
        if (build(e->tokens, t) < 0) return -1;
        e->choices_bytes += t->nodes * sizeof *t->node + e->tokens->n * sizeof(int32_t) + t->node[t->nodes - 1].part * sizeof(Part);
    }
    int32_t width = t->classes + 1, *state = malloc(t->nodes * sizeof *state);
    int failed = 0;
    if (!state) {
        no_memory();
        return -1;
    }
    state[0] = c->low;
    for (int32_t n = 0; n < t->nodes - 1 && !failed; n++) {
        int32_t depth = t->node[n].depth, left = c->high < 0 ? -1 : c->high - depth;
        if (n) {
            int32_t above = state[t->node[n].parent];
            state[n] = above < 0 ? -1 : t->after[(size_t)above * width + t->node[n].of];
            if (!leads(t, state[n], left < 0 && c->high < 0 ? -1 : left + 1)) state[n] = -1;
        }
        if (state[n] < 0) continue;
        for (int32_t i = t->node[n].whole; i < t->node[n + 1].whole && !failed; i++) failed = emit(w, t->whole[i]) < 0;
        Config here = *c;
        here.low = state[n], here.high = left;
        for (int32_t i = t->node[n].part; i < t->node[n + 1].part && !failed; i++)
            failed = try_part(w, t, here, t->parts[i].token, t->parts[i].offset, n > 0, after) < 0;
    }
    free(state);
    return failed ? -1 : 1;
}
