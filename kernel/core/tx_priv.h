/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Shared by tx.c (what is sent, when) and tx_input.c (what comes back); nobody else.
 */
#ifndef DBLP_TX_PRIV_H
#define DBLP_TX_PRIV_H

#include "tx.h"

/* Counts a discard through the owner. */
void dblp_tx_note_reject(struct dblp_tx *tx, enum dblp_reject r);
/* The message with this id, NULL if it is not outstanding. */
struct dblp_txmsg *dblp_tx_find(struct dblp_tx *tx, u64 id);
/* @m may have something to send. */
void dblp_tx_make_ready(struct dblp_tx *tx, struct dblp_txmsg *m);
/* The receiver owes an answer about @m from now on. */
void dblp_tx_await(struct dblp_tx *tx, struct dblp_txmsg *m, u64 now);
/* Its bytes in flight no longer count against the first flight. */
void dblp_tx_unadmit(struct dblp_tx *tx, struct dblp_txmsg *m);
/* Ends @m with an outcome; the result fields are set. */
void dblp_tx_complete(struct dblp_tx *tx, struct dblp_txmsg *m, u8 outcome, u64 now);
/* Ends @m UNKNOWN with a positive errno. */
void dblp_tx_unknown(struct dblp_tx *tx, struct dblp_txmsg *m, int error, u64 now);
/* No more data; CLOSE asks for the verdict. */
void dblp_tx_close_msg(struct dblp_tx *tx, struct dblp_txmsg *m, u8 reason);

/* What the sent log tells of packets, in tx_input.c. */
extern const struct dblp_sent_events dblp_tx_sent_events;

#endif /* DBLP_TX_PRIV_H */
