// Stand-in for Gloo's header of this name: see harness/ranks/gloo_names/gloo/context.h.
#pragma once

namespace gloo::transport {
class Device;
}  // namespace gloo::transport
