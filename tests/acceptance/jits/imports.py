"""The three packages that a server imports first. sglang's engine pulls in transformers, which time breaks."""

import flashinfer
import sglang
import torch
from sglang.srt.entrypoints.engine import Engine

assert Engine and flashinfer.__version__ and sglang.__version__
assert torch.version.cuda == "13.0", torch.version.cuda
