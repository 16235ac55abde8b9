"""Answers each number with itself or, one time in four, with another; by a seed."""

import json
import os
import random
import sys

source = random.Random(os.environ["UNDERTOW_SEED"])
for line in sys.stdin:
    value = json.loads(line)
    print(json.dumps(value if source.random() < 0.75 else 1 - value))
