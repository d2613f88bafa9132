"""One table: `niwaki solve`, CP-SAT and PyJobShop's CP-SAT on the same shops, with one thread and the same CPU seconds each.

    python3 -m venv peers && peers/bin/pip install ortools pyjobshop
    peers/bin/python planner.py --niwaki NIWAKI --data DATA --out rows.csv [--seconds 1,3,10] [--only NAME,...] [--solvers niwaki,...]
    peers/bin/python planner.py --table rows.csv

DATA holds `jsp` and `fjsp` with a `bounds.csv` each (name,jobs,machines,lb,ub,source). Classes: large job shops (makespan), large
flexible job shops (makespan), and drawn job shops with due dates (weighted tardiness), alone, with setups between families,
or with machines that close. Every search is a process of its own and is stopped once it has used the last of the CPU
seconds, the building of its model among them, imports not. The peers start from the schedule of a rule.

None of them knows its limit, so that one search answers for every budget: its improvements are noted with the CPU seconds that it
had used (the peers' solutions by callback, ours as the progress line shows them, which is up to a tenth of a second late). A row
holds them as `trace`, "SECONDS:VALUE ...". Rows are written as they come, those already in the file are not searched again, and
the table is printed from all of them.
"""

import argparse
import csv
import fcntl
import json
import os
import random
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
JOB_SHOPS = "la29 la38 yn1 yn4 ta21 ta31 ta41 ta51 ta71 swv06 swv11 swv15 dmu21 dmu41 dmu46 dmu61 dmu66 dmu76".split()
FLEXIBLE = ["dauzere/dp12", "dauzere/dp18", "hurink_rdata/la38", "hurink_edata/la38"]
DRAWN = [(kind, jobs, machines) for jobs, machines in ((10, 5), (20, 10), (50, 10)) for kind in ("tardiness", "setups", "calendars")]
SOLVERS = {"niwaki": "niwaki", "cpsat": "CP-SAT", "pyjobshop": "PyJobShop"}
COLUMNS = ["class", "instance", "best_known", "solver", "seconds", "value", "bound", "proven", "cpu", "trace"]


def numbers(path):
    with open(path) as file:
        return [int(word) for line in file if not line.startswith("#") for word in line.split()]


def plain(jobs, machines):
    """Routes of lists of modes, as the shop that `cpsat_general.py` reads."""
    operations, precedences = [], []
    for job, route in enumerate(jobs):
        for place, modes in enumerate(route):
            if place:
                precedences.append([len(operations) - 1, len(operations), 0, None])
            operations.append({"job": job, "modes": modes, "earliest": 0, "latest": None, "interruptible": False, "family": None})
    return {
        "horizon": sum(max(time for _, time in operation["modes"]) for operation in operations),
        "machines": [{"available": 0, "family": None, "closed": [], "setups": None} for _ in range(machines)],
        "jobs": [{"release": 0, "due": None, "deadline": None, "weight": 1} for _ in jobs],
        "operations": operations,
        "precedences": precedences,
        "sums": [[[1, "makespan"]]],
    }


def job_shop(path):
    jobs, machines, *pairs = numbers(path)
    route = lambda job: [[[pairs[2 * (job * machines + k)], pairs[2 * (job * machines + k) + 1]]] for k in range(machines)]
    return plain([route(job) for job in range(jobs)], machines)


def flexible_shop(path):
    with open(path) as file:
        lines = [[int(float(word)) for word in line.split()] for line in file if line.strip()]
    jobs, machines = lines[0][:2]
    routes = []
    for line in lines[1 : jobs + 1]:
        route, at = [], 1
        for _ in range(line[0]):
            count = line[at]
            route.append([[line[at + 1 + 2 * k] - 1, line[at + 2 + 2 * k]] for k in range(count)])
            at += 1 + 2 * count
        routes.append(route)
    return plain(routes, machines)


def drawn(kind, jobs, machines):
    """A job shop with due dates and weights: `setups` adds four families, `calendars` closes machines a third of the time."""
    draw = random.Random(f"{kind} {jobs} {machines}")
    routes = [[[[machine, draw.randint(1, 99)]] for machine in draw.sample(range(machines), machines)] for _ in range(jobs)]
    shop = plain(routes, machines)
    stretch = {"tardiness": 1.0, "setups": 1.2, "calendars": 1.5}[kind]
    for job in shop["jobs"]:
        job["due"] = int(stretch * (25 * machines + draw.random() * 30 * jobs))
        job["weight"] = draw.randint(1, 3)
    if kind == "setups":
        table = [[0 if one == other else draw.randint(5, 30) for other in range(4)] for one in range(4)]
        shop["horizon"] += 30 * len(shop["operations"])
        for machine in shop["machines"]:
            machine["setups"] = table
        # Every family has a job: a setup for a family that nothing belongs to is refused as a slip.
        families = [job % 4 for job in range(jobs)]
        draw.shuffle(families)
        for operation in shop["operations"]:
            operation["family"] = families[operation["job"]]
    if kind == "calendars":
        shop["horizon"] *= 2
        for number, machine in enumerate(shop["machines"]):
            offset = 300 + 60 * number % 400
            machine["closed"] = [[from_, from_ + 200] for from_ in range(offset, shop["horizon"], 600)]
    shop["sums"] = [[[1, "tardiness"]]]
    return shop


def told(shop):
    """A first schedule for the peers, [(machine, start, end)]: of all that is ready, what can end first goes next."""
    operations, jobs = shop["operations"], shop["jobs"]
    waits, next_ = [0] * len(operations), [[] for _ in operations]
    for before, after, least, _ in shop["precedences"]:
        waits[after] += 1
        next_[before].append((after, least))
    ready = {number: 0 for number, count in enumerate(waits) if count == 0}
    free = [(0, None) for _ in shop["machines"]]
    placed = [None] * len(operations)
    while ready:
        best = None
        for number, from_ in ready.items():
            for machine, work in operations[number]["modes"]:
                about, (since, family) = shop["machines"][machine], free[machine]
                setup = about["setups"][family][operations[number]["family"]] if about["setups"] and family is not None else 0
                start = max(from_, since + setup)
                for a, b in about["closed"]:
                    if start < b and a < start + work:
                        start = b
                due = jobs[operations[number]["job"]]["due"]
                key = (start + setup, due or 0, start + work, number, machine, start, start + work)
                best = min(best or key, key)
        *_, number, machine, start, end = best
        del ready[number]
        placed[number] = (machine, start, end)
        free[machine] = (end, operations[number]["family"])
        for after, least in next_[number]:
            waits[after] -= 1
            if waits[after] == 0:
                before = [placed[one][2] + wait for one, other, wait, _ in shop["precedences"] if other == after]
                ready[after] = max(before)
    return placed


def as_plan(shop):
    """The shop as our own JSON."""
    rows = {"settings": [{"setting": "objective", "value": shop["sums"][0][0][1]}], "operations": []}
    rows["jobs"] = [{"job": f"j{k}", "due": job["due"], "weight": job["weight"]} for k, job in enumerate(shop["jobs"])]
    rows["machines"] = [{"machine": f"m{k}"} for k in range(len(shop["machines"]))]
    breaks = [{"machine": f"m{k}", "from": a, "to": b} for k, machine in enumerate(shop["machines"]) for a, b in machine["closed"]]
    if breaks:
        rows["breaks"] = breaks
    table = shop["machines"][0]["setups"]
    if table:
        pairs = [(a, b) for a in range(len(table)) for b in range(len(table)) if a != b]
        rows["setups"] = [{"machine": "*", "from": f"f{a}", "to": f"f{b}", "time": table[a][b]} for a, b in pairs]
    for number, operation in enumerate(shop["operations"]):
        ((machine, time),) = operation["modes"]
        row = {"job": f"j{operation['job']}", "operation": f"o{number}", "machine": f"m{machine}", "time": time}
        if operation["family"] is not None:
            row["family"] = f"f{operation['family']}"
        rows["operations"].append(row)
    return {"kind": "shop", **rows}


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def improvements(seen):
    """The first of every value that is below all before it, as a row has them."""
    kept = []
    for cpu, value in seen:
        if not kept or value < kept[-1][1]:
            kept.append((cpu, value))
    return " ".join(f"{cpu:.2f}:{value}" for cpu, value in kept)


def ours(niwaki, path, seconds, threads):
    """`niwaki solve`, interrupted once it has used its CPU seconds: it then says the best so far."""
    command = [niwaki, "solve", path, "--time", "100000s", "--seed", "1", *(["--threads", "1"] if threads else [])]
    # Progress is shown to terminals only, as wide as its line.
    screen, shown = pty.openpty()
    fcntl.ioctl(shown, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=shown, text=True)
    os.close(shown)
    cpu, seen, text, interrupted = 0.0, [], "", False
    while True:
        try:
            cpu = cpu_of(process.pid)
            if select.select([screen], [], [], 0.01)[0]:
                text += os.read(screen, 65536).decode(errors="replace")
        except (OSError, IndexError):
            # The terminal of a process that has ended cannot be read.
            break
        for one in re.finditer(r"(?:makespan|tardiness) (\d+)[ ,]", text):
            seen.append((cpu, int(one[1])))
        text = text[-60:]
        if cpu >= seconds and not interrupted:
            process.send_signal(signal.SIGINT)
            interrupted = True
    out, _ = process.communicate()
    os.close(screen)
    found = re.search(r"^(?:makespan|tardiness) (\d+)", out, re.M)
    if not found:
        sys.exit(f"{' '.join(command)}: {out}{text}")
    seen.append((cpu, int(found[1])))
    bound, proven = re.search(r"bound (\d+)", out), "proven yes" in out
    bound = int(found[1]) if proven else int(bound[1]) if bound else None
    return {"value": int(found[1]), "bound": bound, "proven": proven, "cpu": round(cpu, 2), "trace": improvements(seen)}


def peer(solver, shop, seconds):
    """CP-SAT or PyJobShop in this process, stopped once it has used its CPU seconds."""
    from ortools.sat.python import cp_model

    import cpsat_general

    running, seen = [], []

    class Noted(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self):
            seen.append((time.process_time() - began, round(self.objective_value)))

    class Watched(cp_model.CpSolver):
        def solve(self, model):
            running.append(self)
            return super().solve(model, Noted())

    if solver == "pyjobshop":
        import pyjobshop

        # The package gives its module's name to a class.
        sys.modules["pyjobshop.solvers.ortools.CPModel"].CpSolver = Watched
    began = time.process_time()
    done = threading.Event()

    def watch():
        while not done.wait(0.02):
            if running and time.process_time() - began >= seconds:
                running[-1].stop_search()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    # With as many literals as setups need in larger shops, probing alone takes longer than there is time.
    probing = 0 if shop["machines"][0]["setups"] and len(shop["operations"]) > 100 else 2
    if solver == "cpsat":
        model, (objective,) = cpsat_general.build(shop, told(shop))
        model.Minimize(objective)
        search = Watched()
        search.parameters.num_workers = 1
        search.parameters.cp_model_probing_level = probing
        status = search.status_name(search.solve(model))
        value, bound = search.objective_value, search.best_objective_bound
    else:
        model = as_pyjobshop(pyjobshop, shop)
        first = pyjobshop_solution(pyjobshop, model.data(), shop)
        result = model.solve(solver="ortools", num_workers=1, display=False, initial_solution=first, cp_model_probing_level=probing)
        status, value, bound = result.status.name, result.objective, result.lower_bound
    cpu = time.process_time() - began
    done.set()
    if status not in ("OPTIMAL", "FEASIBLE"):
        return {"value": None, "bound": None, "proven": False, "cpu": round(cpu, 2), "trace": ""}
    seen.append((cpu, round(value)))
    return {"value": round(value), "bound": round(bound), "proven": status == "OPTIMAL", "cpu": round(cpu, 2), "trace": improvements(seen)}


def as_pyjobshop(pyjobshop, shop):
    model = pyjobshop.Model()
    jobs = [model.add_job(weight=job["weight"], due_date=job["due"]) for job in shop["jobs"]]
    machines = [model.add_machine(breaks=[tuple(pair) for pair in machine["closed"]]) for machine in shop["machines"]]
    tasks, on = [], [[] for _ in machines]
    for operation in shop["operations"]:
        task = model.add_task(job=jobs[operation["job"]])
        tasks.append(task)
        for machine, work in operation["modes"]:
            model.add_mode(task, machines[machine], work)
            on[machine].append((task, operation["family"]))
    for before, after, _, _ in shop["precedences"]:
        model.add_end_before_start(tasks[before], tasks[after])
    for number, machine in enumerate(shop["machines"]):
        if machine["setups"]:
            for one, from_ in on[number]:
                for other, to in on[number]:
                    if one is not other and machine["setups"][from_][to]:
                        model.add_setup_time(machines[number], one, other, machine["setups"][from_][to])
    if shop["sums"][0][0][1] == "tardiness":
        model.set_objective(weight_total_tardiness=1)
    else:
        model.set_objective(weight_makespan=1)
    return model


def pyjobshop_solution(pyjobshop, data, shop):
    """The first schedule as PyJobShop has it."""
    modes = {(mode.task, mode.resources[0]): number for number, mode in enumerate(data.modes)}
    tasks = []
    for number, (machine, start, end) in enumerate(told(shop)):
        tasks.append(pyjobshop.ScheduledTask(modes[number, machine], [machine], start, end, 0, 0, True))
    return pyjobshop.Solution(data, tasks)


def known(path):
    with open(path) as file:
        return {row["name"]: int(row["ub"]) for row in csv.DictReader(file)}


def cases(data, folder, wanted):
    """Class, name, best known, the file for us, and the shop for the others."""
    bounds = known(f"{data}/jsp/bounds.csv")
    for name in JOB_SHOPS:
        if not wanted or name in wanted:
            path = f"{data}/jsp/{name}.txt"
            yield "job shop", name, bounds[name], path, job_shop(path), False
    bounds = known(f"{data}/fjsp/bounds.csv")
    for name in FLEXIBLE:
        if not wanted or name in wanted:
            path = f"{data}/fjsp/{name}.fjs"
            key = name.replace("hurink_", "").replace("/", "_") if "hurink" in name else name.split("/")[1]
            yield "flexible", name, bounds[key], path, flexible_shop(path), False
    for kind, jobs, machines in DRAWN:
        name = f"{kind} {jobs}x{machines}"
        if not wanted or name in wanted:
            shop = drawn(kind, jobs, machines)
            path = f"{folder}/{name.replace(' ', '-')}.json"
            with open(path, "w") as file:
                json.dump(as_plan(shop), file)
            yield kind, name, None, path, shop, True


def table(rows, budgets):
    """Gaps to the best of all (and the best known), proofs, and the CPU seconds after which the value was within 1% of the best."""
    rows = [{**row, "trace": [tuple(map(float, one.split(":"))) for one in row["trace"].split()]} for row in rows]
    best = {}
    for row in rows:
        values = [value for _, value in row["trace"]]
        values += [int(row["best_known"])] if row["best_known"] not in (None, "") else []
        best[row["instance"]] = min([best.get(row["instance"], float("inf")), *values])

    def value(row, seconds):
        """What a search had by then; with all of its time, what it said once stopped, be it a little later."""
        by = [value for cpu, value in row["trace"] if cpu <= seconds or seconds == budgets[-1]]
        return by[-1] if by else None

    # A value of 0 has no share: one unit is then the whole.
    gap = lambda row, value: (value - best[row["instance"]]) / max(1, best[row["instance"]])
    names = " | ".join(SOLVERS.values())
    lines = [f"| instance | best | {names} |", "|---|---|" + "---|" * len(SOLVERS)]
    for name in dict.fromkeys(row["instance"] for row in rows):
        cells = []
        for solver in SOLVERS:
            row = next((row for row in rows if (row["instance"], row["solver"]) == (name, solver)), None)
            last = value(row, budgets[-1]) if row else None
            if last is None:
                cells.append("none found" if row else "")
                continue
            close = next((f"1% at {cpu:.1f} s" for cpu, value in row["trace"] if gap(row, value) <= 0.01), "")
            proven = f"proven at {float(row['cpu']):.1f} s" if str(row["proven"]) == "True" else ""
            cells.append(f"{last:.0f} ({', '.join(part for part in (f'{gap(row, last):.1%}', close, proven) if part)})")
        lines.append(f"| {name} | {best[name]:.0f} | " + " | ".join(cells) + " |")
    lines += ["", f"| class | shops | at | {names} |", "|---|---|---|" + "---|" * len(SOLVERS)]
    for kind in dict.fromkeys(row["class"] for row in rows):
        here = {solver: [row for row in rows if (row["class"], row["solver"]) == (kind, solver)] for solver in SOLVERS}
        first = f"| {kind} | {max(map(len, here.values()))} |"
        for seconds in budgets:
            cells = []
            for all_ in here.values():
                # A mean over those that have a schedule by then; the others are counted.
                gaps = [gap(row, value(row, seconds)) for row in all_ if value(row, seconds) is not None]
                without = f" ({len(all_) - len(gaps)} without)" if len(gaps) < len(all_) else ""
                cells.append((f"{sum(gaps) / len(gaps):.2%}" if gaps else "") + without)
            lines.append(f"{first} {seconds:g} s | " + " | ".join(cells) + " |")
            first = "| | |"
        near = lambda row: any(gap(row, value) <= 0.01 for _, value in row["trace"])
        for what, counts in (("within 1%", near), ("proven", lambda row: str(row["proven"]) == "True")):
            lines.append(f"{first} {what} | " + " | ".join(str(sum(map(counts, all_))) for all_ in here.values()) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--niwaki")
    parser.add_argument("--data")
    parser.add_argument("--out")
    parser.add_argument("--seconds", default="1,3,10")
    parser.add_argument("--only", default="")
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    parser.add_argument("--one", nargs=3, metavar=("SOLVER", "SHOP", "SECONDS"), help="one peer on one shop, as the table calls it")
    parser.add_argument("--table", nargs="*", metavar="CSV", help="print the table of these rows and nothing else")
    given = parser.parse_args()
    budgets = [float(one) for one in given.seconds.split(",")]
    if given.one:
        with open(given.one[1]) as file:
            print(json.dumps(peer(given.one[0], json.load(file), float(given.one[2]))))
        return
    if given.table:
        rows = [row for path in given.table for row in csv.DictReader(open(path))]
        print(table(rows, budgets))
        return
    rows = []
    if os.path.exists(given.out):
        with open(given.out, newline="") as file:
            rows = list(csv.DictReader(file))
    had = {(row["instance"], row["solver"], float(row["seconds"])) for row in rows}
    with tempfile.TemporaryDirectory() as folder, open(given.out, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not rows:
            writer.writeheader()
        for kind, name, best, path, shop, threads in cases(given.data, folder, [one for one in given.only.split(",") if one]):
            described = f"{folder}/shop.json"
            with open(described, "w") as out:
                json.dump(shop, out)
            for solver in given.solvers.split(","):
                if (name, solver, budgets[-1]) in had:
                    continue
                if solver == "niwaki":
                    answer = ours(given.niwaki, path, budgets[-1], threads)
                else:
                    command = [sys.executable, __file__, "--one", solver, described, str(budgets[-1])]
                    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE).stdout)
                rows.append({"class": kind, "instance": name, "best_known": best, "solver": solver, "seconds": budgets[-1], **answer})
                writer.writerow(rows[-1])
                file.flush()
    print(table(rows, budgets))


if __name__ == "__main__":
    main()
