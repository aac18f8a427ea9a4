/* SPDX-License-Identifier: Apache-2.0 */
/* The plain engine. Every pass looks at each sequence. It is slow and easy to check by hand. */
#include <stdlib.h>
#include <string.h>

#include "program/fail.h"
#include "replay/ranks.h"

struct sequence {
    size_t request;
    uint64_t emitted;
    bool preempted_before;
};

struct list {
    struct sequence *items;
    size_t count;
    size_t room;
};

struct rank {
    uint64_t capacity;
    uint64_t used_blocks;
    struct list queue;
    struct list running; /* oldest admission first */
};

struct replay_ranks {
    const struct replay_options *options;
    const struct replay_trace *trace;
    const struct replay_listener *listener;
    struct rank *ranks;
};

static void insert(struct list *list, size_t index, struct sequence sequence)
{
    if (list->count == list->room) {
        list->room = list->room == 0 ? 16 : list->room * 2;
        list->items = program_resize(list->items, list->room * sizeof *list->items);
    }
    memmove(&list->items[index + 1], &list->items[index], (list->count - index) * sizeof *list->items);
    list->items[index] = sequence;
    list->count++;
}

static struct sequence remove_at(struct list *list, size_t index)
{
    struct sequence removed = list->items[index];
    list->count--;
    memmove(&list->items[index], &list->items[index + 1], (list->count - index) * sizeof *list->items);
    return removed;
}

static struct replay_ranks *make(const struct replay_options *options, const struct replay_trace *trace,
                                 const struct replay_listener *listener)
{
    struct replay_ranks *ranks = program_resize(NULL, sizeof *ranks);
    *ranks = (struct replay_ranks){.options = options, .trace = trace, .listener = listener};
    ranks->ranks = program_resize(NULL, options->ranks * sizeof *ranks->ranks);
    for (size_t rank = 0; rank < options->ranks; rank++) {
        ranks->ranks[rank] = (struct rank){.capacity = options->capacities[rank]};
    }
    return ranks;
}

static void free_ranks(struct replay_ranks *ranks)
{
    for (size_t rank = 0; rank < ranks->options->ranks; rank++) {
        free(ranks->ranks[rank].queue.items);
        free(ranks->ranks[rank].running.items);
    }
    free(ranks->ranks);
    free(ranks);
}

static uint64_t context_of(const struct replay_ranks *ranks, const struct sequence *sequence)
{
    return ranks->trace->requests[sequence->request].prompt_tokens + sequence->emitted;
}

static uint64_t blocks_of(const struct replay_ranks *ranks, const struct sequence *sequence)
{
    return replay_blocks(ranks->options, context_of(ranks, sequence));
}

static void enqueue(struct replay_ranks *ranks, size_t rank, size_t request)
{
    struct list *queue = &ranks->ranks[rank].queue;
    insert(queue, queue->count, (struct sequence){.request = request});
}

static struct replay_load load_of(const struct replay_ranks *ranks, size_t index)
{
    const struct rank *rank = &ranks->ranks[index];
    struct replay_load load = {
        .queued = rank->queue.count,
        .running = rank->running.count,
        .used_blocks = rank->used_blocks,
    };
    for (size_t i = 0; i < rank->running.count; i++) {
        load.context_tokens += context_of(ranks, &rank->running.items[i]);
    }
    return load;
}

static void admit(struct replay_ranks *ranks, size_t index)
{
    struct rank *rank = &ranks->ranks[index];
    const struct replay_listener *listener = ranks->listener;
    while (rank->queue.count > 0) {
        struct replay_load load = load_of(ranks, index);
        uint64_t context = context_of(ranks, &rank->queue.items[0]);
        if (!replay_may_admit(ranks->options, rank->capacity, &load, context)) {
            break;
        }
        struct sequence sequence = remove_at(&rank->queue, 0);
        insert(&rank->running, rank->running.count, sequence);
        rank->used_blocks += blocks_of(ranks, &sequence);
        listener->admitted(listener->user, sequence.request, context, sequence.preempted_before);
    }
}

/* Moves the newest running sequence to the front of the queue. */
static void preempt_newest(struct replay_ranks *ranks, struct rank *rank)
{
    struct sequence victim = remove_at(&rank->running, rank->running.count - 1);
    rank->used_blocks -= blocks_of(ranks, &victim);
    victim.preempted_before = true;
    insert(&rank->queue, 0, victim);
    ranks->listener->preempted(ranks->listener->user, victim.request);
}

/* Lets the sequence at `index` emit. If no block is free, the newest are preempted first, perhaps this one. */
static void emit_one(struct replay_ranks *ranks, struct rank *rank, size_t index)
{
    bool opens = context_of(ranks, &rank->running.items[index]) % ranks->options->block_size == 0;
    while (opens && rank->used_blocks == rank->capacity && index < rank->running.count) {
        preempt_newest(ranks, rank);
    }
    if (index == rank->running.count) {
        return; /* it was the newest itself */
    }
    rank->running.items[index].emitted++;
    if (opens) {
        rank->used_blocks++;
        ranks->listener->opened(ranks->listener->user, rank->running.items[index].request);
    }
}

static void free_finished(struct replay_ranks *ranks, struct rank *rank)
{
    for (size_t i = 0; i < rank->running.count;) {
        const struct sequence *sequence = &rank->running.items[i];
        if (sequence->emitted < ranks->trace->requests[sequence->request].output_tokens) {
            i++;
            continue;
        }
        struct sequence finished = remove_at(&rank->running, i);
        rank->used_blocks -= blocks_of(ranks, &finished);
        ranks->listener->finished(ranks->listener->user, finished.request);
    }
}

static void emit(struct replay_ranks *ranks, size_t index)
{
    struct rank *rank = &ranks->ranks[index];
    for (size_t i = 0; i < rank->running.count; i++) {
        emit_one(ranks, rank, i);
    }
    free_finished(ranks, rank);
}

const struct replay_engine replay_plain_engine = {
    .name = "plain",
    .make = make,
    .free = free_ranks,
    .enqueue = enqueue,
    .admit = admit,
    .emit = emit,
    .load = load_of,
};
