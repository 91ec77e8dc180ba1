# Fails if two instruction sets that a compiler can be asked for give their units one RESIDUA_ABI, though one of them has
# something that code from our sources could use. COMPILER, INCLUDE (a folder), ARCHITECTURE, WORK (a folder).
cmake_minimum_required(VERSION 3.25)

if(ARCHITECTURE MATCHES "aarch64|arm64")
    set(names armv8-a armv8-a+crypto armv8.2-a armv8.2-a+fp16 armv8.2-a+dotprod armv8.2-a+fp16+fp16fml armv8.2-a+bf16
              armv8.2-a+i8mm armv8.2-a+sha3 armv8.2-a+sve armv8.2-a+sve2 armv8.3-a armv8.4-a armv8.5-a armv8.6-a)
    # CRC, atomics and loads that order memory, checks of pointers, profiling, memory tagging, dot products of SVE
    set(harmless "CRC32|ATOMICS|LSE|LDREX|RCPC|PAC|BTI|MEMORY_TAGGING|RNG|CRYPTO|SHA2|SHA512|SM3|SM4|QRDMX|FRINT|JCVT"
                 "|NUMERIC|DIRECTED|_ARCH|SVE_BF16|SVE_MATMUL|SVE_VECTOR|BF16|BF16_SCALAR|TME|UNALIGNED|MOPS")
else()
    set(names x86-64 x86-64-v2 x86-64-v3 x86-64-v4 nehalem westmere sandybridge ivybridge haswell broadwell skylake
              skylake-avx512 cannonlake cascadelake cooperlake icelake-client icelake-server tigerlake rocketlake
              alderlake sapphirerapids emeraldrapids graniterapids sierraforest arrowlake lunarlake bonnell silvermont
              goldmont tremont knl knm barcelona btver1 btver2 bdver1 bdver2 bdver3 bdver4 znver1 znver2 znver3 znver4
              znver5)
    foreach(feature IN ITEMS sse4a xop fma4 tbm fma f16c prfchw popcnt lzcnt bmi bmi2 movbe aes pclmul gfni avxvnni avxifma
                             avxneconvert avxvnniint8 avxvnniint16 avx avx2)
        list(APPEND names "x86-64 -m${feature}" "x86-64-v3 -m${feature}" "x86-64-v3 -mno-${feature}")
    endforeach()
    foreach(feature IN ITEMS cd dq bw vl ifma vbmi vbmi2 vnni bitalg vpopcntdq bf16 fp16)
        list(APPEND names "x86-64-v4 -mavx512${feature}" "x86-64-v4 -mno-avx512${feature}")
    endforeach()
    foreach(feature IN ITEMS vaes vpclmulqdq avx10.1 avx10.1-512 avx10.2 apxf)
        list(APPEND names "x86-64-v3 -m${feature}" "x86-64-v4 -m${feature}")
    endforeach()
    # of the system, of memory and its order, of hashes and long integers, of tiles: nothing that a loop over numbers is
    # compiled to
    set(harmless "ABM|ADX|AMX_[A-Z0-9_]+|CLDEMOTE|CLFLUSHOPT|CLWB|CLZERO|CMPCCXADD|CRC32|ENQCMD|FSGSBASE|FXSR|HLE|HRESET|INVPCID"
                 "|WIDEKL|KL|LAHF_SAHF|LWP|MMX|MOVDIR64B|MOVDIRI|MWAITX|PCONFIG|PKU|PREFETCHI|PREFETCHWT1|PTWRITE|RAOINT"
                 "|RDPID|RDPRU|RDRND|RDSEED|RTM|SERIALIZE|SGX|SHA|SHA512|SHSTK|SM3|SM4|TSXLDTRK|UINTR|USERMSR|WAITPKG"
                 "|WBNOINVD|XSAVE[A-Z]*|AVX5124[A-Z]*|AVX512PF|AVX512VP2INTERSECT")
endif()
string(CONCAT harmless ${harmless})

file(WRITE ${WORK}/name.cpp "#include <residua/abi.hpp>\nname of the unit: RESIDUA_ABI\n")
set(count 0)
foreach(name IN LISTS names)
    separate_arguments(flags UNIX_COMMAND "-march=${name} -std=c++20 -DRESIDUA_BACKEND=1 -I${INCLUDE}")
    execute_process(COMMAND ${COMPILER} ${flags} -E ${WORK}/name.cpp
                    OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
        continue() # which this compiler does not know
    endif()
    if(NOT text MATCHES "name of the unit: ([A-Za-z0-9_]+)")
        message(FATAL_ERROR "-march=${name}: no name in\n${text}")
    endif()
    set(abi ${CMAKE_MATCH_1})
    math(EXPR count "${count} + 1")
    execute_process(COMMAND ${COMPILER} ${flags} -E -dM ${WORK}/name.cpp
                    OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "#define __(ARM_FEATURE_[A-Z0-9_]+|[A-Z0-9_]+__) 1\n" features "${macros}")
    list(TRANSFORM features REPLACE "#define (__[A-Z0-9_]+) 1\n" "\\1")
    list(FILTER features EXCLUDE REGEX "^__(ARM_FEATURE_)?(${harmless})(_?_?|_FEATURES)$")
    list(SORT features)
    if(NOT DEFINED features_of_${abi})
        set(features_of_${abi} "${features}")
        set(first_of_${abi} ${name})
    elseif(NOT features STREQUAL "${features_of_${abi}}")
        set(only "${features}")
        list(REMOVE_ITEM only ${features_of_${abi}})
        set(missing "${features_of_${abi}}")
        list(REMOVE_ITEM missing ${features})
        message(SEND_ERROR "-march=${name} and -march=${first_of_${abi}} are both ${abi}; the first alone has "
                           "\"${only}\", the second \"${missing}\"")
    endif()
endforeach()
if(count LESS 8)
    message(FATAL_ERROR "only ${count} of the instruction sets are known: nothing was tested")
endif()
message(STATUS "${count} instruction sets")
