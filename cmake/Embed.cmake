# delayq_embed(TARGET FILE NAME): the bytes of FILE, as `std::string_view delayq::embedded::NAME()` in TARGET. The
# declaration is written by whoever uses it. As a script (cmake -P) this file writes the source: FILE, NAME, OUTPUT.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  file(READ "${FILE}" bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE "${OUTPUT}" "// Written by cmake/Embed.cmake.
#include <string_view>

namespace delayq::embedded {

std::string_view ${NAME}();
std::string_view ${NAME}() {
  static constexpr unsigned char kBytes[] = {
${bytes}
  };
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}

}  // namespace delayq::embedded
")
  return()
endif()

set(DELAYQ_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
function(delayq_embed target file name)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cc")
  add_custom_command(OUTPUT "${output}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DFILE=${file}" "-DNAME=${name}" "-DOUTPUT=${output}" -P "${DELAYQ_EMBED_SCRIPT}"
    DEPENDS "${file}" "${DELAYQ_EMBED_SCRIPT}" COMMENT "Embedding ${name}")
  target_sources(${target} PRIVATE "${output}")
endfunction()
