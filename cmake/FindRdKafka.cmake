# Debian's librdkafka-dev ships no CMake package. Gives the target rdkafka::rdkafka.
find_path(RDKAFKA_INCLUDE_DIR librdkafka/rdkafka.h)
find_library(RDKAFKA_LIBRARY rdkafka)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(RdKafka REQUIRED_VARS RDKAFKA_LIBRARY RDKAFKA_INCLUDE_DIR)

if(RdKafka_FOUND AND NOT TARGET rdkafka::rdkafka)
  add_library(rdkafka::rdkafka UNKNOWN IMPORTED)
  set_target_properties(rdkafka::rdkafka PROPERTIES
    IMPORTED_LOCATION "${RDKAFKA_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${RDKAFKA_INCLUDE_DIR}")
endif()
mark_as_advanced(RDKAFKA_INCLUDE_DIR RDKAFKA_LIBRARY)
