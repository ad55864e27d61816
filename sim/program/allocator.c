/* PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp and its documentation, "CUDA
 * semantics, memory management"): requests are rounded to 512 bytes; those of up to 1 MiB come from
 * segments of 2 MiB, larger ones from segments of 20 MiB, or of their own where they have 10 MiB
 * and more. The smallest free block that is large enough is taken, and split where enough remains;
 * a block that becomes free joins free neighbours of its segment. Where the device has no more,
 * segments without a block in use are given back (release_cached_blocks). Expandable segments: one
 * range of addresses that grows at its end.
 *
 * Left out: pools of other streams, pages of expandable segments given back. Cost: a binary search
 * among free blocks, and moving what lies behind. */
#include "sim/program/allocator.h"

#include <glib.h>
#include <string.h>

/* Constants of CUDACachingAllocator.cpp */
#define ROUND 512               /* kMinBlockSize */
#define SMALL 0x100000          /* kSmallSize */
#define SMALL_SEGMENT 0x200000  /* kSmallBuffer */
#define LARGE_SEGMENT 0x1400000 /* kLargeBuffer */
#define LARGE 0xa00000          /* kMinLargeAlloc */
#define LARGE_ROUND 0x200000    /* kRoundLarge */
#define NONE UINT32_MAX

typedef struct {
    int64_t bytes;
    uint64_t address;        /* in order of segments */
    uint32_t before, behind; /* neighbours in the segment, or NONE */
    bool is_free, is_small;
} Block;

struct OrrAllocator {
    GArray *blocks;  /* Block */
    GArray *free[2]; /* ids by bytes, then address; of large and of small blocks */
    GArray *spare;   /* ids that no block has */
    int64_t limit, reserved, peak;
    uint64_t next_address;
    bool expands;
    uint32_t tail[2]; /* expandable: the last block of each pool, or NONE */
};

OrrAllocator *orr_allocator_new(int64_t limit_bytes, bool expands) {
    OrrAllocator *a = g_new0(OrrAllocator, 1);
    a->limit = limit_bytes;
    a->expands = expands;
    a->tail[0] = a->tail[1] = NONE;
    a->blocks = g_array_new(FALSE, FALSE, sizeof(Block));
    for (int i = 0; i < 2; i++)
        a->free[i] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    a->spare = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    return a;
}

void orr_allocator_free(OrrAllocator *a) {
    if (!a)
        return;
    g_array_unref(a->blocks);
    g_array_unref(a->free[0]);
    g_array_unref(a->free[1]);
    g_array_unref(a->spare);
    g_free(a);
}

static Block *at(const OrrAllocator *a, uint32_t id) {
    return &g_array_index(a->blocks, Block, id);
}

static uint32_t new_block(OrrAllocator *a, Block block) {
    if (a->spare->len > 0) {
        uint32_t id = g_array_index(a->spare, uint32_t, a->spare->len - 1);
        g_array_set_size(a->spare, a->spare->len - 1);
        *at(a, id) = block;
        return id;
    }
    g_array_append_val(a->blocks, block);
    return a->blocks->len - 1;
}

/* Place of the first free block that is not below (@bytes, @address). */
static guint place_of(const OrrAllocator *a, const GArray *list, int64_t bytes, uint64_t address) {
    guint low = 0, high = list->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        const Block *b = at(a, g_array_index(list, uint32_t, middle));
        bool is_below = b->bytes < bytes || (b->bytes == bytes && b->address < address);
        if (is_below)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void list(OrrAllocator *a, uint32_t id) {
    Block *b = at(a, id);
    GArray *free = a->free[b->is_small];
    b->is_free = true;
    g_array_insert_val(free, place_of(a, free, b->bytes, b->address), id);
}

static void unlist(OrrAllocator *a, uint32_t id) {
    Block *b = at(a, id);
    GArray *free = a->free[b->is_small];
    guint place = place_of(a, free, b->bytes, b->address);
    g_assert(place < free->len && g_array_index(free, uint32_t, place) == id);
    g_array_remove_index(free, place);
    b->is_free = false;
}

static int64_t segment_bytes(int64_t bytes) {
    if (bytes <= SMALL)
        return SMALL_SEGMENT;
    if (bytes < LARGE)
        return LARGE_SEGMENT;
    return (bytes + LARGE_ROUND - 1) / LARGE_ROUND * LARGE_ROUND;
}

/* Segments of one free block go back to the device. */
static void give_back(OrrAllocator *a) {
    for (int pool = 0; pool < 2; pool++)
        for (guint i = a->free[pool]->len; i-- > 0;) {
            uint32_t id = g_array_index(a->free[pool], uint32_t, i);
            const Block *b = at(a, id);
            if (b->before != NONE || b->behind != NONE || a->tail[pool] == id)
                continue;
            a->reserved -= b->bytes;
            g_array_remove_index(a->free[pool], i);
            g_array_append_val(a->spare, id);
        }
}

/* Bytes that have to come from the device for a block of @bytes that no free block holds. */
static int64_t missing(const OrrAllocator *a, int64_t bytes) {
    uint32_t tail = a->tail[bytes <= SMALL];
    int64_t has = a->expands && tail != NONE && at(a, tail)->is_free ? at(a, tail)->bytes : 0;
    return a->expands ? (bytes - has + LARGE_ROUND - 1) / LARGE_ROUND * LARGE_ROUND
                      : segment_bytes(bytes);
}

/* New memory, a segment or what the last block of an expandable one lacks; not listed. */
static uint32_t new_memory(OrrAllocator *a, int64_t bytes) {
    bool is_small = bytes <= SMALL;
    int64_t more = missing(a, bytes);
    if (a->reserved + more > a->limit)
        give_back(a);
    a->reserved += more;
    a->peak = MAX(a->peak, a->reserved);
    uint32_t tail = a->tail[is_small];
    if (a->expands && tail != NONE && at(a, tail)->is_free) {
        unlist(a, tail);
        at(a, tail)->bytes += more;
        return tail;
    }
    Block b = {.bytes = more,
               .address = a->next_address,
               .before = a->expands ? tail : NONE,
               .behind = NONE,
               .is_small = is_small};
    a->next_address += a->expands ? UINT64_C(1) << 40 : (uint64_t)more; /* ours: beyond any pool */
    uint32_t id = new_block(a, b);
    if (a->expands && tail != NONE) {
        at(a, id)->address = at(a, tail)->address + (uint64_t)at(a, tail)->bytes;
        at(a, tail)->behind = id;
    }
    if (a->expands)
        a->tail[is_small] = id;
    return id;
}

/* What @id has beyond @bytes becomes a free block behind it. */
static void split(OrrAllocator *a, uint32_t id, int64_t bytes) {
    Block first = *at(a, id);
    int64_t rest = first.bytes - bytes;
    if (rest < (first.is_small ? ROUND : SMALL + 1))
        return;
    Block second = {.bytes = rest,
                    .address = first.address + (uint64_t)bytes,
                    .before = id,
                    .behind = first.behind,
                    .is_small = first.is_small};
    uint32_t second_id = new_block(a, second);
    if (first.behind != NONE)
        at(a, first.behind)->before = second_id;
    if (a->tail[first.is_small] == id)
        a->tail[first.is_small] = second_id;
    at(a, id)->bytes = bytes;
    at(a, id)->behind = second_id;
    list(a, second_id);
}

bool orr_allocator_has(const OrrAllocator *a, int64_t bytes) {
    int64_t rounded = (bytes + ROUND - 1) / ROUND * ROUND;
    const GArray *free = a->free[rounded <= SMALL];
    return place_of(a, free, rounded, 0) < free->len ||
           a->reserved + missing(a, rounded) <= a->limit;
}

uint32_t orr_allocator_take(OrrAllocator *a, int64_t bytes) {
    g_assert(bytes > 0);
    int64_t rounded = (bytes + ROUND - 1) / ROUND * ROUND;
    GArray *free = a->free[rounded <= SMALL];
    guint place = place_of(a, free, rounded, 0);
    uint32_t id;
    if (place < free->len) {
        id = g_array_index(free, uint32_t, place);
        unlist(a, id);
    } else
        id = new_memory(a, rounded);
    split(a, id, rounded);
    return id;
}

/* Block @behind, which no list has, becomes part of @id, which is before it. */
static void join(OrrAllocator *a, uint32_t id, uint32_t behind) {
    Block taken = *at(a, behind);
    at(a, id)->bytes += taken.bytes;
    at(a, id)->behind = taken.behind;
    if (taken.behind != NONE)
        at(a, taken.behind)->before = id;
    if (a->tail[taken.is_small] == behind)
        a->tail[taken.is_small] = id;
    g_array_append_val(a->spare, behind);
}

void orr_allocator_give(OrrAllocator *a, uint32_t id) {
    uint32_t before = at(a, id)->before, behind = at(a, id)->behind;
    g_assert(!at(a, id)->is_free);
    if (behind != NONE && at(a, behind)->is_free) {
        unlist(a, behind);
        join(a, id, behind);
    }
    if (before != NONE && at(a, before)->is_free) {
        unlist(a, before);
        join(a, before, id);
        id = before;
    }
    list(a, id);
}

int64_t orr_allocator_peak(const OrrAllocator *a) {
    return a->peak;
}
