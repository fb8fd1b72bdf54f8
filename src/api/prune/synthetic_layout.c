/* SPDX-License-Identifier: Apache-2.0
 * Finds out whether a network's input is images, how they are stored, and how many images
 * calibration needs. */
#include <string.h>

#include "api/prune/synthetic_in.h"
#include "base/error.h"
#include "data/prepare.h"
#include "graph/graph.h"
#include "tensor/buf.h"

enum { RANK_IMAGES = 4, USUAL_SIDE = 224 };

static bool is_colour_count(int64_t n) { return n == 1 || n == 3; }

static lac_status fail_not_an_image(const laci_value *input, lac_error *err) {
  char text[256];
  return laci_hint(
      err, LAC_HINT_CALIBRATION,
      laci_fail(err, LAC_BAD_SHAPE,
                "synthetic images: input '%s' is %s %s, wanted images [N, C, H, W] or "
                "[N, H, W, C] of 3 channels or 1, at most %d pixels a side",
                input->name, lac_dtype_name(input->type.dtype),
                laci_shape_text(&input->type.shape, text, sizeof text), LACI_PREPROCESSING_MAX));
}

lac_status laci_synthetic_find_layout(const laci_graph *graph, int crop,
                                      laci_synthetic_input *input, lac_error *err) {
  if (graph->n_inputs != 1) {
    return laci_hint(err, LAC_HINT_CALIBRATION,
                     laci_fail(err, LAC_BAD_SHAPE,
                               "synthetic images: the network has %d inputs, wanted one of images",
                               graph->n_inputs));
  }
  const laci_value *value = &graph->values[graph->inputs[0]];
  const laci_shape *shape = &value->type.shape;
  const lac_dtype dtype = value->type.dtype;
  const bool integers = dtype == LAC_DTYPE_U8;
  if (shape->rank != RANK_IMAGES || !(integers || laci_dtype_is_float(dtype)))
    return fail_not_an_image(value, err);
  const bool first = is_colour_count(shape->dims[1]), last = is_colour_count(shape->dims[3]);
  if (!first && !last) return fail_not_an_image(value, err);
  const int axis = first ? 2 : 1; /* axis of the height */
  const int64_t side = crop > 0 ? crop : USUAL_SIDE;
  const int64_t height = shape->dims[axis] > 0 ? shape->dims[axis] : side;
  const int64_t width = shape->dims[axis + 1] > 0 ? shape->dims[axis + 1] : side;
  if (height > LACI_PREPROCESSING_MAX || width > LACI_PREPROCESSING_MAX)
    return fail_not_an_image(value, err);
  *input = (laci_synthetic_input){.height = (int)height,
                                  .width = (int)width,
                                  .channels = (int)shape->dims[first ? 1 : 3],
                                  .channels_last = !first,
                                  .integers = integers,
                                  .std = {1, 1, 1}};
  return LAC_OK;
}

/* Returns the number of elements of one sample, for a shape whose axis 0 is the batch; 0: a size is
 * not known. */
static double elements_of_sample(const laci_shape *shape) {
  double n = shape->rank >= 2 ? 1 : 0;
  for (int axis = 1; axis < shape->rank; axis++)
    n *= shape->dims[axis] > 0 ? (double)shape->dims[axis] : 0;
  return n;
}

/* Returns the number of multiplications of a convolution or product for one sample; 0 for other
 * nodes. */
static double multiplications_of_node(const laci_graph *graph, const laci_node *node) {
  const bool convolves = strcmp(node->type, "Conv") == 0;
  if (node->domain[0] || node->n_inputs < 2 || node->inputs[1] < 0 || node->n_outputs < 1 ||
      node->outputs[0] < 0 ||
      !(convolves || strcmp(node->type, "Gemm") == 0 || strcmp(node->type, "MatMul") == 0))
    return 0;
  const laci_shape *out = &graph->values[node->outputs[0]].type.shape;
  const laci_shape *weight = &graph->values[node->inputs[1]].type.shape;
  if (out->rank < 2 || weight->rank < 2) return 0;
  const int64_t channels = out->dims[convolves ? 1 : out->rank - 1];
  double n = elements_of_sample(out);
  for (int axis = 0; axis < weight->rank; axis++)
    n *= weight->dims[axis] > 0 ? (double)weight->dims[axis] : 0;
  return channels > 0 ? n / (double)channels : 0;
}

double laci_synthetic_multiplications(const laci_graph *graph) {
  double n = 0;
  for (int id = 0; id < graph->n_nodes; id++)
    n += multiplications_of_node(graph, &graph->nodes[id]);
  return n;
}

int64_t laci_synthetic_choose_image_count(const laci_graph *graph) {
  const double in_a_minute = 4e11; /* multiplications of all images */
  enum { LEAST = 32, MOST = 512, UNKNOWN = 128 };
  const double n = laci_synthetic_multiplications(graph);
  if (n <= 0) return UNKNOWN;
  const double images = in_a_minute / n;
  return images < LEAST ? LEAST : images > MOST ? MOST : (int64_t)images;
}
