# What we link from Debian. Everything is required: tools/setup installs it, and a test that silently is not built
# because a package is missing would be a test that does not run.
include_guard(GLOBAL)

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)  # headers only: Asio
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(Msgpuck REQUIRED)
find_package(spdlog REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL 7.88 REQUIRED)
find_package(RdKafka REQUIRED)
find_package(ZLIB REQUIRED)

if(DELAYQ_TESTS AND NOT DELAYQ_FUZZ)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(DELAYQ_BENCH AND NOT DELAYQ_FUZZ)
  find_package(benchmark REQUIRED)
endif()
