// The main function of every test binary, for either version of Catch2.
#include "harness/process/leave.h"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argument_count, char** arguments) {
  const int result = Catch::Session().run(argument_count, arguments);
  rematch::leave(result);
}
