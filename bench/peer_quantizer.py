# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's quantizer as its users call it, for the scripts that compare with it."""
import pathlib
import tempfile


def quantize(floats, path, feeds=None, **options):
    """Writes the network of `floats` in int8, a scale for each channel. feeds: samples, as dictionaries of inputs, by which ranges
    are found; without them they are found in each run (dynamic). options: those of quantize_static."""
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.feeds = iter(feeds)

        def get_next(self):
            return next(self.feeds, None)

    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder) / "ready.onnx"
        quantization.quant_pre_process(str(floats), str(ready), skip_symbolic_shape=True)
        if feeds is None:
            quantization.quantize_dynamic(str(ready), str(path), per_channel=True)
        else:
            quantization.quantize_static(str(ready), str(path), Reader(), per_channel=True, **options)
