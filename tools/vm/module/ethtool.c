// SPDX-License-Identifier: GPL-2.0
/* The objects of ethtool around it. */
#include <linux/log2.h>
#include <linux/pci.h>

#include "dcbtest.h"

static const char flag_names[FLAGS][ETH_GSTRING_LEN] = {
	"fw-lldp-agent", "link-down-on-close",
};

static void get_drvinfo(struct net_device *d, struct ethtool_drvinfo *i)
{
	strscpy(i->driver, "dcbtest", sizeof(i->driver));
	strscpy(i->fw_version, "22.41.1000", sizeof(i->fw_version));
	strscpy(i->bus_info, pci_name(to_pci_dev(d->dev.parent)), sizeof(i->bus_info));
}

static int get_link(struct net_device *d, struct ethtool_link_ksettings *k)
{
	k->base.speed = SPEED_400000;
	k->base.duplex = DUPLEX_FULL;
	k->base.port = PORT_DA;
	k->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static void get_pause(struct net_device *d, struct ethtool_pauseparam *e)
{
	*e = ((struct dcbtest *)netdev_priv(d))->pause;
}

static int set_pause(struct net_device *d, struct ethtool_pauseparam *e)
{
	struct dcbtest *p = netdev_priv(d);

	if (e->autoneg)
		return -EINVAL; /* as mlx5 */
	if (pause_excludes_pfc && p->pfc.pfc_en)
		return -EOPNOTSUPP;
	p->pause.rx_pause = e->rx_pause;
	p->pause.tx_pause = e->tx_pause;
	return 0;
}

static void get_ring(struct net_device *d, struct ethtool_ringparam *r, struct kernel_ethtool_ringparam *k,
		     struct netlink_ext_ack *ack)
{
	struct dcbtest *p = netdev_priv(d);

	r->rx_max_pending = RING_MAX;
	r->tx_max_pending = RING_MAX;
	r->rx_pending = p->rx_ring;
	r->tx_pending = p->tx_ring;
}

static int set_ring(struct net_device *d, struct ethtool_ringparam *r, struct kernel_ethtool_ringparam *k,
		    struct netlink_ext_ack *ack)
{
	struct dcbtest *p = netdev_priv(d);

	if (r->rx_pending < 64 || r->tx_pending < 64) {
		NL_SET_ERR_MSG(ack, "a ring has at least 64 entries");
		return -EINVAL;
	}
	p->rx_ring = roundup_pow_of_two(r->rx_pending); /* and does not say so, as many NICs */
	p->tx_ring = roundup_pow_of_two(r->tx_pending);
	return 0;
}

static int get_fec(struct net_device *d, struct ethtool_fecparam *f)
{
	struct dcbtest *p = netdev_priv(d);

	f->fec = p->fec;
	f->active_fec = p->fec & ETHTOOL_FEC_AUTO ? ETHTOOL_FEC_RS : p->fec;
	return 0;
}

static int set_fec(struct net_device *d, struct ethtool_fecparam *f)
{
	struct dcbtest *p = netdev_priv(d);

	if (f->fec & ETHTOOL_FEC_LLRS || hweight32(f->fec) != 1)
		return -EOPNOTSUPP;
	p->fec = f->fec;
	return 0;
}

static u32 get_flags(struct net_device *d)
{
	return ((struct dcbtest *)netdev_priv(d))->flags;
}

static int set_flags(struct net_device *d, u32 flags)
{
	((struct dcbtest *)netdev_priv(d))->flags = flags;
	return 0;
}

static int count_strings(struct net_device *d, int set)
{
	switch (set) {
	case ETH_SS_PRIV_FLAGS:
		return FLAGS;
	case ETH_SS_STATS:
		return 2 * IEEE_8021Q_MAX_PRIORITIES;
	}
	return -EOPNOTSUPP;
}

static void get_strings(struct net_device *d, u32 set, u8 *to)
{
	int i;

	switch (set) {
	case ETH_SS_PRIV_FLAGS:
		memcpy(to, flag_names, sizeof(flag_names));
		break;
	case ETH_SS_STATS:
		for (i = 0; i < IEEE_8021Q_MAX_PRIORITIES; i++) {
			ethtool_sprintf(&to, "tx_prio%d_pause", i);
			ethtool_sprintf(&to, "rx_prio%d_pause", i);
		}
		break;
	}
}

static void get_stats(struct net_device *d, struct ethtool_stats *s, u64 *to)
{
	struct dcbtest *p = netdev_priv(d);
	int i;

	for (i = 0; i < IEEE_8021Q_MAX_PRIORITIES; i++) {
		*to++ = p->pfc.requests[i];
		*to++ = p->pfc.indications[i];
	}
}

const struct ethtool_ops dcbtest_ethtool = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link,
	.get_pauseparam = get_pause, .set_pauseparam = set_pause,
	.get_ringparam = get_ring, .set_ringparam = set_ring,
	.get_fecparam = get_fec, .set_fecparam = set_fec,
	.get_priv_flags = get_flags, .set_priv_flags = set_flags,
	.get_sset_count = count_strings, .get_strings = get_strings,
	.get_ethtool_stats = get_stats,
};
