# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced by the scripts: network namespaces, programs in them, counters, and results
# in TAP. Waits for conditions, ends only what it started.
#
#	h1 eth0 --- to1 sw to2 --- eth0 h2
#
# h1 and h2 are hosts; sw forwards, and loses and delays what a test wants, so that
# neither host knows of it. DBLP_SEED repeats a run.

set -uo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
bin=${DBLP_BIN:-$here}
[[ -x $bin/dblp_xfer ]] || bin=$here/../build/selftests
xfer=$bin/dblp_xfer

# Seconds until a condition that never comes true is a failure.
patience=${DBLP_PATIENCE:-120}

ksft_skip=4
tests=0 failures=0 failed=''
names=() pids=() found=()
tmp='' pause_fd='' port='' value=''

skip_all()
{
	if [[ ${CI:-} == true || ${DBLP_EXPECT_ALL:-} == 1 ]]; then
		echo "# $1, and everything is expected to be here"
		exit 1
	fi
	echo "1..0 # SKIP $1"
	exit $ksft_skip
}

# shellcheck disable=SC2317 # called by a trap
cleanup()
{
	local ns pid

	for pid in "${pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	for ns in "${names[@]}"; do
		ip netns del "$ns" 2>/dev/null
	done
	[[ -z $tmp ]] || rm -rf -- "$tmp"
}

lib_init()
{
	local tool

	((EUID == 0)) || skip_all "not root"
	[[ -d /sys/module/dblp ]] || skip_all "the module is not loaded"
	[[ -x $xfer ]] || skip_all "dblp_xfer is not built"
	for tool in ip tc; do
		type -P "$tool" >/dev/null || skip_all "there is no $tool"
	done
	seed=${DBLP_SEED:-$((RANDOM << 15 | RANDOM))}
	RANDOM=$seed
	echo "# DBLP_SEED=$seed"
	tmp=$(mktemp -d) || exit 1
	trap cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	mkfifo "$tmp/never"
	exec {pause_fd}<>"$tmp/never"
	suffix=$$-$RANDOM
}

# A tenth of a second without a process.
pause()
{
	read -r -t 0.1 -u "$pause_fd"
	return 0
}

# Waits until COMMAND is true.
wait_until()
{
	local end=$((SECONDS + patience))

	until "$@"; do
		if ((SECONDS > end)); then
			echo "# waited $patience s in vain for: $*"
			failed=1
			return 1
		fi
		pause
	done
}

### results

# expect WHAT A OP B: test A OP B
expect()
{
	local what=$1
	shift

	test "$@" && return
	echo "# $what: '$1' $2 '$3' is false"
	failed=1
	return 1
}

# subtest NAME COMMAND: COMMAND fails, or an expect() in it, and so does the test.
subtest()
{
	local name=$1 before=$SECONDS
	shift

	failed=''
	"$@" || failed=1
	tests=$((tests + 1))
	if [[ -n $failed ]]; then
		failures=$((failures + 1))
		echo "not ok $tests - $name"
	else
		echo "ok $tests - $name # $((SECONDS - before)) s"
	fi
}

lib_exit()
{
	echo "1..$tests"
	((tests && !failures))
	exit
}

### namespaces

# Creates namespaces and sets variables of these names. A process stays in each, by
# whose folder in /proc its counters are read: programs are slow to start here.
declare -A holders
ns_create()
{
	local name ns

	for name; do
		ns=dblp-$name-$suffix
		declare -g "$name=$ns"
		ip netns add "$ns" || exit 1
		names+=("$ns")
		ip netns exec "$ns" sleep infinity &
		holders[$ns]=$!
		pids+=($!)
	done
	for name; do
		wait_until inside "dblp-$name-$suffix" || exit 1
	done
}

# Has the holder of NS entered it?
inside()
{
	! [[ /proc/${holders[$1]}/ns/net -ef /proc/self/ns/net ]]
}

# Deletes the namespaces' names, and lets go of them.
ns_delete()
{
	local ns

	for ns; do
		kill -KILL "${holders[$ns]}"
		wait "${holders[$ns]}" 2>/dev/null
		forget "${holders[$ns]}"
		unset "holders[$ns]"
		ip netns del "$ns"
		for i in "${!names[@]}"; do
			[[ ${names[i]} != "$ns" ]] || unset "names[i]"
		done
	done
}

# in_ns NS COMMAND
in_ns()
{
	ip netns exec "$@"
}

# Two hosts and the switch.
h1='' sw='' h2=''
path_create()
{
	ns_create h1 sw h2
	ip -batch - <<-END || exit 1
	link add eth0 netns $h1 type veth peer name to1 netns $sw
	link add eth0 netns $h2 type veth peer name to2 netns $sw
	END
	host_up "$h1" 1
	host_up "$h2" 2
	port_up 1
	port_up 2
	in_ns "$sw" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward
		echo 1 >/proc/sys/net/ipv6/conf/all/forwarding' || exit 1
}

# Host number N of the switch, in namespace NS: addresses 10.9.N.2 and fd09:N::2.
host_up()
{
	ip -n "$1" -batch - <<-END || exit 1
	link set lo up
	link set eth0 up gso_max_segs 1
	addr add 10.9.$2.2/24 dev eth0
	addr add fd09:$2::2/64 dev eth0 nodad
	route add default via 10.9.$2.1
	route add default via fd09:$2::1
	END
}

port_up()
{
	ip -n "$sw" -batch - <<-END || exit 1
	link set lo up
	link set to$1 up gso_max_segs 1
	addr add 10.9.$1.1/24 dev to$1
	addr add fd09:$1::1/64 dev to$1 nodad
	END
}

# One more host: number N, its namespace in variable NAME.
host_create()
{
	ns_create "$1"
	ip -batch - <<-END || exit 1
	link add eth0 netns ${!1} type veth peer name to$2 netns $sw
	END
	host_up "${!1}" "$2"
	port_up "$2"
}

# netem PORT ARGUMENT...: what happens to packets on their way out of this port of the
# switch.
netem()
{
	local dev=$1
	shift

	tc -n "$sw" qdisc replace dev "$dev" root netem limit 100000 "$@" || exit 1
	echo "# $dev: $*"
}

netem_off()
{
	tc -n "$sw" qdisc del dev "$1" root 2>/dev/null
	return 0
}

# Packets that the port lost: what was asked for must have happened.
netem_dropped()
{
	local text

	text=$(tc -n "$sw" -s qdisc show dev "$1")
	[[ $text =~ \(dropped\ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

### programs

declare -A receivers

# start NAME NS COMMAND: in the background, output in $tmp/NAME. Its standard input is
# $tmp/NAME.in if that is there.
start()
{
	local name=$1 ns=$2 in=/dev/null
	shift 2

	[[ ! -p $tmp/$name.in ]] || in=$tmp/$name.in
	: >"$tmp/$name"
	ip netns exec "$ns" "$@" >"$tmp/$name" 2>&1 <"$in" &
	pids[${#pids[@]}]=$!
	declare -g "pid_$name=$!"
}

# Waits for the end of what was started as NAME; its status.  A receiver ends when it has
# received everything and is told that nobody asks it any more.
finish()
{
	local pid=pid_$1 status

	[[ -z ${receivers[$1]:-} ]] || kill -TERM "${!pid}" 2>/dev/null || true
	wait "${!pid}"
	status=$?
	forget "${!pid}"
	if ((status)); then
		echo "# $1 ended with $status:"
		sed 's/^/#   /' "$tmp/$1" | tail -n 5
	fi
	return $status
}

# Kills what was started as NAME, as a crash would.
crash()
{
	local pid=pid_$1

	if ! kill -KILL "${!pid}" 2>/dev/null; then
		echo "# $1 had ended already:"
		sed 's/^/#   /' "$tmp/$1" | tail -n 5
		failed=1
	fi
	wait "${!pid}" 2>/dev/null
	forget "${!pid}"
}

forget()
{
	local i

	for i in "${!pids[@]}"; do
		[[ ${pids[i]} != "$1" ]] || unset "pids[i]"
	done
}

# Lines of output NAME that begin with the regular expression, in the array "found".
find_lines()
{
	local line lines

	found=()
	mapfile -t lines <"$tmp/$1"
	for line in "${lines[@]}"; do
		[[ ! $line =~ ^$2 ]] || found+=("$line")
	done
}

has_lines()
{
	find_lines "$1" "$2"
	((${#found[@]} >= ${3:-1}))
}

count_lines()
{
	find_lines "$1" "$2"
	echo "${#found[@]}"
}

# Starts a receiver NAME in NS and sets port.
receiver()
{
	local name=$1 ns=$2
	shift 2

	start "$name" "$ns" "$xfer" recv "$@"
	receivers[$name]=1
	wait_until has_lines "$name" "ready" || return 1
	port=${found[0]#*=}
}

# Reads a line of key=value words into the array NAME.
parse()
{
	# shellcheck disable=SC2034 # the caller's
	local -n into=$1
	local word

	into=()
	# shellcheck disable=SC2034
	for word in $2; do
		[[ $word != *=* ]] || into[${word%%=*}]=${word#*=}
	done
}

# The last line of output NAME that begins with WORD, into the array of that name.
parse_last()
{
	find_lines "$1" "$2 "
	parse "$2" "${found[-1]:-}"
}

### counters

# counter NS NAME, also in "value"
counter()
{
	local line lines

	mapfile -t lines <"/proc/${holders[$1]}/net/dblp/snmp"
	for line in "${lines[@]}"; do
		if [[ ${line% *} == "$2" ]]; then
			value=${line#* }
			echo "$value"
			return
		fi
	done
	value=no-such-counter
	return 1
}

counter_at_least()
{
	counter "$1" "$2" >/dev/null && ((value >= $3))
}

# Remembers all counters of NS, to be compared by delta().
declare -A snap
snapshot()
{
	local name number

	while read -r name number; do
		snap[$1.$name]=$number
	done <"/proc/${holders[$1]}/net/dblp/snmp"
}

# How much counter NAME of NS grew since snapshot().
delta()
{
	counter "$1" "$2" >/dev/null || {
		echo "$value"
		return 1
	}
	echo $((value - snap[$1.$2]))
}

### transfers

declare -A rx tx

# send_to ADDRESS ARGUMENT...: from h1 to the receiver "rx" at $port, both until done.
send_to()
{
	local address=$1 status=0
	shift

	start tx "$h1" "$xfer" send -d "$address" -p "$port" "$@"
	finish tx || status=1
	finish rx || status=1
	return $status
}

# Both ends say the same about every message: as many bytes missing, the same map.
agree()
{
	local line key
	local -A r=() seen=()

	find_lines rx "rx "
	for line in "${found[@]}"; do
		parse rx "$line"
		key=${rx[tag]}
		expect "message $key received once" "${seen[$key]:-}" = ""
		seen[$key]=1
		r[$key]="${rx[missing]} ${rx[missing_segs]} ${rx[map]}"
		expect "payload of message $key" "${rx[bad]}" = 0
		expect "message $key within its bound" "${rx[missing]}" -le "${rx[allowed]}"
	done
	find_lines tx "tx "
	for line in "${found[@]}"; do
		parse tx "$line"
		key=${tx[tag]}
		expect "outcome of message $key" "${tx[outcome]}" = ok
		expect "map of message $key" "${tx[missing]} ${tx[missing_segs]} ${tx[map]}" = \
			"${r[$key]:-not received}"
		unset "r[$key]"
	done
	expect "received without completion" "${!r[*]}" = ""
}
