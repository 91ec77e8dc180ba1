// The public headers, in the order of their layers. No guard of its own: dispatch.hpp reads them once more.

#include <residua/elementary.hpp>
#include <residua/softmax.hpp>
#include <residua/residual.hpp>
#include <residua/rms_norm.hpp>
#include <residua/split_rms_norm.hpp>
#include <residua/add_rms_norm.hpp>
#include <residua/gated_rms_norm.hpp>
#include <residua/layer_norm.hpp>
#include <residua/streams.hpp>
#include <residua/mhc.hpp>
#include <residua/gated_residual.hpp>
#include <residua/attn_res.hpp>
#include <residua/swiglu.hpp>
#include <residua/matvec.hpp>
#include <residua/probe.hpp>
