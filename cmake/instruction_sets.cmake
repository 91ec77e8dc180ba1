# The flags of each instruction set of x86. Highway takes its AVX2 only with all of x86-64-v3, AES and PCLMUL.
set(residua_flags_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(residua_flags_avx512 ${residua_flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)
set(residua_flags_highway_avx2 -march=x86-64-v3 -maes -mpclmul)
set(residua_flags_highway_avx512 ${residua_flags_highway_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)
