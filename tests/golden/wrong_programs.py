"""Programs with a mistake in them, each with the arguments it is traced with.

`test_wrong_programs.py` compares their messages with `wrong_programs.txt`.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import tenfold as tn

F3 = np.ones(3, "f4")
F4 = np.ones(4, "f4")
M = np.ones((2, 3), "f4")
I3 = np.arange(3)
READ_ONLY = np.broadcast_to(np.float32(1), 3)
U8 = np.ones(3, "u1")
B3 = np.array([True, False, True])

PROGRAMS = {}


def wrong(*args, **options):
    def keep(function):
        PROGRAMS[function.__name__] = (function, args, options)
        return function

    return keep


# -- shapes and dtypes


@wrong(F3, F4)
def add_of_unequal_shapes(x, y):
    return x + y


@wrong(M, M)
def matmul_of_unequal_inner_extents(x, y):
    return x @ y


@wrong(F3)
def reshape_to_another_size(x):
    return x.reshape(2, 2)


@wrong(F3)
def reshape_with_two_unknowns(x):
    return x.reshape(-1, -1)


@wrong(F3)
def transpose_with_too_many_axes(x):
    return x.transpose(0, 1)


@wrong(M)
def transpose_with_a_repeated_axis(x):
    return np.transpose(x, (0, 0))


@wrong(F3)
def sum_over_an_axis_that_is_not_there(x):
    return x.sum(axis=1)


@wrong(M)
def sum_over_an_axis_twice(x):
    return x.sum(axis=(0, 0))


@wrong(F3, M)
def concatenate_of_unequal_ranks(x, y):
    return np.concatenate([x, y])


@wrong(M, np.ones((2, 4), "f4"))
def concatenate_of_unequal_extents(x, y):
    return np.concatenate([x, y], axis=0)


@wrong(F3)
def concatenate_of_nothing(x):
    return np.concatenate([x][:0]) if False else np.concatenate([x], axis=3)


@wrong(F3, F4)
def stack_of_unequal_shapes(x, y):
    return np.stack([x, y])


@wrong(F3)
def broadcast_to_a_smaller_shape(x):
    return np.broadcast_to(x, (2,))


@wrong(M)
def squeeze_of_an_axis_of_three(x):
    return np.squeeze(x, axis=1)


@wrong(np.ones((0, 3)))
def max_of_nothing(x):
    return x.max(axis=0)


@wrong(np.ones(0))
def argmax_of_nothing(x):
    return np.argmax(x)


@wrong(B3, B3)
def subtraction_of_bools(x, y):
    return x - y


@wrong(B3)
def negative_of_bools(x):
    return -x


@wrong(F3)
def bitwise_and_of_floats(x):
    return x & 1


@wrong(F3)
def shift_of_floats(x):
    return x << 2


@wrong(np.ones(3, "c8"), np.ones(3, "c8"))
def floor_division_of_complex_numbers(x, y):
    return x // y


@wrong(U8)
def literal_that_does_not_fit(x):
    return x + 300


@wrong(U8)
def negative_literal_for_unsigned(x):
    return x * -1


@wrong(I3)
def negative_integer_power(x):
    return x**-1


@wrong(F3)
def astype_of_an_unknown_dtype(x):
    return x.astype("float128x")


@wrong(F3)
def astype_of_a_dtype_without_support(x):
    return x.astype("S4")


@wrong(F3)
def view_with_another_item_size(x):
    return x.view("f8")


@wrong(M, M)
def einsum_with_a_wrong_subscript(x, y):
    return np.einsum("ij,jk->ik", x, y)


@wrong(F3)
def einsum_with_too_many_letters(x):
    return np.einsum("ij->i", x)


@wrong(F3)
def dot_with_a_text(x):
    return np.dot(x, "abc")


# -- values that only a running program has


@wrong(F3)
def if_on_a_traced_value(x):
    if x.sum() > 0:
        return x
    return -x


@wrong(F3)
def while_on_a_traced_value(x):
    while x.sum() < 100:
        x = x * 2
    return x


@wrong(F3)
def and_of_traced_values(x):
    return (x[0] > 0) and (x[1] > 0)


@wrong(F3)
def int_of_a_traced_value(x):
    return int(x[0])


@wrong(F3)
def float_of_a_traced_value(x):
    return float(x[0])


@wrong(I3)
def range_of_a_traced_value(i):
    return sum(range(i[0]))


@wrong(F3)
def item_of_a_traced_value(x):
    return x[0].item()


@wrong(F3)
def tolist_of_a_traced_value(x):
    return x.tolist()


@wrong(F3)
def check_of_a_traced_value(x):
    return np.asarray_chkfinite(x)


@wrong(F3)
def format_of_a_traced_value(x):
    return f"{x[0]:.3f}"


@wrong(I3)
def shape_from_a_traced_value(i):
    return np.broadcast_to(i, (i[0], 3))


@wrong(F3, 2)
def slice_with_a_traced_bound(x, n):
    return x[:n]


# -- indexing


@wrong(F3)
def index_out_of_range(x):
    return x[3]


@wrong(F3)
def negative_index_out_of_range(x):
    return x[-4]


@wrong(F3)
def too_many_indices(x):
    return x[0, 0]


@wrong(F3)
def index_by_a_float(x):
    return x[1.0]


@wrong(F3)
def index_by_a_text(x):
    return x["a"]


@wrong(F3, B3)
def mask_of_a_traced_array(x, mask):
    return x[mask].reshape(2, -1)


@wrong(F3)
def mask_of_another_length(x):
    return x[np.array([True, False])]


@wrong(M)
def two_ellipses(x):
    return x[..., ...]


@wrong(F3)
def step_of_zero(x):
    return x[::0]


@wrong(F3)
def nonzero_of_a_traced_array(x):
    return np.stack(np.nonzero(x))


@wrong(F3)
def unique_of_a_traced_array(x):
    return np.sort(np.unique(x))


# -- in place


@wrong(READ_ONLY)
def update_of_a_read_only_argument(x):
    x += 1
    return x


@wrong(F4[:3], F4[1:])
def update_of_an_argument_that_overlaps_another(x, y):
    x[0] = y[1]
    return x


@wrong(M)
def update_of_an_argument_that_is_captured(x):
    x += M


@wrong(F3)
def update_that_changes_the_shape(x):
    y = x[:1].copy()
    y += x
    return y


@wrong(I3)
def update_that_changes_the_dtype(x):
    y = x.copy()
    y += 0.5
    return y


@wrong(F3)
def write_to_a_broadcast(x):
    v = np.broadcast_to(x + 1, (2, 3))
    v[0] = 5
    return v


@wrong(F3)
def write_to_windows(x):
    y = x + 1
    sliding_window_view(y, 2, writeable=True)[:] = 5
    return y


@wrong(F3)
def write_through_a_view_of_a_closure(x):
    y = x + 1

    def body(i, total):
        y[1:][0] = 5
        return total + y

    return tn.fori_loop(0, 3, body, x)


@wrong(F3)
def update_of_an_outer_array_in_a_branch(x):
    y = x + 1

    def then():
        nonlocal y
        y += 1
        return y

    return tn.cond(x[0] > 0, then, lambda: x)


@wrong(F3)
def result_into_a_numpy_array(x):
    out = F3 * 2
    out += x
    return out


@wrong(F3)
def value_into_a_numpy_array(x):
    out = F3 * 2
    out[0] = x[0]
    return out


# -- control flow


@wrong(F3)
def predicate_of_many_elements(x):
    return tn.cond(x > 0, lambda: x, lambda: -x)


@wrong(F3)
def branches_of_different_structure(x):
    return tn.cond(x[0] > 0, lambda: (x, x), lambda: x)


@wrong(F3)
def branches_of_different_shape(x):
    return tn.cond(x[0] > 0, lambda: x, lambda: x[:2])


@wrong(F3)
def branch_that_is_no_function(x):
    return tn.cond(x[0] > 0, x, lambda: x)


@wrong(F3)
def body_that_changes_the_dtype(x):
    return tn.while_loop(lambda s: s[0] < 3, lambda s: s.astype("f8"), x)


@wrong(F3)
def body_that_changes_the_structure(x):
    return tn.while_loop(lambda s: s[0] < 3, lambda s: (s, s), x)


@wrong(F3)
def loop_condition_of_many_elements(x):
    return tn.while_loop(lambda s: s < 3, lambda s: s + 1, x)


@wrong(F3)
def scan_body_without_a_pair(x):
    return tn.scan(lambda c, v: c + v, 0.0, x)


@wrong(F3, F4)
def scan_over_unequal_lengths(x, y):
    return tn.scan(lambda c, v: (c, v), 0.0, (x, y))


@wrong(F3)
def scan_without_a_length(x):
    return tn.scan(lambda c, v: (c, c), x)


@wrong(I3)
def switch_without_branches(i):
    return tn.switch(i[0], [])


@wrong(F3)
def leak_out_of_a_branch(x):
    kept = []

    def then():
        kept.append(x * 2)
        return x

    tn.cond(x[0] > 0, then, lambda: x)
    return kept[0]


@wrong(F3)
def call_host_with_a_wrong_type(x):
    return tn.call_host(lambda v: v, "f4", x)


@wrong(F3)
def hook_without_a_name(x):
    return tn.hook(x, print)


# -- functions that are missing, arguments that are wrong


@wrong(F3)
def function_that_is_missing(x):
    return np.shares_memory(x, x)


@wrong(F3)
def order_that_is_not_there(x):
    return x.reshape(3, 1, order="A!")


@wrong(F3, object())
def argument_that_is_no_array(x, y):
    return x


@wrong(np.array(["a", "b"]))
def argument_of_text(x):
    return x


@wrong(F3)
def result_that_is_no_array(x):
    return {"x": x, "s": {1, 2}}


@wrong(F3)
def random_numbers_while_tracing(x):
    return x + np.random.rand(3).astype("f4")


@wrong(F3)
def attribute_that_is_missing(x):
    return x.partition(1)
