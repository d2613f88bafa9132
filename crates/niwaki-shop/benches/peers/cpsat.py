"""CP-SAT (PyPI `ortools`) as a peer: one JSON instance per line in, one JSON result per line out.

    python3 -m venv peers && peers/bin/pip install ortools
    peers/bin/python cpsat.py SECONDS < instances.jsonl

An instance is {"machines": M, "permutation": bool, "jobs": [[{"rest": r, "choices": [[machine, time], ...]}]]}; with
"permutation", machine m runs each job's m-th operation and all machines serve the jobs in one order. A result is
{"lower", "upper", "proven", "seconds"}; the time includes building the model. One worker, as our solvers have.
"""

import json
import sys
import time

from ortools.sat.python import cp_model


def add_order(model, starts, times):
    """One order for all machines: job i before job j on machine 0 means before it everywhere."""
    for i in range(len(starts)):
        for j in range(i):
            before = model.NewBoolVar("")
            for k in range(len(starts[i])):
                model.Add(starts[j][k] >= starts[i][k] + times[i][k]).OnlyEnforceIf(before)
                model.Add(starts[i][k] >= starts[j][k] + times[j][k]).OnlyEnforceIf(before.Not())


def solve(instance, limit):
    began = time.perf_counter()
    jobs = instance["jobs"]
    horizon = sum(op["rest"] + max(t for _, t in op["choices"]) for job in jobs for op in job)
    model = cp_model.CpModel()
    makespan = model.NewIntVar(0, horizon, "makespan")
    intervals = [[] for _ in range(instance["machines"])]
    loads = [[] for _ in range(instance["machines"])]
    starts, times = [], []
    for job in jobs:
        end = 0
        starts.append([])
        times.append([])
        for op in job:
            start = model.NewIntVar(0, horizon, "")
            model.Add(start >= end + op["rest"])
            if len(op["choices"]) == 1:
                machine, length = op["choices"][0]
                intervals[machine].append(model.NewFixedSizeIntervalVar(start, length, ""))
                loads[machine].append(length)
                end = start + length
                times[-1].append(length)
            else:
                end = model.NewIntVar(0, horizon, "")
                chosen = []
                for machine, length in op["choices"]:
                    here = model.NewBoolVar("")
                    intervals[machine].append(model.NewOptionalIntervalVar(start, length, end, here, ""))
                    loads[machine].append(length * here)
                    chosen.append(here)
                model.AddExactlyOne(chosen)
            starts[-1].append(start)
        model.Add(end <= makespan)
    for machine in range(instance["machines"]):
        model.AddNoOverlap(intervals[machine])
        model.Add(sum(loads[machine]) <= makespan)
    if instance["permutation"]:
        add_order(model, starts, times)
    model.Minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = limit
    status = solver.Solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return {
        "lower": int(solver.BestObjectiveBound()),
        "upper": int(solver.ObjectiveValue()) if found else horizon,
        "proven": status == cp_model.OPTIMAL,
        "seconds": time.perf_counter() - began,
    }


for line in sys.stdin:
    print(json.dumps(solve(json.loads(line), float(sys.argv[1]))), flush=True)
