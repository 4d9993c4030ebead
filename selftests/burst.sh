#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Losses that come together, and a path that is dead for a while.

. "$(dirname -- "$0")/lib.sh"

bursts()
{
	netem to2 loss gemodel 1% 15% 80% 0%
	receiver rx "$h2" -l 10.9.2.2 -n 5 || return 1
	send_to 10.9.2.2 -n 5 -s 1M "$@" || return 1
	agree
	expect "messages" "$(count_lines rx 'rx ')" = 5
	expect "packets lost" "$(netem_dropped to2)" -gt 0
}

# Nothing passes, until the sender has probed three times.
blackout()
{
	local dev=$1 probes
	shift

	netem_off to1
	netem to2 rate 50mbit
	receiver rx "$h2" -l 10.9.2.2 || return 1
	snapshot "$h2"
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s 4M "$@"
	wait_until counter_at_least "$h2" bytes_received \
		$((snap[$h2.bytes_received] + 500000)) || return 1
	netem "$dev" loss 100%
	probes=$(counter "$h1" probes_sent)
	wait_until counter_at_least "$h1" probes_sent $((probes + 3)) || return 1
	expect "still under way" "$(count_lines tx 'tx ')" = 0
	netem "$dev" rate 50mbit
	finish tx || return 1
	finish rx || return 1
	agree
	expect "messages" "$(count_lines rx 'rx ')" = 1
}

lib_init
path_create
subtest "bursts, tolerance 0" bursts
subtest "bursts, tolerance 20 %" bursts -T 200000
subtest "the path is dead for a while" blackout to2
subtest "the way back is dead for a while" blackout to1
subtest "the path is dead for a while, tolerance 30 %" blackout to2 -T 300000
lib_exit
