# The warnings every target of ours is compiled with. Headers from the system are not concerned.
include_guard(GLOBAL)

add_library(delayq_warnings INTERFACE)
target_compile_options(delayq_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual
  -Wcast-align -Wextra-semi -Wundef -Wvla
  # Part of clang's -Wconversion but not of gcc's; sizes and counts mix too often for it to tell much.
  -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(delayq_warnings INTERFACE
    -Wduplicated-cond -Wlogical-op -Wsuggest-override
    # GCC 12 warns about std::string's own operator+ (GCC bug 105651).
    -Wno-restrict -Wno-stringop-overflow)
endif()
if(CMAKE_UNITY_BUILD)
  # What one source keeps for itself is seen by the others of its batch. The dev preset compiles each source alone.
  target_compile_options(delayq_warnings INTERFACE $<IF:$<CXX_COMPILER_ID:GNU>,-Wno-subobject-linkage,-Wno-shadow>)
endif()
if(DELAYQ_WERROR)
  target_compile_options(delayq_warnings INTERFACE -Werror)
endif()
