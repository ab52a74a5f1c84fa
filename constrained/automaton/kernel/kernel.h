/* The engine's hot loops in C: stepping through a grammar byte by byte, and masks over a vocabulary.
 *
 * What a grammar means stays in Python. The kernel reads plain nodes by itself; of each other construct it asks the bridge
 * (bridge.py) once what it is made of, and keeps the answer. It mirrors closure.py, the `_step` methods of positions.py and
 * the walk of masks.py: with and without it, masks are the same (tests/automaton/test_kernel.py).
 *
 *   tokens.c    the vocabulary: sorted tokens as a trie, their characters
 *   text.c      sets of characters: stepping through UTF-8, which tokens lie wholly inside
 *   positions.c vectors and maps of positions, which are plain structs here
 *   bridge.c    Python's positions to plain structs, and back
 *   constructs.c  a grammar's nodes, and what they are made of
 *   frames.c    stacks of constructs
 *   closure.c   what follows a frame without reading a byte
 *   shared.c    closures in which each construct is entered once, where many stacks reach it
 *   step.c      reading a byte
 *   engine.c    one grammar over one vocabulary
 *   stacks.c    positions whose stacks are joined
 *   table.c     sets of positions as numbered states
 *   walk.c      the trie of tokens, walked beside the grammar
 *   free_text.c free text, which needs no walk
 *   json_text.c texts that a table of characters reads
 *   masks.c     which tokens may come next
 *   core.c      one text being written: its positions, its budget, and steps back
 *   rows.c      the rows of a batch
 *   threads.c   rows filled on several cores
 *   module.c    what Python sees
 */
#ifndef CONSTRAINED_KERNEL_H
#define CONSTRAINED_KERNEL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bits, where the compiler has no builtin for them. */
#if defined(__GNUC__) || defined(__clang__)
#define count_bits(word) __builtin_popcountll(word)
#define lowest_bit(word) __builtin_ctzll(word)
#define prefetch_write(address) __builtin_prefetch(address, 1)
#define prefetch_read(address) __builtin_prefetch(address, 0)
#else
static inline int count_bits(uint64_t word) {
    int count = 0;
    for (; word; word &= word - 1) count++;
    return count;
}
static inline int lowest_bit(uint64_t word) { /* the word must not be 0 */
    int bit = 0;
    while (!(word >> bit & 1)) bit++;
    return bit;
}
#define prefetch_write(address) ((void)0)
#define prefetch_read(address) ((void)0)
#endif

#ifdef _MSC_VER
#define THREAD_LOCAL __declspec(thread)
#else
#define THREAD_LOCAL _Thread_local
#endif

/* threads --------------------------------------------------------------------------------------- */

extern THREAD_LOCAL int read_only; /* set in threads without the GIL: what isn't in the tables yet fails, without an error set */

void kernel_enter(void); /* around each call from Python that touches tables or matchers */
void kernel_leave(void);
int run_apart(int threads, void (*job)(void *), void *argument);
void *no_memory(void);

#define GUARDED(name, parameters, arguments) \
    static PyObject *name##_guarded parameters { \
        kernel_enter(); \
        PyObject *result = name arguments; \
        kernel_leave(); \
        return result; \
    }

/* positions -------------------------------------------------------------------------------------- */

enum { ACCEPT = 1, STEP_END, LITERAL, CHOICES, TEXT, EXCEPT, LOOP, JSON_TEXT, FINISHED, JOINED, FORKS, ASIDE, INSIDE };

/* A position: what is read next, and the frame of what comes after it (0: nothing does). What the fields hold, by kind:
 *
 *   kind       object                 low               high                                depth
 *   LITERAL    the literal            bytes read        0                                   0
 *   CHOICES    the choices            the first value   the one after the last              bytes of them read
 *   EXCEPT     the texts left out     the same          the same                            the same
 *   TEXT       the set of characters  characters due    characters allowed; -1: any number  state inside a character
 *   LOOP       what is read           the same          the same                            the same
 *   JSON_TEXT  the table              its state         as in TEXT                          state inside a character
 *
 * A LOOP is a TEXT in which something else may stand for each character (positions.py: InLoop). The kinds from FINISHED on
 * are never positions: they tell keys of one map apart. Positions are compared as bytes, so every field is always set. */
typedef struct {
    int32_t kind, object, rest;
    int32_t low, high;
    int32_t depth;
} Config;

typedef struct {
    Config *at;
    int n, room;
} Vec;

typedef struct {
    Config key; /* kind 0: unused */
    void *value;
} Slot;

typedef struct {
    Slot *slots;
    size_t room, used;
} Map;

/* vocabulary ------------------------------------------------------------------------------------ */

/* A node of the trie: a prefix that two or more tokens share. Its children are stored directly behind it, because a walk spends
 * most of its time waiting for memory. */
typedef struct {
    int32_t low, high;     /* the sorted tokens low … high - 1 have the prefix */
    int32_t ends, end_id;  /* how many of them are the prefix itself (they come first), and the id of one; -1: none */
    uint16_t count, depth; /* children; bytes of the prefix */
    uint32_t child[];      /* bits 0-7: the next byte; bit 8: the child is a Leaf, not a node; from bit 9: its index in the trie */
} Node;

/* The index of the children of a node with FANNED or more: stored directly before the node, so that both begin in one cache line. */
typedef struct {
    uint64_t bytes[4]; /* the children's bytes, one bit each */
    uint8_t before[4]; /* the number of children in bytes[0 … k - 1] */
} Fanout;

/* A child below which there is only one token, with its bytes to compare. Leaves are stored behind their node. */
typedef struct {
    int32_t id;
    uint16_t length;  /* the number of bytes after those of the node */
    uint8_t bytes[];
} Leaf;

#define OUTLIER_BYTES 6

/* A token that doesn't consist of whole characters of a set. */
typedef struct {
    int32_t token;  /* sorted index */
    int32_t offset; /* the offset of its first character outside the set; -1: there is none, but it ends inside a character */
    int32_t before; /* whole characters before that */
    int32_t id;
    uint8_t byte;   /* the byte at `offset` */
    uint8_t left;   /* bytes from `offset` to its end; 255: so many or more */
    uint8_t after[OUTLIER_BYTES]; /* the bytes after `byte` */
} Outlier;

/* One set of characters over one vocabulary. */
typedef struct {
    PyObject *charset;           /* constrained.grammar.charset.CharSet */
    PyObject *keys;              /* list: state -> CharSet's name of the state; state 0 is "before a character" */
    PyObject *numbers;           /* dict: CharSet's name -> state */
    int16_t (*next)[256];        /* next state; -1: not in the set; 0: the character is whole */
    uint64_t (*first)[4];        /* per state: the bytes that can be read, one bit each */
    uint8_t *known;              /* per state: whether its rows of `next` and `first` are filled */
    int states, room;
    int indexed;                 /* whether the fields below are filled */
    int permissive;              /* most tokens are inside, so that base rows are used: free_text.c */
    uint32_t *row;               /* packed over ids: the tokens that are inside the set */
    uint8_t *free;               /* the same by sorted index, one byte each */
    Outlier *outliers;           /* if permissive, the other tokens: sorted by `byte` (those that end with it first), then by token */
    uint32_t *outlier_ids;       /* the ids of the outliers */
    int32_t outlier_count;
    int32_t outlier_start[257];      /* the first outlier of each byte; byte 0: those that end inside a character */
    int32_t outlier_longer[256];     /* the first outlier of each byte that continues after it */
    uint8_t *counts;             /* [longest + 2]: whether some token may have that many characters */
} TextSet;

/* Blocks of one size, kept for reuse: the page faults of new memory take longer than writing to it. */
typedef struct {
    void **at;
    int count, most;
    size_t size;
} Spare;

#define SPARE_ROWS 32
#define SPARE_STATES 128

typedef struct {
    PyObject_HEAD
    Py_buffer buffers[4];
    int held;                    /* buffers in use */
    int ready;                   /* checked, and the trie is built */
    const uint8_t *flat;         /* all sorted tokens' bytes */
    const int32_t *lengths, *ids, *ranks;
    int32_t *offsets;            /* flat, ids, offsets and the trie are in one block */
    int32_t n, size, words, longest;
    uint32_t *trie;              /* the nodes, of different sizes; a node's number is the index of its first word. The root comes first */
    int32_t trie_words;
    uint64_t (*ascii)[2];        /* per token: the ASCII characters that it contains */
    uint8_t *plain;              /* per token: 1: only ASCII; 2: whole characters, some beyond ASCII; 0: others */
    int32_t *chars;              /* per token: the number of characters that begin in it */
    int32_t *by_chars;           /* the tokens of whole characters, fewest characters first */
    int32_t *chars_end;          /* [longest + 1]: index in by_chars after the tokens with at most so many characters */
    uint32_t *whole;             /* packed over ids: tokens of whole characters */
    Spare rows, states;          /* blocks of engines that were freed */
    struct CachedMask *clear;    /* a spare empty row; NULL while it is written: masks.c */
    struct Walk *spare;          /* a walk's scratch memory; NULL while a walk uses it */
    struct Characters *characters; /* the trie of characters: json_text.c */
    Map bases;                   /* (set, node, characters) -> row of the tokens that stay inside: free_text.c */
    Map inside;                  /* (set, node, state) -> Inside: free_text.c */
    size_t inside_bytes;
    PyObject *set_numbers;       /* dict: CharSet -> index into sets */
    TextSet **sets;
    int set_count;
} Tokens;

int tokens_text(Tokens *tokens);                         /* fill `ascii` … `whole`, once */
int text_set(Tokens *tokens, PyObject *charset);         /* the set's number, or -1 */
int text_expand(TextSet *set, int state);                /* fill next[state] and first[state] */
int text_index(Tokens *tokens, TextSet *set);            /* fill the set's fields from `permissive` on */
void text_free(TextSet *set);
static inline const Node *node_at(const Tokens *tokens, int32_t number) {
    return (const Node *)(tokens->trie + number);
}

static inline int32_t node_number(const Tokens *tokens, const Node *node) {
    return (int32_t)((const uint32_t *)node - tokens->trie);
}

int32_t tokens_below(const Tokens *tokens, uint32_t child, int32_t *end);

#define MOST_NODES (1 << 23)
#define MOST_WORDS (1 << 23) /* words of the trie, whose indices must fit into a child */
#define MOST_FRAMES (1 << 28)
#define MOST_NEAR 16
#define CROWD_OF_STACKS 8 /* up to so many positions aren't joined, as in graph_stack.py */
#define CHILD_BYTE(child) ((uint8_t)(child))
#define CHILD_IS_TOKEN(child) ((child) >> 8 & 1)
#define CHILD_AT(child) ((int32_t)((child) >> 9))

#define FANNED 16 /* nodes with so many children have a Fanout */
#define LINE 16 /* words in a cache line */
#define ROOT ((int32_t)(sizeof(Fanout) / sizeof(uint32_t))) /* the number of the root, which has a Fanout before it */

/* Prefetch a node or a leaf: more than one cache line, since many children take several. */
static inline void prefetch_at(const Tokens *tokens, int32_t number) {
    prefetch_read(tokens->trie + number);
    prefetch_read(tokens->trie + number + LINE);
}

static inline const Fanout *fanout_of(const Node *node) {
    return (const Fanout *)((const uint32_t *)node - ROOT);
}

/* The child for a byte that is in the Fanout. */
static inline uint32_t fanned_child(const Node *node, int byte) {
    const Fanout *fanout = fanout_of(node);
    uint64_t lower = fanout->bytes[byte >> 6] & ((1ull << (byte & 63)) - 1); /* bits are counted in parallel here: for a builtin, gcc would call a function */
    lower -= lower >> 1 & 0x5555555555555555ull;
    lower = (lower & 0x3333333333333333ull) + (lower >> 2 & 0x3333333333333333ull);
    lower = (lower + (lower >> 4)) & 0x0F0F0F0F0F0F0F0Full;
    return node->child[fanout->before[byte >> 6] + (lower * 0x0101010101010101ull >> 56)];
}

static inline int find_child(const Node *node, uint8_t byte, uint32_t *child) {
    const uint32_t *at = node->child;
    if (!node->count) return 0;
    if (node->count >= FANNED) {
        if (!(fanout_of(node)->bytes[byte >> 6] >> (byte & 63) & 1)) return 0;
        *child = fanned_child(node, byte);
        return 1;
    }
    for (uint32_t n = node->count; n > 1;) { /* without branches, which the processor couldn't predict */
        uint32_t half = n / 2;
        at += CHILD_BYTE(at[half]) <= byte ? half : 0;
        n -= half;
    }
    *child = *at;
    return CHILD_BYTE(*at) == byte;
}

static inline const Leaf *leaf_at(const Tokens *tokens, uint32_t child) {
    return (const Leaf *)(tokens->trie + CHILD_AT(child));
}

/* grammar --------------------------------------------------------------------------------------- */

/* The offset of an attribute in objects of one type; 0: use PyObject_GetAttr. */
typedef struct {
    PyTypeObject *type;
    Py_ssize_t offset;
} Field;

/* A hash index: the numbers of items by the key that each item begins with. */
typedef struct {
    int32_t *slots;
    int32_t count, room, slot_room;
} Index;

#define NODE_TYPES 7 /* the length of Bridge.types */

enum { UNREAD = -1, ASKED = 9, SEQ, ALT, REPEAT, MEMBERS }; /* kinds of constructs, beside LITERAL … JSON_TEXT; as in bridge.py */

/* A node of the grammar with its parameters' values. */
typedef struct {
    PyObject *node, *env;      /* the key */
    int32_t kind;
    int32_t object, low, high; /* as in Config */
    int32_t first, count;      /* in `children`; SEQ: its first item, the rest; REPEAT: its item, the repeat after one item;
                                * MEMBERS: what isn't a listed name */
    int8_t empty;              /* LITERAL … JSON_TEXT: it may also be empty */
    int8_t tied;               /* its environment has values of parameters */
    int8_t distinct;           /* whether items or names in it must differ: 1, 0; -1: not looked up yet */
} Construct;

/* The positions that a frame reaches without reading a byte. */
typedef struct {
    int n;
    int open_below;      /* the engine's bottom frame is reached without reading a byte */
    Config *configs;
    int32_t *below;      /* until it is `done`: frames reached without a byte, whose closures are to be added */
    int below_count, done;
    uint64_t first[4];   /* the bytes that may come first, one bit each */
    int has_first;
    int apart;           /* shared.c can't make it */
    double shortest, farthest; /* bounds on bytes to the end */
    int has_bounds;
} Closure;

/* A stack: a construct on top of another frame. */
typedef struct {
    int32_t construct, next; /* its key; Python's forks, and the bottom: -1 and the number in Python; own forks: -2 and where in `ways` */
    PyObject *python;        /* Python's object for the frame; NULL until it is needed */
    Closure *closure;
    int32_t near, capped;    /* near_frame and capped_frame of this frame; 0: not computed yet */
    int32_t depth;           /* frames from here to the end, or to a fork */
    int32_t marks;           /* marks of the closure being made: closure.c */
} Frame;

typedef struct {
    PyObject *data;      /* bytes */
    const uint8_t *at;
    int32_t length;
} Literal;

typedef struct {
    PyObject *values;    /* sorted tuple of bytes; LOOP: constrained.automaton.positions.Loop */
    PyObject *bind;      /* parameter's name or None; EXCEPT, LOOP: the set of characters */
    int32_t set;         /* EXCEPT, LOOP: the number of the set */
    int32_t longest;
    uint8_t *flat;       /* the bytes of the values in one block; NULL if they are too many; LOOP: uint64_t[4], the first bytes of
                          * the loop's other alternative, none of which begins a character of the set */
    int32_t *offsets;
} Choices;

typedef struct Walk Walk;
typedef struct JsonText JsonText;
typedef struct Characters Characters;
typedef struct State State;

enum { DEAD = 0, UNKNOWN = -1, NO_ROOM = -2, FAILED = -3 };

/* Numbered sets of positions; state 0 is the empty set, DEAD. */
typedef struct {
    State **states;
    int32_t count;
    int32_t *slots;
    size_t room, bytes;
    int users;           /* the number of running walks, during which it must not be cleared */
} Table;

void *spare_take(Spare *spare, size_t size);
void spare_give(Spare *spare, void *block, size_t size);
void spare_free(Spare *spare);

typedef struct {
    PyObject_HEAD
    PyObject *bridge;    /* constrained.automaton.bridge.Bridge */
    Tokens *tokens;
    PyObject *no_call;   /* the environment of frames without a construct */
    PyObject *types;     /* the types of nodes that the kernel reads without Python */
    PyObject *tails, *repeats; /* dicts of the nodes derived while reading: positions.py, Frames */
    int32_t deep, crowded; /* as in graph_stack.py */
    int8_t near;         /* as in graph_stack.py, at most MOST_NEAR */
    int8_t asks;         /* Python computes all closures, since slots may lack values (liveness.py) */
    int8_t ready;        /* initialised without an error */
    int8_t ahead;        /* work is done ahead of need: a passed limit then isn't an error yet */
    int32_t max_frames;  /* numbers of frames are below max_frames, here and in Python */
    Construct *constructs;
    Index construct_index;
    int32_t *children;      /* numbers of constructs */
    Frame *frames;
    int32_t *ways;          /* for each of the kernel's forks: the number of joined frames, and these */
    Index frame_index;
    int32_t *by_number;     /* number of a frame in Python -> frame */
    int32_t children_count, children_room, by_number_room, way_count, way_room;
    int32_t stamp;          /* the marks' stamp of the closure made last; below 1 << 28, since closures are limited */
    int32_t entered, max_entered, max_closure; /* constructs entered so far; the limits for all closures and for one */
    int64_t passed;      /* frames traversed so far to find those without a Python object or a capped frame */
    int32_t bottom;      /* the bottom frame, which stands for any stack */
    int64_t bottom_hits;     /* how often the bottom frame was reached */
    Literal *literals;
    int32_t literal_count, literal_room;
    Choices *choices;
    int32_t choices_count, choices_room;
    PyObject *numbers;   /* dict: the key of a literal, of choices or of a loop -> its number */
    JsonText **json;     /* tables of JSON strings, terminated by NULL */
    Map finished;        /* (choices, value, rest), or (loop, counts, rest), -> frame + 1; positions -> their number: core.c */
    Map joined;          /* (frame, frame) -> frame + 2: stacks.c, frames.c */
    Map rows;            /* position -> its cached mask or a placeholder: masks.c */
    Map stack_sensitive; /* positions over near frames whose walks reach the bottom frame, and which are therefore walked with whole stacks */
    size_t row_bytes, max_row_bytes, rows_made, marked; /* marked: the number of positions noted for caching at the next visit */
    int64_t max_positions; /* limit for one state */
    Vec start;
    Table table;
    int64_t work, max_work; /* steps of positions for the current mask, and the limit */
    Walk *spare;         /* in a thread's copy of the engine: the thread's scratch memory */
    size_t closure_bytes, choices_bytes;
} Engine;

/* The number of a TEXT's or LOOP's set of characters. */
static inline int32_t set_of(const Engine *e, const Config *c) {
    return c->kind == LOOP ? e->choices[c->object].set : c->object;
}

/* Whether the other alternative of a LOOP begins with the byte. */
static inline int begins_aside(const Engine *e, const Config *c, int byte) {
    return ((const uint64_t *)e->choices[c->object].flat)[byte >> 6] >> (byte & 63) & 1;
}

/* Keys of maps and indexes: `length` bytes, 8 or a multiple. */
static inline uint64_t word_at(const void *key, size_t i) {
    uint64_t word;
    memcpy(&word, (const char *)key + i, sizeof word);
    return word;
}

static inline size_t hash(const void *key, size_t length) {
    uint64_t h = 0x9E3779B97F4A7C15ull;
    for (size_t i = 0; i < length; i += 8) h = (h ^ word_at(key, i)) * 0xFF51AFD7ED558CCDull, h ^= h >> 32;
    return (size_t)h;
}

static inline int same(const void *a, const void *b, size_t length) {
    uint64_t differ = 0;
    for (size_t i = 0; i < length; i += 8) differ |= word_at(a, i) ^ word_at(b, i);
    return !differ;
}

int vec_push(Vec *vec, const Config *config);
void *with_room(void *array, int32_t count, int32_t *room, int32_t least, size_t size);
int vec_append(Vec *vec, const Config *configs, int n);
int vec_copy(Vec *to, const Vec *from);
void vec_distinct(Vec *vec);

void *map_get(const Map *map, const Config *key);
int map_expect(Map *map, size_t more);
int map_put(Map *map, const Config *key, void *value);
void map_clear(Map *map, int free_values);

int grow_items(void **array, int32_t *room, int32_t count, size_t size);
int32_t index_number(Index *index, void **items, size_t size, const void *key, size_t length, int32_t most);
PyObject *field_of(PyObject *object, PyObject *name, Field *field);
int32_t construct_of(Engine *engine, PyObject *node, PyObject *env);
const Construct *construct_at(Engine *engine, int32_t number);
int is_distinct(Engine *engine, int32_t construct);
int read_ahead(Engine *engine);
int first_frames(Engine *engine, PyObject *bottom);
int expect_frames(Engine *engine, int32_t more);
int32_t frame_of(Engine *engine, int32_t construct, int32_t next);
int32_t frame_next(const Engine *engine, int32_t frame);
PyObject *frame_object(Engine *engine, int32_t frame);
int32_t near_frame(Engine *engine, int32_t frame);
int32_t capped_frame(Engine *engine, int32_t frame);
Closure *closure_of(Engine *engine, int32_t rest);
int know_closure(Engine *engine, int32_t frame, const Config *config);
int32_t fork_of(Engine *engine, int32_t *frames, int32_t count);
int32_t *fork_ways(Engine *engine, int32_t fork, int32_t *count);
int32_t put_in_order(int32_t *numbers, int32_t count);
int shared_closure(Engine *engine, int32_t frame, Vec *out);
int refuse(Engine *engine, const char *limit);
int32_t int_between(PyObject *object, int32_t low, int32_t high, const char *what);
const uint64_t *closure_first(Engine *engine, Closure *closure);
int engine_ready(const Engine *engine);                /* else an error is set */
int next_bytes(Engine *engine, const Vec *vec, uint64_t out[4]);
int near_config(Engine *engine, const Config *config, Config *near);
int32_t know_frame(Engine *engine, PyObject *frame);
int config_of(Engine *engine, PyObject *described, Config *out);
int32_t know_literal(Engine *engine, PyObject *data);
int32_t know_choices(Engine *engine, PyObject *values, PyObject *bind, int32_t set);
PyObject *position_of(Engine *engine, const Config *config);
int step_config(Engine *engine, const Config *config, uint8_t byte, Vec *out);
Config except_text(const Engine *engine, const Config *config);
Closure *closure_aside(Engine *engine, const Config *loop);
int vec_join(Engine *engine, Vec *vec);
int vec_alike(Vec *vec);
int32_t join_frames(Engine *engine, int32_t *frames, int32_t count);
int step_vec(Engine *engine, const Vec *from, uint8_t byte, Vec *to);
double horizon(Engine *engine, const Vec *vec);

static inline int accepting(const Vec *vec) {
    for (int i = 0; i < vec->n; i++)
        if (vec->at[i].kind <= STEP_END) return 1;
    return 0;
}

static inline const uint8_t *choice(const Choices *choices, int32_t i, int32_t *length) {
    if (choices->flat) {
        *length = choices->offsets[i + 1] - choices->offsets[i];
        return choices->flat + choices->offsets[i];
    }
    assert(i >= 0 && i < PyTuple_GET_SIZE(choices->values));
    PyObject *value = PyTuple_GET_ITEM(choices->values, i);
    *length = (int32_t)PyBytes_GET_SIZE(value);
    return (const uint8_t *)PyBytes_AS_STRING(value);
}

/* The first of values[low:high], which agree on `depth` bytes, whose next byte is `byte` or more. */
static inline int choices_from(const Choices *choices, int32_t low, int32_t high, int32_t depth, int byte) {
    int32_t length;
    /* often all values agree in this byte, too */
    if (low == high || choice(choices, low, &length)[depth] >= byte) return low;
    if (choice(choices, high - 1, &length)[depth] < byte) return high;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (choice(choices, middle, &length)[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t table_state(Engine *engine, const Vec *vec, int wanted);
int32_t table_step(Engine *engine, int32_t state, uint8_t byte);
const Vec *table_vec(const Table *table, int32_t state);
const uint64_t *table_first(Engine *engine, int32_t state);
void table_clear(Table *table, Spare *spare);

/* masks ----------------------------------------------------------------------------------------- */

/* The destination of a mask: a row, or (row NULL) a list of ids. `touched` lists the words of the row that have bits, until they
 * are too many. */
typedef struct {
    uint32_t *row;
    int32_t words;
    int32_t *touched;
    int touched_count, touched_room; /* count -1: too many, or not listed */
    int32_t *list, listed, list_room;
} Target;

/* A child in the trie still to be visited, with the values of choices that continue with its byte, or after a run of characters. */
typedef struct {
    int32_t low, high; /* the range of values; after a run: the byte that leaves the set, and the number of a Leaf's bytes before it */
    uint32_t child;
    int32_t depth; /* the depth of the node */
} Branch;

/* The cached mask of a position: ids, or, if they are many, a packed row. For values of choices: the ids, the number of branches,
 * and the branches. */
typedef struct CachedMask {
    int32_t count; /* -1: a row */
    uint32_t data[];
} CachedMask;

struct Walk {
    Engine *engine;
    Target *target;
    int32_t emitted; /* tokens emitted one by one, without base rows */
    int32_t visits;  /* nodes and cached runs visited */
    Vec *level;      /* [longest + 2]: the positions after so many bytes of a token */
    int levels;
    Vec one, two;
    Branch *branches; /* a stack of branches still to be visited, those of outer visits first */
    int32_t branch_count, branch_room;
    uint32_t *children; /* a stack of children, not on the C stack, since the recursion is as deep as the longest token */
    int32_t child_count, child_room;
};

Walk *walk_take(Engine *engine, Target *target);
void walk_leave(Walk *walk);
void walk_free(Walk *walk);
int emit(Walk *walk, int32_t id);
void set_row(Target *target, const uint32_t *other);
void set_ids(Target *target, const uint32_t *ids, int32_t count);
int emit_all(Walk *walk, const uint32_t *ids, int32_t count);
int push_branch(Walk *walk, Branch branch);
int visit_after(Walk *walk, Branch branch, const Vec *after, int32_t *state);
int emit_ends(Walk *walk, const Node *node);
int list_id(Target *target, int32_t id);
int descend_from(Walk *walk, const Node *node, int32_t state, uint32_t child);
int try_from(Walk *walk, int32_t id, const uint8_t *data, int32_t length, int32_t state);
int try_sorted(Walk *walk, int32_t token, int32_t depth, int32_t state);
int keep_values(Engine *engine, const Node *node, const Config *choices);
int visit(Walk *walk, int32_t node);
int visit_from(Walk *walk, const Node *node, int32_t state);

const uint32_t *text_base(const Engine *engine, const Config *config);
int text_others(Walk *walk, const Node *node, const Config *config, int open);
int read_text(Walk *walk, const Node *node, const Config *config);
int ambiguous(Engine *engine, TextSet *set, int32_t rest);
int canonical(Engine *engine, const Config *config, TextSet *set, int open, Config *key);

int32_t know_json(Engine *engine, PyObject *table);
PyObject *json_table(const JsonText *text);
int json_checked(const JsonText *text, const Config *config);
int32_t json_farthest(const JsonText *text);
void json_free(JsonText *text);
void characters_free(Characters *characters);
size_t characters_bytes(const Characters *characters);
int step_json(const Engine *engine, const Config *config, uint8_t byte, Config *next);
int walk_json(Walk *walk, const Config *config);

void forget_masks(Engine *engine);
int keep_inside(Engine *engine, const Config *key, const Target *found, const Branch *branches, int32_t count);
int look_up_literals(Engine *engine, const Closure *closure);
int fill_row(Engine *engine, const Vec *vec, Target *target);
int read_bytes(Engine *engine, const Vec *from, const uint8_t *data, int32_t length, Vec *to, Vec *scratch);
int look_up_first(Engine *engine, int32_t most);
Py_ssize_t precompute(Engine *engine, Py_ssize_t most);

#define MAX_EOS 8 /* ids that may end a text */

/* Python types ---------------------------------------------------------------------------------- */

extern PyObject *name_enter, *name_capped, *name_number, *name_construct, *name_frame, *name_node, *name_env, *name_next, *name_ways, *name_item, *name_low, *name_high;
extern PyObject *name_data, *name_chars, *name_items, *name_args, *name_rule, *name_rules, *name_distinct, *name_grammar, *name_body, *name_values;
extern PyObject *name_zero, *no_arguments; /* the number 0, and an empty tuple */
extern PyType_Spec tokens_spec, engine_spec, core_spec, rows_spec;
extern PyTypeObject *TokensType, *EngineType, *CoreType;

#endif
