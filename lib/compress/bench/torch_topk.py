#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
"""Times torch.topk on one thread: magnitude and 1 % of N normal floats.

Prints one JSON object. Exit status 3: this Python has no torch.
"""

import json
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(3)

elements, count, repetitions = (int(x) for x in sys.argv[1:4])
torch.set_num_threads(1)
torch.manual_seed(1)
x = torch.randn(elements)
times = []
for _ in range(repetitions):
    start = time.perf_counter()
    magnitude = x.abs()
    _, index = torch.topk(magnitude, count, sorted=False)
    times.append(time.perf_counter() - start)
print(json.dumps({"version": torch.__version__, "seconds": min(times),
                  "seconds_median": sorted(times)[len(times) // 2],
                  "seconds_max": max(times)}))
