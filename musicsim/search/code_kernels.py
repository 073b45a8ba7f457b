"""8-bit codes of rows: their layout, encoding, and comparing a query with the codes of a leaf.

A code holds the rounded coordinates of a row in units of a step. Codes are stored in blocks of 32 slots: the first four
columns of every slot, then the next four, and so on, padded to whole groups of four. The last four bytes of each slot
hold the squared length of its code. With this layout, a single read fills a vector register of any size. A query is
rounded in the same way and compared by integer products, whose sums fit into 32 bits for up to 133,000 columns.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

BLOCK = 32
"""Number of slots in a block; enough to fill a vector register on any processor."""

GROUP = 4
"""Number of adjacent columns of a slot, and the size in bytes of its squared length."""

_LARGEST = np.float32(127.0)
_FAR = np.float32(1e15)  # Query coordinates, in steps, are clipped to this, so that their squares fit into float32
_LANES = 16  # Number of slots in a vector


@njit(cache=True, nogil=True)
def code_size(d):
    """Return the size in bytes of a code of d columns."""
    return (d + GROUP - 1) // GROUP * GROUP + GROUP


@njit(cache=True, nogil=True)
def _slot_offset(slot, size):
    """Return the offset of a slot's first group, for codes of `size` bytes; its other groups are BLOCK groups apart."""
    return slot // BLOCK * BLOCK * size + slot % BLOCK * GROUP


@njit(cache=True, nogil=True)
def _column_offset(column):
    return column // GROUP * GROUP * BLOCK + column % GROUP


@njit(cache=True, nogil=True)
def put_code(codes, slot, row, step):
    """Write the code of a row into a slot; coordinates beyond the range of codes are clipped."""
    size = code_size(row.shape[0])
    place, square = _slot_offset(slot, size), 0
    for j in range(row.shape[0]):
        number = int(min(max(np.rint(row[j] / step), -_LARGEST), _LARGEST))
        codes[place + _column_offset(j)] = number
        square += number * number
    for j in range(row.shape[0], size - GROUP):
        codes[place + _column_offset(j)] = 0
    place += _column_offset(size - GROUP)
    codes.view(np.int32)[place // GROUP] = square


@njit(cache=True, nogil=True)
def copy_code(codes, source, target, size):
    from_place, to_place = _slot_offset(source, size), _slot_offset(target, size)
    for group in range(0, size * BLOCK, GROUP * BLOCK):
        for byte in range(group, group + GROUP):
            codes[to_place + byte] = codes[from_place + byte]


@njit(cache=True, nogil=True)
def decode(codes, first, step, rows):
    """Fill rows (n, d) from the codes of n slots, starting at slot `first`."""
    size = code_size(rows.shape[1])
    for i in range(rows.shape[0]):
        place = _slot_offset(first + i, size)
        for j in range(rows.shape[1]):
            rows[i, j] = codes[place + _column_offset(j)] * step


@njit(cache=True, nogil=True)
def encode(Y, items, step):
    """Return the codes of all slots, int8 (n_slots * size,); 0 in unused slots."""
    codes = np.zeros(items.shape[0] * code_size(Y.shape[1]), np.int8)
    for slot in range(items.shape[0]):
        if items[slot] >= 0:
            put_code(codes, slot, Y[items[slot]], step)
    return codes


@njit(cache=True, nogil=True)
def round_query(query, step, result):
    """Round a query to int8 like the codes; return its unit in steps (above 1 if the query exceeds their range)."""
    farthest = _LARGEST
    for j in range(query.shape[0]):
        farthest = max(farthest, min(abs(query[j] / step), _FAR))
    unit = farthest / _LARGEST
    result[:] = 0
    for j in range(query.shape[0]):
        result[j] = np.int8(np.rint(min(max(query[j] / step, -_FAR), _FAR) / unit))
    return unit


def _compare(typingctx, codes, place, query, factor, limit, keys):
    def generate(context, builder, signature, arguments):
        arrays = {
            which: context.make_array(signature.args[which])(context, builder, value=arguments[which])
            for which in (0, 2, 5)
        }

        def constant(number):
            return ir.Constant(arguments[1].type, number)

        def address(which, offset):
            return builder.gep(arrays[which].data, [offset])

        def shuffle(vector, numbers):
            mask = ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), numbers)
            return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)

        def broadcast(number):
            vector = ir.Constant(ir.VectorType(number.type, _LANES), ir.Undefined)
            return shuffle(builder.insert_element(vector, number, ir.Constant(ir.IntType(32), 0)), [0] * _LANES)

        def pairs_added(vector):
            return builder.add(*(shuffle(vector, list(range(side, vector.type.count, 2))) for side in range(2)))

        def read(at, kind):
            return builder.load(builder.bitcast(at, kind.as_pointer()), align=1)

        def group_at(number, lanes):
            start = builder.add(arguments[1], builder.mul(number, constant(GROUP * BLOCK)))
            return address(0, builder.add(start, constant(GROUP * _LANES * lanes)))

        sums, floats = ir.VectorType(ir.IntType(32), _LANES), ir.VectorType(ir.FloatType(), _LANES)
        numbers, wide = (ir.VectorType(ir.IntType(n), GROUP * _LANES) for n in (8, 32))
        totals = [cgutils.alloca_once_value(builder, ir.Constant(sums, [0] * _LANES)) for _ in range(BLOCK // _LANES)]
        n_groups = builder.sdiv(arrays[2].nitems, constant(GROUP))
        with cgutils.for_range(builder, n_groups) as loop:
            group = read(address(2, builder.mul(loop.index, constant(GROUP))), ir.IntType(32))
            factors = builder.sext(builder.bitcast(broadcast(group), numbers), wide)
            for lanes, total in enumerate(totals):
                products = builder.mul(builder.sext(read(group_at(loop.index, lanes), numbers), wide), factors)
                # compilers turn this pattern into one instruction, which multiplies and adds pairs
                added = pairs_added(pairs_added(products))
                builder.store(builder.add(builder.load(total), added), total)
        bits = ir.Constant(ir.IntType(64), 0)
        for lanes, total in enumerate(totals):
            squares = builder.sitofp(read(group_at(n_groups, lanes), sums), floats)
            cross = builder.fmul(broadcast(arguments[3]), builder.sitofp(builder.load(total), floats))
            distances = builder.fsub(squares, cross)
            at = builder.bitcast(address(5, constant(_LANES * lanes)), floats.as_pointer())
            builder.store(distances, at, align=4)
            some = builder.bitcast(builder.fcmp_ordered("<", distances, broadcast(arguments[4])), ir.IntType(_LANES))
            some = builder.shl(builder.zext(some, bits.type), ir.Constant(bits.type, _LANES * lanes))
            bits = builder.or_(bits, some)
        return bits

    return types.uint64(codes, types.intp, query, types.float32, types.float32, keys), generate


def _count_zeros(typingctx, bits):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


_keys_below: Any = intrinsic(_compare)  # numba passes the first argument of both intrinsics
lowest_bit: Any = intrinsic(_count_zeros)
"""Return the position of the lowest set bit; at least one bit must be set."""


@njit(cache=True, nogil=True)
def find_below(codes, slot, n, query, unit, limit, keys):
    """Return a bit mask of the rows, among the first n slots of a block, that are nearer than a float32 limit.

    The block begins at `slot`; n may exceed BLOCK. Bit i is for slot i. `query` and `unit` come from
    :func:`round_query`. Fills `keys`, float32 (BLOCK,), with squared distances minus the squared length of the query,
    in steps.
    """
    place = slot * (query.shape[0] + GROUP)
    bits = _keys_below(codes, place, query, np.float32(2.0) * unit, limit, keys)
    if n < BLOCK:
        bits &= (np.uint64(1) << np.uint64(n)) - np.uint64(1)
    return bits
