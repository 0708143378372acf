#!/usr/bin/env python3
"""Run the reference converter with --remote on a model of a hub.  Run inside the chroot.

  refremote.py ENDPOINT ORG/NAME OUT.gguf [more converter options]

The converter reads weights from one address only; this puts ENDPOINT in its place.
"""
import os, runpy, sys

endpoint, name, out = sys.argv[1:4]
os.environ.update(HF_ENDPOINT=endpoint, HF_HUB_OFFLINE="0", TRANSFORMERS_OFFLINE="1", NO_LOCAL_GGUF="1", HF_HUB_DISABLE_PROGRESS_BARS="1")
script = "/usr/share/doc/llama.cpp-tools/scripts/convert_hf_to_gguf.py"
sys.path[:0] = ["/usr/share/llama.cpp/llama.cpp-tools"]
import gguf.utility

gguf.utility.SafetensorRemote.BASE_DOMAIN = endpoint
sys.argv = [script, name, "--remote", "--outfile", out, *sys.argv[4:]]
runpy.run_path(script, run_name="__main__")
