/* Masks of free text (runs of characters of one set) without walking all its tokens.
 *
 * Which tokens consist of characters of the set depends on the set, the current node of the trie, and how many characters may
 * still come, but not on the grammar. So it is computed once for a vocabulary and cached for all grammars. Only the tokens that
 * continue after the text with other bytes must be tried. There are two forms:
 *
 * - Large sets (`permissive`): a base row of the tokens inside the set; all other tokens are the set's outliers.
 * - Any set, if what follows the text can't begin with a character of the set: the tokens inside, and the branches of the trie in
 *   which tokens leave the set (`Inside`). It is used for digits and words, and for the rest of a character that a token has begun.
 */
#include "kernel.h"

#define ROW_COST 128 /* emitting so many ids takes as long as copying a row */
#define SMALL 1024    /* for a subtree of at most so many tokens no row is cached */
#define MOST_BASES 512
#define MOST_INSIDE (8 << 20) /* most bytes of cached `Inside` objects */

/* The index of the first outlier among outliers[begin … end - 1], sorted by token, whose token is `token` or greater. */
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

/* The number of characters whose first byte is among a token's bytes from `begin` to `end`. */
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
    for (int32_t token = low; token < node->high; token++) { /* may run tens of thousands of times */
        uint32_t in = inside[token] & (most < 0 || chars[token] <= most);
        row[ids[token] >> 5] |= in << (ids[token] & 31);
    }
    int32_t i, end = outlier_range(set, 0, 1, low, node->high, &i);
    for (; i < end; i++) {
        const Outlier *outlier = &set->outliers[i]; /* tokens that end inside a character of the set */
        if (outlier->offset < 0 && (most < 0 || outlier->before < most)) row[outlier->id >> 5] |= 1u << (outlier->id & 31);
    }
}

/* write_base as a cached row, which is valid until another is made. */
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

/* Try a token in which, after `taken` characters, a loop's other alternative begins at `offset`. */
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

/* Try the tokens below the node that contain a loop's other alternative. */
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

/* try_sorted for an outlier, after the byte with which it leaves the set. The copied bytes in `after` nearly always decide. */
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

/* Whether the text may end before the byte with which an outlier leaves the set; `before` of its characters were read before. */
static inline int may_end(const Config *c, const Outlier *outlier, int32_t before) {
    int32_t taken = outlier->before - before;
    return outlier->offset >= 0 && taken > 0 && taken >= c->low && (c->high < 0 || taken <= c->high);
}

/* Try the outliers of one byte below a node that is `before` characters deep. `state` is the state after the text; it reads the
 * byte. There may be a thousand outliers: those that end with the byte are allowed, nearly all others fail at the next byte. */
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

/* Try the tokens below the node that the base row doesn't decide: those that leave the set, or may leave the text. */
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
    if (open) { /* the text may end anywhere: try every token that isn't in the base row */
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

/* Emit the tokens below a node whose own bytes are whole characters of the set. */
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

/* Whether the node's own bytes are whole characters of the set, so that `free` is valid for the tokens below it. */
static int stays_inside(Tokens *t, TextSet *set, const Node *node) {
    const uint8_t *data = t->flat + t->offsets[node->low];
    int state = 0;
    for (int32_t i = 0; i < node->depth && state >= 0; i++) {
        if (!set->known[state] && text_expand(set, state) < 0) return -1;
        state = set->next[state][data[i]];
    }
    return state == 0;
}

/* The tokens of a run of characters below a node: the ids of those that stay in the set (in the order of sort_by_characters), the
 * branches in which others leave the set, and, if the ids are many, also a row of them. */
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

/* List the tokens below a node that stay in the set; push a branch where others leave it after a whole character. `state`: the
 * node's state in the set; `begin`: the depth at which the run began. */
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

/* The number of characters that begin in the token with an id. */
static int32_t begun_in(const Tokens *t, uint32_t id) {
    return begun_between(t, t->ranks[id], 0, t->lengths[t->ranks[id]]);
}

/* Sort ids by the number of characters that begin in their tokens. 0: no memory. */
static int sort_by_characters(const Tokens *t, const Target *found, uint32_t *ids) {
    int32_t *end = calloc(t->longest + 2, sizeof *end);
    for (int32_t i = 0; end && i < found->listed; i++) end[begun_in(t, found->list[i]) + 1]++;
    for (int32_t count = 0; end && count <= t->longest; count++) end[count + 1] += end[count];
    for (int32_t i = 0; end && i < found->listed; i++) ids[end[begun_in(t, found->list[i])]++] = (uint32_t)found->list[i];
    free(end);
    return end != NULL;
}

/* The cached `Inside` of a run of characters below a node, for any bounds and any grammar. NULL on error. */
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
        Inside *before = map_get(&t->inside, &key); /* cached by another thread while Python code ran */
        if (before || map_put(&t->inside, &key, kept) < 0) free(kept), kept = before;
        else t->inside_bytes += bytes;
    }
    free(found.list);
    return kept;
}

/* The number of tokens that stay in the set and in which at most `most` characters begin. */
static int32_t short_ones(const Tokens *t, const Inside *inside, int32_t most) {
    int32_t low = 0, high = inside->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (begun_in(t, inside->data[middle]) <= most) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Emit the tokens below a node that a run of characters and what follows it allow. Copied rows count as emitted tokens, so that
 * the mask is worth caching the next time. */
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
    for (int32_t i = 0; i < inside->branches; i++) { /* copy the branches first: reading other runs may evict `inside` from the cache */
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

/* Emit the tokens below a node that a position in free text allows: 1: done; 0: the position must be walked; -1: an error. */
int read_text(Walk *w, const Node *node, const Config *c) {
    Engine *e = w->engine;
    TextSet *set = e->tokens->sets[set_of(e, c)];
    /* open: what follows may begin with a character of the set, so that the end of the text is ambiguous */
    int open = c->kind == LOOP ? 1 : ambiguous(e, set, c->rest), bounded = c->high >= 0 || c->low > 1;
    if (open < 0) return -1;
    if (node->depth && !c->depth && (open || bounded || node->high - node->low > SMALL)) {
        if (text_index(e->tokens, set) < 0) return -1;
        int inside = set->permissive ? stays_inside(e->tokens, set, node) : 0;
        if (inside) return inside < 0 || free_text(w, node, c) < 0 ? -1 : 1;
    }
    if (open || (c->high == 1 && !c->depth)) return 0; /* for a single character a walk is fast */
    return read_run(w, node, c) < 0 ? -1 : 1;
}

/* positions with equal masks ---------------------------------------------------------------------- */

/* Whether what follows can begin with a character of the set, so that the end of the text is ambiguous. */
int ambiguous(Engine *e, TextSet *set, int32_t rest) {
    if (text_expand(set, 0) < 0) return -1;
    Closure *closure = closure_of(e, rest);
    const uint64_t *first = closure ? closure_first(e, closure) : NULL;
    if (!first) return -1;
    for (int k = 0; k < 4; k++)
        if (set->first[0][k] & first[k]) return 1;
    return 0;
}

/* The representative of all positions with the same row. */
int canonical(Engine *e, const Config *c, TextSet *set, int open, Config *key) {
    int32_t reach = e->tokens->longest + 1;
    *key = *c;
    if ((key->rest = capped_frame(e, c->rest)) < 0) return -1;
    if (key->low < 1) key->low = 1; /* a token has at least one character */
    if (key->low > reach) key->low = reach;
    if (key->high > reach) key->high = reach;
    if (key->high >= 0 && key->high < key->low) key->high = key->low;
    if (!open && c->kind == TEXT) /* lower `high` to a count that some token has */
        while (key->high > 0 && !set->counts[key->high]) key->high--;
    return 0;
}

