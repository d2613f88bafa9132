"""CP-SAT (PyPI `ortools`) as a peer: one JSON instance per line in, one JSON result per line out.

    python3 -m venv peers && peers/bin/pip install ortools
    peers/bin/python cpsat.py SECONDS < instances.jsonl

An instance is {"machines": M, "permutation": bool, "jobs": [[{"rest": r, "choices": [[machine, time], ...]}]]}; with
"permutation", machine m runs each job's m-th operation and all machines serve the jobs in one order. It may carry
"told": {"upper": U, "jobs": [[[machine, start], ...]]}, a schedule of makespan U: CP-SAT then starts from it and looks
at nothing longer, but must prove the bound below by itself. A result is {"lower", "upper", "proven", "seconds"}; the
time includes building the model. One worker, as our solvers have.
"""

import json
import sys
import time

from ortools.sat.python import cp_model


def add_order(model, starts, times, told):
    """One order for all machines: job i before job j on machine 0 means before it everywhere."""
    for i in range(len(starts)):
        for j in range(i):
            before = model.NewBoolVar("")
            if told:
                # The end decides between two jobs that start together, one of them taking no time.
                key = [[(told[a][k][1], told[a][k][1] + times[a][k]) for k in range(len(times[a]))] for a in (i, j)]
                model.AddHint(before, key[0] < key[1])
            for k in range(len(starts[i])):
                model.Add(starts[j][k] >= starts[i][k] + times[i][k]).OnlyEnforceIf(before)
                model.Add(starts[i][k] >= starts[j][k] + times[j][k]).OnlyEnforceIf(before.Not())


def frames(instance):
    """For each machine, the least time that any operation it may run leaves before and after itself in its job."""
    least = [(None, None)] * instance["machines"]
    for job in instance["jobs"]:
        times = [min(t for _, t in op["choices"]) for op in job]
        for place, op in enumerate(job):
            head = sum(times[:place]) + sum(one["rest"] for one in job[: place + 1])
            tail = sum(times[place + 1 :]) + sum(one["rest"] for one in job[place + 1 :])
            for machine, _ in op["choices"]:
                before, after = least[machine]
                least[machine] = (head, tail) if before is None else (min(before, head), min(after, tail))
    return [0 if before is None else before + after for before, after in least]


def solve(instance, limit):
    began = time.perf_counter()
    jobs = instance["jobs"]
    horizon = sum(op["rest"] + max(t for _, t in op["choices"]) for job in jobs for op in job)
    told = instance.get("told")
    if told:
        horizon = told["upper"]
    model = cp_model.CpModel()
    makespan = model.NewIntVar(0, horizon, "makespan")
    intervals = [[] for _ in range(instance["machines"])]
    loads = [[] for _ in range(instance["machines"])]
    starts, times = [], []
    for number, job in enumerate(jobs):
        end = 0
        starts.append([])
        times.append([])
        for place, op in enumerate(job):
            start = model.NewIntVar(0, horizon, "")
            at = told["jobs"][number][place] if told else None
            if told:
                model.AddHint(start, at[1])
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
                    if told:
                        model.AddHint(here, machine == at[0])
                        if machine == at[0]:
                            model.AddHint(end, at[1] + length)
                    intervals[machine].append(model.NewOptionalIntervalVar(start, length, end, here, ""))
                    loads[machine].append(length * here)
                    chosen.append(here)
                model.AddExactlyOne(chosen)
            starts[-1].append(start)
        model.Add(end <= makespan)
    for machine, frame in enumerate(frames(instance)):
        model.AddNoOverlap(intervals[machine])
        model.Add(sum(loads[machine]) + frame <= makespan)
    if instance["permutation"]:
        add_order(model, starts, times, told and told["jobs"])
    if told:
        model.AddHint(makespan, horizon)
    model.Minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = limit
    if told:
        # With a schedule in hand, most of a short limit would go into presolving.
        solver.parameters.cp_model_probing_level = 0
        solver.parameters.symmetry_level = 0
    status = solver.Solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    assert status != cp_model.INFEASIBLE, "the schedule that was told is none"
    return {
        "lower": int(solver.BestObjectiveBound()),
        "upper": int(solver.ObjectiveValue()) if found else horizon,
        "proven": status == cp_model.OPTIMAL,
        "seconds": time.perf_counter() - began,
    }


for line in sys.stdin:
    print(json.dumps(solve(json.loads(line), float(sys.argv[1]))), flush=True)
