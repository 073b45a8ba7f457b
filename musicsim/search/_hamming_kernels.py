"""Compiled loops over bit codes: scan all codes, or probe tables of buckets.

Codes are stored in *planes*, uint32 (n_planes, room): the first 32 bits of every code, then the next 32, and so on.
With this layout, a vector register of any size can process several codes. A *tile* consists of TILE codes. Their
distances are summed in registers, and single codes are examined only if the smallest sum is below the query's limit.

A result is the number ``distance << 32 | id``, so results sort by distance, then by id. A heap of the k nearest codes
contains the negated results, so that the worst one comes first.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from musicsim.search._query_kernels import prefetch, push, sink

TILE = 64
"""Number of codes whose distances are computed together; the length of a plane is a multiple of TILE."""

ID_BITS = 32
DISTANCE_BITS = 15
"""Number of bits for the distance in a result; if there are several queries, the query number is in the bits above."""

_LANES = 16
_VECTOR = ir.VectorType(ir.IntType(32), _LANES)
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_BLOCK = 64 * TILE  # Number of codes compared with every query before the next block, to read memory only once
# Number of planes compared at first; doubled if too many tiles of a block must be compared in full.
_FIRST_PLANES = 2
_MAX_MISSES = _BLOCK // TILE // 8
_AHEAD = 8  # Number of buckets, and of codes, that are prefetched


def _bit_count(typingctx, number):
    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return number(number), generate


def _tile_sums(context, builder, signature, arguments):
    """Generate code that sums a tile's distances over the first planes, as vectors in registers."""
    planes, query, place, n_planes = arguments[:4]
    codes = context.make_array(signature.args[0])(context, builder, value=planes)
    words = context.make_array(signature.args[1])(context, builder, value=query)
    row = cgutils.unpack_tuple(builder, codes.shape, 2)[1]
    count = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.ctpop.v{_LANES}i32"
    )
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    sums = [cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0] * _LANES)) for _ in range(TILE // _LANES)]
    with cgutils.for_range(builder, n_planes) as loop:
        word = builder.load(builder.gep(words.data, [loop.index]))
        first = builder.insert_element(undefined, word, ir.Constant(_INT32, 0))
        repeated = builder.shuffle_vector(first, undefined, ir.Constant(_VECTOR, [0] * _LANES))
        start = builder.gep(codes.data, [builder.add(place, builder.mul(loop.index, row))])
        for j, total in enumerate(sums):
            source = builder.gep(start, [ir.Constant(_INT64, j * _LANES)])
            part = builder.load(builder.bitcast(source, _VECTOR.as_pointer()), align=4)
            differences = builder.call(count, [builder.xor(part, repeated)])
            builder.store(builder.add(builder.load(total), differences), total)
    return [builder.load(total) for total in sums]


def _tile_least(typingctx, planes, query, place, n_planes):
    """Return the smallest distance from a query to the codes of a tile, over the first planes."""

    def generate(context, builder, signature, arguments):
        least, *others = _tile_sums(context, builder, signature, arguments)
        for other in others:
            least = builder.select(builder.icmp_unsigned("<", other, least), other, least)
        kind = ir.FunctionType(_INT32, [_VECTOR])
        reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.umin.v{_LANES}i32")
        return builder.zext(builder.call(reduce, [least]), _INT64)

    return types.int64(planes, query, types.intp, types.intp), generate


def _tile_distances(typingctx, planes, query, place, n_planes, out):
    """Write the distances from a query to the codes of a tile, over the first planes, to `out`."""

    def generate(context, builder, signature, arguments):
        target = context.make_array(signature.args[4])(context, builder, value=arguments[4]).data
        for j, total in enumerate(_tile_sums(context, builder, signature, arguments)):
            place = builder.gep(target, [ir.Constant(_INT64, j * _LANES)])
            builder.store(total, builder.bitcast(place, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(planes, query, types.intp, types.intp, out), generate


# numba passes the first argument of these intrinsics
_popcount: Any = intrinsic(_bit_count)
_least: Any = intrinsic(_tile_least)
_distances: Any = intrinsic(_tile_distances)


@njit(cache=True, nogil=True)
def _distance(words, others):
    total = np.int64(0)
    for i in range(len(words)):
        total += np.int64(_popcount(words[i] ^ others[i]))
    return total


@njit(cache=True, nogil=True)
def _offer(heap, size, result):
    """Add a result to a heap if it is among the nearest; return the size of the heap."""
    if size < len(heap):
        push(heap, heap, size, -result, -result)
        return size + 1
    if -result > heap[0]:
        sink(heap, heap, size, -result, -result)
    return size


@njit(cache=True, nogil=True)
def _append(results, n_results, result):
    """Append a result; return the array, enlarged if it was full, and the number of results."""
    if n_results == len(results):
        grown = np.empty(2 * n_results, np.int64)
        grown[:n_results] = results
        results = grown
    results[n_results] = result
    return results, n_results + 1


@njit(cache=True, nogil=True)
def scan(planes, first, last, queries, limits, heaps, sizes, shown):
    """Compare queries (n_queries, n_planes) with the codes first..last - 1 of planes (n_planes, room), both uint32.

    Only codes nearer than `limits`, int64 (n_queries,), are results. Each limit is lowered to the distance of the k-th
    nearest code. Results are added to `heaps`, int64 (n_queries, k), whose sizes are in `sizes`, int64 (n_queries,).
    With k = 0, all results are returned instead, in any order, as ``query << 47 | distance << 32 | id``. `shown`, uint8
    (n,), masks the codes that may be results; an empty mask allows all codes.
    """
    n_queries, n_planes = queries.shape
    k, has_mask = heaps.shape[1], len(shown) > 0
    distances = np.empty(TILE, np.uint32)
    depths = np.full(n_queries, min(_FIRST_PLANES, n_planes))
    results, n_results = np.empty(1024 if k == 0 else 0, np.int64), 0
    for block in range(first // TILE * TILE, last, _BLOCK):
        end = min(block + _BLOCK, last)
        for i in range(n_queries):
            query, limit, depth = queries[i], limits[i], depths[i]
            misses = 0
            for place in range(block, end, TILE):
                if _least(planes, query, place, depth) >= limit:
                    continue
                misses += 1
                _distances(planes, query, place, n_planes, distances)
                for t in range(max(0, first - place), min(TILE, last - place)):
                    distance = np.int64(distances[t])
                    if distance >= limit or (has_mask and not shown[place + t]):
                        continue
                    result = distance << ID_BITS | (place + t)
                    if k:
                        sizes[i] = _offer(heaps[i], sizes[i], result)
                        if sizes[i] == k:
                            # ids ascend, so a later code at the same distance ranks after the k-th
                            limit = -heaps[i, 0] >> ID_BITS
                    else:
                        results, n_results = _append(results, n_results, i << ID_BITS + DISTANCE_BITS | result)
            if limit < limits[i]:
                limits[i], depths[i] = limit, min(_FIRST_PLANES, n_planes)
            elif misses > _MAX_MISSES:
                depths[i] = min(2 * depth, n_planes)
    return results[:n_results]


@njit(cache=True, nogil=True)
def _key(words, start, width):
    """Return bits start..start + width - 1 of a code as a number; `width` is below 64."""
    word, shift = start >> 6, start & 63
    value = words[word] >> np.uint64(shift)
    if shift + width > 64:
        value |= words[word + 1] << np.uint64(64 - shift)
    return np.int64(value & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@njit(cache=True, nogil=True)
def fill_table(rows, start, width, offsets, ids, codes):
    """Sort codes `rows`, uint64 (n, n_words), into the buckets of one table; within a bucket, sort them by id.

    The bits start..start + width - 1 of a code are its bucket number. Fills `offsets`, uint32 (2 ** width + 1,), with
    the first slot of each bucket. Fills `ids`, uint32 (n,), and `codes`, uint64 (n,) or (0,), with the id and the code
    in each slot.
    """
    offsets[:] = 0
    for row in rows:
        offsets[_key(row, start, width) + 1] += 1
    for bucket in range(len(offsets) - 1):
        offsets[bucket + 1] += offsets[bucket]
    following = offsets[:-1].copy()
    for i in range(len(rows)):
        bucket = _key(rows[i], start, width)
        place = following[bucket]
        following[bucket] += 1
        ids[place] = i
        if len(codes):
            codes[place] = rows[i, 0]


@njit(cache=True, nogil=True)
def _was_probed(words, keys, starts, widths, table, ring):
    """Return whether a code found in `table` is also in a bucket of another table that was probed earlier.

    `keys` are the query's own buckets. The tables before `table` were probed up to `ring` bits away from these buckets,
    and the tables after it up to ``ring - 1`` bits away.
    """
    for j in range(len(starts)):
        if j != table:
            apart = _popcount(_key(words, starts[j], widths[j]) ^ keys[j])
            if apart < ring or (apart == ring and j < table):
                return True
    return False


@njit(cache=True, nogil=True)
def _collect_candidates(offsets, ids, codes, key, end, masks, word, bound, costs, most, candidates, candidate_codes):
    """Collect candidates from the buckets around a key: their ids, and their codes if buckets hold codes.

    Returns the number of candidates, the number of probed buckets, and the cost. Stops when the cost exceeds `most`.
    """
    n_candidates = n_buckets = spent = 0
    for m in range(len(masks)):
        bucket = key ^ np.int64(masks[m])
        if bucket >= end:
            continue
        if m + _AHEAD < len(masks) and masks[m + _AHEAD] < end:
            ahead = np.int64(offsets[key ^ np.int64(masks[m + _AHEAD])])
            if ahead < len(codes):
                prefetch(codes, ahead)
            elif ahead < len(ids):
                prefetch(ids, ahead)
        low, high = np.int64(offsets[bucket]), np.int64(offsets[bucket + 1])
        n_buckets += 1
        spent += costs[0] + (high - low) * costs[1]
        if spent > most:
            break
        for place in range(low, high):
            least = np.int64(0)
            if len(codes):
                least = np.int64(_popcount(codes[place] ^ word)) << ID_BITS
                if least >= bound:
                    continue
                candidate_codes[n_candidates] = codes[place]
            number = np.int64(ids[place])
            if least | number < bound:
                candidates[n_candidates] = number
                n_candidates += 1
    return n_candidates, n_buckets, spent


@njit(cache=True, nogil=True)
def _predict_cost(step, last, rings, n_tables, bucket_cost):
    """Return the expected cost of the remaining steps up to `last`.

    If there are several rings, the last one is not counted, because a nearer k-th code may have been found by then.
    """
    total, ring = np.int64(0), step // n_tables
    if last // n_tables > ring:
        last = last // n_tables * n_tables - 1
    while step <= last:
        if ring >= len(rings) - 1:
            return np.int64(1) << 62
        following = min(last + 1, (ring + 1) * n_tables)
        total += (following - step) * (rings[ring + 1] - rings[ring]) * bucket_cost
        step, ring = following, ring + 1
    return total


@njit(cache=True, nogil=True)
def probe(rows, starts, widths, offsets, ids, codes, masks, rings, queries, bounds, heaps, sizes, shown, costs, budget):
    """Probe the buckets nearest to each query's own bucket, ring by ring, until no other bucket can hold a result.

    `rows` to `rings` are arrays of :class:`musicsim.search._hamming_tables.BucketTables`; `rows` is not read if buckets
    hold codes. Results, ``distance << 32 | id``, must be below `bounds`, int64 (n_queries,). A query's bound is lowered
    to its k-th nearest result. `heaps`, `sizes`, `shown` and the returned results are as in :func:`scan`. `costs`,
    int64 (2,), contains the costs of opening a bucket and of comparing a code. A query that would cost more than
    `budget` is abandoned: its results are discarded, but its bound stays valid. Returns the results and a mask of
    abandoned queries, bool (n_queries,).

    With m tables, consider a code that differs from the query in at most m r + j bits. Either one of
    the first j + 1 tables sees at most r differing bits, or another table sees at most r - 1 (Norouzi, Punjani, Fleet,
    CVPR 2012, 3.1).
    """
    n_queries, n_words = queries.shape
    n_tables, k = len(starts), heaps.shape[1]
    bucket_cost = costs[0] + ids.shape[1] * costs[1] // (np.int64(1) << widths[0])
    keys = np.empty(n_tables, np.int64)
    # the budget limits the number of candidates, and each one occurs only once
    candidates = np.empty(min(ids.shape[1], budget // costs[1]), np.int64)
    holds_codes = codes.shape[1] > 0
    candidate_codes = np.empty(len(candidates) if holds_codes else 0, np.uint64)
    given_up = np.zeros(n_queries, np.bool_)
    results, n_results = np.empty(1024 if k == 0 else 0, np.int64), 0
    for i in range(n_queries):
        query, bound, heap, size = queries[i], bounds[i], heaps[i], sizes[i]
        n_before, n_probed, spent, step = n_results, 1, bucket_cost, 0
        for j in range(n_tables):
            keys[j] = _key(query, starts[j], widths[j])
        while step << ID_BITS < bound:  # all codes nearer than `step` have been compared
            ring, table = step // n_tables, step % n_tables
            # the cost is predicted once per ring, as soon as the k-th nearest code is known
            is_known = k == 0 or (size == k and ring > 1)
            last = bound >> ID_BITS if is_known and table == 0 else step
            if spent + _predict_cost(step, last, rings, n_tables, spent // n_probed) > budget:
                given_up[i] = True
                break
            step += 1
            n_candidates, n_buckets, cost = _collect_candidates(
                offsets[table], ids[table], codes[table], keys[table], np.int64(1) << widths[table],
                masks[rings[ring] : rings[ring + 1]], query[0], bound, costs, budget - spent, candidates,
                candidate_codes,
            )  # fmt: skip
            n_probed, spent = n_probed + n_buckets, spent + cost
            if spent > budget:
                given_up[i] = True
                break
            for w in range(n_candidates):
                if w + _AHEAD < n_candidates and not holds_codes:
                    prefetch(rows, n_words * candidates[w + _AHEAD])
                number = candidates[w]
                row = candidate_codes[w : w + 1] if holds_codes else rows[number]
                result = _distance(row, query) << ID_BITS | number
                hidden = len(shown) > 0 and not shown[number]
                if result >= bound or hidden or _was_probed(row, keys, starts, widths, table, ring):
                    continue
                if k:
                    size = _offer(heap, size, result)
                    if size == k:
                        bound = min(bound, -heap[0])
                else:
                    results, n_results = _append(results, n_results, i << ID_BITS + DISTANCE_BITS | result)
        bounds[i] = bound
        n_results, sizes[i] = (n_before, 0) if given_up[i] else (n_results, size)
    return results[:n_results], given_up
