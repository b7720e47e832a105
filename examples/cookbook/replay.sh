# How do I look at a trace of torch.profiler, and which channels does it have?
set -eu
trace=${1-trace.json.gz}
ringmain replay --speed max --json "$trace" >figures.json
ringmain replay --speed max --quiet --select 'collective.>' --sink json_lines:collectives.jsonl "$trace"
grep -c collective.issued collectives.jsonl
