/* Free text without walking.
 *
 * Which tokens lie inside its set of characters depends on the set, on the node of the trie that the walk has come to, and on
 * how many characters are left, not on the grammar. So it is found once for a vocabulary, and kept for all grammars, in two
 * ways. What is left to try are the tokens in which, after characters of the set, something else stands.
 *
 * - Large sets (`permissive`): a base row of the tokens inside; the others are the set's outliers.
 * - Any set, where the text ends where a character outside the set stands (a run): the tokens inside, and the branches of the
 *   trie in which others leave the set (`Inside`). Digits and words are read so, and what is left of a character that a token
 *   has begun.
 */
#include "kernel.h"

#define ROW_COST 128 /* ids that take as long to emit as a row */
#define SMALL 1024    /* a subtree of so many tokens isn't worth a row */
#define MOST_BASES 512
#define MOST_INSIDE (8 << 20) /* bytes of what is kept of runs */

/* Where `token` stands, or would stand, among outliers[begin … end - 1], which are in the order of their tokens. */
static int32_t outlier_at(const TextSet *set, int32_t begin, int32_t end, int32_t token) {
    while (begin < end) {
        int32_t middle = begin + (end - begin) / 2;
        if (set->outliers[middle].token < token) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

/* The outliers of one byte among the tokens low … high - 1: outliers[*first … end - 1]; `end` is returned. Half 0: those that
 * end with the byte, half 1: the others. */
static int32_t outlier_range(const TextSet *set, int byte, int half, int32_t low, int32_t high, int32_t *first) {
    int32_t begin = half ? set->outlier_longer[byte] : set->outlier_start[byte];
    int32_t end = half ? set->outlier_start[byte + 1] : set->outlier_longer[byte];
    if (begin == end) return *first = end;
    *first = outlier_at(set, begin, end, low);
    return set->outliers[end - 1].token < high ? end : outlier_at(set, *first, end, high);
}

/* How many characters begin in a token's bytes from `begin` to `end`. */
static int32_t begun_between(const Tokens *t, int32_t token, int32_t begin, int32_t end) {
    const uint8_t *data = t->flat + t->offsets[token];
    int32_t count = 0;
    for (int32_t i = begin; i < end; i++) count += (data[i] & 0xC0) != 0x80;
    return count;
}

static int32_t characters(const Tokens *t, const Node *node) {
    return begun_between(t, node->low, 0, node->depth);
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
    int32_t i, end = outlier_range(set, 0, 1, low, node->high, &i);
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
    if (number == ROOT && most < 0) {
        memcpy(row, t->sets[set]->row, t->words * sizeof *row);
        for (int32_t i = 0; i < t->sets[set]->outlier_start[1]; i++) {
            const Outlier *outlier = &t->sets[set]->outliers[i];
            int32_t id = outlier->id;
            if (outlier->offset < 0) row[id >> 5] |= 1u << (id & 31);
        }
    } else if (number == ROOT) { /* take the long ones away from the whole */
        const uint32_t *whole = base_row(t, ROOT, set, -1);
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
    return base_row(e->tokens, ROOT, set_of(e, c), most_characters(e->tokens, c, 0));
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
        for (int half = 0; half < 2; half++) {
            int32_t i, end = outlier_range(set, byte, half, node->low + node->ends, node->high, &i);
            for (; i < end; i++) {
                const Outlier outlier = set->outliers[i];
                if (outlier.before > before && try_aside(w, c, outlier.token, outlier.offset, outlier.before - before) < 0)
                    return -1;
            }
        }
    }
    return 0;
}

/* As try_sorted, for a token from the byte after that with which it leaves its set: nearly always the bytes beside it tell. */
static int try_outlier(Walk *w, const Outlier *outlier, int32_t state) {
    for (int i = 0; i < OUTLIER_BYTES; i++) {
        uint8_t byte = outlier->after[i];
        if (i == outlier->left - 2) {
            const uint64_t *next = table_first(w->engine, state);
            return !next ? -1 : next[byte >> 6] >> (byte & 63) & 1 ? emit(w, outlier->id) : 0;
        }
        int32_t after = table_step(w->engine, state, byte);
        if (after == NO_ROOM) return try_sorted(w, outlier->token, outlier->offset + 1 + i, state);
        if (after < 0 || after == DEAD) return after < 0 ? -1 : 0;
        state = after;
    }
    return try_sorted(w, outlier->token, outlier->offset + OUTLIER_BYTES + 1, state);
}

/* Whether a text may end before an outlier's byte, `before` characters of which are read already. */
static inline int may_end(const Config *c, const Outlier *outlier, int32_t before) {
    int32_t taken = outlier->before - before;
    return outlier->offset >= 0 && taken > 0 && taken >= c->low && (c->high < 0 || taken <= c->high);
}

/* Try the outliers of one byte below a node, `before` of whose characters are read. `state` is what follows the text, and reads
 * that byte. There may be a thousand: those that end with it need no look, and nearly all others fail at the next byte. */
static int try_outliers(Walk *w, const TextSet *set, const Config *c, int byte, const Node *node, int32_t before, int32_t state) {
    int32_t low = node->low + node->ends, i, end = outlier_range(set, byte, 0, low, node->high, &i);
    if (!node->depth && c->low <= 1 && c->high < 0) {
        if (emit_all(w, set->outlier_ids + i, end - i) < 0) return -1;
    } else {
        for (; i < end; i++)
            if (may_end(c, &set->outliers[i], before) && emit(w, set->outliers[i].id) < 0) return -1;
    }
    end = outlier_range(set, byte, 1, low, node->high, &i);
    if (i == end) return 0;
    int32_t after = table_step(w->engine, state, (uint8_t)byte);
    const uint64_t *next = after >= DEAD ? table_first(w->engine, after) : NULL;
    if (after == FAILED || (after >= DEAD && !next)) return -1;
    for (; i < end; i++) {
        const Outlier *outlier = &set->outliers[i];
        uint8_t second = outlier->after[0];
        if ((next && !(next[second >> 6] >> (second & 63) & 1)) || !may_end(c, outlier, before)) continue;
        int failed = next ? try_outlier(w, outlier, after) : try_sorted(w, outlier->token, outlier->offset, state);
        if (failed) return -1;
    }
    return 0;
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
    for (int k = 0; k < 4 && !open; k++)
        for (uint64_t bits = first[k]; bits; bits &= bits - 1)
            if (try_outliers(w, set, c, k * 64 + lowest_bit(bits), node, before, state) < 0) return -1;
    for (int byte = 0; byte < 256 && open; byte++) {
        for (int half = 0; half < 2; half++) {
            int32_t i, end = outlier_range(set, byte, half, low, node->high, &i);
            for (; i < end; i++)
                if (try_sorted(w, set->outliers[i].token, node->depth, state) < 0) return -1;
        }
    }
    return 0;
}

/* Free text somewhere inside a token, at a node whose own bytes are whole characters of the set. */
static int free_text(Walk *w, const Node *node, const Config *c) {
    Tokens *t = w->engine->tokens;
    int32_t number = node_number(t, node);
    Target *target = w->target;
    TextSet *set = t->sets[set_of(w->engine, c)];
    int32_t most = most_characters(t, c, characters(t, node));
    int open = ambiguous(w->engine, set, c->rest);
    if (open < 0) return -1;
    if (node->high - node->low > SMALL) {
        const uint32_t *base = base_row(t, number, set_of(w->engine, c), most);
        if (!base) return -1;
        set_row(target, base);
        w->emitted += ROW_COST;
    } else {
        write_base(t, set, node, most, target->row);
        w->emitted += node->high - node->low;
    }
    target->touched_count = -1;
    return text_others(w, node, c, open);
}

/* Whether the node's own bytes are whole characters of the set, so that `free` tells of what follows them. */
static int stays_inside(Tokens *t, TextSet *set, const Node *node) {
    const uint8_t *data = t->flat + t->offsets[node->low];
    int state = 0;
    for (int32_t i = 0; i < node->depth && state >= 0; i++) {
        if (!set->known[state] && text_expand(set, state) < 0) return -1;
        state = set->next[state][data[i]];
    }
    return state == 0;
}

/* What is kept of a run of characters below a node: how many tokens stay in the set, their ids (sort_by_characters), and
 * the branches in which others leave the set; if the tokens are many, a row of them, too. */
typedef struct {
    int32_t count, branches;
    int32_t row;     /* words of the row, or 0 */
    uint32_t data[]; /* ids, branches, row */
} Inside;

static Branch *branches_of(const Inside *inside) {
    return (Branch *)(inside->data + inside->count);
}

static uint32_t *row_of(const Inside *inside) {
    return (uint32_t *)(branches_of(inside) + inside->branches);
}

/* List the tokens below a node that stay in the set, in whose `state` the node is; push a branch where others leave it after
 * a character. `begin`: the depth at which the run began. */
static int list_inside(Walk *w, TextSet *set, const Node *node, int state, int32_t begin, Target *found) {
    const Tokens *t = w->engine->tokens;
    if (!set->known[state] && text_expand(set, state) < 0) return -1;
    for (int i = 0; i < node->count; i++) {
        Branch branch = {CHILD_BYTE(node->child[i]), 0, node->child[i], node->depth};
        const Leaf *leaf = CHILD_IS_TOKEN(branch.child) ? leaf_at(t, branch.child) : NULL;
        int last = state, next = set->next[state][branch.low];
        while (leaf && next >= 0 && ++branch.high < leaf->length) {
            if (!set->known[next] && text_expand(set, next) < 0) return -1;
            last = next, branch.low = leaf->bytes[branch.high], next = set->next[last][branch.low];
        }
        int failed = 0;
        if (next < 0) {
            if (last == 0 && node->depth + branch.high > begin) failed = push_branch(w, branch);
        } else if (leaf) {
            failed = list_id(found, leaf->id);
        } else {
            const Node *below = node_at(t, CHILD_AT(branch.child));
            for (int32_t k = 0; k < below->ends && !failed; k++) failed = list_id(found, t->ids[below->low + k]);
            if (!failed) failed = list_inside(w, set, below, next, begin, found);
        }
        if (failed) return -1;
    }
    return 0;
}

/* How many characters begin in the token of an id. */
static int32_t begun_in(const Tokens *t, uint32_t id) {
    return begun_between(t, t->ranks[id], 0, t->lengths[t->ranks[id]]);
}

/* List ids by the characters that begin in their tokens, fewest first. 0: no memory. */
static int sort_by_characters(const Tokens *t, const Target *found, uint32_t *ids) {
    int32_t *end = calloc(t->longest + 2, sizeof *end);
    for (int32_t i = 0; end && i < found->listed; i++) end[begun_in(t, found->list[i]) + 1]++;
    for (int32_t count = 0; end && count <= t->longest; count++) end[count + 1] += end[count];
    for (int32_t i = 0; end && i < found->listed; i++) ids[end[begun_in(t, found->list[i])]++] = (uint32_t)found->list[i];
    free(end);
    return end != NULL;
}

/* What a run of characters allows below a node, whatever its bounds and what follows it: kept for all grammars. NULL on error. */
static const Inside *inside_of(Walk *w, const Node *node, const Config *c) {
    Tokens *t = w->engine->tokens;
    Config key = {TEXT, c->object, node_number(t, node), c->depth, 0, 0};
    Inside *kept = map_get(&t->inside, &key);
    if (kept || read_only) return kept;
    Target found = {.touched_count = -1};
    int32_t begin = w->branch_count, failed = list_inside(w, t->sets[c->object], node, c->depth, node->depth, &found);
    int32_t row = found.listed > t->words / 4 ? t->words : 0, branches = w->branch_count - begin;
    size_t bytes = sizeof *kept + (found.listed + row) * sizeof(uint32_t) + branches * sizeof(Branch);
    w->branch_count = begin;
    if (!failed && (!(kept = calloc(1, bytes)) || !sort_by_characters(t, &found, kept->data))) free(kept), kept = NULL, no_memory();
    if (kept) {
        kept->count = found.listed, kept->branches = branches, kept->row = row;
        if (branches) memcpy(branches_of(kept), w->branches + begin, branches * sizeof(Branch));
        for (int32_t i = 0; row && i < found.listed; i++) row_of(kept)[found.list[i] >> 5] |= 1u << (found.list[i] & 31);
        if (t->inside_bytes + bytes > MOST_INSIDE) map_clear(&t->inside, 1), t->inside_bytes = 0;
        Inside *before = map_get(&t->inside, &key); /* another thread's, while Python ran */
        if (before || map_put(&t->inside, &key, kept) < 0) free(kept), kept = before;
        else t->inside_bytes += bytes;
    }
    free(found.list);
    return kept;
}

/* How many of the tokens that stay in the set have no more than `most` characters that begin in them. */
static int32_t short_ones(const Tokens *t, const Inside *inside, int32_t most) {
    int32_t low = 0, high = inside->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (begun_in(t, inside->data[middle]) <= most) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Emit what a run of characters and what follows it allow below a node. One that allows many counts as emitted, so that its
 * mask is kept the next time. */
static int read_run(Walk *w, const Node *node, const Config *c) {
    const Tokens *t = w->engine->tokens;
    Closure *rest = closure_of(w->engine, c->rest);
    const uint64_t *first = rest ? closure_first(w->engine, rest) : NULL;
    const Inside *inside = first ? inside_of(w, node, c) : NULL;
    if (!inside) return -1;
    const Branch *ends = branches_of(inside);
    int32_t begin = w->branch_count, begun = c->depth ? 1 : 0, bounded = c->high >= 0 || c->low > 1;
    int32_t most = most_characters(t, c, characters(t, node) - begun), count = most < 0 ? inside->count : short_ones(t, inside, most);
    w->emitted += count, w->visits++;
    if (inside->row && count == inside->count) set_row(w->target, row_of(inside));
    else if (emit_all(w, inside->data, count) < 0) return -1;
    for (int32_t i = 0; i < inside->branches; i++) { /* those that go on: other runs, which are read meanwhile, may forget `inside` */
        Branch branch = ends[i];
        if (!(first[branch.low >> 6] >> (branch.low & 63) & 1)) continue;
        if (bounded) {
            int32_t last, token = tokens_below(t, branch.child, &last);
            int32_t taken = begun + begun_between(t, token, node->depth, branch.depth + branch.high);
            if (taken < c->low || (c->high >= 0 && taken > c->high)) continue;
        }
        if (push_branch(w, branch) < 0) return -1;
    }
    Vec after = {rest->configs, rest->n, rest->n};
    int32_t failed = 0, state = UNKNOWN;
    for (int32_t i = begin, many = w->branch_count; i < many && !failed; i++) failed = visit_after(w, w->branches[i], &after, &state);
    w->branch_count = begin;
    return failed;
}

/* Emit what free text, a position of those before a node, allows below it: 1. 0: it is to be walked. */
int read_text(Walk *w, const Node *node, const Config *c) {
    Engine *e = w->engine;
    TextSet *set = e->tokens->sets[set_of(e, c)];
    /* a run that is over where something else than a character of its set stands: not open */
    int open = c->kind == LOOP ? 1 : ambiguous(e, set, c->rest), bounded = c->high >= 0 || c->low > 1;
    if (open < 0) return -1;
    if (node->depth && !c->depth && (open || bounded || node->high - node->low > SMALL)) {
        if (text_index(e->tokens, set) < 0) return -1;
        int inside = set->permissive ? stays_inside(e->tokens, set, node) : 0;
        if (inside) return inside < 0 || free_text(w, node, c) < 0 ? -1 : 1;
    }
    if (open || (c->high == 1 && !c->depth)) return 0; /* one character is soon stepped over */
    return read_run(w, node, c) < 0 ? -1 : 1;
}

/* which positions are alike ---------------------------------------------------------------------- */

/* Whether the rest can begin with a character of the set: then where the text ends is open. */
int ambiguous(Engine *e, TextSet *set, int32_t rest) {
    if (text_expand(set, 0) < 0) return -1;
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

