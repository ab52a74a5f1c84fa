/* Sets of positions as numbered states with a table of their steps.
 *
 * Walking tens of thousands of tokens through free text comes to the same few sets again and again; here
 * each is stepped once a byte. Narrow walks do without: they hardly ever see a set twice.
 */
#include "kernel.h"

#define MOST_STATES 8192
#define MANY 64 /* states that can read so many bytes are free text */

struct State {
    Vec vec; /* sorted */
    size_t hash;
    uint64_t first[4]; /* bytes that may come next */
    int has_first;
    uint64_t hits_bottom[4]; /* bytes that lead to the engine's bottom frame */
    int16_t next[256]; /* next states; UNKNOWN also for states whose numbers don't fit */
};

static int compare(const void *a, const void *b) {
    return memcmp(a, b, sizeof(Config));
}

static int grow(Table *t) {
    size_t room = t->room ? 2 * t->room : 256;
    State **states = realloc(t->states, room / 2 * sizeof *states);
    if (states) t->states = states;
    int32_t *slots = malloc(room * sizeof *slots);
    if (!states || !slots) {
        free(slots);
        no_memory();
        return -1;
    }
    memset(slots, 0xFF, room * sizeof *slots);
    for (int32_t i = 0; i < t->count; i++) {
        size_t at = t->states[i]->hash & (room - 1);
        while (slots[at] >= 0) at = (at + 1) & (room - 1);
        slots[at] = i;
    }
    free(t->slots);
    t->slots = slots;
    t->room = room;
    return 0;
}

void table_clear(Table *t, Spare *spare) {
    for (int32_t i = 0; i < t->count; i++) free(t->states[i]->vec.at), spare_give(spare, t->states[i], sizeof(State));
    free(t->states), free(t->slots);
    *t = (Table){NULL, 0, NULL, 0, 0, 0};
}

/* The number of a set of positions, which is copied and sorted first, so that the same set in another order is found:
 * NO_ROOM where the table is full and it isn't `wanted`, FAILED with an error set. */
int32_t table_state(Engine *e, const Vec *vec, int wanted) {
    Table *t = &e->table;
    if (2 * (size_t)(t->count + 1) > t->room && (read_only || grow(t) < 0)) return FAILED;
    if (!t->count && vec->n) { /* state 0 is the empty set */
        Vec empty = {NULL, 0, 0};
        if (table_state(e, &empty, 1) < 0) return FAILED;
    }
    State *state = spare_take(&e->tokens->states, sizeof *state);
    if (!state || (state->vec = (Vec){NULL, 0, 0}, vec_copy(&state->vec, vec) < 0)) {
        spare_give(&e->tokens->states, state, sizeof *state);
        no_memory();
        return FAILED;
    }
    if (vec->n > 1) qsort(state->vec.at, vec->n, sizeof(Config), compare);
    uint64_t hash = 0x9E3779B97F4A7C15ull;
    const uint32_t *word = (const uint32_t *)state->vec.at;
    for (size_t i = 0; i < vec->n * sizeof(Config) / 4; i++)
        hash = (hash ^ word[i]) * 0xFF51AFD7ED558CCDull, hash ^= hash >> 32;
    state->hash = (size_t)hash;
    size_t at = state->hash & (t->room - 1);
    for (; t->slots[at] >= 0; at = (at + 1) & (t->room - 1)) {
        State *other = t->states[t->slots[at]];
        if (other->hash == state->hash && other->vec.n == vec->n &&
            (!vec->n || !memcmp(other->vec.at, state->vec.at, vec->n * sizeof(Config))))
            break;
    }
    if (t->slots[at] >= 0 || read_only || (t->count >= MOST_STATES && !wanted)) {
        free(state->vec.at), spare_give(&e->tokens->states, state, sizeof *state);
        return t->slots[at] >= 0 ? t->slots[at] : read_only ? FAILED : NO_ROOM;
    }
    state->has_first = 0;
    memset(state->hits_bottom, 0, sizeof state->hits_bottom);
    memset(state->next, 0xFF, sizeof state->next); /* UNKNOWN */
    t->bytes += sizeof *state + vec->n * sizeof(Config);
    t->slots[at] = t->count;
    t->states[t->count] = state;
    return t->count++;
}

const Vec *table_vec(const Table *t, int32_t state) {
    assert(state >= 0 && state < t->count);
    return &t->states[state]->vec;
}

const uint64_t *table_first(Engine *e, int32_t number) {
    State *state = e->table.states[number];
    if (state->has_first) return state->first; /* and don't write: other threads may read the table */
    if (read_only || next_bytes(e, &state->vec, state->first) < 0) return NULL;
    state->has_first = 1;
    return state->first;
}

/* Whether two bytes certainly lead to the same positions, by a quick test. */
static int alike(const Engine *e, const Vec *vec, int a, int b) {
    for (int i = 0; i < vec->n; i++) {
        const Config *c = &vec->at[i];
        if (c->kind == LITERAL) {
            uint8_t byte = e->literals[c->object].at[c->low];
            if (byte == a || byte == b) return 0;
        } else if (c->kind != TEXT || e->tokens->sets[c->object]->next[c->depth][a] != e->tokens->sets[c->object]->next[c->depth][b]) {
            return 0;
        }
    }
    return 1;
}

/* Free text continues in the same way after nearly every byte: note the step for all such bytes. */
static void note_alike(const Engine *e, State *state, uint8_t byte, int16_t after) {
    int many = 0;
    for (int k = 0; k < 4 && state->has_first; k++) many += count_bits(state->first[k]);
    if (many < MANY) return;
    int hit = state->hits_bottom[byte >> 6] >> (byte & 63) & 1;
    for (int b = 0; b < 256; b++) {
        if (state->next[b] != UNKNOWN || !alike(e, &state->vec, byte, b)) continue;
        state->next[b] = after;
        state->hits_bottom[b >> 6] |= (uint64_t)hit << (b & 63);
    }
}

/* The state after a byte: DEAD where there is none; NO_ROOM, FAILED as above. */
int32_t table_step(Engine *e, int32_t from, uint8_t byte) {
    assert(from >= 0 && from < e->table.count);
    State *state = e->table.states[from];
    int32_t after = state->next[byte];
    if (after != UNKNOWN) {
        if (state->hits_bottom[byte >> 6] >> (byte & 63) & 1) e->bottom_hits++;
        return after;
    }
    if (read_only) return FAILED;
    Vec vec = {NULL, 0, 0};
    int64_t bottom_hits = e->bottom_hits;
    if (step_vec(e, &state->vec, byte, &vec) < 0) after = FAILED;
    else after = vec.n ? table_state(e, &vec, 0) : DEAD;
    free(vec.at);
    if (e->bottom_hits != bottom_hits) state->hits_bottom[byte >> 6] |= 1ull << (byte & 63);
    if (after >= DEAD && after <= INT16_MAX) { /* states must not move during a walk */
        state->next[byte] = (int16_t)after;
        note_alike(e, state, byte, (int16_t)after);
    }
    return after;
}
