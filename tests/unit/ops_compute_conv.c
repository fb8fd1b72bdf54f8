/* SPDX-License-Identifier: Apache-2.0
 * Convolutions, pools and resampling: small values worked out by hand, couplings, and what is
 * refused. Broad numerical comparison is the interop test's work. */
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/op_case.h"
#include "tensor/buf.h"

#define LINE "stored x 1x1x4 = 1 2 3 4\n"
#define IMAGE "stored x 1x1x3x3 = 1 2 3 4 5 6 7 8 9\n"

static const op_case convolutions[] = {
    {"one axis", LINE "stored w 1x1x2 = 1 10\ny = Conv(x, w)\noutput y", "y f32 1x1x3 = 21 32 43",
     "ab. cb. -> ac."},
    {"a bias, pads and strides",
     LINE "stored w 2x1x2 = 1 10 1 0\nstored b 2 = 0.5 -1\ny = Conv(x, w, b) pads=1,0, "
          "strides=2,\noutput y",
     "y f32 1x2x2 = 10.5 32.5 -1 1", "ab. cb. c -> ac."},
    {"dilations", LINE "stored w 1x1x2 = 1 10\ny = Conv(x, w) dilations=3,\noutput y",
     "y f32 1x1x1 = 41", NULL},
    {"two axes, auto_pad",
     IMAGE "stored w 1x1x2x2 = 1 0 0 10\ny = Conv(x, w) auto_pad=\"SAME_UPPER\"\noutput y",
     "y f32 1x1x3x3 = 51 62 3 84 95 6 7 8 9", "ab.. cb.. -> ac.."},
    {"two channels are added",
     "stored x 1x2x2 = 1 2 3 4\nstored w 1x2x1 = 1 10\ny = Conv(x, w)\noutput y",
     "y f32 1x1x2 = 31 42", NULL},
    {"depthwise: one label for all",
     "stored x 1x2x2 = 1 2 3 4\nstored w 2x1x1 = 1 10\nstored b 2 = 0 1\ny = Conv(x, w, b) "
     "group=2\noutput y",
     "y f32 1x2x2 = 1 2 31 41", "ab. b.. b -> ab."},
    {"depthwise with copies: maps",
     "stored x 1x2x1 = 1 2\nstored w 4x1x1 = 1 10 100 1000\nstored b 4 = 1 2 3 4\n"
     "y = Conv(x, w, b) group=2\noutput y",
     "y f32 1x4x1 = 2 12 203 2004",
     "aM. M.. M -> aM. | 0.1<0.1 = 0 0 1 1 | 0.1<1.0 = 0 1 2 3 | 0.1<2.0 = 0 1 2 3"},
    {"groups: the weight's input axis is described group by group",
     "stored x 1x4x1 = 1 2 3 4\nstored w 2x2x1 = 1 10 1 10\ny = Conv(x, w) group=2\noutput y",
     "y f32 1x2x1 = 21 43", "ab. c.. -> ac."},
    {"three axes",
     "stored x 1x1x2x2x2 = 1 2 3 4 5 6 7 8\nstored w 1x1x2x2x2 = 1 0 0 0 0 0 0 10\ny = Conv(x, "
     "w)\noutput y",
     "y f32 1x1x1x1x1 = 81", "ab... cb... -> ac..."},
};

static const op_case transposed[] = {
    {"spreads by the strides",
     "stored x 1x1x2 = 1 2\nstored w 1x1x2 = 1 10\ny = ConvTranspose(x, w) strides=2,\noutput y",
     "y f32 1x1x4 = 1 10 2 20", "ab. bc. -> ac."},
    {"overlaps add up, pads cut",
     "stored x 1x1x3 = 1 2 3\nstored w 1x1x2 = 1 10\nstored b 1 = 0.5\n"
     "y = ConvTranspose(x, w, b) pads=1,0,\noutput y",
     "y f32 1x1x3 = 12.5 23.5 30.5", "ab. bc. c -> ac."},
    {"output padding",
     "stored x 1x1x1 = 1\nstored w 1x1x2 = 1 10\ny = ConvTranspose(x, w) strides=3, "
     "output_padding=2,\noutput y",
     "y f32 1x1x4 = 1 10 0 0", NULL},
    {"depthwise",
     "stored x 1x2x1 = 1 2\nstored w 2x1x1 = 1 10\ny = ConvTranspose(x, w) group=2\noutput y",
     "y f32 1x2x1 = 1 20", "ab. b.. -> ab."},
    {"groups",
     "stored x 1x2x1 = 1 2\nstored w 2x2x1 = 1 10 100 1000\ny = ConvTranspose(x, w) "
     "group=2\noutput y",
     "y f32 1x4x1 = 1 10 200 2000", "ab. b.. -> ac."},
};

static const op_case pools[] = {
    {"the largest", IMAGE "y = MaxPool(x) kernel_shape=2,2\noutput y", "y f32 1x1x2x2 = 5 6 8 9",
     "ab.. -> ab.."},
    {"indices that are used freeze all",
     IMAGE "y, i = MaxPool(x) kernel_shape=2,2 strides=2,2 ceil_mode=1\noutput y\noutput i",
     "y f32 1x1x2x2 = 5 6 8 9\ni i64 1x1x2x2 = 4 5 7 8", ".... -> .... ...."},
    {"indices without a reader do not",
     IMAGE "y, i = MaxPool(x) kernel_shape=2,2 strides=2,2\noutput y", "y f32 1x1x1x1 = 5",
     "ab.. -> ab.. ...."},
    {"indices column by column",
     "stored x 1x1x2x3 = 1 2 3 4 5 6\ny, i = MaxPool(x) kernel_shape=1,1 storage_order=1\noutput i",
     "i i64 1x1x2x3 = 0 2 4 1 3 5", NULL},
    {"of integers", "stored x 1x1x3 i8 = -3 -5 -4\ny = MaxPool(x) kernel_shape=2,\noutput y",
     "y i8 1x1x2 = -3 -4", NULL},
    {"the mean of what is inside", LINE "y = AveragePool(x) kernel_shape=2, pads=1,1,\noutput y",
     "y f32 1x1x5 = 1 1.5 2.5 3.5 4", "ab. -> ab."},
    {"the mean with the padding",
     LINE "y = AveragePool(x) kernel_shape=2, pads=1,1, count_include_pad=1\noutput y",
     "y f32 1x1x5 = 0.5 1.5 2.5 3.5 2", NULL},
    {"a last window that starts past the input is dropped",
     LINE "y = MaxPool(x) kernel_shape=2, strides=3, pads=1,1, ceil_mode=1\noutput y",
     "y f32 1x1x2 = 1 4", NULL},
    {"a norm", "stored x 1x1x2 = 3 -4\ny = LpPool(x) kernel_shape=2,\noutput y", "y f32 1x1x1 = 5",
     "ab. -> ab."},
    {"the mean of all", IMAGE "y = GlobalAveragePool(x)\noutput y", "y f32 1x1x1x1 = 5",
     "abcd -> abef"},
    {"the largest of all", IMAGE "y = GlobalMaxPool(x)\noutput y", "y f32 1x1x1x1 = 9",
     "abcd -> abef"},
    {"the norm of all", "stored x 1x1x2 = 3 -4\ny = GlobalLpPool(x)\noutput y", "y f32 1x1x1 = 5",
     "abc -> abd"},
};

static const op_case resampled[] = {
    {"nearest",
     "stored x 1x1x2 = 1 2\nstored s 3 = 1 1 2\ny = Resize(x, _, s) "
     "coordinate_transformation_mode=\"asymmetric\" nearest_mode=\"floor\"\noutput y",
     "y f32 1x1x4 = 1 1 2 2", "ab. - . -> ab."},
    {"linear, half a pixel off",
     "stored x 1x1x2 = 1 2\nstored s 3 = 1 1 2\ny = Resize(x, _, s) mode=\"linear\"\noutput y",
     "y f32 1x1x4 = 1 1.25 1.75 2", NULL},
    {"linear between the corners, by sizes",
     "stored x 1x1x2 = 1 2\nstored n 3 i64 = 1 1 3\ny = Resize(x, _, _, n) mode=\"linear\" "
     "coordinate_transformation_mode=\"align_corners\"\noutput y",
     "y f32 1x1x3 = 1 1.5 2", "ab. - - . -> ab."},
    {"listed axes, the rest keep their labels",
     "stored x 2x3 = 1 2 3 4 5 6\nstored n 1 i64 = 1\n"
     "y = Resize(x, _, _, n) axes=1, mode=\"linear\"\noutput y",
     "y f32 2x1 = 2 5", "a. - - . -> a."},
    {"the ancestor by attribute",
     "opset 7\nstored x 1x1x2 = 1 2\ny = Upsample(x) scales=1.0,1.0,2.0\noutput y",
     "y f32 1x1x4 = 1 1 2 2", "ab. -> ab."},
    {"the ancestor by input",
     "opset 9\nstored x 1x1x2 = 1 2\nstored s 3 = 1 1 2\ny = Upsample(x, s) "
     "mode=\"linear\"\noutput y",
     "y f32 1x1x4 = 1 1.5 2 2", "ab. . -> ab."},
};

static const bad_case refused[] = {
    {"channels that do not fit", "input x 1x3x4x4\nstored w 8x2x3x3\ny = Conv(x, w)\noutput y",
     LAC_BAD_SHAPE, "3 channels"},
    {"a kernel larger than the image",
     "input x 1x3x2x2\nstored w 8x3x3x3\ny = Conv(x, w)\noutput y", LAC_BAD_SHAPE,
     "smaller than the window"},
    {"a bias of another length",
     "input x 1x3x4x4\nstored w 8x3x3x3\nstored b 7\ny = Conv(x, w, b)\noutput y", LAC_BAD_SHAPE,
     "[7]"},
    {"no groups", "input x 1x3x4x4\nstored w 8x3x3x3\ny = Conv(x, w) group=0\noutput y",
     LAC_BAD_SHAPE, "group is 0"},
    {"a stride of zero", "input x 1x3x4x4\nstored w 8x3x3x3\ny = Conv(x, w) strides=0,1\noutput y",
     LAC_BAD_SHAPE, "strides[0] is 0"},
    {"pads for another rank",
     "input x 1x3x4x4\nstored w 8x3x3x3\ny = Conv(x, w) pads=1,1\noutput y", LAC_BAD_SHAPE,
     "pads has 2 values"},
    {"a wrong kernel_shape",
     "input x 1x3x4x4\nstored w 8x3x3x3\ny = Conv(x, w) kernel_shape=3,2\noutput y", LAC_BAD_SHAPE,
     "kernel_shape[1] is 2"},
    {"an unknown auto_pad",
     "input x 1x3x4x4\nstored w 8x3x3x3\ny = Conv(x, w) auto_pad=\"MOST\"\noutput y", LAC_BAD_SHAPE,
     "'MOST'"},
    {"a grid for one image of two",
     "input x 2x1x2x2\nstored g 1x1x1x2\ny = GridSample(x, g)\noutput y", LAC_BAD_SHAPE,
     "1 grids for 2 images"},
    {"a pool without a kernel", "input x 1x3x4x4\ny = MaxPool(x)\noutput y", LAC_BAD_SHAPE,
     "kernel_shape is missing"},
    {"a weight that is missing", "input x 1x3x4x4\ny = Conv(x)\noutput y", LAC_BAD_FILE, "Conv"},
    {"a transposed weight of other channels",
     "input x 1x3x4\nstored w 2x3x3\ny = ConvTranspose(x, w)\noutput y", LAC_BAD_SHAPE, "wants 2"},
    {"scales for another rank", "input x 1x3x4\nstored s 2 = 1 2\ny = Resize(x, _, s)\noutput y",
     LAC_BAD_SHAPE, "for 3 axes"},
    {"a negative scale", "input x 1x4\nstored s 2 = 1 -2\ny = Resize(x, _, s)\noutput y",
     LAC_BAD_VALUE, "scale 1 is -2"},
};

static void convolution_adds_weighted_patches(void **state) {
  (void)state;
  check_cases(convolutions, sizeof convolutions / sizeof *convolutions);
}

static void transposed_convolution_spreads_patches(void **state) {
  (void)state;
  check_cases(transposed, sizeof transposed / sizeof *transposed);
}

static void pools_look_through_their_window_only(void **state) {
  (void)state;
  check_cases(pools, sizeof pools / sizeof *pools);
}

static void resampling_reads_the_nearest_or_between(void **state) {
  (void)state;
  check_cases(resampled, sizeof resampled / sizeof *resampled);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  check_refused(refused, sizeof refused / sizeof *refused);
}

/** The coupling of the last node; clear it and destroy the graph. */
static laci_graph *coupled(const char *net, laci_coupling *c) {
  lac_error err = {0};
  laci_graph *graph = NULL;
  if (net_read(net, &graph, &err)) fail_msg("%s", err.text);
  const laci_node *node = &graph->nodes[graph->n_nodes - 1];
  assert_int_equal(laci_couple_node(c, graph, node), LAC_OK);
  return graph;
}

static void check_parts(const laci_coupling *c, int port, int64_t n_parts) {
  for (size_t at = 0; at < c->n_parts; at++) {
    if (c->parts[at].port != port) continue;
    assert_int_equal(c->parts[at].axis, 1);
    assert_int_equal(c->parts[at].n_parts, n_parts);
    return;
  }
  fail_msg("port %d has no parts", port);
}

static void groups_cut_the_channels_of_both_sides(void **state) {
  (void)state;
  laci_coupling c;
  laci_graph *graph =
      coupled("input x 1x6x4x4\nstored w 9x2x3x3\ny = Conv(x, w) group=3\noutput y", &c);
  check_parts(&c, 0, 3);
  check_parts(&c, LACI_OUT(0), 3);
  assert_int_equal(c.n_grouped, 1);
  assert_int_equal(c.grouped[0].row_axis, 0);
  assert_int_equal(c.grouped[0].axis, 1);
  assert_int_equal(c.grouped[0].data_port, 0);
  laci_coupling_clear(&c);
  laci_graph_destroy(graph);
}

static void transposed_groups_belong_to_the_output(void **state) {
  (void)state;
  laci_coupling c;
  laci_graph *graph =
      coupled("input x 1x6x4x4\nstored w 6x2x3x3\ny = ConvTranspose(x, w) group=3\noutput y", &c);
  check_parts(&c, 0, 3);
  check_parts(&c, LACI_OUT(0), 3);
  assert_int_equal(c.n_grouped, 1);
  assert_int_equal(c.grouped[0].data_port, LACI_OUT(0));
  assert_int_equal(c.grouped[0].n_groups, 3);
  laci_coupling_clear(&c);
  laci_graph_destroy(graph);
}

/** Sizes that are known only when the network runs pass where the window keeps them, else they are
 *  new ones. */
static void symbols_pass_windows_that_keep_the_size(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph = NULL;
  const char *net =
      "input x -90x3x-99x8\nstored w 4x3x3x3\ny = Conv(x, w) pads=1,1,1,1\n"
      "z = MaxPool(y) kernel_shape=2,2 strides=2,2\noutput z";
  if (net_read(net, &graph, &err)) fail_msg("%s", err.text);
  const laci_shape *x = &graph->values[laci_graph_find_value(graph, "x")].type.shape;
  const laci_shape *y = &graph->values[laci_graph_find_value(graph, "y")].type.shape;
  const laci_shape *z = &graph->values[laci_graph_find_value(graph, "z")].type.shape;
  assert_int_equal(y->dims[0], x->dims[0]);
  assert_int_equal(y->dims[1], 4);
  assert_int_equal(y->dims[2], x->dims[2]);
  assert_int_equal(y->dims[3], 8);
  assert_true(z->dims[2] < 0 && z->dims[2] != x->dims[2]);
  assert_int_equal(z->dims[3], 4);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolution_adds_weighted_patches),
      cmocka_unit_test(transposed_convolution_spreads_patches),
      cmocka_unit_test(pools_look_through_their_window_only),
      cmocka_unit_test(resampling_reads_the_nearest_or_between),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(groups_cut_the_channels_of_both_sides),
      cmocka_unit_test(transposed_groups_belong_to_the_output),
      cmocka_unit_test(symbols_pass_windows_that_keep_the_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
