#pragma once

/// The client library of delayq, all of it. C++20, no other library in its headers.
#include <delayq/client.h>
#include <delayq/error.h>
#include <delayq/worker.h>
