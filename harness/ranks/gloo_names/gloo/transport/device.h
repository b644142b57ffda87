// Stands for Gloo's header: see harness/ranks/gloo_names/gloo/context.h.
#pragma once

namespace gloo::transport {
class Device;
}  // namespace gloo::transport
