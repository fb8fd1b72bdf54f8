/* SPDX-License-Identifier: Apache-2.0
 * The interface of plug-ins: shared objects, loaded at run time, for features that not every
 * machine has. A plug-in links nothing of the library and exports lac_plugin_open. It offers a
 * transport, or an engine (engine_plugin.h), or both.
 *
 * A transport carries bytes between processes that a launcher started together (MPI). The functions
 * broadcast, gather and exchange only start an operation and return at once. The caller leaves the
 * buffers alone until `test` reports that the operation is done. On each channel all processes
 * start the same operations in the same order. An operation on one channel never waits for one on
 * another channel. Lacuna calls all functions from one thread, the one that opened the transport.
 *
 * Next: engine_plugin.h, examples/engine, plugins/mpi, src/comm. */
#ifndef LACUNA_PLUGIN_H
#define LACUNA_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/engine_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this interface; a plug-in of another version is not used. Structs that begin with
 * their size may grow in the same version. */
#define LAC_PLUGIN_VERSION 2

/** Number of channels of a transport: they are 0 .. LAC_CHANNELS - 1. */
#define LAC_CHANNELS 3

/** Maximum number of bytes in one exchange or broadcast. */
#define LAC_TRANSPORT_MOST ((size_t)1 << 30)

/** A transport. Its functions that return an int return 0, or what their comment says, on success.
 * A negative result means that the transport failed; `why` then returns the reason in one line. */
typedef struct lac_transport {
  const char *name; /* name of the transport with its version */
  int rank, size;   /* number of this process, and number of processes: 0 <= rank < size */
  void *self;       /* passed as the first argument of all functions */

  /** Starts to send bytes [n] of process 0 to all other processes. */
  int (*broadcast)(void *self, int channel, void *bytes, size_t n, void **request);
  /** Starts to gather `all` in every process. Process k sends its part, bytes begin[k] .. begin[k +
   * 1], to all others. The array begin [size + 1] is the same in all processes. */
  int (*gather)(void *self, int channel, void *all, const size_t *begin, void **request);
  /** Starts to send bytes begin[k] .. begin[k + 1] of the buffer `from` to each process k; begin is
   * the same in all processes. The buffer `to` receives what process 0, 1 ... send to this process,
   * one after the other. */
  int (*exchange)(void *self, int channel, const void *from, const size_t *begin, void *to,
                  void **request);
  /** Returns 1 if the operation is done, and then frees *request; 0 if it is not done yet. The call
   * also makes progress with all other operations. */
  int (*test)(void *self, void **request);

  /** Sends a word to process 0, which gets it by `hear`. */
  int (*tell)(void *self, int64_t word);
  /** In process 0: returns 1 and the sender and its word if a word has arrived; else 0. */
  int (*hear)(void *self, int *from, int64_t *word);

  /** Ends the transport. code 0: all processes call it, and the transport is closed normally.
   * Another code: it ends all processes, also those that do not call it, and does not return. */
  void (*end)(void *self, int code);
  /** Returns why the last call failed, one sentence. */
  const char *(*why)(void *self);
} lac_transport;

/** What lac_plugin_open returns: the functions that the plug-in offers. A function that it does not
 * offer is NULL. */
typedef struct lac_plugin {
  int version; /* must be LAC_PLUGIN_VERSION; first in every version of this struct */
  size_t size; /* sizeof of this struct */
  /** Opens the transport, which exists until its function `end` is called. Called at most once per
   * process. Returns NULL on failure, with the reason in *why. */
  lac_transport *(*open_transport)(const char **why);
  /** Returns the engine; NULL: this machine cannot run it, and *why is the reason. Called once by
   * each lac_engine_load of a plug-in that offers one, until that succeeds. */
  const lac_engine_plugin *(*open_engine)(const char **why);
} lac_plugin;

/** The only symbol that is looked up in a plug-in. */
#define LAC_PLUGIN_SYMBOL "lac_plugin_open"
/** The one function that a plug-in exports, under the name LAC_PLUGIN_SYMBOL. */
typedef const lac_plugin *lac_plugin_open_function(void);

#ifdef __cplusplus
}
#endif
#endif
