#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A receiver that cannot hold what 32 senders want to give it, one of whom stops in the
# middle of a message: the others finish.

. "$(dirname -- "$0")/lib.sh"

h3=''

one_stops()
{
	host_create h3 3
	# The receiver has 16 MiB, since the kernel doubles what is asked for.  Neither end
	# takes the silence of the one for its death.
	receiver rx "$h2" -l 10.9.2.2 -B 8M -n 32 -D 300000 || return 1
	snapshot "$h2"

	# One is cut off in the middle of its message ...
	netem to3 rate 100mbit
	tc -n "$h3" qdisc replace dev eth0 root netem rate 10mbit || return 1
	start stopped "$h3" "$xfer" send -d 10.9.2.2 -p "$port" -s 1M -a 1000 -D 300000
	wait_until counter_at_least "$h2" bytes_received \
		$((snap[$h2.bytes_received] + 50000)) || return 1
	ip -n "$sw" link set to3 down

	# ... the other 31 are not.
	start others "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s 1M -S 31
	finish others || return 1
	expect "others finished" "$(count_lines others 'tx .* outcome=ok ')" = 31
	expect "others received" "$(count_lines rx 'rx .* missing=0 .* bad=0')" = 31
	expect "the one has not" "$(count_lines stopped 'tx ')" = 0

	# Once its path is back, it ends as well.
	ip -n "$sw" link set to3 up
	finish stopped || return 1
	expect "the one finished" "$(count_lines stopped 'tx .* outcome=ok ')" = 1
	finish rx
}

# More than fits: the rest waits, and is told so.
waiting()
{
	mkfifo "$tmp/rx.in"
	exec {lines}<>"$tmp/rx.in"
	receiver rx "$h2" -l 10.9.2.2 -B 4M -n 32 -z || return 1
	snapshot "$h1"
	snapshot "$h2"
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s 1M -S 32
	wait_until counter_at_least "$h1" busy_received \
		$((snap[$h1.busy_received] + 16)) || return 1
	expect "not all fit" "$(count_lines tx 'tx ')" -lt 32
	expect "no memory for the rest" "$(delta "$h2" bytes_received)" -lt $((16 << 20))
	echo >&"$lines"
	finish tx || return 1
	finish rx || return 1
	agree
	expect "granted" "$(delta "$h2" grants_sent)" -gt 0
	exec {lines}>&-
	rm "$tmp/rx.in"
}

# With what it costs, it is larger than all there is: alone, it still passes.
as_large()
{
	# The kernel doubles what is asked for.
	receiver rx "$h2" -l 10.9.2.2 -B 1M -n 3 || return 1
	send_to 10.9.2.2 -s 2M -n 3 || return 1
	agree
	expect "messages" "$(count_lines rx 'rx .* missing=0 ')" = 3
}

larger()
{
	receiver rx "$h2" -l 10.9.2.2 -B 1M || return 1
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s 3M
	finish tx || return 1
	parse_last tx tx
	expect "outcome" "${tx[outcome]}" = refused
	expect "limit" "${tx[limit]}" = $((2 << 20))
	crash rx
}

# Larger than the receiver takes: refused with its limit.
refused()
{
	receiver rx "$h2" -l 10.9.2.2 -M 500000 || return 1
	start tx "$h1" "$xfer" send -d 10.9.2.2 -p "$port" -s 500001
	finish tx || return 1
	parse_last tx tx
	expect "outcome" "${tx[outcome]}" = refused
	expect "limit" "${tx[limit]}" = 500000
	send_to 10.9.2.2 -s 500000 || return 1
	agree
}

lib_init
path_create
subtest "one of 32 senders stops in the middle" one_stops
subtest "32 senders wait for a slow reader" waiting
subtest "messages as large as the buffer" as_large
subtest "messages larger than the buffer" larger
subtest "messages larger than the limit" refused
lib_exit
