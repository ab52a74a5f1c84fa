/* Rows filled on several cores, while no Python runs.
 *
 * Threads that share an engine only read its tables: each works on a copy of the engine's counters, and what isn't in the
 * tables yet is left to the one thread that holds the GIL, afterwards (`read_only`). Meanwhile nobody else may write to
 * them: other calls of the kernel wait, and threads are used only if no other call is under way. The variables for both
 * are guarded by the GIL.
 */
#include "kernel.h"

THREAD_LOCAL int read_only;

static int calls, apart; /* calls under way, of all threads; rows are being filled without the GIL */
static PyThread_type_lock filling;

void kernel_enter(void) {
    while (apart) {
        PyThreadState *state = PyEval_SaveThread();
        PyThread_acquire_lock(filling, WAIT_LOCK);
        PyThread_release_lock(filling);
        PyEval_RestoreThread(state);
    }
    calls++;
}

void kernel_leave(void) {
    calls--;
}

void *no_memory(void) {
    if (!read_only) PyErr_NoMemory();
    return NULL;
}

#ifdef _WIN32
static void spread(int threads, void (*job)(void *), void *argument) {
    (void)threads;
    job(argument);
}
#else
#include <pthread.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    pid_t process; /* after a fork the child has no threads */
    int count, wanted, running;
    void (*job)(void *);
    void *argument;
} pool;

static void *work(void *unused) {
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (!pool.wanted) pthread_cond_wait(&pool.wake, &pool.lock);
        pool.wanted--;
        pool.running++;
        pthread_mutex_unlock(&pool.lock);
        pool.job(pool.argument);
        pthread_mutex_lock(&pool.lock);
        if (!--pool.running) pthread_cond_signal(&pool.idle);
    }
    return unused;
}

/* Run `job` on up to so many threads, including this one. */
static void spread(int threads, void (*job)(void *), void *argument) {
    if (pool.process != getpid()) {
        memset(&pool, 0, sizeof pool);
        pthread_mutex_init(&pool.lock, NULL), pthread_cond_init(&pool.wake, NULL), pthread_cond_init(&pool.idle, NULL);
        pool.process = getpid();
    }
    pthread_mutex_lock(&pool.lock);
    for (pthread_t thread; pool.count < threads - 1; pool.count++) {
        if (pthread_create(&thread, NULL, work, NULL)) break; /* go on with fewer */
        pthread_detach(thread);
    }
    pool.job = job, pool.argument = argument;
    pool.wanted = threads - 1 < pool.count ? threads - 1 : pool.count;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    job(argument);
    pthread_mutex_lock(&pool.lock);
    pool.wanted = 0; /* threads that haven't begun needn't begin */
    while (pool.running) pthread_cond_wait(&pool.idle, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}
#endif

/* Run `job` on several threads without the GIL, tables being read only; 0: it can't be now. The caller has entered. */
int run_apart(int threads, void (*job)(void *), void *argument) {
    if (calls != 1 || (!filling && !(filling = PyThread_allocate_lock()))) return 0;
    PyThread_acquire_lock(filling, WAIT_LOCK);
    apart = 1;
    PyThreadState *state = PyEval_SaveThread();
    spread(threads, job, argument);
    PyEval_RestoreThread(state);
    apart = 0;
    PyThread_release_lock(filling);
    return 1;
}
