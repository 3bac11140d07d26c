# Runs inside the machine of vm.py: the suites over verbs, without loss and with some of the packets dropped.
# Argument: the test program of npushmem-roce.
wire_tests=$1
export NPUSIM_VERBS_DEVICE=rxa NPUSHMEM_TEST_PEER_DEVICE=rxb TMPDIR=/tmp RUST_BACKTRACE=0
failed=0
tc() { /usr/bin/tc "$@"; } # not busybox's, which knows no netem

step() { # name, command...: runs it, and shows what it said when it fails
  name=$1; shift
  begin=$(cut -d. -f1 /proc/uptime)
  if "$@" > /tmp/said 2>&1; then
    echo "ok      $name ($(($(cut -d. -f1 /proc/uptime) - begin)) s)$(sed -n 's/^test result: ok\. \([0-9]* passed\).*/: \1/p' /tmp/said | tail -1)"
  else
    echo "FAILED  $name (exit code $?)"; cat /tmp/said; failed=1
  fi
}
counter() { cat /sys/class/infiniband/$1/ports/1/hw_counters/$2; }
packets() { echo $(($(counter rxa sent_pkts) + $(counter rxb sent_pkts))); }
retried() { # what the devices had to send or refuse again
  total=0
  for device in rxa rxb; do
    for name in completer_retry_err out_of_seq_request duplicate_request; do total=$((total + $(counter $device $name))); done
  done
  echo $total
}
dropped() { tc -s qdisc show dev $1 | sed -n 's/.*dropped \([0-9]*\).*/\1/p' | head -1; }

sanity() {
  ibv_devinfo -d rxa && ibv_devinfo -d rxb || return 1
  ibv_rc_pingpong -d rxa -g 1 -n 50 > /dev/null & server=$!
  sleep 1
  ibv_rc_pingpong -d rxb -g 1 -n 50 10.0.0.1 && wait $server
}
suites() {
  step "wire$1" "$wire_tests" --ignored --test-threads=1
}

step "ibv_rc_pingpong between the devices" sanity
before=$(packets)
suites ""
[ "$(packets)" -gt "$before" ] || { echo "FAILED  no packet crossed the wire"; failed=1; }

tc qdisc add dev va root netem loss 2%; tc qdisc add dev vb root netem loss 2%
before=$(retried)
suites ", 2 % loss"
lost=$(($(dropped va) + $(dropped vb)))
[ $lost -gt 0 ] || { echo "FAILED  nothing was lost"; failed=1; }
echo "packets: $(packets); dropped: $lost; retries and repeats: $(($(retried) - before))"
exit $failed
