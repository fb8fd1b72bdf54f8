/* SPDX-License-Identifier: Apache-2.0
 * The first failure of planning, which stays (net_in.h), and memory that planning takes. */
#include <stdarg.h>
#include <stdio.h>

#include "engine/cpu/net_in.h"
#include "base/error.h"
#include "graph/sizes.h"

void laci_net_fail(laci_net *net, lac_status status, const char *format, ...) {
  char text[sizeof net->err->text];
  va_list args;
  if (net->status) return;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  net->status = laci_fail(net->err, status, "%s", text);
}

void laci_net_no_memory(laci_net *net) {
  laci_net_fail(net, LAC_NO_MEMORY, "not enough memory for the plan");
}

void laci_net_decline(laci_net *net, const char *why) {
  if (net->status) return;
  net->declined = true;
  laci_net_fail(net, LAC_UNSUPPORTED, "%s", why);
}

bool laci_net_did(laci_net *net, lac_status status, const char *what) {
  if (status == LAC_OK) return !net->status;
  if (status == LAC_NO_MEMORY) laci_net_no_memory(net);
  if (status != LAC_NO_MEMORY) {
    char text[128];
    (void)snprintf(text, sizeof text, "oneDNN has no %s for this", what);
    laci_net_decline(net, text);
  }
  return false;
}

bool laci_net_has_memory(laci_net *net) {
  if (!net->status && !laci_memory_is_available(LACI_NET_RESERVE)) laci_net_no_memory(net);
  return !net->status;
}

bool laci_net_may_take(laci_net *net, uint64_t bytes, int value) {
  char text[256] = "weights";
  laci_budget now = net->budget;
  if (net->status) return false;
  laci_budget_add(&now, net->weight_bytes, "weights");
  laci_budget_add(&now, net->constant_bytes, "constants");
  if (laci_budget_has(&now, bytes)) return true;
  if (value >= 0) {
    const laci_net_value *v = &net->values[value];
    laci_value_text(net->graph, value, &v->type, text, sizeof text);
  }
  now.largest = 0; /* what does not fit is named, whatever else is large */
  laci_budget_add(&now, bytes, "%s", text);
  net->status = laci_budget_check(&now, "the plan", net->err);
  return false;
}

void *laci_net_new(laci_net *net, size_t n, size_t size) {
  void *memory = net->status ? NULL : laci_arena_alloc(&net->memory, n, size);
  if (!memory) laci_net_no_memory(net);
  return memory;
}
