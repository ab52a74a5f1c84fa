/* A frame's closure in which each construct is entered once, whatever may come after it: shared_closure.py, in C.
 *
 * A place is a construct that this closure has reached, with the ways to go on after it: the nodes of a graph-structured stack, as in
 * GLL parsing (Scott and Johnstone, 2010). Ways are added while the closure is made. At the end, each place that text is read
 * over gets its frame: that of its only way, or one that joins them. */
#include "kernel.h"

enum { REAL = -1, SAME = -2 }; /* values of a way's `construct` without one: continue with the frame `below`; with what comes after the place `below` */
enum { OPEN = -1, BUSY = -2 }; /* a place's frame before it is made */
enum { APART = -3 };           /* a result: the closure can't be made in this way */

/* One way to continue after a place: a construct, and then what comes after another place. */
typedef struct {
    int32_t construct, below;
    int32_t next;  /* the next way of the same place, or -1 */
    int32_t again; /* the construct is the rest of a repeat */
} Way;

typedef struct {
    int32_t construct, ways, count;
    int32_t frame;
    int32_t passed; /* the construct may be empty: the ways are entered, too */
    int32_t mark;
} Place;

typedef struct {
    Engine *engine;
    Place *places;
    Way *ways, *passing; /* `passing`: still to be entered */
    int32_t *list;       /* frames of one place's ways, or places to be given frames */
    int32_t count, room, way_count, way_room, passing_count, passing_room, list_room;
    int32_t mark;
    int64_t steps;
    Map known; /* places by construct, ways by place, frames that were entered */
    Vec found; /* rest: a place */
} Shared;

static int push_way(Way **ways, int32_t *count, int32_t *room, Way way) {
    if (grow_items((void **)ways, room, *count + 1, sizeof **ways) < 0) return -1;
    (*ways)[(*count)++] = way;
    return 0;
}

static int pass(Shared *s, int32_t construct, int32_t below, int32_t again) {
    return push_way(&s->passing, &s->passing_count, &s->passing_room, (Way){construct, below, -1, again});
}

/* Note `key`; return whether it is new. */
static int is_new(Shared *s, Config key) {
    return map_get(&s->known, &key) ? 0 : map_put(&s->known, &key, s) < 0 ? -1 : 1;
}

/* Note that a construct is reached, with one way to continue after it. */
static int reach(Shared *s, int32_t construct, int32_t after, int32_t below, int32_t again) {
    Engine *e = s->engine;
    Config key = {ACCEPT, construct, 0, 0, 0, 0};
    intptr_t place = (intptr_t)map_get(&s->known, &key) - 1;
    if (++s->steps > e->max_closure || ++e->entered > e->max_entered) return refuse(e, s->steps > e->max_closure ? "closure" : "entered");
    if (place < 0) {
        place = s->count;
        if (map_put(&s->known, &key, (void *)(place + 1)) < 0) return -1;
        if (grow_items((void **)&s->places, &s->room, s->count + 1, sizeof *s->places) < 0) return -1;
        s->places[s->count++] = (Place){construct, -1, 0, OPEN, 0, 0};
    }
    if (after == SAME && below == place) return 0;
    int fresh = is_new(s, (Config){STEP_END, (int32_t)place, after, below, 0, 0});
    if (fresh <= 0) return fresh;
    Place *to = &s->places[place];
    if (push_way(&s->ways, &s->way_count, &s->way_room, (Way){after, below, to->ways, again}) < 0) return -1;
    to->ways = s->way_count - 1, to->count++;
    return to->passed ? pass(s, after, below, again) : 0;
}

/* Note that the construct of a place may be empty, and enter what comes after it. */
static int pass_place(Shared *s, int32_t place) {
    if (s->places[place].passed) return 0;
    s->places[place].passed = 1;
    for (int32_t i = s->places[place].ways; i >= 0; i = s->ways[i].next)
        if (pass(s, s->ways[i].construct, s->ways[i].below, s->ways[i].again) < 0) return -1;
    return 0;
}

static int pass_frame(Shared *s, int32_t frame) {
    Engine *e = s->engine;
    int fresh = is_new(s, (Config){LITERAL, frame, 0, 0, 0, 0});
    if (fresh <= 0) return fresh;
    if (!frame || frame == e->bottom) {
        Config end = {ACCEPT, 0, REAL - frame, 0, 0, 0}; /* negative: a frame, not a place */
        return vec_push(&s->found, &end);
    }
    if (e->frames[frame].construct < 0) {
        int32_t count, *ways = fork_ways(e, frame, &count);
        int failed = !ways;
        for (int32_t i = 0; i < count && !failed; i++) failed = pass(s, REAL, ways[i], 0) < 0;
        free(ways);
        return failed ? -1 : 0;
    }
    int32_t construct = e->frames[frame].construct;
    const Construct *c = construct_at(e, construct);
    if (!c) return -1;
    return c->tied ? APART : reach(s, construct, REAL, frame_next(e, frame), 0);
}

static int pass_way(Shared *s, Way way) {
    if (way.construct == REAL) return pass_frame(s, way.below);
    if (way.construct == SAME || way.again) return pass_place(s, way.below); /* `again`: if one item may be empty, all remaining items may be */
    return reach(s, way.construct, SAME, way.below, 0);
}

/* Enter the construct of a place. */
static int expand(Shared *s, int32_t place) {
    Engine *e = s->engine;
    int32_t number = s->places[place].construct;
    const Construct *at = construct_at(e, number);
    if (!at) return -1;
    Construct c = *at; /* the array may move */
    if (c.tied || c.kind == ASKED) return APART;
    if (c.kind <= JSON_TEXT) {
        Config config = {c.kind, c.object, place, c.low, c.kind == LITERAL ? 0 : c.high, 0};
        return vec_push(&s->found, &config) < 0 || (c.empty && pass_place(s, place) < 0) ? -1 : 0;
    }
    if (c.kind == SEQ) {
        if (!c.count) return pass_place(s, place);
        int32_t after = c.count > 1 ? e->children[c.first + 1] : SAME;
        return reach(s, e->children[c.first], after, place, 0);
    }
    if (c.kind == REPEAT) {
        int32_t after = c.count > 1 ? e->children[c.first + 1] : SAME;
        if (reach(s, e->children[c.first], after, place, c.count > 1) < 0) return -1;
        return c.low ? 0 : pass_place(s, place);
    }
    if (c.kind == MEMBERS) { /* what follows a name depends on the names written, which this frame holds: it needs its own place */
        Config names = {CHOICES, c.object, place, 0, c.high, INSIDE};
        if (vec_push(&s->found, &names) < 0) return -1;
    }
    for (int32_t i = 0; i < c.count; i++)
        if (reach(s, e->children[c.first + i], SAME, place, 0) < 0) return -1;
    return 0;
}

static int32_t push_number(Shared *s, int32_t count, int32_t number) {
    if (grow_items((void **)&s->list, &s->list_room, count + 1, sizeof *s->list) < 0) return -1;
    s->list[count] = number;
    return count + 1;
}

/* Append the numbers of the ways after a place to the list (from `from` on), with references to other places resolved; the new count. */
static int32_t gather(Shared *s, int32_t place, int32_t from) {
    int32_t count = from, waiting = 1;
    int32_t *work = malloc(s->count * sizeof *work);
    if (!work) PyErr_NoMemory(), count = -1;
    else work[0] = place, s->places[place].mark = ++s->mark;
    while (count >= 0 && waiting) {
        for (int32_t i = s->places[work[--waiting]].ways; i >= 0 && count >= 0; i = s->ways[i].next) {
            int32_t below = s->ways[i].below;
            if (s->ways[i].construct != SAME) count = push_number(s, count, i);
            else if (s->places[below].mark != s->mark) s->places[below].mark = s->mark, work[waiting++] = below;
        }
    }
    free(work);
    return count;
}

/* The frame of a way whose place below has one; -1 on error. */
static int32_t frame_of_way(Shared *s, Way way) {
    return way.construct == REAL ? way.below : frame_of(s->engine, way.construct, s->places[way.below].frame);
}

/* Make the frame of a place, after those of the places that it needs: 0, APART, or -1 on error. */
static int freeze(Shared *s, int32_t first) {
    int32_t top = push_number(s, 0, first); /* s->list[0 … top - 1]: the waiting places, last first; behind them the ways of one */
    while (top > 0) {
        int32_t at = s->list[top - 1], missing = 0, end = top;
        Place *place = &s->places[at];
        if (place->frame >= 0) {
            top--;
            continue;
        }
        int entered = place->frame == BUSY;
        place->frame = BUSY;
        if (place->count == 1 && s->ways[place->ways].construct == SAME) {
            int32_t below = s->ways[place->ways].below;
            if (s->places[below].frame >= 0) place->frame = s->places[below].frame;
            else if (entered || s->places[below].frame == BUSY) return APART;
            else top = push_number(s, top, below);
            continue;
        }
        if ((end = gather(s, at, top)) < 0) return -1;
        for (int32_t i = top; i < end; i++) {
            Way way = s->ways[s->list[i]];
            if (way.construct == REAL || s->places[way.below].frame >= 0) continue;
            if (entered || s->places[way.below].frame == BUSY) return APART; /* a construct that comes back to itself */
            s->list[top + missing++] = way.below; /* the ways will be gathered again */
        }
        top += missing;
        if (missing) continue;
        for (int32_t i = top; i < end; i++)
            if ((s->list[i] = frame_of_way(s, s->ways[s->list[i]])) < 0) return -1;
        int32_t frame = fork_of(s->engine, s->list + top, end - top);
        if (frame < 0) return frame == -1 ? APART : -1;
        s->places[at].frame = frame;
    }
    return top < 0 ? -1 : 0;
}

/* Append the positions found, with frames in place of places. */
static int settle(Shared *s, Vec *out) {
    for (int i = 0; i < s->found.n; i++) {
        Config config = s->found.at[i];
        if (config.rest < 0) {
            config.rest = REAL - config.rest;
        } else {
            int failed = freeze(s, config.rest);
            if (failed) return failed;
            Place place = s->places[config.rest];
            config.rest = config.depth == INSIDE ? frame_of(s->engine, place.construct, place.frame) : place.frame;
            config.depth = 0;
        }
        if (config.rest < 0 || vec_push(out, &config) < 0) return -1;
    }
    return 0;
}

/* Append the closure of a frame to `out`: 1: done; 0: it can't be made in this way; -1: an error. */
int shared_closure(Engine *e, int32_t frame, Vec *out) {
    Shared s = {.engine = e};
    int failed = pass(&s, REAL, frame, 0);
    for (int32_t next = 0; !failed && (s.passing_count || next < s.count);)
        failed = s.passing_count ? pass_way(&s, s.passing[--s.passing_count]) : expand(&s, next++);
    if (!failed) failed = settle(&s, out);
    free(s.places), free(s.ways), free(s.passing), free(s.list), free(s.found.at);
    map_clear(&s.known, 0);
    return !failed ? 1 : failed == APART ? 0 : -1;
}
