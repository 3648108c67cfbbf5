// delayq-demo: shows a job's life in a directory of its own, which is gone afterwards.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "app/demo.h"

int main() {
  namespace fs = std::filesystem;
  std::string directory = (fs::temp_directory_path() / "delayq-demo-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) {
    std::cerr << "delayq-demo: cannot make a directory under " << fs::temp_directory_path() << "\n";
    return EXIT_FAILURE;
  }
  const delayq::Status status = delayq::run_demo(directory, std::cout);
  if (!status) std::cerr << "delayq-demo: " << to_string(status.error()) << "\n";
  std::error_code ignored;
  fs::remove_all(directory, ignored);
  return status ? EXIT_SUCCESS : EXIT_FAILURE;
}
