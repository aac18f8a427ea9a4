/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structures of the interface that may grow. Each begins with its size where it was made, so that a program and a library
 * of different versions understand each other.
 *
 * What the caller hands in to be read: of this library's size, it is used as it is. A smaller one, down to the size of 0.2,
 * comes from an older program: what it lacks is zero. A larger one comes from a newer program: what this library does not
 * know must be zero, since else the program asks for something that nobody would do. All else is KVCA_ERR_SIZE.
 * What the caller hands in to be filled: as much is written as both know, the rest of it becomes zero, and its size stays.
 *
 * How a field is added: at the end, behind the old sizeof and never in old padding, so that a program that did not know it
 * sets it to zero; and its zero means "as before". Its type is one that needs no wider alignment than the structure has.
 * The last fields named below stay those of 0.2, and so do the least sizes. What is kept elsewhere, as in the pool's block,
 * has a layout of its own.
 *
 * On the request path a structure costs one comparison: whoever finds another size goes on in a function out of line, which
 * copies into a structure of this library's size and calls again.
 */
#ifndef KVCA_SIZE_H
#define KVCA_SIZE_H

#include <string.h>

#include <kvca/config.h>
#include <kvca/pool.h>

/* No structure comes near it: what is larger is a size that was not set. */
#define KVCA_SIZE_MOST 4096

#define KVCA_OUT_OF_LINE __attribute__((noinline, cold))

/* Each structure that callers hand in, and its last field in 0.2. */
#define KVCA_SIZED(X)                                                                                                \
    X(params, count_priority)                                                                                        \
    X(ranks, request_blocks)                                                                                         \
    X(selection, unknown_capacity)                                                                                   \
    X(explanation, reason)                                                                                           \
    X(rank, total_kv_blocks)                                                                                         \
    X(put, unknown_capacity)                                                                                         \
    X(owner_info, id)                                                                                                \
    X(request, only_if_fits)                                                                                         \
    X(snapshot, params)                                                                                              \
    X(error, message)

/* What sizeof was when `last` was the last field, of a structure of this alignment. */
#define KVCA_SIZE_THROUGH(type, last, alignment)                                                                     \
    ((offsetof(type, last) + sizeof(((type *)0)->last) + (alignment)-1) / (alignment) * (alignment))

/* Whether a structure of the caller's can be filled: `least` is its size in 0.2. */
static inline kvca_status kvca_size_check(const void *given, size_t least)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size >= least && size <= KVCA_SIZE_MOST ? KVCA_OK : KVCA_ERR_SIZE;
}

/* Copies a structure of the caller's to one of this library's, of `known` bytes. */
static inline kvca_status kvca_size_read(void *own, size_t known, const void *given, size_t least)
{
    const char *bytes = given;
    size_t size;
    if (kvca_size_check(given, least) != KVCA_OK) {
        return KVCA_ERR_SIZE;
    }
    memcpy(&size, given, sizeof size);
    for (size_t i = known; i < size; i++) {
        if (bytes[i] != 0) {
            return KVCA_ERR_SIZE;
        }
    }
    memset(own, 0, known);
    memcpy(own, given, size < known ? size : known);
    memcpy(own, &known, sizeof known);
    return KVCA_OK;
}

/* Fills a structure of the caller's, which was checked, from one of this library's. */
static inline void kvca_size_write(void *given, const void *own, size_t known)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    memcpy((char *)given + sizeof size, (const char *)own + sizeof size, (size < known ? size : known) - sizeof size);
    if (size > known) {
        memset((char *)given + known, 0, size - known);
    }
}

/*
 * Of each structure: kvca_check_ranks(given) says whether it can be filled, kvca_read_ranks(own, given) copies it in, and
 * kvca_write_ranks(given, own) copies it out.
 */
#define KVCA_DEFINE_SIZED(name, last)                                                                                \
    struct kvca_aligned_##name {                                                                                     \
        char before;                                                                                                 \
        kvca_##name it;                                                                                              \
    };                                                                                                               \
    enum { KVCA_LEAST_##name = KVCA_SIZE_THROUGH(kvca_##name, last, offsetof(struct kvca_aligned_##name, it)) };     \
    _Static_assert(offsetof(kvca_##name, size) == 0, "the size comes first");                                        \
    _Static_assert(sizeof(kvca_##name) >= KVCA_LEAST_##name && sizeof(kvca_##name) <= KVCA_SIZE_MOST, "it grows");   \
    static inline kvca_status kvca_check_##name(const kvca_##name *given)                                            \
    {                                                                                                                \
        return kvca_size_check(given, KVCA_LEAST_##name);                                                            \
    }                                                                                                                \
    static inline kvca_status kvca_read_##name(kvca_##name *own, const kvca_##name *given)                           \
    {                                                                                                                \
        return kvca_size_read(own, sizeof *own, given, KVCA_LEAST_##name);                                           \
    }                                                                                                                \
    static inline void kvca_write_##name(kvca_##name *given, const kvca_##name *own)                                 \
    {                                                                                                                \
        kvca_size_write(given, own, sizeof *own);                                                                    \
    }

KVCA_SIZED(KVCA_DEFINE_SIZED)

#endif
