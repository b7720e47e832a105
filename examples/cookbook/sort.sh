# How do I put the events of all ranks in order of time?
set -eu
for rank in 0 1; do
  RANK=$rank ringmain run --source heartbeat:1 --sink json_lines:rank-%r.jsonl -- sleep 0.5
done
ringmain sort rank-*.jsonl -o all.jsonl
wc -l all.jsonl
