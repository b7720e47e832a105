# How do I get the events of a program that I do not change?
set -eu
ringmain run --source heartbeat:1 --sink json_lines:events-%p.jsonl --summary -- sleep 0.5
head -n 3 events-*.jsonl
