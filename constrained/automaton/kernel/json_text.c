/* The contents of JSON strings, read by tables (constrained/grammar/json_text.py).
 *
 * For a mask, a table is run over a second trie of the vocabulary's tokens, whose edges are characters instead of bytes and
 * which all tables share. A table that is used often gets a smaller trie of its own, whose edges are the table's classes of
 * characters.
 */
#include "kernel.h"

enum { CHARACTER = 1, ESCAPE, DIGITS, PAIR, PAIR_ESCAPE, PAIR_DIGITS }; /* the state inside a character */
#define FEW 24 /* if at most so many ASCII characters may come, the vocabulary's byte trie is walked instead */
#define WALKS 2 /* after so many masks, a trie of character classes is made, which costs about as much as they did */
#define FEWER 8 /* only if it has so many times fewer nodes */
#define ANY_ESCAPE (-1) /* the class of a character that is escaped although it needn't be */
#define MOST_INSIDE ((PAIR_DIGITS << 28) | (3 << 24) | 0xFFFFFF)

/* A token, and the offset of its first byte that isn't part of a plain character. */
typedef struct {
    int32_t node, token, offset;
} Part;

/* A node of the trie of plain characters. Nodes are stored in the order of a walk (depth first). */
typedef struct {
    int32_t character, depth; /* its last character as an index into `codes`, or as a class; its depth in characters */
    int32_t end;              /* the end of the nodes below it */
    int32_t whole, part;      /* the index of its first token */
} Place;

/* The tokens of a vocabulary by the plain characters that they begin with, or by the classes of these. */
struct Characters {
    Place *place;
    int32_t count, room;
    int32_t *codes; /* the code points, ascending; NULL in a trie of classes */
    int32_t code_count;
    int32_t *whole; /* ids of the tokens that end exactly at a node, by node */
    Part *parts;    /* the tokens that continue with other bytes, by node */
    size_t bytes;
};

struct JsonText {
    PyObject *table;
    int32_t ranges, classes, states, farthest;
    int32_t *starts, *of_range; /* [ranges] */
    int32_t *after;             /* [states][classes + 1] */
    int32_t *fewest, *ends;     /* [states] */
    int32_t ascii[128];         /* the class of each ASCII character; -1: it can't stand unescaped */
    int32_t *of_code;           /* the class of each of the vocabulary's characters; NULL: not computed yet */
    int32_t walks;
    Characters *merged;         /* the trie of classes; NULL: not made (yet) */
};

void characters_free(Characters *all) {
    if (!all) return;
    free(all->place), free(all->codes), free(all->whole), free(all->parts), free(all);
}

void json_free(JsonText *t) {
    if (!t) return;
    characters_free(t->merged);
    Py_XDECREF(t->table);
    free(t->starts), free(t->of_range), free(t->after), free(t->fewest), free(t->ends), free(t->of_code);
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
    if (failed && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a table has tuples of numbers within bounds");
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

/* Whether a position's numbers, as Python gives them, are valid. */
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

/* Whether the bytes of a begun character can be completed to one that may come. */
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

/* The state inside a character after the next byte, -1 if there is none; 0: it ends, and `*code` is set. */
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
        if ((count == 1 && value < 0x20) || (count == 2 && (value < 0x10 || value > 0x10F))) return -1; /* or an overlong encoding */
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

/* Read a byte; 0 if it isn't allowed. */
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

/* Bits: 1: `next` can continue the text, 2: the text may end after the byte; 0: the byte isn't allowed. */
int step_json(const Engine *e, const Config *c, uint8_t byte, Config *next) {
    const JsonText *t = e->json[c->object];
    *next = *c;
    if (!take_byte(t, next, byte)) return 0;
    if (next->depth) return 1;
    return goes_on(t, next) | t->ends[next->low] << 1;
}

/* the second trie -------------------------------------------------------------------------------- */

size_t characters_bytes(const Characters *all) {
    return all ? all->bytes : 0;
}

/* The plain character at an offset, which is moved behind it; -1: there is none. */
static int32_t plain_character(const uint8_t *data, int32_t length, int32_t *at) {
    int32_t code = -1, inside = 0, end = *at;
    do inside = next_inside(inside, data[end++], &code);
    while (inside >> 28 == CHARACTER && end < length);
    if (inside) return -1;
    *at = end;
    return code;
}

/* Add the nodes of a token's plain characters, the first `*depth` of which have nodes already. Returns where they end; -1: no
 * memory. `path`: where each of them ends, and its node. */
static int32_t add_places(Characters *all, const uint8_t *data, int32_t length, int32_t (*path)[2], int32_t *depth) {
    int32_t at = path[*depth][0];
    while (at < length) {
        int32_t code = plain_character(data, length, &at);
        if (code < 0) break;
        Place *place = with_room(all->place, all->count + 2, &all->room, 1024, sizeof *place);
        if (!place) return -1;
        all->place = place, ++*depth;
        place[all->count] = (Place){code, *depth, 0, 0, 0};
        path[*depth][0] = at, path[*depth][1] = all->count++;
    }
    return at;
}

/* Number the characters in ascending order, and replace those in nodes by their numbers. */
static int number_codes(Characters *all) {
    int32_t *number = calloc(0x110000, sizeof *number);
    all->codes = malloc(all->count * sizeof *all->codes);
    if (!number || !all->codes) {
        free(number);
        return -1;
    }
    for (int32_t n = 1; n < all->count; n++) number[all->place[n].character] = 1;
    for (int32_t code = 0; code < 0x110000; code++)
        if (number[code]) number[code] = all->code_count, all->codes[all->code_count++] = code;
    for (int32_t n = 1; n < all->count; n++) all->place[n].character = number[all->place[n].character];
    free(number);
    return 0;
}

/* Sort the tokens to their nodes: into `ids` those that end at the offset, into the other list the rest. */
static int hold(const Tokens *tokens, Characters *all, const Part *found, int32_t count) {
    Place *place = all->place;
    int32_t wholes = 0, parts = 0;
    for (int32_t i = 0; i < count; i++) (*(found[i].offset == tokens->lengths[found[i].token] ? &place[found[i].node].whole : &place[found[i].node].part))++;
    for (int32_t n = 0; n < all->count; n++) { /* turn counts into start indices */
        int32_t whole = place[n].whole, part = place[n].part;
        place[n].whole = wholes, place[n].part = parts;
        wholes += whole, parts += part;
    }
    all->whole = malloc((wholes + 1) * sizeof *all->whole), all->parts = malloc((parts + 1) * sizeof *all->parts);
    if (!all->whole || !all->parts) return -1;
    for (int32_t i = 0; i < count; i++) { /* now the ends, which are the start indices of the next nodes */
        Place *of = &place[found[i].node];
        if (found[i].offset == tokens->lengths[found[i].token]) all->whole[of->whole++] = tokens->ids[found[i].token];
        else all->parts[of->part++] = found[i];
    }
    for (int32_t n = all->count; n > 0; n--) place[n].whole = place[n - 1].whole, place[n].part = place[n - 1].part;
    place[0].whole = place[0].part = 0;
    all->bytes = all->count * sizeof *place + wholes * sizeof *all->whole + parts * sizeof *all->parts;
    return 0;
}

static Characters *characters_of(const Tokens *tokens) {
    Characters *all = calloc(1, sizeof *all);
    Part *found = malloc((tokens->n + 1) * sizeof *found);
    int32_t(*path)[2] = calloc(tokens->longest + 2, sizeof *path), depth = 0;
    int failed = !all || !found || !path || !(all->place = calloc(2, sizeof *all->place));
    if (!failed) all->count = 1, all->room = 2;
    for (int32_t i = 0; i < tokens->n && !failed; i++) {
        const uint8_t *data = tokens->flat + tokens->offsets[i], *before = i ? tokens->flat + tokens->offsets[i - 1] : data;
        int32_t length = tokens->lengths[i], shared = 0, most = i ? tokens->lengths[i - 1] : 0;
        if (length < most) most = length;
        while (shared < most && data[shared] == before[shared]) shared++;
        for (; path[depth][0] > shared; depth--) all->place[path[depth][1]].end = all->count;
        int32_t at = add_places(all, data, length, path, &depth);
        failed = at < 0;
        found[i] = (Part){path[depth][1], i, at};
    }
    for (; !failed && depth >= 0; depth--) all->place[path[depth][1]].end = all->count;
    failed = failed || hold(tokens, all, found, tokens->n) < 0 || number_codes(all) < 0;
    free(found), free(path);
    if (failed) {
        characters_free(all);
        return no_memory();
    }
    Place *fitted = realloc(all->place, (all->count + 1) * sizeof *fitted);
    if (fitted) all->place = fitted;
    all->bytes += all->code_count * sizeof *all->codes;
    return all;
}

/* Compute the class of each of a vocabulary's characters. */
static int class_codes(Engine *e, JsonText *t) {
    Tokens *tokens = e->tokens;
    if (!tokens->characters && !(tokens->characters = characters_of(tokens))) return -1;
    const Characters *all = tokens->characters;
    int32_t *of_code = malloc((all->code_count + 1) * sizeof *of_code);
    if (!of_code) {
        no_memory();
        return -1;
    }
    for (int32_t i = 0, range = 0; i < all->code_count; i++) {
        while (range + 1 < t->ranges && t->starts[range + 1] <= all->codes[i]) range++;
        of_code[i] = t->of_range[range];
    }
    t->of_code = of_code;
    e->choices_bytes += all->code_count * sizeof *of_code;
    return 0;
}

/* Nodes that a table can't tell apart, while they are collected. */
typedef struct {
    int32_t parent, of; /* the key: parent, and class of the last character */
    int32_t depth, size, at;
} Alike;

/* List the tokens that the table can read by classes of their characters. How many; -1: on error, or if nodes are more than `most`. */
static int32_t list_alike(const Tokens *tokens, const JsonText *t, Index *index, Alike **alike, int32_t most, Part *found, int32_t *path) {
    const Characters *all = tokens->characters;
    int32_t count = 0;
    for (int32_t n = 0; n < all->count;) {
        const Place *place = &all->place[n];
        int32_t key[] = {n ? path[place->depth - 1] : -1, n ? t->of_code[place->character] : -1};
        if (n && key[1] < 0) {
            n = place->end;
            continue;
        }
        int32_t number = index_number(index, (void **)alike, sizeof **alike, key, sizeof key, most);
        if (number < 0) return -1;
        (*alike)[number].depth = place->depth;
        path[place->depth] = number;
        for (int32_t i = place->whole; i < place[1].whole; i++)
            found[count++] = (Part){number, tokens->ranks[all->whole[i]], tokens->lengths[tokens->ranks[all->whole[i]]]};
        for (int32_t i = place->part; i < place[1].part; i++) found[count++] = (Part){number, all->parts[i].token, all->parts[i].offset};
        n++;
    }
    return count;
}

/* Make the trie of character classes for a table, if it has few enough nodes; -1 on error. */
static int merge(Engine *e, JsonText *t) {
    const Tokens *tokens = e->tokens;
    Index index = {0};
    Alike *alike = NULL;
    Part *found = malloc((tokens->n + 1) * sizeof *found);
    int32_t *path = malloc((tokens->longest + 1) * sizeof *path), count = -1;
    if (found && path) count = list_alike(tokens, t, &index, &alike, tokens->characters->count / FEWER, found, path);
    else no_memory();
    Characters *merged = count < 0 ? NULL : calloc(1, sizeof *merged);
    int failed = count < 0 ? PyErr_Occurred() != NULL : !merged || !(merged->place = calloc(index.count + 1, sizeof *merged->place));
    for (int32_t n = index.count - 1; n >= 0 && merged && !failed; n--) {
        alike[n].size++;
        if (n) alike[alike[n].parent].size += alike[n].size;
    }
    for (int32_t n = 0; n < index.count && merged && !failed; n++) { /* `at` of a parent is the index of its next child */
        int32_t at = n ? alike[alike[n].parent].at : 0;
        if (n) alike[alike[n].parent].at += alike[n].size;
        merged->place[at] = (Place){alike[n].of, alike[n].depth, at + alike[n].size, 0, 0};
        alike[n].at = at + 1;
        alike[n].size = at;
    }
    if (merged && !failed) {
        for (int32_t i = 0; i < count; i++) found[i].node = alike[found[i].node].size;
        merged->count = index.count;
        failed = hold(tokens, merged, found, count) < 0;
    }
    if (failed) characters_free(merged), merged = NULL;
    if (failed && !PyErr_Occurred()) no_memory();
    free(found), free(path), free(alike), free(index.slots);
    if ((t->merged = merged)) e->choices_bytes += merged->bytes;
    return failed ? -1 : 0;
}

/* Emit a token if its bytes from `at` on can be read: from `c`, and, where the text may end among them, from the state `after`. */
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

/* try_part for all tokens below a node, whose own bytes were read. */
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

/* Emit the tokens that can be read from `c`: `state` has the first, and room for those after each character of a token. */
static int walk_characters(Walk *w, const JsonText *t, const Config *c, int32_t *state, int32_t rest) {
    const Characters *all = t->merged ? t->merged : w->engine->tokens->characters;
    const Place *places = all->place;
    const int32_t *of_code = t->merged ? NULL : t->of_code, *after = t->after, *fewest = t->fewest, *whole = all->whole;
    uint32_t *row = w->target->row; /* copies in locals: otherwise the compiler reads them again after each bit that is set */
    int32_t width = t->classes + 1, high = c->high < 0 ? INT32_MAX : c->high, count = all->count, emitted = 0;
    for (int32_t n = 0; n < count;) {
        const Place *place = &places[n];
        int32_t depth = place->depth;
        if (n) {
            int32_t of = of_code ? of_code[place->character] : place->character, to = of < 0 ? -1 : after[(size_t)state[depth - 1] * width + of];
            if (to < 0 || fewest[to] > high - depth) {
                n = place->end;
                continue;
            }
            state[depth] = to;
        }
        for (int32_t i = place->whole, end = place[1].whole; i < end; i++, emitted++) row[whole[i] >> 5] |= 1u << (whole[i] & 31);
        for (int32_t i = place->part; i < place[1].part; i++) {
            Config here = *c;
            here.low = state[depth], here.high = c->high < 0 ? -1 : high - depth;
            if (try_part(w, t, here, all->parts[i].token, all->parts[i].offset, n > 0, rest) < 0) return -1;
        }
        n++;
    }
    w->emitted += emitted;
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
        if (b != '"' && first[b >> 6] >> (b & 63) & 1) return 0; /* the text may end in several places */
    Vec from = {rest->configs, rest->n, 0};
    int32_t after = table_state(e, &from, 1);
    if (after < 0) return -1;
    if (c->depth || is_narrow(e, c)) return walk_below(w, t, c, node_at(e->tokens, ROOT), after) < 0 ? -1 : 1;
    if (!t->of_code && class_codes(e, t) < 0) return -1;
    if (t->walks++ == WALKS && e->choices_bytes <= e->max_row_bytes && merge(e, t) < 0) return -1; /* most bytes of such tries */
    int32_t *state = malloc((e->tokens->longest + 1) * sizeof *state), failed = 0;
    if (!state) {
        no_memory();
        return -1;
    }
    state[0] = c->low;
    failed = walk_characters(w, t, c, state, after) < 0;
    free(state);
    return failed ? -1 : 1;
}
