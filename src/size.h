/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structures of the interface that may grow. Each begins with its size in the program that made it, so that a program
 * and a library of different versions work together.
 *
 * A structure that the caller passes to be read:
 * - If it has this library's size, it is used as it is.
 * - If it is smaller, it comes from an older program. The fields that it lacks are zero. The least size is that of
 *   0.2.
 * - If it is larger, it comes from a newer program. The bytes that this library does not know must be zero. Otherwise
 *   the program asks for something that the library would not do.
 * - Any other size is KVCA_ERR_SIZE.
 *
 * In a structure that the caller passes to be filled, the library writes the fields that both know. It sets the rest
 * to zero and does not change the size.
 *
 * A new field goes at the end, behind the old sizeof and never in old padding. So a program that does not know the
 * field has it as zero, and zero must mean "as before". Its type must not need a wider alignment than the structure
 * has. The last fields that are named below stay those of 0.2, and so do the least sizes. What is stored elsewhere,
 * such as in the pool's block, has a layout of its own.
 *
 * On the request path a structure costs one comparison. If the size differs, a function out of line copies the fields
 * into a structure of this library's size, and calls the function again.
 */
#ifndef KVCA_SIZE_H
#define KVCA_SIZE_H

#include <string.h>

#include <kvca/config.h>
#include <kvca/pool.h>

/* No structure comes near this size. A larger value means that the size was not set. */
#define KVCA_SIZE_MOST 4096

#define KVCA_OUT_OF_LINE __attribute__((noinline, cold))

/* Each structure that callers pass, and its last field in 0.2. */
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

/* The sizeof when `last` was the last field, of a structure of this alignment. */
#define KVCA_SIZE_THROUGH(type, last, alignment)                                                                     \
    ((offsetof(type, last) + sizeof(((type *)0)->last) + (alignment)-1) / (alignment) * (alignment))

/* Checks whether a structure of the caller can be filled. `least` is its size in 0.2. */
static inline kvca_status kvca_size_check(const void *given, size_t least)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size >= least && size <= KVCA_SIZE_MOST ? KVCA_OK : KVCA_ERR_SIZE;
}

/* Copies a structure of the caller to one of this library, which has `known` bytes. */
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

/* Fills a structure of the caller from one of this library. kvca_size_check() must have accepted it. */
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
 * Three functions for each structure, for example kvca_ranks: kvca_check_ranks(given) checks whether it can be
 * filled, kvca_read_ranks(own, given) copies it in, and kvca_write_ranks(given, own) copies it out.
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

KVCA_SIZED(KVCA_DEFINE_SIZED) /* NOLINT(bugprone-sizeof-expression): the last field of a snapshot is a pointer */

#endif
