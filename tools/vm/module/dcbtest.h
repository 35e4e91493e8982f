/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DCBTEST_H
#define DCBTEST_H

#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <net/dcbnl.h>

#define RING_MAX 8192

/* Parameters of the module: main.c says what they are. */
extern unsigned int ets_cap, pfc_cap, total_buffer;
extern bool pause_excludes_pfc;

enum object { ETS, MAXRATE, PFC, BUFFER, APP, TRUST, DCBX, OBJECTS };

enum flag { FW_LLDP, DOWN_ON_CLOSE, FLAGS };

struct dcbtest;

/* A file of objects: the words in it, as a mask. */
struct objects {
	struct dcbtest *of;
	u32 mask;
};

struct dcbtest {
	struct net_device *dev;
	struct dcbnl_rtnl_ops ops; /* of this device alone: absent and missing objects are NULL in it */

	struct ieee_ets ets;
	struct ieee_pfc pfc;
	struct ieee_maxrate rate;
	struct dcbnl_buffer buf;
	u8 trust[IEEE_8021QAZ_APP_SEL_MAX + 1];
	int ntrust;
	u8 dcbx;
	struct ethtool_pauseparam pause;
	u32 rx_ring, tx_ring, fec, flags;

	struct dentry *dir;
	struct objects absent, missing, lie, refuse, odd, flap;
	atomic_t answer;
	bool replace;
	u32 sets, flaps;
};

/* dcb.c: gives the device the operations that its driver has now. */
void dcbtest_set_ops(struct dcbtest *p);

/* ethtool.c */
extern const struct ethtool_ops dcbtest_ethtool;

/* play.c: the files in debugfs that say how to behave. */
void dcbtest_add_files(struct dcbtest *p, struct dentry *root);

#endif
