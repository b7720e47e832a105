# Does ringmain work on this machine, and which sources and sinks are there?
set -eu
ringmain doctor || echo 'something is to be mended: see above'
ringmain providers
