"""Declares torchvision's kernels, whose wheel is for CUDA: vLLM and SGLang import the package, for images only."""

import torch

LIBRARY = torch.library.Library("torchvision", "DEF")
for operator in ("nms", "qnms"):
    LIBRARY.define(operator + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
