/* SPDX-License-Identifier: Apache-2.0
 * Operators that put elements under other axes: Reshape, Flatten, Squeeze, Unsqueeze, Transpose,
 * Expand, Tile; and those that only look at shapes. */
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/op_case.h"
#include "tensor/buf.h"

static const op_case reshapes[] = {
    {"to fixed sizes",
     "stored x 2x3 = 1 2 3 4 5 6\nstored s 2 i64 = 3 2\ny = Reshape(x, s)\noutput y",
     "y f32 3x2 = 1 2 3 4 5 6", "reshape .. . -> .."},
    {"0 copies and -1 is what is left",
     "stored x 2x3x4\nstored s 2 i64 = 0 -1\nz = Reshape(x, s)\ny = Shape(z)\noutput y",
     "y i64 2 = 2 12", NULL},
    {"allowzero takes 0 as it is",
     "stored x 0x3\nstored s 2 i64 = 5 0\ny = Reshape(x, s) allowzero=1\noutput y",
     "y f32 5x0 =", "reshape .. . -> .."},
    {"to a scalar", "stored x 1x1 = 7\nstored s 0 i64\ny = Reshape(x, s)\noutput y", "y f32 s = 7",
     NULL},
};

static void reshapes_keep_row_major_order(void **state) {
  (void)state;
  check_cases(reshapes, sizeof reshapes / sizeof *reshapes);
}

static const op_case flattens[] = {
    {"from the default axis", "stored x 2x1x2 = 1 2 3 4\ny = Flatten(x)\noutput y",
     "y f32 2x2 = 1 2 3 4", "reshape ... -> .."},
    {"at axis 0", "stored x 2x2 = 1 2 3 4\ny = Flatten(x) axis=0\noutput y", "y f32 1x4 = 1 2 3 4",
     "reshape .. -> .."},
    {"at a negative axis", "stored x 2x2x1 = 1 2 3 4\ny = Flatten(x) axis=-1\noutput y",
     "y f32 4x1 = 1 2 3 4", "reshape ... -> .."},
    {"a vector of all axes", "stored x 2x2 = 1 2 3 4\ny = Flatten(x) axis=2\noutput y",
     "y f32 4x1 = 1 2 3 4", NULL},
};

static void flatten_makes_two_axes(void **state) {
  (void)state;
  check_cases(flattens, sizeof flattens / sizeof *flattens);
}

static const op_case squeezes[] = {
    {"axes as attribute", "opset 11\nstored x 1x2x1 = 1 2\ny = Squeeze(x) axes=0,\noutput y",
     "y f32 2x1 = 1 2", "abc -> bc"},
    {"axes as input", "stored x 1x2x1 = 1 2\nstored a 1 i64 = -1\ny = Squeeze(x, a)\noutput y",
     "y f32 1x2 = 1 2", "abc . -> ab"},
    {"all of size 1", "stored x 1x2x1 = 1 2\ny = Squeeze(x)\noutput y", "y f32 2 = 1 2",
     "abc -> b"},
    {"unsqueeze by attribute", "opset 11\nstored x 2 = 1 2\ny = Unsqueeze(x) axes=0,2\noutput y",
     "y f32 1x2x1 = 1 2", "a -> bac"},
    {"unsqueeze by negative input",
     "stored x 2 = 1 2\nstored a 1 i64 = -1\ny = Unsqueeze(x, a)\noutput y", "y f32 2x1 = 1 2",
     "a . -> ab"},
    {"unsqueeze of a scalar",
     "stored x \"\" i64 = 9\nstored a 1 i64 = 0\ny = Unsqueeze(x, a)\noutput y", "y i64 1 = 9",
     "s . -> a"},
};

static void squeeze_and_unsqueeze_keep_the_other_axes(void **state) {
  (void)state;
  check_cases(squeezes, sizeof squeezes / sizeof *squeezes);
}

static const op_case transposes[] = {
    {"reversed by default", "stored x 2x3 = 1 2 3 4 5 6\ny = Transpose(x)\noutput y",
     "y f32 3x2 = 1 4 2 5 3 6", "ab -> ba"},
    {"by perm", "stored x 1x2x3 = 1 2 3 4 5 6\ny = Transpose(x) perm=0,2,1\noutput y",
     "y f32 1x3x2 = 1 4 2 5 3 6", "abc -> acb"},
    {"of integers", "stored x 2x2x2 i8 = 1 2 3 4 5 6 7 8\ny = Transpose(x) perm=2,0,1\noutput y",
     "y i8 2x2x2 = 1 3 5 7 2 4 6 8", "abc -> cab"},
};

static void transpose_moves_axes(void **state) {
  (void)state;
  check_cases(transposes, sizeof transposes / sizeof *transposes);
}

static const op_case spreads[] = {
    {"expand grows size 1", "stored x 2x1 = 1 2\nstored s 2 i64 = 1 3\ny = Expand(x, s)\noutput y",
     "y f32 2x3 = 1 1 1 2 2 2", "ab . -> ac"},
    {"expand puts axes first", "stored x 2 = 1 2\nstored s 2 i64 = 2 1\ny = Expand(x, s)\noutput y",
     "y f32 2x2 = 1 2 1 2", "a . -> ba"},
    {"tile repeats places", "stored x 1x2 = 1 2\nstored r 2 i64 = 1 2\ny = Tile(x, r)\noutput y",
     "y f32 1x4 = 1 2 1 2", "aM . -> aM | 0.1<0.1 = 0 1 0 1"},
    {"tile along two axes", "stored x 2x1 = 1 2\nstored r 2 i64 = 2 2\ny = Tile(x, r)\noutput y",
     "y f32 4x2 = 1 1 2 2 1 1 2 2", "MM . -> MM | 0.0<0.0 = 0 1 0 1 | 0.1<0.1 = 0 0"},
    {"tile zero times", "stored x 2 = 1 2\nstored r 1 i64 = 0\ny = Tile(x, r)\noutput y",
     "y f32 0 =", NULL},
};

static void expand_is_uniform_and_tile_repeats(void **state) {
  (void)state;
  check_cases(spreads, sizeof spreads / sizeof *spreads);
}

static const op_case sizes[] = {
    {"the shape is integers; any order is welcome", "stored x 2x3x4\ny = Shape(x)\noutput y",
     "y i64 3 = 2 3 4", "abc -> ."},
    {"a part of the shape", "stored x 2x3x4\ny = Shape(x) start=1 end=-1\noutput y", "y i64 1 = 3",
     "abc -> ."},
    {"start after end", "stored x 2x3\ny = Shape(x) start=2 end=1\noutput y", "y i64 0 =", NULL},
    {"size", "stored x 2x3x4\ny = Size(x)\noutput y", "y i64 s = 24", "abc -> s"},
    {"constant of shape is uniform", "stored s 2 i64 = 2 1\ny = ConstantOfShape(s)\noutput y",
     "y f32 2x1 = 0 0", ". -> ab"},
    {"eye like", "stored x 2x3\ny = EyeLike(x) k=1 dtype=7\noutput y", "y i64 2x3 = 0 1 0 0 0 1",
     "ab -> .."},
    {"range of integers",
     "stored a \"\" i64 = 3\nstored b \"\" i64 = 9\nstored c \"\" i64 = 4\ny = Range(a, b, "
     "c)\noutput y",
     "y i64 2 = 3 7", "s s s -> ."},
    {"range downwards",
     "stored a \"\" = 1\nstored b \"\" = 0\nstored c \"\" = -0.5\ny = Range(a, b, c)\noutput y",
     "y f32 2 = 1 0.5", NULL},
    {"range of nothing",
     "stored a \"\" i64 = 3\nstored b \"\" i64 = 3\nstored c \"\" i64 = 1\ny = Range(a, b, "
     "c)\noutput y",
     "y i64 0 =", NULL},
};

static void shapes_are_read_without_contents(void **state) {
  (void)state;
  check_cases(sizes, sizeof sizes / sizeof *sizes);
}

static void constant_of_shape_takes_its_value(void **state) {
  (void)state;
  laci_graph *graph = NULL;
  laci_buf *fill = NULL;
  lac_error err = {0};
  char text[256] = "";
  int64_t sizes_in[2] = {2, 2};
  int id;
  laci_shape one = laci_shape_of(1, (int64_t[]){1});
  assert_int_equal(laci_graph_create(&graph, &err), LAC_OK);
  assert_int_equal(laci_buf_create(LAC_DTYPE_I32, &one, &fill, &err), LAC_OK);
  fill->i[0] = 5;
  laci_stored s = {.name = "s",
                   .dtype = LAC_DTYPE_I64,
                   .shape = laci_shape_of(1, (int64_t[]){2}),
                   .bytes = (const uint8_t *)sizes_in,
                   .size_bytes = sizeof sizes_in};
  assert_int_equal(laci_graph_add_stored(graph, &s, &id, &err), LAC_OK);
  int in = laci_graph_intern_value(graph, "s"), out = laci_graph_intern_value(graph, "y");
  laci_attr attr = {.name = "value", .kind = LACI_ATTR_TENSOR, .tensor = fill};
  laci_node node = {.type = "ConstantOfShape",
                    .domain = "",
                    .version = 9,
                    .n_inputs = 1,
                    .n_outputs = 1,
                    .inputs = &in,
                    .outputs = &out,
                    .n_attrs = 1,
                    .attrs = &attr};
  assert_int_equal(laci_graph_add_node(graph, &node, &id, &err), LAC_OK);
  assert_int_equal(laci_graph_add_output(graph, "y", &err), LAC_OK);
  assert_int_equal(laci_graph_finish(graph, &err), LAC_OK);
  assert_int_equal(laci_graph_infer(graph, NULL, 0, &err), LAC_OK);
  run_text(graph, 1, "value", text, sizeof text);
  assert_string_equal(text, "y i32 2x2 = 5 5 5 5");
  laci_graph_destroy(graph);
}

static const bad_case refused[] = {
    {"elements that do not fit", "stored x 2x3\nstored s 2 i64 = 4 2\ny = Reshape(x, s)\noutput y",
     LAC_BAD_SHAPE, "Reshape_0 (Reshape): [2, 3] cannot become [4, 2]"},
    {"-1 that does not divide", "stored x 2x3\nstored s 2 i64 = 4 -1\ny = Reshape(x, s)\noutput y",
     LAC_BAD_SHAPE, "rows of 4"},
    {"two -1", "stored x 2x3\nstored s 2 i64 = -1 -1\ny = Reshape(x, s)\noutput y", LAC_BAD_SHAPE,
     "size -1 of axis 1"},
    {"a squeezed axis of size 2", "stored x 2x3\nstored a 1 i64 = 0\ny = Squeeze(x, a)\noutput y",
     LAC_BAD_SHAPE, "size 2"},
    {"an axis outside", "stored x 2x3\nstored a 1 i64 = 5\ny = Squeeze(x, a)\noutput y",
     LAC_BAD_SHAPE, "axis 5 of a tensor of 2 axes"},
    {"perm that names an axis twice", "stored x 2x3\ny = Transpose(x) perm=0,0\noutput y",
     LAC_BAD_SHAPE, "twice"},
    {"perm of another rank", "stored x 2x3\ny = Transpose(x) perm=0,1,2\noutput y", LAC_BAD_SHAPE,
     "3 entries"},
    {"expand of another size", "stored x 2x3\nstored s 2 i64 = 2 4\ny = Expand(x, s)\noutput y",
     LAC_BAD_SHAPE, "cannot be broadcast"},
    {"repeats of another number", "stored x 2x3\nstored r 1 i64 = 2\ny = Tile(x, r)\noutput y",
     LAC_BAD_SHAPE, "1 repeats"},
    {"a range without end",
     "stored a \"\" i64 = 3\nstored b \"\" i64 = 9\nstored c \"\" i64 = 0\ny = Range(a, b, "
     "c)\noutput y",
     LAC_BAD_SHAPE, "no range"},
};

static void shapes_that_do_not_fit_are_refused(void **state) {
  (void)state;
  check_refused(refused, sizeof refused / sizeof *refused);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reshapes_keep_row_major_order),
      cmocka_unit_test(flatten_makes_two_axes),
      cmocka_unit_test(squeeze_and_unsqueeze_keep_the_other_axes),
      cmocka_unit_test(transpose_moves_axes),
      cmocka_unit_test(expand_is_uniform_and_tile_repeats),
      cmocka_unit_test(shapes_are_read_without_contents),
      cmocka_unit_test(constant_of_shape_takes_its_value),
      cmocka_unit_test(shapes_that_do_not_fit_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
