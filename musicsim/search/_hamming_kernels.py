"""Compiled loops over bit codes: a scan of all codes, and probes of tables of buckets.

Codes lie as *planes*, uint32 (n_planes, room): 32 bits of every code after another, so that the registers of any
processor hold several codes. A *tile* is TILE codes; their distances are summed in registers, and only where the
least of them is below the limit of a query are they looked at one by one.

Answers are numbers that sort as answers do, the first distance, then id: ``distance << 32 | id``. A heap of the k
nearest holds them negated, so that the worst stands first.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from musicsim.search._query_kernels import prefetch, push, sink

TILE = 64
"""Codes whose distances are worked out at once; the room of planes is a multiple of it."""

ID_BITS = 32
DISTANCE_BITS = 15
"""Of an answer as a number; above them stands the query, where answers to several are mixed."""

_LANES = 16
_VECTOR = ir.VectorType(ir.IntType(32), _LANES)
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)

# Codes that all queries see before the next come, so that they are read from memory once.
_BLOCK = 64 * TILE

# Planes that a tile is judged by at first; too many tiles of a block that have to be seen whole double them.
_FIRST_PLANES = 2
_MAX_MISSES = _BLOCK // TILE // 8

# Buckets, and codes in them, whose memory is asked for ahead.
_AHEAD = 8


def _bit_count(typingctx, number):
    """Bits of an integer that are set."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return number(number), generate


def _tile_sums(context, builder, signature, arguments):
    """Distances of a tile of codes in the first planes, as vectors in registers."""
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
        everywhere = builder.shuffle_vector(first, undefined, ir.Constant(_VECTOR, [0] * _LANES))
        start = builder.gep(codes.data, [builder.add(place, builder.mul(loop.index, row))])
        for j, total in enumerate(sums):
            source = builder.gep(start, [ir.Constant(_INT64, j * _LANES)])
            part = builder.load(builder.bitcast(source, _VECTOR.as_pointer()), align=4)
            differing = builder.call(count, [builder.xor(part, everywhere)])
            builder.store(builder.add(builder.load(total), differing), total)
    return [builder.load(total) for total in sums]


def _tile_least(typingctx, planes, query, place, n_planes):
    """The least distance of a query to the codes of a tile, in the first planes."""

    def generate(context, builder, signature, arguments):
        least, *others = _tile_sums(context, builder, signature, arguments)
        for other in others:
            least = builder.select(builder.icmp_unsigned("<", other, least), other, least)
        kind = ir.FunctionType(_INT32, [_VECTOR])
        reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.umin.v{_LANES}i32")
        return builder.zext(builder.call(reduce, [least]), _INT64)

    return types.int64(planes, query, types.intp, types.intp), generate


def _tile_distances(typingctx, planes, query, place, n_planes, out):
    """Write the distances of a query to the codes of a tile, in the first planes, to `out`."""

    def generate(context, builder, signature, arguments):
        target = context.make_array(signature.args[4])(context, builder, value=arguments[4]).data
        for j, total in enumerate(_tile_sums(context, builder, signature, arguments)):
            place = builder.gep(target, [ir.Constant(_INT64, j * _LANES)])
            builder.store(total, builder.bitcast(place, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(planes, query, types.intp, types.intp, out), generate


# called without their first argument
_popcount: Any = intrinsic(_bit_count)
_least: Any = intrinsic(_tile_least)
_distances: Any = intrinsic(_tile_distances)


@njit(cache=True, nogil=True)
def _distance(words, others):
    """Bits in which two codes differ."""
    total = np.int64(0)
    for i in range(len(words)):
        total += np.int64(_popcount(words[i] ^ others[i]))
    return total


@njit(cache=True, nogil=True)
def _offered(heap, size, answer):
    """Offer an answer to a heap of the nearest; returns how many it holds then."""
    if size < len(heap):
        push(heap, heap, size, -answer, -answer)
        return size + 1
    if -answer > heap[0]:
        sink(heap, heap, size, -answer, -answer)
    return size


@njit(cache=True, nogil=True)
def _appended(found, n_found, answer):
    """Put an answer behind others; returns them, in twice the room if need be, and how many they are."""
    if n_found == len(found):
        grown = np.empty(2 * n_found, np.int64)
        grown[:n_found] = found
        found = grown
    found[n_found] = answer
    return found, n_found + 1


@njit(cache=True, nogil=True)
def scan(planes, first, last, queries, limits, heaps, sizes, shown):
    """Compare queries with the codes first..last - 1.

    Parameters
    ----------
    planes : uint32 ndarray of shape (n_planes, room)
    first, last : int
    queries : uint32 ndarray of shape (n_queries, n_planes)
    limits : int64 ndarray of shape (n_queries,)
        Codes at this distance or beyond are no answers. Sinks to the distance of the k-th nearest.
    heaps : int64 ndarray of shape (n_queries, k)
        The k nearest; with k = 0 all answers are returned instead.
    sizes : int64 ndarray of shape (n_queries,)
        Answers in each heap.
    shown : uint8 ndarray of shape (n,) or (0,)
        Which codes may be answers; of no code: all.

    Returns
    -------
    int64 ndarray
        With k = 0: ``query << 47 | distance << 32 | id``, in any order.
    """
    n_queries, n_planes = queries.shape
    k, hides = heaps.shape[1], len(shown) > 0
    distances = np.empty(TILE, np.uint32)
    depths = np.full(n_queries, min(_FIRST_PLANES, n_planes))
    found, n_found = np.empty(1024 if k == 0 else 0, np.int64), 0
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
                    if distance >= limit or (hides and not shown[place + t]):
                        continue
                    answer = distance << ID_BITS | (place + t)
                    if k:
                        sizes[i] = _offered(heaps[i], sizes[i], answer)
                        if sizes[i] == k:
                            # ids grow: what is as far as the k-th comes after it
                            limit = -heaps[i, 0] >> ID_BITS
                    else:
                        found, n_found = _appended(found, n_found, i << ID_BITS + DISTANCE_BITS | answer)
            if limit < limits[i]:
                limits[i], depths[i] = limit, min(_FIRST_PLANES, n_planes)
            elif misses > _MAX_MISSES:
                depths[i] = min(2 * depth, n_planes)
    return found[:n_found]


@njit(cache=True, nogil=True)
def _key(words, start, width):
    """Bits start..start + width - 1 of a code, as a number; `width` is below 64."""
    word, shift = start >> 6, start & 63
    value = words[word] >> np.uint64(shift)
    if shift + width > 64:
        value |= words[word + 1] << np.uint64(64 - shift)
    return np.int64(value & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@njit(cache=True, nogil=True)
def fill_table(rows, start, width, offsets, ids, codes):
    """Sort codes into the buckets of one table, each bucket by id.

    Parameters
    ----------
    rows : uint64 ndarray of shape (n, n_words)
    start, width : int
        The bits that are the bucket's number.
    offsets : uint32 ndarray of shape (2 ** width + 1,)
        Filled with the first place of each bucket.
    ids : uint32 ndarray of shape (n,)
        Filled with what is in each place.
    codes : uint64 ndarray of shape (n,) or (0,)
        Filled with the codes in their places, where there is room.
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
def _seen(words, keys, starts, widths, table, ring):
    """Whether a code was in a bucket that was looked into before those `ring` bits off in a table.

    `keys` are the query's buckets. All tables before that one have been looked into up to that ring, those after it
    up to the ring before.
    """
    for j in range(len(starts)):
        if j != table:
            apart = _popcount(_key(words, starts[j], widths[j]) ^ keys[j])
            if apart < ring or (apart == ring and j < table):
                return True
    return False


@njit(cache=True, nogil=True)
def _gathered(offsets, ids, codes, key, end, masks, word, bound, costs, most, waiting, their_codes):
    """Note which codes in the buckets around a key may be answers, and where codes lie in buckets, what they are.

    Returns how many they are, how many buckets were looked into and what that cost; it ends where that is above `most`.
    """
    n_waiting = n_buckets = spent = 0
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
                their_codes[n_waiting] = codes[place]
            number = np.int64(ids[place])
            if least | number < bound:
                waiting[n_waiting] = number
                n_waiting += 1
    return n_waiting, n_buckets, spent


@njit(cache=True, nogil=True)
def _foreseen(step, last, rings, n_tables, a_bucket):
    """What the steps that are left until `last` will cost.

    Where they take more than one ring, the last is left out: the k-th nearest may come nearer until then.
    """
    total, ring = np.int64(0), step // n_tables
    if last // n_tables > ring:
        last = last // n_tables * n_tables - 1
    while step <= last:
        if ring >= len(rings) - 1:
            return np.int64(1) << 62
        following = min(last + 1, (ring + 1) * n_tables)
        total += (following - step) * (rings[ring + 1] - rings[ring]) * a_bucket
        step, ring = following, ring + 1
    return total


@njit(cache=True, nogil=True)
def probe(rows, starts, widths, offsets, ids, codes, masks, rings, queries, bounds, heaps, sizes, shown, costs, budget):
    """Look into the buckets nearest to each query's, ring after ring, until no answer can lie in the others.

    Parameters
    ----------
    rows : uint64 ndarray of shape (n, n_words)
        Not read where codes lie in their buckets.
    starts, widths : int64 ndarray of shape (n_tables,)
        The bits of each table; no table is wider than the first.
    offsets : uint32 ndarray of shape (n_tables, 2 ** widths[0] + 1)
    ids : uint32 ndarray of shape (n_tables, n)
    codes : uint64 ndarray of shape (n_tables, n) or (n_tables, 0)
    masks : uint32 ndarray
        Numbers below ``2 ** widths[0]`` by how many bits they have.
    rings : int64 ndarray of shape (n_rings + 1,)
        Where in `masks` those of each number of bits begin.
    queries : uint64 ndarray of shape (n_queries, n_words)
    bounds : int64 ndarray of shape (n_queries,)
        Answers are below it. Sinks to the k-th nearest.
    heaps, sizes, shown : as in :func:`scan`
        The heap of a query that is given up is empty, and all of its answers are below its bound or equal to it.
    costs : int64 ndarray of shape (2,)
        Of looking into a bucket and at a code there.
    budget : int
        A query that would cost more is given up.

    Returns
    -------
    found : int64 ndarray
        As :func:`scan` returns it.
    given_up : bool ndarray of shape (n_queries,)

    Notes
    -----
    A code that differs in at most m r + j bits from the query does so in at most r bits of one of the first j + 1
    of m tables, or in at most r - 1 of another (Norouzi, Punjani, Fleet, CVPR 2012, 3.1).
    """
    n_queries, n_words = queries.shape
    n_tables, k = len(starts), heaps.shape[1]
    a_bucket = costs[0] + ids.shape[1] * costs[1] // (np.int64(1) << widths[0])
    keys = np.empty(n_tables, np.int64)
    # what waits has been paid for, and no code waits twice
    waiting = np.empty(min(ids.shape[1], budget // costs[1]), np.int64)
    lie_sorted = codes.shape[1] > 0
    their_codes = np.empty(len(waiting) if lie_sorted else 0, np.uint64)
    given_up = np.zeros(n_queries, np.bool_)
    found, n_found = np.empty(1024 if k == 0 else 0, np.int64), 0
    for i in range(n_queries):
        query, bound, heap, size = queries[i], bounds[i], heaps[i], sizes[i]
        n_before, n_probed, spent, step = n_found, 1, a_bucket, 0
        for j in range(n_tables):
            keys[j] = _key(query, starts[j], widths[j])
        while step << ID_BITS < bound:  # what is nearer than `step` has been seen
            ring, table = step // n_tables, step % n_tables
            # how far it will have to go is asked once a ring, and not before the k-th nearest says anything of it
            tells = k == 0 or (size == k and ring > 1)
            last = bound >> ID_BITS if tells and table == 0 else step
            if spent + _foreseen(step, last, rings, n_tables, spent // n_probed) > budget:
                given_up[i] = True
                break
            step += 1
            n_waiting, n_buckets, cost = _gathered(
                offsets[table], ids[table], codes[table], keys[table], np.int64(1) << widths[table],
                masks[rings[ring] : rings[ring + 1]], query[0], bound, costs, budget - spent, waiting, their_codes,
            )  # fmt: skip
            n_probed, spent = n_probed + n_buckets, spent + cost
            if spent > budget:
                given_up[i] = True
                break
            for w in range(n_waiting):
                if w + _AHEAD < n_waiting and not lie_sorted:
                    prefetch(rows, n_words * waiting[w + _AHEAD])
                number = waiting[w]
                row = their_codes[w : w + 1] if lie_sorted else rows[number]
                answer = _distance(row, query) << ID_BITS | number
                hidden = len(shown) > 0 and not shown[number]
                if answer >= bound or hidden or _seen(row, keys, starts, widths, table, ring):
                    continue
                if k:
                    size = _offered(heap, size, answer)
                    if size == k:
                        bound = min(bound, -heap[0])
                else:
                    found, n_found = _appended(found, n_found, i << ID_BITS + DISTANCE_BITS | answer)
        bounds[i] = bound
        n_found, sizes[i] = (n_before, 0) if given_up[i] else (n_found, size)
    return found[:n_found], given_up
