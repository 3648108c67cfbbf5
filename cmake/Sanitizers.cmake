# Instrumentation is a matter of the whole build, never of one target: mixed objects give false reports.
include_guard(GLOBAL)

if(DELAYQ_SANITIZE)
  add_compile_options(-fsanitize=${DELAYQ_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DELAYQ_SANITIZE})
endif()

if(DELAYQ_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

if(DELAYQ_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "DELAYQ_FUZZ needs clang: cmake --preset fuzz")
  endif()
  # Libraries count coverage for the fuzzer; only the fuzzers themselves link its main (see delayq_fuzzer).
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
