/* SPDX-License-Identifier: Apache-2.0
 * Writes run.json, which says what a run is. It is written before the first step, so that it exists
 * even if the run fails. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "api/model/model_in.h"
#include "api/train/plan_in.h"
#include "api/train/record_in.h"
#include "api/train/train_in.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/writer.h"
#include "cpu/cpu.h"
#include "cpu/model.h"
#include "cpu/pool.h"
#include "data/dataset.h"
#include "report/json.h"
#include "runs/run_folder.h"

static lac_status write_mark(const char *folder, const char *text, lac_error *err) {
  char path[PATH_MAX];
  int in;
  int n = snprintf(path, sizeof path, "%s/" LACI_RUN_MARK, folder);
  if (n < 0 || (size_t)n >= sizeof path)
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: the name is too long", folder);
  lac_status st = laci_folder_enter(folder, &in, err);
  if (st) return st;
  st = laci_file_write_at(in, LACI_RUN_MARK, path, text, strlen(text), err);
  (void)close(in);
  return st;
}

lac_status laci_train_mark_folder(const laci_training *t, lac_error *err) {
  const lac_train_options *o = t->options;
  const laci_train_plan *p = t->plan;
  char started[32] = "", processor[LACI_CPU_MODEL], system[256] = "";
  time_t now = time(NULL);
  struct tm parts;
  struct utsname name;
  (void)strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  laci_cpu_read_model(processor);
  if (uname(&name) == 0)
    (void)snprintf(system, sizeof system, "%.64s %.64s", name.sysname, name.release);
  const laci_run_mark mark = {.started = started,
                              .network = t->model->path,
                              .seed = o->seed,
                              .steps = p->steps,
                              .options = p->about,
                              .processor = processor,
                              .instructions = laci_cpu_level_name(laci_cpu_level_in_force()),
                              .system = system,
                              .compiler = __VERSION__,
                              .threads = laci_pool_threads_wanted(o->run.threads),
                              .processes = p->processes,
                              .format = laci_dataset_format(p->set),
                              .images = laci_dataset_count(p->set),
                              .test_images = p->test_images,
                              .classes = laci_dataset_count_classes(p->set),
                              .data_hash = laci_train_hash_data(p)};
  char *text;
  lac_status st = laci_run_mark_json(&mark, &text, err);
  if (!st) st = write_mark(o->model_dir, text, err);
  laci_free(text);
  return st;
}
