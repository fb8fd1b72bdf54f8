/* SPDX-License-Identifier: Apache-2.0
 * The table of recipes, with the source of each figure. docs/reference/recipes.md shows it, and a
 * test checks that both agree. */
#include <string.h>

#include "train/recipe.h"

#define DEMO "demo_resnet's README"
#define LARGE_MINIBATCH "Goyal et al. 2017"
#define RESIDUAL "He et al. 2016"
#define INCEPTION "Szegedy et al. 2016"
#define EXAMPLES "NVIDIA's example ResNeXt101-32x4d"
#define LARS "You et al. 2017"
#define DEIT "Touvron et al. 2021"
#define SWIN "Liu et al. 2021"
#define USUAL "what fits a small machine; bf16: 256"

static const laci_training_recipe recipes[] = {
    {.name = "resnet-sgd",
     .optimizer =
         {.kind = LACI_OPTIMIZER_SGD, .momentum = 0.9F, .decay = 1e-4F, .rate_inside = true},
     .rate = 0.128,
     .rate_many = 0.1,
     .base_batch = 256,
     .schedule = LACI_SCHEDULE_PIECEWISE,
     .warmup_epochs = 3,
     .epochs = 90,
     .warmup_of_epochs = 90,
     .smoothing = 0.1,
     .augment = true,
     .n_stages = 3,
     .stages = {{30, 0.1}, {60, 0.01}, {80, 0.001}},
     .from = {[LACI_RECIPE_OPTIMIZER] = RESIDUAL,
              [LACI_RECIPE_MOMENTUM] = RESIDUAL,
              [LACI_RECIPE_WEIGHT_DECAY] = RESIDUAL,
              [LACI_RECIPE_RATE] = DEMO,
              [LACI_RECIPE_RATE_MANY] = LARGE_MINIBATCH,
              [LACI_RECIPE_SCHEDULE] = LARGE_MINIBATCH,
              [LACI_RECIPE_WARMUP] = DEMO,
              [LACI_RECIPE_EPOCHS] = LARGE_MINIBATCH,
              [LACI_RECIPE_BATCH] = USUAL,
              [LACI_RECIPE_SMOOTHING] = INCEPTION,
              [LACI_RECIPE_AUGMENT] = "Szegedy et al. 2015"}},
    {.name = "resnet-lars",
     .optimizer = {.kind = LACI_OPTIMIZER_LARS, .momentum = 0.9F, .decay = 1e-4F, .trust = 0.001F},
     .rate = 2.5,
     .rate_many = 9.5,
     .schedule = LACI_SCHEDULE_POLYNOMIAL,
     .end_rate = 1e-4,
     .power = 2,
     .warmup_epochs = 3,
     .epochs = 38,
     .warmup_of_epochs = 38,
     .smoothing = 0.1,
     .augment = true,
     .n_large = 3,
     .large = {{8192, 10, 5}, {16384, 25, 5}, {32768, 32, 14}},
     .from = {[LACI_RECIPE_OPTIMIZER] = LARS,
              [LACI_RECIPE_MOMENTUM] = LARS,
              [LACI_RECIPE_WEIGHT_DECAY] = DEMO,
              [LACI_RECIPE_TRUST] = LARS,
              [LACI_RECIPE_RATE] = DEMO,
              [LACI_RECIPE_RATE_MANY] = DEMO,
              [LACI_RECIPE_LARGE_BATCHES] = DEMO,
              [LACI_RECIPE_SCHEDULE] = LARS,
              [LACI_RECIPE_WARMUP] = DEMO,
              [LACI_RECIPE_EPOCHS] = DEMO,
              [LACI_RECIPE_BATCH] = USUAL,
              [LACI_RECIPE_SMOOTHING] = INCEPTION,
              [LACI_RECIPE_AUGMENT] = "Szegedy et al. 2015"}},
    {.name = "resnext",
     .optimizer = {.kind = LACI_OPTIMIZER_SGD, .momentum = 0.875F, .decay = 0x1p-14F},
     .rate = 0.256,
     .base_batch = 256,
     .schedule = LACI_SCHEDULE_COSINE,
     .warmup_epochs = 8,
     .epochs = 90,
     .warmup_of_epochs = 90,
     .smoothing = 0.1,
     .augment = true,
     .from = {[LACI_RECIPE_OPTIMIZER] = EXAMPLES,
              [LACI_RECIPE_MOMENTUM] = EXAMPLES,
              [LACI_RECIPE_WEIGHT_DECAY] = EXAMPLES,
              [LACI_RECIPE_RATE] = EXAMPLES,
              [LACI_RECIPE_SCHEDULE] = "Loshchilov, Hutter 2017",
              [LACI_RECIPE_WARMUP] = EXAMPLES,
              [LACI_RECIPE_EPOCHS] = EXAMPLES,
              [LACI_RECIPE_BATCH] = USUAL,
              [LACI_RECIPE_SMOOTHING] = INCEPTION,
              [LACI_RECIPE_AUGMENT] = "Szegedy et al. 2015"}},
    {.name = "mixup-250",
     .optimizer = {.kind = LACI_OPTIMIZER_SGD, .momentum = 0.875F, .decay = 0x1p-14F},
     .rate = 0.256,
     .base_batch = 256,
     .schedule = LACI_SCHEDULE_COSINE,
     .warmup_epochs = 8,
     .epochs = 250,
     .warmup_of_epochs = 250,
     .smoothing = 0.1,
     .mixup = 0.2,
     .augment = true,
     .from = {[LACI_RECIPE_OPTIMIZER] = EXAMPLES,
              [LACI_RECIPE_MOMENTUM] = EXAMPLES,
              [LACI_RECIPE_WEIGHT_DECAY] = EXAMPLES,
              [LACI_RECIPE_RATE] = EXAMPLES,
              [LACI_RECIPE_SCHEDULE] = "Loshchilov, Hutter 2017",
              [LACI_RECIPE_WARMUP] = EXAMPLES,
              [LACI_RECIPE_EPOCHS] = EXAMPLES,
              [LACI_RECIPE_BATCH] = USUAL,
              [LACI_RECIPE_SMOOTHING] = INCEPTION,
              [LACI_RECIPE_MIXUP] = "Zhang et al. 2018",
              [LACI_RECIPE_AUGMENT] = "Szegedy et al. 2015"}},
    {.name = "cifar",
     .optimizer = {.kind = LACI_OPTIMIZER_SGD, .momentum = 0.9F, .decay = 1e-4F},
     .rate = 0.1,
     .batch = 128,
     .schedule = LACI_SCHEDULE_COSINE,
     .epochs = 200,
     .augment = true,
     .from = {[LACI_RECIPE_OPTIMIZER] = RESIDUAL,
              [LACI_RECIPE_MOMENTUM] = RESIDUAL,
              [LACI_RECIPE_WEIGHT_DECAY] = RESIDUAL,
              [LACI_RECIPE_RATE] = RESIDUAL,
              [LACI_RECIPE_SCHEDULE] = "Loshchilov, Hutter 2017",
              [LACI_RECIPE_EPOCHS] = "Loshchilov, Hutter 2017",
              [LACI_RECIPE_BATCH] = RESIDUAL,
              [LACI_RECIPE_AUGMENT] = RESIDUAL}},
    {.name = "adamw-300",
     .optimizer = {.kind = LACI_OPTIMIZER_ADAMW,
                   .momentum = 0.9F,
                   .decay = 0.05F,
                   .beta2 = 0.999F,
                   .epsilon = 1e-8F},
     .rate = 0.001,
     .base_batch = 1024,
     .schedule = LACI_SCHEDULE_COSINE,
     .warmup_epochs = 5,
     .epochs = 300,
     .warmup_of_epochs = 300,
     .smoothing = 0.1,
     .mixup = 0.8,
     .cutmix = 1,
     .erasing = 0.25,
     .clip_norm = 5,
     .augment = true,
     .from = {[LACI_RECIPE_OPTIMIZER] = "Loshchilov, Hutter 2019",
              [LACI_RECIPE_MOMENTUM] = DEIT,
              [LACI_RECIPE_WEIGHT_DECAY] = DEIT,
              [LACI_RECIPE_RATE] = SWIN,
              [LACI_RECIPE_SCHEDULE] = "Loshchilov, Hutter 2017",
              [LACI_RECIPE_WARMUP] = DEIT,
              [LACI_RECIPE_EPOCHS] = DEIT,
              [LACI_RECIPE_BATCH] = USUAL,
              [LACI_RECIPE_SMOOTHING] = DEIT,
              [LACI_RECIPE_MIXUP] = DEIT,
              [LACI_RECIPE_CUTMIX] = DEIT,
              [LACI_RECIPE_ERASING] = DEIT,
              [LACI_RECIPE_CLIP_NORM] = SWIN,
              [LACI_RECIPE_AUGMENT] = "Szegedy et al. 2015"}},
};

enum { N_RECIPES = sizeof recipes / sizeof *recipes };

const laci_training_recipe *laci_training_recipes(int *n) {
  *n = N_RECIPES;
  return recipes;
}

const laci_training_recipe *laci_training_recipe_find(const char *name) {
  for (int k = 0; k < N_RECIPES; k++) {
    if (strcmp(recipes[k].name, name) == 0) return &recipes[k];
  }
  return NULL;
}
