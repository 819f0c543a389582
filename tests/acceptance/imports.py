"""The packages that a server imports first. sglang's configuration pulls in transformers, which time breaks.

Not sglang's engine: it loads sglang-kernel, which asks for the driver's library, and this has to pass without one.
"""

import flashinfer
import sglang
import torch
from sglang.srt.server_args import ServerArgs
from sglang.srt.utils.hf_transformers_utils import get_config

assert ServerArgs and get_config and flashinfer.__version__ and sglang.__version__
assert torch.version.cuda == "13.0", torch.version.cuda
