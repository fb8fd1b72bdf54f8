# SPDX-License-Identifier: Apache-2.0
"""Lacuna prunes trained neural networks to N:M sparsity, such as 2:4, and runs them faster on a processor.

    import lacuna

    report = lacuna.prune("net.onnx", "net-24.onnx")
    scores, = lacuna.Session("net-24.onnx").run(None, {"input": images})

A network is a path, bytes, an onnx.ModelProto or a lacuna.Model. `help(lacuna.prune)` lists the keywords, which are the options of
the command `lacuna`. lacuna.torch prunes a torch.nn.Module in place.
"""
from ._verbs import bench, check, compare, data, evaluate, finetune, inspect, pack, permute, plot, prune, quantize, train, unpack
from .errors import Error
from .library import version
from .model import Model
from .report import Record, Report
from .session import Session
from .tensor_file import TensorFile

__version__ = version()
__all__ = ["Error", "Model", "Record", "Report", "Session", "TensorFile", "bench", "check", "compare", "data", "evaluate", "finetune", "inspect", "pack", "permute", "plot",
           "prune", "quantize", "train", "unpack"]
