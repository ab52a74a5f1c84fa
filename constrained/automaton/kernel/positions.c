/* Vectors and maps of positions, and reused blocks of memory. */
#include "kernel.h"

/* The array with room for `count` items of `size` bytes, reallocated to at least twice its size if needed. NULL: an error is set. */
void *with_room(void *array, int32_t count, int32_t *room, int32_t least, size_t size) {
    if (count <= *room) return array;
    int32_t more = *room ? *room : least;
    while (more < count) more *= 2;
    void *moved = realloc(array, more * size);
    if (!moved) return no_memory();
    *room = more;
    return moved;
}

int vec_append(Vec *vec, const Config *configs, int n) {
    if (!n) return 0;
    Config *at = with_room(vec->at, vec->n + n, &vec->room, 4, sizeof *at);
    if (!at) return -1;
    vec->at = at;
    memcpy(vec->at + vec->n, configs, n * sizeof(Config));
    vec->n += n;
    return 0;
}

int vec_push(Vec *vec, const Config *config) {
    return vec_append(vec, config, 1);
}

int vec_copy(Vec *to, const Vec *from) {
    to->n = 0;
    return from->n ? vec_append(to, from->at, from->n) : 0;
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, sizeof(Config));
}

void vec_distinct(Vec *vec) {
    int kept = 0, many = vec->n > 4;
    uint64_t seen = many ? 0 : ~0ull; /* in a long vector a position is found by some bits of its hash, which nearly always identify it */
    if (vec->n > 12) qsort(vec->at, vec->n, sizeof(Config), compare);
    for (int i = 0; i < vec->n; i++) {
        int known = 0;
        if (vec->n > 12) {
            known = kept && same(&vec->at[kept - 1], &vec->at[i], sizeof(Config));
        } else {
            uint64_t bit = many ? 1ull << (hash(&vec->at[i], sizeof(Config)) & 63) : 1;
            for (int k = 0; k < kept && seen & bit && !known; k++) known = same(&vec->at[k], &vec->at[i], sizeof(Config));
            seen |= bit;
        }
        if (known) continue;
        if (kept != i) vec->at[kept] = vec->at[i];
        kept++;
    }
    vec->n = kept;
}

void *map_get(const Map *map, const Config *key) {
    if (!map->used) return NULL;
    for (size_t i = hash(key, sizeof(Config)) & (map->room - 1);; i = (i + 1) & (map->room - 1)) {
        if (!map->slots[i].key.kind) return NULL;
        if (same(&map->slots[i].key, key, sizeof(Config))) return map->slots[i].value;
    }
}

/* Make room for so many more keys. */
int map_expect(Map *map, size_t more) {
    Map larger = {NULL, map->room ? map->room : 16, map->used};
    while (larger.room < 2 * (map->used + more)) larger.room *= 2;
    if (larger.room == map->room) return 0;
    larger.slots = calloc(larger.room, sizeof(Slot));
    if (!larger.slots) {
        no_memory();
        return -1;
    }
    for (size_t k = 0; k < map->room; k++) {
        if (!map->slots[k].key.kind) continue;
        size_t i = hash(&map->slots[k].key, sizeof(Config)) & (larger.room - 1);
        while (larger.slots[i].key.kind) i = (i + 1) & (larger.room - 1);
        larger.slots[i] = map->slots[k];
    }
    free(map->slots);
    *map = larger;
    return 0;
}

int map_put(Map *map, const Config *key, void *value) {
    if (read_only || map_expect(map, 1) < 0) return -1;
    size_t i = hash(key, sizeof(Config)) & (map->room - 1);
    while (map->slots[i].key.kind && !same(&map->slots[i].key, key, sizeof(Config))) i = (i + 1) & (map->room - 1);
    assert(key->kind);
    map->used += !map->slots[i].key.kind;
    map->slots[i] = (Slot){*key, value};
    return 0;
}

void map_clear(Map *map, int free_values) {
    for (size_t i = 0; free_values && i < map->room; i++)
        if (map->slots[i].key.kind) free(map->slots[i].value);
    free(map->slots);
    *map = (Map){NULL, 0, 0};
}

/* A block whose contents may be anything; NULL: no memory, and no error set. */
void *spare_take(Spare *spare, size_t size) {
    return !read_only && spare->count && spare->size == size ? spare->at[--spare->count] : malloc(size);
}

/* Keep a block for later, or free it. */
void spare_give(Spare *spare, void *block, size_t size) {
    if (block && !read_only && !spare->at && (spare->at = malloc(spare->most * sizeof *spare->at))) spare->size = size;
    if (!block || read_only || !spare->at || spare->size != size || spare->count == spare->most) free(block);
    else spare->at[spare->count++] = block;
}

void spare_free(Spare *spare) {
    while (spare->count) free(spare->at[--spare->count]);
    free(spare->at);
}
