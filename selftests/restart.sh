#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A receiver that is killed, one that vanishes, and one that comes back on its port.

. "$(dirname -- "$0")/lib.sh"

size=$((4 << 20))
dead=2000	# ms

# Starts a message, and returns when some of it has arrived.
midway()
{
	netem to2 rate 20mbit
	receiver rx "$h2" -l 10.9.2.2 || return 1
	snapshot "$h2"
	snapshot "$h1"
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s "$size" -D "$dead"
	wait_until counter_at_least "$h2" bytes_received \
		$((snap[$h2.bytes_received] + 200000))
}

# The completion names the peer and says how much is not known to have arrived.
unknown()
{
	finish tx || return 1
	parse_last tx tx
	expect "outcome" "${tx[outcome]}" = unknown
	expect "error" "${tx[error]}" = "$1"
	expect "peer" "${tx[peer]}" = "10.9.2.2:$port"
	expect "outstanding" "${tx[missing]}" -gt 0
	expect "outstanding" "${tx[missing]}" -lt "$size"
	expect "map" "${tx[map]}" = 0000000000000000
	expect "messages unknown" "$(delta "$h1" msgs_unknown)" = 1
	expect "flows died" "$(delta "$h1" flows_died)" = 1
}

killed()
{
	midway || return 1
	crash rx
	unknown 104 || return 1		# ECONNRESET
	expect "delivered" "$(count_lines rx 'rx ')" = 0
}

vanished()
{
	midway || return 1
	ip -n "$sw" link set to2 down
	unknown 110 || return 1		# ETIMEDOUT
	expect "not before the dead time" "${tx[duration_us]}" -ge $((dead * 1000))
	# It is judged by a slow and busy machine here.
	expect "not long after it" "${tx[duration_us]}" -lt $((dead * 1000 * 8))
	ip -n "$sw" link set to2 up
	crash rx
}

# One sender, one message for each line: the peer dies between two of them.
restarted()
{
	local first n

	netem_off to2
	mkfifo "$tmp/tx.in"
	exec {lines}<>"$tmp/tx.in"
	receiver rx "$h2" -l 10.9.2.2 -n 100 || return 1
	first=$port
	snapshot "$h1"
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s 100000 -n 100 -i -D "$dead"
	for n in 1 2; do
		echo >&"$lines"
		wait_until has_lines tx "tx" "$n" || return 1
	done
	expect "completed" "$(count_lines tx 'tx .* outcome=ok ')" = 2
	crash rx
	receiver rx "$h2" -l 10.9.2.2 -p "$first" -n 100 || return 1
	# The first one may find the old flow dead; then it says so.
	for n in 3 4 5; do
		echo >&"$lines"
		wait_until has_lines tx "tx" "$n" || return 1
	done
	find_lines tx 'tx '
	expect "the last but one" "${found[3]}" != "${found[3]/ outcome=ok /}"
	expect "the last one" "${found[4]}" != "${found[4]/ outcome=ok /}"
	expect "as many received" "$(count_lines rx 'rx ')" = \
		$(($(count_lines tx 'tx .* outcome=ok ') - 2))
	expect "payload" "$(count_lines rx 'rx .* bad=[^0]')" = 0
	crash rx
	crash tx
	exec {lines}>&-
	rm "$tmp/tx.in"
}

# The peer dies in the middle, another takes its port, the sender goes on.
replaced()
{
	local first

	midway || return 1
	first=$port
	crash rx
	receiver rx "$h2" -l 10.9.2.2 -p "$first" || return 1
	unknown 104 || return 1
	netem_off to2
	expect "nothing of the old message" "$(count_lines rx 'rx ')" = 0
	send_to 10.9.2.2 -s 500000 || return 1
	agree
	expect "received" "$(count_lines rx 'rx ')" = 1
}

# The receiver forgets a sender that is gone, and its room is free again.
sender_gone()
{
	netem to2 rate 20mbit
	receiver rx "$h2" -l 10.9.2.2 -B 8M || return 1
	snapshot "$h2"
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s "$size"
	wait_until counter_at_least "$h2" bytes_received \
		$((snap[$h2.bytes_received] + 200000)) || return 1
	crash tx
	netem_off to2
	send_to 10.9.2.2 -s "$size" -a 9 || return 1
	agree
	parse_last rx rx
	expect "the second sender's" "${rx[tag]}" = 9
}

lib_init
path_create
subtest "killed in the middle of a message" killed
subtest "vanished in the middle of a message" vanished
subtest "restarted between messages" restarted
subtest "replaced in the middle of a message" replaced
subtest "the sender is gone" sender_gone
lib_exit
