"""Runs the reference's Python scripts one after the other without loading their libraries each time.

Reads requests from standard input, one JSON object a line:
    {"script": PATH, "argv": [...], "log": PATH}
and answers each with the exit status on a line of its own. Needs the oracle's forkrun.py; its folder is the argument.
"""
import json, os, sys

sys.path.insert(0, sys.argv[1])
import forkrun

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the libraries print must not mix with the answers
forkrun.preload()
for line in sys.stdin:
    r = json.loads(line)
    answers.write(f"{forkrun.run(r['script'], r['argv'], r['log'])}\n")
    answers.flush()
