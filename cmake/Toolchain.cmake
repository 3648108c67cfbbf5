# Language, build types and compiler cache: what is the same for every target.
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()
# Line tables only: enough for a profile and a stack trace, and half the link time of -g.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
# Line tables only: less to compile. The sanitizer builds are clang without optimisation: of what is fast to compile and
# what is fast to run, a suite that runs once a build needs the first (measured in ADR 17).
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
if(DELAYQ_SANITIZE AND NOT DELAYQ_FUZZ)
  string(REPLACE "-O1" "-O0" CMAKE_CXX_FLAGS_DEBUG "${CMAKE_CXX_FLAGS_DEBUG}")
endif()

# SSE4.2 (CRC32C) and POPCNT: every x86-64 server since 2009.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  add_compile_options(-march=x86-64-v2)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The build directory is left out of the key, so presets with equal flags share objects; the sloppiness is what
  # ccache asks for when a precompiled header is used.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
endif()
