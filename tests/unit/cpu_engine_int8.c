/* SPDX-License-Identifier: Apache-2.0
 * Quantized networks on the fast engine, by layers of int8: what is before, after and between them,
 * in which of them results are bytes, against the plain engine, and the same bytes for any
 * threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "kernel/sparse/byte_pairs.h"
#include "jit/isa.h"
#include "support/engine_check.h"
#include "support/graph_build.h"

enum { TEXT = 4096 };

/* Weights of integers, of 16 channels: v and u for 16, u of u8, whose zero point is 128; w for
 * 10 and r for 7 more, with a scale for each row; g in groups of four. d is x through bytes. */
#define SCALES                                                                                     \
  "stored sx \"\" = 0.0103\nstored zx \"\" u8 = 110\nstored sy \"\" = 0.0537\nstored zy \"\" u8 "  \
  "= "                                                                                             \
  "60\n"                                                                                           \
  "stored ss \"\" = 0.0311\nstored zs \"\" i8 = -5\nstored sw \"\" = 0.0197\nstored zw \"\" u8 = " \
  "128\n"
#define WEIGHTS                                                                              \
  "stored qv 16x16x1x1 i8\nv = DequantizeLinear(qv, sw)\n"                                   \
  "stored qu 16x16x3x3 u8 positive\nu = DequantizeLinear(qu, sw, zw)\n"                      \
  "stored qw 10x16x3x3 i8\nstored sw10 10 positive\nw = DequantizeLinear(qw, sw10) axis=0\n" \
  "stored qr 7x10x1x1 i8\nstored sr7 7 positive\nr = DequantizeLinear(qr, sr7) axis=-4\n"    \
  "stored qg 16x4x3x3 i8\ng = DequantizeLinear(qg, sw)\nstored qb 16 i32\n"                  \
  "stored sb \"\" = 0.00020291\nbias = DequantizeLinear(qb, sb)\n"

/* Weights of depthwise windows: k of 16 channels, l of u8 and 10. */
#define DEPTHWISE                                                                       \
  "stored qk 16x1x3x3 i8\nstored sk 16 positive\nk = DequantizeLinear(qk, sk) axis=0\n" \
  "stored ql 10x1x5x5 u8 positive\nl = DequantizeLinear(ql, sw, zw)\n"

/* `to` is `from` through bytes. */
#define BYTES(to, from, s, z)                                                                      \
  "q" to " = QuantizeLinear(" from ", " s ", " z ")\n" to " = DequantizeLinear(q" to ", " s ", " z \
  ")\n"

/* Other shifts are rounded to the units of sums. */
#define NO_SHIFT "stored o 16 = 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

typedef struct int8_net {
  const char *what, *text;
  int n_layers, n_between; /* of int8, where sparse kernels do all that they can: products; and
                              depthwise windows, sums and pools */
} int8_net;

static const int8_net nets[] = {
    {"into floats", "y = Conv(d, v, bias)\n", 1, 0},
    {"a Relu and floats", "a = Conv(d, v)\ny = Relu(a)\n", 1, 0},
    {"a normalization and floats",
     "stored n 16\nstored nv 16 positive\n" NO_SHIFT
     "a = Conv(d, v, bias)\ny = BatchNormalization(a, n, o, o, nv)\n",
     1, 0},
    {"a normalization, a Relu and bytes",
     "stored n 16\nstored nv 16 positive\n" NO_SHIFT
     "a = Conv(d, v)\nb = BatchNormalization(a, n, o, o, nv)\nc = Relu(b)\n" BYTES("y", "c", "sy",
                                                                                   "zy"),
     1, 0},
    {"a function and floats", "a = Conv(d, v)\ny = HardSwish(a)\n", 1, 0},
    {"a sum of floats", "a = Conv(d, v)\nb = Sigmoid(x)\nc = Add(a, b)\ny = Relu(c)\n", 1, 0},
    {"a sum of floats, bytes later",
     "b = Sigmoid(x)\na = Conv(d, v)\nc = Add(a, b)\n" BYTES("y", "c", "sy", "zy"), 1, 0},
    {"bytes between",
     "a = Conv(d, v, bias)\nn = Relu(a)\n" BYTES("e", "n", "sy", "zy") "b = Conv(e, v)\n" BYTES(
         "y", "b", "ss", "zs"),
     2, 0},
    {"a window between",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "b = Conv(e, u) pads=1,1,1,1\n" BYTES(
         "y", "b", "ss", "zs"),
     2, 0},
    {"windows that stride",
     "a = Conv(d, u) pads=1,1,1,1 strides=2,2\n" BYTES(
         "e", "a", "ss", "zs") "b = Conv(e, v) "
                               "strides=2,2\n" BYTES("y", "b", "ss", "zs"),
     2, 0},
    {"a border that is wide", "a = Conv(d, u) pads=2,1,0,3\n" BYTES("y", "a", "ss", "zs"), 1, 0},
    {"a Clip",
     "stored low \"\" = -0.7\nstored high \"\" = 1.9\na = Conv(d, v)\nc = Clip(a, low, "
     "high)\n" BYTES("y", "c", "sy", "zy"),
     1, 0},
    {"a function", "a = Conv(d, v, bias)\nc = HardSwish(a)\n" BYTES("y", "c", "sy", "zy"), 1, 0},
    {"a bound and a function",
     "stored low \"\" = -2.5\nstored high \"\" = 1.9\na = Conv(d, v)\nb = Clip(a, low, high)\n"
     "c = LeakyRelu(b) alpha=0.3\n" BYTES("y", "c", "sy", "zy"),
     1, 0},
    {"a sum of bytes, then a Relu",
     "a = Conv(d, u) pads=1,1,1,1\nc = Add(a, d)\nn = Relu(c)\n" BYTES("y", "n", "ss", "zs"), 1, 0},
    {"a function, then a sum of bytes",
     "a = Conv(d, v)\nh = HardSwish(a)\nc = Add(h, d)\n" BYTES("y", "c", "ss", "zs"), 1, 0},
    {"a block",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "b = Conv(e, u) pads=1,1,1,1\n" BYTES(
         "f", "b", "ss", "zs") "c = Add(f, d)\nn = Relu(c)\n" BYTES("h", "n", "sy",
                                                                    "zy") "y = Conv(h, v)\n",
     3, 1},
#define SUM(operands) "c = Add(" operands ")\n" BYTES("h", "c", "sy", "zy")
#define TWO "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "b = Conv(e, u) pads=1,1,1,1\n"
    {"a block whose sum has the product last",
     TWO "o = Relu(b)\n" BYTES("f", "o", "ss", "zs") SUM("d, f") "y = Conv(h, v)\n", 3, 1},
    {"a sum of two products",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "b = Conv(d, v, bias)\n" BYTES(
         "f", "b", "ss", "zs") SUM("e, f") "y = Relu(h)\n",
     2, 1},
    {"a sum, and another reader of its operand",
     TWO BYTES("f", "b", "ss", "zs") SUM("f, d") "y = Add(h, f)\n", 2, 1},
#undef TWO
#undef SUM
#define GATES(bound)                                                                 \
  "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "p = GlobalAveragePool(e)\n" BYTES( \
      "f", "p", "sy", "zy") "b = Conv(f, v)\nt = Sigmoid(b)\n" BYTES("h", "t", "sx", "zx") bound
    {"a gate", GATES("m = Mul(e, h)\n") BYTES("n", "m", "ss", "zs") "y = Conv(n, v)\n", 3, 2},
    {"a gate with a bound, as the first operand",
     GATES("k = Mul(h, e)\nm = Relu(k)\n") BYTES("n", "m", "ss", "zs") "y = Conv(n, v)\n", 3, 2},
#undef GATES
    {"odd channels", "a = Conv(d, w) pads=1,1,1,1\n" BYTES("e", "a", "sy", "zy") "y = Conv(e, r)\n",
     2, 0},
    {"groups", "a = Conv(d, g) group=4 pads=1,1,1,1\n" BYTES("y", "a", "ss", "zs"), 1, 0},
    {"a value and itself",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "c = Add(e, e)\n" BYTES("y", "c", "ss", "zs"),
     1, 1},
    {"bytes that each reader reads for itself",
     "a = Conv(d, v)\n" BYTES(
         "e", "a", "sy", "zy") "f = DequantizeLinear(qe, sy, zy)\n"
                               "b = Conv(f, u) pads=1,1,1,1\n" BYTES(
                                   "l", "b", "ss",
                                   "zs") "k = DequantizeLinear(qd, sx, zx)\n"
                                         "c = Add(l, e)\nn = Relu(c)\n" BYTES(
                                             "h", "n", "sy",
                                             "zy") "o = DequantizeLinear(qh, sy, zy)\n"
                                                   "i = Conv(h, v)\nj = Add(i, k)\ny = Add(j, o)\n",
     3, 1},
    {"a function between, which makes other numbers of zeros",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "f = Sigmoid(e)\n" BYTES(
         "h", "f", "ss",
         "zs") "k = Add(h, e)\n" BYTES("l", "k", "sx",
                                       "zx") "b = Conv(l, u) pads=1,1,1,1\n" BYTES("y", "b", "ss",
                                                                                   "zs"),
     2, 1},
    {"a function of what comes in, and floats",
     "f = Sigmoid(d)\nk = Mul(f, d)\n" BYTES("e", "k", "ss",
                                             "zs") "b = Conv(e, u) pads=1,1,1,1\ny = Sub(b, k)\n",
     1, 0},
    {"a function whose start and result others read",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "f = Tanh(e)\n" BYTES(
         "h", "f", "ss", "zs") "b = Conv(h, u) pads=1,1,1,1\nc = Add(e, h)\ny = Sub(b, c)\n",
     2, 1},
    {"units that change between layers",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") BYTES("f", "e", "ss", "zs") "y = Conv(f, u) "
                                                                                "pads=1,1,1,1\n",
     2, 0},
    {"units that change, and floats",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") BYTES("f", "e", "ss", "zs") "y = Relu(f)\n", 1,
     1},
    {"a value that floats read, too",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "b = Conv(e, v)\nt = Tanh(e)\ny = Sub(b, t)\n",
     2, 0},
    {"floats that come out, too", "a = Conv(d, v)\n" BYTES("y", "a", "sy", "zy") "output a\n", 1,
     0},
    {"a pool between",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "p = MaxPool(e) kernel_shape=3,3 strides=2,2 "
                                                    "pads=1,1,1,1\n" BYTES(
                                                        "f", "p", "sy",
                                                        "zy") "y = Conv(f, u) pads=1,1,1,1\n",
     2, 1},
    {"a pool that rounds up",
     "a = Conv(d, u) pads=1,1,1,1\n" BYTES("e", "a", "ss", "zs") "p = MaxPool(e) kernel_shape=2,3 "
                                                                 "strides=2,2 ceil_mode=1\n" BYTES(
                                                                     "f", "p", "ss",
                                                                     "zs") "y = Conv(f, v)\n",
     2, 1},
    {"a depthwise window",
     DEPTHWISE "a = Conv(d, k) group=16 pads=1,1,1,1\nn = Relu(a)\n" BYTES("y", "n", "sy", "zy"), 0,
     1},
    {"a depthwise window into floats", DEPTHWISE "y = Conv(d, k) group=16 pads=1,0,1,2\n", 0, 1},
    {"a depthwise window and a function",
     DEPTHWISE
     "a = Conv(d, k) group=16 strides=2,2\nc = HardSwish(a)\n" BYTES("y", "c", "sy", "zy"),
     0, 1},
    {"depthwise windows between",
     DEPTHWISE "a = Conv(d, v)\n" BYTES(
         "e", "a", "sy", "zy") "b = Conv(e, k) group=16 pads=1,1,1,1 "
                               "strides=2,2\n" BYTES(
                                   "f", "b", "ss", "zs") "c = Conv(f, w) "
                                                         "pads=1,1,1,1\n" BYTES(
                                                             "h", "c", "sy", "zy") "y = Conv(h, l) "
                                                                                   "group=10 "
                                                                                   "pads=2,2,2,2 "
                                                                                   "strides=1,2\n",
     2, 2},
    {"a dilated depthwise window",
     DEPTHWISE "a = Conv(d, k) group=16 dilations=2,3 pads=2,3,2,3\n" BYTES("y", "a", "ss", "zs"),
     0, 1},
    {"a depthwise window and a sum",
     DEPTHWISE "a = Conv(d, k) group=16 pads=1,1,1,1\n" BYTES(
         "e", "a", "sy", "zy") "c = Add(e, d)\n" BYTES("y", "c", "ss", "zs"),
     0, 2},
    {"an average pool between",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "p = AveragePool(e) kernel_shape=3,3 "
                                                    "strides=1,2 pads=1,1,1,1\n" BYTES(
                                                        "f", "p", "ss", "zs") "y = Conv(f, v)\n",
     2, 1},
    {"an average pool that counts padding",
     "p = AveragePool(d) kernel_shape=2,3 pads=1,1,0,1 count_include_pad=1\n" BYTES("y", "p", "ss",
                                                                                    "zs"),
     0, 1},
    {"the average of an image",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "p = GlobalAveragePool(e)\n" BYTES(
         "f", "p", "ss", "zs") "y = Conv(f, v)\n",
     2, 1},
    {"the average of an image, and a Gemm",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "p = GlobalAveragePool(e)\n" BYTES(
         "f", "p", "ss",
         "zs") "l = Flatten(f)\n" BYTES("i", "l", "ss",
                                        "zs") "stored q2 16x10 i8\nw2 = DequantizeLinear(q2, "
                                              "sw)\ny = Gemm(i, w2)\n",
     2, 1},
    {"the average of an image into floats",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "y = GlobalAveragePool(e)\n", 1, 0},
    {"a pool of what comes in",
     "p = MaxPool(d) kernel_shape=2,2\n" BYTES("f", "p", "sx", "zx") "y = Conv(f, v)\n", 1, 1},
    {"a pool, and other units after it",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "p = MaxPool(e) kernel_shape=2,2\n" BYTES(
         "f", "p", "ss", "zs") "y = Conv(f, v)\n",
     2, 0},
    {"a pool into floats",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "y = MaxPool(e) kernel_shape=2,2\n", 1, 1},
    {"a pool whose result is not quantized again",
     "a = Conv(d, v)\n" BYTES(
         "e", "a", "sy",
         "zy") "p = MaxPool(e) kernel_shape=2,2\nb = Conv(p, v)\nt = Tanh(p)\ny = Sub(b, t)\n",
     2, 1},
/* Moves of bytes. */
#define TWO                                                                                      \
  "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "b = Conv(d, u) pads=1,1,1,1\n" BYTES("f", "b", \
                                                                                       "ss", "zs")
    {"a Concat of two units into a third",
     TWO "c = Concat(e, f) axis=1\n" BYTES("p", "c", "sx",
                                           "zx") "stored q2 8x32x1x1 i8\nw2 = "
                                                 "DequantizeLinear(q2, sw)\ny = Conv(p, w2)\n",
     3, 1},
    {"a Concat of equal units, which others read",
     "a = Conv(d, v)\n" BYTES(
         "e", "a", "sx",
         "zx") "c = Concat(e, d) axis=1\nstored q2 8x32x3x3 "
               "i8\nw2 = DequantizeLinear(q2, sw)\nb = Conv(c, w2) pads=1,1,1,1\nt = "
               "Tanh(c)\ny = Concat(b, t) axis=1\n"
               "output b\n",
     2, 1},
    {"a Concat of odd channels",
     "a = Conv(d, w) pads=1,1,1,1\n" BYTES("e", "a", "sy", "zy") "b = Conv(e, r)\n" BYTES(
         "f", "b", "ss",
         "zs") "c = Concat(f, e, d) axis=1\n" BYTES("p", "c", "sx",
                                                    "zx") "stored q2 8x33x3x3 i8\nw2 = "
                                                          "DequantizeLinear(q2, sw)\ny = Conv(p, "
                                                          "w2)\n",
     3, 1},
    {"a Concat of rows",
     TWO "c = Concat(e, f) axis=2\n" BYTES("p", "c", "sx", "zx") "y = Conv(p, u)\n", 3, 1},
    {"a Split whose parts are read apart",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "stored n2 2 i64 = 6 10\nf, k = Split(e, n2) "
                                                    "axis=1\n" BYTES("h", "f", "sy",
                                                                     "zy") "c = Concat(k, h) "
                                                                           "axis=1\n" BYTES(
                                                                               "i", "c", "ss",
                                                                               "zs") "y = "
                                                                                     "Conv(i,"
                                                                                     " v)\n",
     2, 3},
    {"a Slice with steps",
     "stored from 2 i64 = 8 1\nstored to 2 i64 = -100 9\nstored axes 2 i64 = 2 3\nstored by 2 i64 "
     "= -2 3\n"
     "a = Conv(d, v)\n" BYTES("e", "a", "sy",
                              "zy") "s = Slice(e, from, to, axes, by)\ny = Conv(s, v)\n",
     2, 1},
    {"a Resize to the nearest pixels",
     "stored two 4 = 1.0 1.0 2.0 3.0\n"
     "a = Conv(d, v)\n" BYTES(
         "e", "a", "sy",
         "zy") "s = Resize(e, _, two) coordinate_transformation_mode=\"asymmetric\" "
               "nearest_mode=\"floor\"\n" BYTES("f", "s", "sy",
                                                "zy") "y = Conv(f, u) pads=1,1,1,1\n",
     2, 1},
    {"a Resize to other sizes",
     "stored by 4 = 1.0 1.0 0.7 1.9\n"
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "s = Resize(e, _, by)\n" BYTES(
         "f", "s", "ss", "zs") "y = Conv(f, u) pads=1,1,1,1\n",
     2, 1},
    {"a Pad with a number",
     "stored pads 8 i64 = 0 1 1 2 0 0 0 3\nstored third \"\" = 0.3\n"
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "s = Pad(e, pads, third)\n" BYTES(
         "f", "s", "ss",
         "zs") "stored q2 8x17x1x1 i8\nw2 = DequantizeLinear(q2, sw)\ny = Conv(f, w2)\n",
     2, 1},
    {"a Pad by reflection",
     "stored pads 8 i64 = 0 0 1 2 0 0 0 3\n"
     "a = Conv(d, v)\n" BYTES("e", "a", "sy",
                              "zy") "s = Pad(e, pads) mode=\"reflect\"\ny = Conv(s, v)\n",
     2, 1},
    {"blocks to depth and back",
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "s = DepthToSpace(e) blocksize=2 "
                                                    "mode=\"CRD\"\n" BYTES(
                                                        "f", "s", "ss", "zs") "t = SpaceToDepth(f) "
                                                                              "blocksize=2\n" BYTES(
                                                                                  "p", "t", "sx",
                                                                                  "zx") "y = "
                                                                                        "Conv(p, "
                                                                                        "v)\n",
     2, 2},
    {"a Gather that shuffles channels",
     "stored order 16 i64 = 0 4 8 12 1 5 9 13 2 6 10 14 3 7 11 -1\n"
     "a = Conv(d, v)\n" BYTES("e", "a", "sy", "zy") "s = Gather(e, order) axis=1\ny = Conv(s, v)\n",
     2, 1},
    {"a Tile",
     "stored times 4 i64 = 1 1 2 1\na = Conv(d, v)\n" BYTES(
         "e", "a", "sy", "zy") "s = Tile(e, times)\ny = Conv(s, v)\n",
     2, 1},
#undef TWO
    /* What stays with floats. */
    {"a Concat with floats", "a = Conv(d, v)\nb = Tanh(x)\ny = Concat(a, b) axis=1\n", 1, 0},
    {"a Resize by sums",
     "stored two 4 = 1.0 1.0 2.0 2.0\na = Conv(d, v)\n" BYTES(
         "e", "a", "sy", "zy") "s = Resize(e, _, two) mode=\"linear\"\ny = "
                               "Conv(s, v)\n",
     1, 0},
    {"weights with a zero point of their own",
     "stored nine \"\" i8 = 9\nz = DequantizeLinear(qv, sw, nine)\ny = Conv(d, z)\n", 0, 0},
    {"weights that are scaled again", "stored two \"\" = 2.5\nz = Mul(v, two)\ny = Conv(d, z)\n", 0,
     0},
    {"data that are no bytes", "y = Conv(x, v)\n", 0, 0},
};

static const int8_net products[] = {
    {"a Concat of features and a Slice of rows",
     "stored m 24x20 i8\nw = DequantizeLinear(m, sw)\nstored n 44x9 i8\nv = DequantizeLinear(n, "
     "sw)\n"
     "stored one 1 i64 = 1\nstored most 1 i64 = 100\n"
     "a = MatMul(d, w)\n" BYTES("e", "a", "sy", "zy") "c = Concat(e, d) axis=2\n" BYTES(
         "f", "c", "ss", "zs") "s = Slice(f, one, most, one)\ny = MatMul(s, v)\n",
     2, 2},
    {"a matrix",
     "stored m 24x20 i8\nstored sm 20 positive\nw = DequantizeLinear(m, sm) axis=1\n"
     "a = MatMul(d, w)\n" BYTES("e", "a", "sy", "zy") "y = Relu(e)\n",
     1, 0},
    {"two, and a function between",
     "stored m 24x20 i8\nw = DequantizeLinear(m, sw)\nstored n 20x9 i8\nv = DequantizeLinear(n, "
     "sw)\n"
     "a = MatMul(d, w)\nh = Gelu(a)\n" BYTES("e", "h", "sy", "zy") "y = MatMul(e, v)\n",
     2, 0},
    {"two, with a Reshape and a function of several nodes between",
     "stored m 24x20 i8\nw = DequantizeLinear(m, sw)\nstored n 20x9 i8\nv = DequantizeLinear(n, "
     "sw)\nstored flat 2 i64 = -1 20\nstored whole 3 i64 = 3 21 20\n"
     "a = MatMul(d, w)\n" BYTES("e", "a", "sy", "zy") "r = Reshape(e, flat)\n" BYTES(
         "f", "r", "sy",
         "zy") "g = Sigmoid(f)\n" BYTES("h", "g", "ss",
                                        "zs") "k = Mul(f, h)\n" BYTES("l", "k", "sx",
                                                                      "zx") "t = Reshape(l, "
                                                                            "whole)\n" BYTES(
                                                                                "o", "t", "sx",
                                                                                "zx") "y = "
                                                                                      "MatMul(o, "
                                                                                      "v)\n",
     2, 1},
    {"a bias after the product was quantized",
     "stored m 24x18 i8\nw = DequantizeLinear(m, sw)\nstored n 18x9 i8\nv = DequantizeLinear(n, "
     "sw)\nstored bias 18\n"
     "a = MatMul(d, w)\n" BYTES("e", "a", "sy", "zy") "b = Add(bias, e)\n" BYTES(
         "f", "b", "ss", "zs") "g = Gelu(f)\n" BYTES("h", "g", "sx", "zx") "y = MatMul(h, v)\n",
     2, 2},
    {"two, and a Transpose of an axis of size 1 between",
     "stored m 24x20 i8\nw = DequantizeLinear(m, sw)\nstored n 20x9 i8\nv = DequantizeLinear(n, "
     "sw)\nstored flat 3 i64 = 1 63 20\n"
     "a = MatMul(d, w)\n" BYTES("e", "a", "sy", "zy") "r = Reshape(e, flat)\n" BYTES(
         "f", "r", "sy",
         "zy") "t = Transpose(f) perm=1,0,2\n" BYTES("g", "t", "sy",
                                                     "zy") "h = Tanh(g)\n" BYTES("l", "h", "sx",
                                                                                 "zx") "y = "
                                                                                       "MatMul(l, "
                                                                                       "v)\n",
     2, 1},
};
static const int8_net gemms[] = {
    {"a Gemm",
     "stored m 20x24 i8\nw = DequantizeLinear(m, sw)\nstored qc 20 i32\nstored sb \"\" = "
     "0.00020291\n"
     "c = DequantizeLinear(qc, sb)\na = Gemm(d, w, c) transB=1\n" BYTES("y", "a", "ss", "zs"),
     1, 0},
    {"a Gemm whose rows have scales",
     "stored m 20x24 i8\nstored sm 20 positive\nw = DequantizeLinear(m, sm) axis=0\n"
     "a = Gemm(d, w) transB=1\n" BYTES("y", "a", "ss", "zs"),
     1, 0},
    {"a Gemm with a factor",
     "stored m 24x20 i8\nw = DequantizeLinear(m, sw)\ny = Gemm(d, w) alpha=0.5\n", 0, 0},
};

/* A bias that is no integer in the units of a sum becomes one. */
static const int8_net rounded[] = {
    {"a bias of floats", "stored b 16\ny = Conv(d, v, b)\n", 1, 0},
    {"a bias of floats, then bytes",
     "stored b 16\na = Conv(d, u, b) pads=1,1,1,1\n" BYTES("y", "a", "ss", "zs"), 1, 0},
    {"a bias that no sum holds", "stored vast \"\" = 1e5\nb = Mul(bias, vast)\ny = Conv(d, v, b)\n",
     1, 0},
    {"a bias that all but hides the weights",
     "stored vast \"\" = 1e9\nb = Mul(bias, vast)\na = Conv(d, u, b)\ny = Relu(a)\n", 1, 0},
    {"a depthwise window with a bias", DEPTHWISE "y = Conv(d, k, bias) group=16\n", 0, 1},
};

/* ---- Running ---- */

typedef struct result {
  float *floats;
  int64_t n;
} result;

static const float *input_of(const laci_graph *graph, const laci_engine_port *port, int at) {
  laci_buf *buf = run_source(graph, graph->inputs[at]);
  const float *floats = pack(port, buf);
  laci_buf_destroy(buf);
  return floats;
}

static void count(const laci_engine *engine, const int8_net *net, const char *text) {
  int n_layers = 0, n_between = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    const laci_engine_step info = laci_engine_step_info(engine, at);
    const char *kernel = info.kernel;
    n_layers += strstr(kernel, "compiled int8") || strstr(kernel, "vnni") ||
                strstr(kernel, "pairs") || strcmp(kernel, "amx") == 0;
    n_between += strncmp(kernel, "int8 ", 5) == 0 || strstr(info.what, " + Add");
  }
  if (n_layers == net->n_layers && n_between == net->n_between) return;
  fail_msg("%s: %d layers, %d windows, sums and pools of int8:\n%s\n%s", net->what, n_layers,
           n_between, laci_engine_plan_text(engine), text);
}

/* The first output. */
static result run_fast(const laci_graph *graph, const int8_net *net, const char *text,
                       int threads) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_port *in, *out;
  const void *read[MAX_PORTS];
  void *written[MAX_PORTS];
  const laci_engine_options options = {.threads = threads};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  const int n_in = laci_engine_inputs(engine, &in), n_out = laci_engine_outputs(engine, &out);
  for (int at = 0; at < n_in; at++) read[at] = input_of(graph, &in[at], at);
  for (int at = 0; at < n_out; at++) written[at] = laci_alloc(out[at].size_bytes, 1);
  count(engine, net, text);
  if (laci_engine_run(engine, read, written, &err)) fail_msg("%s\n%s", err.text, text);
  const result r = {written[0], (int64_t)(out[0].size_bytes / sizeof(float))};
  for (int at = 0; at < n_in; at++) laci_free((void *)(uintptr_t)read[at]);
  for (int at = 1; at < n_out; at++) laci_free(written[at]);
  laci_engine_destroy(engine);
  return r;
}

/* Where a sum of floats and a sum of integers round differently at a half, results differ by a
 * unit: of the values before, one in a thousand may. */
static void expect_plain(const laci_graph *graph, const int8_net *net, const char *text,
                         const result *got, double apart) {
  laci_buf *inputs[MAX_PORTS];
  for (int at = 0; at < graph->n_inputs; at++) inputs[at] = run_source(graph, graph->inputs[at]);
  laci_stepper *run = plain_run(graph, inputs);
  const laci_buf *want = laci_stepper_value(run, graph->outputs[0]);
  int64_t n_apart = 0;
  assert_int_equal(want->count, got->n);
  const double scale = buf_scale(want);
  for (int64_t at = 0; at < got->n; at++) {
    const double x = (double)got->floats[at];
    n_apart += !number_close(x, want->f[at], apart * scale);
    if (!number_close(x, want->f[at], 0.06 * scale)) {
      fail_msg("%s: element %d: %g, not %g\n%s", net->what, (int)at, x, want->f[at], text);
    }
  }
  if (n_apart > got->n / 500) {
    fail_msg("%s: %d of %d are apart\n%s", net->what, (int)n_apart, (int)got->n, text);
  }
  for (int at = 0; at < graph->n_inputs; at++) laci_buf_destroy(inputs[at]);
  laci_stepper_destroy(run);
}

static void check_plan_of(const char *text, const int8_net *net, double apart) {
  laci_graph *graph;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s\n%s", err.text, text);
  const result one = run_fast(graph, net, text, 1), three = run_fast(graph, net, text, 3);
  assert_memory_equal(one.floats, three.floats, (size_t)one.n * sizeof *one.floats);
  expect_plain(graph, net, text, &one, apart);
  laci_free(one.floats);
  laci_free(three.floats);
  laci_graph_destroy(graph);
}

/* By generated code, and by AMX and by AVX2 where the processor has them. */
static void check_net(const char *text, const int8_net *net, double apart) {
  const char *const names[] = {laci_cpu_has_int8_tiles() ? "amx" : NULL,
                               laci_byte_pairs_can_run() ? "byte_pairs" : NULL};
  check_plan_of(text, net, apart);
  for (int at = 0; at < 2; at++) {
    if (!names[at]) continue;
    assert_int_equal(setenv("LAC_ALGORITHM", names[at], 1), 0);
    check_plan_of(text, net, apart);
    assert_int_equal(unsetenv("LAC_ALGORITHM"), 0);
  }
}

/* Everything by sparse kernels that can be. */
static int take_all(void **state) {
  (void)state;
  return setenv("LAC_SPARSE", "all", 1);
}

static void check_convolutions(const int8_net *list, size_t n, double apart) {
  static const int batches[] = {1, 3, 16};
  char text[TEXT];
  for (size_t at = 0; at < n; at++) {
    for (int b = 0; b < 3; b++) {
      (void)snprintf(
          text, sizeof text,
          "input x %dx16x9x10\n" SCALES WEIGHTS BYTES("d", "x", "sx", "zx") "%soutput y\n",
          batches[b], list[at].text);
      check_net(text, &list[at], apart);
    }
  }
}

static void convolutions(void **state) {
  (void)state;
  check_convolutions(nets, sizeof nets / sizeof *nets, 1e-5);
  check_convolutions(rounded, sizeof rounded / sizeof *rounded, 1e-3);
}

static void matrix_products(void **state) {
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof products / sizeof *products; at++) {
    (void)snprintf(text, sizeof text,
                   "input x 3x21x24\n" SCALES BYTES("d", "x", "sx", "zx") "%soutput y\n",
                   products[at].text);
    check_net(text, &products[at], 1e-5);
  }
  for (size_t at = 0; at < sizeof gemms / sizeof *gemms * 2; at++) {
    (void)snprintf(text, sizeof text,
                   "input x %dx24\n" SCALES BYTES("d", "x", "sx", "zx") "%soutput y\n",
                   at % 2 ? 1 : 37, gemms[at / 2].text);
    check_net(text, &gemms[at / 2], 1e-5);
  }
}

/* Where code is generated for bytes, or AVX2 multiplies them, they are faster; else floats are. */
static void the_rule_asks_what_code_there_is(void **state) {
  static const char text[] = "input x 1x16x56x56\n" SCALES WEIGHTS
      BYTES("d", "x", "sx", "zx") "a = Conv(d, u) pads=1,1,1,1\n" BYTES(
          "e", "a", "sy", "zy") "b = Conv(e, u) pads=1,1,1,1\n" BYTES("y", "b", "ss",
                                                                      "zs") "output y\n";
  const bool code = laci_jit_isa_for_int8(laci_jit_isa_allowed()) != LACI_JIT_NONE ||
                    laci_cpu_level_in_force() == LACI_CPU_AVX2;
  const int8_net net = {"by the rule", text, code ? 2 : 0, 0};
  (void)state;
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  check_net(text, &net, 1e-5);
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions),
      cmocka_unit_test(matrix_products),
      cmocka_unit_test(the_rule_asks_what_code_there_is),
  };
  return cmocka_run_group_tests(tests, take_all, NULL);
}
