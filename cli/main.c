/* SPDX-License-Identifier: Apache-2.0
 * The command `lacuna`: parses the command line, sets log and signal handlers, runs the verb, and
 * reports failures.
 *
 * The result is printed to standard output, the log to standard error. The exit status is 0 (done),
 * 1 (failed) or 2 (misuse). The first Ctrl-C asks running work to end, the second one ends the
 * program at once. Next: verbs.def, options.def, args.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file_set.h"
#include "base/temporary.h"
#include "complete.h"
#include "config.h"
#include "group.h"
#include "help.h"
#include "hint.h"
#include "lacuna/log.h"
#include "lacuna/prune.h"
#include "lacuna/version.h"
#include "outputs.h"
#include "run_options.h"
#include "spin_count.h"
#include "like.h"
#include "log.h"
#include "page.h"
#include "terminal.h"
#include "verbs.h"

enum { STATUS_OF_SIGNAL = 128 };

static volatile sig_atomic_t n_interrupts;
static volatile sig_atomic_t n_broken_pipes;
static volatile sig_atomic_t ends_by_itself; /* any signal only asks the work to end, since the verb
                                                saves or tidies up */
static struct timespec first_interrupt;

/* Is this signal a repetition of one that was just received? One event may send two signals: a
 * closing terminal and its shell, or timeout(1), which signals the process and its group. */
static bool is_repeated_signal(int signal) {
  struct timespec now;
  if (!ends_by_itself || n_interrupts == 0 || signal == SIGINT) return false;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return signal == SIGHUP || now.tv_sec - first_interrupt.tv_sec <= 1;
}

static void handle_interrupt_signal(int signal) {
  if (is_repeated_signal(signal)) return;
  if (n_interrupts == 0) (void)clock_gettime(CLOCK_MONOTONIC, &first_interrupt);
  n_interrupts = n_interrupts + 1;
  if (n_interrupts == 1 && (signal == SIGINT || ends_by_itself)) {
    lac_interrupt(true);
    return;
  }
  if (laci_file_set_is_renaming()) return; /* everything is done except for renaming the files */
  laci_temporary_remove_registered();
  _exit(STATUS_OF_SIGNAL + signal);
}

/* Opens descriptors 0 to 2 if they are closed. Otherwise the first file that the program opens
 * would get such a descriptor, and the result would be printed into that file. The replacements
 * cannot be read or written, so that their use is an error. */
static void open_standard_descriptors(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/* Handles SIGPIPE: the write that caused it fails, and the program tidies up and ends. */
static void handle_broken_pipe_signal(int signal) {
  (void)signal;
  n_broken_pipes = 1;
}

/* Ends the program silently by SIGPIPE, as other programs end if the reader of their standard
 * output has closed the pipe. */
static void end_process_by_sigpipe(void) {
  (void)signal(SIGPIPE, SIG_DFL);
  (void)raise(SIGPIPE);
}

/* Sets the signal handlers. SIGHUP ends the program as SIGTERM does, unless nohup has set it to be
 * ignored. SIGXFSZ is ignored: exceeding the limit of file sizes makes a write fail, after which
 * the program can tidy up. */
static void set_signal_handlers(void) {
  (void)signal(SIGINT, handle_interrupt_signal);
  (void)signal(SIGTERM, handle_interrupt_signal);
  if (signal(SIGHUP, handle_interrupt_signal) == SIG_IGN) (void)signal(SIGHUP, SIG_IGN);
  (void)signal(SIGXFSZ, SIG_IGN);
  if (signal(SIGPIPE, handle_broken_pipe_signal) == SIG_IGN) (void)signal(SIGPIPE, SIG_IGN);
}

exit_code exit_code_of_status(lac_status status) {
  if (status == LAC_BAD_ARGUMENT) return EXIT_MISUSE;
  return status ? EXIT_FAILED : EXIT_DONE;
}

exit_code verb_version(const arguments *args, lac_error *err) {
  (void)args;
  (void)err;
  printf("lacuna %s\n", lac_version());
  return EXIT_DONE;
}

static exit_code run_verb(arguments *args, lac_error *err) {
  static exit_code (*const verbs[VERB_COUNT])(const arguments *, lac_error *) = {
#define LAC_VERB(id, ...) [VERB_##id] = verb_##id,
#include "verbs.def"
#undef LAC_VERB
  };
  if (args->help) {
    help_print(stdout, args->verb);
    return EXIT_DONE;
  }
  if (args->print_config) return exit_code_of_status(config_print_yaml(args, stdout, err));
  lac_status st = run_options_load_engine_plugin(args, err);
  return st ? exit_code_of_status(st) : verbs[args->verb](args, err);
}

/* Prints a failure as one line. Control characters and invalid UTF-8 in names are replaced, so that
 * a terminal does not interpret them. */
static void print_failure(lac_error *err) {
  text_make_printable(err->text);
  fprintf(stderr, "lacuna: %s", err->text);
  hint_print_options(err, stderr);
  fputc('\n', stderr);
}

/* Translates another script's options (--like), parses the command line, and reads what it leaves
 * open from a configuration file. */
static lac_status parse_arguments(int argc, char **argv, like *words, arguments *args,
                                  lac_error *err) {
  *args = (arguments){.verb = VERB_help};
  lac_status st = script_translate(argc, argv, words, err);
  if (st) return st;
  st = words->script ? arguments_parse(words->argc, words->argv, args, err)
                     : arguments_parse(argc, argv, args, err);
  return st ? st : arguments_complete_from_files(args, words->script, err);
}

int main(int argc, char **argv) {
  lac_error err = {0};
  arguments args;
  static like words; /* static because it is large */
  open_standard_descriptors();
  spin_count_set_by_restart(argv);
  set_signal_handlers();
  page_record_command(argc, argv);
  lac_status st = parse_arguments(argc, argv, &words, &args, &err);
  if (group_has_no_work_here(&args)) {
    arguments_clear(&args);
    script_clear(&words);
    return EXIT_DONE;
  }
  exit_code code = exit_code_of_status(group_join(&args, st, &err));
  terminal_init(args.wide);
  if (code == EXIT_DONE) {
    ends_by_itself =
        args.verb == VERB_train || args.verb == VERB_finetune || args.verb == VERB_demo;
    log_begin_printing(&args);
    script_log_translation(&words);
    if (args.help && words.script) script_print_help(&words, stdout);
    else code = run_verb(&args, &err);
    log_end_printing();
  }
  if (code == EXIT_DONE) code = exit_code_of_status(outputs_flush(&err));
  bool lost_reader = code != EXIT_DONE && n_broken_pipes && ferror(stdout);
  if (code != EXIT_DONE && !lost_reader && group_should_print_failure(&args, &err)) {
    script_rename_error(&words, &err);
    print_failure(&err);
  }
  group_close(&args, code == EXIT_DONE ? LAC_OK : err.status);
  if (lost_reader) end_process_by_sigpipe();
  arguments_clear(&args);
  script_clear(&words);
  return (int)code;
}
