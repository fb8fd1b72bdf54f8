/* SPDX-License-Identifier: Apache-2.0
 * What is fused after a layer, in the order that native kernels support: a residual, a clip,
 * functions (kernel/sparse/product.h); or functions and then a residual. */
#include "engine/cpu/lower/pointwise.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/choose/choose.h"

static bool can_add_residual(const laci_net *net, int value, int to) {
  return !laci_plan_is_constant(&net->plan, value) && laci_plan_is_float(&net->plan, value) &&
         laci_shape_equal(laci_plan_shape(&net->plan, value), laci_plan_shape(&net->plan, to));
}

/** If the first fused function clips the results, makes it a bound of the results: generated code
 * clips before it stores, at no cost. False: the function does something else. */
static bool add_clip_function(laci_native_layer *layer, const laci_function *f) {
  const bool relu = f->kind == LACI_FUNCTION_RELU && f->alpha == 0;
  const bool clips = f->kind == LACI_FUNCTION_CLIP || f->kind == LACI_FUNCTION_CLIP_OPEN;
  if (layer->has_low || layer->has_high || !(relu || clips)) return false;
  layer->has_low = true;
  layer->has_high = clips;
  layer->low = clips ? f->alpha : 0;
  layer->high = clips ? f->beta : 0;
  return true;
}

bool laci_native_set_post_functions(laci_net *net, laci_native_layer *layer) {
  const laci_fused *fused = layer->fused;
  bool sum_follows = false;
  layer->residual = -1;
  layer->functions = laci_plan_alloc(&net->plan, (size_t)fused->n_posts, sizeof *layer->functions);
  if (!layer->functions) return false;
  for (int at = 1; at < fused->n_posts; at++) {
    sum_follows = sum_follows || fused->posts[at].value >= 0;
  }
  for (int at = 0; at < fused->n_posts; at++) {
    const laci_post *post = &fused->posts[at];
    if (post->value >= 0) {
      layer->residual = laci_native_canonical_value(&net->plan, post->value);
      layer->residual_last = at > 0;
      if (!can_add_residual(net, post->value, fused->output)) return false;
      if (at > 0 && at < fused->n_posts - 1) return false;
      continue;
    }
    laci_pointwise f;
    if (!laci_lower_to_pointwise(&post->function, &f)) return false;
    if (!sum_follows && layer->n_functions == 0 && add_clip_function(layer, &post->function))
      continue;
    layer->functions[layer->n_functions++] = f;
  }
  return true;
}
