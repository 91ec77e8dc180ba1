#!/bin/sh
# check_no_zmm.sh <objdump> <library>: fails if a function of dispatch's AVX2 target uses AVX-512's registers.
set -eu
"$1" -d --no-show-raw-insn "$2" | awk '
    /^[0-9a-f]+ </ { inside = /N_AVX2/; if (inside) ++functions; name = $2 }
    inside && /%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])/ { print name ": " $0; wrong = 1 }
    END {
        if (functions < 10) { print "only " functions + 0 " functions of the target found: nothing was tested"; exit 1 }
        exit wrong
    }'
