/* The walk: the trie of tokens and the grammar are followed in parallel, so that only common prefixes are visited. */
#include "kernel.h"

#define WIDE 16 /* below a node with more tokens than this, literals and free text have faster ways than the walk */
#define FEW 16  /* up to so many children, or bytes, are tried one by one */
#define MOST_LITERALS 16 /* literals followed in turns */
#define TABLE_FULL 4096 /* if the table has more states, the next walk clears it */

void walk_free(Walk *w) {
    if (!w) return;
    for (int i = 0; i < w->levels; i++) free(w->level[i].at);
    free(w->level), free(w->branches), free(w->children), free(w->one.at), free(w->two.at), free(w);
}

/* Scratch memory: the spare one, or new memory if another (outer) walk uses it. */
Walk *walk_take(Engine *e, Target *target) {
    Walk **spare = read_only ? &e->spare : &e->tokens->spare, *w = *spare;
    *spare = NULL;
    if (!w && (w = calloc(1, sizeof *w))) {
        w->levels = e->tokens->longest + 2;
        if (!(w->level = calloc(w->levels, sizeof *w->level))) free(w), w = NULL;
    }
    if (!w) {
        no_memory();
        return NULL;
    }
    w->engine = e, w->target = target, w->emitted = w->visits = w->child_count = 0;
    if (!read_only && !e->table.users && e->table.count > TABLE_FULL) table_clear(&e->table, &e->tokens->states);
    e->table.users++;
    return w;
}

void walk_leave(Walk *w) {
    Engine *e = w->engine;
    e->table.users--;
    Walk **spare = read_only ? &e->spare : &e->tokens->spare;
    if (*spare) walk_free(w);
    else *spare = w;
}

int list_id(Target *t, int32_t id) {
    int32_t *list = with_room(t->list, t->listed + 1, &t->list_room, 64, sizeof *list);
    if (!list) return -1;
    t->list = list;
    t->list[t->listed++] = id;
    return 0;
}

int emit(Walk *w, int32_t id) {
    int32_t word = id >> 5;
    Target *t = w->target;
    w->emitted++;
    if (!t->row) return list_id(t, id);
    t->row[word] |= 1u << (id & 31);
    if (t->touched_count >= 0) {
        if (t->touched_count < t->touched_room) t->touched[t->touched_count++] = word;
        else t->touched_count = -1;
    }
    return 0;
}

/* Add all bits of another row to a row. */
void set_row(Target *t, const uint32_t *other) {
    uint32_t *row = t->row; /* local copies, without which the compiler doesn't vectorise the loop */
    for (int32_t i = 0, words = t->words; i < words; i++) row[i] |= other[i];
    t->touched_count = -1;
}

/* Set bits of a row, and list its words, until they are too many. */
void set_ids(Target *t, const uint32_t *ids, int32_t count) {
    if (t->touched_count >= 0 && count > t->touched_room - t->touched_count) t->touched_count = -1;
    for (int32_t i = 0; i < count; i++) {
        t->row[ids[i] >> 5] |= 1u << (ids[i] & 31);
        if (t->touched_count >= 0) t->touched[t->touched_count++] = (int32_t)(ids[i] >> 5);
    }
}

/* Emit tokens from the cache. They don't count in `emitted`, since caching them again would save nothing. */
int emit_all(Walk *w, const uint32_t *ids, int32_t count) {
    Target *t = w->target;
    if (!t->row && count) {
        int32_t *list = with_room(t->list, t->listed + count, &t->list_room, 64, sizeof *list);
        if (!list) return -1;
        memcpy(list + t->listed, ids, count * sizeof *list);
        t->list = list, t->listed += count;
        return 0;
    }
    if (t->row) set_ids(t, ids, count);
    return 0;
}

/* Emit the tokens that end at a node, nearly always at most one. */
int emit_ends(Walk *w, const Node *node) {
    if (!node->ends) return 0;
    for (int32_t i = 1; i < node->ends; i++)
        if (emit(w, w->engine->tokens->ids[node->low + i]) < 0) return -1;
    return emit(w, node->end_id);
}

/* Set `to` to the positions after `data`; empty if it can't be read. `to` and `scratch` must not be `from`. */
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

/* Whether `byte` can be read, without computing the positions after it. */
static int can_read(Engine *e, const Vec *vec, uint8_t byte) {
    uint64_t next[4];
    if (vec->n == 1 && vec->at[0].kind == LITERAL) return e->literals[vec->at[0].object].at[vec->at[0].low] == byte;
    return next_bytes(e, vec, next) < 0 ? -1 : (int)(next[byte >> 6] >> (byte & 63) & 1);
}

/* Emit the token if `data`, the rest of its bytes, can be read from `vec`. */
static int try_token(Walk *w, int32_t id, const uint8_t *data, int32_t length, const Vec *vec) {
    assert(length > 0);
    if (length > 1) {
        if (read_bytes(w->engine, vec, data, length - 1, &w->one, &w->two) < 0) return -1;
        vec = &w->one;
    }
    int read = vec->n ? can_read(w->engine, vec, data[length - 1]) : 0;
    return read > 0 ? emit(w, id) : read;
}

static int try_leaf(Walk *w, uint32_t child, const Vec *vec) {
    const Leaf *leaf = leaf_at(w->engine->tokens, child);
    return try_token(w, leaf->id, leaf->bytes, leaf->length, vec);
}

/* Emit the token if `data`, the rest of its bytes, can be read from a state of the table. */
int try_from(Walk *w, int32_t id, const uint8_t *data, int32_t length, int32_t state) {
    for (; length > 1; data++, length--) {
        int32_t after = table_step(w->engine, state, *data);
        if (after == DEAD) return 0;
        if (after == FAILED) return -1;
        if (after == NO_ROOM) {
            Vec here = *table_vec(&w->engine->table, state);
            return try_token(w, id, data, length, &here);
        }
        state = after;
    }
    const uint64_t *next = length ? table_first(w->engine, state) : NULL;
    if (length && !next) return -1;
    return !length || next[*data >> 6] >> (*data & 63) & 1 ? emit(w, id) : 0;
}

/* try_from for a token by its sorted index, after its first `depth` bytes. */
int try_sorted(Walk *w, int32_t token, int32_t depth, int32_t state) {
    const Tokens *t = w->engine->tokens;
    const int32_t *at = t->offsets + token;
    return try_from(w, t->ids[token], t->flat + at[0] + depth, at[1] - at[0] - depth, state);
}

/* Emit a child's tokens that can be read from a state of the table; the child's byte can be read. */
int descend_from(Walk *w, const Node *node, int32_t state, uint32_t child) {
    if (CHILD_IS_TOKEN(child)) {
        const Leaf *leaf = leaf_at(w->engine->tokens, child);
        return try_from(w, leaf->id, leaf->bytes, leaf->length, state);
    }
    int32_t after = table_step(w->engine, state, CHILD_BYTE(child));
    if (after == DEAD || after == FAILED) return after == DEAD ? 0 : -1;
    const Node *below = node_at(w->engine->tokens, CHILD_AT(child));
    if (after == NO_ROOM) { /* one by one, without the table */
        for (int32_t token = below->low; token < below->high; token++)
            if (try_sorted(w, token, node->depth, state) < 0) return -1;
        return 0;
    }
    return emit_ends(w, below) < 0 ? -1 : visit_from(w, below, after);
}

/* Push the children of a node whose bytes can be read, and prefetch them: some arrive while others are visited. */
static int push_children(Walk *w, const Node *node, const uint64_t wanted[4]) {
    uint32_t *children = with_room(w->children, w->child_count + 256, &w->child_room, 1024, sizeof *children);
    if (!children) return -1;
    w->children = children, children += w->child_count;
    int count = 0, many = 0;
    for (int k = 0; k < 4; k++) many += count_bits(wanted[k]);
    if (node->count < FANNED || many > FEW) {
        for (int i = 0; i < node->count; i++) {
            uint8_t byte = CHILD_BYTE(node->child[i]);
            if (wanted[byte >> 6] >> (byte & 63) & 1) children[count++] = node->child[i];
        }
    } else {
        for (int k = 0; k < 4; k++)
            for (uint64_t bits = wanted[k] & fanout_of(node)->bytes[k]; bits; bits &= bits - 1)
                children[count++] = fanned_child(node, k * 64 + lowest_bit(bits));
    }
    for (int i = 0; i < count; i++) prefetch_at(w->engine->tokens, CHILD_AT(children[i]));
    w->child_count += count;
    return 0;
}

/* Emit the tokens below a node that can be read from a state of the table. */
int visit_from(Walk *w, const Node *node, int32_t state) {
    const uint64_t *wanted = table_first(w->engine, state);
    int32_t begin = w->child_count;
    if (!wanted || push_children(w, node, wanted) < 0) return -1;
    for (int32_t i = begin, end = w->child_count; i < end; i++)
        if (descend_from(w, node, state, w->children[i]) < 0) return -1;
    w->child_count = begin;
    return 0;
}

/* Emit the tokens of a child that can be read from level[depth]. */
static int descend(Walk *w, int32_t depth, uint32_t child) {
    if (CHILD_IS_TOKEN(child)) return try_leaf(w, child, &w->level[depth]);
    Vec *next = &w->level[depth + 1];
    if (step_vec(w->engine, &w->level[depth], CHILD_BYTE(child), next) < 0) return -1;
    if (!next->n) return 0;
    return visit(w, CHILD_AT(child));
}

/* Emit the tokens of a branch that leaves a run of characters. `after`: the positions after the run, which can read the branch's
 * byte; `*state`: their number in the table, or UNKNOWN. */
int visit_after(Walk *w, Branch branch, const Vec *after, int32_t *state) {
    if (!CHILD_IS_TOKEN(branch.child))
        return vec_copy(&w->level[branch.depth], after) < 0 ? -1 : descend(w, branch.depth, branch.child);
    const Leaf *leaf = leaf_at(w->engine->tokens, branch.child);
    if (branch.high == leaf->length - 1) return emit(w, leaf->id);
    if (*state == UNKNOWN && (*state = table_state(w->engine, after, 1)) < 0) return -1;
    return try_from(w, leaf->id, leaf->bytes + branch.high, leaf->length - branch.high, *state);
}

/* Follow a literal down the trie up to the byte before its last. The node reached; NULL if there is none, with -1 in `failed` on error. */
static const Node *follow_literal(Walk *w, const Node *node, int *failed) {
    const Tokens *t = w->engine->tokens;
    Config *c = &w->level[node->depth].at[0], here = *c;
    const Literal *literal = &w->engine->literals[c->object];
    const uint8_t *data = literal->at + c->low;
    int32_t run = literal->length - c->low - 1;
    if (run <= 0) return node;
    for (; run > 0; run--, data++, here.low++) {
        uint32_t child;
        if (!find_child(node, *data, &child)) return NULL;
        if (CHILD_IS_TOKEN(child)) {
            Vec one = {&here, 1, 1};
            *failed = try_leaf(w, child, &one);
            return NULL;
        }
        node = node_at(t, CHILD_AT(child));
        if ((*failed = emit_ends(w, node)) < 0) return NULL;
    }
    w->level[node->depth].n = 0;
    *failed = vec_push(&w->level[node->depth], &here);
    return node;
}

/* Follow several literals down the trie, each by a byte in turn: the memory of one arrives while the others are followed. The last
 * byte of a literal is read, and the only token below a child is tried, as anywhere. A token that several of them allow is emitted for
 * each, so the target must be a row. */
static int follow_literals(Walk *w, const Node *node) {
    const Tokens *t = w->engine->tokens;
    struct {
        const Node *node; /* NULL: finished */
        Config at;
    } ways[MOST_LITERALS];
    int count = w->level[node->depth].n, left = count, failed = 0;
    for (int i = 0; i < count; i++) ways[i].node = node, ways[i].at = w->level[node->depth].at[i];
    for (int first = 1; left && !failed; first = 0) {
        for (int i = 0; i < count && !failed; i++) {
            const Node *here = ways[i].node;
            Config *c = &ways[i].at;
            if (!here) continue;
            const Literal *literal = &w->engine->literals[c->object];
            uint32_t child;
            if (!first && (failed = emit_ends(w, here)) < 0) break;
            int found = find_child(here, literal->at[c->low], &child);
            if (found && (CHILD_IS_TOKEN(child) || c->low + 1 == literal->length)) {
                Vec one = {c, 1, 1};
                if (CHILD_IS_TOKEN(child)) failed = try_leaf(w, child, &one);
                else failed = vec_copy(&w->level[here->depth], &one) < 0 ? -1 : descend(w, here->depth, child);
                found = 0;
            }
            if (found) ways[i].node = node_at(t, CHILD_AT(child)), c->low++, prefetch_at(t, CHILD_AT(child));
            else ways[i].node = NULL, left--;
        }
    }
    return failed;
}

/* Push a branch, and prefetch it while others are visited. */
int push_branch(Walk *w, Branch branch) {
    Branch *branches = with_room(w->branches, w->branch_count + 1, &w->branch_room, 128, sizeof *branches);
    if (!branches) return -1;
    w->branches = branches;
    w->branches[w->branch_count++] = branch;
    return 0;
}

/* Push a branch for each child of a node with which some of values[low:high] continue after `read` bytes. */
static inline int push_branches(Walk *w, const Node *node, const Choices *choices, int32_t read, int32_t low, int32_t high) {
    int32_t length;
    if (w->branch_room - w->branch_count < 256) {
        Branch *branches = with_room(w->branches, w->branch_count + 256, &w->branch_room, 256, sizeof *branches);
        if (!branches) return -1;
        w->branches = branches;
    }
    Branch *next = w->branches + w->branch_count;
    while (low < high) {
        uint8_t byte = choice(choices, low, &length)[read];
        int32_t end = high;
        if (high - low > 1 && choice(choices, high - 1, &length)[read] != byte) { /* few children are nearly always compared in order */
            int32_t near = high - low < FEW ? high : low + FEW;
            for (end = low + 1; end < near && choice(choices, end, &length)[read] == byte;) end++;
            if (end == near) end = choices_from(choices, end, high, read, byte + 1);
        }
        if (find_child(node, byte, &next->child)) {
            prefetch_at(w->engine->tokens, CHILD_AT(next->child));
            next->low = low, next->high = end, next->depth = node->depth;
            next++;
        }
        low = end;
    }
    w->branch_count = (int32_t)(next - w->branches);
    return 0;
}

/* Emit the token of a Leaf if some of values[low:high] continue with it after `read` bytes. 1: it depends on what follows the values
 * (which are not the `last` of the text), and isn't emitted. */
static int visit_leaf(Walk *w, const Leaf *leaf, const Choices *choices, int32_t read, int32_t low, int32_t high, int last) {
    int32_t length;
    for (int32_t i = 1; i < leaf->length; i++) {
        (void)choice(choices, low, &length);
        if (length == read + i) {
            if (!last) return 1;
            if (++low == high) return 0;
        }
        low = choices_from(choices, low, high, read + i, leaf->bytes[i]);
        high = choices_from(choices, low, high, read + i, leaf->bytes[i] + 1);
        if (low == high) return 0;
    }
    return emit(w, leaf->id);
}

/* Emit the tokens below a node that the values of choices allow. Branches whose tokens depend on what follows a value stay on the
 * stack; there are none if the values are the `last` of the text. */
static int visit_values(Walk *w, const Node *node, const Config *c, int last) {
    const Tokens *t = w->engine->tokens;
    const Choices *choices = &w->engine->choices[c->object];
    int32_t begin = w->branch_count, kept = begin, length;
    int failed = push_branches(w, node, choices, c->depth, c->low, c->high);
    for (int32_t i = begin; i < w->branch_count && failed >= 0; i++) {
        Branch branch = w->branches[i];
        int32_t read = c->depth - node->depth + branch.depth; /* bytes of the values before the child's byte */
        if (CHILD_IS_TOKEN(branch.child)) {
            failed = visit_leaf(w, leaf_at(t, branch.child), choices, read, branch.low, branch.high, last);
            if (failed > 0) w->branches[kept++] = branch;
            continue;
        }
        (void)choice(choices, branch.low, &length);
        if (length == read + 1) { /* a value ends here; the shortest comes first */
            if (!last) {
                w->branches[kept++] = branch;
                continue;
            }
            branch.low++;
        }
        const Node *below = node_at(t, CHILD_AT(branch.child));
        if (below->ends) failed = emit_ends(w, below);
        if (failed >= 0) failed = push_branches(w, below, choices, read + 1, branch.low, branch.high);
    }
    w->branch_count = kept;
    return failed < 0 ? -1 : 0;
}

/* Emit the tokens of a branch that values and what follows them allow. */
static int visit_branch(Walk *w, const Config *c, int32_t read, Branch branch) {
    Config group = {CHOICES, c->object, c->rest, branch.low, branch.high, read};
    Vec one = {&group, 1, 1};
    if (CHILD_IS_TOKEN(branch.child)) return try_leaf(w, branch.child, &one);
    return vec_copy(&w->level[branch.depth], &one) < 0 ? -1 : descend(w, branch.depth, branch.child);
}

/* As before, with the result cached: it doesn't depend on what follows the values. */
static int recall_values(Walk *w, const Node *node, const Config *c) {
    Config key = {INSIDE, c->object, node_number(w->engine->tokens, node), c->low, c->high, c->depth};
    const CachedMask *known = map_get(&w->engine->rows, &key);
    if (known) {
        const uint32_t *left = known->data + known->count;
        for (uint32_t i = 0; i < *left; i++)
            if (push_branch(w, ((const Branch *)(left + 1))[i]) < 0) return -1;
        return emit_all(w, known->data, known->count);
    }
    Target found = {.touched_count = -1}, *target = w->target;
    int32_t begin = w->branch_count;
    w->target = &found;
    int failed = visit_values(w, node, c, 0);
    w->target = target;
    w->emitted -= found.listed;
    if (!failed) failed = emit_all(w, (uint32_t *)found.list, found.listed);
    int32_t count = w->branch_count - begin;
    if (!failed && !read_only && found.listed + count > FEW) failed = keep_inside(w->engine, &key, &found, w->branches + begin, count);
    free(found.list);
    return failed;
}

/* Cache the result for the values of choices below a node ahead of its first mask: 1. 0: it is cached already, or cheap. */
int keep_values(Engine *e, const Node *node, const Config *c) {
    Config key = {INSIDE, c->object, node_number(e->tokens, node), c->low, c->high, c->depth};
    if (c->high - c->low <= FEW || node->high - node->low <= WIDE || map_get(&e->rows, &key)) return 0;
    Target found = {.touched_count = -1};
    Walk *w = walk_take(e, &found);
    int failed = w ? recall_values(w, node, c) : -1;
    if (w) w->branch_count = 0, walk_leave(w);
    free(found.list);
    return failed < 0 ? -1 : 1;
}

/* Emit the tokens below a node that the values of choices, and what follows them, can read. */
static int visit_choices(Walk *w, const Node *node, const Config *c) {
    int many = c->rest && c->high - c->low > FEW && node->high - node->low > WIDE;
    int32_t begin = w->branch_count;
    int last = !c->rest && w->engine->choices[c->object].bind == Py_None;
    int failed = many ? recall_values(w, node, c) : visit_values(w, node, c, last);
    for (int32_t i = begin, end = w->branch_count; i < end && failed >= 0; i++) {
        Branch branch = w->branches[i];
        failed = visit_branch(w, c, c->depth - node->depth + branch.depth, branch);
    }
    w->branch_count = begin;
    return failed < 0 ? -1 : 0;
}

/* Emit the tokens below a node that can be read from level[depth].
 *
 * From the cheapest method to the most expensive: positions that are all choices are followed value by value, literals to their
 * last bytes; free text is handled by read_text and removed; positions with other free text are walked by numbered states, of
 * which there are few; all others are walked byte by byte.
 */
int visit(Walk *w, int32_t number) {
    Engine *e = w->engine;
    const Node *node = node_at(e->tokens, number);
    Vec *here = &w->level[node->depth];
    w->visits++;
    if (node->depth && emit_ends(w, node) < 0) return -1;
    if (here->n == 1 && here->at[0].kind == CHOICES) {
        Config c = here->at[0];
        return visit_choices(w, node, &c);
    }
    if (here->n == 1 && here->at[0].kind == LITERAL) {
        int failed = 0;
        node = follow_literal(w, node, &failed);
        if (!node || failed) return failed;
        here = &w->level[node->depth];
    }
    if (here->n > 1 && here->n <= MOST_LITERALS && w->target->row && node->high - node->low > WIDE) {
        int literals = 1;
        for (int i = 0; i < here->n && literals; i++) literals = here->at[i].kind == LITERAL;
        if (literals) return follow_literals(w, node);
    }
    if (node->high - node->low > WIDE) { /* free text is handled without a walk, and removed */
        int kept = 0;
        for (int i = 0; i < here->n; i++) {
            Config c = here->at[i];
            int done = c.kind == TEXT || c.kind == LOOP ? read_text(w, node, &c) : 0;
            if (done < 0) return -1;
            if (!done) here->at[kept++] = c;
        }
        here->n = kept;
    }
    int text = 0;
    for (int i = 0; i < here->n && !text; i++)
        text = ((here->at[i].kind == TEXT || here->at[i].kind == LOOP) && here->at[i].high != 1) || here->at[i].kind == JSON_TEXT;
    if (text && node->high - node->low > WIDE) { /* free text reaches the same few states again and again */
        int32_t state = table_state(e, here, 1);
        return state < 0 ? -1 : visit_from(w, node, state);
    }
    uint64_t wanted[4];
    if (next_bytes(e, here, wanted) < 0) return -1;
    int32_t begin = w->child_count;
    if (push_children(w, node, wanted) < 0) return -1;
    for (int32_t i = begin, end = w->child_count; i < end; i++)
        if (descend(w, node->depth, w->children[i]) < 0) return -1;
    w->child_count = begin;
    return 0;
}
