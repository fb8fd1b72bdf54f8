/* SPDX-License-Identifier: Apache-2.0
 * Operators that move places along an axis: Concat, Split, Slice, Gather, Pad, DepthToSpace and
 * similar ones. What each of them says about channel orders is a map, written out. */
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/op_case.h"
#include "tensor/buf.h"

#define X23 "stored x 2x3 = 1 2 3 4 5 6\n"

static const op_case concats[] = {
    {"along the last axis",
     "stored a 2x1 = 1 2\nstored b 2x2 = 3 4 5 6\ny = Concat(a, b) axis=-1\noutput y",
     "y f32 2x3 = 1 3 4 2 5 6", "aM aM -> aM | 0.1<0.1 = 0 -1 -1 | 0.1<1.1 = -1 0 1"},
    {"a tensor with itself", "stored a 1x2 = 1 2\ny = Concat(a, a) axis=0\noutput y",
     "y f32 2x2 = 1 2 1 2", "Ma Ma -> Ma | 0.0<0.0 = 0 -1 | 0.0<1.0 = -1 0"},
    {"of one", "stored a 2 i64 = 1 2\ny = Concat(a) axis=0\noutput y", "y i64 2 = 1 2", NULL},
    {"with an empty part", "stored a 0x2\nstored b 1x2 = 1 2\ny = Concat(a, b) axis=0\noutput y",
     "y f32 1x2 = 1 2", NULL},
};

static void concat_reads_each_place_from_one_part(void **state) {
  (void)state;
  check_cases(concats, sizeof concats / sizeof *concats);
}

static const op_case splits[] = {
    {"in equal parts", "stored x 1x4 = 1 2 3 4\ny, z = Split(x) axis=1\noutput y\noutput z",
     "y f32 1x2 = 1 2\nz f32 1x2 = 3 4", "aM -> aM aM | 0.1<0.1 = 0 1 | 1.1<0.1 = 2 3"},
    {"by attribute", "opset 11\n" X23 "y, z = Split(x) axis=1 split=1,2\noutput y\noutput z",
     "y f32 2x1 = 1 4\nz f32 2x2 = 2 3 5 6", "aM -> aM aM | 0.1<0.1 = 0 | 1.1<0.1 = 1 2"},
    {"by input, the first part unused",
     X23 "stored s 2 i64 = 1 2\n_, z = Split(x, s) axis=-1\noutput z", "z f32 2x2 = 2 3 5 6",
     "aM . -> - aM | 1.1<0.1 = 1 2"},
    {"into more parts than divide",
     "stored x 5 = 1 2 3 4 5\na, b, c = Split(x) num_outputs=3\noutput a\noutput c",
     "a f32 2 = 1 2\nc f32 1 = 5", "M -> M M M | 0.0<0.0 = 0 1 | 1.0<0.0 = 2 3 | 2.0<0.0 = 4"},
};

static void split_cuts_runs(void **state) {
  (void)state;
  check_cases(splits, sizeof splits / sizeof *splits);
}

static const op_case slices[] = {
    {"by attributes", "opset 9\n" X23 "y = Slice(x) starts=1, ends=3, axes=1,\noutput y",
     "y f32 2x2 = 2 3 5 6", "aM -> aM | 0.1<0.1 = 1 2"},
    {"by attributes without axes", "opset 9\n" X23 "y = Slice(x) starts=0,-1 ends=1,1000\noutput y",
     "y f32 1x1 = 3", "MM -> MM | 0.0<0.0 = 0 | 0.1<0.1 = 2"},
    {"with a negative step",
     X23 "stored s 1 i64 = -1\nstored e 1 i64 = -9\nstored a 1 i64 = 1\nstored t 1 i64 = -2\n"
         "y = Slice(x, s, e, a, t)\noutput y",
     "y f32 2x2 = 3 1 6 4", "aM . . . . -> aM | 0.1<0.1 = 2 0"},
    {"whole axes keep their order",
     X23
     "stored s 2 i64 = 0 1\nstored e 2 i64 = 9223372036854774784 2\ny = Slice(x, s, e)\noutput y",
     "y f32 2x1 = 2 5", "aM . . -> aM | 0.1<0.1 = 1"},
    {"steps without axes",
     X23 "stored s 2 i64 = 0 0\nstored e 2 i64 = 2 3\nstored t 2 i64 = 1 2\ny = Slice(x, s, e, _, "
         "t)\noutput y",
     "y f32 2x2 = 1 3 4 6", "aM . . - . -> aM | 0.1<0.1 = 0 2"},
    {"nothing", X23 "stored s 1 i64 = 2\nstored e 1 i64 = 1\ny = Slice(x, s, e)\noutput y",
     "y f32 0x3 =", NULL},
};

static void slice_reads_every_nth_place(void **state) {
  (void)state;
  check_cases(slices, sizeof slices / sizeof *slices);
}

static const op_case gathers[] = {
    {"constant indices are a map",
     X23 "stored i 4 i64 = 2 0 -1 1\ny = Gather(x, i) axis=1\noutput y",
     "y f32 2x4 = 3 1 3 2 6 4 6 5", "aM . -> aM | 0.1<0.1 = 2 0 2 1"},
    {"a scalar index leaves a place", X23 "stored i \"\" i64 = 1\ny = Gather(x, i)\noutput y",
     "y f32 3 = 4 5 6", "Ma s -> a | 0.*<0.0 = 1"},
    {"a list of indices in several axes is one, too",
     X23 "stored i 1x2 i32 = 1 0\ny = Gather(x, i)\noutput y", "y f32 1x2x3 = 4 5 6 1 2 3",
     "Ma .. -> bMa | 0.1<0.0 = 1 0"},
    {"so is a single index", X23 "stored i 1x1 i32 = 2\ny = Gather(x, i) axis=1\noutput y",
     "y f32 2x1x1 = 3 6", "aM .. -> abM | 0.2<0.1 = 2"},
    {"indices in two axes freeze the axis",
     X23 "stored i 2x2 i32 = 1 0 0 1\ny = Gather(x, i)\noutput y",
     "y f32 2x2x3 = 4 5 6 1 2 3 1 2 3 4 5 6", ".a .. -> ..a"},
    {"computed indices freeze the axis",
     X23 "stored i 2 = 1 0\nstored n 1 i64 = 1\nm, k = TopK(i, n)\n"
         "y = Gather(x, k)\noutput y",
     "y f32 1x3 = 1 2 3", ".a . -> .a"},
    {"elements", X23 "stored i 2x2 i64 = 0 -1 1 1\ny = GatherElements(x, i) axis=1\noutput y",
     "y f32 2x2 = 1 3 5 5", ".. .. -> .."},
    {"elements along axis 0", X23 "stored i 1x2 i64 = 1 0\ny = GatherElements(x, i)\noutput y",
     "y f32 1x2 = 4 2", NULL},
    {"tuples", X23 "stored i 2x2 i64 = 0 1 1 -1\ny = GatherND(x, i)\noutput y", "y f32 2 = 2 6",
     ".. .. -> ."},
    {"tuples within a batch",
     X23 "stored i 2x1 i64 = 2 0\ny = GatherND(x, i) batch_dims=1\noutput y", "y f32 2 = 3 4",
     NULL},
    {"tuples that name rows", X23 "stored i 1x1 i64 = 1\ny = GatherND(x, i)\noutput y",
     "y f32 1x3 = 4 5 6", NULL},
};

static void gather_follows_its_indices(void **state) {
  (void)state;
  check_cases(gathers, sizeof gathers / sizeof *gathers);
}

static const op_case scatters[] = {
    {"elements",
     X23 "stored i 1x2 i64 = 1 0\nstored u 1x2 = 10 20\ny = ScatterElements(x, i, u)\noutput y",
     "y f32 2x3 = 1 20 3 10 5 6", ".. .. .. -> .."},
    {"elements added along axis 1",
     X23 "stored i 2x1 i64 = 0 -1\nstored u 2x1 = 10 20\n"
         "y = ScatterElements(x, i, u) axis=1 reduction=\"add\"\noutput y",
     "y f32 2x3 = 11 2 3 4 5 26", NULL},
    {"rows", X23 "stored i 1x1 i64 = 1\nstored u 1x3 = 7 8 9\ny = ScatterND(x, i, u)\noutput y",
     "y f32 2x3 = 1 2 3 7 8 9", NULL},
    {"the larger one",
     X23 "stored i 2x2 i64 = 0 0 1 1\nstored u 2 = 9 -9\ny = ScatterND(x, i, u) "
         "reduction=\"max\"\noutput y",
     "y f32 2x3 = 9 2 3 4 5 6", NULL},
};

static void scatter_writes_where_indices_say(void **state) {
  (void)state;
  check_cases(scatters, sizeof scatters / sizeof *scatters);
}

#define V3 "stored x 1x3 = 1 2 3\n"

static const op_case pads[] = {
    {"zeros, by attribute", "opset 10\n" V3 "y = Pad(x) pads=0,1,0,1\noutput y",
     "y f32 1x5 = 0 1 2 3 0", "aM -> aM | 0.1<0.1 = -1 0 1 2 -1"},
    {"a constant, by input",
     V3 "stored p 4 i64 = 1 0 0 0\nstored c \"\" = 9\ny = Pad(x, p, c)\noutput y",
     "y f32 2x3 = 9 9 9 1 2 3", "Ma . s -> Ma | 0.0<0.0 = -1 0"},
    {"axes of its own",
     V3 "stored p 2 i64 = 0 1\nstored a 1 i64 = -1\ny = Pad(x, p, _, a)\noutput y",
     "y f32 1x4 = 1 2 3 0", "aM . - . -> aM | 0.1<0.1 = 0 1 2 -1"},
    {"cropped", V3 "stored p 4 i64 = 0 -1 0 1\ny = Pad(x, p)\noutput y", "y f32 1x3 = 2 3 0",
     "aM . -> aM | 0.1<0.1 = 1 2 -1"},
    {"reflected", V3 "stored p 4 i64 = 0 2 0 1\ny = Pad(x, p) mode=\"reflect\"\noutput y",
     "y f32 1x6 = 3 2 1 2 3 2", "a. . -> a."},
    {"the edge", V3 "stored p 4 i64 = 0 2 0 1\ny = Pad(x, p) mode=\"edge\"\noutput y",
     "y f32 1x6 = 1 1 1 2 3 3", "a. . -> a."},
    {"wrapped round", V3 "stored p 4 i64 = 0 2 0 1\ny = Pad(x, p) mode=\"wrap\"\noutput y",
     "y f32 1x6 = 2 3 1 2 3 1", NULL},
    {"integers", "stored x 1 i8 = 5\nstored p 2 i64 = 1 1\ny = Pad(x, p)\noutput y",
     "y i8 3 = 0 5 0", NULL},
};

static void pad_fills_or_repeats(void **state) {
  (void)state;
  check_cases(pads, sizeof pads / sizeof *pads);
}

static const op_case blocks[] = {
    {"depth to space",
     "stored x 1x4x1x2 = 1 2 3 4 5 6 7 8\ny = DepthToSpace(x) blocksize=2\noutput y",
     "y f32 1x1x2x4 = 1 3 2 4 5 7 6 8",
     "aM.. -> aM.. | 0.1<0.1 = 0 | 0.1<0.1 = 1 | 0.1<0.1 = 2 | 0.1<0.1 = 3"},
    {"two channels, block first",
     "stored x 1x8x1x1 = 0 1 2 3 4 5 6 7\ny = DepthToSpace(x) blocksize=2 mode=\"DCR\"\noutput y",
     "y f32 1x2x2x2 = 0 2 4 6 1 3 5 7",
     "aM.. -> aM.. | 0.1<0.1 = 0 1 | 0.1<0.1 = 2 3 | 0.1<0.1 = 4 5 | 0.1<0.1 = 6 7"},
    {"two channels, channel first",
     "stored x 1x8x1x1 = 0 1 2 3 4 5 6 7\ny = DepthToSpace(x) blocksize=2 mode=\"CRD\"\noutput y",
     "y f32 1x2x2x2 = 0 1 2 3 4 5 6 7",
     "aM.. -> aM.. | 0.1<0.1 = 0 4 | 0.1<0.1 = 1 5 | 0.1<0.1 = 2 6 | 0.1<0.1 = 3 7"},
    {"space to depth",
     "stored x 1x2x2x2 = 0 1 2 3 4 5 6 7\ny = SpaceToDepth(x) blocksize=2\noutput y",
     "y f32 1x8x1x1 = 0 4 1 5 2 6 3 7", "aM.. -> aM.. | 0.1<0.1 = 0 1 0 1 0 1 0 1"},
    {"and back",
     "stored x 1x1x2x4 = 1 3 2 4 5 7 6 8\nz = SpaceToDepth(x) blocksize=2\ny = DepthToSpace(z) "
     "blocksize=2\noutput y",
     "y f32 1x1x2x4 = 1 3 2 4 5 7 6 8", NULL},
};

static void blocks_become_channels(void **state) {
  (void)state;
  check_cases(blocks, sizeof blocks / sizeof *blocks);
}

static const op_case choices[] = {
    {"broadcast",
     "stored c 2x1 bool = 1 0\n" X23 "stored z 3 = 7 8 9\ny = Where(c, x, z)\noutput y",
     "y f32 2x3 = 1 2 3 7 8 9", "ab ac c -> ac"},
    {"integers",
     "stored c \"\" bool = 0\nstored a 2 i64 = 1 2\nstored b 2 i64 = 3 4\ny = Where(c, a, "
     "b)\noutput y",
     "y i64 2 = 3 4", "s a a -> a"},
};

static void where_chooses_element_by_element(void **state) {
  (void)state;
  check_cases(choices, sizeof choices / sizeof *choices);
}

static const bad_case refused[] = {
    {"parts of other sizes", "stored a 2x1\nstored b 3x2\ny = Concat(a, b) axis=1\noutput y",
     LAC_BAD_SHAPE, "does not fit"},
    {"parts of other types", "stored a 2\nstored b 2 i64\ny = Concat(a, b) axis=0\noutput y",
     LAC_BAD_FILE, "input 1 is i64, the ones before are f32"},
    {"split sizes that do not add up",
     X23 "stored s 2 i64 = 1 1\ny, z = Split(x, s) axis=1\noutput y", LAC_BAD_SHAPE,
     "2 together, the axis 3"},
    {"split sizes of another number",
     X23 "stored s 3 i64 = 1 1 1\ny, z = Split(x, s) axis=1\noutput y", LAC_BAD_SHAPE,
     "3 sizes for 2 outputs"},
    {"a step of 0",
     X23 "stored s 1 i64 = 0\nstored t 1 i64 = 0\ny = Slice(x, s, s, s, t)\noutput y",
     LAC_BAD_SHAPE, "step of 0"},
    {"an axis outside", X23 "stored i 1 i64 = 0\ny = Gather(x, i) axis=2\noutput y", LAC_BAD_SHAPE,
     "axis 2"},
    {"pads of another number", X23 "stored p 2 i64 = 0 0\ny = Pad(x, p)\noutput y", LAC_BAD_SHAPE,
     "2 pads for 2 axes"},
    {"pads that crop too much", X23 "stored p 4 i64 = 0 -2 0 -2\ny = Pad(x, p)\noutput y",
     LAC_BAD_SHAPE, "pads -2 and -2"},
    {"blocks that do not divide", "stored x 1x3x2x2\ny = DepthToSpace(x) blocksize=2\noutput y",
     LAC_BAD_SHAPE, "blocks of 2"},
    {"an input that is missing", "stored x 2\ny = Gather(x)\noutput y", LAC_BAD_FILE,
     "input 1 is missing"},
};

static void places_that_do_not_fit_are_refused(void **state) {
  (void)state;
  check_refused(refused, sizeof refused / sizeof *refused);
}

static void an_index_outside_fails_when_it_runs(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph = NULL;
  laci_stepper *run = NULL;
  assert_int_equal(net_read(X23 "stored i 1 i64 = 2\ny = Gather(x, i)\noutput y", &graph, &err),
                   LAC_OK);
  assert_int_equal(walk_open(graph, NULL, &run, &err), LAC_OK);
  assert_int_equal(walk_all(run, graph, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text, "Gather_0 (Gather): index 2 into an axis of size 2");
  laci_stepper_destroy(run);
  char text[256];
  coupling_text(graph, &graph->nodes[0], text,
                sizeof text); /* nothing is said about such an axis */
  assert_string_equal(text, ".a . -> .a");
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(concat_reads_each_place_from_one_part),
      cmocka_unit_test(split_cuts_runs),
      cmocka_unit_test(slice_reads_every_nth_place),
      cmocka_unit_test(gather_follows_its_indices),
      cmocka_unit_test(scatter_writes_where_indices_say),
      cmocka_unit_test(pad_fills_or_repeats),
      cmocka_unit_test(blocks_become_channels),
      cmocka_unit_test(where_chooses_element_by_element),
      cmocka_unit_test(places_that_do_not_fit_are_refused),
      cmocka_unit_test(an_index_outside_fails_when_it_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
