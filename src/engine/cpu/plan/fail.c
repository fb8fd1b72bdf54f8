/* SPDX-License-Identifier: Apache-2.0
 * Keeps the first failure of planning, and allocates the memory of plans. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/cpu/plan/plan.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/sizes.h"

void laci_plan_fail(laci_cpu_plan *plan, lac_status status, const char *format, ...) {
  char text[sizeof plan->err->text];
  va_list args;
  if (plan->status) return;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  plan->status = laci_fail(plan->err, status, "%s", text);
}

void laci_plan_fail_no_memory(laci_cpu_plan *plan) {
  laci_plan_fail(plan, LAC_NO_MEMORY, "not enough memory for the plan");
}

static laci_budget current_budget(const laci_cpu_plan *plan) {
  laci_budget now = plan->budget ? *plan->budget : laci_budget_with_limit(UINT64_MAX);
  laci_budget_add(&now, plan->weight_bytes, "weights");
  laci_budget_add(&now, plan->constant_bytes, "constants");
  return now;
}

bool laci_plan_has_budget_for(const laci_cpu_plan *plan, uint64_t bytes) {
  const laci_budget now = current_budget(plan);
  return laci_budget_allows(&now, bytes);
}

bool laci_plan_check_budget(laci_cpu_plan *plan, uint64_t bytes, int value) {
  char text[256] = "weights";
  if (plan->status) return false;
  laci_budget now = current_budget(plan);
  if (laci_budget_allows(&now, bytes)) return true;
  if (value >= 0) {
    const laci_plan_value *v = &plan->values[value];
    laci_value_describe(plan->graph, value, &v->type, text, sizeof text);
  }
  now.largest = 0; /* the failure names the value that does not fit, not the largest one */
  laci_budget_add(&now, bytes, "%s", text);
  plan->status = laci_budget_check(&now, "the plan", plan->err);
  return false;
}

void *laci_plan_try_alloc(laci_cpu_plan *plan, size_t n, size_t size) {
  if (!plan->memory) plan->memory = laci_alloc(1, sizeof *plan->memory);
  return plan->memory ? laci_arena_alloc(plan->memory, n, size) : NULL;
}

void *laci_plan_alloc(laci_cpu_plan *plan, size_t n, size_t size) {
  void *memory = plan->status ? NULL : laci_plan_try_alloc(plan, n, size);
  if (!memory) laci_plan_fail_no_memory(plan);
  return memory;
}

const char *laci_plan_copy_text(laci_cpu_plan *plan, const char *text) {
  const size_t n_bytes = strlen(text) + 1;
  char *copy = laci_plan_try_alloc(plan, n_bytes, 1);
  if (copy) memcpy(copy, text, n_bytes);
  else laci_plan_fail_no_memory(plan);
  return copy;
}
