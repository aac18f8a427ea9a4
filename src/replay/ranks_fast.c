/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast engine. A running sequence emits one token in each pass of its rank. So its emitted tokens are those at its
 * admission plus the passes since, and need no update. A sequence is touched only
 *
 *     when it opens a block    This happens in every B-th pass. Sequences are in B lists, by the pass modulo B.
 *     when it finishes         The pass is known at admission. A heap gives the next one.
 *     when it is preempted
 */
#include <stdlib.h>

#include "program/fail.h"
#include "replay/ranks.h"

#define NONE SIZE_MAX

/* A list of sequences, linked by one kind of their `links`. */
struct list {
    size_t first;
    size_t last;
    size_t count;
};

enum { BY_ADMISSION, BY_PHASE, LINKS }; /* BY_ADMISSION also links the queue */

struct link {
    size_t before;
    size_t after;
};

struct sequence {
    struct link links[LINKS];
    uint64_t emitted;   /* at its last admission or preemption */
    uint64_t admission; /* its number on its rank; 0: not running; shows that an entry of the heap is old */
    uint64_t pass;      /* of its rank at that admission */
    bool preempted_before;
};

/* The pass after which a sequence has finished. Within a pass, the oldest admission comes first. */
struct finish {
    uint64_t pass;
    uint64_t admission;
    size_t request;
};

struct heap {
    struct finish *items;
    size_t count;
    size_t room;
};

struct rank {
    uint64_t capacity;
    uint64_t used_blocks;
    uint64_t context_tokens;
    uint64_t passes;
    uint64_t admissions;
    struct list queue;
    struct list running; /* oldest admission first */
    struct list *phases; /* B of them */
    struct heap finishes;
};

struct replay_ranks {
    const struct replay_options *options;
    const struct replay_trace *trace;
    const struct replay_listener *listener;
    struct sequence *sequences; /* by their index in the trace */
    struct rank *ranks;
};

static const struct list EMPTY = {.first = NONE, .last = NONE};

static void append(struct replay_ranks *ranks, struct list *list, int kind, size_t request)
{
    struct link *link = &ranks->sequences[request].links[kind];
    *link = (struct link){.before = list->last, .after = NONE};
    if (list->last == NONE) {
        list->first = request;
    } else {
        ranks->sequences[list->last].links[kind].after = request;
    }
    list->last = request;
    list->count++;
}

static void prepend(struct replay_ranks *ranks, struct list *list, int kind, size_t request)
{
    struct link *link = &ranks->sequences[request].links[kind];
    *link = (struct link){.before = NONE, .after = list->first};
    if (list->first == NONE) {
        list->last = request;
    } else {
        ranks->sequences[list->first].links[kind].before = request;
    }
    list->first = request;
    list->count++;
}

static void take_out(struct replay_ranks *ranks, struct list *list, int kind, size_t request)
{
    struct link link = ranks->sequences[request].links[kind];
    if (link.before == NONE) {
        list->first = link.after;
    } else {
        ranks->sequences[link.before].links[kind].after = link.after;
    }
    if (link.after == NONE) {
        list->last = link.before;
    } else {
        ranks->sequences[link.after].links[kind].before = link.before;
    }
    list->count--;
}

static bool sooner(const struct finish *a, const struct finish *b)
{
    return a->pass != b->pass ? a->pass < b->pass : a->admission < b->admission;
}

static void push(struct heap *heap, struct finish finish)
{
    if (heap->count == heap->room) {
        heap->room = heap->room == 0 ? 64 : heap->room * 2;
        heap->items = program_resize(heap->items, heap->room * sizeof *heap->items);
    }
    size_t i = heap->count++;
    for (; i > 0 && sooner(&finish, &heap->items[(i - 1) / 2]); i = (i - 1) / 2) {
        heap->items[i] = heap->items[(i - 1) / 2];
    }
    heap->items[i] = finish;
}

static struct finish pop(struct heap *heap)
{
    struct finish first = heap->items[0];
    struct finish moved = heap->items[--heap->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < heap->count && sooner(&heap->items[child + 1], &heap->items[child])) {
            child++;
        }
        if (child >= heap->count || !sooner(&heap->items[child], &moved)) {
            break;
        }
        heap->items[i] = heap->items[child];
        i = child;
    }
    heap->items[i] = moved;
    return first;
}

static struct replay_ranks *make(const struct replay_options *options, const struct replay_trace *trace,
                                 const struct replay_listener *listener)
{
    struct replay_ranks *ranks = program_resize(NULL, sizeof *ranks);
    *ranks = (struct replay_ranks){.options = options, .trace = trace, .listener = listener};
    ranks->sequences = program_resize(NULL, trace->count * sizeof *ranks->sequences);
    for (size_t request = 0; request < trace->count; request++) {
        ranks->sequences[request] = (struct sequence){.emitted = 0};
    }
    ranks->ranks = program_resize(NULL, options->ranks * sizeof *ranks->ranks);
    for (size_t i = 0; i < options->ranks; i++) {
        struct rank *rank = &ranks->ranks[i];
        *rank = (struct rank){.capacity = options->capacities[i], .queue = EMPTY, .running = EMPTY};
        rank->phases = program_resize(NULL, (size_t)options->block_size * sizeof *rank->phases);
        for (uint64_t phase = 0; phase < options->block_size; phase++) {
            rank->phases[phase] = EMPTY;
        }
    }
    return ranks;
}

static void free_ranks(struct replay_ranks *ranks)
{
    for (size_t rank = 0; rank < ranks->options->ranks; rank++) {
        free(ranks->ranks[rank].phases);
        free(ranks->ranks[rank].finishes.items);
    }
    free(ranks->ranks);
    free(ranks->sequences);
    free(ranks);
}

static void enqueue(struct replay_ranks *ranks, size_t rank, size_t request)
{
    append(ranks, &ranks->ranks[rank].queue, BY_ADMISSION, request);
}

static struct replay_load load_of(const struct replay_ranks *ranks, size_t index)
{
    const struct rank *rank = &ranks->ranks[index];
    return (struct replay_load){
        .queued = rank->queue.count,
        .running = rank->running.count,
        .context_tokens = rank->context_tokens,
        .used_blocks = rank->used_blocks,
    };
}

static uint64_t prompt_of(const struct replay_ranks *ranks, size_t request)
{
    return ranks->trace->requests[request].prompt_tokens;
}

/* The tokens of a running sequence, before it emits in this pass. */
static uint64_t context_of(const struct replay_ranks *ranks, const struct rank *rank, size_t request)
{
    const struct sequence *sequence = &ranks->sequences[request];
    return prompt_of(ranks, request) + sequence->emitted + (rank->passes - sequence->pass);
}

/* The list of a running sequence with this context: those that open a block in the same pass. */
static struct list *phase_of(const struct replay_ranks *ranks, struct rank *rank, uint64_t context)
{
    uint64_t size = ranks->options->block_size;
    uint64_t passes_to_go = (size - context % size) % size;
    return &rank->phases[(rank->passes + passes_to_go) % size];
}

static void start(struct replay_ranks *ranks, struct rank *rank, size_t request, uint64_t context)
{
    struct sequence *sequence = &ranks->sequences[request];
    uint64_t to_emit = ranks->trace->requests[request].output_tokens - sequence->emitted;
    sequence->pass = rank->passes;
    sequence->admission = ++rank->admissions;
    append(ranks, &rank->running, BY_ADMISSION, request);
    append(ranks, phase_of(ranks, rank, context), BY_PHASE, request);
    push(&rank->finishes, (struct finish){rank->passes + to_emit, sequence->admission, request});
    rank->used_blocks += replay_blocks(ranks->options, context);
    rank->context_tokens += context;
}

static void stop(struct replay_ranks *ranks, struct rank *rank, size_t request)
{
    uint64_t context = context_of(ranks, rank, request);
    take_out(ranks, &rank->running, BY_ADMISSION, request);
    take_out(ranks, phase_of(ranks, rank, context), BY_PHASE, request);
    rank->used_blocks -= replay_blocks(ranks->options, context);
    rank->context_tokens -= context;
    ranks->sequences[request].emitted = context - prompt_of(ranks, request);
    ranks->sequences[request].admission = 0;
}

static void admit(struct replay_ranks *ranks, size_t index)
{
    struct rank *rank = &ranks->ranks[index];
    const struct replay_listener *listener = ranks->listener;
    while (rank->queue.count > 0) {
        size_t request = rank->queue.first;
        struct replay_load load = load_of(ranks, index);
        uint64_t context = prompt_of(ranks, request) + ranks->sequences[request].emitted;
        if (!replay_may_admit(ranks->options, rank->capacity, &load, context)) {
            break;
        }
        take_out(ranks, &rank->queue, BY_ADMISSION, request);
        start(ranks, rank, request, context);
        listener->admitted(listener->user, request, context, ranks->sequences[request].preempted_before);
    }
}

/* Moves the newest running sequence to the front of the queue. It has not yet emitted in this pass. */
static void preempt_newest(struct replay_ranks *ranks, struct rank *rank)
{
    size_t victim = rank->running.last;
    stop(ranks, rank, victim);
    ranks->sequences[victim].preempted_before = true;
    prepend(ranks, &rank->queue, BY_ADMISSION, victim);
    ranks->listener->preempted(ranks->listener->user, victim);
}

/* Gives a block to each sequence that opens one in this pass. The list has the oldest admission first. */
static void open_blocks(struct replay_ranks *ranks, struct rank *rank)
{
    struct list *openers = &rank->phases[rank->passes % ranks->options->block_size];
    size_t after;
    for (size_t request = openers->first; request != NONE; request = after) {
        uint64_t admission = ranks->sequences[request].admission;
        while (rank->used_blocks == rank->capacity && ranks->sequences[request].admission == admission) {
            preempt_newest(ranks, rank);
        }
        if (ranks->sequences[request].admission != admission) {
            return; /* it was the newest itself, so no other comes after it */
        }
        rank->used_blocks++;
        ranks->listener->opened(ranks->listener->user, request);
        after = ranks->sequences[request].links[BY_PHASE].after;
    }
}

/* Is called when the pass is counted, that is, when all running sequences have emitted. */
static void free_finished(struct replay_ranks *ranks, struct rank *rank)
{
    while (rank->finishes.count > 0 && rank->finishes.items[0].pass <= rank->passes) {
        struct finish finish = pop(&rank->finishes);
        if (ranks->sequences[finish.request].admission == finish.admission) {
            stop(ranks, rank, finish.request);
            ranks->listener->finished(ranks->listener->user, finish.request);
        }
    }
}

static void emit(struct replay_ranks *ranks, size_t index)
{
    struct rank *rank = &ranks->ranks[index];
    open_blocks(ranks, rank);
    rank->context_tokens += rank->running.count;
    rank->passes++;
    free_finished(ranks, rank);
}

const struct replay_engine replay_fast_engine = {
    .name = "fast",
    .make = make,
    .free = free_ranks,
    .enqueue = enqueue,
    .admit = admit,
    .emit = emit,
    .load = load_of,
};
