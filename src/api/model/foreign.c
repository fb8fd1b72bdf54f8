/* SPDX-License-Identifier: Apache-2.0
 * Detects the format of a file that is not an ONNX model: by its first bytes, which are reliable,
 * then by its name. This is done only after reading has failed, so that an ONNX model of any name
 * is read. */
#include "api/model/foreign.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ending.h"
#include "base/error.h"

enum { HEAD_BYTES = 1024, LOOKED_AT = 64, MOST_HEADER = 100 << 20 };

#define TORCH                                                                                     \
  "in Python, load it into its network and torch.onnx.export(net.eval(), torch.randn(1, 3, 224, " \
  "224), 'net.onnx')"
#define KERAS \
  "python -c \"import keras; keras.saving.load_model('%s').export('net.onnx', format='onnx')\""
#define ORIGIN                                    \
  "export the network it was made from, such as " \
  "torch.onnx.export(net.eval(), torch.randn(1, 3, 224, 224), 'net.onnx')"

/* The name of a format, and how to convert it to ONNX (NULL: impossible, or the hint says how); %s
 * stands for the path. */
typedef struct kind {
  const char *what, *remedy;
  lac_hint hint;
} kind;

/* Formats that have a known text at a fixed offset of the file. */
static const struct {
  size_t offset;
  const char *magic;
  size_t n;
  kind is;
} magics[] = {
#define AT(offset, magic, what, remedy)                              \
  {                                                                  \
    offset, magic, sizeof magic - 1, { what, remedy, LAC_HINT_NONE } \
  }
#define HINT_AT(offset, magic, what, hint)                \
  {                                                       \
    offset, magic, sizeof magic - 1, { what, NULL, hint } \
  }
    HINT_AT(0, "\x89HDF\r\n\x1a\n", "a Keras network in HDF5", LAC_HINT_FROM_KERAS),
    HINT_AT(4, "TFL3", "a TensorFlow Lite network", LAC_HINT_FROM_TFLITE),
    AT(4, "ORTM", "a network in ONNX Runtime's own format", "wanted the .onnx it was made from"),
    AT(0, "GGUF", "weights in GGUF, without their network", ORIGIN),
    HINT_AT(0, "\x93NUMPY", "an array of NumPy", LAC_HINT_AN_ARRAY),
    HINT_AT(0, "LACUNAck", "a checkpoint of a training", LAC_HINT_A_CHECKPOINT),
    HINT_AT(0, "\x89PNG", "a PNG image", LAC_HINT_AN_IMAGE),
    HINT_AT(0, "\xff\xd8\xff", "a JPEG image", LAC_HINT_AN_IMAGE),
    AT(0, "GIF8", "a GIF image", NULL),
    AT(8, "WEBP", "a WebP image", NULL),
    AT(0, "%PDF", "a PDF document", NULL),
    AT(0, "\x1f\x8b", "compressed by gzip", "unpack it first: gunzip -c %s > net.onnx"),
    AT(0,
       "\xfd"
       "7zXZ",
       "compressed by xz", "unpack it first: xz -dc %s > net.onnx"),
    AT(0, "\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it first: zstd -dc %s > net.onnx"),
    AT(0, "BZh", "compressed by bzip2", "unpack it first: bunzip2 -c %s > net.onnx"),
    AT(257, "ustar", "a tar archive", "unpack it first: tar -xf %s"),
    AT(0, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it first: 7z x %s"),
    AT(0,
       "\x7f"
       "ELF",
       "a program or library", NULL),
    AT(0, "version https://git-lfs", "Git LFS's word for a file that was not fetched",
       "git lfs pull fetches it"),
#undef AT
#undef HINT_AT
};

/* Endings of names, for formats that cannot be recognized by their bytes. */
static const struct {
  const char *ending;
  kind is;
} endings[] = {
    {".pth", {"a PyTorch file", TORCH, LAC_HINT_NONE}},
    {".pt", {"a PyTorch file", TORCH, LAC_HINT_NONE}},
    {".ckpt", {"a checkpoint of another framework", TORCH, LAC_HINT_NONE}},
    {".pkl", {"a Python pickle", TORCH, LAC_HINT_NONE}},
    {".pickle", {"a Python pickle", TORCH, LAC_HINT_NONE}},
    {".bin", {"raw weights", ORIGIN, LAC_HINT_NONE}},
    {".safetensors", {"weights in safetensors, without their network", TORCH, LAC_HINT_NONE}},
    {".h5", {"a Keras network in HDF5", NULL, LAC_HINT_FROM_KERAS}},
    {".hdf5", {"a Keras network in HDF5", NULL, LAC_HINT_FROM_KERAS}},
    {".keras", {"a Keras network", KERAS, LAC_HINT_NONE}},
    {".tflite", {"a TensorFlow Lite network", NULL, LAC_HINT_FROM_TFLITE}},
    {".pb", {"a TensorFlow graph", NULL, LAC_HINT_FROM_GRAPH}},
    {".mlmodel", {"a Core ML network", ORIGIN, LAC_HINT_NONE}},
    {".mlpackage", {"a Core ML network", ORIGIN, LAC_HINT_NONE}},
    {".npz", {"arrays of NumPy", NULL, LAC_HINT_NONE}},
    {".data",
     {"the external data of a network", "wanted the .onnx file next to it", LAC_HINT_NONE}},
    {".engine", {"a TensorRT engine", ORIGIN, LAC_HINT_NONE}},
    {".caffemodel", {"weights of Caffe", ORIGIN, LAC_HINT_NONE}},
};

/* ---- Content ---- */

static kind find_format_by_name(const char *path) {
  size_t n = path ? strlen(path) : 0;
  while (n > 1 && path[n - 1] == '/') n--;
  for (size_t k = 0; k < sizeof endings / sizeof endings[0]; k++) {
    if (laci_ends_with_n(path ? path : "", n, endings[k].ending)) return endings[k].is;
  }
  return (kind){0};
}

/* Detects the format of a ZIP archive by the name of its first file. */
static kind find_format_of_zip(const uint8_t *bytes, size_t n, const char *path) {
  enum { NAME_LENGTH = 26, NAME = 30 };
  size_t n_name = n > NAME ? bytes[NAME_LENGTH] | (size_t)bytes[NAME_LENGTH + 1] << 8 : 0;
  const char *name = (const char *)bytes + NAME;
  if (n_name > n - (n < NAME ? n : NAME)) n_name = 0;
  if (laci_ends_with_n(name, n_name, "/data.pkl") ||
      laci_ends_with_n(name, n_name, "/.format_version"))
    return (kind){"a PyTorch file", TORCH, LAC_HINT_NONE};
  if (laci_ends_with_n(name, n_name, ".npy")) return (kind){"arrays of NumPy", NULL, LAC_HINT_NONE};
  if (laci_ends_with_n(name, n_name, "metadata.json") ||
      laci_ends_with_n(name, n_name, "config.json"))
    return (kind){"a Keras network", KERAS, LAC_HINT_NONE};
  kind is = find_format_by_name(path);
  return is.what ? is : (kind){"a ZIP archive", "unpack it first: unzip %s", LAC_HINT_NONE};
}

/* Does the file begin with printable ASCII characters only? Other texts are recognized by their
 * names. */
static bool begins_as_text(const uint8_t *bytes, size_t n) {
  for (size_t k = 0; k < n && k < LOOKED_AT; k++) {
    bool blank = bytes[k] == '\n' || bytes[k] == '\r' || bytes[k] == '\t' || bytes[k] == '\f';
    if ((bytes[k] < 0x20 && !blank) || bytes[k] >= 0x7f) return false;
  }
  return true;
}

static bool begins_with_text(const uint8_t *bytes, size_t n, const char *text) {
  return n >= strlen(text) && strncasecmp((const char *)bytes, text, strlen(text)) == 0;
}

static kind find_format_of_text(const uint8_t *bytes, size_t n) {
  while (n && strchr(" \t\r\n", *bytes)) bytes++, n--;
  if (begins_with_text(bytes, n, "<!doctype html") || begins_with_text(bytes, n, "<html"))
    return (kind){"a web page", "was it downloaded as a raw file?", LAC_HINT_NONE};
  if (begins_with_text(bytes, n, "<?xml") || begins_with_text(bytes, n, "<net"))
    return (kind){"XML (OpenVINO's?)", ORIGIN, LAC_HINT_NONE};
  if (begins_with_text(bytes, n, "{")) return (kind){"a JSON text", NULL, LAC_HINT_NONE};
  return (kind){"a text", NULL, LAC_HINT_NONE};
}

static bool begins_as_safetensors(const uint8_t *bytes, size_t n) {
  uint64_t header = 0;
  for (size_t k = 0; k < 8 && k < n; k++) header |= (uint64_t)bytes[k] << (8 * k);
  return n > 9 && header > 1 && header <= MOST_HEADER && bytes[8] == '{' && bytes[9] == '"';
}

/* Is this a pickle of protocol 2 or later? PyTorch's old files consist of several pickles. */
static bool begins_as_pickle(const uint8_t *bytes, size_t n) {
  return n > 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5 && bytes[2] >= 0x20;
}

static kind find_format_of_file(const uint8_t *bytes, size_t n, const char *path) {
  if (n == 0) return (kind){"an empty file", NULL, LAC_HINT_NONE};
  for (size_t k = 0; k < sizeof magics / sizeof magics[0]; k++) {
    size_t end = magics[k].offset + magics[k].n;
    if (n >= end && memcmp(bytes + magics[k].offset, magics[k].magic, magics[k].n) == 0)
      return magics[k].is;
  }
  if (n > 4 && memcmp(bytes, "PK\3\4", 4) == 0) return find_format_of_zip(bytes, n, path);
  if (begins_as_safetensors(bytes, n))
    return (kind){"weights in safetensors, without their network", TORCH, LAC_HINT_NONE};
  if (begins_as_pickle(bytes, n))
    return (kind){"a Python pickle, such as PyTorch writes", TORCH, LAC_HINT_NONE};
  if (begins_as_text(bytes, n)) return find_format_of_text(bytes, n);
  return find_format_by_name(path);
}

/* ---- Folders ---- */

static bool has_file(const char *folder, const char *name) {
  char path[PATH_MAX];
  int n = snprintf(path, sizeof path, "%s/%s", folder, name);
  return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

/* Finds the only ONNX file in a folder; false: there is none, or there are several. */
static bool find_only_onnx_file(const char *folder, char name[NAME_MAX + 1]) {
  int n_found = 0;
  DIR *files = opendir(folder);
  for (struct dirent *file; files && (file = readdir(files));) {
    if (!laci_ends_with(file->d_name, ".onnx")) continue;
    n_found++;
    strcpy(name, file->d_name);
  }
  if (files) (void)closedir(files);
  return n_found == 1;
}

static lac_status explain_folder_failure(const char *path, lac_status status, lac_error *err) {
  char name[NAME_MAX + 1];
  size_t n = strlen(path);
  const char *slash = n && path[n - 1] == '/' ? "" : "/";
  if (has_file(path, "saved_model.pb")) {
    return laci_hint(
        err, LAC_HINT_FROM_SAVED_MODEL,
        laci_fail(err, status, "%s: not an ONNX model: a TensorFlow SavedModel", path));
  }
  if (has_file(path, "Manifest.json")) {
    return laci_fail(err, status, "%s: not an ONNX model: a Core ML network; " ORIGIN, path);
  }
  if (find_only_onnx_file(path, name)) {
    return laci_fail(err, status, "%s: a folder, wanted an ONNX file, such as %s%s%s", path, path,
                     slash, name);
  }
  return laci_fail(err, status, "%s: a folder, wanted an ONNX file", path);
}

/* ---- */

lac_status laci_foreign_explain_bytes(const char *path, const void *bytes, size_t size_bytes,
                                      lac_status status, lac_error *err) {
  kind is = find_format_of_file(bytes, size_bytes < HEAD_BYTES ? size_bytes : HEAD_BYTES, path);
  const char *name = path ? path : "standard input",
             *hole = is.remedy ? strstr(is.remedy, "%s") : NULL;
  if (!is.what) return status;
  int n_head = hole ? (int)(hole - is.remedy) : is.remedy ? (int)strlen(is.remedy) : 0;
  return laci_hint(err, is.hint,
                   laci_fail(err, status, "%s%snot an ONNX model: %s%s%.*s%s%s", path ? path : "",
                             path ? ": " : "", is.what, is.remedy ? "; " : "", n_head,
                             is.remedy ? is.remedy : "", hole ? name : "", hole ? hole + 2 : ""));
}

lac_status laci_foreign_explain_file(const char *path, lac_status status, lac_error *err) {
  uint8_t head[HEAD_BYTES];
  struct stat found;
  if (stat(path, &found) != 0) return status;
  if (S_ISDIR(found.st_mode)) return explain_folder_failure(path, status, err);
  if (status != LAC_BAD_FILE || !S_ISREG(found.st_mode)) return status;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? -1 : read(file, head, sizeof head);
  if (file >= 0) (void)close(file);
  return n < 0 ? status : laci_foreign_explain_bytes(path, head, (size_t)n, status, err);
}
