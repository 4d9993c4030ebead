#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dblp-perf between two hosts and among three, over each transport: it delivers what it
# says, counts what is missing, and has a reason for what goes wrong.

. "$(dirname -- "$0")/lib.sh"

h3=''
perf=${DBLP_PERF:-$here/../build/cmake/tools/perf/dblp-perf}

# server NAME NS ADDRESS: sets port. finish() ends it, and wants it to end well.
server()
{
	start "$1" "$2" "$perf" --server -B "$3" -p "${4:-0}"
	# shellcheck disable=SC2034 # of lib.sh
	receivers[$1]=1
	wait_until has_lines "$1" "listening" || return 1
	port=${found[0]##*:}
}

declare -A got

# client ARGUMENT...: from h1, its figures in "got".
client()
{
	local line lines

	start client "$h1" "$perf" -p "$port" --seed "$seed" \
		-k OFFERED_BYTES,DELIVERED_BYTES,MISSING_BYTES,RETRANSMITTED_BYTES,VERIFIED_BYTES,MESSAGES,ELAPSED_TIME \
		"$@"
	finish client || return 1
	got=()
	mapfile -t lines <"$tmp/client"
	for line in "${lines[@]}"; do
		got[${line%%=*}]=${line#*=}
	done
	expect "bytes add up" $((got[DELIVERED_BYTES] + got[MISSING_BYTES])) = \
		"${got[OFFERED_BYTES]}"
	expect "verified" "${got[VERIFIED_BYTES]}" -ge "${got[DELIVERED_BYTES]}"
}

# Nothing is lost on a path without loss; but UDP overflows queues.
complete()
{
	[[ $1 == udp ]] || expect "missing" "${got[MISSING_BYTES]}" = 0
}

one_transport()
{
	local transport=$1

	client -H 10.9.2.2 -T "$transport" -t MESSAGE -- -m 300001 -r 3 -w 1 || return 1
	expect "offered" "${got[OFFERED_BYTES]}" = 900003
	complete "$transport"
	client -H 10.9.2.2 -T "$transport" -t RR -l 0.3 -- -r 100,5000 || return 1
	expect "transactions" "${got[MESSAGES]}" -gt 1
	client -H 10.9.2.2 -T "$transport" -t STREAM -l 0.5 -- -m 20000 || return 1
	expect "messages" "${got[MESSAGES]}" -gt 1
	client -H 10.9.2.2 -T "$transport" -t MAERTS -l 0.5 -- -m 20000 || return 1
	expect "messages" "${got[MESSAGES]}" -gt 1
}

# Three hosts, of which one is the client.
collectives()
{
	local transport=$1 test

	for test in INCAST PS RING TRANSPOSE; do
		client -H 10.9.2.2,10.9.3.2 -T "$transport" -t "$test" -- -m 300001 -r 2 || return 1
		complete "$transport"
		case $test in
		INCAST) expect "$test" "${got[OFFERED_BYTES]}" = $((2 * 2 * 300001)) ;;
		*) expect "$test" "${got[OFFERED_BYTES]}" = $((2 * 4 * 300001)) ;;
		esac
	done
}

# lossy TRANSPORT OPTION...: 2 MB with 3 % of loss. Of the 1400 packets none is lost
# with a chance of e^-42.
lossy()
{
	local transport=$1
	shift

	netem to2 loss 3%
	client -H 10.9.2.2 -T "$transport" -t MESSAGE -- -m 1M -r 2 "$@"
	netem_off to2
	echo "# missing ${got[MISSING_BYTES]:-}, again ${got[RETRANSMITTED_BYTES]:-}, ${got[ELAPSED_TIME]:-} s"
	[[ -n ${got[MISSING_BYTES]:-} ]]
}

reliable()
{
	lossy "$@" || return 1
	expect "missing" "${got[MISSING_BYTES]}" = 0
	expect "retransmitted" "${got[RETRANSMITTED_BYTES]}" -gt 0
}

partial()
{
	lossy "$@" || return 1
	expect "missing" "${got[MISSING_BYTES]}" -gt 0
	expect "within a tenth" "${got[MISSING_BYTES]}" -lt $(((2 << 20) / 10))
}

# It gives up what is late, not what is lost: little, and at times nothing.
late()
{
	lossy "$@" || return 1
	expect "within a tenth" "${got[MISSING_BYTES]}" -le $(((2 << 20) / 10))
}

# Waits for one that has to fail.
status_of_client()
{
	# shellcheck disable=SC2154 # start() sets it
	local pid=$pid_client status

	wait "$pid"
	status=$?
	forget "$pid"
	return "$status"
}

# refuses STATUS TEXT ARGUMENT...: one line says why.
refuses()
{
	local status=$1 text=$2 lines

	shift 2
	start client "$h1" "$perf" "$@"
	status_of_client
	expect "status of $*" "$?" = "$status"
	mapfile -t lines <"$tmp/client"
	echo "# ${lines[*]}"
	expect "lines" ${#lines[@]} = 1
	[[ ${lines[0]} == *"$text"* ]] || expect "reason" "${lines[0]}" = "$text"
}

wrong_usage()
{
	refuses 2 "did you mean STREAM?" -H 10.9.2.2 -p "$port" -t STREEM
	refuses 2 "no transport 'quic'" -H 10.9.2.2 -p "$port" -T quic
	refuses 1 "nobody listens there" -H 10.9.2.2 -p 1 -T udp
	refuses 1 "not one of this host" -H 10.9.2.2 -p "$port" -B 192.0.2.1 -T udp
}

# What the kernel lacks. It would fetch the module if it could.
no_module()
{
	local program

	[[ -d /sys/module/sctp ]] && rmmod sctp
	read -r program </proc/sys/kernel/modprobe
	echo /bin/false >/proc/sys/kernel/modprobe
	refuses 1 "modprobe sctp" -H 10.9.2.2 -p "$port" -T sctp
	refuses 1 "modprobe tcp_dctcp" -H 10.9.2.2 -p "$port" -T tcp-dctcp
	echo "$program" >/proc/sys/kernel/modprobe
	# The server had such a client, and goes on.
	client -H 10.9.2.2 -T udp -t RR -l 0.1
}


killed_client()
{
	snapshot "$h2"
	start killed "$h1" "$perf" -H 10.9.2.2 -p "$port" -T dblp -t STREAM -l 600 -- -m 10000
	wait_until counter_at_least "$h2" msgs_received $((snap[$h2.msgs_received] + 3)) || return 1
	crash killed
	wait_until has_lines srv ".* went away" || return 1
	client -H 10.9.2.2 -T dblp -t MESSAGE -- -m 10000 -r 2
}

killed_server()
{
	local transport=$1

	server victim "$h2" 10.9.2.2 || return 1
	start client "$h1" "$perf" -H 10.9.2.2 -p "$port" -T "$transport" -t STREAM -l 600
	wait_until served victim || return 1
	crash victim
	unset "receivers[victim]"
	status_of_client
	expect "status" "$?" = 1
	expect "reason" "$(count_lines client 'dblp-perf: .* went away')" = 1
}

# A client has a thread of its own.
served()
{
	local pid=pid_$1 tasks

	tasks=(/proc/"${!pid}"/task/*)
	((${#tasks[@]} > 1))
}

lib_init
[[ -x $perf ]] || skip_all "dblp-perf is not built (DBLP_PERF)"
path_create
host_create h3 3
server srv "$h2" 10.9.2.2
server srv3 "$h3" 10.9.3.2 "$port"
subtest "wrong usage" wrong_usage
subtest "modules that are not there" no_module
for transport in dblp tcp-cubic sctp pr-sctp-ttl pr-sctp-rtx udp; do
	subtest "between two hosts over $transport" one_transport "$transport"
done
for transport in dblp tcp-cubic sctp udp; do
	subtest "among three hosts over $transport" collectives "$transport"
done
subtest "loss, dblp, tolerance 0" reliable dblp
subtest "loss, dblp, tolerance 10 %" partial dblp --tolerance-ppm 100000
subtest "loss, tcp-cubic" reliable tcp-cubic
subtest "loss, sctp" reliable sctp
subtest "loss, pr-sctp-rtx, tolerance 10 %" partial pr-sctp-rtx --tolerance-ppm 100000
subtest "loss, pr-sctp-rtx, tolerance 0" partial pr-sctp-rtx
subtest "loss, pr-sctp-ttl, tolerance 10 %" late pr-sctp-ttl --tolerance-ppm 100000 --deadline-us 500000
subtest "loss, udp" partial udp
subtest "a client is killed" killed_client
for transport in dblp tcp-cubic sctp udp; do
	subtest "a server is killed, $transport" killed_server "$transport"
done
subtest "servers end when told to" finish srv
subtest "and so does the other" finish srv3
lib_exit
