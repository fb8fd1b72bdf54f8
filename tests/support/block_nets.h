/* SPDX-License-Identifier: Apache-2.0
 * Classifiers of equal blocks, as text for graph_build.h, for tests of training. Kinds differ in
 * their operators; in each, some values have several readers. Inputs are images of 3 x 16 x 16;
 * there are 10 classes. */
#ifndef TESTS_SUPPORT_BLOCK_NETS_H
#define TESTS_SUPPORT_BLOCK_NETS_H

#include <stdarg.h>
#include <stdio.h>

typedef enum block_kind {
  BLOCK_JOINS,     /* every block reads the outputs of all earlier blocks (DenseNet) */
  BLOCK_GATES,     /* swish, squeeze and excitation; 40 channels, no multiple of 16, so that blocks
                      of 16 are padded */
  BLOCK_BRANCHES,  /* a pool, two windows and a longer branch in parallel (Inception) */
  BLOCK_ATTENTION, /* attention, gelu and layer norms as separate operators */
  N_BLOCK_KINDS
} block_kind;

typedef struct block_text {
  char text[16384];
  size_t used;
} block_text;

__attribute__((format(printf, 2, 3))) static inline void block_say(block_text *to,
                                                                   const char *format, ...) {
  va_list args;
  va_start(args, format);
  to->used += (size_t)vsnprintf(to->text + to->used, sizeof to->text - to->used, format, args);
  va_end(args);
}

/** Adds name = Relu(BatchNormalization(from)) with n channels; the value between is name.n */
static inline void block_norm_relu(block_text *to, const char *name, const char *from, int n) {
  block_say(to, "stored %s.s %d\nstored %s.b %d\nstored %s.m %d\nstored %s.v %d positive\n", name,
            n, name, n, name, n, name, n);
  block_say(to, "%s.n = BatchNormalization(%s, %s.s, %s.b, %s.m, %s.v)\n%s = Relu(%s.n)\n", name,
            from, name, name, name, name, name, name);
}

static inline void block_conv(block_text *to, const char *name, const char *from, int out, int in) {
  block_say(to, "stored %s.w %dx%dx3x3\n%s = Conv(%s, %s.w) pads=1,1,1,1\n", name, out, in, name,
            from, name);
}

static inline void block_end(block_text *to, const char *from, int channels) {
  block_say(to, "stored fc.w 10x%d\nstored fc.b 10\npool = GlobalAveragePool(%s)\n", channels,
            from);
  block_say(to, "flat = Flatten(pool)\ny = Gemm(flat, fc.w, fc.b) transB=1\noutput y\n");
}

static inline void block_joins(block_text *to, int n_blocks) {
  char all[512] = "a0", from[16] = "a0", norm[16], name[16];
  size_t used = 2;
  block_conv(to, "a0", "x", 16, 3);
  for (int k = 1; k <= n_blocks; k++) {
    (void)snprintf(norm, sizeof norm, "r%d", k);
    (void)snprintf(name, sizeof name, "a%d", k);
    block_norm_relu(to, norm, from, 16 * k);
    block_conv(to, name, norm, 16, 16 * k);
    used += (size_t)snprintf(all + used, sizeof all - used, ", a%d", k);
    block_say(to, "j%d = Concat(%s) axis=1\n", k, all);
    (void)snprintf(from, sizeof from, "j%d", k);
  }
  block_norm_relu(to, "last", from, 16 * (n_blocks + 1));
  block_end(to, "last", 16 * (n_blocks + 1));
}

static inline void block_gates(block_text *to, int n_blocks) {
  char from[16] = "a0";
  block_conv(to, "a0", "x", 40, 3);
  for (int k = 1; k <= n_blocks; k++) {
    char name[16];
    (void)snprintf(name, sizeof name, "c%d", k);
    block_conv(to, name, from, 40, 40);
    block_say(to, "stored s%d 40\nstored b%d 40\nstored m%d 40\nstored v%d 40 positive\n", k, k, k,
              k);
    block_say(to, "stored p%d.w 8x40x1x1\nstored p%d.b 8\n", k, k);
    block_say(to, "stored q%d.w 40x8x1x1\nstored q%d.b 40\n", k, k);
    block_say(to, "n%d = BatchNormalization(c%d, s%d, b%d, m%d, v%d)\n", k, k, k, k, k, k);
    block_say(to, "g%d = Sigmoid(n%d)\nh%d = Mul(n%d, g%d)\n", k, k, k, k, k);
    block_say(to, "o%d = GlobalAveragePool(h%d)\np%d = Conv(o%d, p%d.w, p%d.b)\n", k, k, k, k, k,
              k);
    block_say(to, "r%d = Relu(p%d)\nq%d = Conv(r%d, q%d.w, q%d.b)\n", k, k, k, k, k, k);
    block_say(to, "u%d = Sigmoid(q%d)\nz%d = Mul(h%d, u%d)\n", k, k, k, k, k);
    block_say(to, "d%d = Add(%s, z%d)\na%d = Relu(d%d)\n", k, from, k, k, k);
    (void)snprintf(from, sizeof from, "a%d", k);
  }
  block_end(to, from, 40);
}

static inline void block_branches(block_text *to, int n_blocks) {
  char from[16] = "a0";
  block_conv(to, "s0", "x", 32, 3);
  block_norm_relu(to, "a0", "s0", 32);
  for (int k = 1; k <= n_blocks; k++) {
    char one[16], norm[16], two[16], back[16];
    (void)snprintf(one, sizeof one, "c%d", k);
    (void)snprintf(norm, sizeof norm, "r%d", k);
    (void)snprintf(two, sizeof two, "d%d", k);
    (void)snprintf(back, sizeof back, "t%d", k);
    block_conv(to, one, from, 16, 32);
    block_norm_relu(to, norm, one, 16);
    block_conv(to, two, norm, 16, 16);
    block_say(to, "p%d = MaxPool(%s) kernel_shape=3,3 pads=1,1,1,1\n", k, from);
    block_say(to, "j%d = Concat(p%d, c%d, d%d) axis=1\n", k, k, k, k);
    (void)snprintf(one, sizeof one, "j%d", k);
    block_conv(to, back, one, 32, 64);
    (void)snprintf(from, sizeof from, "a%d", k);
    block_norm_relu(to, from, back, 32);
  }
  block_say(to, "end = Add(%s, s0)\n", from);
  block_end(to, "end", 32);
}

static inline void block_layer_norm(block_text *to, const char *name, const char *from) {
  block_say(to, "stored %s.s 16\nstored %s.b 16\n", name, name);
  block_say(to, "%s.m = ReduceMean(%s, last)\n%s.d = Sub(%s, %s.m)\n", name, from, name, from,
            name);
  block_say(to, "%s.q = Pow(%s.d, two)\n%s.v = ReduceMean(%s.q, last)\n", name, name, name, name);
  block_say(to, "%s.e = Add(%s.v, tiny)\n%s.r = Sqrt(%s.e)\n", name, name, name, name);
  block_say(to, "%s.n = Div(%s.d, %s.r)\n%s.p = Mul(%s.n, %s.s)\n", name, name, name, name, name,
            name);
  block_say(to, "%s = Add(%s.p, %s.b)\n", name, name, name);
}

static inline void block_attention(block_text *to, int n_blocks) {
  char from[16] = "t0", norm[16];
  block_say(to, "stored last 1 i64 = -1\nstored two \"\" = 2\nstored tiny \"\" = 0.00001\n");
  block_say(to, "stored quarter \"\" = 0.25\nstored root \"\" = 1.4142135\nstored one \"\" = 1\n");
  block_say(to, "stored half \"\" = 0.5\nstored tokens 3 i64 = 0 16 -1\n");
  block_say(to, "stored patch 16x3x2x2\nc0 = Conv(x, patch) strides=2,2\n");
  block_say(to, "f0 = Reshape(c0, tokens)\nt0 = Transpose(f0) perm=0,2,1\n");
  for (int k = 1; k <= n_blocks; k++) {
    (void)snprintf(norm, sizeof norm, "l%d", k);
    block_layer_norm(to, norm, from);
    for (const char *at = "qkvo"; *at; at++) block_say(to, "stored %c%d.w 16x16\n", *at, k);
    for (const char *at = "qkv"; *at; at++)
      block_say(to, "%c%d = MatMul(%s, %c%d.w)\n", *at, k, norm, *at, k);
    block_say(to, "kt%d = Transpose(k%d) perm=0,2,1\ns%d = MatMul(q%d, kt%d)\n", k, k, k, k, k);
    block_say(to, "d%d = Mul(s%d, quarter)\np%d = Softmax(d%d)\n", k, k, k, k);
    block_say(to, "a%d = MatMul(p%d, v%d)\no%d = MatMul(a%d, o%d.w)\n", k, k, k, k, k, k);
    block_say(to, "h%d = Add(%s, o%d)\n", k, from, k);
    (void)snprintf(norm, sizeof norm, "m%d", k);
    (void)snprintf(from, sizeof from, "h%d", k);
    block_layer_norm(to, norm, from);
    block_say(to, "stored u%d.w 16x64\nstored u%d.b 64\nstored w%d.w 64x16\n", k, k, k);
    block_say(to, "x%d = MatMul(%s, u%d.w)\nu%d = Add(x%d, u%d.b)\n", k, norm, k, k, k, k);
    block_say(to, "e%d = Div(u%d, root)\nf%d = Erf(e%d)\ng%d = Add(f%d, one)\n", k, k, k, k, k, k);
    block_say(to, "i%d = Mul(u%d, g%d)\nj%d = Mul(i%d, half)\n", k, k, k, k, k);
    block_say(to, "w%d = MatMul(j%d, w%d.w)\nt%d = Add(h%d, w%d)\n", k, k, k, k, k, k);
    (void)snprintf(from, sizeof from, "t%d", k);
  }
  block_say(to, "back = Transpose(%s) perm=0,2,1\n", from);
  block_end(to, "back", 16);
}

static inline void block_net(block_kind kind, int n_blocks, block_text *to) {
  to->used = 0;
  block_say(to, "input x 1x3x16x16\n");
  if (kind == BLOCK_JOINS) block_joins(to, n_blocks);
  if (kind == BLOCK_GATES) block_gates(to, n_blocks);
  if (kind == BLOCK_BRANCHES) block_branches(to, n_blocks);
  if (kind == BLOCK_ATTENTION) block_attention(to, n_blocks);
}

#endif
