/* Token masks: which tokens may come next. */
#include "kernel.h"

#define PROMOTE 32 /* the mask of a position whose walk costs more than this is cached: as ids, */
#define HEAVY 512  /* or, of more tokens than this, as a row */
#define VISIT 12   /* the cost of visiting a node, relative to emitting a token */
#define CROWD 8    /* so many runs of free text in one state are walked together, instead of caching a row for each */
#define FEW 16     /* positions that fit on the C stack */
#define LISTED 32  /* setting so many ids is faster than copying a row */
#define SEVERAL 4  /* fewest values of which the masks are computed when a grammar is compiled */
#define FIRST 24   /* most masks computed then */

/* Placeholders for masks that aren't cached: of a position seen once, to be cached when it is seen again; of one not worth it. */
static CachedMask wanted = {.count = -2}, tried = {.count = -2};

static size_t row_size(const Engine *e) {
    return sizeof(CachedMask) + e->tokens->words * sizeof(uint32_t);
}

/* A row with the bits of `base` (NULL: none); NULL on error. */
static CachedMask *new_row(Engine *e, const uint32_t *base) {
    CachedMask *row = spare_take(&e->tokens->rows, row_size(e));
    if (!row) return no_memory();
    row->count = -1;
    if (base) memcpy(row->data, base, e->tokens->words * sizeof(uint32_t));
    else memset(row->data, 0, e->tokens->words * sizeof(uint32_t));
    return row;
}

static void free_mask(Engine *e, CachedMask *kept) {
    if (kept == &wanted || kept == &tried) return;
    if (kept && kept->count < 0) spare_give(&e->tokens->rows, kept, row_size(e));
    else free(kept);
}

/* Clear the cache of masks. */
void forget_masks(Engine *e) {
    for (size_t i = 0; i < e->rows.room; i++)
        if (e->rows.slots[i].key.kind) free_mask(e, e->rows.slots[i].value);
    map_clear(&e->rows, 0);
}

/* The cached mask of `key`, or NULL. */
static const CachedMask *recall(const Engine *e, const Config *key) {
    const CachedMask *kept = map_get(&e->rows, key);
    return kept == &wanted || kept == &tried ? NULL : kept;
}

/* Clear the cache if it has no room for so many more bytes; masks in use are soon cached again. */
static void make_room(Engine *e, size_t bytes) {
    if (e->row_bytes + e->rows.room * sizeof(Slot) + bytes <= e->max_row_bytes) return;
    forget_masks(e);
    e->row_bytes = 0;
}

/* Cache a mask under `key`; return the cached one, which may be another thread's. NULL on error. */
static CachedMask *store(Engine *e, const Config *key, CachedMask *kept, size_t bytes) {
    assert(!read_only);
    make_room(e, bytes);
    const CachedMask *before = recall(e, key); /* cached by another thread while Python code ran */
    if (before || map_put(&e->rows, key, kept) < 0) {
        free_mask(e, kept);
        return (CachedMask *)before;
    }
    e->row_bytes += bytes;
    e->rows_made++;
    return kept;
}

/* Cache the ids listed in `found`; if they are so many that a row is cached, together with `base`, if given. NULL on error. */
static CachedMask *keep(Engine *e, const Config *key, const Target *found, int32_t most, const uint32_t *base) {
    int32_t words = e->tokens->words;
    int as_row = found->listed > most;
    size_t bytes = sizeof(CachedMask) + (as_row ? words : found->listed) * sizeof(uint32_t);
    CachedMask *kept = as_row ? new_row(e, base) : malloc(bytes);
    if (!kept) return as_row ? NULL : no_memory();
    kept->count = as_row ? -1 : found->listed;
    for (int32_t i = 0; i < found->listed; i++) {
        if (as_row) kept->data[found->list[i] >> 5] |= 1u << (found->list[i] & 31);
        else kept->data[i] = (uint32_t)found->list[i];
    }
    return store(e, key, kept, bytes);
}

/* Cache the ids that values of choices allow, and the branches whose tokens depend on what follows the values. */
int keep_inside(Engine *e, const Config *key, const Target *found, const Branch *branches, int32_t count) {
    size_t bytes = sizeof(CachedMask) + (found->listed + 1) * sizeof(uint32_t) + count * sizeof(Branch);
    CachedMask *kept = malloc(bytes);
    if (!kept) return no_memory(), -1;
    kept->count = found->listed;
    if (found->listed) memcpy(kept->data, found->list, found->listed * sizeof(uint32_t));
    kept->data[found->listed] = (uint32_t)count;
    if (count) memcpy(kept->data + found->listed + 1, branches, count * sizeof(Branch));
    return store(e, key, kept, bytes) ? 0 : -1;
}

static void add_row(Target *target, const uint32_t *row, int *empty) {
    if (*empty) memcpy(target->row, row, target->words * sizeof(uint32_t));
    else set_row(target, row);
    *empty = 0;
}

static void add_kept(Target *target, const CachedMask *kept, int *empty) {
    if (kept->count < 0) {
        add_row(target, kept->data, empty);
        return;
    }
    if (*empty) memset(target->row, 0, target->words * sizeof(uint32_t));
    *empty = 0;
    set_ids(target, kept->data, kept->count);
}

/* The cached mask of `key`, a run of free text: a row, or ids in addition to its base row. NULL on error, and if the walk
 * reached the engine's bottom frame. */
static const CachedMask *text_kept(Engine *e, const Config *key, int open) {
    const CachedMask *kept = recall(e, key);
    if (kept || read_only) return kept;
    int64_t bottom_hits = e->bottom_hits;
    Target found = {.touched_count = -1};
    Walk *w = walk_take(e, &found);
    if (w && text_others(w, node_at(e->tokens, ROOT), key, open) == 0) {
        const uint32_t *base = text_base(e, key);
        if (base && e->bottom_hits == bottom_hits) kept = keep(e, key, &found, LISTED, base);
    }
    if (w) walk_leave(w);
    free(found.list);
    return kept;
}

static int walk(Engine *e, const Vec *vec, Target *target, int32_t *emitted, int32_t *cost) {
    Walk *w = walk_take(e, target);
    if (!w) return -1;
    int result = vec_copy(&w->level[0], vec);
    if (result == 0) result = visit(w, ROOT);
    *emitted = w->emitted, *cost = w->emitted + VISIT * w->visits;
    walk_leave(w);
    return result;
}

/* Cache a row's mask, as ids if they are few (the row is freed then); return the cached mask, NULL on error. */
static const CachedMask *keep_row(Engine *e, const Config *key, CachedMask *row, int32_t count) {
    if (count > HEAVY) return store(e, key, row, row_size(e));
    Target found = {.touched_count = -1};
    const CachedMask *kept = NULL;
    int failed = 0;
    for (int32_t i = 0; i < e->tokens->words && !failed; i++)
        for (uint32_t bits = row->data[i]; bits && !failed; bits &= bits - 1)
            failed = list_id(&found, i * 32 + lowest_bit(bits)) < 0;
    if (!failed) kept = keep(e, key, &found, HEAVY, NULL);
    free(found.list), free_mask(e, row);
    return kept;
}

/* Cache a position's mask if its walk costs more than `least`.
 *
 * The walk writes to a row, since free text needs one: to `alone`, which is clear, or (NULL) to the vocabulary's spare row,
 * which is cleared again. 1: `alone` has the mask; 0: it must be taken from the cache or walked; -1: an error. */
static int keep_walked(Engine *e, const Config *c, int32_t least, Target *alone) {
    Vec one = {(Config *)c, 1, 1};
    int32_t words = e->tokens->words, emitted = 0, cost = 0, count = 0, touched[HEAVY], ids[HEAVY];
    int64_t bottom_hits = e->bottom_hits;
    CachedMask *own = alone ? NULL : e->tokens->clear ? e->tokens->clear : new_row(e, NULL);
    if (!alone && !own) return -1;
    if (own) e->tokens->clear = NULL; /* not spare while it is written */
    Target target = {.row = own ? own->data : alone->row, .words = words, .touched = touched, .touched_room = HEAVY};
    int failed = walk(e, &one, &target, &emitted, &cost) < 0, whole = !failed && e->bottom_hits == bottom_hits;
    int few = target.touched_count >= 0;
    for (int i = 0; i < target.touched_count; i++) { /* a word may be listed several times */
        uint32_t bits = target.row[touched[i]];
        target.row[touched[i]] = 0;
        for (; bits; bits &= bits - 1) ids[count++] = touched[i] * 32 + lowest_bit(bits);
    }
    if (!few && emitted > HEAVY) count = HEAVY + 1; /* few tokens are emitted twice */
    for (int32_t i = 0; i < words && !few && count <= HEAVY; i++)
        if (target.row[i]) count += count_bits(target.row[i]);
    int worth = whole && (few ? cost > least : count <= HEAVY || emitted > HEAVY);
    if (worth && few) {
        Target found = {.list = ids, .listed = count};
        failed = !keep(e, c, &found, HEAVY, NULL);
    } else if (worth) {
        CachedMask *row = own ? own : new_row(e, alone->row);
        failed = !row || !keep_row(e, c, row, count);
        own = NULL;
    } else if (!failed) {
        failed = map_put(&e->rows, c, &tried) < 0;
    }
    if (own && few && !e->tokens->clear) e->tokens->clear = own;
    else if (own) free_mask(e, own); /* another walk has left a spare row while Python code ran */
    if (alone && few) set_ids(alone, (uint32_t *)ids, count);
    else if (alone) alone->touched_count = -1;
    return failed ? -1 : alone && whole;
}

/* Write the mask of a position in free text to `target`. 1: done. 0: `key` is to be walked with other positions. -2: the
 * bottom frame, which stands for the far end of `c`'s stack, was reached. */
static int fill_text(Engine *e, const Config *c, int crowded, Target *target, int *empty, Config *key) {
    TextSet *set = e->tokens->sets[set_of(e, c)];
    int64_t bottom_hits = e->bottom_hits;
    if (text_index(e->tokens, set) < 0) return -1;
    int open = set->permissive ? ambiguous(e, set, c->rest) : 1;
    if (open < 0 || canonical(e, c, set, open, key) < 0) return -1;
    if (e->bottom_hits != bottom_hits) return -2;
    /* many texts that may end anywhere are walked together: all reach the same few sets of positions */
    if (!set->permissive || (open && crowded && !recall(e, key))) return 0;
    const CachedMask *kept = text_kept(e, key, open);
    if (!kept) return !read_only && e->bottom_hits != bottom_hits && !PyErr_Occurred() ? -2 : -1;
    const uint32_t *base = kept->count < 0 ? kept->data : text_base(e, key);
    if (!base) return -1;
    add_row(target, base, empty);
    if (kept->count > 0) add_kept(target, kept, empty);
    return 1;
}

/* List the tokens that consist of one of the excluded texts and then a byte that begins no character of the set. */
static int list_left_out(Engine *e, const Config *c, Target *found) {
    const Tokens *t = e->tokens;
    const TextSet *set = t->sets[e->choices[c->object].set];
    for (int32_t i = c->low; i < c->high; i++) {
        int32_t length;
        const uint8_t *value = choice(&e->choices[c->object], i, &length) + c->depth;
        const Node *node = node_at(t, ROOT);
        uint32_t child = 0;
        length -= c->depth;
        if (!length) continue; /* this excluded text ends here, so that nothing else can follow it */
        int32_t at = 0;
        for (; at < length && node; at++) {
            if (!find_child(node, value[at], &child)) break;
            node = CHILD_IS_TOKEN(child) ? NULL : node_at(t, CHILD_AT(child));
        }
        if (at < length && node) continue;
        int32_t high, low = tokens_below(t, child, &high) + (node ? node->ends : 0);
        for (; low < high; low++) {
            const uint8_t *token = t->flat + t->offsets[low];
            if (t->lengths[low] <= length || memcmp(token, value, length)) continue;
            if (set->first[0][token[length] >> 6] >> (token[length] & 63) & 1) continue;
            if (list_id(found, t->ids[low]) < 0) return -1;
        }
    }
    return 0;
}

/* fill_text for a run with excluded texts: free text without a few tokens. */
static int fill_except(Engine *e, const Config *c, int crowded, Target *target, int *empty, Config *key) {
    Config text = except_text(e, c);
    Target out = {.touched_count = -1};
    TextSet *set = e->tokens->sets[text.object];
    *key = *c; /* for the result 0 */
    text.low = 1; /* that the run ends at once is another position, if it may */
    if (text_index(e->tokens, set) < 0) return -1;
    int open = set->permissive ? ambiguous(e, set, c->rest) : 1;
    if (open) return open < 0 ? -1 : 0;
    if (list_left_out(e, c, &out) < 0) return -1;
    for (int32_t i = 0; i < out.listed; i++) /* keep tokens that other positions allow */
        if (!*empty && target->row[out.list[i] >> 5] >> (out.list[i] & 31) & 1) out.list[i] = -1;
    Config ignored;
    int done = fill_text(e, &text, crowded, target, empty, &ignored);
    for (int32_t i = 0; i < out.listed && done == 1; i++)
        if (out.list[i] >= 0) target->row[out.list[i] >> 5] &= ~(1u << (out.list[i] & 31));
    free(out.list);
    return done;
}

/* fill_text for a JSON string that a table reads. */
static int fill_json(Engine *e, const Config *c, int crowded, Target *target, int *empty, Config *key) {
    int32_t words = e->tokens->words;
    int64_t bottom_hits = e->bottom_hits;
    (void)crowded;
    *key = *c;
    if ((key->rest = capped_frame(e, c->rest)) < 0) return -1;
    if (key->high > e->tokens->longest + json_farthest(e->json[c->object])) key->high = -1; /* further than a token reaches */
    const CachedMask *known = recall(e, key);
    if (!known) {
        if (read_only) return -1;
        CachedMask *kept = new_row(e, NULL);
        Target row = {.row = kept ? kept->data : NULL, .words = words, .touched_count = -1};
        Walk *w = kept ? walk_take(e, &row) : NULL;
        int done = w ? walk_json(w, key) : -1, count = w ? w->emitted : 0; /* each id is emitted once */
        if (w) walk_leave(w);
        if (done > 0 && e->bottom_hits != bottom_hits) done = -2;
        if (done <= 0) {
            free_mask(e, kept);
            return done;
        }
        if (!(known = keep_row(e, key, kept, count))) return -1;
    }
    add_kept(target, known, empty);
    return 1;
}

/* Push to a vector whose first items are in the array `few` on the C stack. */
static int push(Vec *vec, const Config *few, const Config *config) {
    if (vec->at == few && vec->n == vec->room) {
        Vec heap = {NULL, 0, 0};
        if (vec_append(&heap, vec->at, vec->n) < 0) return -1;
        *vec = heap;
    }
    return vec_push(vec, config);
}

/* Write the mask of the positions in `vec`. If `touched` is in use the row must be clear; otherwise it may have any contents.
 *
 * A position's mask is taken from the cache if it is there: that of free text is cached on its first visit, others, if they
 * are expensive, on the second. The remaining positions are walked together. Free text and cached rows come first, since
 * they may overwrite the whole row.
 *
 * At first the far end of each stack is replaced by the bottom frame, so that all stacks with the same top share their masks.
 * If a walk reaches the bottom (`bottom_hits` has grown), it is repeated on the whole stacks: the tokens that it has found
 * are allowed there, too, but may not be all.
 */
int fill_row(Engine *e, const Vec *vec, Target *target) {
    Config few[FEW], as_many[FEW];
    Vec walked = {few, 0, FEW}, whole = {as_many, 0, FEW}; /* positions to walk together: with the bottom frame, and with whole stacks */
    int empty = target->touched_count < 0, result = 0; /* whether the row is still to be written: the first mask is copied instead of added */
    int32_t emitted = 0, cost = 0, texts = 0, left_open = 0;
    e->work = 0;
    for (int i = 0; i < vec->n; i++) texts += vec->at[i].kind >= TEXT;
    for (int i = 0; i < vec->n; i++) {
        const Config *c = &vec->at[i];
        Config near, key;
        if (c->kind <= STEP_END) continue;
        int open_below = near_config(e, c, &near);
        if (open_below < 0) goto error;
        if (open_below) c = &near;
        if (c->kind == EXCEPT || c->kind == JSON_TEXT || (c->kind > CHOICES && c->depth == 0)) {
            int (*fill)(Engine *, const Config *, int, Target *, int *, Config *) =
                c->kind == EXCEPT ? fill_except : c->kind == JSON_TEXT ? fill_json : fill_text;
            int done = fill(e, c, texts > CROWD, target, &empty, &key);
            if (done == -2) {
                if (map_put(&e->stack_sensitive, &near, e) < 0) goto error;
                c = &vec->at[i];
                open_below = 0;
                done = fill(e, c, texts > CROWD, target, &empty, &key);
            }
            if (done < 0) goto error;
            if (done) continue;
            c = &key;
        }
        const CachedMask *kept = texts <= CROWD ? map_get(&e->rows, c) : NULL;
        if (kept == &wanted || (!kept && c->kind == TEXT && texts <= CROWD)) {
            int alone = vec->n == 1;
            if (alone && empty) memset(target->row, 0, target->words * sizeof(uint32_t)), empty = 0;
            int done = read_only ? -1 : keep_walked(e, c, PROMOTE, alone ? target : NULL);
            if (done < 0) goto error;
            if (done) continue;
            kept = map_get(&e->rows, c);
        }
        if (kept && kept != &tried) {
            add_kept(target, kept, &empty);
            continue;
        }
        if (push(&walked, few, c) < 0 || push(&whole, as_many, &vec->at[i]) < 0) goto error;
        left_open += open_below;
    }
    if (empty) memset(target->row, 0, target->words * sizeof(uint32_t));
    int64_t bottom_hits = e->bottom_hits;
    if (walked.n) result = walk(e, &walked, target, &emitted, &cost);
    if (result == 0 && left_open && e->bottom_hits != bottom_hits) {
        for (int i = 0; i < walked.n && result == 0; i++) {
            Config near;
            if (near_config(e, &whole.at[i], &near) > 0) result = map_put(&e->stack_sensitive, &near, e);
        }
        if (result == 0) result = walk(e, &whole, target, &emitted, &cost);
        Vec swap = walked;
        walked = whole;
        whole = swap;
    }
    /* caching their masks takes a walk of each, which the next time does, so that no mask takes two walks */
    for (int i = 0; i < walked.n && cost > PROMOTE * walked.n && texts <= CROWD && result == 0; i++) {
        if (map_get(&e->rows, &walked.at[i])) continue;
        if (!read_only) make_room(e, 0);
        result = map_put(&e->rows, &walked.at[i], &wanted);
        e->marked++;
    }
    goto done;
error:
    result = -1;
done:
    if (walked.at != few && walked.at != as_many) free(walked.at);
    if (whole.at != few && whole.at != as_many) free(whole.at);
    return result;
}

/* the first masks, computed at compile time ------------------------------------------------------ */

/* The length in bytes of the longest token that a text begins with. */
static int32_t longest_token(const Tokens *t, const uint8_t *text, int32_t length) {
    const Node *node = node_at(t, ROOT);
    int32_t longest = 0;
    uint32_t child;
    for (int32_t i = 0; i < length && find_child(node, text[i], &child); i++) {
        if (CHILD_IS_TOKEN(child)) {
            const Leaf *leaf = leaf_at(t, child);
            return leaf->length <= length - i && !memcmp(leaf->bytes, text + i, leaf->length) ? i + leaf->length : longest;
        }
        node = node_at(t, CHILD_AT(child));
        if (node->ends) longest = i + 1;
    }
    return longest;
}

/* The position after the longest token at the beginning of values[low], with all values that share these bytes. */
static Config after_longest(const Engine *e, const Config *c, int32_t low) {
    const Choices *choices = &e->choices[c->object];
    Config after = {CHOICES, c->object, c->rest, low, low + 1, c->depth};
    int32_t length, other;
    const uint8_t *value = choice(choices, low, &length);
    if (length > c->depth) after.depth += longest_token(e->tokens, value + c->depth, length - c->depth);
    for (; after.high < c->high; after.high++) {
        const uint8_t *next = choice(choices, after.high, &other);
        if (other < after.depth || memcmp(next + c->depth, value + c->depth, after.depth - c->depth)) break;
    }
    return after;
}

/* Cache the mask of a choice that ends the text. */
static int keep_choice(Engine *e, const Config *c) {
    Vec one = {(Config *)c, 1, 1};
    Target found = {.touched_count = -1};
    int32_t emitted, cost;
    int failed = walk(e, &one, &found, &emitted, &cost) < 0;
    if (!failed && found.listed <= HEAVY) failed = !keep(e, c, &found, HEAVY, NULL);
    free(found.list);
    return failed ? -1 : 0;
}

/* If a closure consists of several literals, cache the mask of each. */
int look_up_literals(Engine *e, const Closure *closure) {
    const Config *at = closure->configs;
    int literals = closure->n >= SEVERAL && closure->n <= FEW, failed = 0;
    for (int i = 0; i < closure->n && literals; i++) literals = at[i].kind <= LITERAL;
    for (int i = 0; i < closure->n && literals && !failed; i++) {
        e->work = 0; /* the limit is for each mask */
        if (at[i].kind == LITERAL && !map_get(&e->rows, &at[i])) failed = keep_walked(e, &at[i], 0, NULL);
    }
    return failed < 0 ? -1 : 0;
}

/* If a grammar is a choice among up to `most` texts, such as commands, cache its first mask, and those after the longest first
 * token of each text: after a verb, for instance, most alternatives are left. */
int look_up_first(Engine *e, int32_t most) {
    Config states[FIRST] = {e->start.n ? e->start.at[0] : (Config){0}};
    const Config *start = &states[0];
    if (e->start.n != 1 || start->kind != CHOICES || start->rest || start->high - start->low > most) return 0;
    if (e->choices[start->object].bind != Py_None || start->high - start->low < SEVERAL) return 0;
    for (int i = 0, count = 1; i < count; i++) {
        const Config c = states[i];
        Config after = after_longest(e, &c, c.low);
        int alike = after.high == c.high; /* a verb's first token, as "ex" of "examine" */
        if (keep_choice(e, &c) < 0) return -1;
        for (int32_t low = c.low; low < c.high && (!i || alike); low = after.high) {
            after = after_longest(e, &c, low);
            if (after.high - after.low >= SEVERAL && after.depth > c.depth && count < FIRST) states[count++] = after;
        }
    }
    return 0;
}

/* all masks ahead of time ------------------------------------------------------------------------ */

static int discover(Vec *work, Map *seen, const Config *configs, int n) {
    for (int i = 0; i < n; i++) {
        if (map_get(seen, &configs[i])) continue;
        if (map_put(seen, &configs[i], seen) < 0 || vec_push(work, &configs[i]) < 0) return -1;
    }
    return 0;
}

/* Visit every position that can be reached, and compute its mask: how many there are, -1 if more than `most`. */
Py_ssize_t precompute(Engine *e, Py_ssize_t most) {
    Map seen = {NULL, 0, 0};
    Vec work = {NULL, 0, 0}, next = {NULL, 0, 0};
    Target target = {.row = malloc(e->tokens->words * sizeof(uint32_t)), .words = e->tokens->words, .touched_count = -1};
    int failed = !target.row || discover(&work, &seen, e->start.at, e->start.n) < 0;
    while (!failed && work.n && (Py_ssize_t)seen.used <= most) {
        Config c = work.at[--work.n];
        Vec one = {&c, 1, 1};
        size_t marked = e->marked;
        failed = fill_row(e, &one, &target) < 0 || PyErr_CheckSignals() < 0;
        if (!failed && e->marked > marked) failed = fill_row(e, &one, &target) < 0; /* this time it is cached */
        uint64_t first[4];
        int16_t after[256]; /* of bytes that lead to the same state inside a character, one is enough */
        if (!failed) failed = next_bytes(e, &one, first) < 0;
        if (!failed && c.kind == TEXT) memcpy(after, e->tokens->sets[c.object]->next[c.depth], sizeof after);
        for (int b = 0; b < 256 && !failed; b++) {
            int same = c.kind == TEXT ? 0 : b;
            while (same < b && after[same] != after[b]) same++;
            if (same < b || !(first[b >> 6] >> (b & 63) & 1)) continue;
            next.n = 0;
            failed = step_config(e, &c, (uint8_t)b, &next) < 0 || discover(&work, &seen, next.at, next.n) < 0;
        }
    }
    Py_ssize_t count = (Py_ssize_t)seen.used;
    map_clear(&seen, 0);
    free(work.at), free(next.at), free(target.row);
    if (failed && !PyErr_Occurred()) no_memory();
    return failed ? -2 : count > most ? -1 : count;
}
