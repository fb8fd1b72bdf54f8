/* SPDX-License-Identifier: Apache-2.0
 * Checks that a network and images fit together: colours, sizes, classes; and chooses the batch
 * size to plan for. */
#include <stdio.h>
#include <string.h>

#include "api/model/given_samples.h"
#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "api/run/eval_in.h"
#include "base/error.h"
#include "data/dataset.h"
#include "data/prepare.h"
#include "graph/graph.h"
#include "lacuna/prune.h"
#include "tensor/buf.h"

enum { RANK_IMAGES = 4, RANK_LOGITS = 2 };

lac_status laci_choose_preprocessing(laci_preprocessing *p, const char *data,
                                     const laci_image_choice *choice, lac_error *err) {
  const laci_preprocessing usual = laci_preprocessing_default();
  bool scaled = memcmp(choice->mean, usual.mean, sizeof usual.mean) != 0 ||
                memcmp(choice->std, usual.std, sizeof usual.std) != 0;
  if (p->is_ready) {
    if (!scaled && choice->resize == 0 && choice->crop == 0) return LAC_OK;
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %s are for images, but these are arrays of floats",
                     data, scaled ? "mean and std" : "resizing and cropping");
  }
  if (scaled && p->is_grey) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: mean and std are for images in colour, but these are grey, with a scale "
                     "of their own",
                     data);
  }
  if (choice->resize) p->resize = choice->resize;
  if (choice->crop) p->height = p->width = choice->crop;
  if (!p->is_grey) {
    memcpy(p->mean, choice->mean, sizeof p->mean);
    memcpy(p->std, choice->std, sizeof p->std);
  }
  return laci_preprocessing_check(p, err);
}

lac_status laci_check_prepared_samples(const laci_value *input, const laci_preprocessing *p,
                                       lac_error *err) {
  const laci_shape *shape = &input->type.shape;
  const laci_shape sample = laci_preprocessing_sample_shape(p);
  const lac_dtype dtype = input->type.dtype;
  bool fits = shape->rank < 0 || shape->rank == sample.rank + 1;
  fits = fits && (dtype == LAC_DTYPE_NONE || laci_dtype_is_float(dtype));
  for (int axis = 1; axis < shape->rank && fits; axis++) {
    fits = shape->dims[axis] < 0 || shape->dims[axis] == sample.dims[axis - 1];
  }
  if (fits) return LAC_OK;
  char wanted[256], found[256];
  return laci_fail(err, LAC_BAD_SHAPE, "input '%s' is %s %s, but a sample is floats %s",
                   input->name, lac_dtype_name(dtype),
                   laci_shape_text(shape, wanted, sizeof wanted),
                   laci_shape_text(&sample, found, sizeof found));
}

void laci_dataset_options_set_memory(const laci_given_samples *memory,
                                     laci_dataset_options *options) {
  options->arrays = laci_given_samples_rows(memory, &options->n_arrays);
}

const char *laci_only_input_name(const laci_graph *network) {
  return network->n_inputs == 1 ? network->values[network->inputs[0]].name : NULL;
}

/* Returns the resizing that fits a crop of this side; 0: it need not change. Photographs are
 * cropped from a larger size, 224 of 256; small images are not cropped. */
static int resize_for_crop(const laci_dataset *set, const laci_preprocessing *preprocessing,
                           int64_t side) {
  const laci_preprocessing photograph = laci_preprocessing_default(),
                           usual = laci_dataset_preprocessing(set);
  if (side <= (preprocessing->resize ? preprocessing->resize : usual.height)) return 0;
  if (usual.resize == 0) return (int)side;
  return (int)((side * photograph.resize + photograph.height / 2) / photograph.height);
}

lac_status laci_fail_crop_size(const laci_value *input, const laci_dataset *set,
                               const laci_preprocessing *preprocessing, lac_error *err) {
  const laci_shape *shape = &input->type.shape;
  const int64_t height = shape->dims[2], width = shape->dims[3];
  const int64_t side = height > 0 ? height : width;
  lac_hint hint = LAC_HINT_NONE;
  char text[256], cure[96];
  if ((height > 0 && width > 0 && height != width) || side > LACI_PREPROCESSING_MAX) {
    (void)snprintf(cure, sizeof cure, "wanted a network of squares, of at most %d pixels",
                   LACI_PREPROCESSING_MAX);
  } else {
    int resize = resize_for_crop(set, preprocessing, side);
    int n = resize ? snprintf(cure, sizeof cure, "resized to %d, ", resize) : 0;
    (void)snprintf(cure + n, sizeof cure - (size_t)n, "a crop of %d would fit", (int)side);
    hint = resize ? LAC_HINT_RESIZE : LAC_HINT_CROP;
  }
  return laci_hint(
      err, hint,
      laci_fail(err, LAC_BAD_SHAPE, "input '%s' is %s, but images are prepared to %d x %d: %s",
                input->name, laci_shape_text(shape, text, sizeof text), preprocessing->height,
                preprocessing->width, cure));
}

static int64_t count_network_classes(const laci_graph *network) {
  if (network->n_outputs < 1) return 0;
  const laci_shape *shape = &network->values[network->outputs[0]].type.shape;
  return shape->rank == RANK_LOGITS && shape->dims[1] > 0 ? shape->dims[1] : 0;
}

static int64_t count_classes(const lac_model *model) {
  lac_model *view;
  const int64_t n =
      laci_model_view_create(model, &view, NULL) ? 0 : count_network_classes(view->graph);
  laci_model_view_destroy(view);
  return n;
}

/* If shapes cannot be inferred, returns 0: making the engine fails later with a better explanation.
 */
int64_t laci_model_n_classes(const lac_model *model, uint64_t max_memory) {
  int64_t n = count_classes(model);
  if (n == 0 && !laci_model_has_inferred_shapes(model)) {
    lac_options options = lac_options_default();
    laci_job job;
    options.max_memory = max_memory;
    if (laci_job_open(model, &options, &job, NULL)) return 0;
    laci_job_close(&job);
    n = count_classes(model);
  }
  return n;
}

lac_status laci_check_class_count(const laci_graph *network, const laci_dataset *set,
                                  lac_error *err) {
  if (network->n_outputs < 1) return LAC_OK;
  const laci_value *scores = &network->values[network->outputs[0]];
  const laci_shape *shape = &scores->type.shape;
  if (shape->rank != RANK_LOGITS || shape->dims[1] < 0) return LAC_OK;
  return laci_dataset_check_outputs(set, scores->name, shape->dims[1], err);
}

static lac_status check_image_size(const laci_value *input, const laci_dataset *set,
                                   const laci_preprocessing *preprocessing, lac_error *err) {
  const int64_t wanted[RANK_IMAGES] = {0, laci_preprocessing_channels(preprocessing),
                                       preprocessing->height, preprocessing->width};
  const laci_shape *shape = &input->type.shape;
  char text[256];
  bool known = shape->rank >= 0, images = !known || shape->rank == RANK_IMAGES;
  images =
      images && (input->type.dtype == LAC_DTYPE_NONE || laci_dtype_is_float(input->type.dtype));
  images = images && !(known && shape->dims[1] >= 0 && shape->dims[1] != wanted[1]);
  if (!images) {
    return laci_fail(err, LAC_BAD_SHAPE, "input '%s' is %s %s, wanted images: floats [N, %d, H, W]",
                     input->name, lac_dtype_name(input->type.dtype),
                     laci_shape_text(shape, text, sizeof text), (int)wanted[1]);
  }
  for (int axis = 2; known && axis < RANK_IMAGES; axis++) {
    if (shape->dims[axis] < 0 || shape->dims[axis] == wanted[axis]) continue;
    return laci_fail_crop_size(input, set, preprocessing, err);
  }
  return LAC_OK;
}

lac_status laci_fit_images_to_network(const laci_graph *graph, const laci_dataset *set,
                                      const laci_preprocessing *preprocessing,
                                      laci_image_input *fit, lac_error *err) {
  if (graph->n_inputs != 1) {
    return laci_fail(err, LAC_BAD_SHAPE, "the network has %d inputs, wanted one of images",
                     graph->n_inputs);
  }
  const laci_value *input = &graph->values[graph->inputs[0]];
  const laci_shape *shape = &input->type.shape;
  const bool known = shape->rank >= 0;
  char text[256];
  lac_status st = preprocessing->is_ready ? laci_check_prepared_samples(input, preprocessing, err)
                                          : check_image_size(input, set, preprocessing, err);
  if (st) return st;
  int64_t fixed = known && shape->dims[0] >= 0 ? shape->dims[0] : 0;
  if (known && shape->dims[0] >= 0 && (fixed < 1 || fixed > LACI_EVAL_MOST_BATCH)) {
    return laci_fail(err, LAC_BAD_SHAPE, "input '%s' is %s: wanted a batch of 1 to %d", input->name,
                     laci_shape_text(shape, text, sizeof text), LACI_EVAL_MOST_BATCH);
  }
  fit->name = input->name;
  if (fixed) fit->batch = (int)fixed;
  return LAC_OK;
}

bool laci_ends_in_softmax(const laci_graph *graph) {
  static const char *const shaping[] = {"Identity", "Reshape", "Flatten", "Squeeze"};
  for (int value = graph->outputs[0]; value >= 0 && graph->values[value].producer >= 0;) {
    const laci_node *node = &graph->nodes[graph->values[value].producer];
    bool shapes = false;
    if (node->domain[0]) return false;
    if (strcmp(node->type, "Softmax") == 0) return true;
    for (size_t k = 0; k < sizeof shaping / sizeof *shaping; k++) {
      shapes = shapes || strcmp(node->type, shaping[k]) == 0;
    }
    if (!shapes || node->n_inputs < 1) return false;
    value = node->inputs[0];
  }
  return false;
}
