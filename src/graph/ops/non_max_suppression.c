/* SPDX-License-Identifier: Apache-2.0
 * NonMaxSuppression: for every image and class the boxes of highest score, without those that
 * overlap a box chosen before. The output has rows of (image, class, box). Neubeck & Van Gool,
 * Efficient Non-Maximum Suppression, ICPR 2006.
 *
 * The output holds indices of boxes and classes, so all axes are FIXED: their order must stay
 * (coupling.h). */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

enum { BOXES, SCORES, MAX_BOXES, IOU, SCORE };

typedef struct choice {
  const laci_buf *boxes, *scores; /* [N, B, 4], [N, C, B] */
  int64_t n_images, n_classes, n_boxes, most;
  double iou, score;
  bool has_score, centred;
} choice;

static double read_scalar(const laci_buf *buf, double otherwise) {
  return buf && buf->count > 0 ? laci_buf_get_f(buf, 0) : otherwise;
}

/** Reads operands and attributes. Returns false where shapes do not fit each other. */
static bool read_operands_and_limits(const laci_node *node, const laci_buf *const *in, int n_in,
                                     choice *ch) {
  const laci_buf *boxes = in[BOXES], *scores = in[SCORES];
  const laci_buf *score = n_in > SCORE ? in[SCORE] : NULL;
  const laci_buf *most = n_in > MAX_BOXES ? in[MAX_BOXES] : NULL;
  *ch = (choice){.boxes = boxes,
                 .scores = scores,
                 .most = most && most->count > 0 ? laci_buf_get_i(most, 0) : 0,
                 .iou = read_scalar(n_in > IOU ? in[IOU] : NULL, 0),
                 .has_score = score && score->count > 0,
                 .score = read_scalar(score, 0),
                 .centred = laci_node_int(node, "center_point_box", 0) != 0};
  if (!boxes->f || !scores->f || boxes->shape.rank != 3 || scores->shape.rank != 3) return false;
  ch->n_images = boxes->shape.dims[0];
  ch->n_boxes = boxes->shape.dims[1];
  ch->n_classes = scores->shape.dims[1];
  return boxes->shape.dims[2] == 4 && scores->shape.dims[0] == ch->n_images &&
         scores->shape.dims[2] == ch->n_boxes;
}

/** Finds where a box begins and ends along y (axis 0) or x (1). */
static void find_box_side(const choice *ch, const double *box, int axis, double *low,
                          double *high) {
  if (ch->centred) { /* x, y, width, height */
    double middle = box[1 - axis], half = box[3 - axis] / 2;
    *low = middle - half, *high = middle + half;
  } else { /* the box is given by two corners, y before x */
    *low = fmin(box[axis], box[axis + 2]), *high = fmax(box[axis], box[axis + 2]);
  }
}

static bool has_too_much_overlap(const choice *ch, const double *a, const double *b) {
  double common = 1, area_a = 1, area_b = 1;
  for (int axis = 0; axis < 2; axis++) {
    double a_low, a_high, b_low, b_high;
    find_box_side(ch, a, axis, &a_low, &a_high);
    find_box_side(ch, b, axis, &b_low, &b_high);
    double both = fmin(a_high, b_high) - fmax(a_low, b_low);
    if (!(both > 0)) return false;
    common *= both;
    area_a *= a_high - a_low;
    area_b *= b_high - b_low;
  }
  double all = area_a + area_b - common;
  return area_a > 0 && area_b > 0 && all > 0 && (float)(common / all) > (float)ch->iou;
}

/** Returns the box of highest score that is not done, of equal ones the first; -1: none is left. */
static int64_t find_best_remaining_box(const choice *ch, const double *scores, const bool *done) {
  int64_t best = -1;
  for (int64_t at = 0; at < ch->n_boxes; at++) {
    if (done[at] || (ch->has_score && !(scores[at] > ch->score))) continue;
    if (best < 0 || scores[at] > scores[best]) best = at;
  }
  return best;
}

/** Chooses boxes for one class of one image and returns their number. rows may be NULL: then they
 * are only counted. */
static int64_t choose_boxes(const choice *ch, int64_t image, int64_t class_at, bool *done,
                            int64_t *taken, int64_t *rows) {
  const double *boxes = ch->boxes->f + image * ch->n_boxes * 4;
  const double *scores = ch->scores->f + (image * ch->n_classes + class_at) * ch->n_boxes;
  int64_t n = 0, box;
  for (int64_t at = 0; at < ch->n_boxes; at++) done[at] = false;
  while (n < ch->most && (box = find_best_remaining_box(ch, scores, done)) >= 0) {
    bool free_standing = true;
    done[box] = true;
    for (int64_t at = 0; at < n && free_standing; at++)
      free_standing = !has_too_much_overlap(ch, boxes + box * 4, boxes + taken[at] * 4);
    if (!free_standing) continue;
    if (rows) rows[n * 3] = image, rows[n * 3 + 1] = class_at, rows[n * 3 + 2] = box;
    taken[n++] = box;
  }
  return n;
}

/** Writes all rows and their number to *n; rows may be NULL. */
static lac_status choose_all_boxes(const laci_node *node, const choice *ch, int64_t *rows,
                                   int64_t *n, lac_error *err) {
  bool *done = laci_alloc((size_t)ch->n_boxes, sizeof *done);
  int64_t *taken = laci_alloc((size_t)ch->n_boxes, sizeof *taken);
  lac_status st = done && taken ? LAC_OK : laci_fail_memory(err, node->name);
  *n = 0;
  for (int64_t at = 0; !st && at < ch->n_images * ch->n_classes; at++) {
    *n += choose_boxes(ch, at / ch->n_classes, at % ch->n_classes, done, taken,
                       rows ? rows + *n * 3 : NULL);
  }
  laci_free(done);
  laci_free(taken);
  return st;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 5);
  if (st) return st;
  int64_t n = -1;
  bool known = true;
  for (int port = 0; port < infer->n_in; port++) {
    const laci_buf *content = infer->in[port] ? laci_in_known_content(infer, port) : NULL;
    bool whole = content && (content->f || content->count == 0 || !laci_is_symbol(content->i[0]));
    known = known && (!infer->in[port] || whole);
  }
  if (known) {
    choice ch;
    if (!read_operands_and_limits(infer->node, infer->known, infer->n_in, &ch)) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                            "boxes and scores do not fit each other");
    }
    st = choose_all_boxes(infer->node, &ch, NULL, &n, infer->err);
    if (st) return st;
  }
  infer->out[0] =
      (laci_type){.dtype = LAC_DTYPE_I64,
                  .shape = {.rank = 2, .dims = {n >= 0 ? n : infer->new_symbol(infer), 3}}};
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  choice ch;
  int64_t n;
  if (!read_operands_and_limits(eval->node, eval->in, eval->n_in, &ch)) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "boxes and scores do not fit each other");
  }
  return choose_all_boxes(eval->node, &ch, eval->out[0]->i, &n, eval->err);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "NonMaxSuppression gives numbers of boxes and classes";
  return laci_coupling_status(c);
}

const laci_op laci_op_non_max_suppression = {
    .name = "NonMaxSuppression",
    .role = LACI_ROLE_SKIP,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"center_point_box", LACI_ATTR_INT}),
    .sizes_from_data = true,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
