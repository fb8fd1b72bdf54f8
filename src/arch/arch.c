/* SPDX-License-Identifier: Apache-2.0
 * The table of networks, and how a row becomes a graph. A block is
 *
 *     basic         3x3 / stride, 3x3
 *     bottleneck    1x1, 3x3 / stride in groups, 1x1        (the stride at the 3x3: "v1.5")
 *
 * each with BatchNormalization, and Relu after the sum with its input. */
#include "arch/arch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/build_in.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/infer.h"

enum { MAX_STAGES = 4, MAX_CLASSES = 1 << 20, LEAST_SIZE = 8, MOST_SIZE = 4096 };

typedef enum family { IMAGENET, CIFAR, DIGITS } family;

typedef struct design {
  const char *name;
  family family;
  int n_stages, blocks[MAX_STAGES];
  bool bottleneck;
  int groups, group_width; /* number of groups of the 3x3 convolution of a bottleneck; channels per
                              group in the first stage */
} design;

#define RESNET(name, bottleneck, ...) \
  { name, IMAGENET, 4, {__VA_ARGS__}, bottleneck, 1, 64 }
#define CIFAR_RESNET(depth, n) \
  { "cifar-resnet" #depth, CIFAR, 3, {n, n, n}, false, 1, 0 }

static const design designs[] = {
    RESNET("resnet18", false, 2, 2, 2, 2),
    RESNET("resnet34", false, 3, 4, 6, 3),
    RESNET("resnet50", true, 3, 4, 6, 3),
    RESNET("resnet101", true, 3, 4, 23, 3),
    RESNET("resnet152", true, 3, 8, 36, 3),
    {"resnext50_32x4d", IMAGENET, 4, {3, 4, 6, 3}, true, 32, 4},
    {"resnext101_32x4d", IMAGENET, 4, {3, 4, 23, 3}, true, 32, 4},
    CIFAR_RESNET(20, 3),
    CIFAR_RESNET(32, 5),
    CIFAR_RESNET(44, 7),
    CIFAR_RESNET(56, 9),
    CIFAR_RESNET(110, 18),
    {"digits", DIGITS, 3, {1, 1, 1}, false, 1, 0},
};

enum { N_DESIGNS = sizeof designs / sizeof *designs };

const char *const *laci_arch_names(int *n) {
  static const char *const names[] = {
      "resnet18",        "resnet34",         "resnet50",       "resnet101",      "resnet152",
      "resnext50_32x4d", "resnext101_32x4d", "cifar-resnet20", "cifar-resnet32", "cifar-resnet44",
      "cifar-resnet56",  "cifar-resnet110",  "digits",
  };
  _Static_assert(sizeof names / sizeof *names == N_DESIGNS, "the names of all designs");
  if (n) *n = N_DESIGNS;
  return names;
}

/* ---- Blocks ---- */

/** Properties of a family of networks in addition to its stages. */
typedef struct facts {
  int channels, size, classes; /* number of channels of an image; its usual height and width; usual
                                  number of classes */
  int width;                   /* number of channels of the first stage */
  float last_gamma;            /* initial scale of the last normalization of a block */
  bool fan_in;
} facts;

static facts find_family_facts(family f) {
  switch (f) {
    case IMAGENET: return (facts){3, 224, 1000, 64, 0, false};
    case CIFAR: return (facts){3, 32, 10, 16, 1, true};
    default: return (facts){1, 8, 10, 32, 1, false};
  }
}

/** The state of building a network. */
typedef struct plan {
  laci_arch_builder b;
  const design *design;
  facts facts;
  bool conv_shortcut;
  int channels; /* channels of the value that was added last */
} plan;

/** The residual block that is being added. */
typedef struct block {
  const char *name;
  int width, stride;
} block;

static const char *join_layer_name(char text[LACI_ARCH_NAME], const char *name, const char *of) {
  (void)snprintf(text, LACI_ARCH_NAME, "%s.%s", name, of);
  return text;
}

/** Adds a convolution and a normalization: NAME.convK, NAME.bnK. */
static int add_conv_norm(plan *p, const block *k, int number, int value, laci_arch_conv_spec spec,
                         float gamma) {
  char name[LACI_ARCH_NAME], of[16];
  (void)snprintf(of, sizeof of, "conv%d", number);
  value = laci_arch_add_conv(&p->b, join_layer_name(name, k->name, of), value, spec);
  (void)snprintf(of, sizeof of, "bn%d", number);
  return laci_arch_add_norm(&p->b, join_layer_name(name, k->name, of), value, spec.out, gamma);
}

static int add_relu(plan *p, const block *k, int number, int value) {
  char name[LACI_ARCH_NAME], of[16];
  (void)snprintf(of, sizeof of, "relu%d", number);
  return laci_arch_add_relu(&p->b, join_layer_name(name, k->name, of), value);
}

/** Adds the shortcut of a block: its input in the shape of its output. */
static int add_shortcut(plan *p, const block *k, int value, int out) {
  char name[LACI_ARCH_NAME];
  if (p->channels == out && k->stride == 1) return value;
  if (p->design->family == CIFAR && !p->conv_shortcut) {
    return laci_arch_add_pad_shortcut(&p->b, join_layer_name(name, k->name, "shortcut"), value,
                                      (out - p->channels) / 2);
  }
  laci_arch_conv_spec spec = {p->channels, out, 1, k->stride, 1};
  value = laci_arch_add_conv(&p->b, join_layer_name(name, k->name, "downsample.0"), value, spec);
  return laci_arch_add_norm(&p->b, join_layer_name(name, k->name, "downsample.1"), value, out, 1);
}

static int add_basic_block(plan *p, const block *k, int value) {
  laci_arch_conv_spec first = {p->channels, k->width, 3, k->stride, 1};
  laci_arch_conv_spec second = {k->width, k->width, 3, 1, 1};
  int inner = add_relu(p, k, 1, add_conv_norm(p, k, 1, value, first, 1));
  return add_conv_norm(p, k, 2, inner, second, p->facts.last_gamma);
}

static int add_bottleneck_block(plan *p, const block *k, int value) {
  const design *d = p->design;
  int inner_width = k->width * d->group_width / 64 * d->groups;
  laci_arch_conv_spec first = {p->channels, inner_width, 1, 1, 1};
  laci_arch_conv_spec second = {inner_width, inner_width, 3, k->stride, d->groups};
  laci_arch_conv_spec third = {inner_width, 4 * k->width, 1, 1, 1};
  int inner = add_relu(p, k, 1, add_conv_norm(p, k, 1, value, first, 1));
  inner = add_relu(p, k, 2, add_conv_norm(p, k, 2, inner, second, 1));
  return add_conv_norm(p, k, 3, inner, third, p->facts.last_gamma);
}

static int add_block(plan *p, const block *k, int value) {
  char name[LACI_ARCH_NAME];
  bool deep = p->design->bottleneck;
  int out = deep ? 4 * k->width : k->width;
  int inner = deep ? add_bottleneck_block(p, k, value) : add_basic_block(p, k, value);
  int sum = laci_arch_add_sum(&p->b, join_layer_name(name, k->name, "add"), inner,
                              add_shortcut(p, k, value, out));
  p->channels = out;
  return laci_arch_add_relu(&p->b, join_layer_name(name, k->name, "relu"), sum);
}

/* ---- Networks ---- */

static int add_stem(plan *p, int value) {
  bool large = p->design->family == IMAGENET;
  laci_arch_conv_spec spec = {p->facts.channels, p->facts.width, large ? 7 : 3, large ? 2 : 1, 1};
  value = laci_arch_add_conv(&p->b, "conv1", value, spec);
  value = laci_arch_add_norm(&p->b, "bn1", value, spec.out, 1);
  value = laci_arch_add_relu(&p->b, "relu", value);
  p->channels = spec.out;
  return large ? laci_arch_add_max_pool(&p->b, "maxpool", value) : value;
}

/** Digits: 32, 32 and 64 channels; else every stage is twice as wide as the one before. */
static int stage_width(const plan *p, int stage) {
  if (p->design->family == DIGITS) return stage < 2 ? p->facts.width : 2 * p->facts.width;
  return p->facts.width << stage;
}

static void add_network(plan *p, int value, int n_classes) {
  value = add_stem(p, value);
  for (int stage = 0; stage < p->design->n_stages; stage++) {
    for (int at = 0; at < p->design->blocks[stage]; at++) {
      char name[32];
      (void)snprintf(name, sizeof name, "layer%d.%d", stage + 1, at);
      block k = {name, stage_width(p, stage), at == 0 && stage > 0 ? 2 : 1};
      value = add_block(p, &k, value);
    }
  }
  value = laci_arch_add_global_pool(&p->b, "avgpool", value);
  laci_arch_add_linear(&p->b, "fc", value, p->channels, n_classes, "scores");
}

static const design *find_design(const char *name) {
  for (int k = 0; k < N_DESIGNS; k++) {
    if (strcmp(designs[k].name, name) == 0) return &designs[k];
  }
  return NULL;
}

static lac_status check_options(const laci_arch_options *o, const design *d, lac_error *err) {
  if (!d) return laci_fail(err, LAC_NOT_FOUND, "no network is called '%s'", o->name);
  if (o->n_classes < 0 || o->n_classes > MAX_CLASSES) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %d classes, wanted 1 to %d", o->name, o->n_classes,
                     MAX_CLASSES);
  }
  if (o->image_size && (o->image_size < LEAST_SIZE || o->image_size > MOST_SIZE)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: images of %d pixels, wanted %d to %d", o->name,
                     o->image_size, LEAST_SIZE, MOST_SIZE);
  }
  if (o->conv_shortcut && d->family != CIFAR) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: the kind of shortcut is a choice of CIFAR's"
                     " networks only",
                     o->name);
  }
  return LAC_OK;
}

lac_status laci_arch_build(const laci_arch_options *options, laci_graph **graph, lac_error *err) {
  const design *d = find_design(options->name);
  laci_graph *made = NULL;
  *graph = NULL;
  lac_status st = check_options(options, d, err);
  if (!st) st = laci_graph_create(&made, err);
  if (st) return st;
  facts f = find_family_facts(d->family);
  int64_t size = options->image_size ? options->image_size : f.size;
  laci_type type = {LAC_DTYPE_F32, {4, {laci_graph_add_symbol(made), f.channels, size, size}}};
  made->ir_version = 8;
  st = laci_graph_add_input(made, "image", &type, err);
  plan p = {.b = {made, st, err, options->seed, 0, f.fan_in},
            .design = d,
            .facts = f,
            .conv_shortcut = options->conv_shortcut};
  int n_classes = options->n_classes ? options->n_classes : f.classes;
  if (!st) add_network(&p, laci_graph_find_value(made, "image"), n_classes);
  st = p.b.status;
  if (!st) st = laci_graph_add_output(made, "scores", err);
  if (!st) st = laci_graph_finish(made, err);
  if (!st) st = laci_graph_infer(made, NULL, 0, err);
  if (st) laci_graph_destroy(made);
  else *graph = made;
  return st;
}
