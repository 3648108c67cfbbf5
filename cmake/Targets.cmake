# One folder, one target. The functions below look at the files of the calling folder (not of its subfolders):
#   *_threads_test.cc   tests that start threads: one binary NAME_threads_test, label `threads`, also run under tsan
#   *_test.cc           all other tests: one binary NAME_test
#   main.cc             a program's entry: taken by delayq_program, never part of the library
#   every other *.cc    the library delayq_NAME
# New files are picked up by the next build. A folder without sources gives an empty target and no test.
include_guard(GLOBAL)

# `make build` builds what hangs on this target: what users run.
add_custom_target(delayq_programs)
# All GoogleTest binaries and the replay of the fuzzers' corpora: what runs under AddressSanitizer.
add_custom_target(delayq_unit_tests)
# The tsan preset builds what hangs on this one.
add_custom_target(delayq_threads_tests)
# And the fuzz preset this one.
add_custom_target(delayq_fuzzers)

# Sets OUT to the folder's files that match GLOB, without those that match one of the EXCEPT patterns.
function(delayq_files out glob)
  cmake_parse_arguments(ARG "" "" "EXCEPT" ${ARGN})
  file(GLOB found CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${glob}")
  foreach(pattern IN LISTS ARG_EXCEPT)
    list(FILTER found EXCLUDE REGEX "${pattern}")
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Settings shared by every compiled target. Includes read "core/job.h" (from src/) or "tests/support/clock.h".
function(delayq_compile_like_ours target)
  target_link_libraries(${target} PRIVATE delayq_warnings)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
endfunction()

# delayq_library(NAME [EXCEPT regex...] [DEPS target...] [TEST_DEPS target...] [NO_TESTS])
# The library delayq_NAME and the tests that lie beside it; EXCEPT leaves further files out of it. DEPS are what its headers and sources use; they are
# the arrows of the architecture, so keep them to the layers below.
function(delayq_library name)
  cmake_parse_arguments(ARG "NO_TESTS" "" "EXCEPT;DEPS;TEST_DEPS" ${ARGN})
  delayq_files(sources "*.cc" EXCEPT "_test\\.cc$" "/main\\.cc$" ${ARG_EXCEPT})
  if(sources)
    add_library(delayq_${name} STATIC ${sources})
    delayq_compile_like_ours(delayq_${name})
    # The contract suite and the simulators spend their time here: compiling these longer pays (ADR 17).
    if(DELAYQ_SANITIZE AND NOT DELAYQ_FUZZ AND name MATCHES "^(core|resp|queue|engine_.*|net|net_redis)$")
      target_compile_options(delayq_${name} PRIVATE -O1)
    endif()
    target_link_libraries(delayq_${name} PUBLIC ${ARG_DEPS})
    # What libdelayq.so has inside (ADR 36): hidden, so that the program is as fast as without it.
    if(NOT DELAYQ_SANITIZE AND name MATCHES "^(core|resp|json|calendar|signing|queue|api|api_transfer|api_resp|engine_journal)$")
      set_target_properties(delayq_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    endif()
  else()
    add_library(delayq_${name} INTERFACE)
    target_link_libraries(delayq_${name} INTERFACE ${ARG_DEPS})
  endif()
  if(NOT ARG_NO_TESTS)
    delayq_folder_tests(${name} DEPS delayq_${name} ${ARG_TEST_DEPS})
  endif()
endfunction()

# delayq_folder_tests(NAME [DEPS target...] [LABELS label...]): the two test binaries of the calling folder.
function(delayq_folder_tests name)
  cmake_parse_arguments(ARG "" "" "DEPS;LABELS" ${ARGN})
  delayq_files(threaded "*_threads_test.cc")
  delayq_files(plain "*_test.cc" EXCEPT "_threads_test\\.cc$")
  delayq_test(${name}_test SOURCES ${plain} DEPS ${ARG_DEPS} LABELS ${ARG_LABELS})
  delayq_test(${name}_threads_test SOURCES ${threaded} DEPS ${ARG_DEPS} LABELS threads ${ARG_LABELS})
endfunction()

# delayq_test(NAME SOURCES file... [DEPS target...] [LABELS label...] [SHARDS n] [ENVIRONMENT name=value...]): a GoogleTest binary. The binary is one ctest case
# (there are thousands of cases, and a process for each costs more than most of them); a long one is split into SHARDS.
function(delayq_test name)
  cmake_parse_arguments(ARG "" "SHARDS" "SOURCES;DEPS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_SOURCES OR NOT DELAYQ_TESTS OR DELAYQ_FUZZ)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  delayq_compile_like_ours(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock_main rapidcheck_gtest)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # the same GCC bug as in Warnings.cmake, met in the tests' many string literals
    target_compile_options(${name} PRIVATE -Wno-array-bounds)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests-bin")
  delayq_use_test_pch(${name})
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(test ${name})
    if(ARG_SHARDS GREATER 1)
      set(test ${name}.${shard}of${ARG_SHARDS})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name} --gtest_brief=1 "--gtest_output=json:${PROJECT_BINARY_DIR}/test-times/${test}.json")
    set_tests_properties(${test} PROPERTIES LABELS "unit;${ARG_LABELS}" TIMEOUT 900
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index};${ARG_ENVIRONMENT}")
  endforeach()
  add_dependencies(delayq_unit_tests ${name})
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(delayq_threads_tests ${name})
  endif()
endfunction()

# GoogleTest and the big standard headers, compiled once for all test binaries.
function(delayq_use_test_pch target)
  if(NOT TARGET delayq_test_pch)
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/test_pch.cc" CONTENT "")
    add_library(delayq_test_pch OBJECT "${PROJECT_BINARY_DIR}/test_pch.cc")
    delayq_compile_like_ours(delayq_test_pch)
    target_link_libraries(delayq_test_pch PRIVATE GTest::gmock rapidcheck_gtest)
    target_precompile_headers(delayq_test_pch PRIVATE
      <gtest/gtest.h> <gmock/gmock.h> <chrono> <functional> <map> <optional> <string> <string_view> <variant> <vector>)
  endif()
  target_precompile_headers(${target} REUSE_FROM delayq_test_pch)
endfunction()

# delayq_program(NAME [DEPS target...]): the folder's main.cc as an executable at the top of the build directory.
function(delayq_program name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  delayq_files(main "main.cc")
  if(NOT main OR DELAYQ_FUZZ)
    return()
  endif()
  add_executable(${name} ${main})
  delayq_compile_like_ours(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  add_dependencies(delayq_programs ${name})
endfunction()

# delayq_fuzzers(FILE... [DEPS target...]): each fuzz_x.cc is the fuzzer fuzz_x over corpus/x, label `fuzz`. The fuzz preset builds
# them; every other preset builds one program, fuzz_replay, which feeds all corpora to the same functions, so a find stays
# a regression test.
function(delayq_fuzzers)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  if(DELAYQ_FUZZ)
    foreach(source IN LISTS ARG_UNPARSED_ARGUMENTS)
      get_filename_component(name ${source} NAME_WE)
      string(REGEX REPLACE "^fuzz_" "" subject ${name})
      add_executable(${name} ${source})
      delayq_compile_like_ours(${name})
      target_link_libraries(${name} PRIVATE ${ARG_DEPS})
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
      set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz-bin")
      # New inputs go to the first folder, in the build directory; tools/fuzz brings the good ones to the corpus.
      set(found "${PROJECT_BINARY_DIR}/corpus/${subject}")
      file(MAKE_DIRECTORY "${found}")
      add_test(NAME ${name} COMMAND ${name} -max_total_time=${DELAYQ_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=1024
        -print_final_stats=1 -artifact_prefix=${found}.crash- ${found} "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${subject}")
      set_tests_properties(${name} PROPERTIES LABELS fuzz)
      add_dependencies(delayq_fuzzers ${name})
    endforeach()
    return()
  endif()
  if(NOT DELAYQ_TESTS)
    return()
  endif()
  # Every source defines LLVMFuzzerTestOneInput; here each is renamed to what its file is called.
  set(declarations "")
  set(rows "")
  foreach(source IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^fuzz_" "" subject ${name})
    set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=${name})
    string(APPEND declarations "extern \"C\" int ${name}(const uint8_t* data, size_t size);\n")
    string(APPEND rows "    {\"${subject}\", ${name}},\n")
  endforeach()
  set(table "${CMAKE_CURRENT_BINARY_DIR}/replayed.cc")
  file(GENERATE OUTPUT "${table}" CONTENT "#include \"tests/fuzz/replayed.h\"\n\n${declarations}
std::span<const delayq::fuzz::Replayed> delayq::fuzz::replayed() {
  static constexpr Replayed kReplayed[] = {\n${rows}  };
  return kReplayed;
}
")
  add_executable(fuzz_replay replay_main.cc "${table}" ${ARG_UNPARSED_ARGUMENTS})
  delayq_compile_like_ours(fuzz_replay)
  target_link_libraries(fuzz_replay PRIVATE ${ARG_DEPS})
  set_target_properties(fuzz_replay PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz-bin")
  add_test(NAME fuzz_replay COMMAND fuzz_replay "${CMAKE_CURRENT_SOURCE_DIR}/corpus")
  set_tests_properties(fuzz_replay PROPERTIES LABELS "unit;fuzz" TIMEOUT 300)
  add_dependencies(delayq_unit_tests fuzz_replay)
endfunction()

# delayq_bench(FILE [DEPS target...]): x_bench.cc as the program x_bench. It has its own main, prints its figures, and
# with --smoke runs in about a second; ctest runs that under the label `bench`, so that it cannot rot.
function(delayq_bench source)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  delayq_compile_like_ours(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench-bin")
  add_test(NAME ${name}.smoke COMMAND ${name} --smoke)
  set_tests_properties(${name}.smoke PROPERTIES LABELS bench)
endfunction()
