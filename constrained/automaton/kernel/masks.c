/* Which tokens may come next.
 *
 * The trie of tokens is walked beside the grammar, so that only beginnings that both know are visited.
 * Free text is not walked: nearly all tokens lie inside its set of characters, in a row made once
 * (text.c); from it the too long ones are taken away, and only the others (`odd`) are looked at.
 */
#include "kernel.h"

#define WIDE 16      /* a subtree of more tokens than this is worth the look at free text */
#define FEW 16       /* up to so many children, or bytes, are gone through one by one */
#define TABLE_FULL 4096 /* states of the table beyond which the next walk begins a new one */
#define HEAVY 512    /* a position that allows more tokens than this keeps its row */

struct Walk {
    Engine *engine;
    Target *target;
    int32_t emitted;
    Vec *level; /* [longest + 1] positions after so many bytes of a token */
    int levels;
    Vec one, two;
};

void walk_free(Walk *w) {
    if (!w) return;
    for (int i = 0; i < w->levels; i++) free(w->level[i].at);
    free(w->level), free(w->one.at), free(w->two.at), free(w);
}

/* Scratch memory: the engine's spare one, or new where another walk is under way (a thread's, or an outer one). */
static Walk *walk_take(Engine *e, Target *target) {
    Walk *w = e->spare;
    e->spare = NULL;
    if (!w && (w = calloc(1, sizeof *w))) {
        w->levels = e->tokens->longest + 2;
        if (!(w->level = calloc(w->levels, sizeof *w->level))) free(w), w = NULL;
    }
    if (!w) {
        PyErr_NoMemory();
        return NULL;
    }
    w->engine = e, w->target = target, w->emitted = 0;
    if (!e->table.users && e->table.count > TABLE_FULL) table_clear(&e->table);
    e->table.users++;
    return w;
}

static void walk_leave(Walk *w) {
    Engine *e = w->engine;
    e->table.users--;
    if (e->spare)
        walk_free(w);
    else
        e->spare = w;
}

static inline void emit(Walk *w, int32_t token) {
    int32_t id = w->engine->tokens->ids[token], word = id >> 5;
    Target *t = w->target;
    t->row[word] |= 1u << (id & 31);
    w->emitted++;
    if (t->touched_count >= 0) {
        if (t->touched_count < t->touched_room)
            t->touched[t->touched_count++] = word;
        else
            t->touched_count = -1;
    }
}

/* `to`: the positions after `data`; none if it can't be read. `to` and `scratch` may not be `from`. */
int read_bytes(Engine *e, const Vec *from, const uint8_t *data, int32_t length, Vec *to, Vec *scratch) {
    if (vec_copy(to, from) < 0) return -1;
    for (int32_t i = 0; i < length && to->n; i++) {
        if (step_vec(e, to, data[i], scratch) < 0) return -1;
        Vec swap = *to;
        *to = *scratch;
        *scratch = swap;
    }
    return 0;
}

/* Emit the token if what follows its first `depth` bytes can be read from `vec`. */
static int try_token(Walk *w, int32_t token, int32_t depth, const Vec *vec) {
    const Tokens *t = w->engine->tokens;
    const uint8_t *data = t->flat + t->offsets[token] + depth;
    int32_t length = t->lengths[token] - depth;
    if (read_bytes(w->engine, vec, data, length, &w->one, &w->two) < 0) return -1;
    if (w->one.n) emit(w, token);
    return 0;
}

/* Emit the token if what follows its first `depth` bytes can be read from a state of the table. */
static int try_from(Walk *w, int32_t token, int32_t depth, int32_t state) {
    const Tokens *t = w->engine->tokens;
    const uint8_t *data = t->flat + t->offsets[token];
    for (int32_t i = depth; i < t->lengths[token]; i++) {
        int32_t after = table_step(w->engine, state, data[i]);
        if (after == DEAD) return 0;
        if (after == FAILED) return -1;
        if (after == NO_ROOM) {
            Vec here = *table_vec(&w->engine->table, state);
            return try_token(w, token, i, &here);
        }
        state = after;
    }
    emit(w, token);
    return 0;
}

static int visit_from(Walk *w, const Node *node, int32_t state);

static int descend_from(Walk *w, const Node *node, int32_t state, uint8_t byte, int32_t child) {
    if (child < 0) return try_from(w, ~child, node->depth, state);
    int32_t after = table_step(w->engine, state, byte);
    if (after == DEAD || after == FAILED) return after == DEAD ? 0 : -1;
    const Node *below = &w->engine->tokens->nodes[child];
    if (after == NO_ROOM) { /* one by one, without the table */
        for (int32_t token = below->low; token < below->high; token++)
            if (try_from(w, token, node->depth, state) < 0) return -1;
        return 0;
    }
    for (int32_t k = 0; k < below->ends; k++) emit(w, below->low + k);
    return visit_from(w, below, after);
}

/* Emit the tokens below a node that can be read from a state of the table. */
static int visit_from(Walk *w, const Node *node, int32_t state) {
    const Tokens *t = w->engine->tokens;
    const uint64_t *wanted = table_first(w->engine, state);
    if (!wanted) return -1;
    int many = 0;
    for (int k = 0; k < 4; k++) many += __builtin_popcountll(wanted[k]);
    if (node->count < FEW || many > FEW) {
        for (int32_t i = node->first; i < node->first + node->count; i++) {
            uint8_t byte = t->child_byte[i];
            if (wanted[byte >> 6] >> (byte & 63) & 1 && descend_from(w, node, state, byte, t->child[i]) < 0) return -1;
        }
        return 0;
    }
    for (int k = 0; k < 4; k++) {
        for (uint64_t bits = wanted[k]; bits; bits &= bits - 1) {
            uint8_t byte = (uint8_t)(k * 64 + __builtin_ctzll(bits));
            int found;
            int32_t child = find_child(t, node, byte, &found);
            if (found && descend_from(w, node, state, byte, child) < 0) return -1;
        }
    }
    return 0;
}

static int32_t state_of(Walk *w, const Config *configs, int n) {
    Vec vec = {(Config *)configs, n, n};
    return table_state(&w->engine->table, &vec, 1);
}

/* The first of the set's odd tokens at or after `token`. */
static int32_t odd_from(const TextSet *set, int32_t token) {
    int32_t low = 0, high = set->odds;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (set->odd[middle].token < token) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Free text somewhere inside a token: those of the subtree that stay in the set need no reading.
 * The node's own bytes must be whole characters of the set (`stays_inside`). */
static int free_subtree(Walk *w, const Node *node, const Config *c) {
    Tokens *t = w->engine->tokens;
    TextSet *set = t->sets[c->object];
    uint32_t *row = w->target->row;
    const int32_t *ids = t->ids;
    const uint8_t *inside = set->free;
    int32_t before = 0, low = node->low + node->ends;
    const uint8_t *data = t->flat + t->offsets[node->low];
    for (int32_t i = 0; i < node->depth; i++) before += (data[i] & 0xC0) != 0x80;
    int bounded = c->high >= 0 && c->high + before < t->longest;
    for (int32_t token = low; token < node->high; token++) { /* tens of thousands, perhaps: nothing but the bit */
        int in = inside[token] & (!bounded || t->chars[token] - before <= c->high);
        row[ids[token] >> 5] |= (uint32_t)in << (ids[token] & 31);
    }
    w->emitted += node->high - low;
    w->target->touched_count = -1;
    int32_t state = state_of(w, c, 1);
    if (state < 0) return -1;
    if (bounded) {
        for (int32_t token = low; token < node->high; token++)
            if (inside[token] && t->chars[token] - before > c->high && try_from(w, token, node->depth, state) < 0)
                return -1;
    }
    for (int32_t i = odd_from(set, low); i < set->odds && set->odd[i].token < node->high; i++)
        if (try_from(w, set->odd[i].token, node->depth, state) < 0) return -1;
    return 0;
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

static int visit(Walk *w, int32_t number);

static int descend(Walk *w, const Node *node, uint8_t byte, int32_t child) {
    Vec *next = &w->level[node->depth + 1];
    if (step_vec(w->engine, &w->level[node->depth], byte, next) < 0) return -1;
    if (!next->n) return 0;
    return child < 0 ? try_token(w, ~child, node->depth + 1, next) : visit(w, child);
}

/* The bytes that a literal, or choices which agree, must go on with: how many, short of the last before an end. */
static int32_t run_of(Engine *e, const Config *c, const uint8_t **data) {
    if (c->kind == LITERAL) {
        const Literal *literal = &e->literals[c->object];
        *data = literal->at + c->low;
        return literal->length - c->low - 1;
    }
    int32_t first_length, last_length, n = c->depth;
    const uint8_t *first = choice(&e->choices[c->object], c->low, &first_length);
    const uint8_t *last = choice(&e->choices[c->object], c->high - 1, &last_length);
    int32_t most = (first_length < last_length ? first_length : last_length) - 1;
    while (n < most && first[n] == last[n]) n++;
    *data = first + c->depth;
    return n - c->depth;
}

/* Follow what must come next down the trie. The node it leads to; NULL where it ends, or -1 in `failed`. */
static const Node *follow_run(Walk *w, const Node *node, int *failed) {
    const Tokens *t = w->engine->tokens;
    Config c = w->level[node->depth].at[0];
    const uint8_t *data;
    int32_t run = run_of(w->engine, &c, &data);
    if (run <= 0) return node;
    for (; run > 0; run--, data++) {
        int found;
        int32_t child = find_child(t, node, *data, &found);
        if (!found) return NULL;
        if (c.kind == LITERAL) c.low++;
        else c.depth++;
        if (child < 0) {
            Vec one = {&c, 1, 1};
            *failed = try_token(w, ~child, node->depth + 1, &one);
            return NULL;
        }
        node = &t->nodes[child];
        for (int32_t i = 0; i < node->ends; i++) emit(w, node->low + i);
    }
    w->level[node->depth].n = 0;
    *failed = vec_push(&w->level[node->depth], &c);
    return node;
}

/* Emit the tokens below a node that can be read from level[depth]. */
static int visit(Walk *w, int32_t number) {
    Engine *e = w->engine;
    Tokens *t = e->tokens;
    const Node *node = &t->nodes[number];
    Vec *here = &w->level[node->depth];
    if (node->depth)
        for (int32_t i = 0; i < node->ends; i++) emit(w, node->low + i);
    if (here->n == 1 && (here->at[0].kind == LITERAL || here->at[0].kind == CHOICES)) {
        int failed = 0;
        node = follow_run(w, node, &failed);
        if (!node || failed) return failed;
        here = &w->level[node->depth];
    }
    if (node->depth && node->high - node->low > WIDE) {
        int kept = 0;
        for (int i = 0; i < here->n; i++) {
            Config c = here->at[i];
            if (c.kind == TEXT && c.depth == 0) {
                TextSet *set = t->sets[c.object];
                if (text_index(t, set) < 0) return -1;
                int inside = set->permissive ? stays_inside(t, set, node) : 0;
                if (inside < 0) return -1;
                if (inside) {
                    if (free_subtree(w, node, &c) < 0) return -1;
                    continue;
                }
            }
            here->at[kept++] = c;
        }
        here->n = kept;
    }
    int text = 0;
    for (int i = 0; i < here->n && !text; i++) text = here->at[i].kind == TEXT;
    if (text && node->high - node->low > WIDE) { /* comes to the same few states again and again */
        int32_t state = state_of(w, here->at, here->n);
        return state < 0 ? -1 : visit_from(w, node, state);
    }
    uint64_t wanted[4];
    if (next_bytes(e, here, wanted) < 0) return -1;
    if (node->count < FEW) {
        for (int32_t i = node->first; i < node->first + node->count; i++)
            if (wanted[t->child_byte[i] >> 6] >> (t->child_byte[i] & 63) & 1 &&
                descend(w, node, t->child_byte[i], t->child[i]) < 0)
                return -1;
        return 0;
    }
    for (int k = 0; k < 4; k++) {
        while (wanted[k]) {
            uint8_t byte = (uint8_t)(k * 64 + __builtin_ctzll(wanted[k]));
            wanted[k] &= wanted[k] - 1;
            int found;
            int32_t child = find_child(t, node, byte, &found);
            if (found && descend(w, node, byte, child) < 0) return -1;
        }
    }
    return 0;
}

/* free text as the next thing -------------------------------------------------------------------- */

/* The frame with counts beyond one token's reach cut: rows are shared between far-off counts. */
static int32_t capped(Engine *e, int32_t rest) {
    Closure *closure = closure_of(e, rest);
    if (!closure) return -1;
    if (closure->capped < 0) {
        PyObject *frame = PyObject_CallMethod(e->bridge, "capped", "(O)", rest ? e->frames[rest] : Py_None);
        int32_t known = frame ? know_frame(e, frame) : -1;
        Py_XDECREF(frame);
        if (known < 0) return -1;
        closure->capped = known;
    }
    return closure->capped;
}

/* Whether the rest can begin with a character of the set: then where the text ends is open. */
static int ambiguous(Engine *e, TextSet *set, int32_t rest) {
    Closure *closure = closure_of(e, rest);
    const uint64_t *first = closure ? closure_first(e, closure) : NULL;
    if (!first) return -1;
    for (int k = 0; k < 4; k++)
        if (set->first[0][k] & first[k]) return 1;
    return 0;
}

/* The position that stands for all with the same row. */
static int canonical(Engine *e, const Config *c, TextSet *set, int open, Config *key) {
    int32_t reach = e->tokens->longest + 1;
    *key = *c;
    if ((key->rest = capped(e, c->rest)) < 0) return -1;
    if (key->low < 1) key->low = 1; /* one character is read in any case */
    if (key->low > reach) key->low = reach;
    if (key->high > reach) key->high = reach;
    if (key->high >= 0 && key->high < key->low) key->high = key->low;
    if (!open) /* only counts that some token takes can matter */
        while (key->high > 0 && !set->counts[key->high]) key->high--;
    return 0;
}

static int text_row(Walk *w, const Config *c, TextSet *set, int open) {
    Engine *e = w->engine;
    Tokens *t = e->tokens;
    uint32_t *row = w->target->row;
    Closure *rest = closure_of(e, c->rest);
    if (!rest) return -1;
    const uint64_t *first = closure_first(e, rest);
    if (!first) return -1;
    memcpy(row, set->row, t->words * sizeof(uint32_t));
    int32_t whole = t->chars_end[t->longest];
    if (c->high >= 0 && c->high < t->longest)
        for (int32_t i = t->chars_end[c->high]; i < whole; i++) {
            int32_t id = t->ids[t->by_chars[i]];
            row[id >> 5] &= ~(1u << (id & 31));
        }
    int32_t state = open ? state_of(w, c, 1) : state_of(w, rest->configs, rest->n);
    if (state < 0) return -1;
    if (open) { /* the text may end anywhere: read every token that isn't free */
        int32_t longer = c->high >= 0 && c->high < t->longest ? whole - t->chars_end[c->high] : 0;
        if (longer + set->odds > t->n / 8) return visit_from(w, &t->nodes[0], state);
        for (int32_t token = 0; token < t->n; token++)
            if (!(set->free[token] && (c->high < 0 || t->chars[token] <= c->high)))
                if (try_from(w, token, 0, state) < 0) return -1;
        return 0;
    }
    for (int32_t i = 0; i < set->odds; i++) {
        const Odd *odd = &set->odd[i];
        if (odd->offset < 0) {
            if (c->high < 0 || odd->before < c->high) emit(w, odd->token);
            continue;
        }
        if (odd->before < c->low || (c->high >= 0 && odd->before > c->high)) continue;
        uint8_t byte = t->flat[t->offsets[odd->token] + odd->offset];
        if (!(first[byte >> 6] >> (byte & 63) & 1)) continue;
        if (try_from(w, odd->token, odd->offset, state) < 0) return -1;
    }
    return 0;
}

static int keep_row(Engine *e, const Config *key, uint32_t *row) {
    size_t bytes = (size_t)e->tokens->words * sizeof(uint32_t);
    if (e->row_bytes + bytes > e->max_row_bytes) { /* begin anew: what is needed again is soon back */
        map_clear(&e->rows, 1);
        e->row_bytes = 0;
    }
    if (map_put(&e->rows, key, row) < 0) return -1;
    e->row_bytes += bytes;
    e->rows_made++;
    return 0;
}

/* The kept row of a free-text position; NULL on error. It stays valid until the next row is kept. */
static const uint32_t *wide_row(Engine *e, const Config *c, TextSet *set) {
    int open = ambiguous(e, set, c->rest);
    Config key;
    if (open < 0 || canonical(e, c, set, open, &key) < 0) return NULL;
    uint32_t *row = map_get(&e->rows, &key);
    if (row) return row;
    row = malloc(e->tokens->words * sizeof(uint32_t));
    if (!row) {
        PyErr_NoMemory();
        return NULL;
    }
    Target target = {row, e->tokens->words, NULL, -1, 0};
    Walk *w = walk_take(e, &target);
    int failed = !w || text_row(w, &key, set, open) < 0;
    if (w) walk_leave(w);
    uint32_t *found = failed ? NULL : map_get(&e->rows, &key); /* another thread's, while Python ran */
    if (found || failed || keep_row(e, &key, row) < 0) {
        free(row);
        return found;
    }
    return row;
}

/* one mask --------------------------------------------------------------------------------------- */

static int walk_narrow(Engine *e, const Config *configs, int n, Target *target, int32_t *emitted) {
    Walk *w = walk_take(e, target);
    if (!w) return -1;
    w->level[0].n = 0;
    int result = vec_append(&w->level[0], configs, n);
    if (result == 0) result = visit(w, 0);
    *emitted = w->emitted;
    walk_leave(w);
    return result;
}

static void add_row(Target *target, const uint32_t *row, int *empty) {
    if (*empty)
        memcpy(target->row, row, target->words * sizeof(uint32_t));
    else
        for (int32_t i = 0; i < target->words; i++) target->row[i] |= row[i];
    *empty = 0;
    target->touched_count = -1;
}

/* A position that allows many tokens: keep them as a row. */
static int keep_heavy(Engine *e, const Config *c) {
    uint32_t *row = calloc(e->tokens->words, sizeof(uint32_t));
    if (!row) {
        PyErr_NoMemory();
        return -1;
    }
    Target target = {row, e->tokens->words, NULL, -1, 0};
    int32_t emitted;
    int result = walk_narrow(e, c, 1, &target, &emitted);
    if (result == 0 && emitted > HEAVY && !map_get(&e->rows, c)) result = keep_row(e, c, row);
    else free(row);
    return result;
}

/* Write the tokens that `vec` allows. The row must be clear if `touched` is kept (touched_count 0), else it may hold anything. */
int fill_row(Engine *e, const Vec *vec, Target *target) {
    Tokens *t = e->tokens;
    Config few[16];
    Vec narrow = {few, 0, 16};
    Vec many = {NULL, 0, 0};
    int empty = 1, result = 0;
    e->work = 0;
    for (int i = 0; i < vec->n; i++) {
        Config capped_text;
        const Config *c = &vec->at[i];
        const uint32_t *row = NULL;
        if (c->kind <= STEP_END) continue;
        if (c->kind == TEXT && c->depth == 0) {
            TextSet *set = t->sets[c->object];
            if (text_index(t, set) < 0) goto error;
            if (set->permissive && !(row = wide_row(e, c, set))) goto error;
            if (!row && canonical(e, c, set, 1, &capped_text) < 0) goto error;
            if (!row) c = &capped_text;
        }
        if (!row && e->rows.used) row = map_get(&e->rows, c);
        if (row)
            add_row(target, row, &empty);
        else if (narrow.n < 16)
            narrow.at[narrow.n++] = *c;
        else if (vec_push(&many, c) < 0)
            goto error;
    }
    if (empty && target->touched_count < 0) memset(target->row, 0, t->words * sizeof(uint32_t));
    const Vec *parts[2] = {&narrow, &many};
    for (int k = 0; k < 2 && result == 0; k++) {
        int32_t emitted = 0;
        if (parts[k]->n) result = walk_narrow(e, parts[k]->at, parts[k]->n, target, &emitted);
        for (int i = 0; i < parts[k]->n && emitted > HEAVY && result == 0; i++) result = keep_heavy(e, &parts[k]->at[i]);
    }
    free(many.at);
    return result;
error:
    free(many.at);
    return -1;
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
    Target target = {malloc(e->tokens->words * sizeof(uint32_t)), e->tokens->words, NULL, -1, 0};
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
