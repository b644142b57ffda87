// A profile that nobody measured: every op takes as long as its arithmetic or its bytes would at
// the peak rates of a device's data sheet, whichever is longer. Launches and gaps take nothing, so
// real steps take longer; which plan is faster than which is what it can tell.
#pragma once

#include "policies/predict/device/device_sheet.h"
#include "policies/predict/device/links.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// A trace has no shapes of backward's ops. Backward of a scope takes twice what its forward does,
// for the gradients of both factors of its products, and that is spread evenly over its ops but
// collectives. A collective takes what its bytes (collective_time.h) take on the sheet's link, and
// nothing runs meanwhile; waits take nothing. The optimizer's time has the sums of gradients.
Profile roofline_profile(const Trace& trace, const DeviceSheet& sheet);

// With the times of collectives that were measured; `name` is the links' in the profile. Throws
// std::invalid_argument if links_problem() finds one.
struct NamedLinks {
  LinkProfile links;
  std::string name;  // "cpu.links.json: tp=2, measured on cpu over gloo"
};
Profile roofline_profile(const Trace& trace, const DeviceSheet& sheet, const NamedLinks& links);

// The data sheet of the device that the profile's times are of: the one it names, or the one of its
// card. Null: there is none.
const DeviceSheet* sheet_of(const Profile& profile);

// Bytes of a value itself, which may be a view of less or, expanded, of more than its storage.
Bytes value_bytes(const Trace& trace, ValueId id);

// Bytes that a forward op reads and writes: its inputs and results once each; of a table that is
// looked up in, as much as is found there. 0 for views.
Bytes moved_bytes(const Trace& trace, const TracedOp& op);

// Bytes that one AdamW step reads and writes, were it one pass over all parameters.
Bytes optimizer_moved_bytes(const Trace& trace);

// The differences between a roofline of a trace and a measured profile of it.
struct RooflineError {
  double step_time_ratio = 0;  // measured over roofline
  double median_op_ratio = 0;  // the same of forward ops that the roofline gives a time
};
RooflineError roofline_error(const Profile& roofline, const Profile& measured);

}  // namespace rematch
