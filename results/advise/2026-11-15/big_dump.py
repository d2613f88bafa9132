"""A dump of ten million steps: 10 240 trajectories of 1 to 1952 steps (976 on average), 20 iterations, as a trainer would
write it: float32 lists, a mask, one advantage per step, string groups.

    python big_dump.py big.parquet [snappy|zstd|none]
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

path, compression = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "snappy"
rng = np.random.default_rng(1)
writer, total = None, 0
for iteration in range(20):
    lengths = rng.integers(1, 1953, 512)
    steps = int(lengths.sum())
    total += steps
    old = -rng.gamma(0.6, 0.8, steps).astype(np.float32)
    new = np.minimum(old + 0.02 * rng.standard_normal(steps).astype(np.float32), np.float32(0.0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    lists = lambda values: pa.ListArray.from_arrays(offsets, pa.array(values))
    advantage = np.repeat(rng.standard_normal(512).astype(np.float32), lengths)
    table = pa.table({
        "iteration": pa.array(np.full(512, iteration)),
        "uid": pa.array([f"prompt-{iteration}-{n // 8}" for n in range(512)]),
        "old_log_probs": lists(old),
        "log_probs": lists(new),
        "advantages": lists(advantage),
        "response_mask": lists(np.ones(steps, np.int8)),
    })
    writer = writer or pq.ParquetWriter(path, table.schema, compression=compression)
    writer.write_table(table)
writer.close()
print(total, "steps")
