# find_package(delayq) gives the target delayq::delayq. Nothing else is needed: the library has its parts inside.
include("${CMAKE_CURRENT_LIST_DIR}/delayqTargets.cmake")
