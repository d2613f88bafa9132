//! A file to start from.

/// A small plan with every table, each with a line that says what it holds.
#[must_use]
pub const fn template() -> &'static str {
    TEMPLATE
}

const TEMPLATE: &str = "\
# A shop for `niwaki solve`. Lines that begin with # are comments; tables that you do not need may go.
# Times: bare numbers count the unit, 1h30 and 45min are read, too; moments are dates or times since the start.

[settings]
setting,value
unit,min
start,2026-11-16 06:00
# By importance, separated by commas; sums with +. Measures: makespan, tardiness, max-tardiness, tardy-jobs, flow-time,
# earliness, setup-time.
objective,\"tardiness, makespan\"

# Release and deadline are hard, due dates are soft; a weight counts in sums over jobs.
[jobs]
job,release,due,deadline,weight
bracket,,2026-11-16 14:00,,1
housing,2026-11-16 08:00,2026-11-17 12:00,2026-11-18,3
shaft,,2026-11-16 12:00,,2

# count makes identical machines: saw 1, saw 2. family: what it is set up for at the beginning.
[machines]
machine,count,available,family
saw,2,,
mill,1,2026-11-16 07:00,steel
paint,,,

# Without shifts a machine is always open. * is every machine; 22:00 to 06:00 goes over midnight.
[shifts]
machine,days,from,to
*,mon-fri,06:00,22:00

[breaks]
machine,from,to
mill,2026-11-16 12:00,2026-11-16 12:30

# The time between two operations of these families on one machine; * is every other family.
[setups]
machine,from,to,time
mill,*,*,20
mill,steel,brass,45

# One line per operation, in the order of each job. `a | b` chooses between machines; `interruptible` may pause while its
# machine is closed; wait and max wait are the time after its predecessor; after names other predecessors (- for none).
[operations]
job,operation,machine,time,family,interruptible,wait,max wait,after
bracket,cut,saw,30,,,,,
bracket,mill,mill,1h30,steel,,,,
bracket,paint,paint,45min,,,10,4h,
housing,cut,saw,50,,,,,
housing,mill,mill,2h15,brass,yes,,,
housing,paint,paint,60,,,,,
shaft,cut,saw | mill,25 | 40,,,,,
shaft,turn,mill,70,steel,,,,
";
