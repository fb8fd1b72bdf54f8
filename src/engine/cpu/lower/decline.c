/* SPDX-License-Identifier: Apache-2.0
 * Lets an implementation decline a node that it cannot lower: the next one is tried, or the plan
 * fails. */
#include <stdio.h>

#include "base/memory.h"
#include "engine/cpu/net_in.h"

void laci_net_decline_node(laci_net *net, const char *why) {
  if (net->plan.status) return;
  net->declined = true;
  laci_plan_fail(&net->plan, LAC_UNSUPPORTED, "%s", why);
}

bool laci_net_check_status(laci_net *net, lac_status status, const char *what) {
  if (status == LAC_OK) return !net->plan.status;
  if (status == LAC_NO_MEMORY) laci_plan_fail_no_memory(&net->plan);
  if (status != LAC_NO_MEMORY) {
    char text[128];
    (void)snprintf(text, sizeof text, "oneDNN has no %s for this", what);
    laci_net_decline_node(net, text);
  }
  return false;
}

bool laci_net_has_memory(laci_net *net) {
  if (!net->plan.status && !laci_memory_is_available(LACI_NET_RESERVE))
    laci_plan_fail_no_memory(&net->plan);
  return !net->plan.status;
}
