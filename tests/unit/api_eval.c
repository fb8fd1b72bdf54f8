/* SPDX-License-Identifier: Apache-2.0
 * api: lac_eval and lac_infer on a network that only flattens and picks, so that its logits are
 * prepared pixels themselves, from all three channels: whatever order, batch or padding does to
 * them would be seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/run/eval_in.h"
#include "base/memory.h"
#include "data/metrics.h"
#include "data/npy.h"
#include "lacuna/eval.h"
#include "lacuna/infer.h"
#include "lacuna/report.h"
#include "lacuna/train.h"
#include "support/load_bytes.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

enum { N = 11, CLASSES = 10, STRIDE = 331, MOST_BYTES = 1024 };

/* ---- A network in ONNX's wire format: lengths below 128 are one byte ---- */

typedef struct bytes {
  size_t n;
  uint8_t at[MOST_BYTES];
} bytes;

static void put(bytes *b, const void *from, size_t n) {
  assert_true(b->n + n <= MOST_BYTES);
  memcpy(b->at + b->n, from, n);
  b->n += n;
}

static void put_number(bytes *b, int field, uint64_t value) {
  put(b, &(uint8_t){(uint8_t)(field << 3)}, 1);
  for (; value >= 128; value >>= 7) put(b, &(uint8_t){(uint8_t)(value | 128)}, 1);
  put(b, &(uint8_t){(uint8_t)value}, 1);
}

static void put_bytes(bytes *b, int field, const void *from, size_t n) {
  put(b, &(uint8_t){(uint8_t)(field << 3 | 2)}, 1);
  for (size_t left = n;; left >>= 7) {
    put(b, &(uint8_t){(uint8_t)(left >= 128 ? left | 128 : left)}, 1);
    if (left < 128) break;
  }
  put(b, from, n);
}

static void put_text(bytes *b, int field, const char *text) {
  put_bytes(b, field, text, strlen(text));
}

/* A float tensor; a size of 0 stays open. */
static bytes value_info(const char *name, int rank, const int64_t *sizes) {
  bytes shape = {0}, tensor = {0}, type = {0}, info = {0};
  for (int axis = 0; axis < rank; axis++) {
    bytes dim = {0};
    if (sizes[axis]) put_number(&dim, 1, (uint64_t)sizes[axis]);
    else put_text(&dim, 2, "N");
    put_bytes(&shape, 1, dim.at, dim.n);
  }
  put_number(&tensor, 1, 1);
  put_bytes(&tensor, 2, shape.at, shape.n);
  put_bytes(&type, 1, tensor.at, tensor.n);
  put_text(&info, 1, name);
  put_bytes(&info, 2, type.at, type.n);
  return info;
}

typedef struct design {
  const char *op;         /* from x to the outputs; "Pick": Flatten, and of that every STRIDE-th
                             column, CLASSES of them */
  int64_t batch;          /* 0: open */
  int64_t channels, side; /* of x, [batch, channels, side, side] */
  const char *outputs[2]; /* NULL: none */
} design;

static void put_node(bytes *graph, const char *op, const char *in, const char *out) {
  bytes node = {0};
  put_text(&node, 1, in);
  put_text(&node, 2, out);
  put_text(&node, 4, op);
  put_bytes(graph, 1, node.at, node.n);
}

/* out = Gather(in, {0, STRIDE, 2 STRIDE ...}, axis 1) */
static void put_pick(bytes *graph, const char *in, const char *out) {
  bytes node = {0}, axis = {0}, columns = {0}, tensor = {0};
  put_text(&axis, 1, "axis");
  put_number(&axis, 3, 1);
  axis.at[axis.n++] = 0xA0; /* field 20, the type: 2, an integer */
  axis.at[axis.n++] = 1;
  axis.at[axis.n++] = 2;
  put_text(&node, 1, in);
  put_text(&node, 1, "columns");
  put_text(&node, 2, out);
  put_text(&node, 4, "Gather");
  put_bytes(&node, 5, axis.at, axis.n);
  put_bytes(graph, 1, node.at, node.n);
  for (int k = 0; k < CLASSES; k++) {
    int64_t column = k * STRIDE;
    put(&columns, &column, sizeof column);
  }
  put_number(&tensor, 1, CLASSES);
  put_number(&tensor, 2, 7);
  put_text(&tensor, 8, "columns");
  put_bytes(&tensor, 9, columns.at, columns.n);
  put_bytes(graph, 5, tensor.at, tensor.n);
}

static lac_model *load(design d) {
  bytes graph = {0}, opset = {0}, model = {0};
  bytes in = value_info("x", 4, (int64_t[]){d.batch, d.channels, d.side, d.side});
  for (int k = 0; k < 2 && d.outputs[k]; k++) {
    bytes out = {0}; /* a name is enough */
    bool picks = strcmp(d.op, "Pick") == 0;
    put_node(&graph, picks ? "Flatten" : d.op, "x", picks ? "all" : d.outputs[k]);
    if (picks) put_pick(&graph, "all", d.outputs[k]);
    put_text(&out, 1, d.outputs[k]);
    put_bytes(&graph, 12, out.at, out.n);
  }
  put_text(&graph, 2, "g");
  put_bytes(&graph, 11, in.at, in.n);
  put_number(&opset, 2, 17);
  put_number(&model, 1, 8);
  put_bytes(&model, 7, graph.at, graph.n);
  put_bytes(&model, 8, opset.at, opset.n);
  lac_model *made;
  lac_error err = {0};
  if (load_bytes(model.at, model.n, &made, &err)) fail_msg("%s", err.text);
  return made;
}

static lac_model *load_flatten(int64_t batch) {
  return load((design){"Pick", batch, 3, 32, {"y", NULL}});
}

/* ---- eval ---- */

static lac_eval_options quick(void) {
  lac_eval_options options = lac_eval_options_default();
  options.run.threads = 1;
  options.batch = 4;
  return options;
}

static folder make_cifar(void) {
  folder f = make_folder();
  add_cifar(&f, "test_batch.bin", 1, N, 0, 10);
  return f;
}

static float pixel(int image, int column, const lac_eval_options *options) {
  int at = column * STRIDE, channel = at / 1024;
  return ((float)(uint8_t)(at * 7 + image * 31) - options->mean[channel]) / options->std[channel];
}

/* The predictions against the pixels; top1 and top5 against counts made here. */
static void expect_evaluated(const folder *f, const lac_model *model,
                             const lac_eval_options *options, int n) {
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  laci_npy array;
  int top1 = 0, top5 = 0;
  if (lac_eval(model, f->path, options, &result, &err)) fail_msg("%s", err.text);
  if (laci_npy_read(options->predictions, &array, &err)) fail_msg("%s", err.text);
  assert_int_equal(array.type.shape.rank, 2);
  assert_int_equal(array.type.shape.dims[0], n);
  assert_int_equal(array.type.shape.dims[1], CLASSES);
  const float *logits = (const float *)array.bytes;
  for (int image = 0; image < n; image++) {
    const float *row = logits + image * CLASSES;
    int label = image % 10, before = 0;
    for (int at = 0; at < CLASSES; at++) {
      float want = pixel(image, at, options);
      if (!(row[at] == want)) fail_msg("image %d, column %d: %g", image, at, (double)row[at]);
      before += row[at] > row[label] || (row[at] == row[label] && at < label);
    }
    top1 += before < 1;
    top5 += before < 5;
  }
  assert_int_equal(result.images, n);
  assert_true(result.top1 == 100.0 * top1 / n && result.top5 == 100.0 * top5 / n);
  assert_true(result.loss > 0 && result.images_per_second > 0);
  laci_npy_clear(&array);
}

static void predictions_are_in_the_datas_order_for_any_batch(void **state) {
  (void)state;
  static const int batches[] = {1, 3, 4, N, 64};
  folder f = make_cifar();
  char path[FOLDER_PATH];
  path_in(path, &f, "p.npy");
  lac_model *open = load_flatten(0);
  for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
    lac_eval_options options = quick();
    options.batch = batches[k];
    options.run.threads = k % 2 ? 3 : 1;
    options.predictions = path;
    options.force = true;
    expect_evaluated(&f, open, &options, N);
    lac_model *fixed = load_flatten(batches[k]);
    options.batch = 2; /* the network's own counts */
    expect_evaluated(&f, fixed, &options, N);
    lac_model_destroy(fixed);
  }
  lac_model_destroy(open);
  remove_folder(&f);
}

/* ---- eval in parts ---- */

/** Each part's scores are its own images' alone; together they are the result, to the bit. */
static void expect_parts(const lac_model *model, const char *data, const lac_eval_options *options,
                         int n_parts) {
  lac_eval_result whole = LAC_SIZED(lac_eval_result), merged = LAC_SIZED(lac_eval_result);
  laci_eval_scores all = {0};
  lac_error err = {0};
  int64_t end = 0;
  if (lac_eval(model, data, options, &whole, &err)) fail_msg("%s", err.text);
  for (int part = 0; part < n_parts; part++) {
    const laci_eval_part p = {.part = part, .n_parts = n_parts, .quiet = true};
    laci_eval_scores scores;
    if (laci_model_evaluate_part(model, data, options, &p, &scores, &err)) {
      fail_msg("%s", err.text);
    }
    const int64_t begin = laci_eval_part_begin(&scores, part, n_parts);
    assert_int_equal(begin, end);
    end = laci_eval_part_begin(&scores, part + 1, n_parts);
    assert_true(begin <= end && (begin == end || begin % scores.batch == 0));
    assert_int_equal(scores.images, whole.images);
    assert_int_equal(scores.n_sparse, whole.n_sparse);
    if (!all.scores) {
      all = scores;
      all.scores = laci_alloc((size_t)scores.images, sizeof *all.scores);
    }
    for (int64_t image = 0; image < scores.images; image++) {
      const bool own = image >= begin && image < end;
      if (own) all.scores[image] = scores.scores[image];
      else assert_true(scores.scores[image].loss == 0 && scores.scores[image].before == 0);
    }
    laci_free(scores.scores);
  }
  assert_int_equal(end, whole.images);
  laci_eval_result_from_scores(&all, &merged);
  assert_int_equal(merged.images, whole.images);
  assert_true(merged.top1 == whole.top1 && merged.top5 == whole.top5);
  assert_true(merged.loss == whole.loss);
  laci_free(all.scores);
}

static void parts_together_are_the_whole(void **state) {
  (void)state;
  static const int parts[] = {1, 2, 3, 5, 16}, batches[] = {1, 2, 4, N, 64};
  static const int64_t limits[] = {0, 1, 2, 7};
  folder f = make_cifar();
  lac_model *model = load_flatten(0);
  for (int k = 0; k < 5; k++) {
    for (int l = 0; l < 4; l++) {
      lac_eval_options options = quick();
      options.batch = batches[k];
      options.limit = limits[l];
      options.run.threads = 1 + k % 2;
      for (int n = 0; n < 5; n++) expect_parts(model, f.path, &options, parts[n]);
    }
  }
  lac_model_destroy(model);
  remove_folder(&f);
}

/* Products and sums of which the bits could depend on an image's neighbours in the batch. */
static void parts_of_a_real_network_are_the_whole(void **state) {
  (void)state;
  folder f = make_cifar();
  lac_error err = {0};
  lac_model *model;
  const lac_network_options network = {.size = sizeof(lac_network_options),
                                       .name = "cifar-resnet20",
                                       .image_size = 32,
                                       .classes = CLASSES,
                                       .seed = 5};
  if (lac_network_create(&network, &model, &err)) fail_msg("%s", err.text);
  lac_eval_options options = quick();
  options.run.threads = 2;
  for (int n = 1; n <= 5; n++) expect_parts(model, f.path, &options, n);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void parts_that_are_none_are_refused(void **state) {
  (void)state;
  static const laci_eval_part bad[] = {
      {.n_parts = 0}, {.part = -1, .n_parts = 2}, {.part = 2, .n_parts = 2}};
  folder f = make_cifar();
  lac_model *model = load_flatten(0);
  lac_eval_options options = quick();
  laci_eval_scores scores;
  lac_error err = {0};
  for (int k = 0; k < 3; k++) {
    assert_int_equal(laci_model_evaluate_part(model, f.path, &options, &bad[k], &scores, &err),
                     LAC_BAD_ARGUMENT);
    assert_non_null(strstr(err.text, "of an evaluation"));
    assert_null(scores.scores);
  }
  options.predictions = "p.npy";
  const laci_eval_part good = {.n_parts = 1, .quiet = true};
  assert_int_equal(laci_model_evaluate_part(model, f.path, &options, &good, &scores, &err),
                   LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "p.npy: predictions of a part"));
  lac_model_destroy(model);
  remove_folder(&f);
}

static void a_part_without_memory_leaves_nothing(void **state) {
  (void)state;
  folder f = make_cifar();
  lac_model *model = load_flatten(0);
  lac_eval_options options = quick();
  long at = 1;
  for (; at < 2000; at++) {
    const laci_eval_part part = {.part = 1, .n_parts = 2, .quiet = true};
    laci_eval_scores scores;
    lac_error err = {0};
    laci_memory_fail_from(at);
    lac_status st = laci_model_evaluate_part(model, f.path, &options, &part, &scores, &err);
    laci_memory_fail_from(0);
    assert_true((st == LAC_OK) == (scores.scores != NULL));
    laci_free(scores.scores);
    if (!st) break;
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  assert_true(at > 20 && at < 2000);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void limit_mean_and_std_are_followed(void **state) {
  (void)state;
  folder f = make_cifar();
  char path[FOLDER_PATH];
  path_in(path, &f, "p.npy");
  lac_model *model = load_flatten(0);
  lac_eval_options options = quick();
  memcpy(options.mean, (float[]){127, 0, 64.5f}, sizeof options.mean);
  memcpy(options.std, (float[]){128, 255, 1}, sizeof options.std);
  options.limit = 6;
  options.predictions = path;
  expect_evaluated(&f, model, &options, 6);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void a_list_of_classes_numbers_the_folders_of_images(void **state) {
  (void)state;
  folder f = make_folder();
  char data[FOLDER_PATH], list[FOLDER_PATH], path[FOLDER_PATH];
  lac_error err = {0};
  double losses[2];
  float difference = 0;
  path_in(data, &f, "data");
  assert_int_equal(mkdir(data, 0777), 0);
  add_picture(&f, "data/a/1.jpg");
  add_picture(&f, "data/b/1.jpg");
  path_in(list, &f, "list.txt");
  path_in(path, &f, "p.npy");
  lac_model *model = load((design){"Flatten", 0, 3, 8, {"y", NULL}});
  for (int reversed = 0; reversed < 2; reversed++) {
    lac_eval_options options = quick();
    lac_eval_result result = LAC_SIZED(lac_eval_result);
    laci_npy array;
    char lines[2048];
    size_t used = (size_t)snprintf(lines, sizeof lines, "%s", reversed ? "b\na\n" : "a\nb\n");
    for (int k = 2; k < 3 * 8 * 8; k++) /* a line for each output */
      used += (size_t)snprintf(lines + used, sizeof lines - used, "n%d\n", k);
    add_text(&f, "list.txt", lines);
    options.classes = list;
    options.resize = 16;
    options.crop = 8;
    options.limit = 1; /* of a */
    options.predictions = path;
    options.force = true;
    if (lac_eval(model, data, &options, &result, &err)) fail_msg("%s", err.text);
    losses[reversed] = result.loss;
    assert_int_equal(laci_npy_read(path, &array, NULL), LAC_OK);
    difference = ((float *)array.bytes)[0] - ((float *)array.bytes)[1];
    laci_npy_clear(&array);
  }
  double wrong = losses[1] - losses[0] - (double)difference;
  assert_true(wrong < 1e-6 && wrong > -1e-6);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void expect_refused(const char *data, lac_model *model, const lac_eval_options *options,
                           lac_status status, const char *words) {
  lac_eval_result result = {.size = sizeof(lac_eval_result), .images = 1};
  lac_error err = {0};
  assert_int_equal(lac_eval(model, data, options, &result, &err), status);
  if (!strstr(err.text, words)) fail_msg("wanted '%s' in: %s", words, err.text);
  assert_int_equal(result.images, 0);
}

static void networks_that_do_not_fit_are_refused_by_name(void **state) {
  (void)state;
  static const struct {
    design network;
    const char *words;
  } cases[] = {
      {{"Flatten", 0, 1, 32, {"y", NULL}}, "input 'x'"},              /* grey */
      {{"Flatten", 0, 3, 28, {"y", NULL}}, "a crop of 28 would fit"}, /* size */
      {{"Flatten", 0, 3, 64, {"y", NULL}}, "resized to 64, a crop of 64 would fit"},
      {{"Relu", 0, 3, 32, {"y", NULL}}, "output 'y'"},              /* not [N, classes] */
      {{"GlobalAveragePool", 0, 3, 32, {"y", NULL}}, "output 'y'"}, /* [N, 3, 1, 1] */
  };
  folder f = make_cifar();
  lac_eval_options options = quick();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    lac_model *model = load(cases[k].network);
    expect_refused(f.path, model, &options, LAC_BAD_SHAPE, cases[k].words);
    lac_model_destroy(model);
  }
  remove_folder(&f);
}

static void class_counts_that_differ_are_refused(void **state) {
  (void)state;
  static const struct {
    int64_t side; /* of a network with 3 * side * side outputs */
    const char *words;
  } cases[] = {
      {1, "10 classes, but output 'y' has 3: wanted a network of 10 outputs, or data of 3 classes"},
      {32, "10 classes, but output 'y' has 3072"},
  };
  folder f = make_cifar();
  lac_eval_options options = quick();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    lac_model *model = load((design){"Flatten", 0, 3, cases[k].side, {"y", NULL}});
    options.resize = options.crop = (int)cases[k].side;
    expect_refused(f.path, model, &options, LAC_BAD_SHAPE, cases[k].words);
    lac_model_destroy(model);
  }
  remove_folder(&f);
}

static void folders_that_no_list_maps_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *folders[2], *list, *words; /* words NULL: evaluated */
  } cases[] = {
      {{"a", "b"}, NULL, "2 classes, a folder each, but output 'y' has 3: wanted a list"},
      {{"n01440764", "n01443537"}, NULL, "1000 classes, ImageNet's, by the WordNet ids"},
      {{"a", "b"}, "a\nb\nc\nd\n", "4 classes in the list, but output 'y' has 3"},
      {{"a", "b"}, "b\na\n", "2 classes in the list, but output 'y' has 3"},
      {{"a", "b"}, "b\na\nc\n", NULL},
      {{"n01440764", "n01443537"}, "x\nn01440764\nn01443537\n", NULL},
  };
  lac_model *model = load((design){"Flatten", 0, 3, 1, {"y", NULL}});
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    folder f = make_folder(), lists = make_folder();
    char name[64], list[FOLDER_PATH];
    lac_eval_options options = quick();
    lac_eval_result result = LAC_SIZED(lac_eval_result);
    lac_error err = {0};
    options.resize = options.crop = 1;
    for (int c = 0; c < 2; c++) {
      (void)snprintf(name, sizeof name, "%s/1.jpg", cases[k].folders[c]);
      add_picture(&f, name);
    }
    if (cases[k].list) add_text(&lists, "list.txt", cases[k].list);
    path_in(list, &lists, "list.txt");
    options.classes = cases[k].list ? list : NULL;
    if (cases[k].words) {
      expect_refused(f.path, model, &options, LAC_BAD_SHAPE, cases[k].words);
    } else if (lac_eval(model, f.path, &options, &result, &err)) {
      fail_msg("%s", err.text);
    }
    remove_folder(&f);
    remove_folder(&lists);
  }
  lac_model_destroy(model);
}

static void the_part_for_evaluation_is_found(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  lac_eval_options options = quick();
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  lac_error err = {0};
  lac_model *model = load((design){"Flatten", 0, 3, 1, {"y", NULL}});
  options.resize = options.crop = 1;
  path_in(path, &f, "train");
  assert_int_equal(mkdir(path, 0777), 0);
  add_picture(&f, "train/a/1.jpg");
  expect_refused(f.path, model, &options, LAC_NOT_FOUND, "none for evaluation: wanted val");
  path_in(path, &f, "val");
  assert_int_equal(mkdir(path, 0777), 0);
  add_picture(&f, "train/b/1.jpg");
  add_picture(&f, "train/c/1.jpg");
  static const char *const images[] = {"val/a/1.jpg", "val/b/1.jpg", "val/b/2.jpg", "val/c/1.jpg"};
  for (int k = 0; k < 4; k++) add_picture(&f, images[k]);
  if (lac_eval(model, f.path, &options, &result, &err)) fail_msg("%s", err.text);
  assert_int_equal(result.images, 4);
  remove_folder(&f);
  /* folders of images alone are classes, whatever they are called */
  f = make_folder();
  static const char *const classes[] = {"bus/1.jpg", "train/1.jpg", "val/1.jpg"};
  for (int k = 0; k < 3; k++) add_picture(&f, classes[k]);
  if (lac_eval(model, f.path, &options, &result, &err)) fail_msg("%s", err.text);
  assert_int_equal(result.images, 3);
  lac_model_destroy(model);
  remove_folder(&f);
}

/* A folder train next to the images is what the network was trained on only where it can be. */
static void a_folder_next_to_counts_where_it_has_as_many_classes(void **state) {
  (void)state;
  static const struct {
    const char *train[4], *words; /* words NULL: evaluated */
  } cases[] = {
      {{"a", "b", "c"}, "'d' is none of the classes that the network was trained on"},
      {{"b", "c", "d"}, NULL},
      {{"a", "b"}, NULL},
      {{"cats"}, NULL},
      {{"a", "b", "c", "e"}, NULL},
  };
  lac_model *model = load((design){"Flatten", 0, 3, 1, {"y", NULL}});
  lac_eval_options options = quick();
  options.resize = options.crop = 1;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    folder f = make_folder();
    char path[FOLDER_PATH], name[64];
    lac_eval_result result = LAC_SIZED(lac_eval_result);
    lac_error err = {0};
    path_in(path, &f, "train");
    assert_int_equal(mkdir(path, 0777), 0);
    path_in(path, &f, "val");
    assert_int_equal(mkdir(path, 0777), 0);
    for (int c = 0; c < 4 && cases[k].train[c]; c++) {
      (void)snprintf(name, sizeof name, "train/%s/1.jpg", cases[k].train[c]);
      add_picture(&f, name);
    }
    static const char *const images[] = {"val/b/1.jpg", "val/c/1.jpg", "val/d/1.jpg"};
    for (int at = 0; at < 3; at++) add_picture(&f, images[at]);
    if (cases[k].words) expect_refused(f.path, model, &options, LAC_BAD_SHAPE, cases[k].words);
    else if (lac_eval(model, f.path, &options, &result, &err)) fail_msg("%zu: %s", k, err.text);
    remove_folder(&f);
  }
  lac_model_destroy(model);
}

static void options_outside_their_limits_are_refused(void **state) {
  (void)state;
  folder f = make_cifar();
  lac_model *model = load_flatten(0);
  lac_eval_options options = quick();
  options.batch = 0;
  expect_refused(f.path, model, &options, LAC_BAD_ARGUMENT, "batches of 0");
  options = quick();
  options.std[1] = 0;
  expect_refused(f.path, model, &options, LAC_BAD_ARGUMENT, "std");
  options = quick();
  options.limit = -1;
  expect_refused(f.path, model, &options, LAC_BAD_ARGUMENT, "limit");
  options = quick();
  options.crop = 33;
  options.resize = 20;
  expect_refused(f.path, model, &options, LAC_BAD_ARGUMENT, "crop");
  lac_model_destroy(model);
  remove_folder(&f);
}

static void a_failure_leaves_no_predictions(void **state) {
  (void)state;
  folder f = make_cifar();
  char path[FOLDER_PATH];
  path_in(path, &f, "p.npy");
  lac_model *model = load_flatten(0);
  lac_eval_options options = quick();
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  options.predictions = path;
  for (long at = 1; at < 2000; at += 1 + at / 16) {
    laci_memory_fail_from(at);
    lac_status st = lac_eval(model, f.path, &options, &result, NULL);
    laci_memory_fail_from(0);
    if (!st) break;
    assert_int_not_equal(access(path, F_OK), 0);
  }
  assert_int_equal(access(path, F_OK), 0);
  expect_refused(f.path, model, &options, LAC_EXISTS, "p.npy");
  lac_model_destroy(model);
  remove_folder(&f);
}

static void the_result_becomes_json(void **state) {
  (void)state;
  lac_model *model = load_flatten(0);
  lac_eval_result result = {
      .size = sizeof(lac_eval_result), .images = 10000, .top1 = 93.39, .top5 = 99.8, .loss = 0.25};
  char *text = NULL;
  assert_int_equal(lac_eval_json(model, &result, &text, NULL), LAC_OK);
  assert_non_null(strstr(text, "\"verb\": \"eval\""));
  assert_non_null(strstr(text, "\"images\": 10000,"));
  assert_non_null(strstr(text, "\"top1\": 93.39,"));
  lac_text_free(text);
  lac_model_destroy(model);
}

/* ---- infer ---- */

static void add_array(const folder *f, const char *name, lac_dtype dtype, laci_shape shape,
                      const void *values) {
  char path[FOLDER_PATH];
  laci_type type = {dtype, shape};
  path_in(path, f, name);
  assert_int_equal(laci_npy_write(path, &type, values, true, NULL), LAC_OK);
}

static void both_engines_write_the_same_within_rounding(void **state) {
  (void)state;
  folder f = make_folder();
  lac_model *model;
  lac_error err = {0};
  float pixels[2 * 64];
  for (int k = 0; k < 2 * 64; k++) pixels[k] = (float)(k * 5 % 17) / 16;
  add_array(&f, "x.npy", LAC_DTYPE_F32, (laci_shape){4, {2, 1, 8, 8}}, pixels);
  char in[FOLDER_PATH], folders[2][FOLDER_PATH];
  path_in(in, &f, "x.npy");
  path_in(folders[0], &f, "fast");
  path_in(folders[1], &f, "plain");
  assert_int_equal(lac_model_load(DIGITS, NULL, &model, NULL), LAC_OK);
  laci_npy got[2];
  for (int plain = 0; plain < 2; plain++) {
    lac_infer_options options = lac_infer_options_default();
    options.run.threads = 1;
    if (plain) options.run.engine = "plain";
    lac_infer_input input = {"image", in};
    lac_infer_result *result;
    if (lac_infer(model, &input, 1, folders[plain], &options, &result, &err)) {
      fail_msg("%s", err.text);
    }
    assert_int_equal(result->n_outputs, 1);
    assert_string_equal(result->outputs[0].name, "scores");
    assert_int_equal(laci_npy_read(result->outputs[0].path, &got[plain], NULL), LAC_OK);
    lac_infer_result_destroy(result);
  }
  assert_int_equal(got[0].size_bytes, 2 * 10 * sizeof(float));
  for (int k = 0; k < 20; k++) {
    float diff = ((float *)got[0].bytes)[k] - ((float *)got[1].bytes)[k];
    if (!(diff < 1e-4f && diff > -1e-4f)) fail_msg("value %d differs by %g", k, (double)diff);
  }
  laci_npy_clear(&got[0]);
  laci_npy_clear(&got[1]);
  lac_model_destroy(model);
  remove_folder(&f);
}

static lac_status infer(const lac_model *model, const folder *f, const lac_infer_options *options,
                        lac_error *err) {
  char in[FOLDER_PATH], out[FOLDER_PATH];
  path_in(in, f, "x.npy");
  path_in(out, f, "out");
  lac_infer_input input = {"x", in};
  return lac_infer(model, &input, 1, out, options, NULL, err);
}

static void odd_names_are_made_harmless_and_clashes_refused(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  float x[3] = {1, -2, 3};
  lac_error err = {0};
  add_array(&f, "x.npy", LAC_DTYPE_F32, (laci_shape){4, {1, 3, 1, 1}}, x);
  lac_model *model = load((design){"Relu", 0, 3, 1, {"../a b:0", "a.b"}});
  if (infer(model, &f, NULL, &err)) fail_msg("%s", err.text);
  path_in(path, &f, "out/_._a_b_0.npy");
  assert_int_equal(access(path, F_OK), 0);
  path_in(path, &f, "out/a.b.npy");
  assert_int_equal(access(path, F_OK), 0);
  assert_int_equal(infer(model, &f, NULL, &err), LAC_EXISTS);
  lac_infer_options force = lac_infer_options_default();
  force.force = true;
  assert_int_equal(infer(model, &f, &force, &err), LAC_OK);
  lac_model_destroy(model);
  model = load((design){"Relu", 0, 3, 1, {"a/b", "a:b"}});
  assert_int_equal(infer(model, &f, NULL, &err), LAC_EXISTS);
  assert_non_null(strstr(err.text, "would both be written"));
  lac_model_destroy(model);
  remove_folder(&f);
}

static void arrays_that_do_not_fit_are_refused_and_nothing_is_left(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  float x[3] = {1, -2, 3};
  lac_error err = {0};
  path_in(path, &f, "out");
  lac_model *model = load((design){"Relu", 0, 3, 1, {"y", NULL}});
  assert_int_equal(infer(model, &f, NULL, &err), LAC_NOT_FOUND); /* no such file */
  add_array(&f, "x.npy", LAC_DTYPE_F32, (laci_shape){1, {3}}, x);
  assert_int_equal(infer(model, &f, NULL, &err), LAC_BAD_SHAPE);
  assert_int_equal(lac_infer(model, NULL, 0, path, NULL, NULL, &err), LAC_NOT_FOUND);
  assert_int_not_equal(access(path, F_OK), 0);
  lac_engine_shape shape = {.name = "x", .rank = 4, .shape = {1, 3, 1, 1}};
  lac_infer_options options = lac_infer_options_default();
  options.shapes = &shape;
  options.n_shapes = 1;
  assert_int_equal(infer(model, &f, &options, &err), LAC_OK);
  shape.shape[0] = 2;
  options.force = true;
  assert_int_equal(infer(model, &f, &options, &err), LAC_BAD_SHAPE);
  lac_model_destroy(model);
  remove_folder(&f);
}

static void memory_that_fails_leaves_no_output(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  float x[3] = {1, -2, 3};
  long at = 1;
  path_in(path, &f, "out");
  add_array(&f, "x.npy", LAC_DTYPE_F32, (laci_shape){4, {1, 3, 1, 1}}, x);
  lac_model *model = load((design){"Relu", 0, 3, 1, {"y", NULL}});
  for (int plain = 0; plain < 2; plain++) {
    lac_infer_options options = lac_infer_options_default();
    options.run.threads = 1;
    options.force = true;
    if (plain) options.run.engine = "plain";
    for (at = 1; at < 2000; at++) {
      laci_memory_fail_from(at);
      lac_status st = infer(model, &f, &options, NULL);
      laci_memory_fail_from(0);
      if (!st) break;
      if (!plain) assert_int_not_equal(access(path, F_OK), 0);
    }
    assert_true(at > 5 && at < 2000);
  }
  lac_model_destroy(model);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(predictions_are_in_the_datas_order_for_any_batch),
      cmocka_unit_test(parts_together_are_the_whole),
      cmocka_unit_test(parts_of_a_real_network_are_the_whole),
      cmocka_unit_test(parts_that_are_none_are_refused),
      cmocka_unit_test(a_part_without_memory_leaves_nothing),
      cmocka_unit_test(limit_mean_and_std_are_followed),
      cmocka_unit_test(a_list_of_classes_numbers_the_folders_of_images),
      cmocka_unit_test(networks_that_do_not_fit_are_refused_by_name),
      cmocka_unit_test(class_counts_that_differ_are_refused),
      cmocka_unit_test(folders_that_no_list_maps_are_refused),
      cmocka_unit_test(the_part_for_evaluation_is_found),
      cmocka_unit_test(a_folder_next_to_counts_where_it_has_as_many_classes),
      cmocka_unit_test(options_outside_their_limits_are_refused),
      cmocka_unit_test(a_failure_leaves_no_predictions),
      cmocka_unit_test(the_result_becomes_json),
      cmocka_unit_test(both_engines_write_the_same_within_rounding),
      cmocka_unit_test(odd_names_are_made_harmless_and_clashes_refused),
      cmocka_unit_test(arrays_that_do_not_fit_are_refused_and_nothing_is_left),
      cmocka_unit_test(memory_that_fails_leaves_no_output),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
