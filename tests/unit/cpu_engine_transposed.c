/* SPDX-License-Identifier: Apache-2.0
 * ConvTranspose by the fast engine, against the plain one: windows, pads, groups and dilations of
 * all kinds, drawn at random, in one and two dimensions, with what is fused to it; and that the
 * usual ones are no plain steps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "support/engine_check.h"
#include "support/engine_plan.h"

enum { TEXT = 2048, N_DRAWN = 40 };

static int drawn(uint64_t *state, int least, int most) {
  return least + (int)laci_rng_integer_below(3, 4, (*state)++, (uint64_t)(most - least + 1));
}

static void check(const char *text, int plain) {
  check_plan(text, (expectation){.tolerance = 1e-5, .plain = plain});
}

/** One window for every axis. */
typedef struct window {
  int in, kernel, stride, dilation, pads[2], extra;
} window;

static window draw_window(uint64_t *state) {
  window w = {.in = drawn(state, 1, 9), .kernel = drawn(state, 1, 6), .stride = drawn(state, 1, 4)};
  w.dilation = drawn(state, 0, 3) ? 1 : drawn(state, 1, 3);
  w.extra = drawn(state, 0, w.stride - 1);
  const int full = w.stride * (w.in - 1) + w.extra + (w.kernel - 1) * w.dilation;
  for (int end = 0; end < 2; end++) {
    const int most = (w.kernel - 1) * w.dilation;
    w.pads[end] = drawn(state, 0, most < full / 2 ? most : full / 2);
  }
  return w;
}

/** What follows the node, which has `channels` channels. */
static const char *draw_tail(uint64_t *state) {
  static const char *const tails[] = {
      "y = Relu(a)\n",
      "y = BatchNormalization(a, g, h, m, v)\n",
      "n = BatchNormalization(a, g, h, m, v)\ny = Relu(n)\n",
      "s = Sigmoid(a)\ny = Mul(a, s)\n",
      "b = Sigmoid(a)\ny = Add(b, a)\n",
      "y = Add(a, one)\n",
  };
  return tails[drawn(state, 0, (int)(sizeof tails / sizeof *tails) - 1)];
}

static void write_drawn(char *text, uint64_t *state, bool *dilated) {
  static const char *const automatic[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
  const int kind = drawn(state, 0, 5), lines = drawn(state, 0, 3) == 0;
  const int groups = kind == 0 ? drawn(state, 2, 17) : kind == 1 ? 2 : 1;
  const int in = groups * (kind == 0 ? 1 : drawn(state, 1, 9));
  const int out = kind == 0 ? 1 : drawn(state, 0, 1) ? 8 * drawn(state, 1, 3) : drawn(state, 1, 9);
  const window h = draw_window(state), w = draw_window(state);
  char pads[160], *at = text;
  const int which = drawn(state, 0, 9);
  *dilated = (w.dilation > 1 && w.stride > 1) || w.kernel < w.stride ||
             (!lines && ((h.dilation > 1 && h.stride > 1) || h.kernel < h.stride));
  if (which < 3) (void)snprintf(pads, sizeof pads, "auto_pad=\"%s\"", automatic[which]);
  else if (lines)
    (void)snprintf(pads, sizeof pads, "pads=%d,%d output_padding=%d", w.pads[0], w.pads[1],
                   w.extra);
  else
    (void)snprintf(pads, sizeof pads, "pads=%d,%d,%d,%d output_padding=%d,%d", h.pads[0], w.pads[0],
                   h.pads[1], w.pads[1], h.extra, w.extra);
  at += lines
            ? snprintf(at, 200, "input x 2x%dx%d\nstored w %dx%dx%d\n", in, w.in, in, out, w.kernel)
            : snprintf(at, 200, "input x 2x%dx%dx%d\nstored w %dx%dx%dx%d\n", in, h.in, w.in, in,
                       out, h.kernel, w.kernel);
  const int channels = groups * out;
  at += snprintf(at, 300,
                 "stored c %d\nstored g %d\nstored h %d\nstored m %d\nstored v %d positive\n"
                 "stored one 1\n",
                 channels, channels, channels, channels, channels);
  at += lines
            ? snprintf(at, 300, "a = ConvTranspose(x, w, c) group=%d strides=%d dilations=%d %s\n",
                       groups, w.stride, w.dilation, pads)
            : snprintf(at, 300,
                       "a = ConvTranspose(x, w, c) group=%d strides=%d,%d dilations=%d,%d %s\n",
                       groups, h.stride, w.stride, h.dilation, w.dilation, pads);
  (void)snprintf(at, 200, "%soutput y\n", draw_tail(state));
}

static void matches_the_plain_engine(void **state) {
  char text[TEXT];
  uint64_t at = 0;
  (void)state;
  for (int n = 0; n < N_DRAWN; n++) {
    bool dilated;
    write_drawn(text, &at, &dilated);
    check(text, dilated ? -1 : 0);
  }
}

static void follows_a_given_output_shape(void **state) {
  (void)state;
  check(
      "input x 1x4x5x6\nstored w 4x3x3x3\n"
      "y = ConvTranspose(x, w) strides=2,2 output_shape=10,13\noutput y\n",
      0);
  check(
      "input x 1x4x5x6\nstored w 4x8x4x4\n"
      "y = ConvTranspose(x, w) strides=2,2 output_shape=9,12 auto_pad=\"SAME_UPPER\"\n"
      "output y\n",
      0);
  check(
      "input x 1x4x5x6\nstored w 4x8x4x4\n"
      "y = ConvTranspose(x, w) strides=3,2 output_shape=15,11 output_padding=1,0\noutput y\n",
      0);
}

/* What networks have: twice the size, with windows of 2, 3 and 4; bilinear filters a channel. */
static void is_fast_where_networks_use_it(void **state) {
  static const char *const texts[] = {
      "input x 1x24x9x9\nstored w 24x24x2x2\na = ConvTranspose(x, w) strides=2,2\ny = Relu(a)\n"
      "output y\n",
      "input x 1x16x9x9\nstored w 16x16x3x3\n"
      "y = ConvTranspose(x, w) strides=2,2 pads=1,1,1,1 output_padding=1,1\noutput y\n",
      "input x 1x16x9x9\nstored w 16x32x4x4\ny = ConvTranspose(x, w) strides=2,2 pads=1,1,1,1\n"
      "output y\n",
      "input x 1x24x9x9\nstored w 24x1x4x4\n"
      "y = ConvTranspose(x, w) strides=2,2 pads=1,1,1,1 group=24\noutput y\n",
      "input x 1x16x40\nstored w 16x8x16\ny = ConvTranspose(x, w) strides=8 pads=4,4\noutput y\n",
      "input x 1x16x9x1\nstored w 16x8x4x1\n"
      "y = ConvTranspose(x, w) strides=2,1 pads=1,0,1,0\noutput y\n",
      "input x 1x16x9x9\nstored w 16x8x3x3\ny = ConvTranspose(x, w) pads=1,1,1,1\noutput y\n",
  };
  (void)state;
  for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) check(texts[at], 0);
}

/* A sum that is no number stays one: such a network is run again, carefully. */
static void keeps_what_is_not_finite(void **state) {
  const char *text =
      "input x 1x4x5x5\nstored w 4x4x2x2\ny = ConvTranspose(x, w) strides=2,2\n"
      "output y\n";
  planned p = plan_text(text, (laci_engine_options){.threads = 1});
  const laci_engine_port *in, *out;
  lac_error err = {0};
  (void)state;
  (void)laci_engine_inputs(p.engine, &in);
  (void)laci_engine_outputs(p.engine, &out);
  float *x = laci_alloc(in->size_bytes, 1), *y = laci_alloc(out->size_bytes, 1);
  x[12] = INFINITY;
  if (laci_engine_run(p.engine, (const void *[]){x}, (void *[]){y}, &err)) fail_msg("%s", err.text);
  int n = 0;
  for (size_t at = 0; at < out->size_bytes / sizeof *y; at++) n += !isfinite(y[at]);
  assert_int_equal(n, 4 * 4); /* one window in each channel */
  laci_free(x);
  laci_free(y);
  planned_clear(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_the_plain_engine),
      cmocka_unit_test(follows_a_given_output_shape),
      cmocka_unit_test(is_fast_where_networks_use_it),
      cmocka_unit_test(keeps_what_is_not_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
