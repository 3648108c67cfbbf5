# Debian's libmsgpuck-dev ships a header and a static library, no CMake package. Gives the target msgpuck::msgpuck.
find_path(MSGPUCK_INCLUDE_DIR msgpuck.h)
find_library(MSGPUCK_LIBRARY msgpuck)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Msgpuck REQUIRED_VARS MSGPUCK_LIBRARY MSGPUCK_INCLUDE_DIR)

if(Msgpuck_FOUND AND NOT TARGET msgpuck::msgpuck)
  add_library(msgpuck::msgpuck UNKNOWN IMPORTED)
  set_target_properties(msgpuck::msgpuck PROPERTIES
    IMPORTED_LOCATION "${MSGPUCK_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MSGPUCK_INCLUDE_DIR}")
endif()
mark_as_advanced(MSGPUCK_INCLUDE_DIR MSGPUCK_LIBRARY)
