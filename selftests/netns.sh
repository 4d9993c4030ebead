#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Network namespaces that go away under open flows: all of them do go.

. "$(dirname -- "$0")/lib.sh"

one='' other=''

references()
{
	cat /sys/module/dblp/refcnt
}

unreferenced()
{
	(($(references) <= base))
}

drop_names()
{
	ns_delete "${names[@]}"
}

# In each round a transfer is under way in a path of its own.
under_way()
{
	suffix=$$-$RANDOM
	path_create
	netem to2 rate 20mbit
	receiver rx "$h2" -l 10.9.2.2 || return 1
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s 16M
	wait_until counter_at_least "$h2" bytes_received 200000
}

# The names go first, the processes that hold the namespaces later.
names_first()
{
	under_way || return 1
	drop_names
	crash rx
	crash tx
	wait_until unreferenced
}

processes_first()
{
	under_way || return 1
	crash tx
	crash rx
	drop_names
	wait_until unreferenced
}

# One end stays, and has its verdict.
peer_only()
{
	under_way || return 1
	crash rx
	ns_delete "$h2" "$sw"
	finish tx || return 1
	expect "verdict" "$(count_lines tx 'tx .* outcome=unknown ')" = 1
	drop_names
	wait_until unreferenced
}

# Many at once, with flows that are open and idle.
many()
{
	local i

	for i in 1 2 3 4 5; do
		suffix=$$-$RANDOM
		ns_create one
		ip -n "$one" link set lo up
		receiver "rx$i" "$one" -l 127.0.0.1 -n 2 || return 1
		start "tx$i" "$one" "$xfer" send -d 127.0.0.1 -p "$port" -s 100000
	done
	for i in 1 2 3 4 5; do
		wait_until has_lines "rx$i" "rx" || return 1
		finish "tx$i" || return 1
	done
	drop_names
	for i in 1 2 3 4 5; do
		crash "rx$i"
	done
	wait_until unreferenced
}

# Each namespace has counters of its own.
counters_apart()
{
	suffix=$$-$RANDOM
	ns_create one other
	ip -n "$one" link set lo up
	receiver rx "$one" -l 127.0.0.1 || return 1
	start tx "$one" "$xfer" send -d 127.0.0.1 -p "$port" -s 1000
	finish tx || return 1
	finish rx || return 1
	expect "here" "$(counter "$one" msgs_received)" = 1
	expect "there" "$(counter "$other" msgs_received)" = 0
	expect "packets there" "$(counter "$other" pkts_received)" = 0
	drop_names
}

lib_init
base=$(references)
subtest "counters of its own" counters_apart
for round in 1 2; do
	subtest "names first, round $round" names_first
	subtest "processes first, round $round" processes_first
done
subtest "one end only" peer_only
subtest "many at once" many
lib_exit
