/* SPDX-License-Identifier: Apache-2.0
 * The command's text for each of the library's hints. A hint without a text is a compile error. */
#include "hint.h"

#include <string.h>

#define TF2ONNX "; python -m tf2onnx.convert "

#define WORDS_NONE ""
#define WORDS_MAX_MEMORY " (--max-memory SIZE allows more)"
#define WORDS_VERIFY " (--no-verify leaves the verification out, --max-memory SIZE allows more)"
#define WORDS_INPUT_SHAPE " (--input-shape NAME=1x3x224x224 gives sizes)"
#define WORDS_UNVERIFIED \
  " (--no-verify goes on without it; --input-shape NAME=1x3x224x224 where sizes are wanted)"
#define WORDS_INPUT_ARRAY " (--input NAME=FILE.npy)"
#define WORDS_LENIENT " (--lenient freezes it)"
#define WORDS_CROP " (--crop N)"
#define WORDS_RESIZE " (--resize N --crop N)"
#define WORDS_CLASSES " (--classes FILE)"
#define WORDS_RATE " (--lr RATE)"
#define WORDS_BATCH " (--batch-size N)"
#define WORDS_ACCUMULATE " (--accumulate N, --batch-size N)"
#define WORDS_FROM_KERAS TF2ONNX "--keras % --output net.onnx"
#define WORDS_FROM_TFLITE TF2ONNX "--tflite % --output net.onnx"
#define WORDS_FROM_GRAPH                                      \
  TF2ONNX                                                     \
  "--graphdef % --inputs x:0 --outputs y:0 --output net.onnx" \
  " (a saved_model.pb: --saved-model and its folder)"
#define WORDS_FROM_SAVED_MODEL TF2ONNX "--saved-model % --output net.onnx"
#define WORDS_AN_ARRAY "; lacuna infer NET --input NAME=% runs one on it"
#define WORDS_A_CHECKPOINT \
  "; lacuna train and finetune go on from it with --model-dir and --recover"
#define WORDS_CALIBRATION " (--calibration DATA)"
#define WORDS_FORCE " (--force replaces it)"
#define WORDS_ALL_SIZES " (--all-sizes prunes what Tensor Cores do not take, too)"
#define WORDS_ENGINE " (--engine auto runs it, node by node where it has to)"
#define WORDS_SHORTCUT " (--shortcut conv)"
#define WORDS_AN_IMAGE "; lacuna eval --data DIR reads images"

/* The texts of all hints; a % in a text is replaced by the name of the file. */
static const char *const words[] = {
#define LAC_HINT(name, number, helps) \
  (WORDS_##name), /* parentheses: some texts consist of two literals */
#include "lacuna/hint.def"
#undef LAC_HINT
};

/* Returns the length of the file's name at the beginning of an error text; the name ends before ":
 * ". */
static int find_file_name_length(const char *text) {
  const char *end = strstr(text, ": not an ONNX model");
  return end ? (int)(end - text) : 0;
}

void hint_print_options(const lac_error *err, FILE *out) {
  if ((unsigned)err->hint >= LAC_HINT_COUNT) return;
  const char *text = words[err->hint], *hole = strchr(text, '%');
  if (!hole) {
    fputs(text, out);
    return;
  }
  fprintf(out, "%.*s%.*s%s", (int)(hole - text), text, find_file_name_length(err->text), err->text,
          hole + 1);
}
