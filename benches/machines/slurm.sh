#!/usr/bin/env bash
# A study of forty units through a real Slurm on this machine: two units are killed, the node is drained and resumed, and the
# results are held against those of one process. Run it as root on Debian or Ubuntu; it installs slurm-wlm and munge, and
# stops what it started. NIWAKI names the program.
set -euo pipefail
source "$(dirname "$0")/common.sh"

command -v slurmctld > /dev/null && command -v munged > /dev/null ||
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq slurm-wlm munge; } > /dev/null
local_run

host=$(hostname -s)
state=$work/slurm
mkdir -p "$state/ctld" "$state/d"
cat > "$state/slurm.conf" <<CONF
ClusterName=niwaki
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
JobRequeue=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/d
SlurmctldPidFile=$state/ctld.pid
SlurmdPidFile=$state/d.pid
SlurmctldLogFile=$state/ctld.log
SlurmdLogFile=$state/d.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' > "$state/cgroup.conf"
export SLURM_CONF=$state/slurm.conf

started=()
finish() {
  scancel --user=root 2> /dev/null || true
  for pid in "${started[@]}"; do kill "$pid" 2> /dev/null || true; done
}
trap finish EXIT
if ! munge -n > /dev/null 2>&1; then
  [ -f /etc/munge/munge.key ] || dd if=/dev/urandom of=/etc/munge/munge.key bs=1 count=1024 status=none
  chown munge: /etc/munge/munge.key && chmod 400 /etc/munge/munge.key
  mkdir -p /run/munge /var/log/munge && chown munge: /run/munge /var/log/munge
  runuser -u munge -- munged --foreground > "$work/munged.log" 2>&1 & started+=($!)
  for _ in $(seq 50); do munge -n > /dev/null 2>&1 && break; sleep 0.2; done
fi
slurmctld -D -f "$SLURM_CONF" > "$work/slurmctld.log" 2>&1 & started+=($!)
slurmd -D -f "$SLURM_CONF" -N "$host" > "$work/slurmd.log" 2>&1 & started+=($!)
for _ in $(seq 100); do sinfo -h -o %T 2> /dev/null | grep -q idle && break; sleep 0.3; done
sinfo

NIWAKI_LOGS=$work/logs "$niwaki" cluster launch slurm --plan plan.json --out slurm
done_units() { "$niwaki" cluster status --plan plan.json --out slurm --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["done"])'; }

# Two units are killed, each by its process.
killed=0
while [ $killed -lt 2 ]; do
  pid=$(pgrep -f "^$niwaki cluster work --plan .* --out $work/slurm " | head -1 || true)
  if [ -n "$pid" ] && kill -KILL "$pid" 2> /dev/null; then killed=$((killed + 1)); echo "killed process $pid of a unit"; sleep 1; fi
done
scontrol update nodename="$host" state=drain reason=test
echo "drained: $(sinfo -h -o %T), $(done_units) of 40 units done"
sleep 3
echo "still drained: $(sinfo -h -o %T), $(done_units) of 40 units done, $(squeue -h -r | wc -l) tasks in the queue"
scontrol update nodename="$host" state=resume
while [ "$(squeue -h -r | wc -l)" -gt 0 ]; do sleep 0.5; done
"$niwaki" cluster status --plan plan.json --out slurm
echo "logs of units: $(ls logs/unit-*.log | wc -l)"
same slurm
