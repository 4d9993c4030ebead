/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints.  Scalars only, so that they can be read without the module's BTF; names
 * and fields are an interface (Documentation/networking/dblp.rst).
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dblp

#if !defined(DBLP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DBLP_TRACE_H

#include <linux/tracepoint.h>
#include <linux/dblp.h>
#include "reject.h"

#define dblp_show_reject(name, str, what) { DBLP_REJECT_##name, str },
#define dblp_enum_reject(name, str, what) TRACE_DEFINE_ENUM(DBLP_REJECT_##name);
DBLP_REJECTS(dblp_enum_reject)

#define dblp_show_outcome(v)                                                      \
	__print_symbolic(v, { 0, "OK" }, { 1, "BELOW" }, { 2, "REFUSED" }, { 3, "UNKNOWN" })

/* Something received was discarded; flow 0 where none is known. */
TRACE_EVENT(dblp_reject,
	    TP_PROTO(u64 flow, u32 reason),
	    TP_ARGS(flow, reason),
	    TP_STRUCT__entry(__field(u64, flow)
			     __field(u32, reason)),
	    TP_fast_assign(__entry->flow = flow;
			   __entry->reason = reason;),
	    TP_printk("flow=%016llx reason=%s", __entry->flow,
		      __print_symbolic(__entry->reason,
				       DBLP_REJECTS(dblp_show_reject) { 0, "none" }))
);

/* A sender learnt something about a path; @info is an interface too. */
TRACE_EVENT(dblp_rate_sample,
	    TP_PROTO(const struct dblp_rate_info *info),
	    TP_ARGS(info),
	    TP_STRUCT__entry(__field(u64, flow)
			     __field(u64, delivered)
			     __field(u64, interval_ns)
			     __field(u64, rtt_ns)
			     __field(u64, min_rtt_ns)
			     __field(u64, inflight)
			     __field(u64, pacing_rate)
			     __field(u64, lost)
			     __field(u32, ce)
			     __field(u32, app_limited)),
	    TP_fast_assign(__entry->flow = info->flow;
			   __entry->delivered = info->delivered;
			   __entry->interval_ns = info->interval_ns;
			   __entry->rtt_ns = info->rtt_ns;
			   __entry->min_rtt_ns = info->min_rtt_ns;
			   __entry->inflight = info->inflight;
			   __entry->pacing_rate = info->pacing_rate;
			   __entry->lost = info->lost;
			   __entry->ce = info->ce;
			   __entry->app_limited = info->app_limited;),
	    TP_printk("flow=%016llx delivered=%llu interval_ns=%llu rtt_ns=%llu min_rtt_ns=%llu inflight=%llu pacing_rate=%llu lost=%llu ce=%u app_limited=%u",
		      __entry->flow, __entry->delivered, __entry->interval_ns,
		      __entry->rtt_ns, __entry->min_rtt_ns, __entry->inflight,
		      __entry->pacing_rate, __entry->lost, __entry->ce,
		      __entry->app_limited)
);

/* A flow is over: nothing more will be said about it. */
TRACE_EVENT(dblp_flow_end,
	    TP_PROTO(u64 flow, u32 sender, u64 total_delivered),
	    TP_ARGS(flow, sender, total_delivered),
	    TP_STRUCT__entry(__field(u64, flow)
			     __field(u64, total_delivered)
			     __field(u32, sender)),
	    TP_fast_assign(__entry->flow = flow;
			   __entry->total_delivered = total_delivered;
			   __entry->sender = sender;),
	    TP_printk("flow=%016llx sender=%u total_delivered=%llu", __entry->flow,
		      __entry->sender, __entry->total_delivered)
);

/* sendmsg() took a message. */
TRACE_EVENT(dblp_msg_sent,
	    TP_PROTO(u64 flow, u64 id, u32 len, u32 segs, u32 ppm, u32 mode, u64 tag),
	    TP_ARGS(flow, id, len, segs, ppm, mode, tag),
	    TP_STRUCT__entry(__field(u64, flow)
			     __field(u64, id)
			     __field(u64, tag)
			     __field(u32, len)
			     __field(u32, segs)
			     __field(u32, ppm)
			     __field(u32, mode)),
	    TP_fast_assign(__entry->flow = flow;
			   __entry->id = id;
			   __entry->tag = tag;
			   __entry->len = len;
			   __entry->segs = segs;
			   __entry->ppm = ppm;
			   __entry->mode = mode;),
	    TP_printk("flow=%016llx id=%llu len=%u segs=%u ppm=%u mode=%u tag=%llx",
		      __entry->flow, __entry->id, __entry->len, __entry->segs,
		      __entry->ppm, __entry->mode, __entry->tag)
);

/* The receiver judged a message. */
TRACE_EVENT(dblp_msg_judged,
	    TP_PROTO(u64 flow, u64 id, u32 verdict, u32 len, u32 missing, u32 missing_segs,
		     u64 duration_ns),
	    TP_ARGS(flow, id, verdict, len, missing, missing_segs, duration_ns),
	    TP_STRUCT__entry(__field(u64, flow)
			     __field(u64, id)
			     __field(u64, duration_ns)
			     __field(u32, verdict)
			     __field(u32, len)
			     __field(u32, missing)
			     __field(u32, missing_segs)),
	    TP_fast_assign(__entry->flow = flow;
			   __entry->id = id;
			   __entry->duration_ns = duration_ns;
			   __entry->verdict = verdict;
			   __entry->len = len;
			   __entry->missing = missing;
			   __entry->missing_segs = missing_segs;),
	    TP_printk("flow=%016llx id=%llu verdict=%s len=%u missing=%u missing_segs=%u duration_ns=%llu",
		      __entry->flow, __entry->id, dblp_show_outcome(__entry->verdict),
		      __entry->len, __entry->missing, __entry->missing_segs,
		      __entry->duration_ns)
);

/* The sender knows what became of a message. */
TRACE_EVENT(dblp_msg_done,
	    TP_PROTO(u64 flow, u64 id, u32 outcome, u32 error, u32 len, u32 missing,
		     u64 sent, u64 resent, u64 duration_ns),
	    TP_ARGS(flow, id, outcome, error, len, missing, sent, resent, duration_ns),
	    TP_STRUCT__entry(__field(u64, flow)
			     __field(u64, id)
			     __field(u64, sent)
			     __field(u64, resent)
			     __field(u64, duration_ns)
			     __field(u32, outcome)
			     __field(u32, error)
			     __field(u32, len)
			     __field(u32, missing)),
	    TP_fast_assign(__entry->flow = flow;
			   __entry->id = id;
			   __entry->sent = sent;
			   __entry->resent = resent;
			   __entry->duration_ns = duration_ns;
			   __entry->outcome = outcome;
			   __entry->error = error;
			   __entry->len = len;
			   __entry->missing = missing;),
	    TP_printk("flow=%016llx id=%llu outcome=%s error=%u len=%u missing=%u sent=%llu resent=%llu duration_ns=%llu",
		      __entry->flow, __entry->id, dblp_show_outcome(__entry->outcome),
		      __entry->error, __entry->len, __entry->missing, __entry->sent,
		      __entry->resent, __entry->duration_ns)
);

#endif /* DBLP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
