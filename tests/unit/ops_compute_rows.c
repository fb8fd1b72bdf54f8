/* SPDX-License-Identifier: Apache-2.0
 * Operators over axes, lines and single elements: reductions, softmaxes, normalizations,
 * arithmetic. Values by hand, couplings as they should read ("~": order does not matter only if the
 * whole axis is taken). */
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/op_case.h"
#include "tensor/buf.h"

#define X23 "stored x 2x3 = 1 2 3 4 5 6\n"

static const op_case reductions[] = {
    {"axes by attribute", "opset 11\n" X23 "y = ReduceSum(x) axes=1,\noutput y", "y f32 2x1 = 6 15",
     "ab -> ac"},
    {"axes by input, dropped", X23 "stored a 1 i64 = -1\ny = ReduceMean(x, a) keepdims=0\noutput y",
     "y f32 2 = 2 5", "ab . -> a"},
    {"all axes", X23 "y = ReduceMax(x)\noutput y", "y f32 1x1 = 6", "ab -> cd"},
    {"no axes on request", X23 "y = ReduceMin(x) noop_with_empty_axes=1\noutput y",
     "y f32 2x3 = 1 2 3 4 5 6", "ab -> ab"},
    {"products of integers", "stored x 3 i64 = 2 -3 4\ny = ReduceProd(x) keepdims=0\noutput y",
     "y i64 s = -24", NULL},
    {"norms",
     "stored x 2 = 3 -4\ny = ReduceL1(x) keepdims=0\nz = ReduceL2(x)\nq = ReduceSumSquare(x)\n"
     "output y\noutput z\noutput q",
     "y f32 s = 7\nz f32 1 = 5\nq f32 1 = 25", NULL},
    {"logarithms do not overflow", "stored x 2 = 1000 1000\ny = ReduceLogSumExp(x)\noutput y",
     "y f32 1 = 1000.69", NULL},
    {"not neighbouring axes",
     "stored x 2x2x2 = 1 2 3 4 5 6 7 8\nstored a 2 i64 = 0 2\ny = ReduceSum(x, a)\noutput y",
     "y f32 1x2x1 = 14 22", "abc . -> dbe"},
};

static const op_case lines[] = {
    {"softmax of one axis", "stored x 1x2 = 0 0\ny = Softmax(x)\noutput y", "y f32 1x2 = 0.5 0.5",
     "ab~ -> ab~"},
    {"softmax of old takes all axes from 1 on",
     "opset 11\nstored x 1x2x2 = 0 0 0 0\ny = Softmax(x)\noutput y",
     "y f32 1x2x2 = 0.25 0.25 0.25 0.25", "ab~c~ -> ab~c~"},
    {"large numbers", "stored x 2 = 1000 -1000\ny = LogSoftmax(x) axis=0\noutput y",
     "y f32 2 = 0 -2000", "a~ -> a~"},
    {"the first of equals wins", "stored x 1x3 = 1 2 2\ny = Hardmax(x)\noutput y",
     "y f32 1x3 = 0 1 0", "a. -> a."},
    {"unit length", "stored x 2x2 = 3 4 0 0\ny = LpNormalization(x)\noutput y",
     "y f32 2x2 = 0.6 0.8 0 0", "ab~ -> ab~"},
    {"neighbouring channels",
     "stored x 1x3x1 = 1 2 3\ny = LRN(x) size=3 alpha=3.0 beta=1.0 bias=1.0\noutput y",
     "y f32 1x3x1 = 0.166667 0.133333 0.214286", "a.b -> a.b"},
};

static const op_case normalizations[] = {
    {"running statistics",
     "stored x 1x2x1 = 3 5\nstored s 2 = 1 10\nstored b 2 = 0 1\nstored m 2 = 1 1\nstored v 2 = 4 "
     "16\n"
     "y = BatchNormalization(x, s, b, m, v) epsilon=0.0\noutput y",
     "y f32 1x2x1 = 1 11", "abc b b b b -> abc"},
    {"the batch's own",
     "stored x 2x1 = 1 3\nstored s 1 = 1\nstored b 1 = 0\nstored m 1 = 0\nstored v 1 = 0\n"
     "y, p, q = BatchNormalization(x, s, b, m, v) epsilon=0.0 training_mode=1 momentum=0.5\n"
     "output y\noutput p\noutput q",
     "y f32 2x1 = -1 1\np f32 1 = 1\nq f32 1 = 0.5", "a~b b b b b -> a~b b b"},
    {"one image, one channel",
     "stored x 1x2x2 = 1 3 10 30\nstored s 2 = 1 1\nstored b 2 = 0 5\n"
     "y = InstanceNormalization(x, s, b) epsilon=0.0\noutput y",
     "y f32 1x2x2 = -1 1 4 6", "abc~ b b -> abc~"},
    {"groups with parameters a channel",
     "stored x 1x2x1 = 1 3\nstored s 2 = 1 10\nstored b 2 = 0 0\n"
     "y = GroupNormalization(x, s, b) num_groups=1 epsilon=0.0\noutput y",
     "y f32 1x2x1 = -1 10", "ab~c~ b~ b~ -> ab~c~"},
    {"groups with parameters a group",
     "opset 18\nstored x 1x2x2 = 1 3 1 3\nstored s 2 = 1 10\nstored b 2 = 0 0\n"
     "y = GroupNormalization(x, s, b) num_groups=2 epsilon=0.0\noutput y",
     "y f32 1x2x2 = -1 1 -10 10", "ab~c~ . . -> ab~c~"},
    {"layers, with statistics",
     "stored x 1x2 = 1 3\nstored s 2 = 1 10\nstored b 2 = 0 1\n"
     "y, m, i = LayerNormalization(x, s, b) epsilon=0.0\noutput y\noutput m\noutput i",
     "y f32 1x2 = -1 11\nm f32 1x1 = 2\ni f32 1x1 = 1", "ab~ b~ b~ -> ab~ ac ad"},
};

static const op_case arithmetic[] = {
    {"broadcast", X23 "stored b 2x1 = 10 20\ny = Add(x, b)\noutput y",
     "y f32 2x3 = 11 12 13 24 25 26", "ab ac -> ab"},
    {"integers are cut towards zero",
     "stored a 4 i64 = -7 7 -7 7\nstored b 4 i64 = 2 -2 0 -1\ny = Div(a, b)\noutput y",
     "y i64 4 = -3 -3 0 -7", "a a -> a"},
    {"the least integer by minus one",
     "stored a 1 i64 = -9223372036854775808\nstored b 1 i64 = -1\ny = Div(a, b)\nz = Mod(a, b)\n"
     "output z",
     "z i64 1 = 0", NULL},
    {"remainders",
     "stored a 4 i64 = -7 7 -7 7\nstored b 4 i64 = 3 -3 -3 3\ny = Mod(a, b)\n"
     "z = Mod(a, b) fmod=1\noutput y\noutput z",
     "y i64 4 = 2 -2 -1 1\nz i64 4 = -1 1 -1 1", NULL},
    {"integers wrap", "stored a 1 i8 = 100\ny = Add(a, a)\noutput y", "y i8 1 = -56", NULL},
    {"powers of another type", "stored a 3 = 1 2 3\nstored b \"\" i64 = 2\ny = Pow(a, b)\noutput y",
     "y f32 3 = 1 4 9", "a s -> a"},
    {"bounds by input", "stored x 3 = -5 0 5\nstored l \"\" = -1\ny = Clip(x, l)\noutput y",
     "y f32 3 = -1 0 5", "a s -> a"},
    {"bounds by attribute", "opset 6\nstored x 3 = -5 0 5\ny = Clip(x) max=1.0\noutput y",
     "y f32 3 = -5 0 1", "a -> a"},
    {"slopes follow the channels",
     "stored x 1x2x1 = -1 -2\nstored s 2x1 = 0.5 0.25\ny = PRelu(x, s)\noutput y",
     "y f32 1x2x1 = -0.5 -0.5", "abc bc -> abc"},
    {"means", "stored a 2 = 1 2\nstored b 1 = 3\ny = Mean(a, b, a)\noutput y",
     "y f32 2 = 1.66667 2.33333", "a b a -> a"},
    {"shifts",
     "stored a 2 u8 = 1 255\nstored b 2 u8 = 3 1\ny = BitShift(a, b) direction=\"LEFT\"\noutput y",
     "y u8 2 = 8 254", NULL},
    {"comparisons", X23 "stored b 3 = 2 2 9\ny = Greater(x, b)\noutput y",
     "y bool 2x3 = 0 0 0 1 1 0", "ab b -> ab"},
};

static void reductions_drop_their_axes(void **state) {
  (void)state;
  check_cases(reductions, sizeof reductions / sizeof *reductions);
}

static void lines_are_normalized_as_a_whole(void **state) {
  (void)state;
  check_cases(lines, sizeof lines / sizeof *lines);
}

static void parameters_follow_the_channels(void **state) {
  (void)state;
  check_cases(normalizations, sizeof normalizations / sizeof *normalizations);
}

static void elements_meet_after_broadcasting(void **state) {
  (void)state;
  check_cases(arithmetic, sizeof arithmetic / sizeof *arithmetic);
}

static const bad_case refused[] = {
    {"a scalar label",
     "input x 2x3x4\nstored l \"\" i64 = 0\ny = NegativeLogLikelihoodLoss(x, l)\noutput y",
     LAC_BAD_SHAPE, "labels"},
    {"a scalar label of logits",
     "input x 2x3\nstored l \"\" i64 = 0\ny = SoftmaxCrossEntropyLoss(x, l)\noutput y",
     LAC_BAD_SHAPE, "labels"},
    {"a bias of a scalar", "stored x \"\"\nstored b 16\ny = com.microsoft.FastGelu(x, b)\noutput y",
     LAC_BAD_SHAPE, "scalar"},
    {"scalar keys",
     "input q 1x2x3x4\nstored k \"\"\nstored v \"\"\ny = Attention(q, k, v)\noutput y",
     LAC_BAD_SHAPE, "do not fit"},
    {"a slope larger than its input", "input x 2\nstored s 2x2\ny = PRelu(x, s)\noutput y",
     LAC_BAD_SHAPE, "a slope [2, 2] for an input [2]"},
    {"a mean of integers",
     "input x 1x3x2\nstored s 3\nstored m 3 i64\ny = BatchNormalization(x, s, s, m, s)\noutput y",
     LAC_BAD_FILE, "input 3 has elements of type i64"},
    {"sizes next to no elements that cannot be counted",
     "input x 0x4611686018427387904x8\ny = Relu(x)\noutput y", LAC_BAD_SHAPE, "too large"},
    {"axes whose sum is too large",
     "input x 2x3x4\nstored l 2 i64\ny = ReverseSequence(x, l) "
     "batch_axis=9223372036854775807 time_axis=3\noutput y",
     LAC_BAD_SHAPE, "batch_axis"},
    {"blocks too large to multiply",
     "input x 1x6x4\nstored k 2 i64 = 2 4611686018427387904\ny = Col2Im(x, k, k) "
     "dilations=1,2\noutput y",
     LAC_BAD_SHAPE, "do not fit"},
    {"an axis outside", "input x 2x3\ny = ReduceSum(x, a)\nstored a 1 i64 = 2\noutput y",
     LAC_BAD_SHAPE, "axis"},
    {"softmax past the end", "input x 2x3\ny = Softmax(x) axis=2\noutput y", LAC_BAD_SHAPE, "axis"},
    {"parameters of another length",
     "input x 1x3x4\nstored s 2\nstored b 3\ny = InstanceNormalization(x, s, b)\noutput y",
     LAC_BAD_SHAPE, "wanted [3]"},
    {"groups that do not divide",
     "input x 1x3x4\nstored s 3\nstored b 3\ny = GroupNormalization(x, s, b) num_groups=2\noutput "
     "y",
     LAC_BAD_SHAPE, "3 channels in 2 groups"},
    {"shapes that do not broadcast", "input x 2x3\nstored b 2\ny = Add(x, b)\noutput y",
     LAC_BAD_SHAPE, "Add"},
};

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  check_refused(refused, sizeof refused / sizeof *refused);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions_drop_their_axes),
      cmocka_unit_test(lines_are_normalized_as_a_whole),
      cmocka_unit_test(parameters_follow_the_channels),
      cmocka_unit_test(elements_meet_after_broadcasting),
      cmocka_unit_test(what_does_not_fit_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
