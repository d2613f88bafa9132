"""CP-SAT (PyPI `ortools`) on general shops: one JSON shop per line in, one JSON result per line out.

    python3 -m venv peers && peers/bin/pip install ortools
    peers/bin/python cpsat_general.py SECONDS < shops.jsonl

A shop is {"horizon", "machines": [{"available", "family", "closed": [[from, to]], "setups": [[...]] or null}], "jobs":
[{"release", "due", "deadline", "weight"}], "operations": [{"job", "modes": [[machine, time]], "earliest", "latest",
"interruptible", "family"}], "precedences": [[before, after, min, max]], "sums": [[[factor, measure]]]}. Sums are minimised by
importance, one after the other. A result is {"values", "proven", "seconds"}; values are null if no schedule exists. One
worker, as our search has here. Setups lie between consecutive operations (a circuit on each machine).
"""

import json
import sys
import time

from ortools.sat.python import cp_model


def whole_starts(machine, work, horizon):
    """When an operation that nothing may interrupt can start; one that takes no time, whenever it likes."""
    if work == 0:
        return cp_model.Domain(0, horizon)
    closed = [[a - work + 1, b - 1] for a, b in machine["closed"]]
    return cp_model.Domain.FromIntervals(closed).complement().intersection_with(cp_model.Domain(0, horizon - work))


def places(machine, work, horizon):
    """All (start, end) of an operation that may pause while its machine is closed."""
    closed = [False] * (horizon + 1)
    for a, b in machine["closed"]:
        for t in range(a, min(b, horizon + 1)):
            closed[t] = True
    found = []
    for start in range(horizon - work + 1):
        if work == 0:
            found.append((start, start))
            continue
        if closed[start]:
            continue
        left, now = work, start
        while left and now < horizon:
            if not closed[now]:
                left -= 1
            now += 1
        if left == 0:
            found.append((start, now))
    return found


def build(shop, told=None):
    """The model and its sums; `told` is a schedule to start from, [(machine, start, end)] of every operation."""
    model = cp_model.CpModel()
    horizon = shop["horizon"]
    machines, jobs, operations = shop["machines"], shop["jobs"], shop["operations"]
    starts, ends, present = [], [], []
    on = [[] for _ in machines]
    for number, operation in enumerate(operations):
        start, end = model.NewIntVar(0, horizon, ""), model.NewIntVar(0, horizon, "")
        starts.append(start)
        ends.append(end)
        chosen = []
        if told:
            model.AddHint(start, told[number][1])
            model.AddHint(end, told[number][2])
        for machine, work in operation["modes"]:
            # What can run on one machine only needs no choice.
            here = model.NewBoolVar("") if len(operation["modes"]) > 1 else model.NewConstant(1)
            chosen.append(here)
            if told and len(operation["modes"]) > 1:
                model.AddHint(here, machine == told[number][0])
            about = machines[machine]
            model.Add(start >= about["available"]).OnlyEnforceIf(here)
            if about["closed"] and operation["interruptible"]:
                allowed = places(about, work, horizon)
                until = dict(allowed)
                local = model.NewIntVarFromDomain(cp_model.Domain.FromValues([one for one, _ in allowed]), "")
                local_end = model.NewIntVar(0, horizon, "")
                model.AddElement(local, [until.get(one, 0) for one in range(horizon + 1)], local_end)
                model.Add(start == local).OnlyEnforceIf(here)
                model.Add(end == local_end).OnlyEnforceIf(here)
                size = model.NewIntVar(0, horizon, "")
            else:
                if about["closed"]:
                    model.AddLinearExpressionInDomain(start, whole_starts(about, work, horizon)).OnlyEnforceIf(here)
                size = work
            if len(operation["modes"]) > 1:
                interval = model.NewOptionalIntervalVar(start, size, end, here, "")
            else:
                interval = model.NewIntervalVar(start, size, end, "")
            on[machine].append((number, here, interval))
        model.AddExactlyOne(chosen)
        present.append(chosen)
        model.Add(start >= max(operation["earliest"], jobs[operation["job"]]["release"]))
        if operation["latest"] is not None:
            model.Add(end <= operation["latest"])
    for before, after, least, most in shop["precedences"]:
        model.Add(starts[after] >= ends[before] + least)
        if most is not None:
            model.Add(starts[after] <= ends[before] + most)
    setup_terms = []
    for machine, list_ in enumerate(on):
        about = machines[machine]
        intervals = [interval for _, _, interval in list_]
        here = [operations[number] for number, _, _ in list_]
        if not any(one["interruptible"] or 0 in dict(one["modes"]).values() for one in here):
            # What nothing may interrupt does not overlap closed times; said so, it counts for loads as well.
            intervals += [model.NewFixedSizeIntervalVar(a, b - a, "") for a, b in about["closed"] if a < horizon]
        model.AddNoOverlap(intervals)
        if about["setups"] is None:
            continue
        table = about["setups"]

        def setup(one, other):
            return 0 if one is None or other is None else table[one][other]

        arcs = []
        order = sorted((told[number][1:], number) for number, _, _ in list_ if told[number][0] == machine) if told else []
        order = [number for _, number in order]
        follows = dict(zip([None, *order], [*order, None]))

        def literal(one, other):
            """Whether `other` comes right after `one`; none is before the first and after the last."""
            arc = model.NewBoolVar("")
            if told:
                model.AddHint(arc, one in follows and follows[one] == other)
            return arc

        if all(len(operations[number]["modes"]) > 1 for number, _, _ in list_):
            empty = literal(None, None)
            arcs.append((0, 0, empty))
            for _, here, _ in list_:
                model.AddImplication(empty, here.Not())
        for i, (number, here, _) in enumerate(list_, 1):
            family = operations[number]["family"]
            if len(operations[number]["modes"]) > 1:
                arcs.append((i, i, here.Not()))
            first, last = literal(None, number), literal(number, None)
            arcs.append((0, i, first))
            arcs.append((i, 0, last))
            entry = setup(about["family"], family)
            model.Add(starts[number] >= about["available"] + entry).OnlyEnforceIf(first)
            setup_terms.append(entry * first)
            for k, (other, _, _) in enumerate(list_, 1):
                if k == i:
                    continue
                arc = literal(number, other)
                arcs.append((i, k, arc))
                gap = setup(family, operations[other]["family"])
                model.Add(starts[other] >= ends[number] + gap).OnlyEnforceIf(arc)
                setup_terms.append(gap * arc)
        if list_:
            model.AddCircuit(arcs)
    # Only what the objective counts goes into the model, and only operations that nothing of their job follows end a job.
    counted = {name for terms in shop["sums"] for _, name in terms}
    followed = {before for before, after, _, _ in shop["precedences"] if operations[before]["job"] == operations[after]["job"]}
    makespan, most = model.NewIntVar(0, horizon, ""), model.NewIntVar(0, horizon, "")
    tardiness, tardy, flow, early = [], [], [], []
    for number, job in enumerate(jobs):
        last = [ends[k] for k, operation in enumerate(operations) if operation["job"] == number and k not in followed]
        if len(last) == 1:
            (end,) = last
        else:
            end = model.NewIntVar(0, horizon, "")
            model.AddMaxEquality(end, last)
        model.Add(makespan >= end)
        if job["deadline"] is not None:
            model.Add(end <= job["deadline"])
        flow.append(job["weight"] * (end - job["release"]))
        if job["due"] is None:
            continue
        if counted & {"tardiness", "max-tardiness", "tardy-jobs"}:
            late = model.NewIntVar(0, horizon, "")
            model.Add(late >= end - job["due"])
            model.Add(most >= late)
            tardiness.append(job["weight"] * late)
        if "tardy-jobs" in counted:
            is_late = model.NewBoolVar("")
            model.Add(end <= job["due"]).OnlyEnforceIf(is_late.Not())
            tardy.append(job["weight"] * is_late)
        if "earliness" in counted:
            before = model.NewIntVar(0, horizon, "")
            model.Add(before >= job["due"] - end)
            early.append(job["weight"] * before)
    measures = {
        "makespan": makespan,
        "tardiness": sum(tardiness),
        "max-tardiness": most,
        "tardy-jobs": sum(tardy),
        "flow-time": sum(flow),
        "earliness": sum(early),
        "setup-time": sum(setup_terms),
    }
    sums = [sum(factor * measures[name] for factor, name in terms) for terms in shop["sums"]]
    return model, sums


def solve(shop, limit):
    began = time.perf_counter()
    model, sums = build(shop)
    values, proven = [], True
    for one in sums:
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = limit
        model.Minimize(one)
        status = solver.Solve(model)
        if status == cp_model.INFEASIBLE:
            return {"values": None, "proven": True, "seconds": time.perf_counter() - began}
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return {"values": None, "proven": False, "seconds": time.perf_counter() - began}
        value = round(solver.ObjectiveValue())
        proven = proven and status == cp_model.OPTIMAL
        values.append(value)
        model.Add(one <= value)
    return {"values": values, "proven": proven, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(solve(json.loads(line), float(sys.argv[1]))), flush=True)
