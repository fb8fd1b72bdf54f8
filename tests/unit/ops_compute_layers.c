/* SPDX-License-Identifier: Apache-2.0
 * Operators that are whole layers or belong to detectors, signals and losses: values that can be
 * reckoned by hand, and what each says about channel orders, above all what it refuses. Numbers of
 * every kind against ONNX Runtime and the standard's own tests are in tests/interop. */
#include "support/op_case.h"

static const op_case recurrent[] = {
    {"an RNN that adds up", /* h = tanh(x), then tanh(x + h) */
     "stored x 2x1x1 = 0 0\nstored w 1x1x1 = 1\nstored r 1x1x1 = 1\ny = RNN(x, w, r) "
     "hidden_size=1\noutput y",
     "y f32 2x1x1x1 = 0 0", ".ab .Mb .MM -> ..aM | 0.3<1.1 = 0 | 0.3<2.1 = 0 | 0.3<2.2 = 0"},
    {"a GRU's channels have a row in every gate",
     "stored x 1x1x1 = 0\nstored w 1x6x1 = 0 0 0 0 0 0\nstored r 1x6x2 = 0 0 0 0 0 0 0 0 0 0 0 0\n"
     "stored h 1x1x2 = 2 4\ny = GRU(x, w, r, _, _, h) hidden_size=2\noutput y",
     "y f32 1x1x1x2 = 1 2",
     ".ab .Mb .MM - - .aM -> ..aM | 0.3<1.1 = 0 1 | 0.3<1.1 = 2 3 | 0.3<1.1 = 4 5 | 0.3<2.1 = 0 1 "
     "| "
     "0.3<2.1 = 2 3 | 0.3<2.1 = 4 5 | 0.3<2.2 = 0 1 | 0.3<5.2 = 0 1"},
};

static void recurrent_layers_couple_all_gates(void **state) {
  (void)state;
  check_cases(recurrent, sizeof recurrent / sizeof *recurrent);
}

static const op_case attentions[] = {
    {"one key: y is its value",
     "stored q 1x1x1x2 = 1 2\nstored k 1x1x1x2 = 3 4\nstored v 1x1x1x1 = 5\ny = Attention(q, k, "
     "v)\n"
     "output y",
     "y f32 1x1x1x1 = 5", "abcd abed abef -> abcf"},
    {"the causal limit counts tokens",
     "stored q 1x1x2x1 = 0 0\nstored k 1x1x2x1 = 0 0\nstored v 1x1x2x1 = 2 4\n"
     "y = Attention(q, k, v) is_causal=1\noutput y",
     "y f32 1x1x2x1 = 2 3", "ab.c ab.c ab.d -> ab.d"},
    {"a mask that hides all: 0",
     "stored q 1x1x1x1 = 1\nstored m 1x1 bool = 0\ny = Attention(q, q, q, m)\noutput y",
     "y f32 1x1x1x1 = 0", NULL},
    {"shared keys, heads in one axis: nothing of them",
     "stored q 1x1x2 = 1 2\nstored k 1x1x1 = 3\ny = Attention(q, k, k) q_num_heads=2 "
     "kv_num_heads=1\n"
     "output y",
     "y f32 1x1x2 = 3 3", "ab. ac. ac. -> ab."},
    {"rotated by a right angle: (a, b) becomes (-b, a)",
     "stored x 1x1x1x2 = 3 5\nstored c 1x1x1 = 0\nstored s 1x1x1 = 1\ny = RotaryEmbedding(x, c, "
     "s)\n"
     "output y",
     "y f32 1x1x1x2 = -5 3", "abc. ac. ac. -> abc."},
    {"a cache written round and round",
     "stored x 1x3 = 1 2 3\nstored u 1x2 = 8 9\nstored at 1 i64 = 2\n"
     "y = TensorScatter(x, u, at) axis=1 mode=\"circular\"\noutput y",
     "y f32 1x3 = 9 2 8", "a. a. a -> a."},
};

static void attention_keeps_what_counts_tokens(void **state) {
  (void)state;
  check_cases(attentions, sizeof attentions / sizeof *attentions);
}

static const op_case norms[] = {
    {"root mean square",
     "stored x 1x2 = 3 4\nstored s 2 = 5 5\n"
     "y = RMSNormalization(x, s) epsilon=0.0\noutput y",
     "y f32 1x2 = 4.24264 5.65685", "ab~ b~ -> ab~"},
    {"mean and variance",
     "stored x 1x1x2 = 3 5\ny = MeanVarianceNormalization(x) axes=1,2\noutput y",
     "y f32 1x1x2 = -1 1", "ab~c~ -> ab~c~"},
    {"a gate of 0", "stored a 2 = 0 0\nstored b 2 = 3 4\ny = SwiGLU(a, b)\noutput y",
     "y f32 2 = 0 0", "a a -> a"},
    {"shrunk", "stored x 3 = -2 0.25 1\ny = Shrink(x) lambd=0.5 bias=0.5\noutput y",
     "y f32 3 = -1.5 0 0.5", "a -> a"},
    {"a determinant changes its sign", "stored x 1x2x2 = 0 1 2 0\ny = Det(x)\noutput y",
     "y f32 1 = -2", "a.. -> a"},
};

static void norms_and_gates_pass_channels(void **state) {
  (void)state;
  check_cases(norms, sizeof norms / sizeof *norms);
}

static const op_case images[] = {
    {"a grid that asks for the middle",
     "stored x 1x1x2x2 = 1 2 3 4\nstored g 1x1x1x2 = 0 0\ny = GridSample(x, g)\noutput y",
     "y f32 1x1x1x1 = 2.5", "ab.. a... -> ab.."},
    {"a kernel element that reads between two places, half of it",
     "stored x 1x2x1x2 = 1 3 10 30\nstored w 1x2x1x1 = 1 2\nstored o 1x2x1x2 = 0 0 0.5 -0.25\n"
     "stored b 1 = 100\nstored m 1x1x1x2 = 0.5 1\ny = DeformConv(x, w, o, b, m)\noutput y",
     "y f32 1x1x1x2 = 121 152.5", "ab.. cb.. a... c a... -> ac.."},
    {"a set of offsets for each channel",
     "stored x 1x2x1x2 = 1 3 10 30\nstored w 1x2x1x1 = 1 2\nstored o 1x4x1x2 = 0 0 1 -1 0 0 0 5\n"
     "y = DeformConv(x, w, o) offset_group=2\noutput y",
     "y f32 1x1x1x2 = 23 1", "a... b... a... -> ab.."},
    {"a map that changes nothing",
     "stored t 1x2x3 = 1 0 0 0 1 0\nstored n 4 i64 = 1 1 1 2\ny = AffineGrid(t, n) "
     "align_corners=1\n"
     "output y",
     "y f32 1x1x2x2 = -1 -1 1 -1", "a.. . -> a..."},
    {"a region of one element",
     "stored x 1x1x2x2 = 1 2 3 4\nstored r 1x4 = 0.0 0.0 2.0 2.0\nstored n 1 i64 = 0\n"
     "y = RoiAlign(x, r, n) output_height=1 output_width=1 sampling_ratio=1\noutput y",
     "y f32 1x1x1x1 = 2.5", ".a.. b. b -> ba.."},
    {"of two boxes that overlap, the better",
     "stored b 1x3x4 = 0 0 1 1 0 0.1 1 1.1 5 5 6 6\nstored s 1x1x3 = 0.5 0.9 0.3\n"
     "stored n \"\" i64 = 2\nstored t \"\" = 0.5\ny = NonMaxSuppression(b, s, n, t)\noutput y",
     "y i64 2x3 = 0 0 1 0 0 2", "... ... s s -> .."},
    {"blocks next to each other",
     "stored x 1x2x2 = 1 2 3 4\nstored n 2 i64 = 1 3\nstored b 2 i64 = 1 2\ny = Col2Im(x, n, b)\n"
     "output y",
     "y f32 1x1x1x3 = 1 5 4", "aM. . . -> aM.. | 0.1<0.1 = 0 | 0.1<0.1 = 1"},
    {"back where they came from",
     "stored x 1x1x1 = 7\nstored i 1x1x1 i64 = 1\ny = MaxUnpool(x, i) kernel_shape=2,\noutput y",
     "y f32 1x1x2 = 0 7", "... ... -> ..."},
    {"the middle of one axis, more of the other",
     "stored x 2x3 = 1 2 3 4 5 6\nstored n 2 i64 = 3 1\ny = CenterCropPad(x, n)\noutput y",
     "y f32 3x1 = 2 5 0", "MM . -> MM | 0.0<0.0 = 0 1 -1 | 0.1<0.1 = 1"},
    {"rows that are wanted",
     "stored x 3x1 = 1 2 3\nstored c 3 bool = 1 0 1\ny = Compress(x, c) axis=0\noutput y",
     "y f32 2x1 = 1 3", ".a . -> .a"},
    {"what is there, and how often",
     "stored x 3 = 2 1 2\ny, _, _, n = Unique(x)\noutput y\noutput n",
     "y f32 2 = 1 2\nn i64 2 = 1 2", ". -> . - - ."},
    {"depth, a channel after the other",
     "stored x 1x1x2x2 = 1 2 3 4\ny = SpaceToDepth(x) blocksize=2 mode=\"CRD\"\noutput y",
     "y f32 1x4x1x1 = 1 2 3 4", "aM.. -> aM.. | 0.1<0.1 = 0 0 0 0"},
};

static void images_keep_their_places(void **state) {
  (void)state;
  check_cases(images, sizeof images / sizeof *images);
}

static const op_case signals[] = {
    {"one place is its own spectrum",
     "stored x 2x1x1 = 3 4\nstored a \"\" i64 = 1\ny = DFT(x, _, a)\noutput y",
     "y f32 2x1x2 = 3 0 4 0", "a.. - s -> a.."},
    {"a window of two", "stored n \"\" i64 = 2\ny = HannWindow(n)\noutput y", "y f32 2 = 0 1",
     "s -> ."},
    {"frames of one place",
     "stored x 1x3x1 = 1 2 3\nstored n \"\" i64 = 1\nstored w 1 = 2\ny = STFT(x, n, w)\noutput y",
     "y f32 1x3x1x2 = 2 0 4 0 6 0", "a.. s . -> a..."},
    {"time goes in one direction",
     "stored x 1x1x2 = 1 2\nstored w 1x1x2 = 10 1\ny, s = CausalConvWithState(x, w)\noutput "
     "y\noutput s",
     "y f32 1x1x2 = 1 12\ns f32 1x1x1 = 2", "ab. b.. -> ab. ab."},
    {"running products",
     "stored x 3 = 2 3 4\nstored a \"\" i64 = 0\ny = CumProd(x, a) exclusive=1\n"
     "output y",
     "y f32 3 = 1 2 6", ". s -> ."},
};

static void signals_keep_their_order(void **state) {
  (void)state;
  check_cases(signals, sizeof signals / sizeof *signals);
}

static const op_case integers[] = {
    {"less their zero points",
     "stored a 1x2 u8 = 3 4\nstored b 2x1 u8 = 5 6\nstored z \"\" u8 = 2\n"
     "y = MatMulInteger(a, b, z)\noutput y",
     "y i32 1x1 = 17", "ab bc s -> ac"},
    {"quantized again",
     "stored a 1x1 u8 = 30\nstored s \"\" = 0.5\nstored z \"\" u8 = 10\nstored t \"\" = 2.0\n"
     "y = QLinearMatMul(a, s, z, a, s, z, t, z)\noutput y",
     "y u8 1x1 = 60", NULL},
    {"what fits what is there",
     "stored x 2 = -1 1.55\ny, s, z = DynamicQuantizeLinear(x)\noutput y\noutput z",
     "y u8 2 = 0 255\nz u8 s = 100", "a~ -> a~ s s"},
    {"the same bytes", "stored x 2 = 1 -2\ny = BitCast(x) to=6\noutput y",
     "y i32 2 = 1065353216 -1073741824", "a -> a"},
    {"a sign that fills",
     "stored x 1 i32 = -8\nstored n 1 i32 = 1\n"
     "y = BitShift(x, n) direction=\"RIGHT\"\noutput y",
     "y i32 1 = -4", "a a -> a"},
    {"what is said of the right class",
     "stored x 2x2 = 1 2 3 5\nstored n 2 i64 = 1 0\n"
     "y = NegativeLogLikelihoodLoss(x, n) reduction=\"sum\"\noutput y",
     "y f32 s = -5", "a. a -> s"},
    {"equal scores",
     "stored x 1x1x2 = 7 7\nstored n 1x2 i64 = 0 0\n"
     "y, p = SoftmaxCrossEntropyLoss(x, n) reduction=\"none\"\noutput y\noutput p",
     "y f32 1x2 = -0 -0\np f32 1x1x2 = 0 0", "a.b ab -> ab a.b"},
};

static void integers_and_losses_are_exact(void **state) {
  (void)state;
  check_cases(integers, sizeof integers / sizeof *integers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recurrent_layers_couple_all_gates),
      cmocka_unit_test(attention_keeps_what_counts_tokens),
      cmocka_unit_test(norms_and_gates_pass_channels),
      cmocka_unit_test(images_keep_their_places),
      cmocka_unit_test(signals_keep_their_order),
      cmocka_unit_test(integers_and_losses_are_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
