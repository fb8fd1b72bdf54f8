/* SPDX-License-Identifier: Apache-2.0
 * Values that an observer sees in every run (engine/engine.h).
 *
 * An observed value has one more reader. So no fusion removes it, and its bytes are not overwritten
 * before the observer has seen it. As soon as the plan has it, one step converts it to the port's
 * format, if need be, and another calls the observer. */
#include "engine/cpu/net_in.h"
#include "engine/row.h"

lac_status laci_net_note_observed_values(laci_net *net, const laci_engine_observer *observer,
                                         lac_error *err) {
  lac_status st = laci_engine_observer_check(net->plan.graph, observer, err);
  if (st || !observer) return st;
  net->plan.observer = *observer;
  net->observed = laci_plan_alloc(&net->plan, (size_t)observer->n_values, sizeof *net->observed);
  st = net->plan.status;
  for (int at = 0; at < observer->n_values && !st; at++) {
    laci_net_observed *o = &net->observed[at];
    o->value = observer->values[at];
    st = laci_engine_port_init(net->plan.graph, o->value, &net->plan.values[o->value].type,
                               &o->port, err);
  }
  return st;
}

static lac_status run_observer(laci_net *net, laci_net_step *step, lac_error *err) {
  const laci_net_observed *o = step->context;
  const laci_engine_observer *observer = &net->plan.observer;
  return observer->on_value(observer->context, o->value, &o->port,
                            laci_net_tensor_data(net, step->tensors[0]), err);
}

static void add_observer_step(laci_net *net, laci_net_observed *o) {
  static const laci_node node = {.name = "", .type = "observe"};
  int tensor = laci_net_read_value(net, o->value);
  bool convert = o->port.type.dtype == LAC_DTYPE_F32 && o->port.size_bytes > 0;
  if (convert) tensor = laci_net_convert_to_dense(net, tensor, LACI_ELEMENT_F32);
  if (tensor < 0) return;
  laci_net_step *step = laci_net_step_add_code(net, &node, run_observer, 1, &tensor);
  if (!step) return;
  step->context = o;
  step->shown = tensor;
  o->lowered = true;
  laci_net_note_read_done(net, o->value);
}

void laci_net_add_observer_steps(laci_net *net) {
  for (int at = 0; at < net->plan.observer.n_values && !net->plan.status; at++) {
    laci_net_observed *o = &net->observed[at];
    bool there =
        net->plan.values[o->value].tensor >= 0 || laci_plan_is_constant(&net->plan, o->value);
    if (!o->lowered && there) add_observer_step(net, o);
  }
}

void laci_net_check_observed_are_lowered(laci_net *net) {
  for (int at = 0; at < net->plan.observer.n_values; at++) {
    const laci_net_observed *o = &net->observed[at];
    if (!o->lowered)
      laci_plan_fail(&net->plan, LAC_INTERNAL, "%s: to be observed, but never there", o->port.name);
  }
}
