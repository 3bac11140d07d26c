# Runs inside the machine of vm.py: our figures and perftest's, in turn. Arguments: the program verbs_perf, rounds.
ours=$1 rounds=$2
export NPUSIM_VERBS_DEVICE=rxa NPUSHMEM_TEST_PEER_DEVICE=rxb

perftest() { # name, program and its arguments
  name=$1; shift
  "$@" -d rxa -x 1 -F > /dev/null 2>&1 & server=$!
  sleep 1
  echo "perftest $name $("$@" -d rxb -x 1 -F 10.0.0.1 2>/dev/null | awk '$1 ~ /^[0-9]+$/ {line = $0} END {print line}')"
  wait $server
}
for round in 1 2 3; do
  "$ours" "$rounds" | sed 's/^/ours /'
  perftest write_lat ib_write_lat -s 8 -I 64 -n "$rounds"
  perftest atomic_lat ib_atomic_lat -A FETCH_AND_ADD -n "$rounds"
  for size in 4096 65536 1048576; do
    count=$((rounds * 65536 / size)); [ $count -gt 64 ] || count=64; [ $count -lt $((rounds * 2)) ] || count=$((rounds * 2))
    perftest write_bw_$size ib_write_bw -s $size -n $count
  done
  perftest write_rate_8 ib_write_bw -s 8 -n $((rounds * 8))
done
