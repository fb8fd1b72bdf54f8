/* SPDX-License-Identifier: Apache-2.0
 * Memory limits, and sums of planned allocations. */
#include "base/budget.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"

static const uint64_t unlimited = UINT64_MAX;
enum { LINE = 4096, SHARE_PERCENT = 80 };

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t add_saturated(uint64_t a, uint64_t b) {
  return a > unlimited - b ? unlimited : a + b;
}

uint64_t laci_count_bytes_saturated(int64_t count, size_t size) {
  uint64_t bytes;
  if (count <= 0) return 0;
  return __builtin_mul_overflow((uint64_t)count, (uint64_t)size, &bytes) ? unlimited : bytes;
}

/* ---- What the machine, the control group and the shell allow ---- */

static FILE *open_group_file(const char *root, const char *folder, const char *name) {
  char path[LINE];
  int n = snprintf(path, sizeof path, "%s%s%s", root, folder, name);
  return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

/* Reads the line "MemTotal: 24114532 kB" of /proc/meminfo. */
static uint64_t read_machine_memory(const char *root) {
  static const char key[] = "MemTotal:";
  char line[LINE];
  uint64_t kib = 0;
  FILE *file = open_group_file(root, "/proc/meminfo", "");
  while (file && !kib && fgets(line, sizeof line, file)) {
    if (strncmp(line, key, sizeof key - 1) == 0) kib = strtoull(line + sizeof key - 1, NULL, 10);
  }
  if (file) (void)fclose(file);
  return kib > 0 && kib < unlimited / 1024 ? kib * 1024 : unlimited;
}

/* Reads the number in a control group's file; "max", or a missing file, means no limit. */
static uint64_t read_group_limit(const char *root, const char *folder, const char *name) {
  char line[LINE];
  uint64_t limit = unlimited;
  FILE *file = open_group_file(root, folder, name);
  if (file && fgets(line, sizeof line, file) && isdigit((unsigned char)line[0]))
    limit = strtoull(line, NULL, 10);
  if (file) (void)fclose(file);
  return limit;
}

/* Returns the lowest limit among those of the control group and of all groups that contain it,
 * since each of these applies. In a container the group's own folder may be missing, and the top
 * folder is the container's. */
static uint64_t find_group_limit(const char *root, const char *top, const char *group,
                                 const char *name) {
  char folder[LINE];
  uint64_t limit = unlimited;
  size_t n_top = strlen(top);
  int n = snprintf(folder, sizeof folder, "%s%s", top, group);
  if (n < 0 || (size_t)n >= sizeof folder) return unlimited;
  for (;;) {
    limit = min_u64(limit, read_group_limit(root, folder, name));
    char *slash = strlen(folder) > n_top ? strrchr(folder, '/') : NULL;
    if (!slash || slash < folder + n_top) return limit;
    *slash = 0;
  }
}

/* Does a list of controllers, such as "cpu,memory", hold `wanted`? */
static bool is_controller_listed(const char *list, const char *wanted) {
  size_t n = strlen(wanted);
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
    if (strncmp(at, wanted, n) == 0 && (at[n] == ',' || at[n] == 0)) return true;
  }
  return false;
}

/* Reads the lines of /proc/self/cgroup: "0::/a/b" of version 2, "4:memory:/a/b" of version 1. */
static uint64_t find_control_group_memory_limit(const char *root) {
  char line[LINE];
  uint64_t limit = unlimited;
  FILE *file = open_group_file(root, "/proc/self/cgroup", "");
  while (file && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0;
    list++;
    if (!*list) {
      limit = min_u64(limit, find_group_limit(root, "/sys/fs/cgroup", group, "/memory.max"));
    } else if (is_controller_listed(list, "memory")) {
      limit = min_u64(
          limit, find_group_limit(root, "/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes"));
    }
  }
  if (file) (void)fclose(file);
  return limit;
}

/* Returns how many bytes of address space RLIMIT_AS still allows. The first number of
 * /proc/self/statm is the number of pages in use. */
static uint64_t find_free_address_space(void) {
  struct rlimit limit;
  unsigned long long pages = 0;
  if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file && fscanf(file, "%llu", &pages) != 1) pages = 0;
  if (file) (void)fclose(file);
  uint64_t taken = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
  return limit.rlim_cur > taken ? (uint64_t)limit.rlim_cur - taken : 1;
}

uint64_t laci_memory_default_limit(const char *root) {
  uint64_t memory = min_u64(read_machine_memory(root), find_control_group_memory_limit(root));
  if (memory != unlimited) memory = memory / 100 * SHARE_PERCENT;
  return min_u64(memory, find_free_address_space());
}

/* ---- Sums of planned allocations ---- */

laci_budget laci_budget_with_limit(uint64_t limit) {
  return (laci_budget){.limit = limit ? limit : laci_memory_default_limit("")};
}

void laci_budget_add_unnamed(laci_budget *budget, uint64_t bytes) {
  budget->needed = add_saturated(budget->needed, bytes);
}

void laci_budget_add(laci_budget *budget, uint64_t bytes, const char *format, ...) {
  laci_budget_add_unnamed(budget, bytes);
  if (bytes <= budget->largest) return;
  budget->largest = bytes;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(budget->name, sizeof budget->name, format, args);
  va_end(args);
}

void laci_budget_subtract(laci_budget *budget, uint64_t bytes) {
  if (budget->needed != unlimited) budget->needed -= min_u64(bytes, budget->needed);
}

bool laci_budget_allows(const laci_budget *budget, uint64_t bytes) {
  return !budget || add_saturated(budget->needed, bytes) <= budget->limit;
}

void laci_budget_keep_larger(laci_budget *most, const laci_budget *phase) {
  if (phase->needed > most->needed) *most = *phase;
}

lac_status laci_budget_check(const laci_budget *budget, const char *what, lac_error *err) {
  char part[32], all[32], allowed[32];
  if (budget->needed <= budget->limit) return LAC_OK;
  return laci_hint(err, LAC_HINT_MAX_MEMORY,
                   laci_fail(err, LAC_MEMORY_LIMIT, "%s, %s; %s needs %s, %s are allowed",
                             budget->name, laci_size_text(budget->largest, part, sizeof part), what,
                             laci_size_text(budget->needed, all, sizeof all),
                             laci_size_text(budget->limit, allowed, sizeof allowed)));
}

/* ---- Sizes as text ---- */

static const char units[] = "KMGT";

bool laci_size_parse(const char *text, uint64_t *bytes) {
  char *end;
  if (!isdigit((unsigned char)text[0]) || strspn(text, "0123456789.") == 0) return false;
  double number = strtod(text, &end);
  if (strspn(text, "0123456789.") != (size_t)(end - text))
    return false; /* refuses "1e9" and "0x10", which are numbers for strtod */
  const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
  if (*end && (!unit || end[1])) return false;
  double size = ldexp(number, unit ? 10 * (int)(unit - units + 1) : 0);
  if (!(size >= 1 && size < 0x1p63)) return false;
  *bytes = (uint64_t)size;
  return true;
}

const char *laci_size_text(uint64_t bytes, char *buffer, size_t size) {
  double number = (double)bytes;
  int unit = -1;
  if (bytes == unlimited) {
    (void)snprintf(buffer, size, "more than 64 bits count");
  } else if (bytes < 1024) {
    (void)snprintf(buffer, size, "%" PRIu64 " bytes", bytes);
  } else {
    while (number >= 1023.95 && unit + 1 < (int)sizeof units - 1) {
      number /= 1024;
      unit++;
    }
    (void)snprintf(buffer, size, "%.1f %cB", number, units[unit < 0 ? 0 : unit]);
  }
  return buffer;
}
