/* SPDX-License-Identifier: Apache-2.0
 * A step of an optimizer by a plug-in's engine. An engine with a device gets copies of weights,
 * gradients and state there, which are copied back. */
#include "base/error.h"
#include "engine/plugin/plugin_in.h"

enum { N_ARRAYS = 4 }; /* weights, gradients and two states of each parameter */

/* The update, with copies of its arrays on the device. */
typedef struct copies {
  const laci_plugin_row *row;
  const lac_engine_update *update;
  lac_engine_parameter *parameters;
  const lac_engine_parameter **list;
} copies;

static float **parameter_array(lac_engine_parameter *parameter, int at) {
  switch (at) {
    case 0: return &parameter->weights;
    case 1: return &parameter->gradients;
    default: return &parameter->state[at - 2];
  }
}

static lac_status copy_array(const copies *c, int k, int at, bool to_device, lac_error *err) {
  const lac_engine_plugin *engine = &c->row->engine;
  lac_engine_parameter host = *c->update->parameters[k];
  float *here = *parameter_array(&host, at), *there = *parameter_array(&c->parameters[k], at);
  const size_t n = (size_t)host.count * sizeof(float);
  lac_error given = {0};
  if (!here || n == 0) return LAC_OK;
  lac_status st = to_device ? engine->device->to_device(engine->context, there, here, n, &given)
                            : engine->device->to_host(engine->context, here, there, n, &given);
  given.text[sizeof given.text - 1] = 0;
  return laci_plugin_check_status(c->row, "to copy weights", st, &given, err);
}

static lac_status copy_arrays(const copies *c, bool to_device, lac_error *err) {
  lac_status st = LAC_OK;
  for (int k = 0; k < c->update->n_parameters && !st; k++) {
    for (int at = 0; at < N_ARRAYS && !st; at++) st = copy_array(c, k, at, to_device, err);
  }
  return st;
}

static lac_status allocate_copies(copies *c, lac_error *err) {
  const lac_engine_plugin *engine = &c->row->engine;
  const int n = c->update->n_parameters;
  c->parameters = laci_alloc((size_t)n, sizeof *c->parameters);
  c->list = laci_alloc((size_t)n, sizeof *c->list);
  if (!c->parameters || !c->list) return laci_fail_memory(err, "the update's parameters");
  for (int k = 0; k < n; k++) {
    lac_engine_parameter host = *c->update->parameters[k];
    c->list[k] = &c->parameters[k];
    c->parameters[k] = host;
    for (int at = 0; at < N_ARRAYS; at++) *parameter_array(&c->parameters[k], at) = NULL;
    for (int at = 0; at < N_ARRAYS; at++) {
      if (!*parameter_array(&host, at)) continue;
      size_t bytes = (size_t)(host.count > 0 ? host.count : 1) * sizeof(float);
      float *there = engine->device->allocate(engine->context, bytes);
      if (!there) {
        return laci_fail(err, LAC_NO_MEMORY, "%s: %s has no %zu bytes", host.name,
                         engine->device->name, bytes);
      }
      *parameter_array(&c->parameters[k], at) = there;
    }
  }
  return LAC_OK;
}

static void free_copies(copies *c) {
  const lac_engine_plugin *engine = &c->row->engine;
  for (int k = 0; c->parameters && k < c->update->n_parameters; k++) {
    for (int at = 0; at < N_ARRAYS; at++) {
      float *there = *parameter_array(&c->parameters[k], at);
      if (there) engine->device->release(engine->context, there);
    }
  }
  laci_free(c->parameters);
  laci_free((void *)c->list);
}

/* Asks the plug-in for the step. LAC_UNSUPPORTED is an answer, not a failure: the caller then does
 * the step. */
static lac_status run_plugin_update(const laci_plugin_plan *p, const lac_engine_update *update,
                                    lac_error *err) {
  lac_error given = {0};
  lac_status st = p->row->engine.update(p->self, update, &given);
  given.text[sizeof given.text - 1] = 0;
  return laci_plugin_check_status(p->row, "to update the weights", st, &given, err);
}

static lac_status run_update_on_device(const laci_plugin_plan *p, const lac_engine_update *update,
                                       lac_error *err) {
  copies c = {.row = p->row, .update = update};
  lac_status st = allocate_copies(&c, err);
  if (!st) st = copy_arrays(&c, true, err);
  if (!st) {
    lac_engine_update there = *update;
    there.parameters = c.list;
    st = run_plugin_update(p, &there, err);
  }
  if (!st) st = copy_arrays(&c, false, err);
  free_copies(&c);
  return st;
}

lac_status laci_plugin_update(void *self, const lac_engine_update *update, lac_error *err) {
  const laci_plugin_plan *p = self;
  if (!p->row->engine.update) {
    return laci_fail(err, LAC_UNSUPPORTED, "the engine %s updates no weights", p->row->name);
  }
  return p->row->engine.device ? run_update_on_device(p, update, err)
                               : run_plugin_update(p, update, err);
}
