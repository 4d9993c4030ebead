#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the tracepoints say, against what happened: counters and the shape of the path.

. "$(dirname -- "$0")/lib.sh"

tracing=/sys/kernel/tracing
inst=''

trace_begin()
{
	[[ -d $tracing/events ]] || mount -t tracefs tracefs "$tracing" 2>/dev/null
	[[ -d $tracing/events/dblp ]] || skip_all "there are no tracepoints: no tracefs"
	inst=$tracing/instances/dblp-$suffix
	mkdir "$inst" || exit 1
	trap 'trace_end; cleanup' EXIT
	echo 16384 >"$inst/buffer_size_kb"
}

# shellcheck disable=SC2317 # called by a trap
trace_end()
{
	echo 0 >"$inst/events/dblp/enable"
	rmdir "$inst"
}

# Values of FIELD in the events EVENT, in the array "found".
field()
{
	local line

	found=()
	while read -r line; do
		[[ $line == *" $1: "* && $line =~ \ $2=([^ ]+) ]] || continue
		found+=("${BASH_REMATCH[1]}")
	done <"$tmp/trace"
}

sum()
{
	local v total=0

	for v in "${found[@]}"; do total=$((total + v)); done
	echo "$total"
}

transfer()
{
	netem to1 delay 5ms
	netem to2 delay 5ms rate 20mbit loss 2% limit 1000
	receiver rx "$h2" -l 10.9.2.2 -n 3 || return 1
	snapshot "$h1"
	snapshot "$h2"
	echo >"$inst/trace"
	echo 1 >"$inst/events/dblp/enable"
	send_to 10.9.2.2 -n 3 -s 1M || return 1
	finish rx || return 1
	echo 0 >"$inst/events/dblp/enable"
	cat "$inst/trace" >"$tmp/trace"
	expect "lines lost by the ring" "$(grep -c 'LOST' "$tmp/trace")" = 0
}

messages()
{
	field dblp_msg_sent id
	expect "messages sent" "${#found[@]}" = "$(delta "$h1" msgs_sent)"
	field dblp_msg_done outcome
	expect "outcomes" "${found[*]}" = "OK OK OK"
	field dblp_msg_judged verdict
	expect "verdicts" "${found[*]}" = "OK OK OK"
	field dblp_msg_done resent
	expect "bytes sent again" "$(sum)" = "$(delta "$h1" bytes_retransmitted)"
}

# One way 5 ms each, so no round trip is shorter; 20 Mb/s, so nothing arrives faster.
samples()
{
	local v rates worst=0 i least=999999999999

	field dblp_rate_sample rtt_ns
	expect "samples" "${#found[@]}" -gt 50
	for v in "${found[@]}"; do
		((v == 0 || v >= least)) || least=$v
	done
	expect "shortest round trip, ns" "$least" -ge 10000000
	expect "shortest round trip, ns" "$least" -lt 40000000
	field dblp_rate_sample delivered
	rates=("${found[@]}")
	field dblp_rate_sample interval_ns
	expect "as many rates as intervals" "${#found[@]}" = "${#rates[@]}"
	for i in "${!found[@]}"; do
		((found[i])) || continue
		v=$((rates[i] * 8000 / (found[i] / 1000000 + 1)))
		((v <= worst)) || worst=$v
	done
	echo "# fastest sample: $worst b/s of 20 Mb/s; shortest round trip $least ns"
	expect "fastest sample, b/s" "$worst" -gt 10000000
	field dblp_rate_sample lost
	expect "bytes lost" "$(sum)" -gt 0
}

ends()
{
	field dblp_flow_end sender
	expect "flows that ended, with the receiver's" "${#found[@]}" = 2
	field dblp_flow_end total_delivered
	expect "bytes delivered" "${found[0]}" -ge 3145728
}

lib_init
path_create
trace_begin
subtest "three messages" transfer
subtest "events of messages" messages
subtest "samples of the path" samples
subtest "flows end" ends
lib_exit
