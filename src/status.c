/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the status codes, and the version. */
#include <kvca/kvca.h>

const char *kvca_version(void)
{
    return KVCA_VERSION;
}

const char *kvca_strerror(kvca_status status)
{
    switch (status) {
    case KVCA_OK:
        return "done";
    case KVCA_ERR_NULL:
        return "a pointer that is needed is NULL";
    case KVCA_ERR_NO_MEMORY:
        return "out of memory";
    case KVCA_ERR_SIZE:
        return "a structure's size is not set, or not one that this library knows";
    case KVCA_ERR_CAPACITY_FRACTION:
        return "capacity_fraction is not above 0 and at most 1, nor infinity (filter off)";
    case KVCA_ERR_DECODE_ACTIVE_REQUEST_WEIGHT:
        return "decode_active_request_weight is not a finite number from 0 on";
    case KVCA_ERR_NO_RANKS:
        return "there are no ranks to pick from";
    case KVCA_ERR_DECODE_COST_BLOCKS:
        return "the column decode_cost_blocks is missing";
    case KVCA_ERR_ACTIVE_REQUESTS:
        return "the column active_requests is missing";
    case KVCA_ERR_PREFERRED_TAINT_MULTIPLIER:
        return "a preferred_taint_multiplier is not a finite number above 0";
    case KVCA_ERR_ROW:
        return "a row number is past the last row";
    case KVCA_ERR_FILE:
        return "the file cannot be read";
    case KVCA_ERR_TOO_LARGE:
        return "the document is too large or too deeply nested";
    case KVCA_ERR_YAML:
        return "the document is not well-formed YAML";
    case KVCA_ERR_CONFIG:
        return "the document says something that is not accepted";
    case KVCA_ERR_ROLE:
        return "the role is not one of decode, prefill, aggregated, encode";
    case KVCA_NOT_SELECTED:
        return "the policy is not selected for this pool";
    case KVCA_ERR_POOL_SIZE:
        return "a pool cannot be made for so many ranks or owners";
    case KVCA_ERR_POOL_MEMORY:
        return "the memory for the pool or snapshot is too small or not aligned";
    case KVCA_ERR_POOL_LAYOUT:
        return "the memory holds no pool, or one of another layout";
    case KVCA_ERR_POOL_FULL:
        return "every slot of the pool has a rank";
    case KVCA_ERR_OWNERS_FULL:
        return "every owner of the pool is claimed";
    case KVCA_ERR_NO_SUCH_RANK:
        return "the pool has no such rank";
    case KVCA_ERR_OWNER:
        return "the owner is not claimed in this pool";
    case KVCA_ERR_OVERFLOW:
        return "the rank's booked blocks would pass the largest integer";
    case KVCA_ERR_NO_BOOKING:
        return "the booking is empty or was released already";
    case KVCA_ERR_FOREIGN_BOOKING:
        return "the booking was not made by this pool, or was changed";
    case KVCA_STALE:
        return "the booking is gone with its rank or owner";
    case KVCA_NONE_ELIGIBLE:
        return "no rank may be picked for this request";
    case KVCA_NONE_FITS:
        return "no rank has room for this request now";
    case KVCA_NEVER_FITS:
        return "the request is larger than every rank's limit: no rank will ever have room for it";
    }
    return "unknown status";
}
