/* One text being written: shared by core.c and rows.c. */
#ifndef CONSTRAINED_CORE_H
#define CONSTRAINED_CORE_H

#include "kernel.h"

enum { MAY_ASK = 1, MUST_ASK };

typedef struct {
    int32_t from;   /* where its positions start in `past` */
    int32_t n;
    int64_t left;
    int ended;
} Snapshot;

typedef struct {
    PyObject_HEAD
    PyObject *compiled;
    Engine *engine;
    Vec start, now, past;
    Vec one, two;      /* scratch */
    Snapshot *snapshots;
    int32_t snapshot_count, snapshot_room;
    int64_t left;      /* tokens of the budget; -1: none */
    int64_t spare;     /* tokens by which a budget must be larger than the horizon, so that it rules nothing out */
    int ended;
    int checked;       /* every step must be checked: the vocabulary lacks bytes */
    uint32_t eos[MAX_EOS];
    int eos_count;
    int8_t remembers;  /* a memory in Python may rule out tokens: `ask` is set with every token */
    int8_t ask;        /* whether Python computes the next mask: 0, MUST_ASK, or MAY_ASK: unless it was noted that nothing is ruled out */
    int busy;          /* a call is under way, in which Python may run */
} Core;

int core_begun(Core *core);                 /* else an error is set */
int core_fill(Core *core, Engine *engine, Target *target);  /* 1: done; 0: Python must; -1: an error */

#endif
