# SPDX-License-Identifier: Apache-2.0
"""The execution provider for ONNX Runtime that the wheel has, by the functions that packages of providers share.

    import onnxruntime
    from lacuna import provider

    onnxruntime.register_execution_provider_library(provider.get_ep_name(), provider.get_library_path())
"""
import os

from .errors import failure


def get_library_path():
    """The file that onnxruntime.register_execution_provider_library takes."""
    path = os.path.join(os.path.dirname(__file__), "lib", "liblacuna_ort.so")
    if not os.path.exists(path):
        raise failure(f"{path}: this package was built without the provider for ONNX Runtime", "NOT_FOUND")
    return path


def get_ep_name():
    """The provider's name."""
    return "LacunaExecutionProvider"


def get_ep_names():
    """The names of all providers of the library."""
    return [get_ep_name()]
