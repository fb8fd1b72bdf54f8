# SPDX-License-Identifier: Apache-2.0
"""Lacuna's execution provider for ONNX Runtime, by the functions that packages of providers share."""
from lacuna.provider import get_ep_name, get_ep_names, get_library_path

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]
