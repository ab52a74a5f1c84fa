/* Free text without walking: nearly all tokens lie inside its set of characters.
 *
 * Which ones, of those that begin as some node of the trie does, depends on the set and on the characters
 * left, not on the grammar: such base rows are made once for a vocabulary. What is left to try are the
 * tokens in which a character outside the set stands (outliers), where the grammar goes on after the text.
 */
#include "kernel.h"

#define ROW_COST 128 /* ids that take as long to emit as a row */
#define SMALL 1024    /* a subtree of so many tokens isn't worth a row */
#define MOST_BASES 512

/* The set's outliers of one byte among the tokens low … high - 1: outliers[*first … end - 1]; `end` is returned. */
static int32_t outlier_range(const TextSet *set, int byte, int32_t low, int32_t high, int32_t *first) {
    int32_t begin = set->outlier_start[byte], end = set->outlier_start[byte + 1], stop = end;
    while (begin < stop) {
        int32_t middle = begin + (stop - begin) / 2;
        if (set->outliers[middle].token < low) begin = middle + 1;
        else stop = middle;
    }
    *first = begin;
    if (begin < end && set->outliers[end - 1].token < high) return end;
    for (stop = end, end = begin; end < stop;) {
        int32_t middle = end + (stop - end) / 2;
        if (set->outliers[middle].token < high) end = middle + 1;
        else stop = middle;
    }
    return end;
}

static int32_t characters(const Tokens *t, const Node *node) {
    const uint8_t *data = t->flat + t->offsets[node->low];
    int32_t count = 0;
    for (int32_t i = 0; i < node->depth; i++) count += (data[i] & 0xC0) != 0x80;
    return count;
}

/* Write the tokens below a node, of at most `most` characters (-1: any number), that stay in the set. */
static void write_base(const Tokens *t, const TextSet *set, const Node *node, int32_t most, uint32_t *row) {
    const int32_t *ids = t->ids, *chars = t->chars;
    const uint8_t *inside = set->free;
    int32_t low = node->low + node->ends;
    for (int32_t token = low; token < node->high; token++) { /* tens of thousands, perhaps: nothing but the bit */
        uint32_t in = inside[token] & (most < 0 || chars[token] <= most);
        row[ids[token] >> 5] |= in << (ids[token] & 31);
    }
    int32_t i, end = outlier_range(set, 0, low, node->high, &i);
    for (; i < end; i++) {
        const Outlier *outlier = &set->outliers[i]; /* one that ends inside a character of the set */
        if (outlier->offset < 0 && (most < 0 || outlier->before < most)) row[outlier->id >> 5] |= 1u << (outlier->id & 31);
    }
}

/* The same as a row, kept; it stays valid until the next is made. */
static const uint32_t *base_row(Tokens *t, int32_t number, int32_t set, int32_t most) {
    Config key = {TEXT, set, number, most, 0, 0};
    uint32_t *row = map_get(&t->bases, &key);
    if (row || read_only) return row;
    if (t->bases.used >= MOST_BASES) map_clear(&t->bases, 1);
    if (!(row = calloc(t->words, sizeof *row))) {
        no_memory();
        return NULL;
    }
    if (number == 0 && most < 0) {
        memcpy(row, t->sets[set]->row, t->words * sizeof *row);
        for (int32_t i = 0; i < t->sets[set]->outlier_start[1]; i++) {
            const Outlier *outlier = &t->sets[set]->outliers[i];
            int32_t id = outlier->id;
            if (outlier->offset < 0) row[id >> 5] |= 1u << (id & 31);
        }
    } else if (number == 0) { /* take the long ones away from the whole */
        const uint32_t *whole = base_row(t, 0, set, -1);
        if (!whole) {
            free(row);
            return NULL;
        }
        memcpy(row, whole, t->words * sizeof *row);
        for (int32_t i = t->chars_end[most]; i < t->chars_end[t->longest]; i++) {
            int32_t id = t->ids[t->by_chars[i]];
            row[id >> 5] &= ~(1u << (id & 31));
        }
        for (int32_t i = 0; i < t->sets[set]->outlier_start[1]; i++) {
            const Outlier *outlier = &t->sets[set]->outliers[i];
            int32_t id = outlier->id;
            if (outlier->offset < 0 && outlier->before >= most) row[id >> 5] &= ~(1u << (id & 31));
        }
    } else {
        write_base(t, t->sets[set], node_at(t, number), most, row);
    }
    if (map_put(&t->bases, &key, row) < 0) {
        free(row);
        return NULL;
    }
    return row;
}

/* The most characters a token may have at the node to stay in the text; -1: any number. */
static int32_t most_characters(const Tokens *t, const Config *c, int32_t before) {
    return c->high < 0 || c->high + before >= t->longest ? -1 : c->high + before;
}

const uint32_t *text_base(const Engine *e, const Config *c) {
    return base_row(e->tokens, 0, set_of(e, c), most_characters(e->tokens, c, 0));
}

/* Try a token in which, after so many characters, something else stands that a loop reads. */
static int try_aside(Walk *w, const Config *c, int32_t token, int32_t offset, int32_t taken) {
    if (taken < 0 || (c->high >= 0 && taken >= c->high)) return 0;
    Config at = *c;
    at.low = taken < c->low ? c->low - taken : 0;
    if (c->high >= 0) at.high = c->high - taken;
    Closure *other = closure_aside(w->engine, &at);
    Vec from = {other ? other->configs : NULL, other ? other->n : 0, 0};
    int32_t state = other ? table_state(w->engine, &from, 1) : FAILED;
    return state < 0 ? -1 : try_sorted(w, token, offset, state);
}

/* Try the tokens below the node in which something else than characters stands, that a loop reads. */
static int loop_others(Walk *w, const Node *node, const Config *c, int32_t before) {
    const Tokens *t = w->engine->tokens;
    const TextSet *set = t->sets[set_of(w->engine, c)];
    for (int byte = 0; byte < 256; byte++) {
        if (!begins_aside(w->engine, c, byte)) continue;
        uint32_t child;
        if (find_child(node, (uint8_t)byte, &child)) {
            int32_t end, token = tokens_below(t, child, &end);
            for (; token < end; token++)
                if (try_aside(w, c, token, node->depth, 0) < 0) return -1;
        }
        int32_t i, end = outlier_range(set, byte, node->low + node->ends, node->high, &i);
        for (; i < end; i++) {
            const Outlier outlier = set->outliers[i];
            if (outlier.before > before && try_aside(w, c, outlier.token, outlier.offset, outlier.before - before) < 0)
                return -1;
        }
    }
    return 0;
}

/* As try_sorted, for a token from where it leaves its set: nearly always the bytes beside it tell. */
static int try_outlier(Walk *w, const Outlier *outlier, int32_t state) {
    for (int i = 0; i <= OUTLIER_BYTES; i++) {
        uint8_t byte = i ? outlier->after[i - 1] : outlier->byte;
        if (i == outlier->left - 1) {
            const uint64_t *next = table_first(w->engine, state);
            return !next ? -1 : next[byte >> 6] >> (byte & 63) & 1 ? emit(w, outlier->id) : 0;
        }
        int32_t after = table_step(w->engine, state, byte);
        if (after == NO_ROOM) return try_sorted(w, outlier->token, outlier->offset + i, state);
        if (after < 0 || after == DEAD) return after < 0 ? -1 : 0;
        state = after;
    }
    return try_sorted(w, outlier->token, outlier->offset + OUTLIER_BYTES + 1, state);
}

/* Try the tokens below the node that leave the text, or may: its set isn't all they take. */
int text_others(Walk *w, const Node *node, const Config *c, int open) {
    Engine *e = w->engine;
    Tokens *t = e->tokens;
    TextSet *set = t->sets[set_of(e, c)];
    Closure *rest = closure_of(e, c->rest);
    const uint64_t *first = rest ? closure_first(e, rest) : NULL;
    if (!first) return -1;
    int32_t before = characters(t, node), low = node->low + node->ends, most = most_characters(t, c, before);
    Vec from = {open ? (Config *)c : rest->configs, open ? 1 : rest->n, 0};
    int32_t state = table_state(e, &from, 1);
    if (state < 0) return -1;
    if (open && c->kind == LOOP) return visit_from(w, node, state);
    if (open) { /* the text may end anywhere: read every token that isn't free */
        int32_t longer = node->depth || most < 0 ? 0 : t->chars_end[t->longest] - t->chars_end[most];
        if (longer + set->outlier_count > t->n / 8) return visit_from(w, node, state);
        for (int32_t token = low; most >= 0 && token < node->high; token++)
            if (set->free[token] && t->chars[token] > most && try_sorted(w, token, node->depth, state) < 0) return -1;
    }
    if (!open && c->kind == LOOP && loop_others(w, node, c, before) < 0) return -1;
    for (int byte = 0; byte < 256; byte++) {
        if (!open && !(first[byte >> 6] >> (byte & 63) & 1)) continue;
        int32_t i, end = outlier_range(set, byte, low, node->high, &i);
        for (; i < end; i++) {
            const Outlier *outlier = &set->outliers[i];
            int32_t taken = outlier->before - before;
            if (open) {
                if (try_sorted(w, outlier->token, node->depth, state) < 0) return -1;
            } else if (outlier->offset >= 0 && taken >= c->low && taken > 0 && (c->high < 0 || taken <= c->high)) {
                if (try_outlier(w, outlier, state) < 0) return -1;
            }
        }
    }
    return 0;
}

/* Free text somewhere inside a token, at a node whose own bytes are whole characters of the set. */
int free_text(Walk *w, int32_t number, const Config *c) {
    Tokens *t = w->engine->tokens;
    const Node *node = node_at(t, number);
    Target *target = w->target;
    TextSet *set = t->sets[set_of(w->engine, c)];
    int32_t most = most_characters(t, c, characters(t, node));
    int open = ambiguous(w->engine, set, c->rest);
    if (open < 0) return -1;
    if (node->high - node->low > SMALL) {
        const uint32_t *base = base_row(t, number, set_of(w->engine, c), most);
        if (!base) return -1;
        for (int32_t i = 0; i < target->words; i++) target->row[i] |= base[i];
        w->emitted += ROW_COST;
    } else {
        write_base(t, set, node, most, target->row);
        w->emitted += node->high - node->low;
    }
    target->touched_count = -1;
    return text_others(w, node, c, open);
}

/* which positions are alike ---------------------------------------------------------------------- */

/* Whether the rest can begin with a character of the set: then where the text ends is open. */
int ambiguous(Engine *e, TextSet *set, int32_t rest) {
    Closure *closure = closure_of(e, rest);
    const uint64_t *first = closure ? closure_first(e, closure) : NULL;
    if (!first) return -1;
    for (int k = 0; k < 4; k++)
        if (set->first[0][k] & first[k]) return 1;
    return 0;
}

/* The position that stands for all with the same row. */
int canonical(Engine *e, const Config *c, TextSet *set, int open, Config *key) {
    int32_t reach = e->tokens->longest + 1;
    *key = *c;
    if ((key->rest = capped_frame(e, c->rest)) < 0) return -1;
    if (key->low < 1) key->low = 1; /* one character is read in any case */
    if (key->low > reach) key->low = reach;
    if (key->high > reach) key->high = reach;
    if (key->high >= 0 && key->high < key->low) key->high = key->low;
    if (!open && c->kind == TEXT) /* only counts that some token takes can matter */
        while (key->high > 0 && !set->counts[key->high]) key->high--;
    return 0;
}

