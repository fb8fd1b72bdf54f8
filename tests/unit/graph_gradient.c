/* SPDX-License-Identifier: Apache-2.0
 * Every gradient rule against central differences in double (support/gradient_check.h), in several
 * forms each; what has no gradient is refused by name; what does not lead to a parameter gets no
 * nodes. Whole networks against another framework: graph_gradient_networks.c. */
#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "support/gradient_check.h"
#include "tensor/buf.h"

static const gradient_case unary_cases[] = {
#define UNARY(call) \
  { call, "input x 2x5 f64\ny = " call "\noutput y\n" }
    UNARY("Sigmoid(x)"),
    UNARY("Tanh(x)"),
    UNARY("Erf(x)"),
    UNARY("Exp(x)"),
    UNARY("Neg(x)"),
    UNARY("Abs(x)"),
    UNARY("Sin(x)"),
    UNARY("Cos(x)"),
    UNARY("Tan(x)"),
    UNARY("Atan(x)"),
    UNARY("Sinh(x)"),
    UNARY("Cosh(x)"),
    UNARY("Asinh(x)"),
    UNARY("Reciprocal(x)"),
    UNARY("Relu(x)"),
    UNARY("Softplus(x)"),
    UNARY("Softsign(x)"),
    UNARY("LeakyRelu(x) alpha=0.3"),
    UNARY("LeakyRelu(x)"),
    UNARY("Elu(x) alpha=0.7"),
    UNARY("Selu(x)"),
    UNARY("Celu(x) alpha=0.4"),
    UNARY("ThresholdedRelu(x) alpha=0.6"),
    UNARY("HardSwish(x)"),
    UNARY("HardSigmoid(x)"),
    UNARY("HardSigmoid(x) alpha=0.9 beta=0.4"),
    UNARY("Gelu(x)"),
    UNARY("Gelu(x) approximate=\"tanh\""),
    UNARY("Mish(x)"),
    UNARY("Swish(x) alpha=1.5"),
    UNARY("Identity(x)"),
    UNARY("Dropout(x)"),
    UNARY("Cast(x) to=11"),
    UNARY("Floor(x)"),
    UNARY("Ceil(x)"),
    UNARY("Round(x)"),
    UNARY("Sign(x)"),
    UNARY("Softmax(x)"),
    UNARY("LogSoftmax(x)"),
    UNARY("Softmax(x) axis=0"),
    UNARY("LogSoftmax(x) axis=0"),
#undef UNARY
    {"Sqrt and Log",
     "stored x 2x5 f64 positive\na = Sqrt(x)\nb = Log(x)\ny = Mul(a, b)\noutput y\n"},
    {"Acosh", "stored x 5 f64 = 1.2 1.5 2 3 1.1\ny = Acosh(x)\noutput y\n"},
    {"Asin, Acos, Atanh",
     "stored x 5 f64 = 0.2 -0.5 0.3 -0.9 0.7\na = Asin(x)\nb = Acos(x)\n"
     "c = Atanh(x)\ny = Sum(a, b, c)\noutput y\n"},
    {"HardSwish and HardSigmoid beyond their bends",
     "stored x 6 f64 = -4 -2.9 -1 1 2.9 4\na = HardSwish(x)\nb = HardSigmoid(x)\ny = Add(a, b)\n"
     "output y\n"},
    {"Softplus, Mish far out",
     "stored x 4 f64 = -30 -8 8 30\na = Softplus(x)\nb = Mish(x)\ny = Add(a, b)\noutput y\n"},
    {"Clip, both bounds",
     "input x 3x4 f64\nstored c_low \"\" f64 = -0.6\nstored c_high \"\" f64 = 0.7\n"
     "y = Clip(x, c_low, c_high)\noutput y\n"},
    {"Clip, upper bound only",
     "input x 3x4 f64\nstored c_high \"\" f64 = 0.7\ny = Clip(x, _, c_high)\noutput y\n"},
    {"Clip by attributes", "opset 6\ninput x 3x4 f64\ny = Clip(x) min=-0.5 max=0.9\noutput y\n"},
    {"Softmax over all axes from one on",
     "opset 11\ninput x 2x3x2 f64\ny = Softmax(x) axis=1\noutput y\n"},
    {"LogSoftmax over all axes from one on",
     "opset 11\ninput x 2x3x2 f64\ny = LogSoftmax(x) axis=1\noutput y\n"},
};

static const gradient_case binary_cases[] = {
#define BINARY(op, a, b) \
  { op " of " a " and " b, "input a " a " f64\ninput b " b " f64\ny = " op "(a, b)\noutput y\n" }
#define BINARIES(op)                                                          \
  BINARY(op, "2x3", "2x3"), BINARY(op, "2x3", "3"), BINARY(op, "1x3", "2x1"), \
      BINARY(op, "2x1x3", "4x1"), BINARY(op, "1", "2x2")
    BINARIES("Add"),
    BINARIES("Sub"),
    BINARIES("Mul"),
    BINARIES("Div"),
    BINARIES("Max"),
    BINARIES("Min"),
    BINARY("MatMul", "2x3", "3x4"),
    BINARY("MatMul", "2x2x3", "3x4"),
    BINARY("MatMul", "2x2x3", "2x3x2"),
    BINARY("MatMul", "2x1x2x3", "3x3x2"),
    BINARY("MatMul", "2x3", "4x3x2"),
    BINARY("MatMul", "3", "3x4"),
    BINARY("MatMul", "2x3", "3"),
    BINARY("MatMul", "3", "3"),
    BINARY("MatMul", "3", "2x3x4"),
    BINARY("MatMul", "2x4x3", "3"),
#undef BINARIES
#undef BINARY
    {"both operands the same", "input x 2x3 f64\ny = Mul(x, x)\noutput y\n"},
    {"x / x^2 through three readers",
     "input x 2x3 f64\na = Mul(x, x)\nb = Div(x, a)\n"
     "y = Sub(b, x)\noutput y\n"},
    {"Pow of two", "input a 2x3 f64\nstored c_e \"\" f64 = 2\ny = Pow(a, c_e)\noutput y\n"},
    {"Pow of three", "input a 2x3 f64\nstored c_e \"\" f64 = 3\ny = Pow(a, c_e)\noutput y\n"},
    {"Pow of a half",
     "stored a 2x3 f64 positive\nstored c_e \"\" f64 = 0.5\ny = Pow(a, c_e)\noutput y\n"},
    {"Pow of an integer type",
     "input a 2x3 f64\nstored c_e \"\" i64 = 3\ny = Pow(a, c_e)\noutput y\n"},
    {"Pow with both wanted", "stored a 2x3 f64 positive\ninput e 3 f64\ny = Pow(a, e)\noutput y\n"},
    {"Max of three",
     "input a 2x3 f64\ninput b 3 f64\ninput d 2x1 f64\ny = Max(a, b, d)\noutput y\n"},
    {"Sum and Mean of three",
     "input a 2x3 f64\ninput b 3 f64\ninput d 1x1 f64\n"
     "s = Sum(a, b, d)\nm = Mean(b, s, a)\ny = Mul(s, m)\noutput y\n"},
    {"PRelu of one slope", "input x 2x3x2 f64\ninput s 1 f64\ny = PRelu(x, s)\noutput y\n"},
    {"PRelu of a slope a channel",
     "input x 2x3x2 f64\ninput s 3x1 f64\ny = PRelu(x, s)\noutput y\n"},
    {"Where",
     "input a 2x3 f64\ninput b 3 f64\nstored c_which 2x1 bool = 1 0\n"
     "y = Where(c_which, a, b)\noutput y\n"},
    {"Where by a comparison",
     "input a 2x3 f64\ninput b 2x3 f64\nc_which = Less(a, b)\n"
     "y = Where(c_which, a, b)\noutput y\n"},
    {"SwiGLU", "input a 2x3 f64\ninput b 2x3 f64\ny = SwiGLU(a, b) alpha=1.5\noutput y\n"},
    {"SwiGLU of one operand", "input a 2x3 f64\ny = SwiGLU(a, a)\noutput y\n"},
    {"Einsum as a product",
     "input a 2x3 f64\ninput b 4x3 f64\ny = Einsum(a, b) equation=\"ik,jk\"\noutput y\n"},
    {"Einsum of three, with an index that one operand has alone",
     "input a 2x3 f64\ninput b 3x4x2 f64\ninput d 4 f64\n"
     "y = Einsum(a, b, d) equation=\"ik,kjm,j->ji\"\noutput y\n"},
    {"Einsum with axes that are not named",
     "input a 2x3x4 f64\ninput b 4x5 f64\ny = Einsum(a, b) equation=\"...A,Ab->b...\"\noutput y\n"},
    {"Einsum of one", "input a 2x3x4 f64\ny = Einsum(a) equation=\"abc->ca\"\noutput y\n"},
    {"Trilu above", "input a 2x3x4 f64\nstored k \"\" i64 = 1\ny = Trilu(a, k)\noutput y\n"},
    {"Trilu below", "input a 3x3 f64\ny = Trilu(a) upper=0\noutput y\n"},
    {"Gemm", "input a 2x3 f64\ninput b 3x4 f64\ninput d 4 f64\ny = Gemm(a, b, d)\noutput y\n"},
    {"Gemm, A transposed",
     "input a 3x2 f64\ninput b 3x4 f64\ny = Gemm(a, b) transA=1 alpha=0.5\noutput y\n"},
    {"Gemm, B transposed",
     "input a 2x3 f64\ninput b 4x3 f64\ninput d 2x1 f64\n"
     "y = Gemm(a, b, d) transB=1 beta=0.25\noutput y\n"},
    {"Gemm, both transposed",
     "input a 3x2 f64\ninput b 4x3 f64\ninput d 1x4 f64\n"
     "y = Gemm(a, b, d) transA=1 transB=1 alpha=2.0 beta=3.0\noutput y\n"},
};

static const gradient_case window_cases[] = {
    {"Resize to twice the size, nearest",
     "input x 1x2x2x3 f64\nstored c_s 4 = 1 1 2 2\ny = Resize(x, _, c_s)\noutput y\n"},
    {"Resize to given sizes, linear",
     "input x 1x2x3x4 f64\nstored s 4 i64 = 1 2 5 2\n"
     "y = Resize(x, _, _, s) mode=\"linear\"\noutput y\n"},
    {"Resize along named axes, cubic",
     "input x 3x2x4 f64\nstored s 2 i64 = 6 5\ny = Resize(x, _, _, s) axes=-1,0 mode=\"cubic\" "
     "coordinate_transformation_mode=\"align_corners\" exclude_outside=1 cubic_coeff_a=-0.5\n"
     "output y\n"},
    {"Resize to fewer, smoothed",
     "input x 1x1x6 f64\nstored s 3 i64 = 1 1 4\n"
     "y = Resize(x, _, _, s) mode=\"linear\" antialias=1\noutput y\n"},
    {"Resize of opset 10",
     "opset 10\ninput x 1x2x3x4 f64\nstored c_s 4 = 1 1 3 0.5\ny = Resize(x, c_s)\noutput y\n"},
    {"Upsample", "opset 8\ninput x 1x2x3 f64\ny = Upsample(x) scales=1.0,2.0,3.0\noutput y\n"},
    {"Upsample, linear",
     "opset 9\ninput x 1x2x3 f64\nstored c_s 3 = 1 1 2\ny = Upsample(x, c_s) mode=\"linear\"\n"
     "output y\n"},
#define CONV(about, x, w, rest) \
  { about, "input x " x " f64\ninput w " w " f64\ny = Conv(x, w) " rest "\noutput y\n" }
    CONV("Conv", "2x3x5x4", "4x3x3x3", ""),
    CONV("Conv 1x1", "2x3x3x2", "4x3x1x1", ""),
    CONV("Conv 1x1, strided", "2x2x5x5", "3x2x1x1", "strides=2,2"),
    CONV("Conv, padded", "1x2x4x5", "3x2x3x3", "pads=1,1,1,1"),
    CONV("Conv, padded unevenly and strided", "2x2x5x6", "3x2x3x2", "pads=2,0,1,1 strides=2,3"),
    CONV("Conv, dilated", "1x2x6x7", "2x2x2x3", "dilations=3,2 pads=1,2,0,1"),
    CONV("Conv in groups", "2x4x4x4", "6x2x3x3", "group=2 pads=1,1,1,1"),
    CONV("Conv, depthwise", "2x3x5x5", "3x1x3x3", "group=3 pads=1,1,1,1 strides=2,2"),
    CONV("Conv, depthwise with a multiplier", "1x2x4x4", "6x1x2x2", "group=2"),
    CONV("Conv, SAME_UPPER", "1x2x5x4", "2x2x3x2", "auto_pad=\"SAME_UPPER\" strides=2,2"),
    CONV("Conv, SAME_LOWER", "1x2x5x4", "2x2x2x3", "auto_pad=\"SAME_LOWER\""),
    CONV("Conv, VALID", "1x2x5x4", "2x2x2x3", "auto_pad=\"VALID\" strides=2,1"),
    CONV("Conv of one axis", "2x2x7", "3x2x3", "pads=1,1 strides=2,"),
    CONV("Conv of three axes", "1x2x3x3x4", "2x2x2x2x2", "pads=1,0,0,0,0,1"),
    CONV("Conv whose stride leaves places out", "1x1x7x7", "2x1x2x2", "strides=3,3"),
#undef CONV
    {"Conv with a bias",
     "input x 2x2x3x3 f64\ninput w 3x2x2x2 f64\ninput b 3 f64\n"
     "y = Conv(x, w, b)\noutput y\n"},
    {"Conv, only the weight",
     "input c_x 2x2x3x3 f64\ninput w 3x2x2x2 f64\ny = Conv(c_x, w)\noutput y\n"},
#define TRANSPOSED(about, x, w, rest) \
  { about, "input x " x " f64\ninput w " w " f64\ny = ConvTranspose(x, w) " rest "\noutput y\n" }
    TRANSPOSED("ConvTranspose", "2x3x3x2", "3x2x2x3", ""),
    TRANSPOSED("ConvTranspose, strided and padded", "1x2x3x4", "2x3x3x3",
               "strides=2,2 pads=1,1,1,1"),
    TRANSPOSED("ConvTranspose, output padding", "1x2x3x3", "2x2x3x3",
               "strides=2,3 pads=1,0,1,2 output_padding=1,2"),
    TRANSPOSED("ConvTranspose, dilated, in groups", "1x4x3x3", "4x2x2x2", "group=2 dilations=2,3"),
    TRANSPOSED("ConvTranspose, output shape", "1x2x3x3", "2x2x3x3", "strides=2,2 output_shape=6,5"),
#undef TRANSPOSED
    {"ConvTranspose with a bias",
     "input x 1x2x3x3 f64\ninput w 2x3x2x2 f64\ninput b 3 f64\n"
     "y = ConvTranspose(x, w, b)\noutput y\n"},
#define POOL(op, x, rest) \
  { op " " rest, "input x " x " f64\ny = " op "(x) " rest "\noutput y\n" }
    POOL("MaxPool", "2x2x4x6", "kernel_shape=2,2 strides=2,2"),
    POOL("MaxPool", "1x2x5x5", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"),
    POOL("MaxPool", "1x2x6x5", "kernel_shape=3,2 strides=2,2 ceil_mode=1"),
    POOL("MaxPool", "1x1x6x6", "kernel_shape=2,3 dilations=2,1"),
    POOL("MaxPool", "1x2x5x4", "kernel_shape=3,3 strides=2,2 auto_pad=\"SAME_LOWER\""),
    POOL("MaxPool", "2x2x7", "kernel_shape=3, strides=2,"),
    POOL("AveragePool", "2x2x4x6", "kernel_shape=2,2 strides=2,2"),
    POOL("AveragePool", "1x2x5x5", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"),
    POOL("AveragePool", "1x2x5x5", "kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1"),
    POOL("AveragePool", "1x2x6x5", "kernel_shape=3,2 strides=2,2 ceil_mode=1"),
    POOL("AveragePool", "1x2x6x5",
         "kernel_shape=3,2 strides=2,2 ceil_mode=1 pads=1,0,1,1 count_include_pad=1"),
    POOL("AveragePool", "1x2x5x4", "kernel_shape=2,3 auto_pad=\"SAME_UPPER\""),
    POOL("GlobalAveragePool", "2x3x4x2", ""),
    POOL("GlobalMaxPool", "2x3x4x2", ""),
#undef POOL
};

static const gradient_case norm_cases[] = {
#define NORM(about, x, head, call) \
  { about, head "input x " x " f64\ninput s 4 f64\ninput b 4 f64\ny = " call "\noutput y\n" }
    NORM("LayerNormalization", "2x3x4", "", "LayerNormalization(x, s, b)"),
    NORM("LayerNormalization over two axes", "2x3x4", "", "LayerNormalization(x, s, b) axis=1"),
    NORM("LayerNormalization of all", "2x4", "", "LayerNormalization(x, s, b) axis=0 epsilon=0.1"),
    NORM("LayerNormalization without a bias", "2x3x4", "", "LayerNormalization(x, s)"),
    NORM("InstanceNormalization", "2x4x3x2", "", "InstanceNormalization(x, s, b) epsilon=0.01"),
    NORM("GroupNormalization", "2x4x3x2", "", "GroupNormalization(x, s, b) num_groups=2"),
    NORM("GroupNormalization, one parameter a group", "2x8x3", "opset 18\n",
         "GroupNormalization(x, s, b) num_groups=4"),
    NORM("RMSNormalization", "2x3x4", "", "RMSNormalization(x, s)"),
    NORM("RMSNormalization over two axes", "2x3x4", "",
         "RMSNormalization(x, s) axis=1 epsilon=0.2"),
#undef NORM
    {"RMSNormalization with a scale of its own shape",
     "input x 2x3x4 f64\ninput s 3x1 f64\ny = RMSNormalization(x, s) axis=-2\noutput y\n"},
    {"LpNormalization", "input x 2x3x4 f64\ny = LpNormalization(x)\noutput y\n"},
    {"LpNormalization by absolute values",
     "input x 2x3x4 f64\ny = LpNormalization(x) p=1 axis=1\noutput y\n"},
    {"MeanVarianceNormalization",
     "input x 2x3x2x2 f64\ny = MeanVarianceNormalization(x)\noutput y\n"},
    {"MeanVarianceNormalization over two axes",
     "input x 2x3x4 f64\ny = MeanVarianceNormalization(x) axes=-1,0\noutput y\n"},
    {"LayerNormalization with a scale of its own shape",
     "input x 2x3x4 f64\ninput s 3x1 f64\ninput b 1x4 f64\n"
     "y = LayerNormalization(x, s, b) axis=1\noutput y\n"},
    {"BatchNormalization with fixed statistics",
     "input x 2x3x2x2 f64\ninput s 3 f64\ninput b 3 f64\nstored c_m 3 f64\n"
     "stored c_v 3 f64 positive\ny = BatchNormalization(x, s, b, c_m, c_v) epsilon=0.01\noutput "
     "y\n"},
    {"BatchNormTrain",
     "input x 3x2x2x3 f64\ninput s 2 f64\ninput b 2 f64\nstored c_m 2 f64\nstored c_v 2 f64\n"
     "y, m, v, c, d = BatchNormTrain(x, s, b, c_m, c_v) epsilon=0.01 domain=\"lacuna\"\noutput "
     "y\n"},
    {"BatchNormTrain of two axes",
     "input x 5x2 f64\ninput s 2 f64\ninput b 2 f64\nstored c_m 2 f64\nstored c_v 2 f64\n"
     "y, m, v, c, d = BatchNormTrain(x, s, b, c_m, c_v) domain=\"lacuna\"\noutput y\n"},
    {"BatchNormTrain by statistics that stay",
     "input x 3x2x2x3 f64\ninput s 2 f64\ninput b 2 f64\nstored c_m 2 f64\nstored c_v 2 f64 "
     "positive\ny, m, v = BatchNormTrain(x, s, b, c_m, c_v) epsilon=0.01 fixed=1 "
     "domain=\"lacuna\"\noutput y\n"},
    {"SoftmaxCrossEntropy of one-hot labels",
     "input x 2x4 f64\nstored c_l 2x4 f64 = 0 1 0 0 0 0 0 1\n"
     "y = SoftmaxCrossEntropy(x, c_l) domain=\"lacuna\"\noutput y\n"},
    {"SoftmaxCrossEntropy of mixed labels",
     "input x 3x3 f64\nstored c_l 3x3 f64 = 0.1 0.8 0.1 0.5 0 0.5 0.3 0.3 0.4\n"
     "y = SoftmaxCrossEntropy(x, c_l) domain=\"lacuna\"\noutput y\n"},
    {"SquaredError",
     "input x 2x3 f64\nstored c_t 2x3 f64\n"
     "y = SquaredError(x, c_t) factor=0.25 domain=\"lacuna\"\noutput y\n"},
    {"SquaredError, relative",
     "input x 2x3x2x2 f64\nstored c_t 2x3x2x2 f64\n"
     "y = SquaredError(x, c_t) factor=0.5 relative=1 domain=\"lacuna\"\noutput y\n"},
};

static const gradient_case shape_cases[] = {
#define SHAPE(about, x, rest) \
  { about, "input x " x " f64\n" rest "\noutput y\n" }
    SHAPE("Reshape", "2x6", "stored s 3 i64 = 3 -1 2\ny = Reshape(x, s)"),
    SHAPE("Flatten", "2x3x2", "y = Flatten(x)"),
    SHAPE("Squeeze", "2x1x3x1", "stored s 1 i64 = 1\ny = Squeeze(x, s)"),
    SHAPE("Unsqueeze", "2x3", "stored s 2 i64 = 0 -1\ny = Unsqueeze(x, s)"),
    SHAPE("Transpose", "2x3x4", "y = Transpose(x) perm=2,0,1"),
    SHAPE("Transpose backwards", "2x3x4", "y = Transpose(x)"),
    SHAPE("Expand", "3x1", "stored s 3 i64 = 2 1 4\ny = Expand(x, s)"),
    SHAPE("Tile", "2x3", "stored s 2 i64 = 2 3\ny = Tile(x, s)"),
    SHAPE("DepthToSpace", "1x8x2x3", "y = DepthToSpace(x) blocksize=2"),
    SHAPE("DepthToSpace, column first", "1x8x2x1", "y = DepthToSpace(x) blocksize=2 mode=\"CRD\""),
    SHAPE("SpaceToDepth", "1x2x4x2", "y = SpaceToDepth(x) blocksize=2"),
    SHAPE("Gather", "4x3", "stored i 2x2 i64 = 1 3 1 -1\ny = Gather(x, i)"),
    SHAPE("Gather along the last axis", "2x3x4",
          "stored i 3 i64 = 2 0 2\ny = Gather(x, i) axis=-1"),
    SHAPE("Gather by a scalar", "2x3x4", "stored i \"\" i64 = 1\ny = Gather(x, i) axis=1"),
    SHAPE("Concat", "2x3", "input z 2x2 f64\ny = Concat(x, z, x) axis=1"),
    SHAPE("Concat with a constant", "2x3", "input c_z 1x3 f64\ny = Concat(c_z, x) axis=-2"),
    SHAPE("Split", "2x5",
          "stored s 2 i64 = 2 3\na, b = Split(x, s) axis=1\nd = Mul(b, b)\n"
          "y = Concat(d, a) axis=1"),
    SHAPE("Split with a part unused", "2x6",
          "a, d, b = Split(x) axis=-1 num_outputs=3\ny = Mul(a, b)"),
    SHAPE("Split with a part absent", "2x6",
          "a, _, b = Split(x) axis=-1 num_outputs=3\ny = Mul(a, b)"),
    SHAPE("Slice", "4x5", "stored s 2 i64 = 1 -3\nstored e 2 i64 = 4 100\ny = Slice(x, s, e)"),
    SHAPE("Slice in steps, backwards", "5x6",
          "stored s 2 i64 = -1 0\nstored e 2 i64 = 0 6\nstored a 2 i64 = 0 1\n"
          "stored t 2 i64 = -2 3\ny = Slice(x, s, e, a, t)"),
    SHAPE("Pad", "2x3", "stored p 4 i64 = 1 0 0 2\ny = Pad(x, p)"),
    SHAPE("Pad that crops", "3x4", "stored p 4 i64 = -1 1 0 -2\ny = Pad(x, p)"),
    SHAPE(
        "Pad with a value along one axis", "3x2",
        "stored p 2 i64 = 1 1\nstored c_v \"\" f64 = 5\nstored a 1 i64 = 0\ny = Pad(x, p, c_v, a)"),
#define REDUCE(op, rest) \
  SHAPE(op " " rest, "2x3x2", "stored a 2 i64 = 0 -1\ny = " op "(x, a) " rest)
    REDUCE("ReduceSum", ""),
    REDUCE("ReduceSum", "keepdims=0"),
    REDUCE("ReduceMean", ""),
    REDUCE("ReduceMean", "keepdims=0"),
    REDUCE("ReduceMax", ""),
    REDUCE("ReduceMax", "keepdims=0"),
    REDUCE("ReduceMin", "keepdims=0"),
    REDUCE("ReduceL1", "keepdims=1"),
    REDUCE("ReduceL2", "keepdims=0"),
    REDUCE("ReduceSumSquare", ""),
    REDUCE("ReduceLogSumExp", "keepdims=0"),
#undef REDUCE
    SHAPE("ReduceMean of all, by attribute", "2x3", "opset 11\ny = ReduceMean(x) keepdims=0"),
    SHAPE("ReduceSum of nothing", "2x3", "y = ReduceSum(x) noop_with_empty_axes=1"),
#undef SHAPE
    {"shapes computed by the network",
     "input x 2x3x4 f64\ns = Shape(x)\nstored i 1 i64 = 0\nn = Gather(s, i)\nstored m 1 i64 = -1\n"
     "t = Concat(n, m) axis=0\ny = Reshape(x, t)\noutput y\n"},
    {"attention",
     "input x 1x3x4 f64\ninput q 4x4 f64\ninput k 4x4 f64\ninput v 4x4 f64\nstored c_n \"\" f64 = "
     "2\n"
     "a = MatMul(x, q)\nb = MatMul(x, k)\nd = MatMul(x, v)\nstored s 4 i64 = 1 3 2 2\n"
     "ah = Reshape(a, s)\nbh = Reshape(b, s)\ndh = Reshape(d, s)\nat = Transpose(ah) perm=0,2,1,3\n"
     "bt = Transpose(bh) perm=0,2,3,1\ndt = Transpose(dh) perm=0,2,1,3\nw = MatMul(at, bt)\n"
     "z = Div(w, c_n)\np = Softmax(z) axis=-1\ny = MatMul(p, dt)\noutput y\n"},
    {"squeeze and excite",
     "input x 1x4x3x3 f64\ninput w 2x4x1x1 f64\ninput u 4x2x1x1 f64\np = GlobalAveragePool(x)\n"
     "a = Conv(p, w)\nr = Relu(a)\ne = Conv(r, u)\ng = HardSigmoid(e)\ny = Mul(x, g)\noutput y\n"},
};

static void check_all(const gradient_case *cases, size_t n) {
  for (size_t at = 0; at < n; at++) check_gradient(&cases[at]);
}

#define CHECK_ALL(cases) check_all(cases, sizeof cases / sizeof *cases)

static void activations_agree_with_differences(void **state) {
  (void)state;
  CHECK_ALL(unary_cases);
}

static void operations_of_two_agree_with_differences(void **state) {
  (void)state;
  CHECK_ALL(binary_cases);
}

static void convolutions_and_pools_agree_with_differences(void **state) {
  (void)state;
  CHECK_ALL(window_cases);
}

static void normalizations_and_losses_agree_with_differences(void **state) {
  (void)state;
  CHECK_ALL(norm_cases);
}

static void movements_and_reductions_agree_with_differences(void **state) {
  (void)state;
  CHECK_ALL(shape_cases);
}

/** Every operator with a rule of its own or a slope is in one of the tables. */
static void every_rule_has_a_case(void **state) {
  (void)state;
  const gradient_case *tables[] = {unary_cases, binary_cases, window_cases, norm_cases,
                                   shape_cases};
  const size_t sizes[] = {
      sizeof unary_cases / sizeof *unary_cases, sizeof binary_cases / sizeof *binary_cases,
      sizeof window_cases / sizeof *window_cases, sizeof norm_cases / sizeof *norm_cases,
      sizeof shape_cases / sizeof *shape_cases};
  int n, n_rules = 0;
  const laci_op *const *ops = laci_op_all(&n);
  for (int op = 0; op < n; op++) {
    char call[64];
    bool found = false;
    if (!ops[op]->gradient && !ops[op]->slope) continue;
    n_rules++;
    (void)snprintf(call, sizeof call, "= %s(", ops[op]->name);
    for (size_t t = 0; t < 5; t++)
      for (size_t at = 0; at < sizes[t]; at++) found |= strstr(tables[t][at].net, call) != NULL;
    if (!found) fail_msg("%s has a gradient and no case", ops[op]->name);
  }
  assert_true(n_rules > 80);
}

typedef struct refused {
  const char *net, *text;
} refused;

static void what_has_no_gradient_is_refused_by_name(void **state) {
  (void)state;
  static const refused cases[] = {
      {"input x 2x3 f64\ny = CumSum(x, i) name=\"sums\"\nstored i \"\" i64 = 0\noutput y\n",
       "sums: operator CumSum has no gradient"},
      {"input x 2x3 f64\ny = Magic(x) domain=\"my\" name=\"trick\"\nshape y 2x3\noutput y\n",
       "trick: operator my.Magic has no gradient"},
      {"input x 2x3 f64\nstored p 4 i64 = 0 1 0 1\ny = Pad(x, p) mode=\"reflect\"\noutput y\n",
       "only constant padding"},
      {"input x 2x3 f64\ninput low \"\" f64\ny = Clip(x, low)\noutput y\n",
       "its bounds have no gradient"},
      {"input x 4x2 f64\ninput s 2 f64\nstored c_m 2 f64\nstored c_v 2 f64\n"
       "y = BatchNormTrain(x, s, s, c_m, c_v) domain=\"lacuna\"\noutput y\n",
       "without its batch's statistics"},
      {"input x 1x5 f64\nstored c_s 2 = 1 1.5\ny = Resize(x, _, c_s)\noutput y\n",
       "only scales that are quotients of sizes"},
      {"input x 3x3 f64\ny = Einsum(x) equation=\"ii->i\"\noutput y\n",
       "diagonals and broadcasts have no gradient"},
      {"input x 2x3 f16\ny = Sqrt(x)\noutput y\n", "f32 or f64"},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    lac_error err = {0};
    gradient_net net;
    lac_status st = gradient_net_make(cases[at].net, &net, &err);
    if (st != LAC_UNSUPPORTED || !strstr(err.text, cases[at].text))
      fail_msg("%s: %s: '%s'", cases[at].text, lac_status_text(st), err.text);
    gradient_net_clear(&net);
  }
}

static void only_paths_from_parameters_to_the_loss_get_nodes(void **state) {
  (void)state;
  lac_error err = {0};
  gradient_net net;
  /* c_x is data, so the first Conv needs no gradient of its input; CumSum leads nowhere. */
  assert_int_equal(gradient_net_make("input c_x 1x2x3x3 f64\ninput w 2x2x1x1 f64\n"
                                     "input u 2x2x1x1 f64\na = Conv(c_x, w)\nb = Relu(a)\n"
                                     "y = Conv(b, u)\nstored c_i \"\" i64 = 0\ns = CumSum(b, c_i)\n"
                                     "t = Exp(s)\noutput y\noutput t\n",
                                     &net, &err),
                   LAC_OK);
  assert_int_equal(count_type(net.graph, "ConvGradInput"), 1);
  assert_int_equal(count_type(net.graph, "ConvGradWeight"), 2);
  assert_int_equal(count_type(net.graph, "ReluGrad"), 1);
  assert_int_equal(count_type(net.graph, "UnaryGrad"), 0);
  gradient_net_clear(&net);
}

static void a_parameter_without_a_path_has_a_gradient_of_zeros(void **state) {
  (void)state;
  lac_error err = {0};
  gradient_net net;
  laci_buf *grads[MAX_PARAMS];
  assert_int_equal(gradient_net_make("input x 2x3 f64\ninput z 2x2 f64\ny = Relu(x)\n"
                                     "w = Relu(z)\noutput y\noutput w\n",
                                     &net, &err),
                   LAC_OK);
  assert_int_equal(net.n_params, 2);
  (void)gradient_net_run(&net, 1, "zeros", grads);
  for (int64_t i = 0; i < grads[1]->count; i++) assert_true(grads[1]->f[i] == 0);
  assert_int_equal(grads[1]->count, 4);
  for (int at = 0; at < 2; at++) laci_buf_destroy(grads[at]);
  gradient_net_clear(&net);
}

static void the_same_graph_gets_the_same_nodes_and_names(void **state) {
  (void)state;
  lac_error err = {0};
  gradient_net a, b;
  const char *text = shape_cases[sizeof shape_cases / sizeof *shape_cases - 2].net;
  assert_int_equal(gradient_net_make(text, &a, &err), LAC_OK);
  assert_int_equal(gradient_net_make(text, &b, &err), LAC_OK);
  assert_int_equal(a.graph->n_nodes, b.graph->n_nodes);
  for (int n = 0; n < a.graph->n_nodes; n++) {
    assert_string_equal(a.graph->nodes[n].name, b.graph->nodes[n].name);
    assert_string_equal(a.graph->nodes[n].type, b.graph->nodes[n].type);
  }
  gradient_net_clear(&a);
  gradient_net_clear(&b);
}

static void names_that_the_network_has_already_are_not_taken_again(void **state) {
  (void)state;
  /* The constant that ReduceMean's rule would make is there, with other content; so is its node. */
  check_gradient(&(gradient_case){
      "taken names",
      "input x 2x3 f64\nstored gradient/scalar_f64_0x1.5555555555555p-3 \"\" f64 = 3\n"
      "y = ReduceMean(x) keepdims=0 name=\"m\"\noutput y\n"});
}

static void internal_operators_are_found_but_not_listed(void **state) {
  (void)state;
  int n;
  const laci_op *const *ops = laci_op_all(&n);
  for (int at = 0; at < n; at++)
    assert_true(!ops[at]->domain || strcmp(ops[at]->domain, "lacuna") != 0);
  assert_non_null(laci_op_find("ConvGradWeight", "lacuna"));
  assert_null(laci_op_find("ConvGradWeight", NULL));
}

/** A file may name our domain, with whatever operands: an error or an answer, never a crash. */
static void internal_operators_survive_files_that_misuse_them(void **state) {
  (void)state;
  static const char *const calls[] = {
      "_ = Relu(x)",
      "_ = ReluGrad(x, x) domain=\"lacuna\"",
      "y = ReluGrad(x, s) domain=\"lacuna\"",
      "y = UnaryGrad(x, x) of=\"UnaryGrad\" domain=\"lacuna\"",
      "y = ClipGrad(x, x, s) domain=\"lacuna\"",
      "_, m, v = BatchNormTrain(x, s, s, s, s) domain=\"lacuna\"",
      "y, m, v = LoopBegin(x, s, x) domain=\"lacuna\"",
      "y = LoopBegin(x) domain=\"lacuna\"",
      "y, m = ScanBegin(s, x) num_scan_inputs=1 scan_input_axes=7, domain=\"lacuna\"",
      "y = ScanBegin(x) num_scan_inputs=-1 domain=\"lacuna\"",
      "y, z = DynamicSteps(s, x) domain=\"lacuna\"",
      "y = UnpackBlocks(x, x) domain=\"lacuna\"",
      "y = UnpackBlocks(i, i) K=8 N=2 block_size=8 domain=\"lacuna\"",
      "y = UnpackBlocks(x, s, x) K=8 N=2 block_size=8 domain=\"lacuna\"",
      "y = Loop(x)",
      "y, m = Scan(x, s, x)",
      "y = If(x, s)",
      "y, m, v, p, q, r = BatchNormTrain(x, s, s, s, s) domain=\"lacuna\"",
      "y = BatchNormTrain(x, s, s) domain=\"lacuna\"",
      "y, m, v = BatchNormTrain(x, s, s, _, _) domain=\"lacuna\"",
      "y, m, v = BatchNormTrain(x, s, s, s, i) domain=\"lacuna\"",
      "y, m, v, p = BatchNormTrain(x, s, s, s, s, s, s) domain=\"lacuna\"",
      "y = BatchNormTrainGrad(x, x, s, s, x) domain=\"lacuna\"",
      "_, a, b = LayerNormalizationGrad(x, x, s) domain=\"lacuna\"",
      "y = LayerNormalizationGrad(x, x, z) domain=\"lacuna\"",
      "y = ConvGradInput(x, x) kernel_shape=2,2 domain=\"lacuna\"",
      "y = ConvGradInput(z, z) input_shape=2,3,4 group=-1 domain=\"lacuna\"",
      "y = ConvGradWeight(z, z) kernel_shape=1000000000, domain=\"lacuna\"",
      "y = MaxPoolGrad(x, x) kernel_shape=2, domain=\"lacuna\"",
      "y = AveragePoolGrad(z) input_shape=2,3,-1 kernel_shape=2, domain=\"lacuna\"",
      "y = GatherGrad(x, i) input_shape=3,3 axis=9 domain=\"lacuna\"",
      "y = GatherGrad(x, i) input_shape=1,3 domain=\"lacuna\"",
      "y = SliceGrad(x) input_shape=2,3 starts=0,1 steps=1,1 domain=\"lacuna\"",
      "y = RecurrentStates(x) domain=\"lacuna\"",
      "y = RecurrentStates(r, s) domain=\"lacuna\"",
      "y = RecurrentStates(r, _, i) domain=\"lacuna\"",
      "y = RecurrentStates(r, _, x) domain=\"lacuna\"",
      "y = SoftmaxGrad(x, x) axes=1,0 domain=\"lacuna\"",
      "y = SoftmaxCrossEntropy(z, z) domain=\"lacuna\"",
      "y = SoftmaxCrossEntropyGrad(x, x, x) domain=\"lacuna\"",
      "y = SquaredError(x, z) domain=\"lacuna\"",
      "y = SquaredError(x, i) relative=1 domain=\"lacuna\"",
      "y = SquaredErrorGrad(x, x, x) domain=\"lacuna\"",
      "y = SquaredErrorGrad(x, x) domain=\"lacuna\"",
  };
  for (size_t at = 0; at < sizeof calls / sizeof *calls; at++) {
    char net[512];
    lac_error err = {0};
    laci_graph *graph = NULL;
    laci_stepper *run = NULL;
    (void)snprintf(
        net, sizeof net,
        "stored x 2x3\nstored s 3\nstored z 2x3x4\nstored r 2x1x3x4\nstored i 2 i64 = 0 7\n%s\n",
        calls[at]);
    lac_status st = net_read(net, &graph, &err);
    if (!st) st = walk_open(graph, NULL, &run, &err);
    if (!st) st = walk_all(run, graph, &err);
    if (st && !err.text[0]) fail_msg("%s: refused without a word", calls[at]);
    laci_stepper_destroy(run);
    laci_graph_destroy(graph);
  }
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  const char *text = shape_cases[sizeof shape_cases / sizeof *shape_cases - 1].net;
  for (uint64_t at = 1; at < 5000; at++) {
    lac_error err = {0};
    int loss, grads[MAX_PARAMS], params[MAX_PARAMS], n = 0;
    laci_graph *graph = NULL;
    assert_int_equal(net_read(text, &graph, &err), LAC_OK);
    assert_int_equal(add_probe(graph, &loss, &err), LAC_OK);
    for (int v = 0; v < graph->n_values; v++)
      if (is_param(graph, v)) params[n++] = v;
    laci_memory_fail_from(at);
    lac_status st = laci_gradient_build(graph, loss, n, params, grads, &err);
    laci_memory_fail_from(0);
    laci_graph_destroy(graph);
    if (st == LAC_OK) return;
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  fail_msg("still failing after thousands of allocations");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(activations_agree_with_differences),
      cmocka_unit_test(operations_of_two_agree_with_differences),
      cmocka_unit_test(convolutions_and_pools_agree_with_differences),
      cmocka_unit_test(normalizations_and_losses_agree_with_differences),
      cmocka_unit_test(movements_and_reductions_agree_with_differences),
      cmocka_unit_test(every_rule_has_a_case),
      cmocka_unit_test(what_has_no_gradient_is_refused_by_name),
      cmocka_unit_test(only_paths_from_parameters_to_the_loss_get_nodes),
      cmocka_unit_test(a_parameter_without_a_path_has_a_gradient_of_zeros),
      cmocka_unit_test(the_same_graph_gets_the_same_nodes_and_names),
      cmocka_unit_test(names_that_the_network_has_already_are_not_taken_again),
      cmocka_unit_test(internal_operators_are_found_but_not_listed),
      cmocka_unit_test(internal_operators_survive_files_that_misuse_them),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
