/* Which tokens may come next. */
#include "kernel.h"

#define HEAVY 512 /* a position that allows more tokens than this keeps them */
#define CROWD 8   /* texts in one state, each of which would keep a row of its own */
#define LISTED 32 /* so many ids are quicker set than a row of one's own is read */

/* What is kept of a position: the ids that a walk found, or, if they are many, a packed row. */
typedef struct {
    int32_t count; /* -1: a row */
    uint32_t data[];
} Kept;

/* Keep the ids listed in `found`, and those of a base row, if given, where a row is kept; NULL on error. */
static Kept *keep(Engine *e, const Config *key, const Target *found, int32_t most, const uint32_t *base) {
    int32_t words = e->tokens->words;
    int as_row = found->listed > most;
    size_t bytes = sizeof(Kept) + (as_row ? words : found->listed) * sizeof(uint32_t);
    Kept *kept = calloc(1, bytes);
    if (!kept) {
        PyErr_NoMemory();
        return NULL;
    }
    kept->count = as_row ? -1 : found->listed;
    if (as_row && base) memcpy(kept->data, base, words * sizeof(uint32_t));
    for (int32_t i = 0; i < found->listed; i++) {
        if (as_row) kept->data[found->list[i] >> 5] |= 1u << (found->list[i] & 31);
        else kept->data[i] = (uint32_t)found->list[i];
    }
    if (e->row_bytes + bytes > e->max_row_bytes) { /* begin anew: what is needed again is soon back */
        map_clear(&e->rows, 1);
        e->row_bytes = 0;
    }
    Kept *before = map_get(&e->rows, key); /* another thread's, while Python ran */
    if (before || map_put(&e->rows, key, kept) < 0) {
        free(kept);
        return before;
    }
    e->row_bytes += bytes;
    e->rows_made++;
    return kept;
}

static void add_row(Target *target, const uint32_t *row, int *empty) {
    if (*empty) memcpy(target->row, row, target->words * sizeof(uint32_t));
    else
        for (int32_t i = 0; i < target->words; i++) target->row[i] |= row[i];
    *empty = 0;
    target->touched_count = -1;
}

static void add_kept(Target *target, const Kept *kept, int *empty) {
    if (kept->count < 0) {
        add_row(target, kept->data, empty);
        return;
    }
    if (*empty) memset(target->row, 0, target->words * sizeof(uint32_t));
    *empty = 0;
    target->touched_count = -1;
    for (int32_t i = 0; i < kept->count; i++) target->row[kept->data[i] >> 5] |= 1u << (kept->data[i] & 31);
}

/* What `key`, free text as the next thing, allows: a row, or ids beside its base row. */
static const Kept *text_kept(Engine *e, const Config *key, int open) {
    const Kept *kept = map_get(&e->rows, key);
    if (kept) return kept;
    Target found = {.touched_count = -1};
    Walk *w = walk_take(e, &found);
    if (w && text_others(w, &e->tokens->nodes[0], key, open) == 0) {
        const uint32_t *base = text_base(e->tokens, key);
        if (base) kept = keep(e, key, &found, LISTED, base);
    }
    if (w) walk_leave(w);
    free(found.list);
    return kept;
}

static int walk(Engine *e, const Vec *vec, Target *target, int32_t *emitted) {
    Walk *w = walk_take(e, target);
    if (!w) return -1;
    int result = vec_copy(&w->level[0], vec);
    if (result == 0) result = visit(w, 0);
    *emitted = w->emitted;
    walk_leave(w);
    return result;
}

/* A position whose walk allowed many tokens: keep them. Free text inside needs a row to write to. */
static int keep_heavy(Engine *e, const Config *c) {
    Vec one = {(Config *)c, 1, 1};
    int32_t words = e->tokens->words, emitted;
    Target row = {.row = calloc(words, sizeof(uint32_t)), .words = words, .touched_count = -1};
    Target found = {.touched_count = -1};
    int result = row.row ? walk(e, &one, &row, &emitted) : -1;
    for (int32_t i = 0; result == 0 && emitted > HEAVY && i < words; i++)
        for (uint32_t bits = row.row[i]; bits && result == 0; bits &= bits - 1)
            result = list_id(&found, i * 32 + __builtin_ctz(bits));
    if (result == 0 && emitted > HEAVY && !keep(e, c, &found, HEAVY, NULL)) result = -1;
    free(row.row), free(found.list);
    return result;
}

/* Write the tokens that `vec` allows. Where `touched` is kept the row must be clear, else it may hold anything. */
int fill_row(Engine *e, const Vec *vec, Target *target) {
    Tokens *t = e->tokens;
    Config few[16];
    Vec narrow = {few, 0, 16}, many = {NULL, 0, 0};
    int empty = target->touched_count < 0, result = 0; /* what is empty needs no clearing before a row */
    int32_t emitted = 0, texts = 0;
    e->work = 0;
    for (int i = 0; i < vec->n; i++) texts += vec->at[i].kind == TEXT;
    for (int i = 0; i < vec->n; i++) {
        Config key;
        const Config *c = &vec->at[i];
        const Kept *kept = NULL;
        if (c->kind <= STEP_END) continue;
        if (c->kind == TEXT && c->depth == 0) {
            TextSet *set = t->sets[c->object];
            if (text_index(t, set) < 0) goto error;
            int open = set->permissive ? ambiguous(e, set, c->rest) : 1;
            if (open < 0 || canonical(e, c, set, open, &key) < 0) goto error;
            c = &key;
            /* many texts that may end anywhere are walked together: they come to the same few sets of positions */
            if (set->permissive && !(open && texts > CROWD && !map_get(&e->rows, c))) {
                if (!(kept = text_kept(e, c, open))) goto error;
                const uint32_t *base = kept->count < 0 ? kept->data : text_base(t, c);
                if (!base) goto error;
                add_row(target, base, &empty);
                if (kept->count > 0) add_kept(target, kept, &empty);
                continue;
            }
        }
        if (texts <= CROWD && e->rows.used && (kept = map_get(&e->rows, c))) add_kept(target, kept, &empty);
        else if (narrow.n < 16) narrow.at[narrow.n++] = *c;
        else if (vec_push(&many, c) < 0) goto error;
    }
    if (empty) memset(target->row, 0, t->words * sizeof(uint32_t));
    if (many.n && vec_append(&many, narrow.at, narrow.n) < 0) goto error;
    const Vec *rest = many.n ? &many : &narrow;
    if (rest->n) result = walk(e, rest, target, &emitted);
    for (int i = 0; i < rest->n && emitted > HEAVY && texts <= CROWD && result == 0; i++)
        result = keep_heavy(e, &rest->at[i]);
    free(many.at);
    return result;
error:
    free(many.at);
    return -1;
}

/* Take the mask of `c` for known: all the ids it allows. */
int restore_mask(Engine *e, const Config *c, const int32_t *ids, Py_ssize_t count) {
    Tokens *t = e->tokens;
    Target found = {.touched_count = -1};
    Config key = *c;
    const uint32_t *base = NULL;
    int32_t most = HEAVY;
    if (c->kind == TEXT && c->depth == 0) {
        TextSet *set = t->sets[c->object];
        if (text_index(t, set) < 0) return -1;
        int open = set->permissive ? ambiguous(e, set, c->rest) : 1;
        if (open < 0 || canonical(e, c, set, open, &key) < 0) return -1;
        if (set->permissive) {
            if (!(base = text_base(t, &key))) return -1;
            most = LISTED;
        }
    }
    int failed = 0;
    for (Py_ssize_t i = 0; i < count && !failed; i++)
        if (!base || !(base[ids[i] >> 5] >> (ids[i] & 31) & 1)) failed = list_id(&found, ids[i]) < 0;
    size_t made = e->rows_made;
    if (!failed) failed = !keep(e, &key, &found, most, base);
    e->rows_made = made;
    free(found.list);
    return failed ? -1 : 0;
}

/* everything ahead ------------------------------------------------------------------------------- */

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
        failed = fill_row(e, &one, &target) < 0 || PyErr_CheckSignals() < 0;
        uint8_t bytes[256];
        int n = 0;
        if (c.kind == LITERAL) {
            bytes[n++] = e->literals[c.object].at[c.low];
        } else if (c.kind == CHOICES) {
            for (int32_t at = c.low, length; at < c.high;) {
                bytes[n] = choice(&e->choices[c.object], at, &length)[c.depth];
                at = choices_from(&e->choices[c.object], at, c.high, c.depth, bytes[n++] + 1);
            }
        } else if (c.kind == TEXT && !failed) { /* one byte for each state after it will do */
            TextSet *set = e->tokens->sets[c.object];
            failed = text_expand(set, c.depth) < 0;
            for (int b = 0; b < 256 && !failed; b++) {
                int known = set->next[c.depth][b] < 0;
                for (int k = 0; k < n && !known; k++) known = set->next[c.depth][bytes[k]] == set->next[c.depth][b];
                if (!known) bytes[n++] = (uint8_t)b;
            }
        }
        for (int i = 0; i < n && !failed; i++) {
            next.n = 0;
            failed = step_config(e, &c, bytes[i], &next) < 0 || discover(&work, &seen, next.at, next.n) < 0;
        }
    }
    Py_ssize_t count = (Py_ssize_t)seen.used;
    map_clear(&seen, 0);
    free(work.at), free(next.at), free(target.row);
    if (failed && !PyErr_Occurred()) PyErr_NoMemory();
    return failed ? -2 : count > most ? -1 : count;
}
